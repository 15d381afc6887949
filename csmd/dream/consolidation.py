"""Plans a dream over one project: a snapshot to actions, in phases; pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice

from csmd.dream import actions
from csmd.dream.actions import UNSTATED, Action, DreamPlan, Snapshot, Tally, sort_key
from csmd.knowledge import Memory
from csmd.memory import confidence, duplicates, scope, supersession
from csmd.text import claims, display, restatement, similarity, tokens
from csmd.text.renames import find_renames, rename_table
from csmd.vocabulary import AUTHORITY_RANK, NEVER, Tier

#: Memories of a topic that each of them is compared with: those that share most words.
LIKEST = 12
#: Fewest words that two memories share if only a topic joins them.
SHARED = 2
#: A memory may only be merged into one that ages no faster.
_TIERS: dict[Tier, int] = {"archive": 0, "session": 1, "daily": 2, "durable": 3}
#: The kinds of findings that a person drops to say that two memories are distinct.
PAIRS = ("duplicate", "near_duplicate")
#: Projects in which a user must have asked for what is lifted.
PROJECTS = 3
#: Active days after which a superseded memory is archived.
SUPERSEDED_DAYS = 30
#: The actions of a phase, one look at a time; None if a look finds nothing to do.
Looks = Iterator[Action | None]
#: Pairs of ids.
Pairs = Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """Memories that may belong together, by id, in the order of what they say.

    In each pair of `restated` one memory says everything that the other does; in those of `reworded` it does so in
    other words. `close` maps a memory to those with near words, topics or vectors. `doubles` repeat a memory before
    them. `renames` maps former names to present ones.
    """

    restated: tuple[tuple[str, str], ...]
    reworded: frozenset[frozenset[str]]
    close: Mapping[str, tuple[str, ...]]
    doubles: frozenset[str]
    renames: Mapping[str, str]

    def says_all(self, memory: Memory, other: Memory) -> bool:
        """Whether one memory says everything that another one says."""
        return {memory.id, other.id} in self.reworded or similarity.compare(other.text, memory.text).says_all


#: The result for a scope that is not compared.
NOTHING = Gathered(restated=(), reworded=frozenset(), close={}, doubles=frozenset(), renames={})


def plan_project(
    snapshot: Snapshot, *, is_unchanged: bool = False
) -> Generator[None, None, tuple[DreamPlan, Snapshot]]:
    """Plans what a dream does in one project, in small steps; returns the plan and the snapshot that it leaves.

    With `is_unchanged`, comparing the same contents found nothing before: nothing is compared, the tally counts no
    duplicates, and only what time and facts bring is planned.
    """
    gathered = NOTHING if is_unchanged else (yield from gather(snapshot))
    counts = tally(snapshot, gathered)
    left = snapshot.copied()
    done = yield from _follow(_lift(left), left)
    if done:  # a new memory may belong together with others
        gathered = yield from gather(left)
    while True:
        more: list[Action] = []
        for phase in PHASES:
            more += yield from _follow(phase(left, gathered), left)
        if not more:
            return DreamPlan(actions=tuple(done), tallies=(counts,)), left
        done += more


def _follow(looks: Looks, left: Snapshot) -> Generator[None, None, list[Action]]:
    """Returns the actions of a phase, each planned from the results of those before it."""
    done: list[Action] = []
    for action in looks:
        if action is not None:
            left.follow(action)
            done.append(action)
        yield
    return done


# --- orient and gather


def tally(snapshot: Snapshot, gathered: Gathered) -> Tally:
    """Counts a project's memories by tier, how many repeat another one, and how stale they are."""
    alive = [memory for memory in snapshot.own if memory.is_alive]
    staleness: dict[str, list[float]] = defaultdict(list)
    for memory in sorted(alive, key=lambda memory: memory.tier):
        staleness[memory.tier].append(_staleness(snapshot, memory))
    return Tally(
        project_seq=snapshot.project_seq,
        tiers={tier: len(values) for tier, values in staleness.items()},
        duplicates=sum(memory.id in gathered.doubles for memory in alive),
        staleness={tier: round(sum(values) / len(values), 4) for tier, values in staleness.items()},
    )


def _staleness(snapshot: Snapshot, memory: Memory) -> float:
    """How near a memory is to the archive: 0 if just stated or used, or never archived; 1 if it is due."""
    if memory.pinned or memory.archive_at >= NEVER:
        return 0.0
    begun = snapshot.day(memory.project_seq, memory.fresh_at[:10])
    way = memory.archive_at - begun
    return min(1.0, max(0.0, (snapshot.day(memory.project_seq) - begun) / way)) if way > 0 else 1.0


def gather(snapshot: Snapshot) -> Generator[None, None, Gathered]:
    """Finds which living memories may belong together, in an order that depends only on what they say.

    Each step looks at one memory, because thousands take seconds.
    """
    alive = sorted((memory for memory in snapshot.memories.values() if memory.is_alive), key=sort_key)
    order = {memory.id: at for at, memory in enumerate(alive)}
    own = {memory.id for memory in alive if memory.project_seq == snapshot.project_seq}
    near = {pair for pair in snapshot.near if set(pair) <= order.keys()}
    alike = (
        [(alive[pair.first].id, alive[pair.second].id) for pair in pairs]
        for pairs in duplicates.iter_pairs(alive, everywhere={snapshot.project_seq: snapshot.everywhere})
    )
    for pairs in chain(alike, _pair_by_topics(snapshot, alive), _pair_contradictions(alive)):
        near.update(pairs)
        yield
    renaming: list[str] = []
    for memory in sorted(snapshot.memories.values(), key=lambda memory: (snapshot.stated_at(memory), sort_key(memory))):
        if find_renames(memory.text):
            renaming.append(memory.text)
        yield
    restated: set[tuple[str, str]] = set()
    same: set[tuple[str, str]] = set()
    for pairs in find_restatements(alive):
        restated.update(pairs)
        same.update(pair for pair in pairs if _is_same(*(snapshot.memories[ident].text for ident in pair)))
        yield

    reworded: set[frozenset[str]] = set()
    for pair in sorted(snapshot.near & near - restated - {pair[::-1] for pair in restated}):
        if restatement.judge(*(snapshot.memories[ident].text for ident in pair)).is_same:
            reworded.add(frozenset(pair))
            restated.add(pair)
            same.add(pair)
        yield

    def ordered(pairs: Pairs) -> list[tuple[str, str]]:
        """Returns the pairs that have a memory of the project, each once, with its sides in order."""
        sides = {tuple(sorted(pair, key=order.__getitem__)) for pair in pairs if not own.isdisjoint(pair)}
        return sorted(((ident, other) for ident, other in sides), key=lambda pair: (order[pair[0]], order[pair[1]]))

    close: dict[str, tuple[str, ...]] = defaultdict(tuple)
    for ident, other in ordered(near):
        close[ident] += (other,)
        close[other] += (ident,)
    doubles = frozenset(other for _, other in ordered(same))
    renames = rename_table(renaming)
    return Gathered(
        restated=tuple(ordered(restated)), reworded=frozenset(reworded), close=dict(close), doubles=doubles,
        renames=renames,
    )  # fmt: skip


def _pair_by_topics(snapshot: Snapshot, memories: list[Memory]) -> Iterator[Pairs]:
    """For each memory of a topic, yields its pairs with those of its gate and authority with most words in common."""
    groups: dict[tuple[str, str, str], list[Memory]] = defaultdict(list)
    for memory in memories:
        for topic in snapshot.topics.get(memory.id, frozenset()):
            groups[topic, memory.gate, memory.authority].append(memory)
    for _, members in sorted(groups.items()):
        stems = [similarity.gist(memory.text).stems for memory in members]
        having = _index(stems)
        for at, memory in enumerate(members):
            shared = Counter(chain.from_iterable(having[stem] for stem in stems[at]))
            # Ties are broken by the order of what they say.
            likest = sorted((-number, other) for other, number in shared.items() if number >= SHARED and other != at)
            yield [(memory.id, members[other].id) for _, other in likest[:LIKEST]]


def _index(words: Iterable[Iterable[str]]) -> dict[str, list[int]]:
    """Maps each word to the indexes of the texts that have it."""
    having: dict[str, list[int]] = defaultdict(list)
    for place, of_one in enumerate(words):
        for word in of_one:
            having[word].append(place)
    return having


def _pair_contradictions(memories: list[Memory]) -> Iterator[Pairs]:
    """For each memory, yields its pairs with the newest ones that name something it speaks against."""
    newest = sorted(memories, key=lambda memory: (memory.confirmed_at, sort_key(memory)), reverse=True)
    folded = [(memory, memory.text.casefold()) for memory in newest]
    for memory in memories:
        pairs: list[tuple[str, str]] = []
        for what in claims.ended_by(memory.text):
            stem = max(what, key=lambda word: (len(word), word))
            naming = (other for other, text in folded if stem in text and other.id != memory.id)
            certain = (other for other in naming if stem in claims.parse(other.text).stems)
            pairs += ((memory.id, other.id) for other in islice(certain, LIKEST))
        yield pairs


def _is_same(text: str, other: str) -> bool:
    return similarity.compare(text, other).relation == "same"


def find_restatements(memories: list[Memory]) -> Iterator[list[tuple[str, str]]]:
    """For each memory, yields the pairs (it, one that says all of it) by id.

    Only memories with its rarest word are compared.
    """
    words = [similarity.required_words(memory.text) for memory in memories]
    having = _index(words)
    for place, of_one in enumerate(words):
        rarest = min(of_one, key=lambda word: (len(having[word]), word), default="")
        text = memories[place].text
        yield [
            (memories[place].id, memories[other].id)
            for other in having.get(rarest, ())
            if other != place and of_one <= words[other] and similarity.compare(text, memories[other].text).says_all
        ]


# --- merge and strengthen


def _merge(snapshot: Snapshot, gathered: Gathered) -> Looks:
    """Merges memories that say the same: the best evidenced wording stays, or the one that says more.

    Of two that say it in other words the better wording (`duplicates.rank_wording`) stays.
    """

    def best_first(memory: Memory) -> tuple[object, ...]:
        worded = duplicates.rank_wording(memory) if frozenset(pair) in gathered.reworded else ()
        # Pinned, by authority, confidence, evidence; then the plainest, the oldest.
        return worded, duplicates.rank_evidence(memory)[:4], len(memory.text), sort_key(memory)

    for pair in gathered.restated:
        alive = sorted((memory for memory in map(snapshot.alive, pair) if memory is not None), key=best_first)
        sides = (alive, alive[::-1]) if len(alive) == 2 else ()
        allowed = ((goes, keeper) for keeper, goes in sides if _may_merge(snapshot, gathered, goes, keeper))
        yield next((_plan_merge(snapshot, gathered, goes, keeper) for goes, keeper in allowed), None)


def _plan_merge(snapshot: Snapshot, gathered: Gathered, goes: Memory, keeper: Memory) -> Action:
    more = actions.find_confirming(snapshot, keeper, goes)
    confirmed = actions.confirm(keeper, more)
    tier = max(confirmed.tier, goes.tier, key=lambda tier: _TIERS[tier])
    if tokens.normalise(keeper.text) == tokens.normalise(goes.text):
        reason = f"{goes.id} says the same in the same words as {keeper.id}"
    elif {keeper.id, goes.id} in gathered.reworded or _is_same(keeper.text, goes.text):
        reason = f"{goes.id} says the same in other words as {keeper.id}"
    else:
        reason = f"{goes.id} is said in full, and with more, by {keeper.id}"
    kept = snapshot.aged(actions.absorb(keeper, goes, confirmed, tier))
    return Action(
        kind="merge", project_seq=snapshot.project_seq, memory=goes, other=keeper, reason=reason,
        evidence=(keeper.id, *(source.uuid for source in more)), confidence=confirmed.confidence, tier=tier,
        after=(replace(goes, tier="archive", superseded_by=keeper.id), kept),
    )  # fmt: skip


def _may_merge(snapshot: Snapshot, gathered: Gathered, goes: Memory, keeper: Memory) -> bool:
    """Whether nothing is lost if one memory is merged into another: no word, no weight, no project where it holds."""
    return (
        goes.project_seq == snapshot.project_seq
        and duplicates.is_visible_wherever(keeper, goes, everywhere={snapshot.project_seq: snapshot.everywhere})
        and duplicates.may_merge_unasked(goes, keeper)
        and not _are_distinct(snapshot, goes, keeper)
        and gathered.says_all(keeper, goes)
    )


def _are_distinct(snapshot: Snapshot, memory: Memory, other: Memory) -> bool:
    """Whether a person said that two memories are distinct, by undoing a merge or dropping a finding."""
    reached: set[str] = set()
    new = {memory.id}
    while new - reached:  # merges may have been chained: one into a second, that into a third
        reached = new
        new = reached.union(*(pair for pair in snapshot.unmerged if not reached.isdisjoint(pair)))
    fingerprint = " ".join(sorted((memory.id, other.id)))
    keys = {(place, kind, fingerprint) for place in (memory.project_seq, other.project_seq) for kind in PAIRS}
    return other.id in reached or not keys.isdisjoint(snapshot.dropped)


def _strengthen(snapshot: Snapshot, gathered: Gathered) -> Looks:
    """Raises the confidence of memories that another session says in full, if the two cannot be merged."""
    for ident, other_id in chain.from_iterable((pair, pair[::-1]) for pair in gathered.restated):
        memory, other = snapshot.alive(ident), snapshot.alive(other_id)
        yield (
            _plan_strengthening(snapshot, gathered, memory, other) if memory is not None and other is not None else None
        )


def _plan_strengthening(snapshot: Snapshot, gathered: Gathered, memory: Memory, other: Memory) -> Action | None:
    here = snapshot.project_seq
    if memory.project_seq != here or other.project_seq != here or memory.origin in UNSTATED or memory.pinned:
        return None
    if ("strengthen", memory.id) in snapshot.undone or (memory.gate == "correction") != (other.gate == "correction"):
        return None
    more = [
        source
        for source in actions.find_confirming(snapshot, memory, other)
        if source.session_id not in memory.sessions
    ]
    if not more or _are_distinct(snapshot, memory, other) or not gathered.says_all(other, memory):
        return None
    confirmed = actions.confirm(memory, more)
    sessions = display.amount(len({source.session_id for source in more}), "more session")
    return Action(
        kind="strengthen", project_seq=here, memory=memory, other=other, after=(snapshot.aged(confirmed),),
        reason=f"{other.id} says in {sessions} what {memory.id} says",
        evidence=(other.id, *(source.uuid for source in more)), confidence=confirmed.confidence, tier=confirmed.tier,
    )  # fmt: skip


# --- supersede and ask


def _find_contested(snapshot: Snapshot, gathered: Gathered) -> Iterator[tuple[Memory, list[Memory]] | None]:
    """Yields each memory that may be contradicted, with the later ones that may contradict it and no person refused."""
    for ident in [memory.id for memory in snapshot.own if memory.id in gathered.close]:
        old = snapshot.alive(ident)
        if old is None or ident in snapshot.settled:
            yield None
            continue
        # What was said before it was last stated, or let stand by a person, does not end it.
        since = max(snapshot.stated_at(old), snapshot.let_stand.get(ident, ""))
        refused = snapshot.refused.get(ident, frozenset())
        others = (snapshot.alive(other) for other in gathered.close[ident] if other not in refused)
        yield (
            old,
            [
                new
                for new in others
                if new is not None
                and new.origin not in UNSTATED
                and new.authority != "external"
                # As in `memory.supersession`: a general memory counts against a project's from when it was first
                # stated.
                and (new.created_at if old.scope == "project" != new.scope else snapshot.stated_at(new)) > since
            ],
        )


def _may_overturn(old: Memory, new: Memory) -> bool:
    """Whether one memory may supersede another without a person (as in `memory.supersession`)."""
    is_seen_there = old.scope == "project" or new.project_seq == old.project_seq
    return is_seen_there and AUTHORITY_RANK[new.authority] >= AUTHORITY_RANK[old.authority]


def _supersede(snapshot: Snapshot, gathered: Gathered) -> Looks:
    """Supersedes memories that a later one contradicts, by the newest of them."""
    for contested in _find_contested(snapshot, gathered):
        yield _plan_supersession(snapshot, gathered, *contested) if contested else None


def _plan_supersession(snapshot: Snapshot, gathered: Gathered, old: Memory, others: list[Memory]) -> Action | None:
    for new in sorted(others, key=lambda memory: (snapshot.stated_at(memory), sort_key(memory)), reverse=True):
        if old.pinned or not _may_overturn(old, new):
            continue
        how = similarity.compare(old.text, new.text, renames=gathered.renames)
        if how.replaces:
            lowered = old.confidence - confidence.compute_loss(how.confidence)
            sureness = round(max(confidence.MIN_REMAINING, lowered), 4)
            ended = replace(old, confidence=sureness, superseded_by=new.id)
            return Action(
                kind="supersede", project_seq=snapshot.project_seq, memory=old, other=new,
                reason=f"{new.id} says otherwise since {snapshot.stated_at(new)[:10]}: {', '.join(how.reasons)}",
                evidence=(new.id, *(source.uuid for source in new.provenance[:1])), confidence=sureness,
                after=(snapshot.aged(ended),),
            )  # fmt: skip
    return None


def _ask(snapshot: Snapshot, gathered: Gathered) -> Looks:
    """Asks a person if no rule may end a contradicted memory, or if it is unclear whether it is contradicted."""
    for contested in _find_contested(snapshot, gathered):
        yield _plan_question(snapshot, gathered, *contested) if contested else None


def _plan_question(snapshot: Snapshot, gathered: Gathered, old: Memory, others: list[Memory]) -> Action | None:
    for new in sorted(others, key=sort_key):
        if f"{old.id}:{new.id}" in snapshot.questioned:
            continue
        may = _may_overturn(old, new) and not old.pinned
        if may and new.authority != "user" and not supersession.are_single_sentences(old, new):
            continue  # a long statement of an assistant makes no clear question
        how = similarity.compare(old.text, new.text, renames=gathered.renames)
        if how.is_doubtful if may else how.replaces:
            why = confidence.DOUBTFUL_REPLACEMENT if may else confidence.explain_refusal(pinned=old.pinned)
            return Action(
                kind="ask", project_seq=snapshot.project_seq, memory=old, other=new,
                ask_confidence=similarity.DOUBTFUL if may else how.confidence,
                reason=why,
                evidence=(new.id, old.id, *(source.uuid for source in new.provenance[:1])),
            )  # fmt: skip
    return None


# --- promote and raise


def _promote(snapshot: Snapshot, _: Gathered) -> Looks:
    """Gives a longer tier to what is sure and was said in two sessions."""
    for memory in snapshot.own:
        may = memory.tier in ("session", "daily") and memory.is_alive and memory.origin not in UNSTATED
        if not may or ("promote", memory.id) in snapshot.undone or not actions.is_sure(memory):
            yield None
            continue
        first = {source.session_id: source.uuid for source in reversed(memory.provenance) if source.role != "beside"}
        yield Action(
            kind="promote", project_seq=snapshot.project_seq, memory=memory,
            reason=f"{memory.id} is sure ({memory.confidence * 100:.0f}) and was told in {display.amount(len(memory.sessions), 'session')}",
            evidence=tuple(sorted(first.values())[:4]), tier="durable",
            after=(snapshot.aged(replace(memory, tier="durable")),),
        )  # fmt: skip


def _raise(snapshot: Snapshot, _: Gathered) -> Looks:
    """Makes candidates of facts that recur and no habit covers; those that pass the thresholds become memories."""
    for fact in filter(actions.recurs, snapshot.facts):
        candidate, queued = actions.build_candidate(fact), snapshot.raised.get(fact.fingerprint)
        is_known = queued is not None and (queued.status == "dropped" or actions.strip_history(queued) == candidate)
        if is_known or ("raise", fact.fingerprint) in snapshot.undone:
            yield None
            continue
        yield Action(
            kind="raise", project_seq=snapshot.project_seq, fact=fact, confidence=candidate.confidence,
            reason=f"{candidate.reason}: {candidate.text}", evidence=fact.evidence,
        )  # fmt: skip


# --- lift


def may_hold_everywhere(memory: Memory, *, project_name: str) -> bool:
    """Whether a project's memory says how the user works, in words that mean the same in other projects."""
    return (
        memory.is_alive
        and memory.scope == "project"
        and memory.authority == "user"
        and memory.origin not in UNSTATED
        and not memory.pinned
        and (memory.gate == "behavioral" or memory.category == "preference")
        and not scope.points_at_place(memory.text, project_name=project_name)
    )


def _lift(snapshot: Snapshot) -> Looks:
    """Makes general memories of what users asked for in several projects, the most frequent first.

    Each statement is compared with all those that say it in full.
    """
    abroad = snapshot.abroad
    ranked = sorted(abroad.values(), key=lambda memory: (duplicates.rank_evidence(memory)[:5], sort_key(memory)))
    groups: dict[str, list[Memory]] = {memory.id: [memory] for memory in ranked}
    for part, full in chain.from_iterable(find_restatements(ranked)):
        if (abroad[part].gate == "correction") == (abroad[full].gate == "correction"):
            groups[full].append(abroad[part])
    for group in sorted(groups.values(), key=lambda group: -len({memory.project_seq for memory in group})):
        yield _lifted(snapshot, group)


def _lifted(snapshot: Snapshot, group: list[Memory]) -> Action | None:
    best = group[0]
    if len({memory.project_seq for memory in group}) < PROJECTS:
        return None
    around = [memory for memory in snapshot.memories.values() if memory.is_alive]
    if any(similarity.compare(best.text, memory.text).says_all or _are_opposed(memory, best) for memory in around):
        return None
    # What a general memory says already is not lifted.
    asking = [
        best,
        *(
            member
            for member in group[1:]
            if not any(similarity.compare(member.text, wide.text).says_all for wide in around)
        ),
    ]
    projects = {memory.project_seq for memory in asking}
    against = {memory.project_seq for memory in snapshot.abroad.values() if _are_opposed(memory, best)}
    ident = scope.identity(snapshot.project_seq, best.text)
    is_known = ident in snapshot.memories or ("lift", ident) in snapshot.undone
    if len(projects) < PROJECTS or len(projects) <= len(against) or is_known:
        return None
    made = replace(
        best, id=ident, scope="user" if best.gate == "behavioral" else "global", project_seq=snapshot.project_seq,
        created_at=min(memory.created_at for memory in asking), seq=0, version=1,
    )  # fmt: skip
    return Action(
        kind="lift", project_seq=snapshot.project_seq, memory=best, after=(snapshot.aged(made),),
        reason=f"the user asked for it in {len(projects)} projects: it holds everywhere",
        evidence=tuple(memory.id for memory in asking),
    )  # fmt: skip


def _are_opposed(memory: Memory, other: Memory) -> bool:
    pairs = ((memory.text, other.text), (other.text, memory.text))
    return any(similarity.compare(older, newer).replaces for older, newer in pairs)


# --- prune


def _archive(snapshot: Snapshot, _: Gathered) -> Looks:
    """Archives what has decayed, was superseded a while ago, or was for a day only."""
    for memory in snapshot.own:
        if not (why := _why_archived(snapshot, memory)):
            yield None
            continue
        last = max(memory.provenance, key=lambda source: (source.at, source.uuid))
        yield Action(
            kind="archive", project_seq=snapshot.project_seq, memory=memory, reason=f"{memory.id} {why}",
            evidence=(memory.superseded_by or last.uuid,), tier="archive", after=(replace(memory, tier="archive"),),
        )  # fmt: skip


def _why_archived(snapshot: Snapshot, memory: Memory) -> str:
    """Why a memory is to be archived, "" if it stays."""
    today = snapshot.day(memory.project_seq)
    is_due = memory.archive_at < today  # the active day that is stored for it has passed
    is_the_users = memory.authority == "user" and memory.tier == "durable"
    if memory.tier == "archive" or memory.pinned or (is_the_users and not is_due):
        return ""
    if memory.fresh_at <= snapshot.brought_back.get(memory.id, ""):
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
    if confidence.has_warm_floor(memory) or passed <= confidence.MAX_DAILY_HOT_DAYS:
        return ""
    return f"is a daily memory, neither told nor used for {passed} active days"


#: The phases after lifting, repeated in this order until nothing is left to do.
PHASES: tuple[Callable[[Snapshot, Gathered], Looks], ...] = (
    _merge, _strengthen, _supersede, _ask, _promote, _raise, _archive,
)  # fmt: skip
