"""The first phase: what there is; pure counting."""

from __future__ import annotations

from collections import defaultdict

from csmd.dream.actions import Tally
from csmd.dream.gather import Gathered
from csmd.dream.snapshot import Snapshot, alive
from csmd.model import NEVER, Memory


def tally(snapshot: Snapshot, gathered: Gathered) -> Tally:
    """How many memories a project has by tier, how many of them say what another one says, and how stale they are."""
    own = [memory for memory in snapshot.own if alive(memory)]
    ages: dict[str, list[float]] = defaultdict(list)
    for memory in own:
        ages[memory.tier].append(staleness(snapshot, memory))
    return Tally(
        project_seq=snapshot.project_seq,
        tiers={tier: len(found) for tier, found in sorted(ages.items())},
        duplicates=sum(memory.id in gathered.doubles for memory in own),
        staleness={tier: round(sum(found) / len(found), 4) for tier, found in sorted(ages.items())},
    )


def staleness(snapshot: Snapshot, memory: Memory) -> float:
    """How far a memory is on its way to the archive: 0 just told or used, or never to go; 1 when it is due."""
    if memory.pinned or memory.archive_at >= NEVER:
        return 0.0
    begun = snapshot.day(memory.project_seq, memory.fresh_at[:10])
    way = memory.archive_at - begun
    return min(1.0, max(0.0, (snapshot.day(memory.project_seq) - begun) / way)) if way > 0 else 1.0
