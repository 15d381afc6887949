"""Finds memories whose vectors are near each other."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from csmd.store import vectors
from csmd.store.sqlite import IS_LISTED, Rows, listed

#: Two vectors are near from this likeness on, and of each so many that are nearest are looked at.
LIKE, NEAREST = 0.74, 5
#: Vectors as near as that differ in .235 of their signs, with a spread of .02 for 384: of 30 million pairs of real passages
#: none of the 22,871 that were near differed in more than .297. One pair in a hundred is let through.
FAR_SIGNS = 0.325
#: A likeness of 1 - d / 2 of vectors of this length, as they are stored (csmd/embedding/worker.py).
_LENGTH = (127 / 0.25) ** 2


class Signs(NamedTuple):
    """The signs of vectors of a model, each as a number: `codes[n]` is of the memory `seqs[n]`."""

    model: int
    seqs: list[int]
    codes: list[int]


#: (memory, another one, squared distance) of two whose vectors are near.
NearPair = tuple[int, int, float]


def model_of_memories(rows: Rows) -> int:
    """The newest model that has vectors of memories; 0 for none."""
    return rows.number(
        "select m.seq from vector_models m where exists (select 1 from vectors v where v.kind = 'memory' "
        "and v.model_seq = m.seq) order by m.seq desc limit 1"
    )


def signs_of(rows: Rows, model: int, seqs: Sequence[int]) -> Signs:
    """The signs of the vectors of some memories by a model."""
    coded = rows.all(
        "select v.row_seq, c.code from vectors v join memories m on m.seq = v.row_seq join vector_codes c "  # noqa: S608
        "on c.model_seq = v.model_seq and c.kind = v.kind and c.project_seq = m.project_seq and c.seq = v.seq "
        f"where v.kind = 'memory' and v.row_seq {IS_LISTED} and v.model_seq = :model order by v.row_seq, v.seq",
        model=model,
        listed=listed(seqs),
    )
    return Signs(model, [seq for seq, _ in coded], [int.from_bytes(code, "little") for _, code in coded])


def near_behind(rows: Rows, signs: Signs, part: Sequence[int]) -> list[NearPair]:
    """The vectors at some places of a list that are near to others behind them there.

    Signs are compared first, at 0.1 us each, and whole vectors only where these let them be near.
    """
    most = int(FAR_SIGNS * rows.number("select dim from vector_models where seq = :model", model=signs.model))
    pairs: list[NearPair] = []
    for at in part:
        seq, code = signs.seqs[at], signs.codes[at]
        behind = (n for n, other in enumerate(signs.codes[at + 1 :], at + 1) if (code ^ other).bit_count() <= most)
        close = sorted({signs.seqs[n] for n in behind} - {seq})
        for vector in vectors.of_row(rows, "memory", seq, model=signs.model) if close else ():
            distances = vectors.distances(rows, "memory", signs.model, vector, close)
            pairs += [(seq, other, far) for other, far in distances.items() if 1 - far / (2 * _LENGTH) >= LIKE]
    return pairs


def nearest(pairs: Iterable[NearPair]) -> set[tuple[int, int]]:
    """Pairs of row keys, the smaller first: of each memory those with its NEAREST."""
    near: dict[int, dict[int, float]] = defaultdict(dict)
    for pair in pairs:
        for seq, other in (pair[:2], pair[1::-1]):
            near[seq][other] = min(pair[2], near[seq].get(other, pair[2]))
    return {
        (min(seq, other), max(seq, other))
        for seq, distances in near.items()
        for _, other in heapq.nsmallest(NEAREST, ((far, other) for other, far in distances.items()))
    }


def near_pairs(rows: Rows, project: int, seqs: Sequence[int]) -> set[tuple[int, int]]:
    """Pairs of row keys of memories of a scope whose vectors are near, of some of them; nothing where there are no vectors."""
    model = model_of_memories(rows)
    pairs: set[tuple[int, int]] = set()
    for seq in seqs if model else ():
        for vector in vectors.of_row(rows, "memory", seq, model=model):
            hits = vectors.vector_hits(rows, "memory", model, vector, projects=[project], limit=NEAREST + 1)
            pairs |= {
                (min(seq, other), max(seq, other))
                for other, _, _, far in hits
                if other != seq and 1 - far / (2 * _LENGTH) >= LIKE
            }
    return pairs
