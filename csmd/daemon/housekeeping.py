"""Work that is done by the clock: backups, retention, and the hourly log line."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from csmd.capture import ingest, transcripts
from csmd.config import Settings
from csmd.daemon.context import Context, now_iso, to_iso
from csmd.errors import StoreError
from csmd.paths import is_there
from csmd.store import activity, backup, checkpoints, compactions, probes, text_retention
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text.display import amount
from csmd.tools.maintenance import list_backup_files

log = logging.getLogger(__name__)

BYTES_PER_MB = 1_000_000


# --- backups

#: How often the daemon checks whether a backup is due, or repeats one that failed.
BACKUP_CHECK_S = 600.0


def make_daily_backup(context: Context) -> bool:
    """Makes a backup if one is due; StoreError if the disk has no room for it."""
    database, hours = context.config.paths.database, context.config.settings.backup_every_h
    if not hours or not _is_backup_due(context, database, hours):
        return False
    if not backup.has_room(database):
        raise StoreError(
            "no backup was made: the disk is too full", hint="free some space, or disable backups: backup.every_h: 0"
        )
    description = make_backup(context, None)
    log.info("the daily backup is made, %d bytes", description["bytes"])
    return True


def make_backup(
    context: Context, target: Path | None, *, note: backup.ReportProgress = backup.ignore_progress
) -> dict[str, Any]:
    """Makes a backup at `target`, or among the others and removes the oldest; returns its description."""
    database = context.config.paths.database
    place = target or backup.backup_path(database, now=now_iso())
    if target is not None and is_there(target):
        raise StoreError(f"{target} exists already", hint="choose another file")
    backup_made = backup.make_backup(database, place, stop=lambda: context.is_stopping, note=note)
    removed = 0 if target else backup.delete_old_backups(database, keep=context.config.settings.backup_keep)
    return {"path": str(backup_made.path), "bytes": backup_made.bytes, "counts": backup_made.counts, "removed": removed}


def _is_backup_due(context: Context, database: Path, hours: int) -> bool:
    """Whether the database has changed and the newest backup (without one, the database) is old enough."""
    newest = next(iter(backup.list_backups(database)), None)
    if newest is None:
        since = context.store.read(activity.created_at)
        made_at = datetime.fromisoformat(since) if since else datetime.now(UTC)
    else:
        made_at = backup.time_in_name(newest) or datetime.fromtimestamp(0, UTC)
        written = (database, database.with_name(f"{database.name}-wal"))
        if max(path.stat().st_mtime for path in written if is_there(path)) <= newest.stat().st_mtime:
            return False
    # A clock that was set back must not delay the next backup forever.
    return not 0 <= (datetime.now(UTC) - made_at).total_seconds() < hours * 3600


def describe_backups(database: Path) -> dict[str, Any]:
    """Returns the backups in `csmd status`: their number, size, and the time of the last."""
    copies = list_backup_files(database)
    return {
        "backups": len(copies),
        "backups_bytes": sum(row["bytes"] for row in copies),
        "last_backup": copies[0]["made_at"] if copies else "",
    }


# --- retention and growth

#: An older probe of `csmd doctor` was left by a killed one.
PROBE_TIMEOUT_S = 600
#: How often retention is applied; not at the start, when the daemon is catching up.
RETENTION_EVERY_S = 900.0
#: How often the segments of full-text indexes are merged.
MERGE_EVERY_S = 900.0
#: A write of this many turns takes a few milliseconds, so a hook still gets its answer in time.
BATCH_TURNS = 100


def drop_expired(store: Store, settings: Settings, *, now: datetime) -> bool:
    """Drops one batch of rows that are too old or too many at `now`; returns whether there was any."""

    def before(days: int) -> str:
        return to_iso(now - timedelta(days=days))

    def write(rows: Rows) -> int:
        probes.remove_probe(rows, before=to_iso(now - timedelta(seconds=PROBE_TIMEOUT_S)))
        dropped = 0
        if days := settings.storage_tool_output_days:
            dropped = text_retention.drop_old_output(rows, before=before(days), days=days, limit=BATCH_TURNS)
        if not dropped and (days := settings.storage_conversation_days):
            dropped = text_retention.drop_old_conversation(rows, before=before(days), days=days, limit=BATCH_TURNS)
        if not dropped and (days := settings.checkpoint_keep_days):
            dropped = checkpoints.delete_old(rows, before=before(days), limit=BATCH_TURNS)
        if not dropped and _measure_room(rows, settings).is_over:
            dropped = text_retention.drop_oldest_output(rows, limit=BATCH_TURNS)
        return dropped

    return store.write(write) > 0


def _measure_room(rows: Rows, settings: Settings) -> text_retention.Room:
    return text_retention.room_used(rows, limit=settings.storage_max_mb * BYTES_PER_MB)


def describe_retention(rows: Rows, settings: Settings, counters: dict[str, int]) -> dict[str, Any]:
    """Returns the used room in `csmd status`; sizes in bytes, a limit of 0 means none."""
    room = _measure_room(rows, settings)
    return {
        "used_bytes": room.used,
        "limit_bytes": room.limit,
        "tool_output_days": settings.storage_tool_output_days,
        "conversation_days": settings.storage_conversation_days,
        "conversation_turns_dropped": counters.get(text_retention.DROPPED_TURNS_COUNTER, 0),
        "tool_outputs_dropped": counters.get(text_retention.DROPPED_COUNTER, 0),
        "tool_output_bytes_dropped": counters.get(text_retention.DROPPED_BYTES_COUNTER, 0),
        "tokens_saved": compactions.tokens_saved(rows),
    }


def list_retention_warnings(rows: Rows, settings: Settings) -> list[str]:
    """Returns the warnings before, or while, tool output is dropped for lack of room."""
    room = _measure_room(rows, settings)
    if not room.is_short:
        return []
    if not text_retention.has_output(rows):
        consequence = "all tool output is dropped, conversation is kept: raise storage.max_mb"
    elif room.is_over:
        consequence = "the oldest tool output is being dropped"
    else:
        consequence = "beyond it the oldest tool output is dropped"
    return [f"storage: {room.used / BYTES_PER_MB:.0f} MB of storage.max_mb {settings.storage_max_mb}; {consequence}"]


#: How often the daemon checks whether a new day has begun.
GROWTH_EVERY_S = 900.0
#: Growth is the average over this many days at most.
MAX_GROWTH_DAYS = 14


def note_size(store: Store) -> None:
    """Records today's size."""
    today = datetime.now(UTC).date().isoformat()
    store.write(lambda rows: activity.record_size(rows, today))


def estimate_growth(sizes: list[tuple[str, int]], *, used: int, today: date) -> dict[str, Any]:
    """Returns `bytes_per_day` over the last `days` that were recorded; None and 0 if there are none yet.

    The very first day is not counted: everything that the assistant had written before was read on it.
    """
    days = sizes if len(sizes) >= activity.MAX_SIZE_DAYS else sizes[1:]
    for day, size in days:
        past = (today - date.fromisoformat(day)).days
        if 0 < past <= MAX_GROWTH_DAYS:
            return {"bytes_per_day": round((used - size) / past), "days": past}
    return {"bytes_per_day": None, "days": 0}


# --- the hourly line

#: How often the log of lookups is written to the store.
LOOKUPS_EVERY_S = 60.0
HOUR_S = 3600.0
#: (count or counter, its noun, suffix) of the parts of an hour's line, in order.
HOURLY_COUNTS = (
    ("turns", "turn", ""), ("memories", "memory", ""), ("injections", "injection", ""),
    (transcripts.PAUSED_TURNS, "turn", " left out in a pause"), (ingest.EXCLUDED_EVENTS, "event", " left out"),
    (transcripts.BAD_LINES, "line", " that could not be read"), (ingest.BAD_EVENTS, "event", " that could not be read"),
)  # fmt: skip


class HourlyLog:
    """Owns the counts of an hour ago; the background thread logs the difference."""

    def __init__(self) -> None:
        self._next = 0.0
        self._since = ""
        self._counts: Mapping[str, int] | None = None

    def step(self, store: Store, now: float) -> bool:
        """Logs a line if one is due at the monotonic time `now`; returns whether it did."""
        if now < self._next:
            return False
        self._next = now + HOUR_S
        counts = store.read(lambda rows: {**activity.counters(rows), **activity.counts(rows)})
        previous, since = self._counts, self._since
        self._counts, self._since = counts, f"{datetime.now(UTC).astimezone():%H:%M}"
        if previous is None:
            return False
        increase = {name: counts.get(name, 0) - previous.get(name, 0) for name, *_ in HOURLY_COUNTS}
        parts = [amount(increase[name], noun) + suffix for name, noun, suffix in HOURLY_COUNTS if increase[name] > 0]
        if parts:
            log.info("since %s: %s", since, ", ".join(parts))
        return bool(parts)
