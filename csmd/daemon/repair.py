"""`python -m csmd.daemon.repair`: restores or repairs the database without a daemon.

The new database is made from copies and checked in a directory of its own. Only then are the old files moved aside
(never deleted) and replaced. A failure before that changes nothing.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from csmd import wire
from csmd.capture.project_identity import Places
from csmd.config import Config
from csmd.daemon import context, logs, reading
from csmd.daemon.context import now_iso
from csmd.daemon.instance import hold_instance_lock, load_configuration, run_explained
from csmd.errors import BadInput, Damaged, StoreError
from csmd.paths import file_of_transcript
from csmd.pauses import PauseFile
from csmd.privacy.redaction import choose_words
from csmd.store import activity, backup, files, integrity, recovery, schema_migrations, search, sqlite
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text.display import amount

#: The loss if neither the damaged file nor a backup can be read.
UNRECOVERABLE = (
    "workspaces, aliases, merges, the record of forgotten and purged texts, and memories that are in no transcript: "
    "set them up again, or restore a backup of your own with `csmd restore FILE`"
)
#: The tables whose rows the report counts.
REPORTED_TABLES = ("turns", "memories", "statements", "tombstones", "sessions")
COPY_BYTES = 1 << 20
#: Reports the present step and its progress (done, total); 0 of 0 if it is unknown.
ReportProgress = Callable[[str, int, int], None]


def ignore_progress(*_: object) -> None:
    """Reports no progress."""


def repair(
    config: Config, *, dry_run: bool = False, report_progress: ReportProgress = ignore_progress
) -> dict[str, Any]:
    """Checks the database and repairs its indexes, or rebuilds it from the damaged file, a backup and transcripts.

    The reported state is `none` (there is no database), `sound`, `indexes` or `rebuilt`.
    """
    database = config.paths.database
    with open_work_directory(config) as work_directory:
        if not database.exists() and not backup.list_backups(database) and not _with_suffix(database, "-wal").exists():
            return {"state": "none", "problems": []}
        new = _copy_database(database, work_directory / "old")
        report_progress("checking", 0, 0)
        condition = integrity.inspect(new)
        if not condition.problems:
            return {"state": "sound", "problems": []}
        report: dict[str, Any] = {"state": "indexes", "problems": condition.problems, "dry_run": dry_run}
        if not (condition.only_indexes and integrity.mend_indexes(new)):
            report["state"] = "rebuilt"
            damaged, new = new, files.make_private(work_directory / "new") / "csmd.db"
            report_progress("reading rows", 0, 0)
            salvage = _salvage(config, damaged, new)
            report |= salvage.report
            if dry_run:
                report["transcripts"] = len(salvage.transcripts)
            else:
                replayed = _replay_transcripts(config, new, salvage, report_progress)
                report |= {**replayed, "lost": report["lost"] + replayed["lost"]}
        if not dry_run:
            old_copy = files.make_private(database.parent / f"damaged-{_make_timestamp()}")
            backup.replace_database(new, database, old_copy / database.name)
            report["set_aside"] = str(old_copy)
    return report


class _Salvage(NamedTuple):
    """The rows that a new database got from the damaged one and a backup, as a report, and the transcripts to read."""

    report: dict[str, Any]
    transcripts: list[Path]
    disordered_sessions: set[int]
    turns: int


def _salvage(config: Config, damaged_file: Path, new: Path) -> _Salvage:
    """Fills a new database from the copy of the damaged one and the newest sound backup."""
    lost: list[str] = []
    with ExitStack() as stack:
        backup_path = backup.find_newest_sound(config.paths.database)
        readable = recovery.open_damaged(damaged_file, sound=backup_path) if damaged_file.is_file() else None
        if readable and schema_migrations.is_at_last_legacy_migration(Rows(readable)):
            # The answers and dreams of an earlier version are in tables that later versions dropped.
            readable.close()
            if not schema_migrations.migrate_copy(damaged_file, now=now_iso()):
                lost.append("answers and dreams of an earlier version could not be carried over")
            readable = recovery.open_damaged(damaged_file, sound=None)
        damaged = Rows(stack.enter_context(closing(readable))) if readable else None
        backup_rows = stack.enter_context(_open_backup(backup_path, new.parent)) if backup_path else None
        key = recovery.read_hash_key(damaged)
        backup_key = recovery.read_hash_key(backup_rows)
        if key and backup_key and key != backup_key:
            backup_rows = None  # a backup of another database
        elif not key:
            key = backup_key
        sources = [rows for rows in (damaged, backup_rows) if rows]
        store = stack.enter_context(closing(Store(new, now=now_iso())))
        counts = store.write(
            lambda rows: recovery.rebuild(rows, damaged=damaged, copy=backup_rows, key=key, new_key=store.hash_key)
        )
        if not sources:
            lost.insert(0, UNRECOVERABLE)
        lost = _describe_losses(counts, is_key_lost=key is None and damaged is not None) + lost
        report = {
            "backup": str(backup_path) if backup_rows else "", "read": _select_counts(counts.rows),
            "from_backup": _select_counts(counts.filled), "stubs": counts.stubs,
            "without_transcript": store.read(recovery.count_without_turn), "lost": lost,
        }  # fmt: skip
        turns = store.read(activity.counts)["turns"]
        return _Salvage(report, _list_transcripts(config, sources), counts.disordered_sessions, turns)


def _replay_transcripts(
    config: Config, new: Path, salvage: _Salvage, report_progress: ReportProgress
) -> dict[str, Any]:
    """Adds to a salvaged database what transcripts contain, and finishes it; returns its part of the report."""
    with closing(Store(new, now=now_iso())) as store:  # reopened, because its key has changed
        last = store.read(search.find_last_turn_seq)
        for seq, directory in store.read(recovery.list_nameless_projects):
            project = Places("").of(directory)
            store.write(partial(recovery.name_project, seq=seq, project=project))
        failed = _read_transcripts(config, store, salvage.transcripts, report_progress)
        sessions = salvage.disordered_sessions
        store.write(lambda rows: recovery.sort_turns(rows, new_after=last, disordered_sessions=sessions))
        store.write(recovery.empty_stub_sessions)
        forgotten = store.write(lambda rows: recovery.merge_tombstones(rows, [], key=store.hash_key))
        counts = store.read(activity.counts)
        _finish(store)
    return {
        "lost": [f"{amount(failed, 'transcript')} could not be read"] if failed else [], "forgotten_again": forgotten,
        "from_transcripts": {"turns": counts["turns"] - salvage.turns, "files": len(salvage.transcripts)},
        "counts": counts,
    }  # fmt: skip


@contextlib.contextmanager
def _open_backup(backup_path: Path, work_directory: Path) -> Iterator[Rows]:
    """Opens a backup, or an upgraded copy of one from an earlier version."""
    with sqlite.open_rows(backup_path, readonly=True) as rows:
        if not schema_migrations.is_at_last_legacy_migration(rows):
            yield rows
            return
    copy = _copy_database(backup_path, work_directory / "backup")
    schema_migrations.migrate_copy(copy, now=now_iso())
    with sqlite.open_rows(copy, readonly=True) as rows:
        yield rows


def _select_counts(rows: dict[str, int]) -> dict[str, int]:
    """Returns the counts of the tables that the report names."""
    return {name: rows.get(name, 0) for name in REPORTED_TABLES}


def _describe_losses(salvaged: recovery.SalvageCounts, *, is_key_lost: bool) -> list[str]:
    """Describes the unreadable parts, including rows that transcripts restore."""
    lost = []
    for table, number in salvaged.unfilled.items():
        if number:
            restored = amount(salvaged.filled[table], "row")
            lost.append(f"{table}: {amount(number, 'range')} unreadable; {restored} restored from the backup")
    if is_key_lost:
        forgotten = amount(salvaged.tombstones_lost, "forgotten text")
        lost.append(f"the key of the hashes is lost: {forgotten} can no longer be recognised")
    return lost


def _list_transcripts(config: Config, sources: list[Rows]) -> list[Path]:
    """Returns every transcript: of the assistants, of csmd's own sessions, and imported ones."""
    roots = context.list_transcript_roots(config)
    on_disk = [Path(file.path) for root in roots for file in reading.list_own_transcripts(config, root)]
    read_before = [Path(path) for rows in sources for path in recovery.list_transcripts(rows)]
    return list(dict.fromkeys([*on_disk, *(path for path in read_before if file_of_transcript(path).is_file())]))


def _read_transcripts(config: Config, store: Store, paths: list[Path], report_progress: ReportProgress) -> int:
    """Reads every transcript from its beginning; returns how many could not be read."""
    excludes = context.build_excludes(config, PauseFile(config.paths.pauses))
    failed = 0
    for number, path in enumerate(paths):
        report_progress("reading transcripts", number, len(paths))
        try:
            reading.read_transcript(store, config, path, leave_out=excludes)
        except OSError:
            failed += 1
    return failed


def restore(
    config: Config, source: str, *, dry_run: bool = False, report_progress: ReportProgress = ignore_progress
) -> dict[str, Any]:
    """Replaces the database by a backup; texts forgotten since stay forgotten.

    `source` is a path or "latest". BadInput, Damaged or SchemaTooNew for a file that cannot be used.
    """
    database = config.paths.database
    with open_work_directory(config) as work_directory:
        backup_path = backup.find_newest_sound(database) if source == "latest" else Path(source)
        if backup_path is None:
            raise BadInput(f"no usable backup in {backup.get_backup_directory(database)}", hint="run `csmd repair`")
        if not backup_path.is_file():
            raise BadInput(f"{backup_path}: no such file", hint="run `csmd backup list`")
        report_progress("copying", 0, 0)
        new = _copy_database(backup_path, work_directory / "new")
        report_progress("checking", 0, 0)
        try:
            backup.examine(new)
        except (BadInput, Damaged) as error:
            problem = error.what.removeprefix(f"{new} ").removeprefix("is damaged: ")
            what = f"{backup_path} cannot be used as a backup: {problem}"
            raise BadInput(what, hint="run `csmd backup list`") from error
        report_progress("forgetting again", 0, 0)
        new = backup.convert_if_needed(new)
        tombstones, key = _read_tombstones(database, work_directory)
        with closing(Store(new, now=now_iso())) as store:
            lost = []
            if key not in (None, store.hash_key):
                lost = [f"{amount(len(tombstones), 'tombstone')}: the backup is of another database"]
                tombstones = []
            forgotten_again = store.write(partial(recovery.merge_tombstones, tombstones=tombstones, key=store.hash_key))
            store.cleanse()
            report = {
                "from": str(backup_path), "counts": store.read(activity.counts), "dry_run": dry_run,
                "tombstones": len(tombstones), "forgotten_again": forgotten_again, "lost": lost,
            }  # fmt: skip
            _finish(store)
        if not dry_run:
            old_copy = database.with_name(f"{database.name}.before-restore-{_make_timestamp()}")
            backup.replace_database(new, database, old_copy)
            report["set_aside"] = str(old_copy)
    return report


def _read_tombstones(database: Path, work_directory: Path) -> tuple[list[dict[str, Any]], bytes | None]:
    """Returns the tombstones of the present database as far as they can be read, and its key."""
    present = _copy_database(database, work_directory / "present")
    connection = recovery.open_damaged(present, sound=None) if present.is_file() else None
    if connection is None:
        return [], None
    with closing(connection):
        return recovery.read_tombstones(Rows(connection)), recovery.read_hash_key(Rows(connection))


def _finish(store: Store) -> None:
    """Writes the new database to one file on the disk; Damaged if it is not sound."""
    problems = store.write(integrity.check_database)
    if problems:
        raise Damaged(f"the new database is not sound: {problems[0]}; nothing was changed", hint="try another backup")
    store.checkpoint(truncate=True)


@contextlib.contextmanager
def open_work_directory(config: Config) -> Iterator[Path]:
    """Opens a private directory for temporary files in a home that no daemon serves, and removes it afterwards."""
    database, folder = config.paths.database, config.paths.home / backup.WORKSHOP
    with hold_instance_lock(config.paths):
        try:
            yield files.make_private(folder)
        except OSError as error:
            outcome = "nothing was changed"
            if backup.is_replacing(database):
                outcome = "the next start of the daemon finishes this"
            hint = "make room for about twice the database's size on that disk, and run it again"
            what = f"{error.filename or folder}: {error.strerror or error}; {outcome}"
            raise StoreError(what, hint=hint) from error
        finally:
            if not backup.is_replacing(database):
                shutil.rmtree(folder, ignore_errors=True)


def _make_timestamp() -> str:
    """Returns the present time, for the names of files that are set aside."""
    return re.sub(r"[-:.]", "", now_iso())


def _with_suffix(database: Path, suffix: str) -> Path:
    return database.with_name(f"{database.name}{suffix}")


def _copy_database(database: Path, folder: Path) -> Path:
    """Copies a database with its log privately, as csmd.db in a new directory; copies nothing if there is no file."""
    files.make_private(folder)
    target = folder / "csmd.db"
    if database.is_dir():
        target.mkdir()
        return target
    for suffix in ("", "-wal"):
        with contextlib.suppress(FileNotFoundError), _with_suffix(database, suffix).open("rb") as old:
            descriptor = os.open(_with_suffix(target, suffix), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as new:
                shutil.copyfileobj(old, new, COPY_BYTES)
    return target


def main(arguments: list[str]) -> int:
    """Runs `repair [--dry-run]` or `restore FILE|latest [--dry-run]`; returns the exit code.

    Each line on stdout is JSON: the present step, and at the end the report.
    """
    logs.keep_words_off_stderr()
    os.umask(0o077)
    dry_run = "--dry-run" in arguments
    command, *rest = [word for word in arguments if word != "--dry-run"]

    def perform() -> None:
        config = load_configuration()
        choose_words(config.settings.privacy_redact)
        if command == "restore":
            report = restore(config, rest[0], dry_run=dry_run, report_progress=print_progress)
        else:
            report = repair(config, dry_run=dry_run, report_progress=print_progress)
        print(wire.dumps({"report": report}))  # noqa: T201

    def print_progress(step: str, done: int, total: int) -> None:
        print(wire.dumps({"step": step, "done": done, "total": total or None}), flush=True)  # noqa: T201

    return run_explained(perform)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
