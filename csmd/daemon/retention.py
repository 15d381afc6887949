"""When tool output and checkpoints go: what is older than the user wants it kept, then, when room is short, the oldest.

A batch is one transaction; what remains is done in the steward's next steps, so that nothing waits behind it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from csmd.config import Settings
from csmd.daemon.context import Context
from csmd.daemon.now import iso
from csmd.store import checkpoints, events, turns
from csmd.store.core import Store
from csmd.store.sqlite import Rows

MB = 1_000_000
#: A marker of `csmd doctor` that is as old was left by one that was killed.
PROBE_S = 600
#: How often it is looked whether something is due.
EVERY_S = 900.0
#: A write holds the writer for a few milliseconds: a hook that comes meanwhile still gets its answer in time.
BATCH_TURNS = 100


def step(context: Context, now: float) -> bool:
    """Drops one batch when it is time to look, at the monotonic time `now`; whether more may be due at once."""
    if context.next_retention is None:  # a start is for catching up
        context.next_retention = now + EVERY_S
    if now < context.next_retention:
        return False
    store, settings = context.store, context.config.settings
    dropped = context.guard("retention", lambda: drop_some(store, settings, now=datetime.now(UTC)))
    context.next_retention = now if dropped else now + EVERY_S
    return dropped


def drop_some(store: Store, settings: Settings, *, now: datetime) -> bool:
    """Drops one batch of what is due at `now`; whether there was any."""
    days = settings.storage_tool_output_days
    limit = settings.storage_max_mb * MB

    def write(rows: Rows) -> int:
        events.remove_probe(rows, before=iso(now - timedelta(seconds=PROBE_S)))
        before = iso(now - timedelta(days=days))
        dropped = turns.drop_old_output(rows, before=before, days=days, limit=BATCH_TURNS) if days else 0
        if not dropped and (kept_days := settings.checkpoint_keep_days):
            dropped = checkpoints.drop_old(rows, before=iso(now - timedelta(days=kept_days)), limit=BATCH_TURNS)
        if not dropped and turns.room_taken(rows, limit=limit).is_over:
            dropped = turns.drop_oldest_output(rows, limit=BATCH_TURNS)
        return dropped

    return store.write(write) > 0


def figures(rows: Rows, settings: Settings, counters: dict[str, int]) -> dict[str, Any]:
    """What `csmd status` says of the room that is used; sizes in bytes, a limit of 0 is none."""
    room = turns.room_taken(rows, limit=settings.storage_max_mb * MB)
    return {
        "used_bytes": room.used,
        "limit_bytes": room.limit,
        "tool_output_days": settings.storage_tool_output_days,
        "tool_outputs_dropped": counters.get(turns.DROPPED, 0),
        "tool_output_bytes_dropped": counters.get(turns.DROPPED_BYTES, 0),
    }


def warnings(rows: Rows, settings: Settings) -> list[str]:
    """What the user should know before, or because, tool output goes for want of room."""
    room = turns.room_taken(rows, limit=settings.storage_max_mb * MB)
    if not room.is_short:
        return []
    said = f"storage: {room.used / MB:.0f} MB of storage.max_mb {settings.storage_max_mb}"
    if not turns.is_any_output_left(rows):
        return [f"{said}; all tool output is dropped, conversation is kept: raise storage.max_mb"]
    return [
        f"{said}; {'the oldest tool output is being dropped' if room.is_over else 'beyond it the oldest tool output is dropped'}"
    ]
