"""Plans a dream over one project: a snapshot to actions, in phases; pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain

from csmd.dream import actions
from csmd.dream.actions import UNSTATED, Action, DreamPlan, Snapshot, Tally, sort_key
from csmd.dream.pair_finding import NO_RELATED, RelatedMemories, find_related, find_restatements, is_same
from csmd.knowledge import Memory
from csmd.memory import confidence, duplicates, scope, supersession
from csmd.text import display, similarity, tokens
from csmd.vocabulary import AUTHORITY_RANK, NEVER, Tier

#: A merged memory gets the longer tier of the two.
_TIER_RANK: dict[Tier, int] = {"archive": 0, "session": 1, "daily": 2, "durable": 3}
#: Projects in which a user must have asked for a statement that is lifted.
MIN_PROJECTS = 3
#: Active days after which a superseded memory is archived.
SUPERSEDED_DAYS = 30
#: The steps of a phase, one look each: an action, or None if there is nothing to do.
PhaseSteps = Iterator[Action | None]


def plan_project(
    snapshot: Snapshot, *, is_unchanged: bool = False
) -> Generator[None, None, tuple[DreamPlan, Snapshot]]:
    """Plans what a dream does in one project, in small steps; returns the plan and the resulting snapshot.

    With `is_unchanged`, comparing the same contents found nothing before: nothing is compared, the tally counts no
    duplicates, and only what time and facts bring is planned.
    """
    related = NO_RELATED if is_unchanged else (yield from find_related(snapshot))
    counts = tally(snapshot, related)
    result = snapshot.copy()
    planned = yield from _run_phase(_lift(result), result)
    if planned:  # a new memory may belong together with others
        related = yield from find_related(result)
    while True:
        added: list[Action] = []
        for phase in PHASES:
            added += yield from _run_phase(phase(result, related), result)
        if not added:
            return DreamPlan(actions=tuple(planned), tallies=(counts,)), result
        planned += added


def _run_phase(steps: PhaseSteps, result: Snapshot) -> Generator[None, None, list[Action]]:
    """Returns the actions of a phase, each planned from the results of those before it."""
    planned: list[Action] = []
    for action in steps:
        if action is not None:
            result.apply(action)
            planned.append(action)
        yield
    return planned


# --- counting


def tally(snapshot: Snapshot, related: RelatedMemories) -> Tally:
    """Counts a project's memories by tier, how many repeat another one, and how stale they are."""
    alive = [memory for memory in snapshot.own if memory.is_alive]
    staleness: dict[str, list[float]] = defaultdict(list)
    for memory in sorted(alive, key=lambda memory: memory.tier):
        staleness[memory.tier].append(_staleness(snapshot, memory))
    means = {tier: round(sum(values) / len(values), 4) for tier, values in staleness.items()}
    repeated = sum(memory.id in related.duplicates for memory in alive)
    tiers = {tier: len(values) for tier, values in staleness.items()}
    return Tally(project_seq=snapshot.project_seq, tiers=tiers, duplicates=repeated, staleness=means)


def _staleness(snapshot: Snapshot, memory: Memory) -> float:
    """Returns how near a memory is to the archive: 0 if just stated or used, or never archived; 1 if it is due."""
    if memory.pinned or memory.archive_at >= NEVER:
        return 0.0
    first_day = snapshot.day(memory.project_seq, memory.fresh_at[:10])
    lifetime = memory.archive_at - first_day
    return min(1.0, max(0.0, (snapshot.day(memory.project_seq) - first_day) / lifetime)) if lifetime > 0 else 1.0


# --- merge and strengthen


def _merge(snapshot: Snapshot, related: RelatedMemories) -> PhaseSteps:
    """Merges memories that state the same: the best evidenced wording stays, or the one that covers the other.

    Of two that state it in other words the better wording (`duplicates.rank_wording`) stays.
    """

    def best_first(memory: Memory) -> tuple[object, ...]:
        wording = duplicates.rank_wording(memory) if frozenset(pair) in related.reworded else ()
        # Pinned, by authority, confidence, evidence; then the plainest, the oldest.
        return wording, duplicates.rank_evidence(memory)[:4], len(memory.text), sort_key(memory)

    for pair in related.restated:
        alive = sorted((memory for memory in map(snapshot.alive, pair) if memory is not None), key=best_first)
        sides = (alive, alive[::-1]) if len(alive) == 2 else ()
        allowed = ((absorbed, keeper) for keeper, absorbed in sides if _may_merge(snapshot, related, absorbed, keeper))
        yield next((_plan_merge(snapshot, related, absorbed, keeper) for absorbed, keeper in allowed), None)


def _plan_merge(snapshot: Snapshot, related: RelatedMemories, absorbed: Memory, keeper: Memory) -> Action:
    sources = actions.find_confirming(snapshot, keeper, absorbed)
    confirmed = actions.confirm(keeper, sources)
    tier = max(confirmed.tier, absorbed.tier, key=_TIER_RANK.__getitem__)
    if tokens.normalise(keeper.text) == tokens.normalise(absorbed.text):
        reason = f"{absorbed.id} says the same in the same words as {keeper.id}"
    elif {keeper.id, absorbed.id} in related.reworded or is_same(keeper.text, absorbed.text):
        reason = f"{absorbed.id} says the same in other words as {keeper.id}"
    else:
        reason = f"{absorbed.id} is fully covered by {keeper.id}"
    result = snapshot.aged(actions.absorb(keeper, absorbed, confirmed, tier))
    return Action(
        kind="merge", project_seq=snapshot.project_seq, memory=absorbed, other=keeper, reason=reason,
        evidence=(keeper.id, *(source.uuid for source in sources)), confidence=confirmed.confidence, tier=tier,
        after=(replace(absorbed, tier="archive", superseded_by=keeper.id), result),
    )  # fmt: skip


def _may_merge(snapshot: Snapshot, related: RelatedMemories, absorbed: Memory, keeper: Memory) -> bool:
    """Whether a merge loses no word, no weight and no project in which the absorbed memory holds."""
    everywhere = {snapshot.project_seq: snapshot.everywhere}
    if absorbed.project_seq != snapshot.project_seq or _are_distinct(snapshot, absorbed, keeper):
        return False
    is_allowed = duplicates.is_visible_wherever(keeper, absorbed, everywhere=everywhere)
    return is_allowed and duplicates.may_merge_unasked(absorbed, keeper) and related.covers(keeper, absorbed)


def _are_distinct(snapshot: Snapshot, memory: Memory, other: Memory) -> bool:
    """Whether a person said that two memories are distinct, by undoing a merge or dropping a finding."""
    reached: set[str] = set()
    linked = {memory.id}
    while linked - reached:  # merges may have been chained: one into a second, that into a third
        reached = linked
        linked = reached.union(*(pair for pair in snapshot.unmerged if not reached.isdisjoint(pair)))
    fingerprint = " ".join(sorted((memory.id, other.id)))
    projects = (memory.project_seq, other.project_seq)
    keys = {(project, kind, fingerprint) for project in projects for kind in duplicates.PAIR_KINDS}
    return other.id in reached or not keys.isdisjoint(snapshot.dropped)


def _strengthen(snapshot: Snapshot, related: RelatedMemories) -> PhaseSteps:
    """Raises the confidence of memories that another session states in full, if the two cannot be merged."""
    for memory_id, other_id in chain.from_iterable((pair, pair[::-1]) for pair in related.restated):
        memory, other = snapshot.alive(memory_id), snapshot.alive(other_id)
        yield _plan_strengthening(snapshot, related, memory, other) if memory and other else None


def _plan_strengthening(snapshot: Snapshot, related: RelatedMemories, memory: Memory, other: Memory) -> Action | None:
    project = snapshot.project_seq
    if {memory.project_seq, other.project_seq} != {project} or memory.origin in UNSTATED or memory.pinned:
        return None
    if ("strengthen", memory.id) in snapshot.undone or (memory.gate == "correction") != (other.gate == "correction"):
        return None
    confirming = actions.find_confirming(snapshot, memory, other)
    sources = [source for source in confirming if source.session_id not in memory.sessions]
    if not sources or _are_distinct(snapshot, memory, other) or not related.covers(other, memory):
        return None
    confirmed = actions.confirm(memory, sources)
    sessions = display.amount(len({source.session_id for source in sources}), "more session")
    return Action(
        kind="strengthen", project_seq=project, memory=memory, other=other, after=(snapshot.aged(confirmed),),
        reason=f"{other.id} says in {sessions} what {memory.id} says",
        evidence=(other.id, *(source.uuid for source in sources)), confidence=confirmed.confidence, tier=confirmed.tier,
    )  # fmt: skip


# --- supersede and ask


def _find_contested(snapshot: Snapshot, related: RelatedMemories) -> Iterator[tuple[Memory, list[Memory]] | None]:
    """Yields each memory that may be contradicted, with the later ones that may contradict it."""
    for memory_id in [memory.id for memory in snapshot.own if memory.id in related.close]:
        old = snapshot.alive(memory_id)
        if old is None or memory_id in snapshot.settled:
            yield None
            continue
        refused = snapshot.refused.get(memory_id, frozenset())
        others = (snapshot.alive(other) for other in related.close[memory_id] if other not in refused)
        yield old, [new for new in others if new is not None and _may_contradict(snapshot, old, new)]


def _may_contradict(snapshot: Snapshot, old: Memory, new: Memory) -> bool:
    """Whether a memory was stated by someone since another one was last stated, or kept by a person."""
    if new.origin in UNSTATED or new.authority == "external":
        return False
    since = max(snapshot.stated_at(old), snapshot.let_stand.get(old.id, ""))
    # As in `memory.supersession`: a general memory counts against a project's from when it was first stated.
    is_general = old.scope == "project" != new.scope
    return (new.created_at if is_general else snapshot.stated_at(new)) > since


def _may_overturn(old: Memory, new: Memory) -> bool:
    """Whether one memory may supersede another without a person (as in `memory.supersession`)."""
    is_seen_there = old.scope == "project" or new.project_seq == old.project_seq
    return is_seen_there and AUTHORITY_RANK[new.authority] >= AUTHORITY_RANK[old.authority]


#: Plans what follows from a memory and the later ones that may contradict it.
PlanContested = Callable[[Snapshot, RelatedMemories, Memory, list[Memory]], Action | None]


def _plan_contested(snapshot: Snapshot, related: RelatedMemories, *, plan: PlanContested) -> PhaseSteps:
    """Plans an action for each memory that may be contradicted."""
    for contested in _find_contested(snapshot, related):
        yield plan(snapshot, related, *contested) if contested else None


def _plan_supersession(
    snapshot: Snapshot, related: RelatedMemories, old: Memory, others: list[Memory]
) -> Action | None:
    """Plans that the newest contradicting memory supersedes one, if it may without a person."""
    for new in sorted(others, key=lambda memory: (snapshot.stated_at(memory), sort_key(memory)), reverse=True):
        if old.pinned or not _may_overturn(old, new):
            continue
        comparison = similarity.compare(old.text, new.text, renames=related.renames)
        if comparison.replaces:
            lowered = old.confidence - confidence.compute_loss(comparison.confidence)
            confidence_left = round(max(confidence.MIN_REMAINING, lowered), 4)
            ended = replace(old, confidence=confidence_left, superseded_by=new.id)
            stated_on = snapshot.stated_at(new)[:10]
            return Action(
                kind="supersede", project_seq=snapshot.project_seq, memory=old, other=new,
                reason=f"{new.id} says otherwise since {stated_on}: {', '.join(comparison.reasons)}",
                evidence=(new.id, *(source.uuid for source in new.provenance[:1])), confidence=confidence_left,
                after=(snapshot.aged(ended),),
            )  # fmt: skip
    return None


def _plan_question(snapshot: Snapshot, related: RelatedMemories, old: Memory, others: list[Memory]) -> Action | None:
    """Plans to ask a person if a memory may not be replaced without one, or if the contradiction is doubtful."""
    for new in sorted(others, key=sort_key):
        if f"{old.id}:{new.id}" in snapshot.questioned:
            continue
        may_replace = _may_overturn(old, new) and not old.pinned
        if may_replace and new.authority != "user" and not supersession.are_single_sentences(old, new):
            continue  # a long statement of an assistant makes no clear question
        comparison = similarity.compare(old.text, new.text, renames=related.renames)
        if comparison.is_doubtful if may_replace else comparison.replaces:
            return Action(
                kind="ask", project_seq=snapshot.project_seq, memory=old, other=new,
                ask_confidence=similarity.DOUBTFUL_CONFIDENCE if may_replace else comparison.confidence,
                reason=confidence.DOUBTFUL_REPLACEMENT if may_replace else confidence.explain_refusal(pinned=old.pinned),
                evidence=(new.id, old.id, *(source.uuid for source in new.provenance[:1])),
            )  # fmt: skip
    return None


# --- promote and raise


def _promote(snapshot: Snapshot, _: RelatedMemories) -> PhaseSteps:
    """Gives a longer tier to sure memories that were stated in two sessions."""
    for memory in snapshot.own:
        is_eligible = memory.tier in ("session", "daily") and memory.is_alive and memory.origin not in UNSTATED
        if not is_eligible or ("promote", memory.id) in snapshot.undone or not actions.is_sure(memory):
            yield None
            continue
        first = {source.session_id: source.uuid for source in reversed(memory.provenance) if source.role != "beside"}
        sessions = display.amount(len(memory.sessions), "session")
        yield Action(
            kind="promote", project_seq=snapshot.project_seq, memory=memory,
            reason=f"{memory.id} has confidence {memory.confidence * 100:.0f} and was stated in {sessions}",
            evidence=tuple(sorted(first.values())[:4]), tier="durable",
            after=(snapshot.aged(replace(memory, tier="durable")),),
        )  # fmt: skip


def _raise(snapshot: Snapshot, _: RelatedMemories) -> PhaseSteps:
    """Makes candidates of facts that recur and no habit covers; those that pass the thresholds become memories."""
    for fact in filter(actions.is_recurring, snapshot.facts):
        candidate, queued = actions.build_candidate(fact), snapshot.raised_facts.get(fact.fingerprint)
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
    is_users = memory.authority == "user" and memory.origin not in UNSTATED and not memory.pinned
    is_habit = memory.gate == "behavioral" or memory.category == "preference"
    is_candidate = memory.is_alive and memory.scope == "project" and is_users and is_habit
    return is_candidate and not scope.points_at_place(memory.text, project_name=project_name)


def _lift(snapshot: Snapshot) -> PhaseSteps:
    """Makes general memories of statements that users made in several projects, the most frequent first.

    Each statement is compared with all those that cover it.
    """
    abroad = snapshot.stated_elsewhere
    ranked = sorted(abroad.values(), key=lambda memory: (duplicates.rank_evidence(memory)[:5], sort_key(memory)))
    groups: dict[str, list[Memory]] = {memory.id: [memory] for memory in ranked}
    for part, full in chain.from_iterable(find_restatements(ranked)):
        if (abroad[part].gate == "correction") == (abroad[full].gate == "correction"):
            groups[full].append(abroad[part])
    for group in sorted(groups.values(), key=lambda group: -len(_projects_of(group))):
        yield _plan_lift(snapshot, group)


def _projects_of(memories: Iterable[Memory]) -> set[int]:
    return {memory.project_seq for memory in memories}


def _plan_lift(snapshot: Snapshot, group: list[Memory]) -> Action | None:
    best = group[0]
    if len(_projects_of(group)) < MIN_PROJECTS:
        return None
    general = [memory for memory in snapshot.memories.values() if memory.is_alive]
    if _is_covered(best, general) or any(_are_opposed(memory, best) for memory in general):
        return None
    asking = [member for member in group if not _is_covered(member, general)]
    projects = _projects_of(asking)
    opposed = _projects_of(memory for memory in snapshot.stated_elsewhere.values() if _are_opposed(memory, best))
    lifted_id = scope.identity(snapshot.project_seq, best.text)
    is_known = lifted_id in snapshot.memories or ("lift", lifted_id) in snapshot.undone
    if len(projects) < MIN_PROJECTS or len(projects) <= len(opposed) or is_known:
        return None
    lifted = replace(
        best, id=lifted_id, scope="user" if best.gate == "behavioral" else "global", project_seq=snapshot.project_seq,
        created_at=min(memory.created_at for memory in asking), seq=0, version=1,
    )  # fmt: skip
    return Action(
        kind="lift", project_seq=snapshot.project_seq, memory=best, after=(snapshot.aged(lifted),),
        reason=f"the user asked for it in {len(projects)} projects: it holds everywhere",
        evidence=tuple(memory.id for memory in asking),
    )  # fmt: skip


def _is_covered(memory: Memory, others: Iterable[Memory]) -> bool:
    """Whether one of these memories states everything that a memory states."""
    return any(similarity.compare(memory.text, other.text).says_all for other in others)


def _are_opposed(memory: Memory, other: Memory) -> bool:
    pairs = ((memory.text, other.text), (other.text, memory.text))
    return any(similarity.compare(older, newer).replaces for older, newer in pairs)


# --- prune


def _archive(snapshot: Snapshot, _: RelatedMemories) -> PhaseSteps:
    """Archives memories that have decayed, were superseded a while ago, or were for a day only."""
    for memory in snapshot.own:
        if not (reason := _why_archived(snapshot, memory)):
            yield None
            continue
        last = max(memory.provenance, key=lambda source: (source.at, source.uuid))
        yield Action(
            kind="archive", project_seq=snapshot.project_seq, memory=memory, reason=f"{memory.id} {reason}",
            evidence=(memory.superseded_by or last.uuid,), tier="archive", after=(replace(memory, tier="archive"),),
        )  # fmt: skip


def _why_archived(snapshot: Snapshot, memory: Memory) -> str:
    """Returns why a memory is to be archived, "" if it stays."""
    today = snapshot.day(memory.project_seq)
    is_due = memory.archive_at < today  # the active day that is stored for it has passed
    is_durable = memory.authority == "user" and memory.tier == "durable"
    if memory.tier == "archive" or memory.pinned or (is_durable and not is_due):
        return ""
    if memory.fresh_at <= snapshot.brought_back.get(memory.id, ""):
        return ""
    if memory.superseded_by:
        since = snapshot.superseded_at.get(memory.id, memory.fresh_at)[:10]
        days = today - snapshot.day(memory.project_seq, since)
        if days > SUPERSEDED_DAYS:
            return f"was superseded on {since}, {days} active days ago"
    if not is_due:
        return ""
    if memory.tier != "daily":
        return f"has faded: neither stated nor used since {memory.fresh_at[:10]}"
    days = today - snapshot.day(memory.project_seq, memory.fresh_at[:10])
    if confidence.has_warm_floor(memory) or days <= confidence.MAX_DAILY_HOT_DAYS:
        return ""
    return f"is a daily memory, neither stated nor used for {days} active days"


#: The phases after lifting, repeated in this order until nothing is left to do.
PHASES: tuple[Callable[[Snapshot, RelatedMemories], PhaseSteps], ...] = (
    _merge, _strengthen, partial(_plan_contested, plan=_plan_supersession),
    partial(_plan_contested, plan=_plan_question), _promote, _raise, _archive,
)  # fmt: skip
