"""When a memory may be put before the assistant unasked: by its tier and attention, as a table; pure.

near: in a session that told it, and in the next one of its project. Each tier reaches as far as the one above it, and
further. An explicit search finds all of them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from csmd.believe import score
from csmd.model import Attention, Memory, Tier

When = Literal["always", "near", "never"]


@dataclass(frozen=True, slots=True)
class Reach:
    """When a tier is put before a session at its start, and when on a prompt that it matches."""

    start: When
    match: When


#: How long each lasts is stored with a memory, in active days: what is COLD reaches nobody (believe/score.py).
TIERS: dict[Tier, Reach] = {
    "session": Reach("near", "near"),
    "daily": Reach("near", "always"),
    "durable": Reach("always", "always"),
    "archive": Reach("never", "never"),
}


def is_promised(memory: Memory, *, today: str) -> bool:
    """Whether a memory is a promise for a day (ISO) that has not passed yet."""
    until = score.due(memory.text, gate=memory.gate, at=memory.created_at)
    return bool(until) and until >= today and memory.tier != "archive" and not memory.superseded_by


def reaches(memory: Memory, attention: Attention, *, at: Literal["start", "match"], near: Collection[str]) -> bool:
    """Whether a memory may be told at a session's start, or on a match; `near` are that session and the one before it."""
    if memory.pinned:
        return memory.tier != "archive"
    when: When = getattr(TIERS[memory.tier], at)
    if attention == "COLD" or when == "never":
        return False
    return when == "always" or any(source.session_id in near for source in memory.provenance)
