"""What matches a question: the rows found by words and by sense, fused, within the limits of the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from csmd.recall import question, rank, stage_hits
from csmd.recall.rank import Scored
from csmd.store import narrow as narrowing
from csmd.store.narrow import Narrow
from csmd.store.sqlite import Rows

#: How many scored rows of each list are fused; of a search with limits, how many are looked through for what they let in.
POOL, WIDE_POOL = 300, 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One search: its question as it was understood, what it may see, the terms and the vector that it is made with."""

    rows: Rows
    question: question.Question
    terms: Sequence[str]
    projects: Sequence[int] | None
    narrow: Narrow
    vector: tuple[bytes, int] | None
    degraded: list[str]
    spans: dict[int, tuple[int, int]] = field(default_factory=dict)


def matching(asked: Asked, kind: str) -> tuple[dict[int, Scored], dict[int, float]]:
    """The rows of a kind that match by words and by sense, fused, and the cosines of those found by sense."""
    pool = POOL if asked.narrow.is_all else WIDE_POOL
    lexical = stage_hits.lexical(asked.rows, kind, asked.terms, asked.projects, asked.degraded, pool=pool)
    sense: dict[int, float] = {}
    if asked.vector is not None:
        nearest = stage_hits.nearest(asked.rows, kind, asked.vector, asked.projects, asked.degraded, pool=pool)
        for seq, start, end, distance in nearest:
            closeness = rank.cosine(distance)
            if closeness > sense.get(seq, -1.0):
                sense[seq] = closeness
                if kind == "turn":
                    asked.spans[seq] = (start, end)
    if not asked.narrow.is_all:
        let_in = (narrowing.turns if kind == "turn" else narrowing.memories)(
            asked.rows, [*{*lexical, *sense}], asked.narrow
        )
        lexical = {seq: value for seq, value in lexical.items() if seq in let_in}
        sense = {seq: value for seq, value in sense.items() if seq in let_in}
    return rank.fuse(lexical, sense), sense


def recent(at: Mapping[int, str]) -> dict[int, float]:
    """How recent each is beside the newest of them: a project that was left for months is no older for that."""
    days = {seq: _day(moment) for seq, moment in at.items()}
    newest = max(days.values(), default=0)
    return {seq: rank.recency(newest - day) for seq, day in days.items()}


def _day(moment: str) -> int:
    """The number of a stored time's day; 0 where a broken clock said what no calendar has."""
    try:
        return date.fromisoformat(moment[:10]).toordinal()
    except ValueError:
        return 0
