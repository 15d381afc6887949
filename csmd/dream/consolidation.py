"""Plans a dream over one project: a snapshot to actions, in phases; pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice

from csmd.dream import actions, wording
from csmd.dream.actions import (
    UNSAID,
    Action,
    DreamPlan,
    Snapshot,
    Tally,
    confirm,
    find_confirming,
    is_alive,
    is_sure,
    sessions_of,
    sort_key,
)
from csmd.memory import confidence, contradiction, scope, upkeep
from csmd.model import AUTHORITY_RANK, NEVER, Decay, Memory, Tier
from csmd.text import display, similarity, tokens

#: Of a topic's memories each is compared with so many of those that share most words with it.
LIKEST = 12
#: So many words must be the same where only a topic joins two memories.
SHARED = 2
#: What outlasts what: a memory may only go into one that ages no faster.
_TIERS: dict[Tier, int] = {"archive": 0, "session": 1, "daily": 2, "durable": 3}
_DECAYS: dict[Decay, int] = {"ephemeral": 0, "session": 1, "durable": 2, "permanent": 3}
#: The findings by which a person may have said that two memories are two.
PAIRS = ("duplicate", "near_duplicate")
#: What holds everywhere was asked for in so many projects.
PROJECTS = 3
#: Active days for which what was superseded still stands behind what replaced it.
SUPERSEDED_DAYS = 30
#: One look each: what is to be done about it, None for nothing.
Looks = Iterator[Action | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What may belong together, as ids in the order of what the memories say.

    `told` are pairs of which one says all of the other, whichever it is; `close` maps a memory to those whose words,
    topics or vectors are near; `doubles` are those that say what one before them says; `renames` maps names that
    changed to those they have now, as the memories say.
    """

    told: tuple[tuple[str, str], ...]
    close: Mapping[str, tuple[str, ...]]
    doubles: frozenset[str]
    renames: Mapping[str, str]


def plan_project(snapshot: Snapshot) -> Generator[None, None, tuple[DreamPlan, Snapshot]]:
    """Plans what a dream does in one project, a look at a time; gives the plan and the snapshot that it leaves."""
    gathered = yield from gather(snapshot)
    found = tally(snapshot, gathered)
    left = snapshot.copied()
    done = yield from _followed(_lifting(left), left)
    if done:  # what is new belongs together with others, too
        gathered = yield from gather(left)
    while True:
        more: list[Action] = []
        for phase in PHASES:
            more += yield from _followed(phase(left, gathered), left)
        if not more:
            return DreamPlan(actions=tuple(done), tallies=(found,)), left
        done += more


def _followed(looks: Looks, left: Snapshot) -> Generator[None, None, list[Action]]:
    """The actions of a phase, each planned from what those before it leave."""
    done: list[Action] = []
    for action in looks:
        if action is not None:
            left.follow(action)
            done.append(action)
        yield
    return done


# --- orient and gather


def tally(snapshot: Snapshot, gathered: Gathered) -> Tally:
    """Counts a project's memories by tier, how many say what another one says, and how stale they are."""
    ages: dict[str, list[float]] = defaultdict(list)
    for memory in snapshot.own:
        if is_alive(memory):
            ages[memory.tier].append(_staleness(snapshot, memory))
    return Tally(
        project_seq=snapshot.project_seq,
        tiers={tier: len(found) for tier, found in sorted(ages.items())},
        duplicates=sum(memory.id in gathered.doubles and is_alive(memory) for memory in snapshot.own),
        staleness={tier: round(sum(found) / len(found), 4) for tier, found in sorted(ages.items())},
    )


def _staleness(snapshot: Snapshot, memory: Memory) -> float:
    """How far a memory is on its way to the archive: 0 just told or used, or never to go; 1 when it is due."""
    if memory.pinned or memory.archive_at >= NEVER:
        return 0.0
    begun = snapshot.day(memory.project_seq, memory.fresh_at[:10])
    way = memory.archive_at - begun
    return min(1.0, max(0.0, (snapshot.day(memory.project_seq) - begun) / way)) if way > 0 else 1.0


def gather(snapshot: Snapshot) -> Generator[None, None, Gathered]:
    """Finds what may belong together among the memories that are alive, in an order that depends on what they say alone.

    A step looks at one memory: thousands take seconds, and others are let pass in between.
    """
    every = sorted((one for one in snapshot.memories.values() if is_alive(one)), key=sort_key)
    place = {memory.id: at for at, memory in enumerate(every)}
    own = {memory.id for memory in every if memory.project_seq == snapshot.project_seq}
    near = {pair for pair in snapshot.near if set(pair) <= place.keys()}
    for pairs in upkeep.comparing(every, everywhere={snapshot.project_seq: snapshot.everywhere}):
        near.update((every[pair.one].id, every[pair.other].id) for pair in pairs)
        yield
    for found in chain(_sharing_topics(snapshot, every), _speaking_against(every)):
        near.update(found)
        yield
    renaming: list[str] = []
    for memory in sorted(snapshot.memories.values(), key=lambda one: (snapshot.stated_at(one), sort_key(one))):
        if contradiction.renames(memory.text):
            renaming.append(memory.text)
        yield
    told: set[tuple[str, str]] = set()
    same: set[tuple[str, str]] = set()
    for found in find_tellers(every):
        told.update(found)
        same.update(pair for pair in found if wording.says_same(*(snapshot.memories[one].text for one in pair)))
        yield

    def ordered(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        sides = {tuple(sorted(pair, key=place.__getitem__)) for pair in pairs if not own.isdisjoint(pair)}
        return sorted(((one, other) for one, other in sides), key=lambda pair: (place[pair[0]], place[pair[1]]))

    close: dict[str, list[str]] = defaultdict(list)
    for one, other in ordered(near):
        close[one].append(other)
        close[other].append(one)
    return Gathered(
        told=tuple(ordered(told)), close={ident: tuple(beside) for ident, beside in close.items()},
        doubles=frozenset(other for _, other in ordered(same)), renames=contradiction.rename_table(renaming),
    )  # fmt: skip


def _sharing_topics(snapshot: Snapshot, every: list[Memory]) -> Iterator[list[tuple[str, str]]]:
    """Of each memory of a topic the pairs with those of its gate and authority that share most words with it."""
    groups: dict[tuple[str, str, str], list[Memory]] = defaultdict(list)
    for memory in every:
        for topic in snapshot.topics.get(memory.id, frozenset()):
            groups[topic, memory.gate, memory.authority].append(memory)
    for _, members in sorted(groups.items()):
        stems = [similarity.gist(memory.text).stems for memory in members]
        having: dict[str, list[int]] = defaultdict(list)
        for at, held in enumerate(stems):
            for stem in held:
                having[stem].append(at)
        for at, memory in enumerate(members):
            shared = Counter(chain.from_iterable(having[stem] for stem in stems[at]))
            # The members stand in the order of what they say: the first of those that share as much.
            likest = sorted((-number, other) for other, number in shared.items() if number >= SHARED and other != at)
            yield [(memory.id, members[other].id) for _, other in likest[:LIKEST]]


def _speaking_against(every: list[Memory]) -> Iterator[list[tuple[str, str]]]:
    """Of each memory the pairs with the newest that name something it speaks against."""
    newest = sorted(every, key=lambda memory: (memory.confirmed_at, sort_key(memory)), reverse=True)
    folded = [(memory, memory.text.casefold()) for memory in newest]
    for memory in every:
        found: list[tuple[str, str]] = []
        if contradiction.SPEAKS_AGAINST.search(memory.text):  # taking a text apart is dear
            said = contradiction.parse_statement(memory.text)
            ended = [against.what for against in said.instead]
            for what in (*ended, *said.gone, *(liked_less for _, liked_less in said.prefers)):
                stem = max(what, key=lambda one: (len(one), one))
                naming = (one for one, plain in folded if stem in plain and one.id != memory.id)
                beside = (one for one in naming if stem in contradiction.parse_statement(one.text).stems)
                found += ((memory.id, one.id) for one in islice(beside, LIKEST))
        yield found


def find_tellers(every: list[Memory]) -> Iterator[list[tuple[str, str]]]:
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


# --- merge


def _merging(snapshot: Snapshot, gathered: Gathered) -> Looks:
    return (_merge(snapshot, one, other) for one, other in gathered.told)


def _merge(snapshot: Snapshot, one_id: str, other_id: str) -> Action | None:
    """Of two that say the same the best evidenced wording stays, of two of which one says more that one."""
    one, other = snapshot.memories.get(one_id), snapshot.memories.get(other_id)
    if one is None or other is None or not (is_alive(one) and is_alive(other)):
        return None
    best, rest = sorted((one, other), key=_evidenced)
    for keeper, goes in ((best, rest), (rest, best)):
        if _may_merge(snapshot, goes, keeper):
            more = find_confirming(snapshot, keeper, goes)
            sure = confirm(keeper, more)
            return Action(
                kind="merge", project_seq=snapshot.project_seq, memory=goes, other=keeper,
                reason=_merged(goes, keeper), evidence=(keeper.id, *(source.uuid for source in more)),
                confidence=sure.confidence, tier=max(sure.tier, goes.tier, key=lambda tier: _TIERS[tier]),
            )  # fmt: skip
    return None


def _evidenced(memory: Memory) -> tuple[object, ...]:
    """Which wording stays, the least first: pinned, by authority, sureness, evidence; then the plainest, the oldest."""
    return upkeep.rank(memory)[:4], len(memory.text), sort_key(memory)


def _merged(goes: Memory, keeper: Memory) -> str:
    if tokens.normalise(keeper.text) == tokens.normalise(goes.text):
        return f"{goes.id} says the same in the same words as {keeper.id}"
    if wording.says_same(keeper.text, goes.text):
        return f"{goes.id} says the same in other words as {keeper.id}"
    return f"{goes.id} is said in full, and with more, by {keeper.id}"


def _may_merge(snapshot: Snapshot, goes: Memory, keeper: Memory) -> bool:
    """Whether nothing is lost when one memory goes into another: no word, no weight, no place where it holds."""
    lasting = [confidence.has_warm_floor(one) for one in (keeper, goes)]
    return (
        goes.project_seq == snapshot.project_seq
        and upkeep.is_visible_wherever(keeper, goes, everywhere={snapshot.project_seq: snapshot.everywhere})
        and upkeep.may_go(goes, keeper)
        and (goes.gate == "correction") == (keeper.gate == "correction")
        and _DECAYS[keeper.decay] >= _DECAYS[goes.decay]
        and lasting[0] >= lasting[1]
        # What csmd worked out follows its counts, and what an assistant saved by itself is nobody's statement.
        and keeper.origin == goes.origin != "inferred"
        and not _are_two(snapshot, goes, keeper)
        and wording.says_all(keeper.text, goes.text)
    )


def _are_two(snapshot: Snapshot, one: Memory, other: Memory) -> bool:
    """Whether somebody said that two memories are two: by taking a merge back, or by dropping what was found."""
    found: set[str] = set()
    beside = {one.id}
    while beside - found:  # also of one into a second, and of that into a third
        found = beside
        beside = found.union(*(pair for pair in snapshot.apart if not found.isdisjoint(pair)))
    fingerprint = " ".join(sorted((one.id, other.id)))
    keys = {(place, kind, fingerprint) for place in (one.project_seq, other.project_seq) for kind in PAIRS}
    return other.id in found or not keys.isdisjoint(snapshot.dropped)


# --- strengthen


def _strengthening(snapshot: Snapshot, gathered: Gathered) -> Looks:
    for one, other in gathered.told:
        yield _strengthen(snapshot, one, other)
        yield _strengthen(snapshot, other, one)


def _strengthen(snapshot: Snapshot, ident: str, teller_id: str) -> Action | None:
    """What another session says in full is surer for it, where the two have to stay two."""
    memory, teller = snapshot.memories.get(ident), snapshot.memories.get(teller_id)
    if memory is None or teller is None or not (is_alive(memory) and is_alive(teller)):
        return None
    here = snapshot.project_seq
    if memory.project_seq != here or teller.project_seq != here or memory.origin in UNSAID or memory.pinned:
        return None
    if ("strengthen", ident) in snapshot.undone or (memory.gate == "correction") != (teller.gate == "correction"):
        return None
    more = [one for one in find_confirming(snapshot, memory, teller) if one.session_id not in sessions_of(memory)]
    if not more or _are_two(snapshot, memory, teller) or not wording.says_all(teller.text, memory.text):
        return None
    sure = confirm(memory, more)
    told = display.amount(len({one.session_id for one in more}), "more session")
    return Action(
        kind="strengthen", project_seq=here, memory=memory, other=teller,
        reason=f"{teller.id} says in {told} what {memory.id} says",
        evidence=(teller.id, *(one.uuid for one in more)), confidence=sure.confidence, tier=sure.tier,
    )  # fmt: skip


# --- contradictions


def _superseding(snapshot: Snapshot, gathered: Gathered) -> Looks:
    return (_supersede(snapshot, gathered, one.id) for one in snapshot.own if one.id in gathered.close)


def _against(snapshot: Snapshot, gathered: Gathered, old: Memory) -> list[Memory]:
    """The memories beside one that may speak against it: alive, stated since it was, and not refused by anybody."""
    refused = snapshot.refused.get(old.id, frozenset())
    # What was said up to then does not end a memory: it was said anew, or somebody has let it stand.
    stands_since = max(snapshot.stated_at(old), snapshot.let_stand.get(old.id, ""))
    found = (snapshot.memories.get(other) for other in gathered.close[old.id] if other not in refused)
    return [
        one
        for one in found
        if one is not None
        and is_alive(one)
        and one.origin not in UNSAID
        and one.authority != "external"
        and _since(snapshot, old, one) > stands_since
    ]


def _supersede(snapshot: Snapshot, gathered: Gathered, ident: str) -> Action | None:
    """Of two that contradict each other the older gives way; of several that overturn one, to the newest."""
    old = snapshot.memories.get(ident)
    if old is None or not is_alive(old) or old.pinned or ident in snapshot.settled:
        return None
    newer = [one for one in _against(snapshot, gathered, old) if _may_overturn(old, one)]
    for new in sorted(newer, key=lambda one: (snapshot.stated_at(one), sort_key(one)), reverse=True):
        found = contradiction.amendment(old.text, new.text, gathered.renames)
        if found is not None:
            return Action(
                kind="supersede", project_seq=snapshot.project_seq, memory=old, other=new,
                reason=f"{new.id} says otherwise since {snapshot.stated_at(new)[:10]}: {', '.join(found.reasons)}",
                evidence=(new.id, *(one.uuid for one in new.provenance[:1])),
                confidence=round(max(contradiction.LEAST_LEFT, old.confidence - found.lowers), 4),
            )  # fmt: skip
    return None


def _since(snapshot: Snapshot, old: Memory, new: Memory) -> str:
    """From when one memory may speak against another (as in `memory.supersession`)."""
    return new.created_at if old.scope == "project" and new.scope != "project" else snapshot.stated_at(new)


def _may_overturn(old: Memory, new: Memory) -> bool:
    """Whether one memory may supersede another unasked (as in `memory.supersession`)."""
    is_seen_there = old.scope == "project" or new.project_seq == old.project_seq
    return is_seen_there and AUTHORITY_RANK[new.authority] >= AUTHORITY_RANK[old.authority]


def _asking(snapshot: Snapshot, gathered: Gathered) -> Looks:
    return (_ask(snapshot, gathered, one.id) for one in snapshot.own if one.id in gathered.close)


def _ask(snapshot: Snapshot, gathered: Gathered, ident: str) -> Action | None:
    """What speaks against a memory where no rule may end it, or nobody can tell whether it does, a person is asked."""
    old = snapshot.memories.get(ident)
    if old is None or not is_alive(old) or ident in snapshot.settled:
        return None
    for new in sorted(_against(snapshot, gathered, old), key=sort_key):
        if f"{ident}:{new.id}" in snapshot.asked:
            continue
        may = _may_overturn(old, new) and not old.pinned
        found = (contradiction.doubt if may else contradiction.amendment)(old.text, new.text, gathered.renames)
        if found is not None:
            why = "of what use it speaks is not said" if may else contradiction.reason_kept(pinned=old.pinned)
            return Action(
                kind="ask", project_seq=snapshot.project_seq, memory=old, other=new, sure=found.confidence,
                reason=f"{new.id} {'may speak' if may else 'speaks'} against {ident} ({', '.join(found.reasons)}), which stands: {why}",
                evidence=(new.id, ident, *(one.uuid for one in new.provenance[:1])),
            )  # fmt: skip
    return None


# --- promote and raise


def _promoting(snapshot: Snapshot, gathered: Gathered) -> Looks:
    """What is sure and was told in two sessions is no longer for a day."""
    del gathered
    for memory in snapshot.own:
        may = memory.tier in ("session", "daily") and is_alive(memory) and memory.origin not in UNSAID
        if not may or ("promote", memory.id) in snapshot.undone or not is_sure(memory, memory.confidence):
            yield None
            continue
        first = {one.session_id: one.uuid for one in reversed(memory.provenance) if one.role != "beside"}
        yield Action(
            kind="promote", project_seq=snapshot.project_seq, memory=memory,
            reason=f"{memory.id} is sure ({memory.confidence * 100:.0f}) and was told in {len(sessions_of(memory))} sessions",
            evidence=tuple(sorted(first.values())[:4]), tier="durable",
        )  # fmt: skip


def _raising(snapshot: Snapshot, gathered: Gathered) -> Looks:
    """What recurs and no habit tells waits as a candidate, and is remembered where it passes the thresholds."""
    del gathered
    for fact in filter(actions.recurs, snapshot.facts):
        wanted, known = actions.build_candidate(fact), snapshot.raised.get(fact.fingerprint)
        is_known = known is not None and (known.status == "dropped" or actions.strip_history(known) == wanted)
        if is_known or ("raise", fact.fingerprint) in snapshot.undone:
            yield None
            continue
        yield Action(
            kind="raise", project_seq=snapshot.project_seq, fact=fact, confidence=wanted.confidence,
            reason=f"{wanted.reason}: {wanted.text}", evidence=fact.evidence,
        )  # fmt: skip


# --- lift


def may_hold_everywhere(memory: Memory, *, project_name: str) -> bool:
    """Whether a project's memory is how the user works, in words that would mean the same elsewhere."""
    return (
        is_alive(memory)
        and memory.scope == "project"
        and memory.authority == "user"
        and memory.origin not in UNSAID
        and not memory.pinned
        and (memory.gate == "behavioral" or memory.category == "preference")
        and not scope.is_of_a_place(memory.text, project_name=project_name)
    )


def _lifting(snapshot: Snapshot) -> Looks:
    """Looks at each statement of the projects around, with all that it says in full; those told in most projects first."""
    abroad = snapshot.abroad
    every = sorted(abroad.values(), key=lambda one: (upkeep.rank(one)[:5], sort_key(one)))
    told: dict[str, list[str]] = {one.id: [one.id] for one in every}
    for part, whole in chain.from_iterable(find_tellers(every)):
        if (abroad[part].gate == "correction") == (abroad[whole].gate == "correction"):
            told[whole].append(part)
    groups = [[abroad[ident] for ident in group] for group in told.values()]
    for group in sorted(groups, key=lambda group: -len({one.project_seq for one in group})):
        yield _lift(snapshot, group)


def _lift(snapshot: Snapshot, group: list[Memory]) -> Action | None:
    """What was asked for in projects enough, and is not said everywhere yet, is said everywhere from then on."""
    best = group[0]
    if len({one.project_seq for one in group}) < PROJECTS:
        return None
    around = [one for one in snapshot.memories.values() if is_alive(one)]
    if any(wording.says_all(one.text, best.text) or _speaks_against(one, best) for one in around):
        return None
    # What is said everywhere already asks for nothing more.
    asking = [best, *(one for one in group[1:] if not any(wording.says_all(wide.text, one.text) for wide in around))]
    told = {one.project_seq for one in asking}
    against = {one.project_seq for one in snapshot.abroad.values() if _speaks_against(one, best)}
    ident = scope.identity(snapshot.project_seq, best.text)
    is_known = ident in snapshot.memories or ("lift", ident) in snapshot.undone
    if len(told) < PROJECTS or len(told) <= len(against) or is_known:
        return None
    made = replace(
        best, id=ident, scope="user" if best.gate == "behavioral" else "global", project_seq=snapshot.project_seq,
        created_at=min(one.created_at for one in asking), seq=0, version=1,
    )  # fmt: skip
    return Action(
        kind="lift", project_seq=snapshot.project_seq, memory=best,
        reason=f"the user asked for it in {len(told)} projects: it holds everywhere",
        evidence=tuple(one.id for one in asking), made=snapshot.aged(made),
    )  # fmt: skip


def _speaks_against(one: Memory, other: Memory) -> bool:
    return bool(contradiction.amendment(one.text, other.text) or contradiction.amendment(other.text, one.text))


# --- prune


def _archiving(snapshot: Snapshot, gathered: Gathered) -> Looks:
    """What has decayed, was superseded a while ago, or was for a day only goes to the archive."""
    del gathered
    for memory in snapshot.own:
        why = _why_archived(snapshot, memory)
        if not why:
            yield None
            continue
        last = max(memory.provenance, key=lambda one: (one.at, one.uuid))
        yield Action(
            kind="archive", project_seq=snapshot.project_seq, memory=memory, reason=f"{memory.id} {why}",
            evidence=(memory.superseded_by or last.uuid,), tier="archive",
        )  # fmt: skip


def _why_archived(snapshot: Snapshot, memory: Memory) -> str:
    """Why a memory goes to the archive, "" where it stays."""
    today = snapshot.day(memory.project_seq)
    is_due = memory.archive_at < today  # the active day that is stored for it has passed
    back = snapshot.brought_back.get(memory.id)
    is_the_users = memory.authority == "user" and memory.tier == "durable"
    if memory.tier == "archive" or memory.pinned or (is_the_users and not is_due):
        return ""
    if back is not None and memory.fresh_at <= back:
        return ""
    if memory.superseded_by:
        since = snapshot.superseded_at.get(memory.id, memory.fresh_at)[:10]
        passed = today - snapshot.day(memory.project_seq, since)
        if passed > SUPERSEDED_DAYS:
            return f"was superseded on {since}, {passed} active days ago"
    if not is_due:
        return ""
    if memory.tier != "daily":
        return f"has faded: neither told nor used since {memory.fresh_at[:10]}"
    passed = today - snapshot.day(memory.project_seq, memory.fresh_at[:10])
    lasting = confidence.has_warm_floor(memory)
    if lasting or passed <= confidence.DAILY_DAYS:
        return ""
    return f"is a daily memory, neither told nor used for {passed} active days"


#: What is done after lifting, in this order and again until nothing is left to do.
PHASES: tuple[Callable[[Snapshot, Gathered], Looks], ...] = (
    _merging, _strengthening, _superseding, _asking, _promoting, _raising, _archiving,
)  # fmt: skip
