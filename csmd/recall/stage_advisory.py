"""What the living state of a place is made of: packets, candidates, how work ended, and what is held there."""

from __future__ import annotations

from collections.abc import Sequence

from csmd.believe import knowledge, selfmodel
from csmd.believe.selfmodel import Counted
from csmd.recall import advisory, last_sessions
from csmd.recall.advisory import MAX_TOKENS, Line
from csmd.recall.compose import Block
from csmd.store import candidates, context, memories, packets, self_model
from csmd.store.sqlite import Rows

#: Of each so many are looked at: a hook may wait for it.
PACKETS, CANDIDATES, MEMORIES = 200, 50, 200


def lines(rows: Rows, *, places: Sequence[int], session_id: str = "", max_tokens: int = MAX_TOKENS) -> list[Line]:
    """Every line that the living state of these places has, with why it is told or not."""
    waiting = candidates.waiting(rows, projects=places, limit=CANDIDATES)
    ended = {one.session_id: one.outcome for one in last_sessions.ended(rows, places=places, session_id=session_id)}
    seen = [one for one in packets.latest(rows, projects=places, limit=PACKETS) if one.session_id != session_id]
    counted = [Counted(*row) for row in self_model.counted(rows, projects=places)]
    held = knowledge.beliefs(memories.listing(rows, projects=places, limit=MEMORIES))
    found = [
        *advisory.warnings(waiting),
        *advisory.experience(seen, ended),
        *advisory.signals(waiting),
        *advisory.capabilities(selfmodel.capabilities(counted)),
        *advisory.beliefs(held),
    ]
    told = context.told(rows, session_id) if session_id else frozenset[str]()
    return advisory.assembled(found, max_tokens=max_tokens, told=told)


def blocks(rows: Rows, *, places: Sequence[int], session_id: str = "") -> tuple[Block, ...]:
    """What of it stands at the end of a brief."""
    return advisory.blocks(lines(rows, places=places, session_id=session_id))
