"""The last phase: what goes to the archive, where an explicit search finds it; pure, and never a deletion.

WHEN is the policy, the first that holds is the reason. What is pinned stays, and so does what the user stated for good
while the day that is stored for it has not passed. What is daily stays its 30 active days, however soon it cools. What
somebody took back out stays until it has aged anew. Of turns nothing is touched: what people and assistants said is
kept, and tool output is dropped when it is old by daemon/retention.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from csmd.believe import score
from csmd.dream.actions import Action
from csmd.dream.gather import Gathered, Step
from csmd.dream.snapshot import Snapshot
from csmd.model import Memory

#: Active days for which what was superseded still stands behind what replaced it.
SUPERSEDED_DAYS = 30


def _own(snapshot: Snapshot, gathered: Gathered) -> Iterator[tuple[str, ...]]:
    """A memory of the project."""
    del gathered
    yield from ((memory.id,) for memory in snapshot.own)


def _archive(snapshot: Snapshot, gathered: Gathered, ident: str) -> Action | None:
    """What has decayed, was superseded a while ago, or was for a day only goes to the archive."""
    del gathered
    memory = snapshot.memories.get(ident)
    if memory is None or memory.tier == "archive" or memory.pinned:
        return None
    back = snapshot.brought_back.get(ident)
    due = is_due(snapshot, memory)
    if (back is not None and memory.fresh_at <= back) or (is_the_users(memory) and not due):
        return None
    why = next((reason for rule in WHEN if (reason := rule(snapshot, memory))), "")
    if not why:
        return None
    last = max(memory.provenance, key=lambda one: (one.at, one.uuid))
    evidence = (memory.superseded_by,) if memory.superseded_by else (last.uuid,)
    return Action(
        kind="archive", project_seq=snapshot.project_seq, memory=memory, reason=f"{ident} {why}", evidence=evidence,
        tier="archive",
    )  # fmt: skip


def is_due(snapshot: Snapshot, memory: Memory) -> bool:
    """Whether the active day that is stored for a memory has passed."""
    return memory.archive_at < snapshot.day(memory.project_seq)


def is_the_users(memory: Memory) -> bool:
    """Whether the user stated a memory, and for good."""
    return memory.authority == "user" and memory.tier == "durable"


def _superseded(snapshot: Snapshot, memory: Memory) -> str:
    if not memory.superseded_by:
        return ""
    since = snapshot.superseded_at.get(memory.id, memory.fresh_at)[:10]
    passed = snapshot.day(memory.project_seq) - snapshot.day(memory.project_seq, since)
    return f"was superseded on {since}, {passed} active days ago" if passed > SUPERSEDED_DAYS else ""


def _for_a_day(snapshot: Snapshot, memory: Memory) -> str:
    passed = snapshot.day(memory.project_seq) - snapshot.day(memory.project_seq, memory.fresh_at[:10])
    lasting = score.is_lasting(memory.gate, memory.category, stated=memory.authority == "user")
    if memory.tier != "daily" or passed <= score.DAILY_DAYS or lasting or not is_due(snapshot, memory):
        return ""
    return f"is a daily memory, neither told nor used for {passed} active days"


def _decayed(snapshot: Snapshot, memory: Memory) -> str:
    if not is_due(snapshot, memory) or memory.tier == "daily":
        return ""
    return f"has faded: neither told nor used since {memory.fresh_at[:10]}"


WHEN: tuple[Callable[[Snapshot, Memory], str], ...] = (_superseded, _for_a_day, _decayed)
STEPS = (Step(_own, _archive),)
