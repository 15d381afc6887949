"""`python -m csmd.daemon.repair`: restores or repairs the database without a daemon.

The new database is made from copies and checked in a directory of its own. Only then the old files are set aside, never
deleted, and replaced by the new one: a failure before that has changed nothing.
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
from typing import Any

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

NOTHING_READABLE = (
    "workspaces, aliases, merges, the record of forgotten and purged texts, and memories that are in no transcript: "
    "set them up again, or restore a backup of your own with `csmd restore FILE`"
)


#: Reports the present step and its progress (done, total); 0 of 0 if it is unknown.
ReportProgress = Callable[[str, int, int], None]


def ignore_progress(step: str, done: int, total: int) -> None:
    """Reports no progress."""
    del step, done, total


def repair(config: Config, *, dry_run: bool = False, note: ReportProgress = ignore_progress) -> dict[str, Any]:
    """Checks the database and repairs its indexes, or rebuilds it from the damaged file, a backup and transcripts.

    The reported state is `none` (there is no database), `sound`, `indexes` or `rebuilt`.
    """
    database = config.paths.database
    with open_workshop(config) as workshop:
        if not database.exists() and not backup.list_backups(database) and not _with_suffix(database, "-wal").exists():
            return {"state": "none", "problems": []}
        new = _copy_database(database, workshop / "old")
        note("checking", 0, 0)
        condition = integrity.inspect(new)
        if not condition.problems:
            return {"state": "sound", "problems": []}
        report: dict[str, Any] = {"state": "indexes", "problems": condition.problems, "dry_run": dry_run}
        if not (condition.only_indexes and integrity.mend_indexes(new)):
            report["state"] = "rebuilt"
            new = _rebuild(config, new, workshop / "new", report, dry_run=dry_run, note=note)
        if not dry_run:
            aside = files.make_private(database.parent / f"damaged-{_make_timestamp()}")
            backup.replace_database(new, database, aside / database.name)
            report["set_aside"] = str(aside)
    return report


def _rebuild(
    config: Config, scratch: Path, workshop: Path, report: dict[str, Any], *, dry_run: bool, note: ReportProgress
) -> Path:
    """Makes a new database from the copy of the damaged one, the newest sound backup and the transcripts."""
    files.make_private(workshop)
    new = workshop / "csmd.db"
    note("reading rows", 0, 0)
    unread_parts: list[str] = []
    with ExitStack() as opened:
        sound = backup.find_newest_sound(config.paths.database)
        readable = recovery.open_damaged(scratch, sound=sound) if scratch.is_file() else None
        if readable and schema_migrations.is_at_last_legacy_migration(Rows(readable)):
            # The answers and dreams of an earlier version are in tables that are gone since.
            readable.close()
            if not schema_migrations.migrate_copy(scratch, now=now_iso()):
                unread_parts.append("answers and dreams of an earlier version could not be carried over")
            readable = recovery.open_damaged(scratch, sound=None)
        damaged = Rows(opened.enter_context(closing(readable))) if readable else None
        copy = opened.enter_context(_open_backup(sound, workshop)) if sound else None
        key, key_of_copy = recovery.read_hash_key(damaged), recovery.read_hash_key(copy)
        if key and key_of_copy and key != key_of_copy:
            copy = None  # a backup of another database
        key = key or (key_of_copy if copy else None)
        paths = _list_transcripts(config, [rows for rows in (damaged, copy) if rows])
        store = opened.enter_context(closing(Store(new, now=now_iso())))
        salvaged = store.write(
            lambda rows: recovery.rebuild(rows, damaged=damaged, copy=copy, key=key, new_key=store.hash_key)
        )
        turns_before = store.read(activity.counts)["turns"]
        report.update(
            backup=str(sound) if copy else "", read=_select_counts(salvaged.rows),
            from_backup=_select_counts(salvaged.filled),
            stubs=salvaged.stubs, without_transcript=store.read(recovery.count_without_turn),
            lost=_describe_losses(salvaged, is_key_lost=key is None and damaged is not None)
            + ([] if damaged or copy else [NOTHING_READABLE]) + unread_parts,
        )  # fmt: skip
    if dry_run:
        report["transcripts"] = len(paths)
        return new
    with closing(Store(new, now=now_iso())) as store:  # reopened, because its key has changed
        last = store.read(search.find_last_turn_seq)
        for project, directory in store.read(recovery.list_nameless_projects):
            place = Places("").of(directory)
            store.write(partial(recovery.name_project, seq=project, project=place))
        if failed := _read_transcripts(config, store, paths, note):
            report["lost"].append(f"{amount(failed, 'transcript')} could not be read")
        store.write(
            lambda rows: recovery.sort_turns(rows, new_after=last, disordered_sessions=salvaged.disordered_sessions)
        )
        store.write(recovery.empty_stub_sessions)
        report["forgotten_again"] = store.write(lambda rows: recovery.merge_tombstones(rows, [], key=store.hash_key))
        counts = store.read(activity.counts)
        report["from_transcripts"] = {"turns": counts["turns"] - turns_before, "files": len(paths)}
        report["counts"] = counts
        _finish(store)
    return new


@contextlib.contextmanager
def _open_backup(sound: Path, workshop: Path) -> Iterator[Rows]:
    """Opens a backup, or an upgraded copy of one from an earlier version."""
    with sqlite.open_rows(sound, readonly=True) as rows:
        if not schema_migrations.is_at_last_legacy_migration(rows):
            yield rows
            return
    copy = _copy_database(sound, workshop / "backup")
    schema_migrations.migrate_copy(copy, now=now_iso())
    with sqlite.open_rows(copy, readonly=True) as rows:
        yield rows


def _select_counts(rows: dict[str, int]) -> dict[str, int]:
    """The counts of the tables that the report names."""
    return {name: rows.get(name, 0) for name in ("turns", "memories", "statements", "tombstones", "sessions")}


def _describe_losses(salvaged: recovery.SalvageCounts, *, is_key_lost: bool) -> list[str]:
    """Describes the unreadable parts, including rows that transcripts restore."""
    lost = [
        f"{table}: {amount(number, 'place')} could not be read; "
        f"for others {amount(salvaged.filled[table], 'row')} came from the backup"
        for table, number in salvaged.unfilled.items()
        if number
    ]
    if is_key_lost:
        unknown = f"{amount(salvaged.tombstones_lost, 'tombstone')} for forgotten text can no longer be applied"
        lost.append(f"the key of the hashes: {unknown}")
    return lost


def _list_transcripts(config: Config, sources: list[Rows]) -> list[Path]:
    """Every transcript: of the assistants, of csmd's own sessions, and imported ones."""
    listed = [
        Path(file.path)
        for root in context.list_transcript_roots(config)
        for file in reading.list_own_transcripts(config, root)
    ]
    read_before = [Path(path) for rows in sources for path in recovery.list_transcripts(rows)]
    return list(dict.fromkeys([*listed, *(path for path in read_before if file_of_transcript(path).is_file())]))


def _read_transcripts(config: Config, store: Store, paths: list[Path], note: ReportProgress) -> int:
    """Reads every transcript from its beginning; returns how many could not be read."""
    leave_out, failed = context.build_excludes(config, PauseFile(config.paths.pauses)), 0
    for number, path in enumerate(paths):
        note("reading transcripts", number, len(paths))
        try:
            reading.read_transcript(store, config, path, leave_out=leave_out)
        except OSError:
            failed += 1
    return failed


def restore(
    config: Config, source: str, *, dry_run: bool = False, note: ReportProgress = ignore_progress
) -> dict[str, Any]:
    """Replaces the database by a backup; texts forgotten since stay forgotten.

    `source` is a path or "latest". BadInput, Damaged or SchemaTooNew for a file that cannot be used.
    """
    database = config.paths.database
    with open_workshop(config) as workshop:
        chosen = backup.find_newest_sound(database) if source == "latest" else Path(source)
        if chosen is None:
            raise BadInput(f"there is no usable backup in {backup.get_backup_directory(database)}", hint="csmd repair")
        if not chosen.is_file():
            raise BadInput(f"{chosen}: no such file", hint="`csmd backup list` shows the backups")
        note("copying", 0, 0)
        new = _copy_database(chosen, workshop / "new")
        note("checking", 0, 0)
        try:
            backup.examine(new)
        except (BadInput, Damaged) as error:
            problem = error.what.removeprefix(f"{new} ").removeprefix("is damaged: ")
            raise BadInput(f"{chosen} cannot be used as a backup: {problem}", hint="csmd backup list") from error
        note("forgetting again", 0, 0)
        new = backup.convert_if_needed(new)
        tombstones, key = _read_tombstones(database, workshop)
        with closing(Store(new, now=now_iso())) as store:
            lost = []
            if key not in (None, store.hash_key):
                lost = [f"{amount(len(tombstones), 'tombstone')}: the backup is of another database"]
                tombstones = []
            forgotten_again = store.write(partial(recovery.merge_tombstones, tombstones=tombstones, key=store.hash_key))
            store.cleanse()
            report = {
                "from": str(chosen), "counts": store.read(activity.counts), "dry_run": dry_run,
                "tombstones": len(tombstones), "forgotten_again": forgotten_again, "lost": lost,
            }  # fmt: skip
            _finish(store)
        if not dry_run:
            aside = database.with_name(f"{database.name}.before-restore-{_make_timestamp()}")
            backup.replace_database(new, database, aside)
            report["set_aside"] = str(aside)
    return report


def _read_tombstones(database: Path, workshop: Path) -> tuple[list[dict[str, Any]], bytes | None]:
    """The tombstones of the present database as far as they can be read, and its key."""
    present = _copy_database(database, workshop / "present")
    opened = recovery.open_damaged(present, sound=None) if present.is_file() else None
    if opened is None:
        return [], None
    with closing(opened):
        return recovery.read_tombstones(Rows(opened)), recovery.read_hash_key(Rows(opened))


def _finish(store: Store) -> None:
    """Writes the new database to one file on the disk; Damaged if it is not sound."""
    problems = store.write(integrity.check_database)
    if problems:
        raise Damaged(f"the new database is not sound: {problems[0]}; nothing was changed", hint="try another backup")
    store.checkpoint(truncate=True)


@contextlib.contextmanager
def open_workshop(config: Config) -> Iterator[Path]:
    """A private directory for temporary files, in a home that no daemon serves; removed afterwards."""
    with hold_instance_lock(config.paths):
        database = config.paths.database
        folder = config.paths.home / backup.WORKSHOP
        try:
            yield files.make_private(folder)
        except OSError as error:
            outcome = (
                "the next start of the daemon finishes this" if backup.is_replacing(database) else "nothing was changed"
            )
            raise StoreError(
                f"{error.filename or folder}: {error.strerror or error}; {outcome}",
                hint="make room for about twice the database's size on that disk, and run it again",
            ) from error
        finally:
            if not backup.is_replacing(database):
                shutil.rmtree(folder, ignore_errors=True)


def _make_timestamp() -> str:
    """The present time, for the names of files that are set aside."""
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
                shutil.copyfileobj(old, new, 1 << 20)
    return target


def main(arguments: list[str]) -> int:
    """Runs `repair [--dry-run]` or `restore FILE|latest [--dry-run]`; returns the exit code.

    Each line on stdout is JSON: the present step, and at the end the report.
    """
    logs.keep_words_off_stderr()
    os.umask(0o077)
    dry_run = "--dry-run" in arguments
    verb, *rest = [word for word in arguments if word != "--dry-run"]

    def perform() -> None:
        config = load_configuration()
        choose_words(config.settings.privacy_redact)
        if verb == "restore":
            report = restore(config, rest[0], dry_run=dry_run, note=print_progress)
        else:
            report = repair(config, dry_run=dry_run, note=print_progress)
        print(wire.dumps({"report": report}))  # noqa: T201

    def print_progress(step: str, done: int, total: int) -> None:
        print(wire.dumps({"step": step, "done": done, "total": total or None}), flush=True)  # noqa: T201

    return run_explained(perform)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
