"""Why a belief changed: one row for each change, so that every one of them can be told and undone."""

from __future__ import annotations

from dataclasses import dataclass

from csmd.store.sqlite import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of a memory: what changed, from what to what, why, through whom and when."""

    seq: int
    change: str
    before: str
    after: str
    reason: str
    by: str
    at: str
    undone_at: str


def note(rows: Rows, memory_id: str, change: str, before: str, after: str, reason: str, by: str, at: str) -> int:
    """Writes down one change of a memory; its row key."""
    return int(
        rows.value(
            "insert into belief_changes (memory_id, change, before, after, reason, by, at) values "
            "(:memory, :change, :before, :after, :reason, :by, :at) returning seq",
            memory=memory_id, change=change, before=before, after=after, reason=reason, by=by, at=at,
        )
    )  # fmt: skip


def changes_of(rows: Rows, memory_id: str) -> list[Change]:
    """The changes of a memory, the first one first."""
    return [
        Change(seq=a, change=b, before=c, after=d, reason=e, by=f, at=g, undone_at=h)
        for a, b, c, d, e, f, g, h in rows.all(
            "select seq, change, before, after, reason, by, at, undone_at from belief_changes "
            "where memory_id = :memory order by seq",
            memory=memory_id,
        )
    ]
