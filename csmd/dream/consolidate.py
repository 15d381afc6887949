"""The third phase: what says the same becomes one, what is told again is surer, what was overturned gives way; pure.

STEPS are the policy, in their order: what each looks at, and what it says is to be done. Each action is planned on the
snapshot that those before it leave. A person's word binds all of them: what is pinned stays, what was taken back or
dropped is not tried again, and what the user said does not vanish behind an assistant's words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from csmd import text
from csmd.believe import score, supersede, upkeep
from csmd.dream import raised, wording
from csmd.dream.actions import Action
from csmd.dream.gather import Gathered, Step
from csmd.dream.snapshot import UNSAID, Snapshot, alive, confirmed, confirming, is_sure, order, sessions
from csmd.model import AUTHORITY_RANK, Decay, Memory, Tier

#: What outlasts what: a memory may only go into one that ages no faster.
_TIERS: dict[Tier, int] = {"archive": 0, "session": 1, "daily": 2, "durable": 3}
_DECAYS: dict[Decay, int] = {"ephemeral": 0, "session": 1, "durable": 2, "permanent": 3}
#: The findings by which a person may have said that two memories are two.
PAIRS = ("duplicate", "near_duplicate")


# --- merge


def _pairs(snapshot: Snapshot, gathered: Gathered) -> Iterator[tuple[str, ...]]:
    """Two memories of which one says all of the other."""
    del snapshot
    yield from gathered.told


def _merge(snapshot: Snapshot, gathered: Gathered, one_id: str, other_id: str) -> Action | None:
    """Of two that say the same the best evidenced wording stays, of two of which one says more that one."""
    del gathered
    one, other = snapshot.memories.get(one_id), snapshot.memories.get(other_id)
    if one is None or other is None or not (alive(one) and alive(other)):
        return None
    best, rest = sorted((one, other), key=_evidenced)
    for keeper, goes in ((best, rest), (rest, best)):
        if may_merge(snapshot, goes, keeper):
            more = confirming(snapshot, keeper, goes)
            sure = confirmed(keeper, more)
            return Action(
                kind="merge", project_seq=snapshot.project_seq, memory=goes, other=keeper,
                reason=_merged(goes, keeper), evidence=(keeper.id, *(source.uuid for source in more)),
                confidence=sure.confidence, tier=sure.tier if _TIERS[sure.tier] >= _TIERS[goes.tier] else goes.tier,
            )  # fmt: skip
    return None


def _evidenced(memory: Memory) -> tuple[object, ...]:
    """Which wording stays, the least first: pinned, by authority, sureness, evidence; then the plainest, the oldest."""
    return upkeep.rank(memory)[:4], len(memory.text), order(memory)


def _merged(goes: Memory, keeper: Memory) -> str:
    if text.normalise(keeper.text) == text.normalise(goes.text):
        said = "says the same in the same words as"
    elif wording.same(keeper.text, goes.text):
        said = "says the same in other words as"
    else:
        said = "is said in full, and with more, by"
    return f"{goes.id} {said} {keeper.id}"


def may_merge(snapshot: Snapshot, goes: Memory, keeper: Memory) -> bool:
    """Whether nothing is lost when one memory goes into another: no word, no weight, no place where it holds."""
    return (
        goes.project_seq == snapshot.project_seq
        and upkeep.stands_for(keeper, goes, everywhere={snapshot.project_seq: snapshot.everywhere})
        and upkeep.may_go(goes, keeper)
        and (goes.gate == "correction") == (keeper.gate == "correction")
        and outlasts(keeper, goes)
        # What csmd worked out follows its counts, and what an assistant saved by itself is nobody's statement.
        and keeper.origin == goes.origin != "inferred"
        and not are_two(snapshot, goes, keeper)
        and wording.says_all(keeper.text, goes.text)
    )


def outlasts(keeper: Memory, other: Memory) -> bool:
    """Whether a memory ages no faster than another one; the longer of their tiers is the one that stays has."""
    lasting = [score.is_lasting(one.gate, one.category, stated=one.authority == "user") for one in (keeper, other)]
    return _DECAYS[keeper.decay] >= _DECAYS[other.decay] and lasting[0] >= lasting[1]


def are_two(snapshot: Snapshot, one: Memory, other: Memory) -> bool:
    """Whether somebody said that two memories are two: by taking their merge back, or by dropping what was found."""
    if other.id in _kept_from(snapshot, one.id):
        return True
    fingerprint = " ".join(sorted((one.id, other.id)))
    places = (one.project_seq, other.project_seq)
    return any((place, kind, fingerprint) in snapshot.dropped for place in places for kind in PAIRS)


def _kept_from(snapshot: Snapshot, ident: str) -> set[str]:
    """What a memory is kept from by merges that were taken back: of one into a second, and of that into a third."""
    found = {ident} if snapshot.apart else set()
    grown = bool(found)
    while grown:
        beside = {name for pair in snapshot.apart if found & set(pair) for name in pair}
        grown, found = not beside <= found, found | beside
    return found


# --- strengthen


def _both_ways(snapshot: Snapshot, gathered: Gathered) -> Iterator[tuple[str, ...]]:
    """A memory, and one that may say the same."""
    for one, other in _pairs(snapshot, gathered):
        yield one, other
        yield other, one


def _strengthen(snapshot: Snapshot, gathered: Gathered, ident: str, teller_id: str) -> Action | None:
    """What another session says in full is surer for it, where the two have to stay two."""
    del gathered
    memory, teller = snapshot.memories.get(ident), snapshot.memories.get(teller_id)
    if memory is None or teller is None or not (alive(memory) and alive(teller)):
        return None
    here = snapshot.project_seq
    if memory.project_seq != here or teller.project_seq != here or memory.origin in UNSAID or memory.pinned:
        return None
    if ("strengthen", ident) in snapshot.undone:
        return None
    if (memory.gate == "correction") != (teller.gate == "correction"):
        return None
    if are_two(snapshot, memory, teller):
        return None
    more = [one for one in confirming(snapshot, memory, teller) if one.session_id not in sessions(memory)]
    if not more or not wording.says_all(teller.text, memory.text):
        return None
    sure = confirmed(memory, more)
    told = text.amount(len({one.session_id for one in more}), "more session")
    return Action(
        kind="strengthen", project_seq=here, memory=memory, other=teller,
        reason=f"{teller.id} says in {told} what {memory.id} says",
        evidence=(teller.id, *(one.uuid for one in more)), confidence=sure.confidence, tier=sure.tier,
    )  # fmt: skip


# --- contradictions


def _beside(snapshot: Snapshot, gathered: Gathered) -> Iterator[tuple[str, ...]]:
    """A memory, and all that may belong together with it."""
    beside: dict[str, list[str]] = defaultdict(list)
    for one, other in (*gathered.alike, *gathered.near):
        beside[one].append(other)
        beside[other].append(one)
    for memory in snapshot.own:
        if memory.id in beside:
            yield memory.id, *beside[memory.id]


def _supersede(snapshot: Snapshot, gathered: Gathered, ident: str, *beside: str) -> Action | None:
    """Of two that contradict each other the older gives way; of several that overturn one, to the newest."""
    old = snapshot.memories.get(ident)
    if old is None or not alive(old) or old.pinned or ident in snapshot.settled:
        return None
    refused, stated = snapshot.refused.get(ident, frozenset()), _stands_since(snapshot, old)
    others = (snapshot.memories.get(other) for other in beside if other not in refused)
    newer = [
        one
        for one in others
        if one is not None and alive(one) and _since(snapshot, old, one) > stated and _may_overturn(old, one)
    ]
    for new in sorted(newer, key=lambda one: (snapshot.stated_at(one), order(one)), reverse=True):
        found = supersede.amendment(old.text, new.text, gathered.renames)
        if found is not None:
            return Action(
                kind="supersede", project_seq=snapshot.project_seq, memory=old, other=new,
                reason=f"{new.id} says otherwise since {snapshot.stated_at(new)[:10]}: {', '.join(found.reasons)}",
                evidence=(new.id, *(one.uuid for one in new.provenance[:1])),
                confidence=round(max(supersede.LEAST_LEFT, old.confidence - found.lowers), 4),
            )  # fmt: skip
    return None


def _stands_since(snapshot: Snapshot, old: Memory) -> str:
    """What was said up to then does not end a memory: it was said anew, or somebody has let it stand."""
    return max(snapshot.stated_at(old), snapshot.let_stand.get(old.id, ""))


def _since(snapshot: Snapshot, old: Memory, new: Memory) -> str:
    """From when one memory may speak against another (as in `believe.stage_supersede`)."""
    return new.created_at if old.scope == "project" and new.scope != "project" else snapshot.stated_at(new)


def _may_overturn(old: Memory, new: Memory) -> bool:
    """Whether one memory may supersede another unasked (as in `believe.stage_supersede`)."""
    if new.origin in UNSAID or new.authority == "external":
        return False
    if old.scope != "project" and new.project_seq != old.project_seq:
        return False
    return AUTHORITY_RANK[new.authority] >= AUTHORITY_RANK[old.authority]


def _ask(snapshot: Snapshot, gathered: Gathered, ident: str, *beside: str) -> Action | None:
    """What speaks against a memory where no rule may end it, or nobody can tell whether it does, a person is asked."""
    old = snapshot.memories.get(ident)
    if old is None or not alive(old) or ident in snapshot.settled:
        return None
    refused = snapshot.refused.get(ident, frozenset())
    for other in sorted(
        beside, key=lambda one: order(snapshot.memories[one]) if one in snapshot.memories else ("",) * 4
    ):
        new = snapshot.memories.get(other)
        if new is None or not alive(new) or other in refused or f"{ident}:{other}" in snapshot.asked:
            continue
        if (
            new.authority == "external"
            or new.origin in UNSAID
            or _since(snapshot, old, new) <= _stands_since(snapshot, old)
        ):
            continue
        may = _may_overturn(old, new) and not old.pinned
        found = (supersede.doubt if may else supersede.amendment)(old.text, new.text, gathered.renames)
        if found is not None:
            why = "of what use it speaks is not said" if may else supersede.stands(pinned=old.pinned)
            return Action(
                kind="ask", project_seq=snapshot.project_seq, memory=old, other=new, sure=found.confidence,
                reason=f"{new.id} {'may speak' if may else 'speaks'} against {ident} ({', '.join(found.reasons)}), which stands: {why}",
                evidence=(new.id, ident, *(one.uuid for one in new.provenance[:1])),
            )  # fmt: skip
    return None


# --- promote


def _for_a_while(snapshot: Snapshot, gathered: Gathered) -> Iterator[tuple[str, ...]]:
    """A memory of a short tier."""
    del gathered
    yield from ((memory.id,) for memory in snapshot.own if memory.tier in ("session", "daily"))


def _promote(snapshot: Snapshot, gathered: Gathered, ident: str) -> Action | None:
    """What is sure and was told in two sessions is no longer for a day."""
    del gathered
    memory = snapshot.memories.get(ident)
    if memory is None or not alive(memory) or memory.tier == "durable" or memory.origin in UNSAID:
        return None
    if ("promote", ident) in snapshot.undone:
        return None
    told = sessions(memory)
    if not is_sure(memory, memory.confidence):
        return None
    first = {one.session_id: one.uuid for one in reversed(memory.provenance) if one.role != "beside"}
    return Action(
        kind="promote", project_seq=snapshot.project_seq, memory=memory,
        reason=f"{memory.id} is sure ({memory.confidence * 100:.0f}) and was told in {len(told)} sessions",
        evidence=tuple(sorted(first.values())[:4]), tier="durable",
    )  # fmt: skip


# --- raise


def _facts(snapshot: Snapshot, gathered: Gathered) -> Iterator[tuple[str, ...]]:
    """A fact that recurs and that no habit tells."""
    del gathered
    yield from ((fact.fingerprint,) for fact in snapshot.facts if raised.recurs(fact))


def _raise(snapshot: Snapshot, gathered: Gathered, fingerprint: str) -> Action | None:
    """What recurs waits as a pattern, a convention or a gotcha, and is remembered where it passes the thresholds."""
    del gathered
    fact = next(one for one in snapshot.facts if one.fingerprint == fingerprint)
    wanted, known = raised.candidate(fact), snapshot.raised.get(fact.fingerprint)
    if known is not None and (known.status == "dropped" or raised.says(known) == wanted):
        return None
    if ("raise", fingerprint) in snapshot.undone:
        return None
    return Action(
        kind="raise", project_seq=snapshot.project_seq, fact=fact, confidence=wanted.confidence,
        reason=f"{wanted.reason}: {wanted.text}", evidence=fact.evidence,
    )  # fmt: skip


STEPS: tuple[Step, ...] = (
    Step(_pairs, _merge),
    Step(_both_ways, _strengthen),
    Step(_beside, _supersede),
    Step(_beside, _ask),
    Step(_for_a_while, _promote),
    Step(_facts, _raise),
)
