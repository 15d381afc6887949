"""Duplicates, stale and faded memories: found, merged and archived when asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from csmd.errors import BadInput
from csmd.memory import supersession, upkeep_plan
from csmd.memory.remember import aged
from csmd.memory.upkeep_plan import Action, Finding
from csmd.model import Candidate, Memory
from csmd.store import before_images as stored
from csmd.store import belief_changes, candidates, cursors, memories, projects, receipts, search, tombstones, vectors
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import similarity, tokens

STAGE = "upkeep"
#: New memories that one read compares, the like of each that it looks at, memories that one sweeps over, and candidates
#: of which one asks whether what they say is still so.
BATCH, NEAR, SWEPT, ASKED = 5, 8, 400, 50
PAIRS = ("duplicate", "near_duplicate")
#: More waiting candidates than that nobody looks at.
WAITING = 5000


# --- in the background


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What a look brought: how many memories it was at, what the queue lacks, what is mended, and where the cursors go."""

    number: int
    plan: upkeep_plan.Queueing
    cursors: Mapping[str, int]


def step(store: Store, *, now: str) -> int:
    """Looks at the next memories; how many, 0 when nothing is left to be looked at.

    Looking takes a reader's time only: hooks wait behind a write, and where nothing is left there is none.
    """
    looked = store.read(lambda rows: _look(rows, now))
    if looked is None:
        return 0

    def write(rows: Rows) -> None:
        enqueue(rows, looked.plan, now=now)
        for subject, position in looked.cursors.items():
            cursors.move_cursor(rows, STAGE, subject, position)

    store.write(write)
    return looked.number


def _look(rows: Rows, now: str) -> Looked | None:
    reached = {subject: cursors.cursor(rows, STAGE, subject) for subject in ("memories", "day", "sweep", "queue")}
    new = stored.memories_past(rows, reached["memories"], limit=BATCH)
    if new:
        plan = upkeep_plan.Queueing(put=_lacking(rows, _compared(rows, new), now))
        return Looked(number=len(new), plan=plan, cursors={"memories": new[-1].seq})
    today = projects.active_day(rows, 0)
    if reached["day"] == today:
        return None
    part = stored.memories_past(rows, reached["sweep"], limit=SWEPT)
    if part:
        found = _ailing(rows, {memory.id: memory for memory in part}, after=reached["sweep"], to=part[-1].seq)
        plan = upkeep_plan.Queueing(put=_lacking(rows, found, now))
        return Looked(number=len(part), plan=plan, cursors={"sweep": part[-1].seq})
    waiting = candidates.waiting_after(rows, reached["queue"], limit=ASKED)
    if waiting:
        plan = upkeep_plan.Queueing(settle=tuple(one for one in _own(waiting) if not _holds(rows, one)))
        return Looked(number=len(waiting), plan=plan, cursors={"queue": waiting[-1].seq})
    return Looked(number=1, plan=upkeep_plan.Queueing(), cursors={"sweep": 0, "queue": 0, "day": today})


def _compared(rows: Rows, new: Sequence[Memory]) -> list[Finding]:
    """What new memories say that one of those says which have words in common with them."""
    dropped = stored.dropped_pairs(rows)
    found: list[Finding] = []
    for memory in new:
        around = {memory.project_seq: projects.everywhere(rows, memory.project_seq)}
        terms, scopes = tokens.query_terms(memory.text), sorted({*around, *around.values()})
        near = search.text_hits(rows, "memory", terms, projects=scopes, limit=NEAR)
        like = memories.by_seqs(rows, [*(int(seq) for seq, _ in near), memory.seq])
        beside = upkeep_plan.duplicates([like[seq] for seq in sorted(like)], everywhere=around, dropped=dropped)
        found += [one for one in beside if memory.id in (other.id for other in one.memories)]
    return found


def _lacking(rows: Rows, found: Sequence[Finding], now: str) -> tuple[Candidate, ...]:
    """The candidates of findings that do not wait already."""
    waiting = _own(candidates.waiting_of(rows, [one.key for one in found]))
    return upkeep_plan.queueing(found, waiting, dropped=stored.dropped_pairs(rows), now=now).put if found else ()


def _ailing(rows: Rows, known: Mapping[str, Memory], *, after: int, to: int) -> list[Finding]:
    """What is to be mended of single memories between two row keys."""
    found = [
        upkeep_plan.stale(known[ident])
        for ident, _ in stored.past_archiving(rows, after=after, to=to)
        if ident in known
    ]
    found += [
        upkeep_plan.missing_embedding(known[ident])
        for ident in stored.without_vector(rows, after=after, to=to)
        if ident in known
    ]
    found += [
        upkeep_plan.orphan(known[ident]) for ident in stored.without_turns(rows, after=after, to=to) if ident in known
    ]
    return found


def _waiting(rows: Rows, places: Sequence[int] | None) -> list[Candidate]:
    return _own(candidates.waiting(rows, projects=places, limit=WAITING))


def _own(waiting: Sequence[Candidate]) -> list[Candidate]:
    """Those that upkeep put there; what a page asks about is no finding of its: only a person settles it."""
    return [one for one in waiting if one.kind in stored.KINDS and one.source != candidates.PAGE]


def _holds(rows: Rows, one: Candidate) -> bool:
    """Whether what a candidate says of its memories is still so."""
    found = [memory for ident in one.memory_ids if (memory := memories.by_id(rows, ident)) is not None]
    if len(found) != len(one.memory_ids) or not all(upkeep_plan.is_alive(memory) for memory in found):
        return False
    if one.source == supersession.DOUBT_SOURCE:
        return True  # which of the two holds only a person tells
    if one.kind in PAIRS:
        return _alike(found[0], found[1]) is not None
    span = {"after": found[0].seq - 1, "to": found[0].seq}
    return any(finding.kind == one.kind for finding in _ailing(rows, {found[0].id: found[0]}, **span))


def _alike(one: Memory, other: Memory) -> tuple[float, bool] | None:
    return upkeep_plan.compared(one, similarity.gist(one.text), other, similarity.gist(other.text))


# --- when asked


def look(rows: Rows, places: Sequence[int] | None) -> list[Finding]:
    """Everything that is to be mended in some places (None: all)."""
    found = stored.memories_of_places(rows, places)
    return [*alike_in(rows, found), *ailing_in(rows, found)]


def ailing_in(rows: Rows, found: Sequence[Memory]) -> list[Finding]:
    """What is to be mended of single memories among some."""
    last = max((memory.seq for memory in found), default=0)
    return _ailing(rows, {memory.id: memory for memory in found}, after=0, to=last)


def alike_in(rows: Rows, found: Sequence[Memory]) -> list[Finding]:
    """What says the same, or nearly so, among some memories; without what a person has dropped."""
    everywhere = {seq: projects.everywhere(rows, seq) for seq in {memory.project_seq for memory in found}}
    return upkeep_plan.duplicates(found, everywhere=everywhere, dropped=stored.dropped_pairs(rows))


def generate(rows: Rows, places: Sequence[int] | None, *, now: str) -> upkeep_plan.Queueing:
    """What would change in the queue if everything in some places were looked at now."""
    return upkeep_plan.queueing(look(rows, places), _waiting(rows, places), dropped=stored.dropped_pairs(rows), now=now)


def enqueue(rows: Rows, plan: upkeep_plan.Queueing, *, now: str) -> None:
    """Changes the queue as planned; what has moved since is left to the next look, and what was purged since quoted nowhere."""
    for one in plan.put:
        quoted = [memories.by_id(rows, ident) for ident in one.memory_ids]
        if all(memory is not None and upkeep_plan.quote(memory) in one.text for memory in quoted):
            candidates.put(rows, one)
    for one in plan.settle:
        candidates.settle(rows, one, "done", now=now)


# --- mending


@dataclass(frozen=True, slots=True, kw_only=True)
class Mended:
    """What was done of a plan, and what was not, because it is not so any more."""

    done: tuple[Action, ...]
    moved: tuple[Action, ...]


def apply(rows: Rows, plan: Sequence[Action], *, by: str, now: str, key: bytes, as_said: bool = False) -> Mended:
    """Does what was planned, in the caller's transaction; what has changed since is looked at again, and left if it is not so.

    With `as_said` a person has said that the memories say the same: they need not look alike.
    """
    done: list[Action] = []
    moved: list[Action] = []
    for action in plan:
        again = _again(rows, action, key=key, as_said=as_said)
        (moved if again is None else done).append(again or action)
        if again is not None:
            _mend(rows, again, by=by, now=now)
    return Mended(done=tuple(done), moved=tuple(moved))


def _again(rows: Rows, action: Action, *, key: bytes, as_said: bool) -> Action | None:
    """The action on the memories as they are now, or None where it is no longer to be done."""
    memory = memories.by_id(rows, action.memory.id)
    into = memories.by_id(rows, action.into.id) if action.into else None
    if (
        memory is None
        or not upkeep_plan.is_alive(memory)
        or (action.into and (into is None or not upkeep_plan.is_alive(into)))
    ):
        return None
    for one in (memory, into):
        forgotten = one and tombstones.keeps_out(
            rows, one.text, correction=one.gate == "correction", authority=one.authority,
            project=one.project_seq, at=one.created_at, key=key,
        )  # fmt: skip
        if forgotten:
            return None
    if into is not None and not upkeep_plan.may_go(memory, into):
        return None
    now = replace(action, memory=memory, into=into)
    if (memory.version, into.version if into else 0) == (
        action.memory.version,
        action.into.version if action.into else 0,
    ):
        return now
    if into is not None:
        return now if as_said or _alike(memory, into) is not None else None
    kinds = {finding.kind for finding in _ailing(rows, {memory.id: memory}, after=memory.seq - 1, to=memory.seq)}
    return now if ("stale" if action.kind == "archive" else "missing_embedding") in kinds else None


def _mend(rows: Rows, action: Action, *, by: str, now: str) -> None:
    memory, into = action.memory, action.into
    if into is not None:
        known = {source.uuid for source in into.provenance}
        counted = [
            source
            for source in memory.provenance
            # An assistant that repeats what its session was told is using a memory, not confirming it.
            if source.role != "beside"
            and source.uuid not in known
            and not (memory.authority == "assistant" and receipts.was_told(rows, source.session_id, into.id))
        ]
        stays = aged(rows, upkeep_plan.absorbed(into, memory, confirmations=len(counted)))
        stored.merge_memories(rows, memory, stays, reason=action.reason, by=by, now=now)
    elif action.kind == "archive":
        stored.archive_memory(rows, memory, reason=action.reason, by=by, now=now)
    else:
        vectors.again(rows, "memory", memory.seq)
    settle_about(rows, memory, now=now)


def settle_about(rows: Rows, memory: Memory, *, now: str) -> None:
    """Takes from the queue what was to be done about a memory and is no longer to be done."""
    for one in stored.about_memory(rows, memory.id):
        if not _holds(rows, one):
            candidates.settle(rows, one, "done", now=now)


def planned_merge(memory: Memory, into: Memory, *, everywhere: Mapping[int, int], by_person: bool) -> Action:
    """The merge that somebody asks for; BadInput where it may not be.

    An assistant merges only what is found to say the same, a person any two of which one can stand for the other.
    """
    for one in (memory, into):
        if not upkeep_plan.is_alive(one):
            raise BadInput(
                f"{one.id} is archived or superseded: there is nothing to merge", hint="`csmd show` tells by what"
            )
    if memory.id == into.id:
        raise BadInput(f"{memory.id} is one memory", hint="name two")
    if not upkeep_plan.stands_for(into, memory, everywhere=everywhere):
        raise BadInput(f"{into.id} does not hold where {memory.id} does", hint="merge memories of one project")
    if (memory.gate == "correction") != (into.gate == "correction"):
        raise BadInput("a correction is merged with corrections only: what it corrects says something else")
    if memory.pinned or (memory.authority == "user" and into.authority != "user"):
        why = "is pinned" if memory.pinned else f"was said by the user, {into.id} by the {into.authority}"
        raise BadInput(f"{memory.id} {why}", hint=f"the other way round: csmd merge {into.id} {memory.id}")
    found = _alike(memory, into)
    if found is None and not by_person:
        raise BadInput(
            f"{memory.id} and {into.id} do not say the same", hint=f"a person can: csmd merge {memory.id} {into.id}"
        )
    reason = upkeep_plan.duplicate(into, memory, share=found[0], exact=found[1]).reason if found else "a person says so"
    return Action(kind="merge", memory=memory, into=into, reason=reason)


def undo(rows: Rows, memory: Memory, *, now: str, by_person: bool) -> Memory:
    """Takes back that a memory was merged or archived; the one that it had been merged into, or itself. BadInput for neither.

    What a person did only a person takes back.
    """
    last = [
        row for row in belief_changes.changes_of(rows, memory.id) if row.change == stored.ARCHIVE and not row.undone_at
    ]
    if last and memory.tier == "archive" and not memory.superseded_by:
        upkeep_plan.may_take_back(memory.id, last[-1].by, by_person=by_person)
        memories.update_belief(rows, aged(rows, replace(memory, tier=last[-1].before)))  # type: ignore[arg-type]
        belief_changes.set_undone(rows, last[-1].seq, at=now)
        return memory
    found = stored.last_merge(rows, memory.id)
    into = memories.by_id(rows, found[0].after) if found else None
    if found is None or into is None:
        raise BadInput(f"{memory.id} was neither merged nor archived", hint="`csmd show` tells what became of it")
    if not upkeep_plan.is_alive(into):
        raise BadInput(
            f"{into.id}, into which it was merged, is put aside itself", hint=f"first: csmd merge --undo {into.id}"
        )
    done, took = found
    upkeep_plan.may_take_back(memory.id, done.by, by_person=by_person)
    after, _, *uuids = took.after.split()
    sure, tier, *used = took.before.split()
    raised = float(after) - float(sure)
    free = replace(memory, tier=done.before, superseded_by="")  # type: ignore[arg-type]  # a tier, as it was noted
    was = {"tier": tier, "used_at": "".join(used)}
    stays = upkeep_plan.released(into, memory, raised=raised, without=uuids, **was)  # type: ignore[arg-type]  # as noted
    stored.undo_merge(rows, aged(rows, free), aged(rows, stays), took, done, now=now)
    return into
