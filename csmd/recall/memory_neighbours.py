"""Finds and ranks the neighbours of a memory: those that it is linked to, and those that share a topic or session."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from csmd.store import memory_links
from csmd.store.sqlite import Rows

#: Relationship -> its worth from the memory it begins at, and from the one it leads to. A replacement is nearly always
#: wanted, a replaced memory seldom; a merged memory says nothing that the other does not say.
LINK_WORTH: dict[str, tuple[float, float]] = {
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
#: Relationships that may be drawn by hand; the others have their own commands, which handle the consequences.
DRAWN_BY_HAND = tuple(sorted(set(LINK_WORTH) - {"superseded_by", "merged_into"}))
#: Worth of a topic that two memories share; less if more memories share it. An answer shares a hit's topic twice as often
#: as chance, a session five times as often.
TOPIC_WORTH = 0.1
SESSION_WORTH = 0.1
SAME_TOPIC = "same_topic"
SAME_SESSION = "same_session"
MAX_NEIGHBOURS = 12
#: A topic or session of more memories relates none of them.
MAX_TOPIC_MEMORIES = 20
MAX_SESSION_MEMORIES = 60


class Neighbour(NamedTuple):
    """A neighbour's row key, its relation, and the worth of that, 0-1."""

    seq: int
    relation: str
    worth: float


def rate_topic(members: int) -> float:
    """Returns the worth of a topic that this many memories share."""
    return TOPIC_WORTH / math.log2(max(members, 2))


def rank_neighbours(edges: Iterable[Neighbour]) -> list[Neighbour]:
    """Ranks the neighbours of one memory by their strongest edge; further edges add a little."""
    best: dict[int, Neighbour] = {}
    for edge in sorted(edges, key=lambda edge: (-edge.worth, edge.relation, edge.seq)):
        if edge.worth > 0:
            strongest = best.get(edge.seq, edge._replace(worth=0.0))
            best[edge.seq] = strongest._replace(worth=strongest.worth + (1 - strongest.worth) * edge.worth)
    nearest = sorted(best.values(), key=lambda neighbour: (-neighbour.worth, neighbour.seq))[:MAX_NEIGHBOURS]
    return [neighbour._replace(worth=round(neighbour.worth, 4)) for neighbour in nearest]


def find_neighbours(
    rows: Rows, memory_seqs: Sequence[int], *, projects: Sequence[int] | None = None
) -> dict[int, list[Neighbour]]:
    """Maps each memory to its neighbours in `projects` (None: all), the nearest first."""
    edges: dict[int, list[Neighbour]] = {seq: [] for seq in memory_seqs}
    for memory, other, relationship, weight, outwards in memory_links.list_edges(rows, memory_seqs, projects=projects):
        outward_worth, inward_worth = LINK_WORTH.get(relationship, LINK_WORTH["relates_to"])
        edges[memory].append(Neighbour(other, relationship, weight * (outward_worth if outwards else inward_worth)))
    for memory, other, kind, members in _find_ties(rows, memory_seqs, projects):
        relation, worth = (SAME_TOPIC, rate_topic(members)) if kind == "topic" else (SAME_SESSION, SESSION_WORTH)
        edges[memory].append(Neighbour(other, relation, worth))
    ranked = {seq: rank_neighbours(of_memory) for seq, of_memory in edges.items()}
    return {seq: neighbours for seq, neighbours in ranked.items() if neighbours}


def find_same_topic(rows: Rows, memory_seq: int, *, projects: Sequence[int] | None) -> list[int]:
    """Returns the memories that share topics with one, those that share most and the rarest first."""
    ties = (tie for tie in _find_ties(rows, [memory_seq], projects) if tie[2] == "topic")
    ranked = rank_neighbours(Neighbour(other, SAME_TOPIC, rate_topic(members)) for _, other, _, members in ties)
    return [neighbour.seq for neighbour in ranked]


def _find_ties(rows: Rows, seqs: Sequence[int], projects: Sequence[int] | None) -> list[tuple[int, int, str, int]]:
    return memory_links.list_shared(
        rows, seqs, projects=projects, widest_topic=MAX_TOPIC_MEMORIES, widest_session=MAX_SESSION_MEMORIES
    )
