"""Finds the days in a text, written as dates ("May 3rd") or relative to today ("next Friday"); pure."""

from __future__ import annotations

import calendar
import contextlib
import re
from datetime import date, timedelta
from typing import NamedTuple

#: A date without a year is ignored if it is more than this number of days ahead.
MAX_DAYS_AHEAD = 183

WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_MONTH_NAMES = "january february march april may june july august september october november december".split()
#: Name or abbreviation -> month.
MONTHS = {short: month for month, name in enumerate(_MONTH_NAMES, 1) for short in (name, name[:3])} | {"sept": 9}
_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_NUMBER_WORDS = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
DATE = re.compile(
    r"\b(?P<y>\d{4})-(?P<m>\d{2})(?:-(?P<d>\d{2}))?\b"
    rf"|\b(?P<mn>{_MONTH})\.?\s(?P<md>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s(?P<my>\d{{4}})\b)?"
    rf"|\b(?P<dd>\d{{1,2}})(?:st|nd|rd|th|\.)?\s(?:of\s)?(?P<dn>{_MONTH})\b\.?(?:,?\s(?P<dy>\d{{4}})\b)?"
    rf"|\b(?:in|of|since|during|late|early|mid)[\s-](?P<on>{_MONTH})\b(?:,?\s(?P<oy>\d{{4}})\b)?",
    re.IGNORECASE,
)


#: A day named by its distance from today; not a recurring one ("every Friday") nor a possessive ("Friday's build").
_RELATIVE = re.compile(
    r"(?<!\bevery )(?<!\beach )\b(?:(?P<near>today|tonight|tomorrow|(?:the )?day after tomorrow)|(?P<end>(?:the )?end of (?:the|this|next) (?:week|month))"
    rf"|in (?P<count>\d{{1,2}}|{'|'.join(_NUMBER_WORDS)}) (?P<unit>day|week)s?|next (?P<stretch>week|month)"
    rf"|(?P<next>next )?(?P<weekday>{'|'.join(WEEKDAYS)})|the (?P<nth>[1-9]|[12]\d|3[01])(?:st|nd|rd|th)(?! of\b| [a-z]))\b(?!['’])",
    re.IGNORECASE,
)


class DateParts(NamedTuple):
    """The parts of a written date: `year` and `month_name` are "", and `day` is 0, if it lacks one."""

    year: str
    month: int
    day: int
    month_name: str


class NamedDay(NamedTuple):
    """A day (ISO) and the offsets of its name in a text."""

    start: int
    end: int
    day: str


def parse_date(match: re.Match[str]) -> DateParts:
    """Returns the parts of a match of DATE."""
    part = match.groupdict()
    name = (part["mn"] or part["dn"] or part["on"] or "").lower()
    year = part["y"] or part["my"] or part["dy"] or part["oy"] or ""
    day = int(part["d"] or part["md"] or part["dd"] or 0)
    return DateParts(year, MONTHS[name] if name else int(part["m"]), day, name)


def find_dates(text: str, since: str) -> list[NamedDay]:
    """Finds the days in a text that was written on the day `since`, in order.

    A month or a week means its last day. A date without a year is the next one within half a year, a day of the
    week the next such day.
    """
    today = date.fromisoformat(since)
    relative = ((match, _resolve_relative_day(match, today)) for match in _RELATIVE.finditer(text))
    dates = [NamedDay(*match.span(), day.isoformat()) for match, day in relative]
    for match in DATE.finditer(text):
        parts = parse_date(match)
        with contextlib.suppress(ValueError):  # the 31st of June, or a month above 12
            for year in [int(parts.year)] if parts.year else [today.year, today.year + 1]:
                day = date(year, parts.month, parts.day or calendar.monthrange(year, parts.month)[1])
                if parts.year or today <= day <= today + timedelta(days=MAX_DAYS_AHEAD):
                    dates.append(NamedDay(*match.span(), day.isoformat()))
    return sorted(dates)


def _resolve_relative_day(match: re.Match[str], since: date) -> date:
    """Returns the day that is named relative to `since`; of a week its Sunday, of a month its last day."""
    part = {name: (value or "").lower() for name, value in match.groupdict().items()}
    sunday = since + timedelta(days=6 - since.weekday())
    if part["near"]:
        return since + timedelta(days={"today": 0, "tonight": 0, "tomorrow": 1}.get(part["near"], 2))
    if part["count"]:
        count = _NUMBER_WORDS.get(part["count"]) or int(part["count"])
        return since + timedelta(days=count * (7 if part["unit"] == "week" else 1))
    if part["weekday"]:
        first = sunday if part["next"] else since
        return first + timedelta(days=(WEEKDAYS.index(part["weekday"]) - first.weekday() - 1) % 7 + 1)
    this_month = since.replace(day=1)
    next_month = (this_month + timedelta(days=31)).replace(day=1)
    is_next = bool(part["stretch"]) or "next" in part["end"]
    if not part["nth"] and "month" not in part["end"] + part["stretch"]:
        return sunday + timedelta(days=7 * is_next)
    number = int(part["nth"] or 31)
    month = next_month if is_next or number < since.day else this_month
    return month.replace(day=min(number, calendar.monthrange(month.year, month.month)[1]))
