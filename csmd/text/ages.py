"""Formats times and durations: `3 d ago`, `3 d 4 h`, a date; pure."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

DAY_S = 86_400
#: Longest age that is shown; an older time is shown as a date.
MAX_AGO_S = 60 * DAY_S
#: A time that is this far in the future comes from a clock that is fast; a later one is shown as a date.
MAX_CLOCK_LEAD_S = 60
_UNIT_SECONDS = (("d", DAY_S), ("h", 3_600), ("min", 60), ("s", 1))
#: Fewest days that are shown in days; fewer are shown in hours.
MIN_DAYS_SHOWN = 3


def age(seconds: float) -> str:
    """Formats a duration in its two greatest units: `3 d 4 h`."""
    parts = []
    for unit, size in _UNIT_SECONDS:
        number, seconds = divmod(seconds, size)
        if number:
            parts.append(f"{int(number)} {unit}")
    return " ".join(parts[:2]) or "0 s"


def ago(stamp: str, now: str) -> str:
    """Formats the age of a stored time at `now` in its greatest unit; returns the date of a distant or future time."""
    if not stamp or stamp.startswith("1970"):
        return "never"
    seconds = seconds_between(stamp, now)
    if math.isinf(seconds):
        return when(stamp)
    if not -MAX_CLOCK_LEAD_S <= seconds <= MAX_AGO_S:
        return when(stamp)[:10]
    unit, size = next((row for row in _UNIT_SECONDS if seconds >= row[1]), ("s", 1))
    return f"{max(0, int(seconds / size))} {unit} ago"


def seconds_between(stamp: str, now: str) -> float:
    """Returns the seconds from one stored time to another; infinity if either is not a time."""
    try:
        return (datetime.fromisoformat(now) - datetime.fromisoformat(stamp)).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return math.inf


def when(stamp: str) -> str:
    """Formats a stored time as the local date and minute; one beyond the calendar's range as stored."""
    if not stamp or stamp.startswith("1970"):
        return "never"
    try:
        return datetime.fromisoformat(stamp).astimezone().strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError):
        return stamp[:16].replace("T", " ")


def clock(stamp: str, *, today: str = "") -> str:
    """Formats the local time of day of a stored time, or its date if that is not `today`; both take 8 columns."""
    try:
        moment = datetime.fromisoformat(stamp).astimezone()
    except (OverflowError, ValueError):
        return "--:--:--"
    return moment.strftime("%H:%M:%S" if not today or moment.date().isoformat() == today else "%y-%m-%d")


def format_span(duration: timedelta, *, rounds_up: bool = False) -> str:
    """Formats a duration in its greatest unit, in days from MIN_DAYS_SHOWN on: `19 h`; rounded down or up."""
    seconds = max(duration.total_seconds(), 0.0)
    minimums = {"d": MIN_DAYS_SHOWN, "h": 1, "min": 0}
    unit, size = next((unit, size) for unit, size in _UNIT_SECONDS if seconds >= size * minimums[unit])
    return f"{math.ceil(seconds / size) if rounds_up else int(seconds / size)} {unit}"
