"""Times and lengths of time in words: `3 d ago`, `3 d 4 h`, a date; pure."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

DAY_S = 86_400
#: Longest age that is shown as such; an older time is shown as a date.
MAX_AGO_S = 60 * DAY_S
_UNIT_SECONDS = (("d", DAY_S), ("h", 3_600), ("min", 60), ("s", 1))
#: Fewest days that are shown in days; fewer are shown in hours.
MIN_DAYS_SHOWN = 3


def age(seconds: float) -> str:
    """A length of time in its two greatest units: `3 d 4 h`."""
    parts = []
    for name, length in _UNIT_SECONDS:
        number, seconds = divmod(seconds, length)
        parts += [f"{int(number)} {name}"] if number else []
    return " ".join(parts[:2]) or "0 s"


def ago(stamp: str, now: str) -> str:
    """The age of a stored time at `now`, in its greatest unit; its date if it is long ago or in the future."""
    if not stamp or stamp.startswith("1970"):
        return "never"
    past = seconds_between(stamp, now)
    if math.isinf(past):
        return when(stamp)
    if past < -60 or past > MAX_AGO_S:  # another clock was ahead, or it is long past
        return when(stamp)[:10]
    unit, length = next(((unit, length) for unit, length in _UNIT_SECONDS if past >= length), ("s", 1))
    return f"{max(0, int(past / length))} {unit} ago"


def seconds_between(stamp: str, now: str) -> float:
    """The seconds from one stored time to another; infinity if either is not a time."""
    try:
        return (datetime.fromisoformat(now) - datetime.fromisoformat(stamp)).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return math.inf


def when(stamp: str) -> str:
    """A stored time as the local date and minute; a time out of the calendar's range as it is stored."""
    if not stamp or stamp.startswith("1970"):
        return "never"
    try:
        return datetime.fromisoformat(stamp).astimezone().strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError):
        return stamp[:16].replace("T", " ")


def clock(stamp: str, *, today: str = "") -> str:
    """The local time of day of a stored time, or its date if that is not `today`; both take 8 columns."""
    try:
        moment = datetime.fromisoformat(stamp).astimezone()
    except (OverflowError, ValueError):
        return "--:--:--"
    return moment.strftime("%H:%M:%S" if not today or moment.date().isoformat() == today else "%y-%m-%d")


def format_span(length: timedelta, *, rounds_up: bool = False) -> str:
    """A length of time in its greatest unit, in days from the third on: `19 h`; rounded down, or `up`."""
    seconds = max(length.total_seconds(), 0.0)
    leasts = {"d": MIN_DAYS_SHOWN, "h": 1, "min": 0}
    unit, size = next((unit, size) for unit, size in _UNIT_SECONDS if seconds >= size * leasts[unit])
    return f"{math.ceil(seconds / size) if rounds_up else int(seconds / size)} {unit}"
