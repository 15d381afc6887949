"""The terms that texts are found by: what an index holds beside a text's own words, and what a question is looked for by.

The full-text index splits at everything that is neither letter nor digit and stems English. `indexed` adds what that
does not give: the parts of CamelCase names, what other languages need, the day on which a thing was said. `asked` is its other
side; a term with several words is a phrase. Pure.
"""

from __future__ import annotations

import calendar
import contextlib
import re
from collections.abc import Iterator
from datetime import date, timedelta

from csmd import languages, text

#: A hump in a name, and a name with one; plurals of capitals (URLs, IDs) have none.
_HUMP = re.compile(r"[A-Z](?<=[a-z].)|[A-Z]{2}[a-z]{2}")
_HUMPED = re.compile(
    r"(?<![A-Za-z0-9])(?=[A-Za-z0-9]{4,80}(?![A-Za-z0-9]))[A-Za-z0-9]*?(?:[a-z][A-Z]|[A-Z]{2}[a-z]{2})[A-Za-z0-9]*"
)
_CAMEL = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
#: Names of several words: paths, dotted, kebab and snake names, each with its parts.
_NAME = re.compile(r"(?<![^\W_])[^\W_]++(?:[./:\\_-]{1,3}[^\W_]++)+")
_SEPARATOR = re.compile(r"[./:\\_-]+")
MOST_PARTS = 12
MOST_TERMS = 60
#: Who says "by Feb 16" means the next one; what would be later than so many days was one that is past.
HALF_A_YEAR = 183

_MONTHS = {
    name: number
    for number, names in enumerate(
        ("january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
         "september sep sept", "october oct", "november nov", "december dec"), 1
    )
    for name in names.split()
}  # fmt: skip
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_DATE = re.compile(
    r"\b(?P<y>\d{4})-(?P<m>\d{2})(?:-(?P<d>\d{2}))?\b"
    rf"|\b(?P<mn>{_MONTH})\.?\s(?P<md>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s(?P<my>\d{{4}})\b)?"
    rf"|\b(?P<dd>\d{{1,2}})(?:st|nd|rd|th|\.)?\s(?:of\s)?(?P<dn>{_MONTH})\b\.?(?:,?\s(?P<dy>\d{{4}})\b)?"
    rf"|\b(?:in|of|since|during|late|early|mid)[\s-](?P<on>{_MONTH})\b(?:,?\s(?P<oy>\d{{4}})\b)?",
    re.IGNORECASE,
)


_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def indexed(said: str, at: str) -> str:
    """What the full-text index reads of a text that was said `at` a time (ISO, "" for none): it, and what is derived."""
    more = [*_days(at[:10])]
    if _HUMP.search(said):
        more += [" ".join(_CAMEL.findall(name)) for name in dict.fromkeys(_HUMPED.findall(said))]
    more += languages.derived(said)
    return f"{said}\n{' '.join(more)}" if more else said


def asked(question: str) -> list[str]:
    """The distinct terms a question is looked for by: its words, its names whole and in parts, its days; at most 60.

    A term of several words is a phrase. Where it says nothing but stop words, these are what is looked for.
    """
    found: dict[str, None] = {}
    left: list[str] = []
    at = 0
    for named in _DATE.finditer(question):
        days = _asked_days(named)
        if days:
            found.update((day, None) for day in days)
            left.append(question[at : named.start()])
            at = named.end()
    rest = " ".join([*left, question[at:]])
    words = text.query_terms(rest)
    other = languages.asked(question, words)
    found.update((term, None) for term in (words if other is None else other))
    found.update((name, None) for name in _whole_names(rest))
    if not found:
        found.update((word, None) for word in text.words(question))
    return list(found)[:MOST_TERMS]


def _days(day: str) -> Iterator[str]:
    """A day as the index has it: whole, without its year, its month with and without the year."""
    if _DAY.fullmatch(day):
        year, month, number = day.split("-")
        yield from (f"d{year}{month}{number}", f"d{month}{number}", f"m{year}{month}", f"m{month}")


def _asked_days(named: re.Match[str]) -> list[str]:
    part = named.groupdict()
    name = part["mn"] or part["dn"] or part["on"]
    month = _MONTHS[name.lower()] if name else int(part["m"])
    number = int(part["d"] or part["md"] or part["dd"] or 0)
    year = part["y"] or part["my"] or part["dy"] or part["oy"] or ""
    if not 1 <= month <= 12 or number > 31:
        return []
    if number:
        return [f"d{year}{month:02}{number:02}", *([f"{name.lower()} {number}"] if name else [])]
    return [f"m{year}{month:02}", *([name.lower()] if name and len(name) > 3 else [])]


def dates(said: str, since: str) -> list[tuple[int, int, str]]:
    """The days that a text names which was said on a day: (start, end, ISO day), as they stand in it.

    Of a month its last; without a year the next within half a year.
    """
    found = []
    for one in _DATE.finditer(said):
        part = one.groupdict()
        name, year = part["mn"] or part["dn"] or part["on"], part["y"] or part["my"] or part["dy"] or part["oy"]
        month, number = (
            _MONTHS[name.lower()] if name else int(part["m"]),
            int(part["d"] or part["md"] or part["dd"] or 0),
        )
        with contextlib.suppress(ValueError):  # the 31st of June, or a month that only looks like one
            begun = date.fromisoformat(since)
            years = [int(year)] if year else [begun.year, begun.year + 1]
            days = [date(in_year, month, number or calendar.monthrange(in_year, month)[1]) for in_year in years]
            named = [day for day in days if year or begun <= day <= begun + timedelta(days=HALF_A_YEAR)]
            found += [(one.start(), one.end(), day.isoformat()) for day in named]
    return found


def _whole_names(question: str) -> Iterator[str]:
    """Names of several words as phrases: whole, a path's last part, and CamelCase as its parts."""
    for found in _NAME.finditer(question):
        name = found.group().lower()
        parts = _SEPARATOR.split(name)
        if len(parts) <= MOST_PARTS and sum(len(part) > 1 and part not in text.STOP_WORDS for part in parts) > 1:
            yield name
            last = re.split(r"[/\\]", name)[-1]
            if last != name and _SEPARATOR.search(last):
                yield last
    for found in _HUMPED.finditer(question):
        yield " ".join(_CAMEL.findall(found.group())).lower()
