"""How search results are scored; pure arithmetic.

Each list is normalised to 0-1 before it is fused: plain rank fusion lost to the better single
list on both measured sets (facts: retrieval). Turns gain from their neighbours, memories from
the turn that states them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from csmd.model import AUTHORITY_RANK, GATE_PRIORITY, Memory

LEXICAL_WEIGHT = 0.5
VECTOR_WEIGHT = 0.5
NEIGHBOUR_WEIGHT = 0.3
MEMORY_SHARE = 0.7
#: What is left of the score of what was superseded.
SUPERSEDED_SHARE = 0.5
#: A vector of unit length times this, as int8 (store/embed_worker.py).
VECTOR_SCALE = 127 / 0.25
#: What a match with a symptom's words counts beside one with a memory's own.
SYMPTOM_SHARE = 0.9
#: How many scored rows of each list are fused.
POOL = 100
PASSAGE_CHARACTERS = 1200
TWIN_OVERLAP = 0.9
#: Of a thread's hits a later one comes first when it has this share of the earlier one's score and of its asked words,
#: and this share of the shorter one's words is in both. Chosen on the labelled questions (docs/benchmarks.md).
AS_GOOD = 0.6
AS_MUCH_ASKED = 0.5
ONE_SUBJECT = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One row's score and how it came about."""

    seq: int
    score: float
    factors: dict[str, float]


def cosine(squared_distance: float) -> float:
    """The cosine of two unit vectors from the squared distance of their int8 forms."""
    return 1.0 - squared_distance / (2 * VECTOR_SCALE * VECTOR_SCALE)


def normalised(scores: Mapping[int, float]) -> dict[int, float]:
    """Scores moved to 0-1 by their least and greatest; a single score is 1."""
    if not scores:
        return {}
    low, high = min(scores.values()), max(scores.values())
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
        factors = {name: round(scores[seq], 4) for scores, _, name in parts if seq in scores}
        score = sum(scores.get(seq, 0.0) * weight for scores, weight, _ in parts) / total
        fused[seq] = Scored(seq=seq, score=score, factors=factors)
    return fused


def with_neighbours(fused: Mapping[int, Scored], near: Mapping[int, Sequence[int]]) -> dict[int, Scored]:
    """Each score plus a share of its best neighbour's: an answer stands beside its question."""
    result: dict[int, Scored] = {}
    for seq, own in fused.items():
        best = max((fused[other].score for other in near.get(seq, ()) if other in fused), default=0.0)
        bonus = NEIGHBOUR_WEIGHT * best
        factors = {**own.factors, "neighbour": round(bonus, 4)} if bonus else own.factors
        result[seq] = Scored(seq=seq, score=own.score + bonus, factors=factors)
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A hit as its order is decided: the thread it belongs to, when it was said, its score, the stems it is made of.

    `asked` are those of the question in it, `overturned_by` the keys of hits that replaced it.
    """

    key: str
    thread: str
    at: str
    score: float
    asked: frozenset[str]
    stems: frozenset[str]
    overturned_by: frozenset[str] = frozenset()


def newest_first(hits: Sequence[Place]) -> list[str]:
    """The keys of hits (best first) so that what was overturned stands behind what overturned it.

    In one thread people seldom say that they change their mind: of hits that answer about as well the later one comes
    first. Each thread keeps the places that its hits have among the others', so that no thread gains by being long.
    """
    threads: dict[str, list[Place]] = {}
    for hit in hits:
        row = threads.setdefault(hit.thread or hit.key, [])
        row.insert(next((at for at, other in enumerate(row) if _gives_way(other, hit)), len(row)), hit)
    ordered = [threads[hit.thread or hit.key].pop(0) for hit in hits]
    for hit in [one for one in ordered if one.overturned_by]:
        here = ordered.index(hit)
        for new in [one for one in ordered[here + 1 :] if one.key in hit.overturned_by]:
            ordered.remove(new)
            ordered.insert(ordered.index(hit), new)
    return [hit.key for hit in ordered]


def _gives_way(earlier: Place, later: Place) -> bool:
    if earlier.at >= later.at or later.score < AS_GOOD * earlier.score:
        return False
    if len(earlier.asked & later.asked) < AS_MUCH_ASKED * len(earlier.asked):
        return False
    return len(earlier.stems & later.stems) >= ONE_SUBJECT * min(len(earlier.stems), len(later.stems))


def memory_weight(memory: Memory) -> float:
    """What a memory's standing multiplies its match by: gate, authority and confidence, within a fifth.

    MEMORY_SHARE levels it with turns: a short text's best match is as good as 1, and would
    stand above every passage that answers at length.
    """
    weight = 0.8 + 0.15 * memory.confidence
    weight += 0.025 * GATE_PRIORITY[memory.gate] + 0.025 * AUTHORITY_RANK[memory.authority]
    return MEMORY_SHARE * weight * (SUPERSEDED_SHARE if memory.superseded_by else 1.0)
