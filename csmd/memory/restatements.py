"""Merges a new memory with the one that says the same in other words, once its vector is there.

A statement that repeats a memory's words confirms it as it comes in (`memory.remember`). One in other words becomes a memory
of its own first, since vectors are made in the background; here it goes into the standing one, or that one into it where it
is the better wording. Its turns are evidence of what stays, and `csmd pipeline merge --undo` takes them apart.
"""

from __future__ import annotations

from csmd.memory import supersession, upkeep
from csmd.store import belief_changes, cursors, dreams, memories, projects, vectors
from csmd.store.core import Store
from csmd.store.dreams import Place
from csmd.store.sqlite import Rows
from csmd.text import restatement
from csmd.values import Memory

STAGE = "restatements"
#: New memories that one step compares (of each the vectors of its scope are read), and the most that wait: of an import the
#: dream compares the rest.
BATCH, WAITING = 5, 500


def step(store: Store, *, model: str | None, now: str) -> int:
    """Compares the next new memories that have a vector; how many, 0 when none waits or no model is there."""
    found = store.read(lambda rows: _look(rows, model)) if model else None
    if not found:
        return 0
    new, merges = found

    def write(rows: Rows) -> None:
        upkeep.apply(rows, merges, by=supersession.RULE, now=now, key=store.hash_key)
        cursors.move_cursor(rows, STAGE, "memories", new[-1].seq)

    store.write(write)
    return len(new)


def _look(rows: Rows, model: str) -> tuple[list[Memory], list[upkeep.Finding]] | None:
    """The next memories whose vectors have been made, and what is to be merged among them and those before."""
    reached = vectors.embedded_up_to(rows, "memory", vectors.model_seq(rows, model))
    start = max(cursors.cursor(rows, STAGE, "memories"), reached - WAITING)
    new = [memory for memory in belief_changes.memories_past(rows, start, limit=BATCH) if memory.seq <= reached]
    merges: list[upkeep.Finding] = []
    gone: set[str] = set()
    for memory in new:
        finding = _restated(rows, memory, gone)
        if finding is not None:
            merges.append(finding)
            gone.update(
                one.id for one in finding.memories
            )  # one that takes in or goes is looked at as it is afterwards
    return (new, merges) if new else None


def _restated(rows: Rows, memory: Memory, gone: set[str]) -> upkeep.Finding | None:
    """The merge of a memory with the first, by vectors, of those before it that say the same; None for none."""
    if not memory.is_alive or memory.id in gone:
        return None
    place = Place(memory.project_seq, projects.everywhere(rows, memory.project_seq))
    near = {seq for pair in dreams.near_pairs(rows, place, [memory.seq]) for seq in pair if seq < memory.seq}
    for other in memories.by_seqs(rows, sorted(near)).values():
        if not other.is_alive or other.author or other.id in gone or upkeep.is_taken_apart(rows, memory, other):
            continue
        verdict = restatement.judge(other.text, memory.text)
        # What stood before stays where both are worded as well.
        sides = sorted((other, memory), key=upkeep.wording)
        for keeper, goes in (sides, sides[::-1]) if verdict.is_same else ():
            if upkeep.may_absorb(keeper, goes):
                return upkeep.restated(keeper, goes, verdict.reason)
    return None
