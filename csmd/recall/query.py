"""What a question asks for beside its words: a time, names, quoted text.

A reading only prefers: nothing that a question does not name is left out, so that a time word that was meant otherwise
costs a place and no answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources

from csmd.errors import BadInput

#: So much of a question is read: the patterns look from many places at what follows.
READ = 1000
#: Of what is quoted or written as code so much is looked for as it stands, and each so long.
MOST_LITERALS, LEAST_LITERAL, LONGEST_LITERAL = 5, 3, 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A stretch of time as stored times compare with it: from `since` on and before `until`, each "" for open."""

    since: str = ""
    until: str = ""

    def holds(self, at: str) -> bool:
        """Whether a stored time lies in it."""
        return (not self.since or at >= self.since) and (not self.until or at < self.until)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question as it was understood: the time that it names, and what it quotes or writes as code."""

    window: Window | None = None
    literals: tuple[str, ...] = ()


_WORD = re.compile(r"[^\W_]+")
_CODE = re.compile(r"`([^`\n]+)`")
_QUOTED = re.compile(r"[\"“]([^\"”\n]+)[\"”]|(?<!\w)'([^'\n]+)'(?!\w)")
_PATH = re.compile(r"(?<![\w/])(?:[\w.@~-]*/)+[\w.@-]+|(?<![\w/])[\w-]+(?:\.[\w-]+)*\.[a-z]{1,5}\b(?!\()")

MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
          "december")  # fmt: skip
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "couple": 2, "few": 3}
_N = rf"(?P<n>\d{{1,3}}|{'|'.join(_NUMBERS)})(?: of)?"
_UNIT = r"(?P<unit>hour|day|week|month|year)s?"
_MONTH = rf"(?P<month>{'|'.join(f'{name[:3]}(?:{name[3:]}|t)?' for name in MONTHS)})\.?"
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
Span = tuple[datetime, datetime]


def read(query: str, *, now: datetime | None = None) -> Question:
    """How a question is understood; `now` is the moment it is asked in, with the zone that its days are of."""
    query = query[:READ]
    return Question(window=_window(query.casefold(), now) if now else None, literals=_literals(query))


def asks_for_last_session(said: str) -> bool:
    """Whether a prompt asks what was done before this session or where it stopped, and names nothing else."""
    asked = set(_WORD.findall(said[:READ].casefold()))
    return len(asked) > 1 and any(asked <= known and asked & past for past, known in _session_words())


@cache
def _session_words() -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    """Of each language the words that say that something is over, and all words of the question what that was."""
    found: dict[str, dict[str, set[str]]] = {}
    for line in _lines("last_session_words.txt"):
        (language, group), words = line.partition(":")[0].split(), line.partition(":")[2].split()
        found.setdefault(language, {}).setdefault(group, set()).update(words)
    return tuple((frozenset(of["past"]), frozenset(of["past"] | of["plain"])) for of in found.values())


@cache
def dialogue_words() -> frozenset[str]:
    """Words of assent, thanks and going on in several languages: whoever says nothing else asks for nothing."""
    return frozenset(word for line in _lines("dialogue_words.txt") for word in line.split())


def _lines(name: str) -> list[str]:
    """The lines of a list of words that comes with csmd, without comments."""
    lines = resources.files("csmd.data").joinpath(name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


def unquoted(said: str) -> str:
    """What somebody said without the lines that they quote with `>`: these are another's."""
    return "\n".join(line for line in said.splitlines() if not line.lstrip().startswith(">"))


def _literals(query: str) -> tuple[str, ...]:
    found = [one for match in _CODE.finditer(query) for one in match.groups()]
    plain = _CODE.sub(" ", query)
    found += [one for match in _QUOTED.finditer(plain) for one in match.groups() if one]
    found += _PATH.findall(plain)
    kept = [one.strip().casefold() for one in found if LEAST_LITERAL <= len(one.strip()) <= LONGEST_LITERAL]
    return tuple(dict.fromkeys(one for one in kept if re.search(r"\w", one)))[:MOST_LITERALS]


# --- times


def _day(moment: datetime, back: int = 0) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=back)


def _days(now: datetime, first: int, last: int) -> Span:
    """From the beginning of the day `first` days ago to the end of the one `last` days ago."""
    return _day(now, first), _day(now, last) + timedelta(days=1)


def _month(now: datetime, year: int, month: int) -> Span:
    begin = _day(now).replace(year=year, month=month, day=1)
    return begin, begin.replace(year=year + month // 12, month=month % 12 + 1)


def _year(now: datetime, year: int) -> Span:
    begin = _day(now).replace(year=year, month=1, day=1)
    return begin, begin.replace(year=year + 1)


def _month_before(now: datetime, back: int) -> Span:
    whole = now.year * 12 + now.month - 1 - back
    return _month(now, whole // 12, whole % 12 + 1)


def _this(now: datetime, found: re.Match[str], back: int = 0) -> Span:
    if found["unit"] == "week":
        return _days(now, now.weekday() + 7 * back, now.weekday() + 7 * back - 6)
    return _month_before(now, back) if found["unit"] == "month" else _year(now, now.year - back)


def _last(now: datetime, found: re.Match[str]) -> Span:
    return _this(now, found, 1)


def _number(found: re.Match[str]) -> int:
    return _NUMBERS.get(found["n"]) or int(found["n"])


def _ago(now: datetime, found: re.Match[str]) -> Span:
    number, unit = _number(found), found["unit"]
    if unit == "hour":
        return now - timedelta(hours=number + 1), now - timedelta(hours=number - 1)
    # Nobody counts weeks to the day: half a unit on each side.
    days, slack = _UNIT_DAYS[unit] * number, _UNIT_DAYS[unit] // 2
    return _days(now, days + slack, days - slack)


def _past(now: datetime, found: re.Match[str]) -> Span:
    number, unit = _number(found), found["unit"]
    if unit == "hour":
        return now - timedelta(hours=number), now + timedelta(minutes=1)
    return _days(now, _UNIT_DAYS[unit] * number, 0)


def _weekday(now: datetime, found: re.Match[str]) -> Span:
    back = (now.weekday() - DAYS.index(found["day"])) % 7 or 7
    return _days(now, back, back)


def _named_month(now: datetime, found: re.Match[str]) -> Span:
    month = next(number for number, name in enumerate(MONTHS, 1) if name.startswith(found["month"][:3]))
    year = int(found["year"]) if found["year"] else now.year - (month > now.month)
    return _month(now, year, month)


def _date(now: datetime, found: re.Match[str]) -> Span:
    month = next(number for number, name in enumerate(MONTHS, 1) if name.startswith(found["month"][:3]))
    year = int(found["year"]) if found["year"] else now.year
    begin = _day(now).replace(year=year, month=month, day=int(found["d"]))
    if not found["year"] and begin > now:
        begin = begin.replace(year=year - 1)
    return begin, begin + timedelta(days=1)


def _iso(now: datetime, found: re.Match[str]) -> Span:
    year, month = int(found["year"]), int(found["m"])
    if not found["d"]:
        return _month(now, year, month)
    begin = _day(now).replace(year=year, month=month, day=int(found["d"]))
    return begin, begin + timedelta(days=1)


_YEAR = r"(?:,? (?P<year>(?:19|20)\d\d))?"
#: How a time is worded -> the stretch that it names, the more exact wording first.
TIMES: tuple[tuple[re.Pattern[str], Callable[[datetime, re.Match[str]], Span]], ...] = tuple(
    (re.compile(pattern), reading)
    for pattern, reading in (
        (r"\b(?P<year>(?:19|20)\d\d)-(?P<m>0[1-9]|1[0-2])(?:-(?P<d>0[1-9]|[12]\d|3[01]))?\b", _iso),
        (rf"\b(?P<d>[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?(?: of)? {_MONTH}{_YEAR}\b", _date),
        (rf"\b{_MONTH} (?P<d>[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?\b{_YEAR}", _date),
        (r"\bday before yesterday\b", lambda now, _: _days(now, 2, 2)),
        (r"\byesterday\b|\blast night\b", lambda now, _: _days(now, 1, 1)),
        (r"\btoday\b(?!'s)|\bthis (?:morning|afternoon|evening)\b", lambda now, _: _days(now, 0, 0)),
        (rf"\b{_N} {_UNIT} (?:ago|back)\b", _ago),
        (rf"\b(?:last|past|previous) {_N} {_UNIT}\b", _past),
        (r"\bthis (?P<unit>week|month|year)\b", _this),
        (r"\b(?:last|previous) (?P<unit>week|month|year)\b", _last),
        (rf"\b(?:last|on|since|until|before|after) (?P<day>{'|'.join(DAYS)})\b", _weekday),
        (rf"\b(?:in|during|since|until|before|after|last|of|from) {_MONTH}{_YEAR}\b", _named_month),
        (rf"\b{_MONTH},? (?P<year>(?:19|20)\d\d)\b", _named_month),
        (r"\b(?:in|during|since|until|before|after) (?P<year>(?:19|20)\d\d)\b", lambda now, found: _year(now, int(found["year"]))),
        (r"\brecently\b|\blately\b|\bthe other day\b", lambda now, _: _days(now, 14, 0)),
    )
)  # fmt: skip
_OPENS = re.compile(r"\b(since|until|before|after)(?: (?:the|early|late|end of|about|around))?\s*$")


def _window(said: str, now: datetime) -> Window | None:
    for pattern, reading in TIMES:
        found = pattern.search(said)
        if found is None:
            continue
        try:
            begin, end = reading(now, found)
        except (ValueError, OverflowError):  # the 31st of June: no time, whatever it is
            continue
        word = _OPENS.search(said[: found.start()]) or _OPENS.match(found.group().split()[0])
        side = word.group(1) if word else ""
        since = "" if side in ("until", "before") else _written(end if side == "after" else begin)
        until = "" if side in ("since", "after") else _written(begin if side == "before" else end)
        return Window(since=since, until=until)
    return None


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def limits(since: str, until: str, *, now: datetime) -> Window:
    """The window that --since and --until name; BadInput for what names no time, or none that could hold anything."""
    begin, end = (_limit(name, said.strip().casefold(), now) for name, said in (("since", since), ("until", until)))
    window = Window(since=_written(begin[0]) if begin else "", until=_written(end[1]) if end else "")
    if window.since and window.until and window.since >= window.until:
        raise BadInput(f"nothing is since {since} and until {until}: that ends before it begins")
    return window


_SHORT = re.compile(r"(?P<n>\d{1,3})\s*(?P<unit>h|d|w|m|y)")
_UNITS = {"h": "hour", "d": "day", "w": "week", "m": "month", "y": "year"}


def _limit(name: str, said: str, now: datetime) -> Span | None:
    if not said:
        return None
    short = _SHORT.fullmatch(said)
    if short:
        unit = _UNITS[short["unit"]]
        back = (
            timedelta(hours=int(short["n"])) if unit == "hour" else timedelta(days=_UNIT_DAYS[unit] * int(short["n"]))
        )
        return now - back, now - back
    for pattern, reading in TIMES:
        found = pattern.fullmatch(said) or pattern.fullmatch(f"in {said}") or pattern.fullmatch(f"last {said}")
        if found:
            try:
                return reading(now, found)
            except (ValueError, OverflowError):
                break
    raise BadInput(
        f"{name} must be a time, not {said!r}",
        hint="write 2026-01-31, 2026-01, 7d, 12h, yesterday, `last week`, `3 May 2026` or monday",
    )
