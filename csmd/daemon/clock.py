"""The time as csmd writes it: UTC, ISO-8601, milliseconds and a Z."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def iso(moment: datetime) -> str:
    """A moment as csmd writes times."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def now_iso() -> str:
    """The time now as csmd writes it."""
    return iso(datetime.now(UTC))


def iso_before(seconds: float) -> str:
    """The time so many seconds ago as csmd writes it."""
    return iso(datetime.now(UTC) - timedelta(seconds=seconds))


def now_here() -> datetime:
    """The time now in the zone of this machine: whose days people mean."""
    return datetime.now().astimezone()


def here(at: str) -> datetime:
    """A time of csmd's in the zone of this machine, as its clocks showed it then."""
    return datetime.fromisoformat(at).astimezone()
