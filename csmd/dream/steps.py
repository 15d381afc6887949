"""The steps of a dream: reads, plans and applies in small transactions.

Each step takes milliseconds: it reads some memories, compares one, or writes a few actions. Planning uses readers only,
never the writer. An action on a memory that has changed since it was planned is skipped and planned again; one on a
memory that was forgotten since is skipped for good.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import csmd
from csmd.dream import actions, consolidation
from csmd.dream.actions import COMPARING_KINDS, Action, DreamPlan, Fact, Snapshot, Tally
from csmd.dream.consolidation import plan_project
from csmd.knowledge import Memory
from csmd.memory import promotion, scope, supersession, upkeep
from csmd.store import (
    belief_changes,
    candidates,
    dream_scopes,
    journal,
    memories,
    memory_upkeep,
    near_memories,
    past_decisions,
    projects,
)
from csmd.store.core import Store
from csmd.store.dream_scopes import DreamScope
from csmd.store.dreams import Dream
from csmd.store.sqlite import Rows
from csmd.text import tokens
from csmd.text.similarity import MIN_SURE

T = TypeVar("T")
Facts = Mapping[int, Sequence[Fact]]
#: Long work in steps; between two of them the caller does what is more urgent.
Steps = Generator[None, None, T]
#: Runs a function that reads the store, and returns its result.
Read = Callable[[Callable[[Rows], Any]], Any]
#: Memories of one read.
READ_BATCH = 100
#: Memories whose vectors one read compares.
COMPARED_BATCH = 10
#: Actions of one write: each takes 3 ms, and hooks wait for it.
WRITE_BATCH = 3
#: Most plans of a scope that changes meanwhile; the next dream does the rest.
MAX_PLANS = 2


# --- planning


def plan_everywhere(read: Read, *, now: str, facts: Facts) -> Steps[DreamPlan]:
    """Plans a dream over every project; `facts` maps a project's row key to its facts."""
    planned: list[Action] = []
    tallies: list[Tally] = []
    changed: dict[str, Memory] = {}
    lifted: dict[int, dict[str, Memory]] = defaultdict(dict)
    for area in read(dream_scopes.list_scopes):
        snapshot = yield from read_snapshot(read, area, now=now, facts=facts)
        alive = _list_alive(snapshot)
        pairs = yield from compare_vectors(read, alive, alive)
        memories = {key: changed.get(key, memory) for key, memory in snapshot.memories.items()}
        memories |= {memory_id: changed.get(memory_id, memory) for memory_id, memory in lifted[area.everywhere].items()}
        plan, result = yield from plan_project(_add_near_pairs(replace(snapshot, memories=memories), pairs))
        changed |= {
            memory_id: memory for memory_id, memory in result.memories.items() if memory.project_seq != area.seq
        }
        created = (action.created for action in plan.actions if action.created is not None)
        lifted[area.seq] = {memory.id: memory for memory in created}
        planned += plan.actions
        tallies += plan.tallies
    return DreamPlan(actions=tuple(planned), tallies=tuple(tallies))


def read_snapshot(read: Read, place: DreamScope, *, now: str, facts: Facts) -> Steps[Snapshot]:
    """Reads the snapshot of a scope, except for the pairs whose vectors are near."""
    project_facts = tuple(facts.get(place.seq, ()))
    collected: dict[str, Any] = {"memories": {}, "undone": set(), "questioned": set()}
    for seqs in split_batches(read(partial(dream_scopes.list_memory_seqs, scope=place)), READ_BATCH):
        for name, value in read(partial(_read_part, place=place, seqs=seqs)).items():
            collected[name] = collected[name] | value if name in collected else value
        yield
    undone_raises = read(journal.list_undone_candidates)
    yield
    days = read(lambda rows: {seq: tuple(projects.active_days(rows, seq)) for seq in (place.seq, place.everywhere)})
    raised = read(lambda rows: candidates.of_source(rows, actions.DREAM_SOURCE, project=place.seq))
    dropped = read(memory_upkeep.list_dropped)
    find_pairs = partial(past_decisions.list_questioned_pairs, scope=place, source=supersession.SOURCE)
    collected["questioned"] |= read(find_pairs)
    yield
    elsewhere: dict[str, Memory] = {}
    for seqs in split_batches(read(partial(dream_scopes.list_stated_habits, scope=place)), READ_BATCH):
        elsewhere |= read(partial(_read_elsewhere, seqs=seqs))
        yield
    undone_facts = (fact for fact in project_facts if _candidate_id(fact) in undone_raises)
    collected["undone"] |= {("raise", fact.fingerprint) for fact in undone_facts}
    # A statement was lifted before if there is a memory with the id that it would get.
    lift_ids = sorted({scope.identity(place.seq, memory.text) for memory in elsewhere.values()})
    stored = read(lambda rows: [lift_id for lift_id in lift_ids if memories.by_id(rows, lift_id) is not None])
    collected["undone"] |= {("lift", lift_id) for lift_id in stored}
    return Snapshot(
        project_seq=place.seq, everywhere=place.everywhere, now=now, days=days, dropped=dropped, facts=project_facts,
        raised_facts={candidate.fingerprint: candidate for candidate in raised}, stated_elsewhere=elsewhere, **collected,
    )  # fmt: skip


def _read_part(rows: Rows, place: DreamScope, seqs: Sequence[int]) -> dict[str, Any]:
    """Reads some of a scope's memories and their details, by field of the snapshot."""
    decided = past_decisions.read_decisions(rows, place, seqs)
    return {
        "memories": {memory.id: memory for memory in dream_scopes.filter_unarchived(rows, seqs)},
        "topics": dream_scopes.read_topics(rows, place, seqs),
        "injected": dream_scopes.list_injected_sessions(rows, seqs),
        "by_assistants": dream_scopes.list_assistant_sources(rows, seqs),
        **{field.name: getattr(decided, field.name) for field in fields(decided)},
    }


def _read_elsewhere(rows: Rows, seqs: Sequence[int]) -> dict[str, Memory]:
    """Reads the memories of a scope's projects that could hold everywhere, without undone lifts."""
    undone = past_decisions.list_undone_lifts(rows, seqs)
    stated = [memory for memory in memories.by_seqs(rows, seqs).values() if memory.id not in undone]
    may_hold = consolidation.may_hold_everywhere
    names = {seq: projects.name_of(rows, seq) for seq in {memory.project_seq for memory in stated}}
    return {memory.id: memory for memory in stated if may_hold(memory, project_name=names[memory.project_seq])}


def _list_alive(snapshot: Snapshot) -> list[int]:
    return sorted(memory.seq for memory in snapshot.own if memory.is_alive)


def _candidate_id(fact: Fact) -> str:
    return candidates.make_candidate_id("belief", fact.project_seq, fact.fingerprint, "")


def compare_vectors(read: Read, seqs: Sequence[int], among: Sequence[int]) -> Steps[set[tuple[int, int]]]:
    """Returns the pairs of row keys whose vectors are near, of some memories with all of a scope."""
    own, signs = set(seqs), near_memories.Signs(read(near_memories.find_memory_model), [], [])
    compared = 0  # vectors to compare with all later ones; they come first
    for group in (seqs, [seq for seq in among if seq not in own]) if seqs else ():
        for part in split_batches(group, READ_BATCH):
            added = read(partial(near_memories.read_signs, model=signs.model, seqs=part))
            signs.seqs.extend(added.seqs)
            signs.codes.extend(added.codes)
            yield
        compared = len(signs.codes) if group is seqs else compared
    near: list[near_memories.NearPair] = []
    for numbers in split_batches(range(compared), COMPARED_BATCH):
        near += read(partial(near_memories.compare_with_later, signs=signs, part=numbers))
        yield
    return near_memories.keep_nearest(near)


def _add_near_pairs(snapshot: Snapshot, pairs: set[tuple[int, int]]) -> Snapshot:
    ids = {memory.seq: memory.id for memory in snapshot.memories.values()}
    id_pairs = (sorted((ids[seq], ids[other])) for seq, other in pairs if seq in ids and other in ids)
    return replace(snapshot, near=frozenset((memory_id, other) for memory_id, other in id_pairs))


def split_batches(whole: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (whole[start : start + size] for start in range(0, len(whole), size))


# --- carrying out


def carry_out_everywhere(
    store: Store, dream: Dream, *, now: str, key: bytes, facts: Facts, promoting: bool = True
) -> Steps[int]:
    """Carries out a dream, scope by scope, in small steps; returns the number of actions.

    If it is closed between two steps, finished actions stay, and the next dream plans the rest.
    """
    carried_total = 0
    for place in store.read(dream_scopes.list_scopes):
        near_pairs: set[tuple[int, int]] = set()
        compared: set[int] = set()
        for _ in range(MAX_PLANS):
            snapshot = yield from read_snapshot(store.read, place, now=now, facts=facts)
            vectors = store.read(partial(dream_scopes.read_vector_state, scope=place))
            yield
            digest = yield from _digest_snapshot(snapshot, vectors, key=key)
            is_unchanged = digest == store.read(partial(dream_scopes.read_compared_digest, scope=place))
            alive = [] if is_unchanged else _list_alive(snapshot)
            uncompared = [seq for seq in alive if seq not in compared]
            near_pairs |= yield from compare_vectors(store.read, uncompared, alive)
            compared.update(uncompared)
            plan, _left = yield from plan_project(_add_near_pairs(snapshot, near_pairs), is_unchanged=is_unchanged)
            # Only if all were compared now: the vector of one that was compared earlier may have changed.
            has_comparison = any(action.kind in COMPARING_KINDS for action in plan.actions)
            if not is_unchanged and not has_comparison and uncompared == alive:
                store.write(partial(dream_scopes.record_compared_digest, scope=place, digest=digest))
                yield
            changed = 0
            for part in split_batches(plan.actions, WRITE_BATCH):
                act = partial(carry_out, dream_seq=dream.seq, actions=part, now=now, key=key, promoting=promoting)
                carried, skipped = store.write(act)
                carried_total, changed = carried_total + carried, changed + skipped
                yield
            if not changed:
                break
    return carried_total


def _digest_snapshot(snapshot: Snapshot, vectors: tuple[int, int], *, key: bytes) -> Steps[str]:
    """Returns a keyed digest of everything that decides the result of comparing a scope's memories."""
    digest = hmac.new(key, f"{COMPARISON_RULES} {vectors}".encode(), "sha256")
    for number, part in enumerate(snapshot.contents()):
        digest.update(f"{part}\0".encode("utf-8", "surrogatepass"))
        if number % READ_BATCH == 0:
            yield
    return digest.hexdigest()


def _digest_rules() -> str:
    """Returns a digest of the code and word lists that compare memories; another version may judge differently."""
    package = Path(csmd.__file__).parent
    folders = (".", "data", "dream", "memory", "store", "text")
    paths = (path for folder in folders for path in sorted((package / folder).glob("*.*")))
    contents = (path.read_bytes() for path in paths if path.suffix in (".py", ".txt", ".json"))
    return hashlib.sha256(b"\0".join(contents)).hexdigest()


#: Computed at import: files that are installed later are not the code that runs.
COMPARISON_RULES = _digest_rules()


def carry_out(
    rows: Rows, dream_seq: int, actions: Sequence[Action], *, now: str, key: bytes, promoting: bool = True
) -> tuple[int, int]:
    """Carries out planned actions in the caller's transaction, except those on memories that have changed since.

    Returns the number of actions carried out, and of those skipped because of a change.
    """
    carried = skipped = 0
    for action in actions:
        involved = [memory for memory in (action.memory, action.other) if memory is not None]
        if any(memories.by_id(rows, memory.id) != memory for memory in involved) or not _may_still_lift(rows, action):
            skipped += 1
            continue
        if any(supersession.is_forgotten(rows, memory, memory.text, key=key) for memory in involved):
            continue
        carried += journal.record_action(
            rows, partial(_apply, rows, action, now=now, key=key, promoting=promoting), dream=dream_seq,
            kind=action.kind, project=action.project_seq, reason=action.reason, evidence=action.evidence,
            items=[memory.id for memory in involved], now=now,
        )  # fmt: skip
    return carried, skipped


def _may_still_lift(rows: Rows, action: Action) -> bool:
    """Whether a statement is still to be lifted: not a general memory yet, and asked for in enough visible projects."""
    if action.created is None or action.memory is None:
        return True
    stated = dream_scopes.filter_stated_habits(rows, action.project_seq, action.evidence)
    is_enough = action.memory.id in stated and len({*stated.values()}) >= consolidation.MIN_PROJECTS
    return is_enough and memories.by_id(rows, action.created.id) is None


def _apply(rows: Rows, action: Action, *, now: str, key: bytes, promoting: bool) -> None:
    """Carries out one action."""
    memory, other, by = action.memory, action.other, belief_changes.DREAM
    if action.fact is not None:
        _raise_fact(rows, action.fact, promoting=promoting, key=key, now=now)
    if memory is None:
        return
    if action.created is not None:
        memories.insert(rows, action.created, text_hash=tokens.keyed_hash(action.created.text, key))
        kind, created_id = past_decisions.GENERALIZED, action.created.id
        belief_changes.record_change(rows, created_id, kind, "", memory.id, action.reason, by, now)
        return
    at = belief_changes.last_stated_at(rows, other) if other is not None else ""
    if action.kind == "ask" and other is not None:
        supersession.ask_which_holds(rows, memory, other, reason=action.reason, sure=action.ask_confidence, at=at)
        return
    if action.kind == "merge":
        belief_changes.merge_memories(rows, memory, action.after[1], reason=action.reason, by=by, now=now)
    elif action.kind == "archive":
        belief_changes.archive_memory(rows, memory, reason=action.reason, by=by, now=now)
    elif action.kind == "supersede" and other is not None:
        lowers = memory.confidence - action.after[0].confidence
        reason = action.reason
        supersession.mark_superseded(rows, memory, other, lowers=lowers, sure=MIN_SURE, reason=reason, by=by, at=at)
    else:
        for source in action.after[0].provenance:
            memories.add_provenance(rows, memory.seq, source)
        memories.update_belief(rows, action.after[0])
        note = past_decisions.STRENGTHENED if action.kind == "strengthen" else past_decisions.PROMOTED
        before, after = (f"confidence={state.confidence} tier={state.tier}" for state in (memory, action.after[0]))
        belief_changes.record_change(rows, memory.id, note, before, after, action.reason, by, now)
    upkeep.settle_about(rows, memory, now=now)


def _raise_fact(rows: Rows, fact: Fact, *, promoting: bool, key: bytes, now: str) -> None:
    """Makes a candidate of a fact, with the evidence that still exists, and a memory if it passes the thresholds."""
    evidence = dream_scopes.find_evidence(rows, fact.evidence)
    if not evidence:
        return
    candidate = replace(
        actions.build_candidate(fact), id=_candidate_id(fact), evidence=evidence, created_at=evidence[0].at,
        updated_at=evidence[-1].at,
    )  # fmt: skip
    promotion.queue_candidate(rows, candidate, promoting=promoting, key=key, now=now)
