"""What an order has to heed: the rules that somebody stated on its subject, though it asks for nothing that was said.

"Add a retry to the uploader" is no question. A convention on the uploader's retries is to be known before it is done;
what was said about uploaders is not. So memories alone are looked at, of the kinds in HEEDED, and their match has to be
stronger than a question's (relevance.heeded): most prompts are orders, and most orders need nothing. "Commit this" has no
subject; a rule on commits bears on it by what it is about (occasion.bears).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from csmd.model import Category, Memory
from csmd.recall import indicative, occasion, question, relevance, stage_hits
from csmd.recall.stage_hits import Embed
from csmd.recall.stage_matches import Asked, matching
from csmd.store import memories
from csmd.store.narrow import Narrow
from csmd.store.sqlite import Rows

#: What is told of an order's subject where a user said it: an assistant reports how things are.
HEEDED: frozenset[Category] = frozenset({"convention", "constraint", "procedure", "preference"})
#: How many are told of one order, and how many of the nearest are looked at.
MOST, LOOKED_AT = 2, 20
#: How surely a rule bears on an order that does or makes all that it is about; less is a rule on something else.
ON_OCCASION, LEAST_ABOUT = 0.8, 0.6


def heeded(
    rows: Rows,
    places: Sequence[int],
    prompt: str,
    embed: Embed | None,
    degraded: list[str],
    *,
    weights: Mapping[str, float],
    on: Sequence[str],
    floor: float,
) -> list[tuple[Memory, float]]:
    """(memory, how surely it bears on the order) of those above the floor, the surest first.

    `weights` are those of the words of its subject, `on` its occasions.
    """
    nearest = _nearest(rows, places, prompt, embed, degraded, weights) if weights else {}
    seqs = dict.fromkeys(nearest)
    seqs |= dict.fromkeys(stage_hits.lexical(rows, "memory", on, places, degraded, pool=LOOKED_AT) if on else ())
    found: list[tuple[Memory, float]] = []
    for seq, memory in memories.by_seqs(rows, list(seqs)).items():
        sure = relevance.heeded(nearest[seq], relevance.covered(weights, memory.text)) if seq in nearest else 0.0
        about = occasion.bears(memory.text, on)
        sure = max(sure, ON_OCCASION * about if about >= LEAST_ABOUT else 0.0)
        if sure >= floor and _rules(memory):
            found.append((memory, sure))
    return sorted(found, key=lambda row: (-row[1], row[0].id))[:MOST]


def _nearest(
    rows: Rows,
    places: Sequence[int],
    prompt: str,
    embed: Embed | None,
    degraded: list[str],
    weights: Mapping[str, float],
) -> dict[int, float | None]:
    """The memories nearest to an order's subject -> their cosine, None without a vector."""
    asking = Asked(
        rows=rows, question=question.Question(), terms=list(weights), projects=places, narrow=Narrow(),
        vector=stage_hits.vector_of(rows, prompt, embed, degraded), degraded=degraded,
    )  # fmt: skip
    matched, close = matching(asking, "memory")
    nearest = sorted(matched.values(), key=lambda row: (-close.get(row.seq, 0.0), -row.score, row.seq))[:LOOKED_AT]
    return {row.seq: close.get(row.seq, 0.0) if asking.vector else None for row in nearest}


def _rules(memory: Memory) -> bool:
    """Whether a user stated how something is to be done here; what was counted stands in the brief."""
    stated = memory.origin != "inferred" and memory.authority == "user" and memory.category in HEEDED
    return stated and bool(indicative.stated(memory))
