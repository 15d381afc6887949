"""What an edge of the graph is worth to somebody who looks for what lies beside a memory; pure: a table and a sum."""

from __future__ import annotations

import math
from collections.abc import Iterable

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
