"""Recognises times, quoted text and the last session in a question.

They only change the ranking: a misread time word costs a hit its rank but never removes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache

from csmd import data
from csmd.cache import cached
from csmd.errors import BadInput
from csmd.text import dates, prose, quotations, search_terms, sentence, sentence_words, tokens

#: Characters of a question that are read: the patterns look ahead from many offsets.
MAX_READ_CHARACTERS = 1000
#: Fewest content words of an order after an answer that starts another subject.
MIN_ORDER_WORDS = 2
MAX_LITERALS = 5
MIN_LITERAL_CHARACTERS = 3
MAX_LITERAL_CHARACTERS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A span of stored times: from `since` on and before `until`, each "" if open."""

    since: str = ""
    until: str = ""

    def holds(self, at: str) -> bool:
        """Whether a stored time lies in the window."""
        return at >= self.since and (not self.until or at < self.until)


_ANSWERS = ("agrees", "praise", "corrects")
_WORD = re.compile(r"[^\W_]+")
_CODE = re.compile(r"`([^`\n]+)`")
_QUOTED = re.compile(r"[\"“]([^\"”\n]+)[\"”]|(?<!\w)'([^'\n]+)'(?!\w)")
#: Hiragana is grammar (endings and particles, which every Japanese sentence has), and so are some letters of Chinese.
_GRAMMAR = re.compile(".?[\u3040-\u309f的了一是在有和不也就都把被给給到这這那个個].?")
#: A URL up to its last part: many URLs share it.
_ADDRESS = re.compile(r"\bhttps?://[^\s/]+/(?:[^\s/]+/)*(?=[^\s/])")
_PATH = re.compile(r"(?<![\w/])(?:[\w.@~-]*/)+[\w.@-]+|(?<![\w/])[\w-]+(?:\.[\w-]+)*\.[a-z]{1,5}\b(?!\()")


def is_about_last_session(prompt: str) -> bool:
    """Whether a prompt only asks what was done before this session or where work stopped."""
    words = set(_WORD.findall(prompt[:MAX_READ_CHARACTERS].casefold()))
    return len(words) > 1 and any(words <= allowed and words & past for past, allowed in _load_session_words())


def is_about_work(prompt: str) -> bool:
    """Whether a prompt asks what was done about something in earlier sessions: "what did we do about the flaky upload?"."""
    text = prompt[:MAX_READ_CHARACTERS]
    parsed = sentence.parse(text)
    return parsed.kind == "asks" and sentence.has("of_work", parsed.language, text)


def _starts_other_order(text: str) -> bool:
    """Whether the words after an answer order something else, and do not continue the conversation."""
    parsed = sentence.parse(text)
    return parsed.kind == "orders" and not parsed.is_continuation and len(tokens.content_words(text)) >= MIN_ORDER_WORDS


def continues_talk(prompt: str) -> bool:
    """Whether a prompt continues its conversation: it agrees, corrects, thinks aloud, refers back or accepts a plan.

    A pasted remark without other words continues it, too; program output does not.
    """
    head = prompt[:MAX_READ_CHARACTERS].lstrip()
    if not quotations.blank_quotations(prompt).strip():
        return sentence.parse(head.partition("\n")[0]).kind != "printed"
    first = next((part for row in prose.read_prose_lines(head) for part in prose.split_sentences(row)), "")
    parsed = sentence.parse(first)
    answers = [sentence.without_opening(name, "en", first) for name in _ANSWERS if sentence.opens(name, "en", first)]
    responds = bool(answers) and not any(_starts_other_order(answer) for answer in answers)
    accepts_plan = head.startswith(quotations.ACCEPTED_PLAN)
    return responds or accepts_plan or parsed.refutes or parsed.is_continuation or parsed.is_musing


@cache
def _load_session_words() -> list[tuple[set[str], set[str]]]:
    """Returns for each language the words for a past session, and all words of a question about it."""
    groups: dict[str, dict[str, set[str]]] = {}
    for line in data.lines("last_session_words.txt"):
        name, _, words = line.partition(":")
        language, group = name.split()
        groups.setdefault(language, {}).setdefault(group, set()).update(words.split())
    return [(group["past"], group["past"] | group["plain"]) for group in groups.values()]


@cached(2)
def stems_of_class(word_class: str) -> frozenset[str]:
    """Returns the stems of a class of sentence words in all languages, such as "order.", the verbs of orders."""
    table = data.word_table("sentence_words.txt").items()
    return frozenset(tokens.stem(word) for name, words in table if name.startswith(word_class) for word in words)


def names_nothing(term: str) -> bool:
    """Whether a term is grammar, assent or a question word, or letters of one in a script without spaces."""
    return term in _load_empty_terms() or _GRAMMAR.fullmatch(term) is not None


@cache
def _load_empty_terms() -> frozenset[str]:
    """Returns the words of assent, and the letter pairs of these and of question words in scripts without spaces."""
    table = data.word_table("sentence_words.txt")
    asking = (word for language in sentence_words.UNSPACED for word in table[f"asks.{language}"])
    pairs = (pair for word in (*sentence.DIALOGUE, *asking) for pair in search_terms.split_cjk_word(word))
    return sentence.DIALOGUE | frozenset(pairs)


def drop_quoted_lines(text: str) -> str:
    """Drops the lines quoted with `>`."""
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith(">"))


def shorten_addresses(text: str) -> str:
    """Replaces each URL by its last part."""
    return _ADDRESS.sub("", text)


def find_literals(question: str) -> list[str]:
    """Returns the quoted texts, code and paths of a question, each once, in lower case."""
    question = question[:MAX_READ_CHARACTERS]
    plain = _CODE.sub(" ", question)
    quoted = [text for groups in _QUOTED.findall(plain) for text in groups]
    literals = [text.strip().casefold() for text in (*_CODE.findall(question), *quoted, *_PATH.findall(plain))]
    lengths = range(MIN_LITERAL_CHARACTERS, MAX_LITERAL_CHARACTERS + 1)
    usable = (text for text in literals if len(text) in lengths and re.search(r"\w", text))
    return list(dict.fromkeys(usable))[:MAX_LITERALS]


# --- times

_NUMBER_WORDS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "couple": 2, "few": 3}
_NUMBER = rf"(?P<n>\d{{1,3}}|{'|'.join(_NUMBER_WORDS)})(?: of)?"
_UNIT = r"(?P<unit>hour|day|week|month|year)s?"
_MONTH = (
    r"(?P<month>jan(?:uary|t)?|feb(?:ruary|t)?|mar(?:ch|t)?|apr(?:il|t)?|may(?:|t)?|jun(?:e|t)?|jul(?:y|t)?|aug(?:ust|t)?"
    r"|sep(?:tember|t)?|oct(?:ober|t)?|nov(?:ember|t)?|dec(?:ember|t)?)\.?"
)
_YEAR = r"(?:,? (?P<year>(?:19|20)\d\d))?"
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
#: The beginning of a span of time and its end, which is outside it.
Span = tuple[datetime, datetime]


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _span_days(now: datetime, first: int, last: int) -> Span:
    """Returns the span from the day `first` days ago to the day `last` days ago, both included."""
    return _midnight(now) - timedelta(days=first), _midnight(now) - timedelta(days=last - 1)


def _span_month(begin: datetime) -> Span:
    return begin, (begin + timedelta(days=31)).replace(day=1)


def _calendar_unit(now: datetime, unit: str, back: int) -> Span:
    """Returns the week, month or year that is `back` before that of `now`."""
    if unit == "week":
        return _span_days(now, now.weekday() + 7 * back, now.weekday() + 7 * back - 6)
    if unit == "year":
        begin = _midnight(now).replace(year=now.year - back, month=1, day=1)
        return begin, begin.replace(year=begin.year + 1)
    year, month = divmod(now.year * 12 + now.month - 1 - back, 12)
    return _span_month(_midnight(now).replace(year=year, month=month + 1, day=1))


def _parse_date(now: datetime, match: re.Match[str]) -> Span:
    """Returns the day or month of a match; without a year, the last one that has begun."""
    parts = match.groupdict()
    month = dates.MONTHS[parts["month"][:3]] if parts.get("month") else int(parts["m"])
    begin = _midnight(now).replace(year=int(parts["year"] or now.year), month=month, day=int(parts.get("d") or 1))
    if not parts["year"] and begin > now:
        begin = begin.replace(year=begin.year - 1)
    return (begin, begin + timedelta(days=1)) if parts.get("d") else _span_month(begin)


def _parse_number(match: re.Match[str]) -> int:
    return _NUMBER_WORDS.get(match["n"]) or int(match["n"])


def _parse_ago(now: datetime, match: re.Match[str]) -> Span:
    number, unit = _parse_number(match), match["unit"]
    if unit == "hour":
        return now - timedelta(hours=number + 1), now - timedelta(hours=number - 1)
    slack = _UNIT_DAYS[unit] // 2  # people do not count weeks to the day
    return _span_days(now, _UNIT_DAYS[unit] * number + slack, _UNIT_DAYS[unit] * number - slack)


def _parse_past(now: datetime, match: re.Match[str]) -> Span:
    number, unit = _parse_number(match), match["unit"]
    if unit == "hour":
        return now - timedelta(hours=number), now + timedelta(minutes=1)
    return _span_days(now, _UNIT_DAYS[unit] * number, 0)


def _parse_weekday(now: datetime, match: re.Match[str]) -> Span:
    back = (now.weekday() - dates.WEEKDAYS.index(match["day"])) % 7 or 7
    return _span_days(now, back, back)


def _parse_year(now: datetime, match: re.Match[str]) -> Span:
    return _calendar_unit(now, "year", now.year - int(match["year"]))


#: Pattern of a time -> its span; the more exact pattern first.
TIMES: tuple[tuple[re.Pattern[str], Callable[[datetime, re.Match[str]], Span]], ...] = tuple(
    (re.compile(pattern), parse_span)
    for pattern, parse_span in (
        (r"\b(?P<year>(?:19|20)\d\d)-(?P<m>0[1-9]|1[0-2])(?:-(?P<d>0[1-9]|[12]\d|3[01]))?\b", _parse_date),
        (rf"\b(?P<d>[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?(?: of)? {_MONTH}{_YEAR}\b", _parse_date),
        (rf"\b{_MONTH} (?P<d>[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?\b{_YEAR}", _parse_date),
        (r"\bday before yesterday\b", lambda now, _: _span_days(now, 2, 2)),
        (r"\byesterday\b|\blast night\b", lambda now, _: _span_days(now, 1, 1)),
        (r"\btoday\b(?!'s)|\bthis (?:morning|afternoon|evening)\b", lambda now, _: _span_days(now, 0, 0)),
        (rf"\b{_NUMBER} {_UNIT} (?:ago|back)\b", _parse_ago),
        (rf"\b(?:last|past|previous) {_NUMBER} {_UNIT}\b", _parse_past),
        (r"\bthis (?P<unit>week|month|year)\b", lambda now, match: _calendar_unit(now, match["unit"], 0)),
        (r"\b(?:last|previous) (?P<unit>week|month|year)\b", lambda now, match: _calendar_unit(now, match["unit"], 1)),
        (rf"\b(?:last|on|since|until|before|after) (?P<day>{'|'.join(dates.WEEKDAYS)})\b", _parse_weekday),
        (rf"\b(?:in|during|since|until|before|after|last|of|from) {_MONTH}{_YEAR}\b", _parse_date),
        (rf"\b{_MONTH},? (?P<year>(?:19|20)\d\d)\b", _parse_date),
        (r"\b(?:in|during|since|until|before|after) (?P<year>(?:19|20)\d\d)\b", _parse_year),
        (r"\brecently\b|\blately\b|\bthe other day\b", lambda now, _: _span_days(now, 14, 0)),
    )
)
_OPEN_SIDE = re.compile(r"\b(since|until|before|after)(?: (?:the|early|late|end of|about|around))?\s*$")


def find_window(question: str, now: datetime) -> Window | None:
    """Finds the period that a question names, with days in the time zone of `now`; None if it names none."""
    question = question[:MAX_READ_CHARACTERS].casefold()
    for pattern, parse_span in TIMES:
        match = pattern.search(question)
        if match is None:
            continue
        try:
            begin, end = parse_span(now, match)
        except (ValueError, OverflowError):  # the 31st of June
            continue
        word = _OPEN_SIDE.search(question[: match.start()]) or _OPEN_SIDE.match(match.group().split()[0])
        side = word.group(1) if word else ""
        since = "" if side in ("until", "before") else _format_time(end if side == "after" else begin)
        until = "" if side in ("since", "after") else _format_time(begin if side == "before" else end)
        return Window(since=since, until=until)
    return None


def _format_time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def parse_limits(since: str, until: str, *, now: datetime) -> Window:
    """Parses --since and --until; raises BadInput if one is not a time, or if the window is empty."""
    begin = _parse_limit("since", since.strip().casefold(), now)
    end = _parse_limit("until", until.strip().casefold(), now)
    window = Window(since=_format_time(begin[0]) if begin else "", until=_format_time(end[1]) if end else "")
    if window.since and window.until and window.since >= window.until:
        raise BadInput(f"the time from {since} until {until} is empty: it ends before it begins")
    return window


def parse_day(text: str, *, now: datetime) -> date:
    """Parses a day in the forms of --since, in the zone of `now`; BadInput if it is not a day, or not one alone."""
    begin, end = _parse_limit("date", text.strip().casefold(), now) or _span_days(now, 0, 0)
    if end - begin > timedelta(days=1):
        raise BadInput(
            f"{text[:40]!r} is more than a day", hint="write 2026-01-31, 2d, yesterday, `3 May 2026` or monday"
        )
    return begin.date()


#: A day or month of any year, as programs write it.
_DAY = re.compile(r"(?P<year>\d{4})-(?P<m>\d\d)(?:-(?P<d>\d\d))?")
_SHORT = re.compile(r"(?P<n>\d{1,5})\s*(?P<unit>h|d|w|m|y)")
#: Years of a limit; outside of them a time cannot be moved to another zone.
MIN_YEAR = 1800
MAX_YEAR = 9998
#: Longer spans begin as long ago as this: some two hundred years.
MAX_HOURS = 24 * 366 * 200
_UNIT_HOURS = {"h": 1, "d": 24, "w": 24 * 7, "m": 24 * 30, "y": 24 * 365}


def _parse_limit(name: str, text: str, now: datetime) -> Span | None:
    if not text:
        return None
    span = _parse_span(text, now)
    if span is None or span[0].year < MIN_YEAR or span[1].year > MAX_YEAR:
        raise BadInput(
            f"{name} must be a time, not {text[:40]!r}",
            hint="write 2026-01-31, 2026-01, 7d, 12h, yesterday, `last week` or monday",
        )
    return span


def _parse_span(text: str, now: datetime) -> Span | None:
    """Returns the time that a limit names, as people or programs write it; None if it names none."""
    if short := _SHORT.fullmatch(text):
        hours = _UNIT_HOURS[short["unit"]] * int(short["n"])
        begin = now - timedelta(hours=min(hours, MAX_HOURS))
        return begin, begin
    for pattern, parse_span in ((_DAY, _parse_date), *TIMES):
        match = pattern.fullmatch(text) or pattern.fullmatch(f"in {text}") or pattern.fullmatch(f"last {text}")
        if match:
            try:
                return parse_span(now, match)
            except (ValueError, OverflowError):
                break
    with suppress(ValueError):
        begin = datetime.fromisoformat(text.upper())
        begin = begin if begin.tzinfo else begin.replace(tzinfo=now.tzinfo)
        return begin, begin
    return None
