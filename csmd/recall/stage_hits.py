"""The scored rows that a question is answered from: by words and by vector, each within its deadline."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from csmd.errors import DeadlineExceeded, EmbeddingUnavailable
from csmd.recall import rank
from csmd.store import search, vectors
from csmd.store.sqlite import Rows

#: A text to its vector and the model's name; raises EmbeddingUnavailable.
Embed = Callable[[str], tuple[bytes, str]]
LEXICAL_S = 1.5
VECTOR_S = 1.5


def vector_of(rows: Rows, query: str, embed: Embed | None, degraded: list[str]) -> tuple[bytes, int] | None:
    if embed is None:
        degraded.append("vectors: no embedding model is installed (csmd model fetch)")
        return None
    try:
        vector, name = embed(query)
    except EmbeddingUnavailable as error:
        degraded.append(f"vectors: {error.what}")
        return None
    model = vectors.model_seq(rows, name)
    if model is None:
        degraded.append("vectors: none are stored yet")
        return None
    return vector, model


def lexical(
    rows: Rows,
    kind: str,
    terms: Sequence[str],
    projects: Sequence[int] | None,
    degraded: list[str],
    *,
    pool: int = rank.POOL,
) -> dict[int, float]:
    try:
        with rows.within(rows.share(LEXICAL_S)):
            found = search.text_hits(rows, kind, terms, projects=projects, limit=pool)
            asked_as = (
                search.text_hits(rows, "symptom", terms, projects=projects, limit=pool) if kind == "memory" else []
            )
    except DeadlineExceeded:
        degraded.append(f"words: {kind} search stopped at its deadline")
        return {}
    scores = {int(seq): float(score) for seq, score in found}
    for seq, score in asked_as:  # a cause is asked for in the words in which it was reported
        scores[int(seq)] = max(scores.get(int(seq), 0.0), float(score) * rank.SYMPTOM_SHARE)
    return scores


def nearest(
    rows: Rows,
    kind: str,
    vector: tuple[bytes, int],
    projects: Sequence[int] | None,
    degraded: list[str],
    *,
    pool: int = rank.POOL,
) -> list[tuple[int, int, int, float]]:
    try:
        with rows.within(rows.share(VECTOR_S)):
            found = search.vector_hits(rows, kind, vector[1], vector[0], projects=projects, limit=pool)
    except DeadlineExceeded:
        degraded.append(f"vectors: {kind} search stopped at its deadline")
        return []
    return [(int(a), int(b), int(c), float(d)) for a, b, c, d in found]
