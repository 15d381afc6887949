"""Days that a text names, as dates or by where they lie from today; pure."""

from __future__ import annotations

import calendar
import contextlib
import re
from datetime import date, timedelta

#: "By Feb 16" means the next one, unless that is more than this many days ahead.
MAX_DAYS_AHEAD = 183


_MONTHS = {
    name: number
    for number, names in enumerate(
        ("january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
         "september sep sept", "october oct", "november nov", "december dec"), 1
    )
    for name in names.split()
}  # fmt: skip
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
DATE = re.compile(
    r"\b(?P<y>\d{4})-(?P<m>\d{2})(?:-(?P<d>\d{2}))?\b"
    rf"|\b(?P<mn>{_MONTH})\.?\s(?P<md>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s(?P<my>\d{{4}})\b)?"
    rf"|\b(?P<dd>\d{{1,2}})(?:st|nd|rd|th|\.)?\s(?:of\s)?(?P<dn>{_MONTH})\b\.?(?:,?\s(?P<dy>\d{{4}})\b)?"
    rf"|\b(?:in|of|since|during|late|early|mid)[\s-](?P<on>{_MONTH})\b(?:,?\s(?P<oy>\d{{4}})\b)?",
    re.IGNORECASE,
)


def parse_date(match: re.Match[str]) -> tuple[str, int, int, str]:
    """(year or "", month, day or 0, the month's name or "") of a date in a text."""
    part = match.groupdict()
    name = (part["mn"] or part["dn"] or part["on"] or "").lower()
    year = part["y"] or part["my"] or part["dy"] or part["oy"] or ""
    return year, _MONTHS[name] if name else int(part["m"]), int(part["d"] or part["md"] or part["dd"] or 0), name


def find_dates(text: str, since: str) -> list[tuple[int, int, str]]:
    """The days that a text from the day `since` names: (start, end, ISO day), in their order.

    Of a month or a week its last; without a year the next within half a year; a day of the week is the next such day.
    """
    spans = [
        (match.start(), match.end(), _resolve_relative_day(match, date.fromisoformat(since)).isoformat())
        for match in _RELATIVE.finditer(text)
    ]
    for match in DATE.finditer(text):
        year, month, number, _ = parse_date(match)
        with contextlib.suppress(ValueError):  # the 31st of June, or a month that only looks like one
            begun = date.fromisoformat(since)
            years = [int(year)] if year else [begun.year, begun.year + 1]
            days = [date(in_year, month, number or calendar.monthrange(in_year, month)[1]) for in_year in years]
            named = [day for day in days if year or begun <= day <= begun + timedelta(days=MAX_DAYS_AHEAD)]
            spans += [(match.start(), match.end(), day.isoformat()) for day in named]
    return sorted(spans)


_WEEKDAYS = tuple(day.lower() for day in calendar.day_name)
_NUMBER_WORDS = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
#: A day named by its distance from today; not a recurring one ("every Friday") nor a possessive ("Friday's build").
_RELATIVE = re.compile(
    r"(?<!\bevery )(?<!\beach )\b(?:(?P<near>today|tonight|tomorrow|(?:the )?day after tomorrow)|(?P<end>(?:the )?end of (?:the|this|next) (?:week|month))"
    rf"|in (?P<count>\d{{1,2}}|{'|'.join(_NUMBER_WORDS)}) (?P<unit>day|week)s?|next (?P<stretch>week|month)"
    rf"|(?P<next>next )?(?P<weekday>{'|'.join(_WEEKDAYS)})|the (?P<nth>[1-9]|[12]\d|3[01])(?:st|nd|rd|th)(?! of\b| [a-z]))\b(?!['’])",
    re.IGNORECASE,
)


def _resolve_relative_day(match: re.Match[str], since: date) -> date:
    """The day that is named by its distance from the day `since`; of a week its Sunday, of a month its last day."""
    part = {name: (value or "").lower() for name, value in match.groupdict().items()}
    sunday = since + timedelta(days=6 - since.weekday())
    if part["near"]:
        return since + timedelta(days={"today": 0, "tonight": 0, "tomorrow": 1}.get(part["near"], 2))
    if part["count"]:
        count = _NUMBER_WORDS.get(part["count"]) or int(part["count"])
        return since + timedelta(days=count * (7 if part["unit"] == "week" else 1))
    if part["weekday"]:
        first = sunday if part["next"] else since
        return first + timedelta(days=(_WEEKDAYS.index(part["weekday"]) - first.weekday() - 1) % 7 + 1)
    month_on = _find_next_month(since.replace(day=1))
    if part["nth"]:
        number = int(part["nth"])
        month = since.replace(day=1) if number >= since.day else month_on
        return month.replace(day=min(number, calendar.monthrange(month.year, month.month)[1]))
    is_next = bool(part["stretch"]) or "next" in part["end"]
    if "month" not in part["end"] + part["stretch"]:
        return sunday + timedelta(days=7 * is_next)
    month = month_on if is_next else since.replace(day=1)
    return month.replace(day=calendar.monthrange(month.year, month.month)[1])


def _find_next_month(first: date) -> date:
    """The first day of the next month, given the first day of a month."""
    return (first + timedelta(days=31)).replace(day=1)
