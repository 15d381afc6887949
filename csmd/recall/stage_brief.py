"""What a session is told at its start: the memories that its place sees, but for what its context holds already."""

from __future__ import annotations

from collections.abc import Sequence

from csmd.model import Brief
from csmd.recall import brief as briefs
from csmd.recall import stage, tiers
from csmd.store import context, memories
from csmd.store.sqlite import Rows

#: How many of a scope's surest memories a brief is chosen from.
PRELOADED = 1000


def session_brief(rows: Rows, *, places: Sequence[int], session_id: str, max_tokens: int) -> Brief:
    """The brief for a session that starts where `places` are seen; nothing that its context holds already."""
    told = context.told(rows, session_id) if session_id else frozenset[str]()
    attention, near = stage.attention(rows, places), context.near(rows, places, session_id)
    candidates = [
        (memory, attention(memory))
        for memory in memories.listing(rows, projects=places, limit=PRELOADED)
        if memory.id not in told and tiers.reaches(memory, attention(memory), at="start", near=near)
    ]
    return briefs.compose(candidates, max_tokens=max_tokens, known=stage.told_anyway(rows, places))
