"""Reads from the audit what persons and dreams decided about memories before; no dream decides otherwise."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from csmd.store import belief_changes
from csmd.store.dream_scopes import DreamScope
from csmd.store.sqlite import Rows, in_keys

#: In the audit: a memory was shown in further sessions.
STRENGTHENED = "strengthened"
#: A memory got a longer tier.
PROMOTED = "kept for good"
#: A memory was made of what was said in several projects.
GENERALIZED = "lifted"
#: A person undid a dream that lifted this memory with others. The audit keeps it for longer than the journal of dreams.
NOT_GENERALIZED = "not lifted"
#: A person undid a question about this memory and another memory; `after` is `older:newer`.
NOT_ASKED = "not asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class PastDecisions:
    """Earlier decisions about memories, by id; `undone` has (kind of action, memory).

    `let_stand` is when a person undid a dream's supersession, `questioned` the pairs (`older:newer`) of undone
    questions.
    """

    superseded_at: dict[str, str] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)
    refused: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    let_stand: dict[str, str] = field(default_factory=dict)
    unmerged: set[tuple[str, str]] = field(default_factory=set)
    brought_back: dict[str, str] = field(default_factory=dict)
    undone: set[tuple[str, str]] = field(default_factory=set)
    questioned: set[str] = field(default_factory=set)


def read_decisions(rows: Rows, scope: DreamScope, seqs: Sequence[int]) -> PastDecisions:
    """Returns the past decisions about those of some memories that belong to the scope itself."""
    decisions = PastDecisions()
    for memory_id, change, before, after, by, changed_at, undone_at in rows.all(
        f"""select b.memory_id, b.change, b.before, b.after, b.by_whom, b.at, b.undone_at
            from memories m join belief_changes b on b.memory_id = m.id
            where {in_keys("m.seq", seqs)} and m.project_seq = :scope order by b.seq""",  # noqa: S608
        scope=scope.seq,
    ):
        if change == belief_changes.REFUSED and not undone_at:
            decisions.refused[memory_id].add(before)
        elif change == NOT_ASKED:
            decisions.questioned.add(after)
        elif change == belief_changes.SUPERSEDED and undone_at and by == belief_changes.DREAM:
            other = belief_changes.parse_state(after).get("superseded_by", "")
            decisions.refused[memory_id].add(other)
            decisions.refused[other].add(memory_id)  # in either direction
            decisions.let_stand[memory_id] = max(undone_at, decisions.let_stand.get(memory_id, ""))
        elif change == belief_changes.SUPERSEDED and not undone_at:
            decisions.superseded_at[memory_id] = changed_at
            if by in ("person", "assistant"):
                decisions.settled.add(memory_id)
        elif change == belief_changes.MERGE and undone_at:
            decisions.unmerged.add((memory_id, after))
        elif change == belief_changes.ARCHIVE and undone_at:
            decisions.brought_back[memory_id] = max(undone_at, decisions.brought_back.get(memory_id, ""))
        elif change in (STRENGTHENED, PROMOTED) and undone_at:
            decisions.undone.add(("strengthen" if change == STRENGTHENED else "promote", memory_id))
    return decisions


def list_questioned_pairs(rows: Rows, scope: DreamScope, source: str) -> frozenset[str]:
    """Returns the pairs `older:newer` of a scope that a rule (`source`) has asked a person about, answered or not."""
    sql = (
        "select distinct fingerprint from candidates where project_seq = :scope and source = :source and kind = 'stale'"
    )
    return frozenset(rows.column(sql, scope=scope.seq, source=source))


def list_undone_lifts(rows: Rows, seqs: Sequence[int]) -> frozenset[str]:
    """Returns those of some memories that a dream lifted to the general scope and a person took back."""
    sql = f"""select distinct m.id from memories m
        join belief_changes b on b.memory_id = m.id where {in_keys("m.seq", seqs)} and b.change = :change"""  # noqa: S608
    return rows.distinct(sql, change=NOT_GENERALIZED)
