"""Merges a memory into another that says the same, and undoes a merge or an archiving."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from csmd.errors import BadInput, CsmdError
from csmd.knowledge import Memory
from csmd.memory import confidence, duplicates, supersession
from csmd.memory.duplicates import Finding, Likeness
from csmd.store import belief_changes, memories, receipts
from csmd.store.sqlite import Rows
from csmd.text import restatement
from csmd.vocabulary import Tier


def plan_merge(memory: Memory, into: Memory, *, everywhere: Mapping[int, int], by_person: bool) -> Finding:
    """Plans a requested merge; BadInput if it is not allowed.

    An assistant may merge only memories that say the same, in other words or not; a person any two that are visible in
    the same place.
    """
    for merged in (memory, into):
        if not merged.is_alive:
            raise BadInput(
                f"{merged.id} is archived or superseded: there is nothing to merge", hint="`csmd show` tells by what"
            )
    if memory.id == into.id:
        raise BadInput(f"{memory.id} is one memory", hint="name two")
    if not duplicates.is_visible_wherever(into, memory, everywhere=everywhere):
        raise BadInput(f"{into.id} does not hold where {memory.id} does", hint="merge memories of one project")
    if (memory.gate == "correction") != (into.gate == "correction"):
        raise BadInput("a correction is merged with corrections only: what it corrects says something else")
    if not duplicates.may_merge(memory, into):
        why = "is pinned" if memory.pinned else f"was said by the {memory.authority}, {into.id} by the {into.authority}"
        raise BadInput(
            f"{memory.id} {why}", hint=f"merge them the other way round: csmd pipeline merge {into.id} {memory.id}"
        )
    likeness, verdict = duplicates.compare(memory, into), restatement.judge(memory.text, into.text)
    if likeness is not None:
        return duplicates.describe_duplicate(into, memory, likeness)
    if verdict.is_same:
        return duplicates.describe_restatement(into, memory, verdict.reason)
    if not by_person:
        raise BadInput(
            f"{memory.id} and {into.id} do not say the same: {verdict.reason}",
            hint=f"ask a person to type: csmd pipeline merge {memory.id} {into.id}",
        )
    return replace(duplicates.describe_duplicate(into, memory, Likeness(0.0, exact=False)), reason="a person says so")


def merge(rows: Rows, memory: Memory, into: Memory, *, reason: str, by: str, now: str) -> None:
    """Archives a memory and lets its sources confirm the other one."""
    present = {source.uuid for source in into.provenance}
    confirming = [
        source
        for source in memory.provenance
        if source.role != "beside"
        and source.uuid not in present
        # An assistant that repeats a memory it was given uses it, and does not confirm it.
        and not (memory.authority == "assistant" and receipts.is_injected(rows, source.session_id, into.id))
    ]
    stays = supersession.refresh_thresholds(rows, absorb(into, memory, confirmations=len(confirming)))
    belief_changes.merge_memories(rows, memory, stays, reason=reason, by=by, now=now)


def absorb(keeper: Memory, other: Memory, *, confirmations: int) -> Memory:
    """Returns the memory that stays after a merge, its confidence raised by `confirmations`.

    Authority and text are its own.
    """
    sure = keeper.confidence
    for _ in range(confirmations):
        sure = confidence.confirm(sure, pinned=keeper.pinned)
    return replace(
        keeper,
        confidence=sure,
        tier=_choose_tier(keeper, sessions=len(keeper.sessions | other.sessions), sure=sure, otherwise=keeper.tier),
        confirmed_at=max(keeper.confirmed_at, other.confirmed_at),
        used_at=max(keeper.used_at, other.used_at),
    )


def _unabsorb(
    keeper: Memory, other: Memory, *, raised: float, without: Collection[str], tier: Tier, used_at: str
) -> Memory:
    """Returns the memory that stayed without what a merge added; `tier` and `used_at` are those before the merge."""
    left = replace(keeper, provenance=tuple(source for source in keeper.provenance if source.uuid not in without))
    sure = keeper.confidence if keeper.pinned else round(max(0.0, keeper.confidence - raised), 4)
    return replace(
        keeper,
        confidence=sure,
        tier=_choose_tier(keeper, sessions=len(left.sessions), sure=sure, otherwise=tier),
        confirmed_at=max((source.at for source in left.provenance), default=keeper.confirmed_at),
        used_at=used_at if keeper.used_at == other.used_at else keeper.used_at,
    )


def _choose_tier(memory: Memory, *, sessions: int, sure: float, otherwise: Tier) -> Tier:
    tier = confidence.choose_tier(decay=memory.decay, for_good=False, sessions=sessions, confidence=sure)
    return "durable" if tier == "durable" else otherwise


def undo(rows: Rows, memory: Memory, *, now: str, by_person: bool) -> Memory:
    """Undoes a merge or an archiving, and returns the memory it was merged into, or itself.

    Raises BadInput if the memory was neither merged nor archived, and CsmdError if a person did it and someone else
    asks.
    """
    archived = belief_changes.latest_change(rows, memory.id, belief_changes.ARCHIVE)
    if archived and memory.tier == "archive" and not memory.superseded_by:
        _check_may_undo(memory, archived, by_person=by_person)
        active = replace(memory, tier=archived.before)  # type: ignore[arg-type]  # a tier, as it was recorded
        memories.update_belief(rows, supersession.refresh_thresholds(rows, active))
        belief_changes.set_undone(rows, archived.seq, at=now)
        return memory
    last = belief_changes.last_merge(rows, memory.id)
    into = memories.by_id(rows, last[0].after) if last else None
    if last is None or into is None:
        raise BadInput(f"{memory.id} was neither merged nor archived", hint="`csmd show` tells what became of it")
    if not into.is_alive:
        raise BadInput(
            f"{into.id}, into which it was merged, is put aside itself",
            hint=f"`csmd pipeline merge --undo {into.id}` first",
        )
    merged, took_in = last
    _check_may_undo(memory, merged, by_person=by_person)
    after, _, *uuids = took_in.after.split()
    before, tier, *used = took_in.before.split()
    free = replace(memory, tier=merged.before, superseded_by="")  # type: ignore[arg-type]  # a tier, as it was recorded
    raised = float(after) - float(before)
    used_at = "".join(used)
    stays = _unabsorb(into, memory, raised=raised, without=uuids, tier=tier, used_at=used_at)  # type: ignore[arg-type]
    free, stays = supersession.refresh_thresholds(rows, free), supersession.refresh_thresholds(rows, stays)
    belief_changes.undo_merge(rows, free, stays, took_in, merged, now=now)
    return into


def _check_may_undo(memory: Memory, change: belief_changes.Change, *, by_person: bool) -> None:
    if change.by == "user" and not by_person:
        raise CsmdError(f"a person did that to {memory.id}", hint="ask a person to take it back, in a terminal")
