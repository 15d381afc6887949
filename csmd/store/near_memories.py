"""Finds memories whose vectors are near each other."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from csmd.store import vectors
from csmd.store.sqlite import IS_LISTED, Rows, listed

#: Two vectors are near from this cosine similarity on.
MIN_SIMILARITY = 0.74
#: Near vectors that are considered for each memory.
MAX_NEAREST = 5
#: The largest share of differing signs of two near vectors. Near vectors differ in .235 of their signs on average
#: (standard deviation .02 for 384 dimensions); of 30 million pairs of real passages none of the 22,871 near ones
#: differed in more than .297. One pair in a hundred passes.
MAX_DIFFERING_SIGNS = 0.325
#: The squared length of a stored vector (csmd/embedding/worker.py): the similarity is 1 - squared distance / 2 of unit
#: vectors.
_LENGTH = (127 / 0.25) ** 2


class Signs(NamedTuple):
    """The signs of a model's vectors as bits of integers: `codes[n]` belongs to the memory `seqs[n]`."""

    model: int
    seqs: list[int]
    codes: list[int]


#: (memory, memory, squared distance) of two whose vectors are near.
NearPair = tuple[int, int, float]


def find_memory_model(rows: Rows) -> int:
    """Returns the newest model that has vectors of memories; 0 for none."""
    sql = """select m.seq from vector_models m where exists (select 1
        from vectors v where v.kind = 'memory' and v.model_seq = m.seq) order by m.seq desc limit 1"""
    return rows.number(sql)


def read_signs(rows: Rows, model: int, seqs: Sequence[int]) -> Signs:
    """Returns the signs of a model's vectors of some memories."""
    sql = f"""select v.row_seq, c.code from vectors v join memories m on m.seq = v.row_seq join vector_codes c
        on c.model_seq = v.model_seq and c.kind = v.kind and c.project_seq = m.project_seq and c.seq = v.seq
        where v.kind = 'memory' and v.row_seq {IS_LISTED} and v.model_seq = :model order by v.row_seq, v.seq"""  # noqa: S608
    coded = rows.all(sql, model=model, listed=listed(seqs))
    return Signs(model, [seq for seq, _ in coded], [int.from_bytes(code, "little") for _, code in coded])


def compare_with_later(rows: Rows, signs: Signs, part: Sequence[int]) -> list[NearPair]:
    """Returns the near pairs of vectors at some indexes of a list with all later ones.

    Signs are compared first, at 0.1 us each, and whole vectors only if their signs are similar enough.
    """
    max_bits = int(
        MAX_DIFFERING_SIGNS * rows.number("select dim from vector_models where seq = :model", model=signs.model)
    )
    pairs: list[NearPair] = []
    for index in part:
        seq, code = signs.seqs[index], signs.codes[index]
        later = (
            n for n, other in enumerate(signs.codes[index + 1 :], index + 1) if (code ^ other).bit_count() <= max_bits
        )
        candidates = sorted({signs.seqs[n] for n in later} - {seq})
        for vector in vectors.read_vectors_of_row(rows, "memory", seq, model=signs.model) if candidates else ():
            distances = vectors.compute_distances(rows, "memory", signs.model, vector, candidates)
            pairs += [
                (seq, other, distance)
                for other, distance in distances.items()
                if 1 - distance / (2 * _LENGTH) >= MIN_SIMILARITY
            ]
    return pairs


def keep_nearest(pairs: Iterable[NearPair]) -> set[tuple[int, int]]:
    """Returns pairs of row keys, the smaller first: each memory with its MAX_NEAREST."""
    near: dict[int, dict[int, float]] = defaultdict(dict)
    for pair in pairs:
        for seq, other in (pair[:2], pair[1::-1]):
            near[seq][other] = min(pair[2], near[seq].get(other, pair[2]))
    return {
        (min(seq, other), max(seq, other))
        for seq, distances in near.items()
        for _, other in heapq.nsmallest(MAX_NEAREST, ((distance, other) for other, distance in distances.items()))
    }


def find_near_pairs(rows: Rows, project: int, seqs: Sequence[int]) -> set[tuple[int, int]]:
    """Returns pairs of row keys of a project's memories whose vectors are near, for some of them.

    Empty without vectors.
    """
    model = find_memory_model(rows)
    pairs: set[tuple[int, int]] = set()
    for seq in seqs if model else ():
        for vector in vectors.read_vectors_of_row(rows, "memory", seq, model=model):
            hits = vectors.find_vector_hits(rows, "memory", model, vector, projects=[project], limit=MAX_NEAREST + 1)
            pairs |= {
                (min(seq, other), max(seq, other))
                for other, _, _, distance in hits
                if other != seq and 1 - distance / (2 * _LENGTH) >= MIN_SIMILARITY
            }
    return pairs
