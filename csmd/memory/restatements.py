"""Merges a new memory with an older one that says the same in other words.

A statement that repeats a memory's words confirms it at once (`memory.remember`). One in other words first becomes a
memory of its own, because vectors are made in the background. Once it has one, it is merged into the older memory, or
the older one into it if it is the better wording.
"""

from __future__ import annotations

from csmd.knowledge import Memory
from csmd.memory import duplicates, supersession, upkeep
from csmd.memory.duplicates import PAIR_KINDS, Finding
from csmd.store import belief_changes, cursors, memories, memory_upkeep, near_memories, vectors
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import restatement

STAGE = "restatements"
#: New memories that one step reads.
BATCH = 5
#: At most this many of the newest memories are compared; the dream compares the rest of a longer import.
MAX_NEW = 500


def step(store: Store, *, model: str | None, now: str) -> int:
    """Compares the next new memories that have a vector; returns their number, 0 if none waits or there is no model."""
    new, merges = store.read(lambda rows: _find_next(rows, model)) if model else ([], [])
    if not new:
        return 0

    def write(rows: Rows) -> None:
        upkeep.apply(rows, merges, by=supersession.RULE, now=now, key=store.hash_key)
        cursors.move_cursor(rows, STAGE, "memories", new[-1].seq)

    store.write(write)
    return len(new)


def _find_next(rows: Rows, model: str) -> tuple[list[Memory], list[Finding]]:
    """Returns the next memories with vectors, up to the first to be merged, and its merge."""
    reached = vectors.find_embedded_position(rows, "memory", vectors.find_model(rows, model))
    start = max(cursors.read_cursor(rows, STAGE, "memories"), reached - MAX_NEW)
    new = [memory for memory in memory_upkeep.list_memories_after(rows, start, limit=BATCH) if memory.seq <= reached]
    for index, memory in enumerate(new, 1):
        if finding := _find_restated(rows, memory):
            return new[:index], [finding]  # the rest is compared with what the merge leaves
    return new, []


def _find_restated(rows: Rows, memory: Memory) -> Finding | None:
    """Returns the merge of a memory with the first older one nearby that says the same; None if there is none."""
    if not memory.is_alive:
        return None
    pairs = near_memories.find_near_pairs(rows, memory.project_seq, [memory.seq])
    older = {seq for pair in pairs for seq in pair if seq < memory.seq}
    for other in memories.by_seqs(rows, sorted(older)).values():
        if not other.is_alive or other.author or _is_separated(rows, memory, other):
            continue
        verdict = restatement.judge(other.text, memory.text)
        # The older memory is kept if both are worded equally well.
        ranked = sorted((other, memory), key=duplicates.rank_wording)
        for keeper, merged in (ranked, ranked[::-1]) if verdict.is_same else ():
            if duplicates.may_merge_unasked(merged, keeper):
                return duplicates.describe_restatement(keeper, merged, verdict.reason)
    return None


def _is_separated(rows: Rows, memory: Memory, other: Memory) -> bool:
    """Whether a merge of two memories was undone, or a person rejected the finding that they say the same."""
    pairs = ((memory.id, other.id), (other.id, memory.id))
    if any(merge.undone_at for one_id, into in pairs for merge in belief_changes.list_merges(rows, one_id, into)):
        return True
    fingerprint = " ".join(sorted((memory.id, other.id)))
    dropped = memory_upkeep.list_dropped(rows)
    return any((memory.project_seq, kind, fingerprint) in dropped for kind in PAIR_KINDS)
