"""How the database grows: its size on each day that csmd ran, the latest days only."""

from __future__ import annotations

from csmd.store.pages import live_bytes
from csmd.store.sqlite import Rows

#: Days that are kept.
MOST_DAYS = 60


def note(rows: Rows, day: str) -> bool:
    """Notes the size of a day (`2026-05-04`) unless it is noted already, and drops the oldest days; whether it was new."""
    added = rows.value(
        "insert into sizes (day, bytes) values (:day, :bytes) on conflict (day) do nothing returning bytes",
        day=day,
        bytes=live_bytes(rows),
    )
    if added is None:
        return False
    rows.run("delete from sizes where day not in (select day from sizes order by day desc limit :most)", most=MOST_DAYS)
    return True


def listing(rows: Rows) -> list[tuple[str, int]]:
    """(day, bytes) of every day that was noted, the first first."""
    return [(str(day), int(size)) for day, size in rows.all("select day, bytes from sizes order by day")]
