"""Times and lengths of time in words: `3 d ago`, `3 d 4 h`, a date; pure."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

#: From here on a date says more than an age.
MAX_AGO_S = 60 * 86_400
DAY_S = 86_400
_UNIT_SECONDS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
#: Fewer days than this are shown in hours.
MIN_DAYS_SHOWN = 3


def age(seconds: float) -> str:
    """A length of time in its two greatest units: `3 d 4 h`."""
    parts = []
    for name, length in _UNIT_SECONDS:
        number, seconds = divmod(seconds, length)
        parts += [f"{int(number)} {name}"] if number else []
    return " ".join(parts[:2]) or "0 s"


def ago(stamp: str, now: str) -> str:
    """How long before `now` a stored time was, in its greatest unit; its date when that is long ago or unknown."""
    if not stamp or stamp.startswith("1970"):
        return "never"
    past = seconds_between(stamp, now)
    if math.isinf(past):
        return when(stamp)
    if past < -60 or past > MAX_AGO_S:  # the clock of who wrote it was ahead, or it is long past
        return when(stamp)[:10]
    unit, length = next((row for row in _UNIT_SECONDS if past >= row[1]), ("s", 1))
    return f"{max(0, int(past / length))} {unit} ago"


def seconds_between(stamp: str, now: str) -> float:
    """The seconds from one stored time to another; infinity if either is not a time."""
    try:
        return (datetime.fromisoformat(now) - datetime.fromisoformat(stamp)).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return math.inf


def when(stamp: str) -> str:
    """A stored time as the local date and minute; as it is stored where the calendar ends (a clock can say
    anything)."""
    if not stamp or stamp.startswith("1970"):
        return "never"
    try:
        return datetime.fromisoformat(stamp).astimezone().strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError):
        return stamp[:16].replace("T", " ")


def clock(stamp: str, *, today: str = "") -> str:
    """The time of day of a stored time, here; the date if it is not `today`, both take 8 columns."""
    try:
        moment = datetime.fromisoformat(stamp).astimezone()
    except (OverflowError, ValueError):
        return "--:--:--"
    return moment.strftime("%H:%M:%S" if not today or moment.date().isoformat() == today else "%y-%m-%d")


def format_span(length: timedelta, *, up: bool = False) -> str:
    """A length of time in its greatest unit, in days from the third on: `19 h`; rounded down, or `up`."""
    seconds = max(length.total_seconds(), 0.0)
    leasts = {"d": MIN_DAYS_SHOWN, "h": 1, "min": 0}
    unit, size = next((unit, size) for unit, size in _UNIT_SECONDS if seconds >= size * leasts[unit])
    return f"{math.ceil(seconds / size) if up else int(seconds / size)} {unit}"
