"""Merges a memory into another that says the same, and undoes merges and archivings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from csmd.errors import BadInput, CsmdError
from csmd.knowledge import Memory
from csmd.memory import confidence, duplicates, supersession
from csmd.memory.duplicates import Finding, Likeness
from csmd.store import belief_changes, memories, session_context
from csmd.store.sqlite import Rows
from csmd.text import restatement
from csmd.vocabulary import Tier


def plan_merge(memory: Memory, into: Memory, *, everywhere: Mapping[int, int], by_person: bool) -> Finding:
    """Plans a requested merge; BadInput if it is not allowed.

    An assistant may merge only memories that say the same, possibly in other words; a person any two that are visible
    in the same project.
    """
    for merged in (memory, into):
        if not merged.is_alive:
            raise BadInput(f"{merged.id} is archived or superseded and cannot be merged", hint=f"csmd show {merged.id}")
    if memory.id == into.id:
        raise BadInput(f"{memory.id} cannot be merged into itself", hint="name two memories")
    if not duplicates.is_visible_wherever(into, memory, everywhere=everywhere):
        raise BadInput(f"{into.id} is not visible in the project of {memory.id}", hint="merge memories of one project")
    if (memory.gate == "correction") != (into.gate == "correction"):
        raise BadInput("a correction can be merged with corrections only")
    if not duplicates.may_merge(memory, into):
        authorities = f"was stated by the {memory.authority}, {into.id} by the {into.authority}"
        reason = "is pinned" if memory.pinned else authorities
        hint = f"merge them the other way round: csmd pipeline merge {into.id} {memory.id}"
        raise BadInput(f"{memory.id} {reason}", hint=hint)
    likeness, verdict = duplicates.compare(memory, into), restatement.judge(memory.text, into.text)
    if likeness is not None:
        return duplicates.describe_duplicate(into, memory, likeness)
    if verdict.is_same:
        return duplicates.describe_restatement(into, memory, verdict.reason)
    if not by_person:
        what = f"{memory.id} and {into.id} do not say the same: {verdict.reason}"
        raise BadInput(what, hint=f"ask a person to type: csmd pipeline merge {memory.id} {into.id}")
    return replace(duplicates.describe_duplicate(into, memory, Likeness(0.0, exact=False)), reason="a person says so")


def merge(rows: Rows, memory: Memory, into: Memory, *, reason: str, by: str, now: str) -> None:
    """Archives a memory; its sources confirm the memory `into` which it is merged."""
    cited = {source.uuid for source in into.provenance}
    new = [source for source in memory.provenance if source.role != "beside" and source.uuid not in cited]
    if memory.authority == "assistant":  # repeating an injected memory uses it, and does not confirm it
        new = [source for source in new if not session_context.is_injected(rows, source.session_id, into.id)]
    keeper = supersession.refresh_thresholds(rows, absorb(into, memory, confirmations=len(new)))
    belief_changes.merge_memories(rows, memory, keeper, reason=reason, by=by, now=now)


def absorb(keeper: Memory, other: Memory, *, confirmations: int) -> Memory:
    """Returns the kept memory after a merge, its confidence raised by `confirmations`.

    It keeps its authority and text.
    """
    raised = keeper.confidence
    for _ in range(confirmations):
        raised = confidence.confirm(raised, pinned=keeper.pinned)
    sessions = len(keeper.sessions | other.sessions)
    return replace(
        keeper, confidence=raised, tier=_choose_tier(keeper, sessions=sessions, raised=raised, default=keeper.tier),
        confirmed_at=max(keeper.confirmed_at, other.confirmed_at), used_at=max(keeper.used_at, other.used_at),
    )  # fmt: skip


def _unabsorb(keeper: Memory, other: Memory, *, raised: float, removed: list[str], tier: Tier, used_at: str) -> Memory:
    """Takes back `absorb`: returns the kept memory without the `removed` sources and the confidence they `raised`.

    `tier` and `used_at` are its values before the merge.
    """
    remaining = replace(keeper, provenance=tuple(source for source in keeper.provenance if source.uuid not in removed))
    lowered = keeper.confidence if keeper.pinned else round(max(0.0, keeper.confidence - raised), 4)
    return replace(
        keeper, confidence=lowered, used_at=used_at if keeper.used_at == other.used_at else keeper.used_at,
        tier=_choose_tier(keeper, sessions=len(remaining.sessions), raised=lowered, default=tier),
        confirmed_at=max((source.at for source in remaining.provenance), default=keeper.confirmed_at),
    )  # fmt: skip


def _choose_tier(memory: Memory, *, sessions: int, raised: float, default: Tier) -> Tier:
    tier = confidence.choose_tier(decay=memory.decay, for_good=False, sessions=sessions, confidence=raised)
    return "durable" if tier == "durable" else default


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
    changes = belief_changes.find_last_merge(rows, memory.id)
    into = memories.by_id(rows, changes[0].after) if changes else None
    if changes is None or into is None:
        raise BadInput(f"{memory.id} was neither merged nor archived", hint=f"csmd show {memory.id}")
    if not into.is_alive:
        what = f"{into.id}, into which {memory.id} was merged, is archived or superseded"
        raise BadInput(what, hint=f"csmd pipeline merge --undo {into.id}")
    merged, absorption = changes
    _check_may_undo(memory, merged, by_person=by_person)
    after, _, *uuids = absorption.after.split()
    before, tier, *used = absorption.before.split()
    # Both tiers are valid, because they were recorded.
    released = replace(memory, tier=merged.before, superseded_by="")  # type: ignore[arg-type]
    keeper = _unabsorb(
        into, memory, raised=float(after) - float(before), removed=uuids, tier=tier, used_at="".join(used),  # type: ignore[arg-type]
    )  # fmt: skip
    released, keeper = supersession.refresh_thresholds(rows, released), supersession.refresh_thresholds(rows, keeper)
    belief_changes.undo_merge(rows, released, keeper, absorption, merged, now=now)
    return into


def _check_may_undo(memory: Memory, change: belief_changes.Change, *, by_person: bool) -> None:
    if change.by == "user" and not by_person:
        raise CsmdError(f"a person merged or archived {memory.id}", hint="ask a person to undo it in a terminal")
