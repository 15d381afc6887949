"""Every file that holds text, and the removal of purged text from it."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
from collections.abc import Callable, Collection, Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Literal

from csmd import wire
from csmd.config import spool_places
from csmd.errors import BadInput, StoreError
from csmd.privacy.fingerprints import PURGED, Marks, Needle, remove_purged, replace_spans
from csmd.store import page_lines
from csmd.store.page_lines import Missing
from csmd.store.sqlite import Rows, connect

#: What happens to a file that holds purged text. database: the store rewrites it; copy: a closed database, removed if
#: it holds or may hold the text; remove: removed; rewrite: in place, because a program appends to it; lines: in place,
#: each line as JSON; page: in place, without the lines of missing memories; keep: csmd needs it to undo its
#: installation.
FileWay = Literal["database", "copy", "remove", "rewrite", "lines", "page", "keep"]
#: Files in the home that may hold text, as globs below it.
TEXT_FILES: dict[str, FileWay] = {
    "csmd.db": "database",
    "csmd.db-wal": "database",
    "csmd.db-shm": "database",
    "csmd.before-migration.db*": "copy",
    "csmd.db.before-restore": "copy",
    "csmd.db.before-restore-*": "copy",
    "backups/*": "copy",
    "damaged-*/*": "copy",
    "repairing/*": "copy",
    "sessions/*/*.jsonl": "lines",
    "memory/**/*": "page",
    "spool/*.event": "remove",
    "spool/.tmp-*": "remove",
    "spool-2/*.event": "remove",
    "spool-2/.tmp-*": "remove",
    "quarantine/*": "remove",
    "log/csmd.log*": "rewrite",
    "log/crash.txt": "remove",
    "run/*.stderr": "remove",
    "install.json": "keep",
}
#: Files in the home that hold no text.
STRUCTURE_FILES: tuple[str, ...] = (
    "endpoint", "config.yaml", "pauses.json", "encryption.json", "run/waits-for-key", "hook/*", "hook/__pycache__/*", "run/*.lock", "run/daemon.json", "run/command", "run/opened.json", "run/stopped-by-user",
    "run/hung", "run/told-*", "run/noticed-*", "run/passed-by", "run/*.sock", "models/**/*", "README.txt",
    "log/report.txt",
)  # fmt: skip

#: No file of csmd is larger, except the database.
MAX_BYTES = 1 << 30
#: Bytes of other files that are read at a time, to the end of their line.
MAX_PIECE_BYTES = 1 << 18
#: Most bytes to the end of that line.
MAX_LINE_BYTES = 1 << 22
#: Rows of a copy that are read at a time.
ROWS_PER_READ = 500
#: Fields that stay in the line of a purged turn: others refer to it by them, and a reader recognizes it.
IDENTIFYING_FIELDS = frozenset(
    {"type", "uuid", "parentUuid", "leafUuid", "replaces", "tombstones", "sessionId", "timestamp", "role", "userType",
     "version", "model", "subtype", "stop_reason", "id"}
)  # fmt: skip
#: Returns (a text without purged text, how often it occurred).
Clean = Callable[[str], tuple[str, int]]
#: (path, text) -> whether to change a file with purged text.
ShouldChange = Callable[[Path, str], bool]
#: Handles a file that the disk does not let be read or changed.
HandleRefusal = Callable[[Path, OSError], None]
#: (kind, names) -> the names that were purged as a whole.
FindPurged = Callable[[Literal["turn", "session", "memory"], Sequence[str]], set[str]]
#: Folders in the home whose files are named after topics, projects and sessions.
NAMED_BY_TEXT = ("memory", "sessions")
#: Replaces purged text in a file's name.
PURGED_NAME = "purged"


@dataclass(slots=True)
class ChangedFiles:
    """The files that a purge removed or rewrote, and those that csmd needs with the purged text."""

    removed: list[str] = field(default_factory=list)
    rewritten: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)


def purge(
    home: Path,
    log_dir: Path,
    marks: Marks,
    needles: list[Needle],
    *,
    purged: FindPurged = lambda *_: set(),
    everything: bool,
) -> ChangedFiles:
    """Removes purged text from every file that may hold text; with `everything` no copy of the database is left.

    `everything` is for turns, sessions and projects: a copy may hold them under names that only it knows. `purged`
    returns which names were purged as a whole: the turns and sessions of csmd's own session files, and missing
    memories.
    """
    session_files = [path for path, way in list_files(home, log_dir) if way == "lines"]
    purged_files = [path for path in session_files if purged("session", [path.stem])]
    for path in purged_files:
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            path.parent.rmdir()  # it has the project's name; it stays while another session is in it
    turns: set[str] = set()
    for path in set(session_files) - set(purged_files):
        uuids = map(_uuid_of_line, path.read_bytes().decode("utf-8", "replace").split("\n"))
        turns |= purged("turn", [uuid for uuid in uuids if uuid])

    def cleaned(text: str, placeholder: str = PURGED) -> tuple[str, int]:
        text, hits = remove_purged(text, marks, placeholder=placeholder)
        for needle in needles:
            text, more = replace_spans(text, needle.spans(text), placeholder=placeholder)
            hits += more
        return text, hits

    changes = change_files(
        home, log_dir, cleaned, every_copy=everything, turns=turns, missing=partial(purged, "memory")
    )
    changes.removed += [str(path) for path in purged_files]
    for root in NAMED_BY_TEXT:
        _purge_names(home, root, partial(cleaned, placeholder=PURGED_NAME), changes)
    return changes


def _purge_names(home: Path, root: str, cleaned: Clean, changes: ChangedFiles) -> None:
    """Removes purged text from the file names below a folder; a page of the daemon is removed, since it is rewritten.

    Archived files and csmd's own sessions are renamed, with a number if the name is taken.
    """
    for folder, folders, names in os.walk(home / root, topdown=False):
        directory = Path(folder)
        is_page = root == "memory" and "archive" not in directory.relative_to(home).parts
        for name in (*names, *folders):
            path, (new, hits) = directory / name, cleaned(name)
            if not hits:
                continue
            if name in names and is_page:
                path.unlink(missing_ok=True)
                changes.removed.append(str(path))
                continue
            numbered = (f"{Path(new).stem}-{number}{Path(new).suffix}" for number in itertools.count(2))
            target = next(
                directory / free for free in itertools.chain([new], numbered) if not os.path.lexists(directory / free)
            )
            path.rename(target)
            changes.rewritten.append(str(target))


def _uuid_of_line(line: str) -> str:
    """Returns the uuid of a file's line; "" if it has none."""
    try:
        value = wire.loads(line) if line.strip() else None
    except BadInput:
        return ""
    uuid = value.get("uuid") if isinstance(value, dict) else ""
    return uuid if isinstance(uuid, str) else ""


def _raise(_: Path, error: OSError) -> None:
    raise error


def change_files(
    home: Path,
    log_dir: Path,
    cleaned: Clean,
    *,
    every_copy: bool = False,
    chosen: ShouldChange = lambda *_: True,
    refusing: HandleRefusal = _raise,
    ways: Collection[FileWay] | None = None,
    turns: Set[str] = frozenset(),
    missing: Missing = lambda _: (),
) -> ChangedFiles:
    """Changes or removes each file in which `cleaned` finds something, as its kind requires.

    `ways` and `chosen` limit the files. `refusing` handles a file that the disk refuses; it raises by default. A line
    of one of `turns` keeps only IDENTIFYING_FIELDS; a line of a page about a `missing` memory is removed.
    """
    changes = ChangedFiles()
    for path, way in list_files(home, log_dir):
        if ways is not None and way not in ways:
            continue
        if way == "copy" and (every_copy or _copy_holds(path, cleaned)):
            path.unlink(missing_ok=True)
            changes.removed.append(str(path))
        elif way != "copy":
            mend = partial(_clean_page, cleaned, missing) if way == "page" else cleaned
            try:
                _change_file(path, way, mend, changes, turns, chosen)
            except OSError as error:
                refusing(path, error)
    return changes


def list_files(home: Path, log_dir: Path) -> list[tuple[Path, FileWay]]:
    """Returns every file except the database that may hold text, and its way."""
    return [(path, way) for pattern, way in TEXT_FILES.items() if way != "database"
            for path in _match_pattern(home, log_dir, pattern)]  # fmt: skip


def list_copies(home: Path, log_dir: Path) -> list[Path]:
    """Returns the copies of the database; each that holds purged text, or may, is removed."""
    return [path for path, way in list_files(home, log_dir) if way == "copy" and path.suffix != ".json"]


def _match_pattern(home: Path, log_dir: Path, pattern: str) -> list[Path]:
    folder, _, name = pattern.rpartition("/")
    directories = [log_dir] if folder == "log" else spool_places(home)[::2] if folder == "spool" else []
    paths = (
        [path for directory in directories for path in directory.glob(name)]
        if directories
        else list(home.glob(pattern))
    )
    return sorted(path for path in paths if path.is_file() and not path.is_symlink())


def _change_file(
    path: Path, way: FileWay, cleaned: Clean, changes: ChangedFiles, turns: Set[str], chosen: ShouldChange
) -> None:
    with path.open("r+b" if way == "lines" else "rb") as file:
        if os.fstat(file.fileno()).st_size > MAX_BYTES:
            return  # the byte search at the end of a purge reports it
        if way == "lines":
            fcntl.flock(file, fcntl.LOCK_EX)  # a program may append a line now
            text, hits = _clean_json_lines(file.read().decode("utf-8", "replace"), cleaned, turns)
            if hits:
                _overwrite(file, text.encode("utf-8", "replace"))
                changes.rewritten.append(str(path))
            return
        whole = file.read().decode("utf-8", "surrogateescape")  # invalid UTF-8 is kept
    text, hits = cleaned(whole)
    if not hits or not chosen(path, whole):
        return
    if way == "remove":
        path.unlink(missing_ok=True)
        changes.removed.append(str(path))
    elif way == "keep":
        changes.kept.append(str(path))
    else:
        with path.open("r+b") as file:
            _overwrite(file, text.encode("utf-8", "surrogateescape"))
        changes.rewritten.append(str(path))


def _overwrite(file: BinaryIO, data: bytes) -> None:
    file.seek(0)
    file.write(data)
    file.truncate()
    file.flush()
    os.fsync(file.fileno())


def _clean_page(cleaned: Clean, missing: Missing, whole: str) -> tuple[str, int]:
    text, hits = page_lines.remove_lines(whole, missing)
    text, more = cleaned(text)
    return page_lines.quote_purged(text) if more else text, hits + more


def _clean_json_lines(whole: str, cleaned: Clean, turns: Set[str]) -> tuple[str, int]:
    """Returns a file of JSON lines with every string cleaned; a line that is not JSON is cleaned as plain text."""
    total = 0

    def clean_value(value: Any, clean_one: Clean) -> Any:
        nonlocal total
        if isinstance(value, str):
            value, hits = clean_one(value)
            total += hits
        elif isinstance(value, list):
            value = [clean_value(item, clean_one) for item in value]
        elif isinstance(value, dict):
            value = {
                key: clean_value(item, cleaned if key in IDENTIFYING_FIELDS else clean_one)
                for key, item in value.items()
            }
        return value

    lines = []
    for line in whole.split("\n"):
        hits_before = total
        try:
            value = wire.loads(line) if line.strip() else None
        except BadInput:
            lines.append(clean_value(line, cleaned))
        else:
            value = clean_value(value, _empty_text if turns and _uuid_of_line(line) in turns else cleaned)
            lines.append(wire.dumps(value) if total > hits_before else line)
    return "\n".join(lines), total


def _empty_text(text: str) -> tuple[str, int]:
    return PURGED, int(text not in ("", PURGED))


def _copy_holds(path: Path, cleaned: Clean) -> bool:
    """Whether a copy of the database holds it; an unreadable one may."""
    if path.suffix == ".json":  # what is written next to a copy
        return bool(cleaned(path.read_text("utf-8", "replace"))[1])
    with contextlib.suppress(StoreError):
        return any(cleaned(text)[1] for text in read_texts(path))
    return True


def read_texts(path: Path) -> Iterator[str]:
    """Yields every text in the ordinary tables of a closed database, whatever its schema.

    Raises StoreError if it cannot be read.
    """
    with contextlib.closing(connect(path, readonly=True, immutable=True)) as connection:
        rows = Rows(connection)
        tables = "select name from sqlite_schema where type = 'table' and lower(sql) not like 'create virtual%'"
        for (table,) in rows.all(tables):
            start = 0
            sql = f'select * from "{table}" limit :limit offset :start'  # noqa: S608
            while part := rows.all(sql, limit=ROWS_PER_READ, start=start):
                start += len(part)
                yield from (value for row in part for value in row if isinstance(value, str))


def read_pieces(path: Path) -> Iterator[str]:
    """Yields the text of a file in pieces of whole lines, unless a line is huge; raises StoreError for a huge file."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size > MAX_BYTES:
            raise StoreError(f"{path}: larger than {MAX_BYTES} bytes")
        while piece := file.read(MAX_PIECE_BYTES):
            yield (piece + file.readline(MAX_LINE_BYTES)).decode("utf-8", "replace")
