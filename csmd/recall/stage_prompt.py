"""What is added to a prompt: the memories that bear on it, above the relevance floor, or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from csmd import terms, text
from csmd.model import Brief, Memory
from csmd.recall import brief as briefs
from csmd.recall import rank, stage, stage_hits, tiers
from csmd.recall.stage_hits import Embed
from csmd.store import context, memories, search
from csmd.store.sqlite import Rows


def prompt_recall(
    rows: Rows,
    *,
    places: Sequence[int],
    session_id: str,
    prompt: str,
    floor: float,
    max_tokens: int,
    max_items: int,
    embed: Embed | None,
) -> Brief:
    """What bears on a prompt, above the relevance floor; nothing that the session was told already."""
    degraded: list[str] = []
    told = context.told(rows, session_id) if session_id else frozenset[str]()
    vector = stage_hits.vector_of(rows, prompt, embed, degraded)
    lexical = stage_hits.lexical(rows, "memory", terms.asked(prompt), places, degraded)
    sense: dict[int, float] = {}
    if vector is not None:
        for seq, _, _, distance in stage_hits.nearest(rows, "memory", vector, places, degraded):
            sense[int(seq)] = max(sense.get(int(seq), -1.0), rank.cosine(distance))
    found = memories.by_seqs(rows, [*{*lexical, *sense}])
    weights = _weights(rows, text.query_terms(prompt))
    attention, near = stage.attention(rows, places), context.near(rows, places, session_id)
    ranked: list[tuple[Memory, float]] = []
    for seq, memory in found.items():
        relevant = rank.relevance(weights, memory.text, cosine_to_prompt=sense.get(seq, 0.0) if vector else None)
        reached = memory.id not in told and tiers.reaches(memory, attention(memory), at="match", near=near)
        if relevant >= floor and reached:
            ranked.append((memory, relevant * rank.memory_weight(memory)))
    ranked.sort(key=lambda row: (-row[1], row[0].id))
    made = briefs.compose_recall(
        ranked, prompt=prompt, max_tokens=max_tokens, max_items=max_items, known=stage.told_anyway(rows, places)
    )
    return replace(made, degraded=tuple(sorted(set(degraded))))


def _weights(rows: Rows, asked: Sequence[str]) -> dict[str, float]:
    """A prompt's terms and how much each says among the memories."""
    total = search.memory_count(rows)
    return {term: rank.rarity(search.memories_with(rows, term), total) for term in asked}
