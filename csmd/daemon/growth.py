"""How the store grows: its size is noted once a day, and what it grew by each day is told from that."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from csmd.daemon.context import Context
from csmd.store import activity

#: How often it is looked whether a day has begun.
EVERY_S = 900.0
#: The days that growth is told of.
LAST_DAYS = 14


def step(context: Context, now: float) -> None:
    """Notes today's size when it is time to look, at the monotonic time `now`."""
    if now < context.next_size:
        return
    context.next_size = now + EVERY_S
    today = datetime.now(UTC).date().isoformat()
    context.guard("size of the day", lambda: context.store.write(lambda rows: activity.note_size(rows, today)))


def growth(noted: list[tuple[str, int]], *, used: int, today: date) -> dict[str, Any]:
    """`bytes_per_day` since the first of the last days that were noted, and over how many `days`; None and 0 at first.

    The very first day is no measure: on it came everything that the assistant had written before.
    """
    days = noted if len(noted) >= activity.MOST_DAYS else noted[1:]
    for day, size in days:
        past = (today - date.fromisoformat(day)).days
        if 0 < past <= LAST_DAYS:
            return {"bytes_per_day": round((used - size) / past), "days": past}
    return {"bytes_per_day": None, "days": 0}
