"""What a question names besides its words: a time, quoted text, the last session.

A reading only prefers: nothing that a question does not name is left out, so a time word that was meant otherwise costs a
hit its rank and is never an answer lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

from csmd import data
from csmd.errors import BadInput
from csmd.text import prose, quotations, search_terms, sentence, sentence_words, tokens

#: Characters of a question that are read: the patterns look ahead from many places.
READ = 1000
#: Most literals of a question, and their shortest and longest length.
MAX_LITERALS, SHORTEST_LITERAL, LONGEST_LITERAL = 5, 3, 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A stretch of time that stored times compare with: from `since` on and before `until`, each "" for open."""

    since: str = ""
    until: str = ""

    def holds(self, at: str) -> bool:
        """Whether a stored time lies in the window."""
        return at >= self.since and (not self.until or at < self.until)


_WORD = re.compile(r"[^\W_]+")
_CODE = re.compile(r"`([^`\n]+)`")
_QUOTED = re.compile(r"[\"“]([^\"”\n]+)[\"”]|(?<!\w)'([^'\n]+)'(?!\w)")
#: Hiragana is grammar (endings and particles, which every Japanese sentence has), and so are some letters of Chinese.
_GRAMMAR = re.compile(".?[\u3040-\u309f的了一是在有和不也就都把被给給到这這那个個].?")
_PATH = re.compile(r"(?<![\w/])(?:[\w.@~-]*/)+[\w.@-]+|(?<![\w/])[\w-]+(?:\.[\w-]+)*\.[a-z]{1,5}\b(?!\()")


def is_about_last_session(prompt: str) -> bool:
    """Whether a prompt asks what was done before this session or where it stopped, and nothing else."""
    words = set(_WORD.findall(prompt[:READ].casefold()))
    return len(words) > 1 and any(words <= present and words & past for past, present in _session_words())


def is_about_work(prompt: str) -> bool:
    """Whether a prompt asks what was done about something in earlier sessions: "what did we do about the flaky upload?"."""
    read = sentence.parse(prompt[:READ])
    return read.kind == "asks" and sentence.has("of_work", read.language, prompt[:READ])


_ANSWERS = ("agrees", "praise", "corrects")
#: Fewest content words of an order behind an answer that starts something else.
MIN_ORDER_WORDS = 2


def _starts_anew(text: str) -> bool:
    """Whether what follows an answer orders something else, and does not go on."""
    read = sentence.parse(text)
    return read.kind == "orders" and not read.is_continuation and len(tokens.content_words(text)) >= MIN_ORDER_WORDS


def continues_talk(prompt: str) -> bool:
    """Whether a prompt continues the conversation at hand: it agrees, corrects, thinks aloud, refers to it or accepts a plan.

    So does a reviewer's remark by itself, but not what a program printed.
    """
    head = prompt[:READ].lstrip()
    if not quotations.blank_quotations(prompt).strip():
        return sentence.parse(head.partition("\n")[0]).kind != "printed"
    first = next((part for row in prose.read_prose_lines(head) for part in prose.split_sentences(row)), "")
    read = sentence.parse(first)
    answers = [sentence.without_opening(name, "en", first) for name in _ANSWERS if sentence.opens(name, "en", first)]
    responds = bool(answers) and not any(_starts_anew(answer) for answer in answers)
    is_plan = head.startswith(quotations.ACCEPTED_PLAN)
    return responds or is_plan or read.refutes or read.is_continuation or read.is_musing


@cache
def _session_words() -> list[tuple[set[str], set[str]]]:
    """For each language the words that say that something is over, and all words of the question what that was."""
    groups: dict[str, dict[str, set[str]]] = {}
    for line in data.lines("last_session_words.txt"):
        name, _, words = line.partition(":")
        language, group = name.split()
        groups.setdefault(language, {}).setdefault(group, set()).update(words.split())
    return [(group["past"], group["past"] | group["plain"]) for group in groups.values()]


@cache
def orders() -> frozenset[str]:
    """The stems of verbs of orders in several languages: a prompt that holds nothing else names no subject."""
    return _stems_of("order.")


@cache
def kinds() -> frozenset[str]:
    """The stems of names for kinds of statements: "what did I promise Jo?" asks for statements about Jo."""
    return _stems_of("of_kind.")


def _stems_of(word_class: str) -> frozenset[str]:
    table = data.word_table("sentence_words.txt").items()
    return frozenset(tokens.stem(word) for name, words in table if name.startswith(word_class) for word in words)


def names_nothing(term: str) -> bool:
    """Whether a term is grammar, assent or a question: such a word, or letters of one where words are not told apart."""
    return term in _empty_terms() or _GRAMMAR.fullmatch(term) is not None


@cache
def _empty_terms() -> frozenset[str]:
    """Words of assent, and the pairs of letters that these and question words consist of."""
    table = data.word_table("sentence_words.txt")
    asking = (word for language in sentence_words.UNSPACED for word in table[f"asks.{language}"])
    pairs = (pair for word in (*sentence.DIALOGUE, *asking) for pair in search_terms.split_cjk_word(word))
    return sentence.DIALOGUE | frozenset(pairs)


def unquoted(text: str) -> str:
    """The text without the lines quoted with `>`."""
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith(">"))


#: An address but for its last part: the rest is the same for most of what has one.
_ADDRESS = re.compile(r"\bhttps?://[^\s/]+/(?:[^\s/]+/)*(?=[^\s/])")


def without_addresses(text: str) -> str:
    """The text with the last part of each address in its place."""
    return _ADDRESS.sub("", text)


def find_literals(question: str) -> list[str]:
    """What a question quotes or writes as code or a path, each once, in lower case."""
    question = question[:READ]
    plain = _CODE.sub(" ", question)
    quoted = [text for groups in _QUOTED.findall(plain) for text in groups]
    literals = [text.strip().casefold() for text in (*_CODE.findall(question), *quoted, *_PATH.findall(plain))]
    fitting = [text for text in literals if SHORTEST_LITERAL <= len(text) <= LONGEST_LITERAL and re.search(r"\w", text)]
    return list(dict.fromkeys(fitting))[:MAX_LITERALS]


# --- times

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "couple": 2, "few": 3}
_N = rf"(?P<n>\d{{1,3}}|{'|'.join(_NUMBERS)})(?: of)?"
_UNIT = r"(?P<unit>hour|day|week|month|year)s?"
_MONTH = (
    r"(?P<month>jan(?:uary|t)?|feb(?:ruary|t)?|mar(?:ch|t)?|apr(?:il|t)?|may(?:|t)?|jun(?:e|t)?|jul(?:y|t)?|aug(?:ust|t)?"
    r"|sep(?:tember|t)?|oct(?:ober|t)?|nov(?:ember|t)?|dec(?:ember|t)?)\.?"
)
_YEAR = r"(?:,? (?P<year>(?:19|20)\d\d))?"
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
#: The beginning of a stretch of time and its end, which is outside it.
Span = tuple[datetime, datetime]


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _days(now: datetime, first: int, last: int) -> Span:
    """From the beginning of the day `first` days ago to the end of the day `last` days ago."""
    return _midnight(now) - timedelta(days=first), _midnight(now) - timedelta(days=last - 1)


def _month(begin: datetime) -> Span:
    return begin, (begin + timedelta(days=31)).replace(day=1)


def _calendar_unit(now: datetime, unit: str, back: int) -> Span:
    """The week, month or year of `now`, or the one that many before it."""
    if unit == "week":
        return _days(now, now.weekday() + 7 * back, now.weekday() + 7 * back - 6)
    if unit == "year":
        begin = _midnight(now).replace(year=now.year - back, month=1, day=1)
        return begin, begin.replace(year=begin.year + 1)
    year, month = divmod(now.year * 12 + now.month - 1 - back, 12)
    return _month(_midnight(now).replace(year=year, month=month + 1, day=1))


def _date(now: datetime, match: re.Match[str]) -> Span:
    """The day or month that a match names; without a year the last one that has begun."""
    parts = match.groupdict()
    month = MONTHS.index(parts["month"][:3]) + 1 if parts.get("month") else int(parts["m"])
    begin = _midnight(now).replace(year=int(parts["year"] or now.year), month=month, day=int(parts.get("d") or 1))
    if not parts["year"] and begin > now:
        begin = begin.replace(year=begin.year - 1)
    return (begin, begin + timedelta(days=1)) if parts.get("d") else _month(begin)


def _number(match: re.Match[str]) -> int:
    return _NUMBERS.get(match["n"]) or int(match["n"])


def _ago(now: datetime, match: re.Match[str]) -> Span:
    number, unit = _number(match), match["unit"]
    if unit == "hour":
        return now - timedelta(hours=number + 1), now - timedelta(hours=number - 1)
    # Nobody counts weeks to the day: half a unit on each side.
    days, slack = _UNIT_DAYS[unit] * number, _UNIT_DAYS[unit] // 2
    return _days(now, days + slack, days - slack)


def _past(now: datetime, match: re.Match[str]) -> Span:
    number, unit = _number(match), match["unit"]
    if unit == "hour":
        return now - timedelta(hours=number), now + timedelta(minutes=1)
    return _days(now, _UNIT_DAYS[unit] * number, 0)


def _weekday(now: datetime, match: re.Match[str]) -> Span:
    back = (now.weekday() - DAYS.index(match["day"])) % 7 or 7
    return _days(now, back, back)


def _year(now: datetime, match: re.Match[str]) -> Span:
    return _calendar_unit(now, "year", now.year - int(match["year"]))


#: How a time is worded -> the stretch that it names, the more exact wording first.
TIMES: tuple[tuple[re.Pattern[str], Callable[[datetime, re.Match[str]], Span]], ...] = tuple(
    (re.compile(pattern), reading)
    for pattern, reading in (
        (r"\b(?P<year>(?:19|20)\d\d)-(?P<m>0[1-9]|1[0-2])(?:-(?P<d>0[1-9]|[12]\d|3[01]))?\b", _date),
        (rf"\b(?P<d>[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?(?: of)? {_MONTH}{_YEAR}\b", _date),
        (rf"\b{_MONTH} (?P<d>[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?\b{_YEAR}", _date),
        (r"\bday before yesterday\b", lambda now, _: _days(now, 2, 2)),
        (r"\byesterday\b|\blast night\b", lambda now, _: _days(now, 1, 1)),
        (r"\btoday\b(?!'s)|\bthis (?:morning|afternoon|evening)\b", lambda now, _: _days(now, 0, 0)),
        (rf"\b{_N} {_UNIT} (?:ago|back)\b", _ago),
        (rf"\b(?:last|past|previous) {_N} {_UNIT}\b", _past),
        (r"\bthis (?P<unit>week|month|year)\b", lambda now, match: _calendar_unit(now, match["unit"], 0)),
        (r"\b(?:last|previous) (?P<unit>week|month|year)\b", lambda now, match: _calendar_unit(now, match["unit"], 1)),
        (rf"\b(?:last|on|since|until|before|after) (?P<day>{'|'.join(DAYS)})\b", _weekday),
        (rf"\b(?:in|during|since|until|before|after|last|of|from) {_MONTH}{_YEAR}\b", _date),
        (rf"\b{_MONTH},? (?P<year>(?:19|20)\d\d)\b", _date),
        (r"\b(?:in|during|since|until|before|after) (?P<year>(?:19|20)\d\d)\b", _year),
        (r"\brecently\b|\blately\b|\bthe other day\b", lambda now, _: _days(now, 14, 0)),
    )
)
_OPEN_SIDE = re.compile(r"\b(since|until|before|after)(?: (?:the|early|late|end of|about|around))?\s*$")


def find_window(question: str, now: datetime) -> Window | None:
    """The time that a question names, None for none; days are those of the zone of `now`."""
    question = question[:READ].casefold()
    for pattern, reading in TIMES:
        match = pattern.search(question)
        if match is None:
            continue
        try:
            begin, end = reading(now, match)
        except (ValueError, OverflowError):  # the 31st of June: no time, whatever it is
            continue
        word = _OPEN_SIDE.search(question[: match.start()]) or _OPEN_SIDE.match(match.group().split()[0])
        side = word.group(1) if word else ""
        since = "" if side in ("until", "before") else _stored(end if side == "after" else begin)
        until = "" if side in ("since", "after") else _stored(begin if side == "before" else end)
        return Window(since=since, until=until)
    return None


def _stored(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def parse_limits(since: str, until: str, *, now: datetime) -> Window:
    """The window that --since and --until name; BadInput for what is no time, or a window that holds nothing."""
    begin, end = (
        _parse_limit(name, text.strip().casefold(), now) for name, text in (("since", since), ("until", until))
    )
    window = Window(since=_stored(begin[0]) if begin else "", until=_stored(end[1]) if end else "")
    if window.since and window.until and window.since >= window.until:
        raise BadInput(f"nothing is since {since} and until {until}: that ends before it begins")
    return window


#: A day or month of any year, as forms and programs write it.
_DAY = re.compile(r"(?P<year>\d{4})-(?P<m>\d\d)(?:-(?P<d>\d\d))?")
_SHORT = re.compile(r"(?P<n>\d{1,3})\s*(?P<unit>h|d|w|m|y)")
_UNIT_HOURS = {"h": 1, "d": 24, "w": 24 * 7, "m": 24 * 30, "y": 24 * 365}


def _parse_limit(name: str, text: str, now: datetime) -> Span | None:
    if not text:
        return None
    if short := _SHORT.fullmatch(text):
        begin = now - timedelta(hours=_UNIT_HOURS[short["unit"]] * int(short["n"]))
        return begin, begin
    for pattern, reading in ((_DAY, _date), *TIMES):
        match = pattern.fullmatch(text) or pattern.fullmatch(f"in {text}") or pattern.fullmatch(f"last {text}")
        if match:
            try:
                return reading(now, match)
            except (ValueError, OverflowError):
                break
    raise BadInput(
        f"{name} must be a time, not {text!r}",
        hint="write 2026-01-31, 2026-01, 7d, 12h, yesterday, `last week`, `3 May 2026` or monday",
    )
