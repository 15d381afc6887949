"""The audit of beliefs: which changed, from what to what, by whom and why; undone changes stay listed as undone."""

from __future__ import annotations

from dataclasses import dataclass

from csmd.store.sqlite import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of a belief; `before` and `after` are what the change's own kind needs to be undone."""

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
    """Writes one change down, in the transaction that makes it; its row key."""
    return int(
        rows.value(
            "insert into belief_changes (memory_id, change, before, after, reason, by_whom, at) "
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
    """The changes of a memory, the oldest first."""
    return [
        Change(seq=a, memory_id=b, change=c, before=d, after=e, reason=f, by=g, at=h, undone_at=i)
        for a, b, c, d, e, f, g, h, i in rows.all(
            "select seq, memory_id, change, before, after, reason, by_whom, at, undone_at from belief_changes "
            "where memory_id = :memory order by seq",
            memory=memory_id,
        )
    ]


def set_undone(rows: Rows, seq: int, *, at: str) -> None:
    """Marks a change as undone; its row stays."""
    rows.run("update belief_changes set undone_at = :at where seq = :seq", at=at, seq=seq)
