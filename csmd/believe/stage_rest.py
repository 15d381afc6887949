"""The rest of a memory of which a part was replaced: a memory of its own, in the same words, from the same turns.

The whole memory is superseded and keeps its text; its rest is linked with it, and goes when the whole holds again.
"""

from __future__ import annotations

from dataclasses import replace

from csmd import text
from csmd.believe import identity, score
from csmd.model import Link, Memory
from csmd.store import belief_changes, memories, projects, tombstones
from csmd.store.sqlite import Rows

LEFT = "left"


def free_identity(rows: Rows, project: int, body: str) -> str:
    """As `identity.of`; another one when a memory has it that was merged into another scope since."""
    ident, number = identity.of(project, body), 1
    while memories.by_id(rows, ident) is not None:
        ident, number = identity.of(project, f"{body} ({number})"), number + 1
    return ident


def of(rows: Rows, memory_id: str) -> Memory | None:
    """The memory of a memory's rest, or None."""
    seq = memories.rest_of(rows, memory_id)
    return memories.by_seqs(rows, [seq])[seq] if seq else None


def wanted(rows: Rows, whole: Memory, said: str, *, key: bytes) -> str:
    """The text to keep of a memory's rest: "" where it is remembered already, or the user made csmd forget it."""
    known = memories.by_hash(rows, text.keyed_hash(said, key), project=whole.project_seq) if said else None
    current = of(rows, whole.id)
    if known is not None and (current is None or known.id != current.id):
        return ""
    is_forgotten = bool(said) and tombstones.keeps_out(
        rows, said, correction=whole.gate == "correction", authority=whole.authority, project=whole.project_seq,
        at=whole.created_at, key=key,
    )  # fmt: skip
    return "" if is_forgotten else said


def keep(rows: Rows, whole: Memory, said: str, *, key: bytes, by: str, at: str) -> str:
    """Makes a memory of a memory's rest, as sure and as old as the whole was; its id, "" for no rest."""
    if not said:
        return ""
    limits = score.thresholds(
        whole.confidence, decay=whole.decay, gate=whole.gate, category=whole.category, tier=whole.tier,
        today=projects.active_day(rows, whole.project_seq, on=whole.fresh_at[:10]), stated=whole.authority == "user",
    )  # fmt: skip
    rest = replace(
        whole, id=free_identity(rows, whole.project_seq, said), text=said, superseded_by="", version=1,
        hot_until=limits.hot_until, warm_until=limits.warm_until, archive_at=limits.archive_at,
    )  # fmt: skip
    memories.insert(rows, rest, text_hash=text.keyed_hash(said, key))
    memories.add_link(rows, Link(from_id=whole.id, to_id=rest.id, relationship=memories.GOES_ON_AS, weight=1.0), now=at)
    belief_changes.note(rows, rest.id, LEFT, "", "", f"the rest of {whole.id}, of which a part was replaced", by, at)
    return rest.id


def lift(rows: Rows, change: belief_changes.Change, *, at: str) -> None:
    """Undoes a supersession: the whole holds again, and its rest goes with it."""
    belief_changes.lift(rows, change, at=at)
    for seq in memories.release_rest(rows, change.memory_id):
        memories.delete(rows, memories.by_seqs(rows, [seq])[seq])
