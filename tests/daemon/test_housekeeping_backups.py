"""The daemon makes a backup a day by itself, when something changed and the disk has room; a new one shifts an old one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from csmd.daemon import housekeeping
from csmd.errors import StoreError
from csmd.store import activity, backup

Usage = type(shutil.disk_usage("/"))


def grown_old(parts: Any, database: Path) -> None:
    """Moves the clock by a day, from where the store stands."""
    parts.store.write(lambda rows: rows.run("update migrations set applied_at = '2026-01-01T00:00:00.000Z'"))
    for path in backup.listed(database):
        path.rename(path.with_name("csmd-20260101T000000Z.db"))


def test_a_backup_is_made_once_a_day_and_only_when_something_changed(parts: Any) -> None:
    database = parts.store.path
    assert not housekeeping.daily_backup(parts.background.context), "the database is of today"
    grown_old(parts, database)
    assert housekeeping.daily_backup(parts.background.context) and not housekeeping.daily_backup(
        parts.background.context
    )
    assert len(backup.listed(database)) == 1
    grown_old(parts, database)
    (only,) = backup.listed(database)
    times = database.with_name("csmd.db-wal").stat().st_mtime_ns + 10**9
    os.utime(only, ns=(times, times))
    assert not housekeeping.daily_backup(parts.background.context), "nothing changed since"
    os.utime(only, ns=(0, 0))
    assert housekeeping.daily_backup(parts.background.context)
    assert len(backup.listed(database)) == 2
    object.__setattr__(parts.background.context.config.settings, "backup_every_h", 0)
    grown_old(parts, database)
    assert not housekeeping.daily_backup(parts.background.context)


def test_on_a_disk_without_room_none_is_made_and_status_says_so(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    grown_old(parts, parts.store.path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(100 * 10**9, 96 * 10**9, 4 * 10**9))
    with pytest.raises(StoreError, match="too full"):
        housekeeping.daily_backup(parts.background.context)
    clock = 1e6
    while parts.background.step(clock):
        clock += 1e3
    assert "too full" in parts.background.context.trouble["backup"] and not backup.listed(parts.store.path)
    monkeypatch.undo()
    parts.background.step(clock + housekeeping.LOOK_S * 2)
    assert len(backup.listed(parts.store.path)) == 1 and "backup" not in parts.background.context.trouble


def test_the_newest_few_are_kept(parts: Any) -> None:
    folder = backup.folder_of(parts.store.path)
    folder.mkdir()
    for day in range(10, 20):
        (folder / f"csmd-202601{day}T000000Z.db").touch()
    made = housekeeping.make_backup(parts.background.context, None)
    kept = backup.listed(parts.store.path)
    assert len(kept) == parts.background.context.config.settings.backup_keep and str(kept[0]) == made["path"]
    assert made["removed"] == 6 and made["counts"] == parts.store.read(activity.counts)
    shown = housekeeping.backups_shown(parts.store.path)
    assert shown["backups"] == 5 and shown["backups_bytes"] == made["bytes"] and shown["last_backup"].startswith("20")
