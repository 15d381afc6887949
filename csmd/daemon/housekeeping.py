"""Makes daily backups, and drops expired rows to keep the database within its limits."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from csmd.config import Settings
from csmd.daemon.context import Context, now_iso, to_iso
from csmd.errors import StoreError
from csmd.paths import is_there
from csmd.store import activity, backup, checkpoints, probes, text_retention
from csmd.store.core import Store
from csmd.store.sqlite import Rows

log = logging.getLogger(__name__)

#: How often the daemon checks whether a backup is due, or repeats one that failed.
BACKUP_CHECK_S = 600.0
#: How often retention is applied; not at the start, when the daemon is catching up.
RETENTION_EVERY_S = 900.0
#: How often the daemon checks whether a new day has begun.
GROWTH_EVERY_S = 900.0
#: Age after which a probe of `csmd doctor` was left by a killed process.
PROBE_TIMEOUT_S = 600
#: Larger writes delay a hook's answer; this many turns take a few milliseconds.
BATCH_TURNS = 100
BYTES_PER_MB = 1_000_000


# --- backups


def make_daily_backup(context: Context) -> bool:
    """Makes a backup if one is due; StoreError if the disk has no room for it."""
    database, hours = context.config.paths.database, context.config.settings.backup_every_h
    if not hours or not _is_backup_due(context, database, hours):
        return False
    if not backup.has_room(database):
        hint = "free some space, or disable backups: backup.every_h: 0"
        raise StoreError("no backup was made: the disk is too full", hint=hint)
    description = make_backup(context, None)
    log.info("daily backup: %d bytes", description["bytes"])
    return True


def make_backup(
    context: Context, target: Path | None, *, report_progress: backup.ReportProgress = backup.ignore_progress
) -> dict[str, Any]:
    """Makes a backup at `target` and returns its description.

    Without a target it is made in the backup directory, where it then deletes the oldest.
    """
    database = context.config.paths.database
    if target is not None and is_there(target):
        raise StoreError(f"{target} exists already", hint="choose another file")
    path = target or backup.make_backup_path(database, now=now_iso())
    copy = backup.make_backup(database, path, stop=lambda: context.is_stopping, report_progress=report_progress)
    removed = 0 if target else backup.delete_old_backups(database, keep=context.config.settings.backup_keep)
    return {"path": str(copy.path), "bytes": copy.bytes, "counts": copy.counts, "removed": removed}


def _is_backup_due(context: Context, database: Path, hours: int) -> bool:
    """Whether the database has changed and the newest backup (without one, the database) is old enough."""
    newest = next(iter(backup.list_backups(database)), None)
    if newest is None:
        since = context.store.read(activity.find_creation_time)
        made_at = datetime.fromisoformat(since) if since else datetime.now(UTC)
    else:
        made_at = backup.parse_time_in_name(newest) or datetime.fromtimestamp(0, UTC)
        written = (database, database.with_name(f"{database.name}-wal"))
        if max(path.stat().st_mtime for path in written if is_there(path)) <= newest.stat().st_mtime:
            return False
    # A clock that was set back must not delay the next backup forever.
    return not 0 <= (datetime.now(UTC) - made_at).total_seconds() < hours * 3600


# --- retention and growth


def drop_expired(store: Store, settings: Settings, *, now: datetime) -> bool:
    """Drops one batch of rows that are too old or too many at `now`; returns whether there was any."""
    output_days, conversation_days = settings.storage_tool_output_days, settings.storage_conversation_days
    rules: tuple[tuple[int, Callable[..., int]], ...] = (
        (output_days, partial(text_retention.drop_old_output, days=output_days)),
        (conversation_days, partial(text_retention.drop_old_conversation, days=conversation_days)),
        (settings.checkpoint_keep_days, checkpoints.delete_old),
    )

    def drop_batch(rows: Rows) -> bool:
        probes.remove_probe(rows, before=to_iso(now - timedelta(seconds=PROBE_TIMEOUT_S)))
        for days, drop in rules:
            if days and drop(rows, before=to_iso(now - timedelta(days=days)), limit=BATCH_TURNS):
                return True
        is_over = measure_room(rows, settings).is_over
        return is_over and text_retention.drop_oldest_output(rows, limit=BATCH_TURNS) > 0

    return store.write(drop_batch)


def measure_room(rows: Rows, settings: Settings) -> text_retention.Room:
    """Measures the room that the database uses of its limit."""
    return text_retention.measure_room(rows, limit=settings.storage_max_mb * BYTES_PER_MB)


def record_size(store: Store) -> None:
    """Records today's size of the database."""
    today = datetime.now(UTC).date().isoformat()
    store.write(lambda rows: activity.record_size(rows, today))
