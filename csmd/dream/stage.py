"""The hands of a dream: reads a scope, plans it, and carries the plan out in small transactions through the journal.

Planning takes a reader's time and the caller's, never the writer's. What is not exactly as the plan saw it is left and
planned anew; what was forgotten meanwhile is left for good.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from csmd import text
from csmd.believe import identity, stage_habits, stage_supersede, stage_upkeep
from csmd.believe import stage as believe
from csmd.believe.supersede import SURE
from csmd.dream import lift, raised
from csmd.dream.actions import Action, DreamPlan, Fact
from csmd.dream.gather import gather
from csmd.dream.plan import joined, plan
from csmd.dream.snapshot import Snapshot, after, alive
from csmd.model import Memory
from csmd.store import beliefs, candidates, dreams, memories, projects, tombstones
from csmd.store import snapshot as stored
from csmd.store import upkeep as upkept
from csmd.store.core import Store
from csmd.store.dreams import Dream
from csmd.store.snapshot import Place
from csmd.store.sqlite import Rows

T = TypeVar("T")
Facts = Mapping[int, Sequence[Fact]]
#: Actions of one write (each takes 3 ms, and hooks wait behind it), memories whose vectors one read compares, and how
#: often a scope that moves is planned again.
BATCH, COMPARED, AGAIN = 3, 25, 5


# --- planning


#: Which of some memories of a place are near: (rows, place, row keys) -> pairs of row keys.
Near = Callable[[Rows, Place, Sequence[int]], set[tuple[int, int]]]


def planned(rows: Rows, *, now: str, facts: Facts, near: Near = stored.near) -> DreamPlan:
    """What a dream would do now, everywhere; `facts` are those of each project, by its row key.

    Comparing vectors takes longest: `near` may compare only some, where the caller waits.
    """
    plans: list[DreamPlan] = []
    changed: dict[str, Memory] = {}
    lifted: dict[int, dict[str, Memory]] = defaultdict(dict)
    for place in stored.places(rows):
        seen = look(rows, place, now=now, facts=facts)
        pairs = near(rows, place, _compared(seen))
        held = {**seen.memories, **lifted[place.everywhere]}
        held = {ident: changed.get(ident, one) for ident, one in held.items()}
        found, left = plan(_with_near(replace(seen, memories=held), pairs))
        changed |= {ident: one for ident, one in left.memories.items() if one.project_seq != place.seq}
        lifted[place.seq] = {one.made.id: one.made for one in found.actions if one.made is not None}
        plans.append(found)
    return joined(plans)


def look(rows: Rows, place: Place, *, now: str, facts: Facts) -> Snapshot:
    """What a scope's dream is planned from, but for the pairs whose vectors are near."""
    found = stored.decided(rows, place)
    here, taken_out = tuple(facts.get(place.seq, ())), stored.undone_raises(rows)
    abroad = _abroad(rows, place)
    undone = {
        *found.undone,
        *(("raise", one.fingerprint) for one in here if _candidate_id(one) in taken_out),
        *(("lift", ident) for one in abroad.values() if _is_there(rows, ident := identity.of(place.seq, one.text))),
    }
    return Snapshot(
        project_seq=place.seq, everywhere=place.everywhere, now=now,
        memories={memory.id: memory for memory in stored.held(rows, place)},
        days={scope: tuple(projects.days(rows, scope)) for scope in (place.seq, place.everywhere)},
        topics=stored.topics(rows, place), told=stored.told(rows, place),
        by_assistants=stored.by_assistants(rows, place), superseded_at=found.superseded_at, settled=found.settled,
        refused=found.refused, let_stand=found.let_stand, apart=found.apart, brought_back=found.brought_back, undone=frozenset(undone),
        dropped=upkept.dropped(rows),
        raised={one.fingerprint: one for one in candidates.of_source(rows, raised.SOURCE, project=place.seq)},
        facts=here, abroad=abroad, asked=stored.asked(rows, place, stage_supersede.SOURCE),
    )  # fmt: skip


def _abroad(rows: Rows, place: Place) -> dict[str, Memory]:
    """What users asked for in the projects around which a place is, as far as it could hold everywhere.

    What somebody has taken back from there is not lifted again.
    """
    back = {ident for evidence in stored.undone_evidence(rows, place, "lift") for ident in evidence}
    found = [memory for memory in stored.stated_around(rows, place) if memory.id not in back]
    names = {seq: projects.name_of(rows, seq) for seq in {memory.project_seq for memory in found}}
    fitting = (one for one in found if lift.may_hold_everywhere(one, project_name=names[one.project_seq]))
    return {memory.id: memory for memory in fitting}


def _is_there(rows: Rows, ident: str) -> bool:
    return memories.by_id(rows, ident) is not None


def _compared(seen: Snapshot) -> list[int]:
    return sorted(memory.seq for memory in seen.own if alive(memory))


def _candidate_id(fact: Fact) -> str:
    one = raised.candidate(fact) if fact.kind in raised.CATEGORY else None
    return candidates.identity(one.kind, one.project_seq, one.fingerprint, "") if one else ""


def _with_near(seen: Snapshot, pairs: set[tuple[int, int]]) -> Snapshot:
    ids = {memory.seq: memory.id for memory in seen.memories.values()}
    named = (sorted((ids[one], ids[other])) for one, other in pairs if one in ids and other in ids)
    return replace(seen, near=frozenset((one, other) for one, other in named))


# --- carrying out


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """How many actions of a batch were done, and how many were not as the plan saw them."""

    done: int = 0
    moved: int = 0


def batches(
    store: Store,
    dream: Dream,
    *,
    now: str,
    key: bytes,
    facts: Facts,
    stop: Callable[[], bool],
    promoting: bool = True,
) -> Iterator[int]:
    """Carries a dream out, scope by scope; each step is one bounded read or comparison (0) or write: how many actions it did.

    With `stop` it ends between two steps: what is done stays, the next dream plans the rest.
    """
    for place in store.read(stored.places):
        for _ in range(AGAIN):
            seen = store.read(partial(look, place=place, now=now, facts=facts))
            pairs: set[tuple[int, int]] = set()
            for seqs in _parts(_compared(seen), COMPARED):
                pairs |= store.read(partial(stored.near, place=place, seqs=seqs))
                yield 0
                if stop():
                    return
            seen = _with_near(seen, pairs)
            gathered = gather(seen)
            yield 0
            if stop():
                return
            moved = 0
            for actions in _parts(plan(seen, gathered)[0].actions, BATCH):
                act = partial(carry_out, dream_seq=dream.seq, actions=actions, now=now, key=key, promoting=promoting)
                carried = store.write(act)
                moved += carried.moved
                yield carried.done
                if stop():
                    return
            if not moved:
                break


def _parts(whole: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (whole[start : start + size] for start in range(0, len(whole), size))


def carry_out(
    rows: Rows, dream_seq: int, actions: Sequence[Action], *, now: str, key: bytes, promoting: bool = True
) -> Carried:
    """Does what was planned, in the caller's transaction, as far as everything is as the plan saw it."""
    done = moved = 0
    for action in actions:
        seen = [memory for memory in (action.memory, action.other) if memory is not None]
        if any(memories.by_id(rows, memory.id) != memory for memory in seen):
            moved += 1
            continue
        if any(_forgotten(rows, memory, key) for memory in seen):
            continue
        changed = dreams.carried(
            rows, dream_seq, kind=action.kind, project=action.project_seq, reason=action.reason,
            evidence=action.evidence, items=[memory.id for memory in seen],
            act=partial(_do, rows, action, now=now, key=key, promoting=promoting), now=now,
        )  # fmt: skip
        done += bool(changed)
    return Carried(done=done, moved=moved)


def _forgotten(rows: Rows, memory: Memory, key: bytes) -> bool:
    return tombstones.keeps_out(
        rows, memory.text, correction=memory.gate == "correction", authority=memory.authority, key=key
    )


def _do(rows: Rows, action: Action, *, now: str, key: bytes, promoting: bool) -> list[str]:
    """Performs one action; the ids of what it made besides the memories that it names."""
    if action.fact is not None:
        return _raise(rows, action.fact, promoting=promoting, key=key, now=now)
    memory, other = action.memory, action.other
    if memory is None:
        return []
    if action.kind == "lift" and action.made is not None:
        made = believe.aged(rows, action.made)
        memories.insert(rows, made, text_hash=text.keyed_hash(made.text, key))
        beliefs.note(rows, made.id, stored.LIFTED, "", memory.id, action.reason, beliefs.DREAM, now)
        return [made.id]
    if action.kind == "ask" and other is not None:
        at = beliefs.stated_at(rows, other)
        asked = stage_supersede.ask(rows, memory, other, reason=action.reason, sure=action.sure, at=at)
        return [asked] if asked else []
    changed = after(action, partial(believe.aged, rows))
    if action.kind == "merge":
        upkept.merge(rows, memory, changed[1], reason=action.reason, by=beliefs.DREAM, now=now)
    elif action.kind == "archive":
        upkept.archive(rows, memory, reason=action.reason, by=beliefs.DREAM, now=now)
    elif action.kind == "supersede" and other is not None:
        stage_supersede.lower(
            rows, memory, other, lowers=memory.confidence - changed[0].confidence, sure=SURE, reason=action.reason,
            by=beliefs.DREAM, at=beliefs.stated_at(rows, other),
        )  # fmt: skip
    else:
        for source in changed[0].provenance:
            memories.add_provenance(rows, memory.seq, source)
        memories.update_belief(rows, changed[0])
        note = stored.STRENGTHENED if action.kind == "strengthen" else stored.PROMOTED
        beliefs.note(rows, memory.id, note, _state(memory), _state(changed[0]), action.reason, beliefs.DREAM, now)
    stage_upkeep.settle_about(rows, memory, now=now)
    return []


def _state(memory: Memory) -> str:
    return f"confidence={memory.confidence} tier={memory.tier}"


def _raise(rows: Rows, fact: Fact, *, promoting: bool, key: bytes, now: str) -> list[str]:
    """Puts a fact into the queue with the turns that are left of its evidence, and remembers it where it passes."""
    evidence = stored.evidence(rows, fact.evidence)
    if not evidence:
        return []
    one = replace(
        raised.candidate(fact), id=_candidate_id(fact), evidence=evidence, created_at=evidence[0].at,
        updated_at=evidence[-1].at,
    )  # fmt: skip
    return stage_habits.put(rows, one, promoting=promoting, key=key, now=now)
