"""What comes in over the graph: the one place where a hit's neighbours in meaning, not in its session, are looked up.

One hop each, in one statement for all that was found: a failure to what mended it, what somebody reported to the memory
that explains it, a memory to those linked with it. What is superseded brings what replaced it. Topics come in here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from csmd.distill import errors
from csmd.recall.rank import Scored
from csmd.store import failures, memories, nearby, search
from csmd.store.sqlite import Rows

#: How many of the best are asked for what they are linked with.
MOST = 40
#: How much of a hit's score reaches what is linked with it, by relationship; what is not named here leads nowhere.
SHARES: Mapping[str, float] = {
    "superseded_by": 1.0,
    "merged_into": 1.0,
    "symptom_of": 1.0,
    "caused": 0.5,
    "renamed_to": 0.5,
    "elaborates": 0.5,
    "contradicts": 0.5,
}


def linked(rows: Rows, scored: Mapping[int, Scored], *, projects: Sequence[int] | None) -> dict[int, float]:
    """Memory -> the best share of a score that reaches it from a memory which it is linked with."""
    best = sorted(scored.values(), key=lambda row: (-row.score, row.seq))[:MOST]
    reached: dict[int, float] = {}
    for seq, other, relationship, weight in nearby.linked(rows, [row.seq for row in best], projects=projects):
        share = scored[seq].score * min(weight, 1.0) * SHARES.get(relationship, 0.0)
        reached[other] = max(share, reached.get(other, 0.0))
    return reached


def explained(rows: Rows, turns: Mapping[int, Scored], *, projects: Sequence[int] | None) -> dict[int, float]:
    """Memory -> the best score of a turn that reports what it explains."""
    best = sorted(turns.values(), key=lambda row: (-row.score, row.seq))[:MOST]
    reached: dict[int, float] = {}
    for turn, memory in nearby.explained(rows, [row.seq for row in best], projects=projects):
        reached[memory] = max(turns[turn].score, reached.get(memory, 0.0))
    return reached


def mended(rows: Rows, query: str, *, projects: Sequence[int] | None) -> tuple[list[int], list[int]]:
    """(turns, memories) that tell what mended the failure which a question names, by its fingerprint; few or none."""
    pasted = errors.pasted(query, at="", uuid="")
    if pasted is None:
        return [], []
    same = failures.same_message(rows, pasted.message, other_than=pasted.fingerprint, projects=projects)
    known = [failures.seen(rows, one, projects) for one in (same, pasted.fingerprint) if one]
    uuids = [one.fixed_uuid for one in known if one and one.fixed_uuid]
    told = [memories.by_id(rows, one.memory_id) for one in known if one and one.memory_id]
    among = [one.seq for one in told if one and (projects is None or one.project_seq in projects)]
    return list(search.turns_of_uuids(rows, uuids).values()), among
