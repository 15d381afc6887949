"""Backups: one a day by itself while nothing else is to be done, one when asked; the newest few are kept.

On the steward's thread and a connection of its own, so that neither hooks nor the writer wait for it.
"""

from __future__ import annotations

import logging
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from csmd.daemon.context import Context
from csmd.daemon.now import now_iso
from csmd.errors import StoreError
from csmd.store import activity, backup

log = logging.getLogger(__name__)

#: How often the daemon looks whether a backup is due, and tries again one that failed.
LOOK_S = 600.0


def daily(context: Context) -> bool:
    """Makes the backup that is due, if one is; StoreError when the disk has no room for it."""
    database, hours = context.config.paths.database, context.config.settings.backup_every_h
    if not hours or not _is_due(context, database, hours):
        return False
    if not backup.has_room(database):
        raise StoreError(
            "none was made, the disk is too full", hint="free some space, or set backup.every_h: 0 to do without"
        )
    made = make(context, None)
    log.info("the daily backup is made, %d bytes", made["bytes"])
    return True


def make(context: Context, target: Path | None) -> dict[str, Any]:
    """Makes a backup, at `target` or among the others, of which the oldest go; what it holds."""
    database = context.config.paths.database
    place = target or backup.place_of(database, now=now_iso())
    if target is not None and target.exists():
        raise StoreError(f"{target} is there already", hint="name a file that is not")
    made = backup.make(database, place, stop=lambda: context.stopping)
    removed = 0 if target else backup.rotate(database, keep=context.config.settings.backup_keep)
    return {"path": str(made.path), "bytes": made.bytes, "counts": made.counts, "removed": removed}


def _is_due(context: Context, database: Path, hours: int) -> bool:
    newest = next(iter(backup.listed(database)), None)
    if newest is None:
        since = context.store.read(activity.born)
        begun = datetime.fromisoformat(since) if since else datetime.now(UTC)
    else:
        begun = backup.made_at(newest) or datetime.fromtimestamp(0, UTC)
        if _changed_at(database) <= newest.stat().st_mtime:
            return False
    # A clock that was set back must not put the next one off for ever.
    return not 0 <= (datetime.now(UTC) - begun).total_seconds() < hours * 3600


def _changed_at(database: Path) -> float:
    log = database.with_name(f"{database.name}-wal")
    return max(path.stat().st_mtime for path in (database, log) if path.exists())


def listing(database: Path) -> list[dict[str, Any]]:
    """Every backup, the newest first."""
    return [
        {"path": str(path), "made_at": made.isoformat().replace("+00:00", "Z"), "bytes": os.stat(path).st_size}  # noqa: PTH116
        for path in backup.listed(database)
        if (made := backup.made_at(path))
    ]


def shown(database: Path) -> dict[str, Any]:
    """What `csmd status` tells of the backups."""
    found = listing(database)
    return {
        "backups": len(found),
        "backups_bytes": sum(row["bytes"] for row in found),
        "last_backup": found[0]["made_at"] if found else "",
    }
