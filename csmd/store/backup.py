"""Copies of the database, each of one snapshot and checked, and the replacement of the database by another.

Copies are in `backups/` next to it, named by their time; no other file there is removed. A kill at any moment of a
replacement loses neither database.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import apsw

from csmd import wire
from csmd.errors import BadInput, Damaged, StoreError
from csmd.store import activity, cipher, files, schema_migrations, sqlite
from csmd.store.cipher import apply_key
from csmd.store.sqlite import REPAIR_HINT, Rows, as_store_error, close_quietly, open_rows

FOLDER = "backups"
#: The directory in the home where a new database is made: its rename must not cross disks.
WORKSHOP = "repairing"
#: The file in WORKSHOP that names the finished new database and where the old one goes.
READY_FILE = "ready.json"
#: Records which database and log were open together, by inode, and where the copy of a deleted one is.
OPEN_FILES_RECORD = "run/opened.json"
#: The files of a database.
DATABASE_SUFFIXES = ("", "-wal", "-shm")
#: Prefix of an unfinished copy, before a random suffix.
UNFINISHED = ".csmd-backup-"
#: Pages copied between two checks whether to stop: about 4 MB.
PAGES_PER_STEP = 1000
#: The share of the disk, and the bytes, that must stay free, whichever is more.
MIN_FREE_SHARE = 0.05
MIN_FREE_BYTES = 200_000_000
_NAME = re.compile(r"csmd-(\d{8}T\d{6}Z)\.db")


class Copy(NamedTuple):
    """A checked copy: its path, size, and row counts."""

    path: Path
    bytes: int
    counts: dict[str, int]


def get_backup_directory(database: Path) -> Path:
    """Returns the directory of a database's copies."""
    return database.parent / FOLDER


def make_backup_path(database: Path, *, now: str) -> Path:
    """Returns the path of a copy made at `now`."""
    return get_backup_directory(database) / f"csmd-{_format_stamp(now)}.db"


def _format_stamp(now: str) -> str:
    return re.sub(r"[-:]|[.]\d+", "", now)


def list_backups(database: Path) -> list[Path]:
    """Returns the copies of a database, the newest first, without unfinished ones and other files."""
    with contextlib.suppress(OSError):
        return sorted(
            (path for path in get_backup_directory(database).iterdir() if _NAME.fullmatch(path.name)), reverse=True
        )
    return []


def parse_time_in_name(path: Path) -> datetime | None:
    """Returns when a copy was made, by its name; None for another file."""
    match = _NAME.fullmatch(path.name)
    try:
        return datetime.strptime(match.group(1), "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC) if match else None
    except ValueError:
        return None


def has_room(database: Path) -> bool:
    """Whether the disk keeps enough free space with one more copy on it."""
    usage = shutil.disk_usage(database.parent)
    return usage.free - database.stat().st_size > max(usage.total * MIN_FREE_SHARE, MIN_FREE_BYTES)


#: Receives (pages copied, pages in all).
ReportProgress = Callable[[int, int], None]


def ignore_progress(done: int, total: int) -> None:
    """Ignores the progress of a copy."""
    del done, total


def make_backup(
    database: Path, target: Path, *, stop: Callable[[], bool] = lambda: False, report_progress: ReportProgress = ignore_progress, vfs: str = "",
    rows: Rows | None = None,
) -> Copy:  # fmt: skip
    """Copies the database as it is now to `target`, which appears complete, private and checked.

    Uses its own connection, so that no other work waits, or that of `rows` if the file is no longer at its path. Raises
    StoreError if the disk or the database refuses or `stop` returns true; Damaged if the copy, and with it the
    database, is not sound.
    """
    folder = files.make_private(target.parent) if target.parent == get_backup_directory(database) else target.parent
    if target.parent == get_backup_directory(database):
        clear_unfinished(folder)
    temp = folder / f"{UNFINISHED}{os.urandom(6).hex()}"
    try:
        os.close(os.open(temp, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
        expected = _copy(database, temp, stop, report_progress, vfs, rows)
        actual = examine(temp, vfs=vfs)
        if actual != expected:
            raise Damaged(f"the copy of {database} differs from the original", hint=REPAIR_HINT)
        files.flush_to_disk(temp)
        size = temp.stat().st_size
        temp.replace(target)
        files.flush_to_disk(folder)
    except OSError as error:
        raise StoreError(
            f"{target}: {error.strerror or error}", hint="choose another path or free some space"
        ) from error
    finally:
        _remove_temporary(temp)
    return Copy(path=target, bytes=size, counts=expected)


def _copy(
    database: Path, temp: Path, stop: Callable[[], bool], report_progress: ReportProgress, vfs: str, rows: Rows | None
) -> dict[str, int]:
    """Copies page by page within one snapshot and returns the snapshot's row counts."""
    try:
        # Without the snapshot, each write of the daemon would restart the copy.
        with contextlib.ExitStack() as end:
            rows = rows or end.enter_context(open_rows(database, readonly=True, vfs=vfs))
            end.enter_context(rows.transaction(write=False))
            expected = activity.counts(rows)
            copy = apsw.Connection(str(temp), vfs=vfs or None)
            end.callback(close_quietly, copy)
            apply_key(copy, like=rows.connection)
            backup = copy.backup("main", rows.connection, "main")
            end.callback(backup.close, True)  # not as a context manager: apsw's raises if ending it fails
            while not backup.done:
                if stop():
                    raise StoreError("the daemon is stopping", hint="run it again when the daemon runs")
                backup.step(PAGES_PER_STEP)
                report_progress(backup.page_count - backup.remaining, backup.page_count)
            backup.finish()
            # One file: a write-ahead log next to a copy would get lost.
            copy.execute("pragma journal_mode = delete").fetchall()
    except apsw.Error as error:
        raise as_store_error(error, database) from error
    return expected


def examine(path: Path, *, vfs: str = "") -> dict[str, int]:
    """Checks a copy's pages and returns its row counts; raises Damaged, SchemaTooNew, SchemaTooOld or BadInput."""
    try:
        with path.open("rb") as file:
            if not file.read(1):
                raise BadInput(f"{path} is empty")
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    with open_rows(path, readonly=True, vfs=vfs) as rows:
        if not schema_migrations.is_csmd_database(rows):
            raise BadInput(f"{path} is a database of another program")
        schema_migrations.find_pending(rows)
        wrong = [str(text) for (text,) in rows.all("pragma quick_check(1)") if text != "ok"]
        if wrong:
            raise Damaged(f"{path} is damaged: {wrong[0]}", hint="try another backup: `csmd backup list` shows them")
        return activity.counts(rows)


def convert(source: Path, target: Path, *, encrypted: bool) -> None:
    """Writes `source`, which no process has open, to `target`, encrypted or plain, and compares the two."""
    os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    with open_rows(source, readonly=False, inspect_only=True) as rows:
        cipher.copy_into(rows.connection, target, encrypted=encrypted)
        expected = sqlite.count_rows_by_table(rows)
    with open_rows(target, readonly=True) as rows:
        wrong = [text for (text,) in rows.all("pragma quick_check(1)") if text != "ok"]
        if wrong or sqlite.count_rows_by_table(rows) != expected:
            raise StoreError(f"{source}: the copy differs from the original", hint="run `csmd repair`")
    files.flush_to_disk(target)


def convert_if_needed(path: Path) -> Path:
    """Returns `path`, or a copy next to it, encrypted or plain as this home's databases are."""
    if cipher.is_encrypted_file(path) == cipher.encrypts_new():
        return path
    target = path.with_name("converted.db")
    convert(path, target, encrypted=cipher.encrypts_new())
    return target


def find_newest_sound(database: Path) -> Path | None:
    """Returns the newest usable copy, or None."""
    return _find_first_sound(list_backups(database))


def _find_first_sound(copies: Iterable[Path]) -> Path | None:
    for path in copies:
        with contextlib.suppress(StoreError, BadInput):
            examine(path)
            return path
    return None


def make_pre_migration_path(database: Path) -> Path:
    """Returns the path of the copy made before a migration."""
    return database.with_suffix(".before-migration.db")


def find_newest_compatible(database: Path) -> Path | None:
    """Returns the newest copy that this version can use, also one from before a migration; None if there is none."""
    copies = [path for path in (make_pre_migration_path(database), *list_backups(database)) if path.is_file()]
    return _find_first_sound(sorted(copies, key=lambda path: path.stat().st_mtime_ns, reverse=True))


def delete_old_backups(database: Path, *, keep: int) -> int:
    """Removes all but the newest copies and returns how many."""
    old = list_backups(database)[max(keep, 1) :]
    for path in old:
        path.unlink(missing_ok=True)
    return len(old)


def clear_unfinished(folder: Path) -> None:
    """Removes copies that a killed daemon left unfinished; only one is ever made at a time."""
    for path in folder.glob(f"{UNFINISHED}*"):
        path.unlink(missing_ok=True)


def refuse_lost_database(database: Path) -> None:
    """Raises Damaged if the database is missing though one existed: an empty one would hide the loss."""
    if database.is_dir():
        raise Damaged(f"{database}: the database path is a directory", hint=REPAIR_HINT)
    if database.exists() and database.stat().st_size:
        return
    log = database.with_name(f"{database.name}-wal")
    if list_backups(database) or (log.exists() and log.stat().st_size):
        state = "is empty" if database.exists() else "is gone"
        raise Damaged(f"{database} {state}, but its backups or its write-ahead log still exist", hint=REPAIR_HINT)


def record_open_files(database: Path) -> None:
    """Records which file and log belong together, for `move_stale_log_aside`; replaces the earlier record."""
    record_path = database.parent / OPEN_FILES_RECORD
    if (inodes := _read_inodes(database)) is None:
        record_path.unlink(missing_ok=True)
    else:
        files.write_atomic(record_path, wire.dumps(inodes).encode(), durable=False)


def record_rescue(database: Path, copy: Path) -> None:
    """Records where the copy of a database deleted while open will be, for `restore_rescued`."""
    record_path = database.parent / OPEN_FILES_RECORD
    files.make_private(record_path.parent)
    record = {**(files.read_json(record_path) or {}), "rescued": copy.name}
    files.write_atomic(record_path, wire.dumps(record).encode(), durable=False)


def restore_rescued(database: Path) -> Path | None:
    """Puts the copy of a deleted database in its place and returns it; None if there is nothing to do.

    Defects of the copy are left to `csmd repair`. The copy stays among the backups.
    """
    record = files.read_json(database.parent / OPEN_FILES_RECORD) or {}
    if "rescued" not in record or database.exists():
        return None
    copy = get_backup_directory(database) / str(record["rescued"])
    temp = database.with_name(f"{UNFINISHED}{os.urandom(6).hex()}")
    try:
        examine(copy)
        shutil.copyfile(copy, temp)
        files.flush_to_disk(temp)
        temp.replace(database)
        files.flush_to_disk(database.parent)
    except (OSError, StoreError, BadInput):
        return None
    finally:
        _remove_temporary(temp)
    return copy


def move_stale_log_aside(database: Path, *, now: str) -> Path | None:
    """Moves aside a log whose database was replaced, and returns its new path; None if there was none.

    SQLite would apply it to the new database. A daemon that exits by itself leaves no log; a killed one does.
    """
    record = files.read_json(database.parent / OPEN_FILES_RECORD)
    inodes = _read_inodes(database)
    if (
        record is None
        or inodes is None
        or record.get("log") != inodes["log"]
        or record["database"] == inodes["database"]
    ):
        return None
    folder = files.make_private(database.parent / f"damaged-{_format_stamp(now)}")
    for suffix in DATABASE_SUFFIXES[1:]:
        with contextlib.suppress(FileNotFoundError):
            path = database.with_name(database.name + suffix)
            path.replace(folder / path.name)
    files.flush_to_disk(folder)
    files.flush_to_disk(database.parent)
    return folder


def _read_inodes(database: Path) -> dict[str, int] | None:
    """Returns the inodes of a database and of its log; None if one is missing."""
    with contextlib.suppress(FileNotFoundError):
        return {"database": database.stat().st_ino, "log": database.with_name(f"{database.name}-wal").stat().st_ino}
    return None


def replace_database(new: Path, database: Path, old_copy: Path) -> None:
    """Puts `new`, made in WORKSHOP, in the database's place; the old files are renamed to `old_copy` with their suffixes.

    Once READY_FILE is written, the next holder of the instance lock finishes the replacement.
    """
    home = database.parent
    workshop = database.parent / WORKSHOP
    for path in (new, new.parent, workshop, home):
        files.flush_to_disk(path)
    names = {"new": str(new.relative_to(home)), "aside": str(old_copy.relative_to(home))}
    files.write_atomic(workshop / READY_FILE, wire.dumps(names).encode())
    files.flush_to_disk(workshop)
    finish_replacement(database)


def is_replacing(database: Path) -> bool:
    """Whether a replacement of the database was begun and not finished."""
    return (database.parent / WORKSHOP / READY_FILE).exists()


def finish_replacement(database: Path) -> None:
    """Finishes a replacement of the database, from whatever step a kill left it at, and removes the workshop."""
    home = database.parent
    workshop = database.parent / WORKSHOP
    names = files.read_json(workshop / READY_FILE)
    if names is not None and (new := home / str(names["new"])).exists():  # otherwise it is in its place already
        old_copy = home / str(names["aside"])
        for suffix in DATABASE_SUFFIXES:  # every old file: a new database must never meet the log of another
            old, target = database.with_name(database.name + suffix), old_copy.with_name(old_copy.name + suffix)
            if old.exists():
                if target.exists():
                    raise StoreError(
                        f"{target} exists, and the old database is moved there", hint=f"move {target} away"
                    )
                old.replace(target)
        files.flush_to_disk(old_copy.parent)
        new.replace(database)
        files.flush_to_disk(home)
    shutil.rmtree(workshop, ignore_errors=True)


def _remove_temporary(temp: Path) -> None:
    for suffix in ("", "-journal", "-wal", "-shm"):
        with contextlib.suppress(OSError):
            temp.with_name(temp.name + suffix).unlink()
