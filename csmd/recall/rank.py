"""How search results are scored; pure arithmetic.

Each list is normalised to 0-1 before it is fused: plain rank fusion lost to the better single list on both measured
sets (facts: retrieval). What speaks for a row beside its own words and sense is added to that, each by one weight, and
named in its factors: a weight of 0 takes that factor out (tests/bench/ablation.py).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from csmd.model import AUTHORITY_RANK, GATE_PRIORITY, Memory

LEXICAL_WEIGHT = 0.6
VECTOR_WEIGHT = 0.4
#: Of the best score of a list so much is worth nothing at most.
ZERO_AT = 0.5
#: What a turn gains from the better one beside it: an answer stands beside its question.
NEIGHBOUR_WEIGHT = 0.3
#: What it gains where the question's words fall all over its session.
SESSION_WEIGHT = 0.7
#: A word that falls so often in a session counts half of one that never stops.
OFTEN = 0.75
#: What a turn gains from the memory that it states: as far as that one's cosine is above what any two texts have, and
#: above that of the one in this place by nearness. Where most turns state something, that one does says little.
STATED_WEIGHT = 1.0
STATED_FLOOR, STATED_RANK = 0.2, 60
#: What is gained by having been said in the time that the question names, and by being of the kind that it asks for.
TIME_WEIGHT = 0.3
KIND_WEIGHT = 0.1
#: What reaches a memory from one that it is linked with, and a turn or memory from the failure that it mended.
LINK_WEIGHT = 0.3
MENDED_WEIGHT = 0.5
#: The newest of what was found gains this and what is a horizon older a third of it (design section 4: at most 0.10).
RECENCY_WEIGHT = 0.05
RECENCY_DAYS = 90.0
#: What holds everywhere says a little less about one project than what was said in it.
EVERYWHERE_SHARE = 0.95
MEMORY_SHARE = 0.7
#: What is left of the score of what was superseded.
SUPERSEDED_SHARE = 0.5
#: A vector of unit length times this, as int8 (store/embed_worker.py).
VECTOR_SCALE = 127 / 0.25
#: What a match with a symptom's words counts beside one with a memory's own.
SYMPTOM_SHARE = 0.9
#: In front of a list what comes from a session that stands there already counts so much less each time: whoever reads no
#: further than that sees more than the one session which speaks of everything.
FRONT, AGAIN_SHARE = 5, 0.9
#: How many scored rows of each list are fused.
POOL = 100
PASSAGE_CHARACTERS = 1200
TWIN_OVERLAP = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One row's score and what it is the sum of."""

    seq: int
    score: float
    factors: dict[str, float]


def cosine(squared_distance: float) -> float:
    """The cosine of two unit vectors from the squared distance of their int8 forms."""
    return 1.0 - squared_distance / (2 * VECTOR_SCALE * VECTOR_SCALE)


def nearness(close: Mapping[int, float]) -> dict[int, float]:
    """How much nearer the nearest memories are than most of them, by their cosines, the nearest first."""
    best = sorted(close, key=lambda seq: (-close[seq], seq))
    floor = max(STATED_FLOOR, close[best[STATED_RANK]] if len(best) > STATED_RANK else 0.0)
    return {seq: max(0.0, close[seq] - floor) for seq in best[:STATED_RANK]}


def normalised(scores: Mapping[int, float]) -> dict[int, float]:
    """Scores moved to 0-1; a single score is 1, and 0 is the least of them or ZERO_AT of the greatest.

    Of a few that match about as well none is worth nothing because it comes last.
    """
    if not scores:
        return {}
    high = max(scores.values())
    low = min(*scores.values(), ZERO_AT * high)
    if high <= low:
        return dict.fromkeys(scores, 1.0)
    return {key: (value - low) / (high - low) for key, value in scores.items()}


def fuse(lexical: Mapping[int, float], vector: Mapping[int, float]) -> dict[int, Scored]:
    """Both lists as one; where a list is missing, the other counts whole."""
    words, sense = normalised(lexical), normalised(vector)
    parts = [(words, LEXICAL_WEIGHT, "words"), (sense, VECTOR_WEIGHT, "sense")]
    total = sum(weight for scores, weight, _ in parts if scores) or 1.0
    fused: dict[int, Scored] = {}
    for seq in {*words, *sense}:
        factors = {name: round(scores[seq] * weight / total, 4) for scores, weight, name in parts if seq in scores}
        score = sum(scores.get(seq, 0.0) * weight for scores, weight, _ in parts) / total
        fused[seq] = Scored(seq=seq, score=score, factors=factors)
    return fused


def raised(scored: Mapping[int, Scored], by: Mapping[int, float], name: str, *, weight: float) -> dict[int, Scored]:
    """The scores with a share of another one added, which `factors` names; what only that one knows comes in by it."""
    result = dict(scored)
    for seq, value in by.items():
        bonus = weight * value
        own = scored.get(seq)
        if bonus:
            factors = {**(own.factors if own else {}), name: round(bonus, 4)}
            result[seq] = Scored(seq=seq, score=(own.score if own else 0.0) + bonus, factors=factors)
    return result


def neighbours(scored: Mapping[int, Scored], near: Mapping[int, Sequence[int]]) -> dict[int, float]:
    """Of each the best score beside it: an answer stands beside its question."""
    return {
        seq: max((scored[other].score for other in near.get(seq, ()) if other in scored), default=0.0) for seq in scored
    }


def spread(found: Sequence[Mapping[int, int]], sessions: int) -> dict[int, float]:
    """Which share of a question falls into each session, 0-1: `found` has for each of its words session -> turns with it.

    Rare words count more; that a word falls often counts less and less. Of a question that falls nowhere as a whole no
    session is said to hold it.
    """
    weight: dict[int, float] = {}
    total = 0.0
    for turns in found:
        rare = _rarity(len(turns), sessions)
        total += rare
        for session, number in turns.items():
            weight[session] = weight.get(session, 0.0) + rare * number / (number + OFTEN)
    return {session: value / total for session, value in weight.items()} if total else {}


def _rarity(holding: int, sessions: int) -> float:
    """How much a word says that stands in so many of the sessions: the logarithm of its rarity."""
    return max(0.0, math.log((sessions + 1) / (holding + 0.5))) if holding else 0.0


def varied(scored: Sequence[tuple[str, float]]) -> list[int]:
    """The places of (thread, score), best first, so that no thread fills the front alone; behind it their order is kept."""
    left = list(range(len(scored)))
    front: list[int] = []
    shown: Counter[str] = Counter()
    while left and len(front) < FRONT:
        best = max(left, key=lambda at: scored[at][1] * AGAIN_SHARE ** shown[scored[at][0]])
        left.remove(best)
        front.append(best)
        shown[scored[best][0]] += 1
    return [*front, *left]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A hit as its order is decided: the thread it belongs to, when it was said, how well it answers by itself, its stems.

    `asked` are those of the question in it, `overturned_by` the keys of hits that replaced it; `replaces` when it says
    itself that something stands in another's place, `retracts` that what was said is not so, `in_all` its score with what
    speaks for it from beside, `overtakes` the keys of earlier hits that hold another value of what it says has changed. Hits of no named project are compared within their thread only.
    """

    key: str
    thread: str
    at: str
    score: float
    asked: frozenset[str]
    stems: frozenset[str]
    overturned_by: frozenset[str] = frozenset()
    project: str = ""
    replaces: bool = False
    retracts: bool = False
    in_all: float = 0.0
    overtakes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """When a later hit comes before an earlier one: the least shares of its scores and asked words, and of common words.

    `one_subject` is a share of the shorter one's words. Chosen on the labelled questions (docs/benchmarks.md).
    """

    as_good: float
    as_much_asked: float
    one_subject: float
    as_good_in_all: float = 0.0


#: A thread stays with its subject, so that few common words tell that both speak of the same.
IN_A_THREAD = Alike(as_good=0.9, as_much_asked=0.75, one_subject=0.2)
#: One that says "instead of" need not answer as well: it tells more of the new than of what was asked about.
REPLACING = Alike(as_good=0.8, as_much_asked=0.6, one_subject=0.15)
#: One that begins with "thinking again" is short and names what it takes back by a word or two.
RETRACTING = Alike(as_good=0.6, as_much_asked=0.3, one_subject=0.3, as_good_in_all=0.7)
#: Another thread of the project may have a subject of its own: half of the words are needed, and that its thread speaks
#: for it as much.
ELSEWHERE = Alike(as_good=0.85, as_much_asked=0.75, one_subject=0.5, as_good_in_all=0.9)

#: One that says that it is otherwise by now, and how, tells more of the new than of what was asked about, in any thread.
OVERTAKING = Alike(as_good=0.3, as_much_asked=0.2, one_subject=0.0, as_good_in_all=0.4)


def newest_first(hits: Sequence[Place]) -> list[str]:
    """The keys of hits (best first) so that what was overturned stands behind what overturned it.

    People seldom say that they change their mind: of a project's hits that speak of the same and answer about as well
    the later one comes right before the earlier one; nothing else moves.
    """
    return ordered(hits)[0]


def ordered(hits: Sequence[Place]) -> tuple[list[str], dict[str, str]]:
    """The order of `newest_first`, and for each hit that was put before another one that one's key."""
    ordered: list[Place] = []
    before: dict[str, str] = {}
    for hit in hits:
        first = next((at for at, other in enumerate(ordered) if _gives_way(other, hit)), len(ordered))
        if first < len(ordered):
            before[hit.key] = ordered[first].key
        ordered.insert(first, hit)
    for hit in [one for one in ordered if one.overturned_by]:
        here = ordered.index(hit)
        for new in [one for one in ordered[here + 1 :] if one.key in hit.overturned_by]:
            ordered.remove(new)
            ordered.insert(ordered.index(hit), new)
            before[new.key] = hit.key
    return [hit.key for hit in ordered], before


def _gives_way(earlier: Place, later: Place) -> bool:
    return earlier.at < later.at and any(_stands(later, earlier, least) for least in _ways(earlier, later))


def _ways(earlier: Place, later: Place) -> list[Alike]:
    """The conditions of which any lets `later` stand before `earlier`; none where they have nothing to do with each other."""
    overtaking = [OVERTAKING] * (earlier.key in later.overtakes)
    if earlier.thread and earlier.thread == later.thread:
        return [IN_A_THREAD, *overtaking, *[REPLACING] * later.replaces, *[RETRACTING] * later.retracts]
    if earlier.thread and later.thread and earlier.project and earlier.project == later.project:
        return [ELSEWHERE, *overtaking]
    return []


def _stands(later: Place, earlier: Place, least: Alike) -> bool:
    if later.score < least.as_good * earlier.score or later.in_all < least.as_good_in_all * earlier.in_all:
        return False
    if len(earlier.asked & later.asked) < least.as_much_asked * len(earlier.asked):
        return False
    return len(earlier.stems & later.stems) >= least.one_subject * min(len(earlier.stems), len(later.stems))


def own_match(factors: Mapping[str, float]) -> float:
    """How well a row answers by its own words and sense, without what speaks for it from beside."""
    return factors.get("words", 0.0) + factors.get("sense", 0.0)


def recency(days_behind: float) -> float:
    """What a row gains that is so many days older than the newest of what was found, 0-1."""
    return math.pow(3.0, -max(0.0, days_behind) / RECENCY_DAYS)


def memory_weight(memory: Memory, *, sure: float | None = None) -> float:
    """What a memory's standing multiplies its match by: gate, authority and confidence (`sure`: today's), within a fifth.

    MEMORY_SHARE levels it with turns: a short text's best match is as good as 1, and would
    stand above every passage that answers at length.
    """
    weight = 0.8 + 0.15 * (memory.confidence if sure is None else sure)
    weight += 0.025 * GATE_PRIORITY[memory.gate] + 0.025 * AUTHORITY_RANK[memory.authority]
    return MEMORY_SHARE * weight * (SUPERSEDED_SHARE if memory.superseded_by or memory.is_refuted else 1.0)
