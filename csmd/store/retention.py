"""What room the database takes, and giving it back: tool output goes when it is old or when room is short.

Only the text of tool calls and results is dropped, to a mark that says how much it was; their turns stay listed
with their hashes. What people and assistants said is never dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from csmd.store import counts
from csmd.store.pages import live_bytes
from csmd.store.sqlite import Row, Rows

#: A turn whose line named no time has this one: it is not old, nobody knows when it was.
UNDATED = "1970-01-01T00:00:00.000Z"
#: From this share of the limit on it is said that room is short.
WARN_SHARE = 0.9
#: Counters of what was dropped.
DROPPED, DROPPED_BYTES = "tool outputs dropped", "tool output bytes dropped"
_NOUNS = {"tool_call": "input", "tool_result": "output"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Bytes in use (what is freed inside the file does not count), and the limit; 0 for none."""

    used: int
    limit: int

    @property
    def is_over(self) -> bool:
        """Whether the database has grown beyond its limit."""
        return bool(self.limit) and self.used > self.limit

    @property
    def is_short(self) -> bool:
        """Whether it is near its limit, or beyond."""
        return bool(self.limit) and self.used > self.limit * WARN_SHARE


def room(rows: Rows, *, limit: int) -> Room:
    """How much of `limit` bytes the database uses."""
    return Room(used=live_bytes(rows), limit=limit)


def is_any_left(rows: Rows) -> bool:
    """Whether there is tool traffic that still has its text."""
    found = rows.value(
        "select seq from turns where kind in ('tool_call', 'tool_result') and dropped is null and at >= '' limit 1"
    )
    return found is not None


def drop_old(rows: Rows, *, before: str, days: int, limit: int) -> int:
    """Drops the text of at most `limit` pieces of tool traffic from before a time; how many."""
    found = rows.all(
        "select seq, kind, text from turns where kind in ('tool_call', 'tool_result') and dropped is null "
        "and at < :before and at > :undated order by at limit :limit",
        before=before,
        undated=UNDATED,
        limit=limit,
    )
    return _drop(rows, found, why=f"dropped after {days} days")


def drop_oldest(rows: Rows, *, limit: int) -> int:
    """Drops the text of the `limit` oldest pieces of tool traffic that still have theirs; how many."""
    found = rows.all(
        "select seq, kind, text from turns where kind in ('tool_call', 'tool_result') and dropped is null "
        "and at >= '' order by at limit :limit",
        limit=limit,
    )
    return _drop(rows, found, why="dropped for room")


def _drop(rows: Rows, found: Sequence[Row], *, why: str) -> int:
    freed = 0
    for seq, kind, text in found:
        size = len(text.encode())
        freed += size
        rows.run(
            "update turns set text = :mark, dropped = :size where seq = :seq",
            mark=f"[tool {_NOUNS[kind]} of {size} bytes {why}]",
            size=size,
            seq=seq,
        )
    if found:
        counts.count(rows, [(DROPPED, len(found)), (DROPPED_BYTES, freed)])
    return len(found)
