"""What lies one hop beside a memory: links, supersession, topics, sources.

What an edge is worth is a table and a sum; two statements read them, however many memories there are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from csmd.store import topics as stored
from csmd.store.sqlite import Rows

#: Relationship -> what it is worth from the memory it begins at, and from the one it leads to. What replaced a memory
#: is nearly always wanted, what it replaced seldom; a merged memory says nothing that the other does not say.
WORTH: dict[str, tuple[float, float]] = {
    "superseded_by": (1.0, 0.3),
    "symptom_of": (0.9, 0.9),
    "caused": (0.8, 0.8),
    "renamed_to": (0.7, 0.7),
    "elaborates": (0.7, 0.7),
    "refuted_by": (0.6, 0.6),
    "confirmed_by": (0.5, 0.5),
    "contradicts": (0.5, 0.5),
    "depends_on": (0.5, 0.5),
    "relates_to": (0.5, 0.5),
    "merged_into": (0.0, 0.0),
}
#: Relationships that somebody may draw by hand; the others have verbs of their own, which see to what follows from them.
DRAWN = tuple(sorted(set(WORTH) - {"superseded_by", "merged_into"}))
#: A shared topic of two memories, which is worth the less the more memories share it; the same session. Both are weak
#: ties: of what lies beside a hit an answer stands five times as often as by chance in its session, twice in its topics.
TOPIC, SESSION = 0.1, 0.1
TAGGED, PRODUCED = "same_topic", "same_session"
#: Neighbours of one memory that are told, at most.
MOST = 12
#: Topics and sessions of more memories than that tie nothing together.
WIDEST_TOPIC, WIDEST_SESSION = 20, 60

#: A neighbour: its row key, how it is related, the worth of that, 0-1.
Near = tuple[int, str, float]


def of_link(relationship: str, weight: float, *, outwards: bool) -> float:
    """The worth of a link, seen from the memory it begins at (`outwards`) or leads to."""
    there, back = WORTH.get(relationship, WORTH["relates_to"])
    return weight * (there if outwards else back)


def of_topic(members: int) -> float:
    """The worth of a topic that so many memories share: two share much."""
    return TOPIC / math.log2(max(members, 2))


def nearest(edges: Iterable[Near]) -> list[Near]:
    """The neighbours of one memory, each once by its strongest edge and a little for every other, the nearest first."""
    best: dict[int, tuple[str, float]] = {}
    for seq, relation, worth in sorted(edges, key=lambda edge: (-edge[2], edge[1], edge[0])):
        if worth > 0:
            first, so_far = best.get(seq, (relation, 0.0))
            best[seq] = first, so_far + (1 - so_far) * worth
    found = sorted(best.items(), key=lambda row: (-row[1][1], row[0]))[:MOST]
    return [(seq, relation, round(worth, 4)) for seq, (relation, worth) in found]


# --- over the store


def near(rows: Rows, memory_seqs: Sequence[int], *, projects: Sequence[int] | None = None) -> dict[int, list[Near]]:
    """Memory -> its neighbours as (memory, relation, worth 0-1), the nearest first and at most `MOST` of each.

    Only of `projects`, None for all: a link may lead to another scope. Two statements, however many memories.
    """
    edges: dict[int, list[Near]] = {seq: [] for seq in memory_seqs}
    for one, other, relationship, weight, outwards in stored.edges(rows, memory_seqs, projects=projects):
        edges[one].append((other, relationship, of_link(relationship, weight, outwards=outwards)))
    for one, other, kind, members in _shared(rows, memory_seqs, projects):
        tie = (TAGGED, of_topic(members)) if kind == "topic" else (PRODUCED, SESSION)
        edges[one].append((other, *tie))
    return {seq: found for seq, some in edges.items() if (found := nearest(some))}


def about_the_same(rows: Rows, memory_seq: int, *, projects: Sequence[int] | None) -> list[int]:
    """The memories that share topics with one, those that share most and rarest first."""
    found = [one for one in _shared(rows, [memory_seq], projects) if one[2] == "topic"]
    return [seq for seq, *_ in nearest((other, TAGGED, of_topic(n)) for _, other, _, n in found)]


def _shared(rows: Rows, memory_seqs: Sequence[int], projects: Sequence[int] | None) -> list[tuple[int, int, str, int]]:
    return stored.shared_topics(
        rows, memory_seqs, projects=projects, widest_topic=WIDEST_TOPIC, widest_session=WIDEST_SESSION
    )
