"""Whether what a search found is close to what was asked; the nearest are shown all the same, and said to be no more.

A search is asked for by name and always answers. Its best hits are looked at as a prompt's are (relevance.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from csmd import text
from csmd.errors import DeadlineExceeded
from csmd.model import Hit
from csmd.recall import exchange, relevance
from csmd.store import fulltext
from csmd.store.sqlite import Rows

#: How surely what was asked was spoken of here, from where on it is called close: less than a prompt needs to be told it.
CLOSE = 0.3
#: Words of a question that are counted, and for how long.
TERMS = 12
COUNTING_S = 0.5
#: As much of a hit is compared as a prompt would be told.
COMPARED = 290


def is_close(rows: Rows, query: str, hits: Sequence[Hit], *, projects: Sequence[int] | None) -> bool:
    """Whether the best of `hits` speak of what `query` asks about; True where that could not be told in time."""
    asked = relevance.terms(query)[:TERMS]
    try:
        with rows.within(rows.share(COUNTING_S)):
            weights = {term: relevance.rarity(_held(rows, term, projects, relevance.COMMON)) for term in asked}
            unknown = any(not _held(rows, name, projects, 1) for name in relevance.names(query)[:TERMS])
    except DeadlineExceeded:
        return True
    compared = [text.passage(text.squeeze(exchange.matched(hit.text)), asked, limit=COMPARED) for hit in hits]
    turn, memory = _nearest(hits, "turn"), _nearest(hits, "memory")
    ground = relevance.Ground(
        turn=turn if turn is not None else memory,
        memory=memory if memory is not None else turn,
        covered=max((relevance.covered(weights, body) for body in compared), default=0.0),
        unknown=unknown,
    )
    return relevance.grounded(ground) >= CLOSE


def _held(rows: Rows, term: str, projects: Sequence[int] | None, most: int) -> int:
    turns = fulltext.held(rows, "turn", term, projects=projects, most=most)
    return turns or fulltext.held(rows, "memory", term, projects=projects, most=most)


def _nearest(hits: Sequence[Hit], kind: str) -> float | None:
    return max((hit.cosine for hit in hits if hit.kind == kind and hit.cosine is not None), default=None)
