"""From a snapshot to actions, in phases: orient, gather, consolidate, lift, prune; pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice

from csmd import text
from csmd.dream import actions, wording
from csmd.dream.actions import (
    UNSAID,
    Action,
    DreamPlan,
    Snapshot,
    Tally,
    Working,
    alive,
    confirmed,
    confirming,
    is_sure,
    order,
    sessions,
)
from csmd.memory import confidence, contradiction, kinds, upkeep_plan
from csmd.model import AUTHORITY_RANK, NEVER, Decay, Memory, Tier


def tally(snapshot: Snapshot, gathered: Gathered) -> Tally:
    """How many memories a project has by tier, how many of them say what another one says, and how stale they are."""
    own = [memory for memory in snapshot.own if alive(memory)]
    ages: dict[str, list[float]] = defaultdict(list)
    for memory in own:
        ages[memory.tier].append(staleness(snapshot, memory))
    return Tally(
        project_seq=snapshot.project_seq,
        tiers={tier: len(found) for tier, found in sorted(ages.items())},
        duplicates=sum(memory.id in gathered.doubles for memory in own),
        staleness={tier: round(sum(found) / len(found), 4) for tier, found in sorted(ages.items())},
    )


def staleness(snapshot: Snapshot, memory: Memory) -> float:
    """How far a memory is on its way to the archive: 0 just told or used, or never to go; 1 when it is due."""
    if memory.pinned or memory.archive_at >= NEVER:
        return 0.0
    begun = snapshot.day(memory.project_seq, memory.fresh_at[:10])
    way = memory.archive_at - begun
    return min(1.0, max(0.0, (snapshot.day(memory.project_seq) - begun) / way)) if way > 0 else 1.0


#: Of a group's memories each is compared with so many of those that share most words with it.
LIKEST = 12
#: So many words must be the same where only a topic joins two memories.
SHARED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Memories that may belong together: of one topic ("" for none), gate and authority; ids in order of what they say."""

    topic: str
    gate: str
    authority: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What may belong together: groups, and pairs of ids in the order of what they say, whose words or vectors are near."""

    groups: tuple[Group, ...]
    told: tuple[tuple[str, str], ...]
    """Pairs of which one says all of the other, whichever it is."""
    alike: tuple[tuple[str, str], ...]
    near: tuple[tuple[str, str], ...]
    doubles: frozenset[str]
    """Of those that say the same, each but the first."""
    renames: Mapping[str, str]
    """Names that changed -> those they have now, as the memories say."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a phase looks at, as ids, and what it says of each: an action, or that nothing is to be done."""

    over: Callable[[Snapshot, Gathered], Iterable[tuple[str, ...]]]
    look: Callable[..., Action | None]


def gathering(snapshot: Snapshot) -> Generator[None, None, Gathered]:
    """The groups and pairs of the memories that are alive, in an order that depends on what they say alone.

    A step looks at one memory: thousands take seconds, and others are let pass in between.
    """
    every = sorted((one for one in snapshot.memories.values() if alive(one)), key=order)
    pairs: list[upkeep_plan.Pair] = []
    for found in upkeep_plan.comparing(every, everywhere={snapshot.project_seq: snapshot.everywhere}):
        pairs += found
        yield
    words = {(every[pair.one].id, every[pair.other].id) for pair in pairs}
    groups = tuple(_groups(snapshot, every))
    place = {memory.id: at for at, memory in enumerate(every)}
    own = {memory.id for memory in every if memory.project_seq == snapshot.project_seq}

    def ordered(pairs: set[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        sides = {
            (min(pair, key=place.__getitem__), max(pair, key=place.__getitem__)) for pair in pairs if set(pair) & own
        }
        return tuple(sorted(sides, key=lambda pair: (place[pair[0]], place[pair[1]])))

    close = {pair for pair in snapshot.near if set(pair) <= place.keys()}
    for group in groups:
        for ident, others in _sharing(group, snapshot):
            close.update((ident, other) for other in others)
            yield
    for opposed in _against(every):
        close.update(opposed)
        yield
    said = sorted(snapshot.memories.values(), key=lambda one: (snapshot.stated_at(one), order(one)))
    yield
    renaming: list[str] = []
    for memory in said:
        if contradiction.renames(memory.text):
            renaming.append(memory.text)
        yield
    repeated: set[tuple[str, str]] = set()
    same: set[tuple[str, str]] = set()
    for parts in telling(every):
        repeated.update(parts)
        same.update(pair for pair in parts if wording.same(*(snapshot.memories[ident].text for ident in pair)))
        yield
    told = ordered(repeated)
    return Gathered(
        groups=groups, told=told, alike=ordered(words), near=ordered(close - words), renames=contradiction.table(renaming),
        doubles=frozenset(other for one, other in told if {(one, other), (other, one)} & same),
    )  # fmt: skip


def _against(every: list[Memory]) -> Iterator[list[tuple[str, str]]]:
    """Of each memory the pairs with the newest that name something it speaks against."""
    newest = sorted(every, key=lambda memory: (memory.confirmed_at, order(memory)), reverse=True)
    folded = [(memory, memory.text.casefold()) for memory in newest]
    for memory in every:
        found: list[tuple[str, str]] = []
        if not contradiction.SPEAKS_AGAINST.search(memory.text):
            yield found  # taking a text apart is dear
            continue
        said = contradiction.read(memory.text)
        ended = [against.what for against in said.instead]
        for what in (*ended, *said.gone, *(liked_less for _, liked_less in said.prefers)):
            stem = max(what, key=lambda one: (len(one), one))
            naming = (one for one, plain in folded if stem in plain and one.id != memory.id)
            beside = (one for one in naming if stem in contradiction.read(one.text).stems)
            found += ((memory.id, one.id) for one in islice(beside, LIKEST))
        yield found


def telling(every: list[Memory]) -> Iterator[list[tuple[str, str]]]:
    """Of each memory (it, one that says all of it), by id: that has all of its words, the rarest of them, too."""
    words = [wording.content(memory.text) for memory in every]
    having: dict[str, list[int]] = defaultdict(list)
    for place, found in enumerate(words):
        for word in found:
            having[word].append(place)
    for place, found in enumerate(words):
        rarest = min(found, key=lambda word: (len(having[word]), word), default="")
        yield [
            (every[place].id, every[other].id)
            for other in having.get(rarest, ())
            if other != place and found <= words[other] and wording.says_all(every[other].text, every[place].text)
        ]


def _groups(snapshot: Snapshot, every: list[Memory]) -> Iterator[Group]:
    found: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for memory in every:
        for topic in snapshot.topics.get(memory.id, frozenset()):
            found[topic, memory.gate, memory.authority].append(memory.id)
    for (topic, gate, authority), members in sorted(found.items()):
        if len(members) > 1:
            yield Group(topic=topic, gate=gate, authority=authority, members=tuple(members))


def _sharing(group: Group, snapshot: Snapshot) -> Iterator[tuple[str, list[str]]]:
    """Each memory of a group beside those that share words with it, of them those that share most."""
    stems = [text.gist(snapshot.memories[ident].text).stems for ident in group.members]
    having: dict[str, list[int]] = defaultdict(list)
    for at, held in enumerate(stems):
        for stem in held:
            having[stem].append(at)
    for at, ident in enumerate(group.members):
        shared: Counter[int] = Counter()
        for stem in stems[at]:
            shared.update(having[stem])
        del shared[at]
        # The members stand in the order of what they say: the first of those that share as much.
        found = sorted((-number, other) for other, number in shared.items() if number >= SHARED)
        yield ident, [group.members[other] for _, other in found[:LIKEST]]


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
    return upkeep_plan.rank(memory)[:4], len(memory.text), order(memory)


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
        and upkeep_plan.stands_for(keeper, goes, everywhere={snapshot.project_seq: snapshot.everywhere})
        and upkeep_plan.may_go(goes, keeper)
        and (goes.gate == "correction") == (keeper.gate == "correction")
        and outlasts(keeper, goes)
        # What csmd worked out follows its counts, and what an assistant saved by itself is nobody's statement.
        and keeper.origin == goes.origin != "inferred"
        and not are_two(snapshot, goes, keeper)
        and wording.says_all(keeper.text, goes.text)
    )


def outlasts(keeper: Memory, other: Memory) -> bool:
    """Whether a memory ages no faster than another one; the longer of their tiers is the one that stays has."""
    lasting = [confidence.is_lasting(one.gate, one.category, stated=one.authority == "user") for one in (keeper, other)]
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
        found = contradiction.amendment(old.text, new.text, gathered.renames)
        if found is not None:
            return Action(
                kind="supersede", project_seq=snapshot.project_seq, memory=old, other=new,
                reason=f"{new.id} says otherwise since {snapshot.stated_at(new)[:10]}: {', '.join(found.reasons)}",
                evidence=(new.id, *(one.uuid for one in new.provenance[:1])),
                confidence=round(max(contradiction.LEAST_LEFT, old.confidence - found.lowers), 4),
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
        found = (contradiction.doubt if may else contradiction.amendment)(old.text, new.text, gathered.renames)
        if found is not None:
            why = "of what use it speaks is not said" if may else contradiction.stands(pinned=old.pinned)
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
    yield from ((fact.fingerprint,) for fact in snapshot.facts if actions.recurs(fact))


def _raise(snapshot: Snapshot, gathered: Gathered, fingerprint: str) -> Action | None:
    """What recurs waits as a pattern, a convention or a gotcha, and is remembered where it passes the thresholds."""
    del gathered
    fact = next(one for one in snapshot.facts if one.fingerprint == fingerprint)
    wanted, known = actions.candidate(fact), snapshot.raised.get(fact.fingerprint)
    if known is not None and (known.status == "dropped" or actions.says(known) == wanted):
        return None
    if ("raise", fingerprint) in snapshot.undone:
        return None
    return Action(
        kind="raise", project_seq=snapshot.project_seq, fact=fact, confidence=wanted.confidence,
        reason=f"{wanted.reason}: {wanted.text}", evidence=fact.evidence,
    )  # fmt: skip


CONSOLIDATING: tuple[Step, ...] = (
    Step(_pairs, _merge),
    Step(_both_ways, _strengthen),
    Step(_beside, _supersede),
    Step(_beside, _ask),
    Step(_for_a_while, _promote),
    Step(_facts, _raise),
)


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
        and not confidence.is_of_a_place(memory.text, project_name=project_name)
    )


def lifted(memory: Memory, *, everywhere: int, since: str) -> Memory:
    """The memory that says everywhere what a project's one says; it was first said `since`."""
    return replace(
        memory, id=kinds.of(everywhere, memory.text), scope="user" if memory.gate == "behavioral" else "global",
        project_seq=everywhere, created_at=since, seq=0, version=1,
    )  # fmt: skip


def _abroad(snapshot: Snapshot, gathered: Gathered) -> Iterator[tuple[str, ...]]:
    """A statement of some project's, and all that it says in full; those told in most projects first."""
    del gathered
    every = sorted(snapshot.abroad.values(), key=lambda one: (upkeep_plan.rank(one)[:5], order(one)))
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
    return bool(contradiction.amendment(one.text, other.text) or contradiction.amendment(other.text, one.text))


LIFTING = (Step(_abroad, _lift),)


#: Active days for which what was superseded still stands behind what replaced it.
SUPERSEDED_DAYS = 30


def _own(snapshot: Snapshot, gathered: Gathered) -> Iterator[tuple[str, ...]]:
    """A memory of the project."""
    del gathered
    yield from ((memory.id,) for memory in snapshot.own)


def _archive(snapshot: Snapshot, gathered: Gathered, ident: str) -> Action | None:
    """What has decayed, was superseded a while ago, or was for a day only goes to the archive."""
    del gathered
    memory = snapshot.memories.get(ident)
    if memory is None or memory.tier == "archive" or memory.pinned:
        return None
    back = snapshot.brought_back.get(ident)
    due = is_due(snapshot, memory)
    if (back is not None and memory.fresh_at <= back) or (is_the_users(memory) and not due):
        return None
    why = next((reason for rule in WHEN if (reason := rule(snapshot, memory))), "")
    if not why:
        return None
    last = max(memory.provenance, key=lambda one: (one.at, one.uuid))
    evidence = (memory.superseded_by,) if memory.superseded_by else (last.uuid,)
    return Action(
        kind="archive", project_seq=snapshot.project_seq, memory=memory, reason=f"{ident} {why}", evidence=evidence,
        tier="archive",
    )  # fmt: skip


def is_due(snapshot: Snapshot, memory: Memory) -> bool:
    """Whether the active day that is stored for a memory has passed."""
    return memory.archive_at < snapshot.day(memory.project_seq)


def is_the_users(memory: Memory) -> bool:
    """Whether the user stated a memory, and for good."""
    return memory.authority == "user" and memory.tier == "durable"


def _superseded(snapshot: Snapshot, memory: Memory) -> str:
    if not memory.superseded_by:
        return ""
    since = snapshot.superseded_at.get(memory.id, memory.fresh_at)[:10]
    passed = snapshot.day(memory.project_seq) - snapshot.day(memory.project_seq, since)
    return f"was superseded on {since}, {passed} active days ago" if passed > SUPERSEDED_DAYS else ""


def _for_a_day(snapshot: Snapshot, memory: Memory) -> str:
    passed = snapshot.day(memory.project_seq) - snapshot.day(memory.project_seq, memory.fresh_at[:10])
    lasting = confidence.is_lasting(memory.gate, memory.category, stated=memory.authority == "user")
    if memory.tier != "daily" or passed <= confidence.DAILY_DAYS or lasting or not is_due(snapshot, memory):
        return ""
    return f"is a daily memory, neither told nor used for {passed} active days"


def _decayed(snapshot: Snapshot, memory: Memory) -> str:
    if not is_due(snapshot, memory) or memory.tier == "daily":
        return ""
    return f"has faded: neither told nor used since {memory.fresh_at[:10]}"


WHEN: tuple[Callable[[Snapshot, Memory], str], ...] = (_superseded, _for_a_day, _decayed)
PRUNING = (Step(_own, _archive),)


STEPS = (*CONSOLIDATING, *PRUNING)


def planning(snapshot: Snapshot) -> Generator[None, None, tuple[DreamPlan, Snapshot]]:
    """What a dream does in one project, and the snapshot that it leaves; a look at a time."""
    gathered = yield from gathering(snapshot)
    found = tally(snapshot, gathered)
    left = Working.of(snapshot)
    done = yield from _through(LIFTING, left, gathered)
    if done:  # what is new belongs together with others, too
        gathered = yield from gathering(left)
    while True:
        more = yield from _through(STEPS, left, gathered)
        if not more:
            return DreamPlan(actions=tuple(done), tallies=(found,)), left
        done += more


def _through(steps: tuple[Step, ...], left: Working, gathered: Gathered) -> Generator[None, None, list[Action]]:
    """What some steps say is to be done, each after those before it; `left` follows."""
    done: list[Action] = []
    for step in steps:
        for subject in step.over(left, gathered):
            action = step.look(left, gathered, *subject)
            if action is not None:
                left.follow(action)
                done.append(action)
            yield
    return done


def joined(plans: list[DreamPlan]) -> DreamPlan:
    """The plans of several projects as one."""
    return DreamPlan(
        actions=tuple(action for one in plans for action in one.actions),
        tallies=tuple(found for one in plans for found in one.tallies),
    )
