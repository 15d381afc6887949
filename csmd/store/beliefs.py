"""Why a memory is no longer what it was: every change of a belief leaves a row here, and none is taken away.

No text of anybody's stands in it: ids, words of a fixed vocabulary and figures.
"""

from __future__ import annotations

from dataclasses import dataclass

from csmd.store.sqlite import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of one memory, with the time at which it was taken back ("" for never)."""

    seq: int
    memory_id: str
    change: str
    before: str
    after: str
    reason: str
    by: str
    at: str
    undone_at: str = ""


def note(rows: Rows, memory_id: str, change: str, before: str, after: str, reason: str, by: str, at: str) -> int:
    """Notes a change; its row key."""
    return int(
        rows.value(
            "insert into belief_changes (memory_id, change, before, after, reason, by, at) "
            "values (:memory, :change, :before, :after, :reason, :by, :at) returning seq",
            memory=memory_id,
            change=change,
            before=before,
            after=after,
            reason=reason,
            by=by,
            at=at,
        )
    )


def changes_of(rows: Rows, memory_id: str) -> list[Change]:
    """The changes of one memory, the oldest first."""
    return [
        Change(seq=int(a), memory_id=b, change=c, before=d, after=e, reason=f, by=g, at=h, undone_at=i)
        for a, b, c, d, e, f, g, h, i in rows.all(
            "select seq, memory_id, change, before, after, reason, by, at, undone_at from belief_changes "
            "where memory_id = :id order by seq",
            id=memory_id,
        )
    ]
