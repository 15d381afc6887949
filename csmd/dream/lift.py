"""What a user asked for in several projects holds everywhere: which statements, and the memory that says so; pure.

Only how somebody works is lifted, in words that point at no project, and only from projects around which the same holds:
a wall of workspaces stays one. The memory that is made says what the best evidenced one says; those that said it go into
it as any that say the same. What a project has otherwise stays there: an exception.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from csmd.believe import identity, score, supersede, upkeep
from csmd.dream import wording
from csmd.dream.actions import Action
from csmd.dream.gather import Gathered, Step, telling
from csmd.dream.snapshot import UNSAID, Snapshot, alive, order
from csmd.model import Memory

#: In so many projects the user has to have asked for it.
PROJECTS = 3


def may_hold_everywhere(memory: Memory, *, project_name: str) -> bool:
    """Whether a project's memory is how the user works, in words that would mean the same elsewhere."""
    return (
        alive(memory)
        and memory.scope == "project"
        and memory.authority == "user"
        and memory.origin not in UNSAID
        and not memory.pinned
        and (memory.gate == "behavioral" or memory.category == "preference")
        and not score.is_of_a_place(memory.text, project_name=project_name)
    )


def lifted(memory: Memory, *, everywhere: int, since: str) -> Memory:
    """The memory that says everywhere what a project's one says; it was first said `since`."""
    return replace(
        memory, id=identity.of(everywhere, memory.text), scope="user" if memory.gate == "behavioral" else "global",
        project_seq=everywhere, created_at=since, seq=0, version=1,
    )  # fmt: skip


def _abroad(snapshot: Snapshot, gathered: Gathered) -> Iterator[tuple[str, ...]]:
    """A statement of some project's, and all that it says in full; those told in most projects first."""
    del gathered
    every = sorted(snapshot.abroad.values(), key=lambda one: (upkeep.rank(one)[:5], order(one)))
    told: dict[str, list[str]] = {one.id: [one.id] for one in every}
    for part, whole in chain.from_iterable(telling(every)):
        if (snapshot.abroad[part].gate == "correction") == (snapshot.abroad[whole].gate == "correction"):
            told[whole].append(part)
    yield from sorted(
        map(tuple, told.values()), key=lambda group: -len({snapshot.abroad[ident].project_seq for ident in group})
    )


def _lift(snapshot: Snapshot, gathered: Gathered, ident: str, *others: str) -> Action | None:
    """What was asked for in projects enough, and is not said everywhere yet, is said everywhere from then on."""
    del gathered
    best = snapshot.abroad[ident]
    if len({snapshot.abroad[one].project_seq for one in (ident, *others)}) < PROJECTS:
        return None
    around = [one for one in snapshot.memories.values() if alive(one)]
    if any(wording.says_all(one.text, best.text) or _speaks_against(one, best) for one in around):
        return None
    # What is said everywhere already asks for nothing more.
    unsaid = (snapshot.abroad[one] for one in others)
    group = [best, *(one for one in unsaid if not any(wording.says_all(wide.text, one.text) for wide in around))]
    told = {one.project_seq for one in group}
    against = {one.project_seq for one in snapshot.abroad.values() if _speaks_against(one, best)}
    if len(told) < PROJECTS or len(told) <= len(against):
        return None
    made = lifted(best, everywhere=snapshot.project_seq, since=min(one.created_at for one in group))
    if made.id in snapshot.memories or ("lift", made.id) in snapshot.undone:
        return None
    return Action(
        kind="lift", project_seq=snapshot.project_seq, memory=best,
        reason=f"the user asked for it in {len(told)} projects: it holds everywhere",
        evidence=tuple(one.id for one in group), made=snapshot.aged(made),
    )  # fmt: skip


def _speaks_against(one: Memory, other: Memory) -> bool:
    return bool(supersede.amendment(one.text, other.text) or supersede.amendment(other.text, one.text))


STEPS = (Step(_abroad, _lift),)
