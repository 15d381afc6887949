"""Every file that holds text, the removal of purged text from them, secrets in texts, and a byte search.

The search is a program of its own (`python -m csmd.store.purge_files`, JSON on stdin and stdout): a process that has
the database open must not open its file, since closing it would drop SQLite's locks. It reads csmd's own files and
the assistant's, which are reported but never changed.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import re
import stat
import sys
from collections.abc import Callable, Collection, Iterator, Sequence, Set
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Literal

from csmd import wire
from csmd.config import spool_places
from csmd.errors import BadInput, StoreError
from csmd.privacy.fingerprints import PURGED, Marks, Needle, hash_name, remove_purged, replace_spans
from csmd.store import page_lines
from csmd.store.page_lines import Missing
from csmd.store.sqlite import Rows, connect

# --- every file that holds text, and what becomes of it

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

#: No file of csmd's is larger, except the database.
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
    gone = [path for path in session_files if purged("session", [path.stem])]
    for path in gone:
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            path.parent.rmdir()  # it has the project's name; it stays while another session is in it
    turns: set[str] = set()
    for path in set(session_files) - set(gone):
        named = map(_uuid_of_line, path.read_bytes().decode("utf-8", "replace").split("\n"))
        turns |= purged("turn", [uuid for uuid in named if uuid])

    def cleaned(text: str, hole: str = PURGED) -> tuple[str, int]:
        text, hits = remove_purged(text, marks, placeholder=hole)
        for needle in needles:
            text, more = replace_spans(text, needle.spans(text), placeholder=hole)
            hits += more
        return text, hits

    done = change_files(home, log_dir, cleaned, every_copy=everything, turns=turns, missing=partial(purged, "memory"))
    done.removed += [str(path) for path in gone]
    for root in NAMED_BY_TEXT:
        _purge_names(home, root, partial(cleaned, hole=PURGED_NAME), done)
    return done


#: Folders in the home whose files are named after topics, projects and sessions.
NAMED_BY_TEXT = ("memory", "sessions")
#: Replaces purged text in a file's name.
PURGED_NAME = "purged"


def _purge_names(home: Path, root: str, cleaned: Clean, done: ChangedFiles) -> None:
    """Removes purged text from the file names below a folder; a page of the daemon is removed, since it is rewritten.

    Archived files and csmd's own sessions are renamed, with a number if the name is taken.
    """
    for folder, folders, names in os.walk(home / root, topdown=False):
        place = Path(folder)
        is_page = root == "memory" and "archive" not in place.relative_to(home).parts
        for name in (*names, *folders):
            path, (new, hits) = place / name, cleaned(name)
            if not hits:
                continue
            if name in names and is_page:
                path.unlink(missing_ok=True)
                done.removed.append(str(path))
                continue
            numbered = (f"{Path(new).stem}-{number}{Path(new).suffix}" for number in itertools.count(2))
            target = next(
                place / free for free in itertools.chain([new], numbered) if not os.path.lexists(place / free)
            )
            path.rename(target)
            done.rewritten.append(str(target))


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
    done = ChangedFiles()
    for path, way in list_files(home, log_dir):
        if ways is not None and way not in ways:
            continue
        if way == "copy" and (every_copy or _copy_holds(path, cleaned)):
            path.unlink(missing_ok=True)
            done.removed.append(str(path))
        elif way != "copy":
            mend = partial(_clean_page, cleaned, missing) if way == "page" else cleaned
            try:
                _change_file(path, way, mend, done, turns, chosen)
            except OSError as error:
                refusing(path, error)
    return done


def list_files(home: Path, log_dir: Path) -> list[tuple[Path, FileWay]]:
    """Returns every file except the database that may hold text, and its way."""
    return [(path, way) for pattern, way in TEXT_FILES.items() if way != "database"
            for path in _match_pattern(home, log_dir, pattern)]  # fmt: skip


def list_copies(home: Path, log_dir: Path) -> list[Path]:
    """Returns the copies of the database; each that holds purged text, or may, is removed."""
    return [path for path, way in list_files(home, log_dir) if way == "copy" and path.suffix != ".json"]


def _match_pattern(home: Path, log_dir: Path, pattern: str) -> list[Path]:
    folder, _, name = pattern.rpartition("/")
    places = [log_dir] if folder == "log" else spool_places(home)[::2] if folder == "spool" else []
    paths = [path for place in places for path in place.glob(name)] if places else list(home.glob(pattern))
    return sorted(path for path in paths if path.is_file() and not path.is_symlink())


def _change_file(
    path: Path, way: FileWay, cleaned: Clean, done: ChangedFiles, turns: Set[str], chosen: ShouldChange
) -> None:
    with path.open("r+b" if way == "lines" else "rb") as file:
        if os.fstat(file.fileno()).st_size > MAX_BYTES:
            return  # the byte search at the end of a purge reports it
        if way == "lines":
            fcntl.flock(file, fcntl.LOCK_EX)  # a line appended meanwhile comes before or after
            text, hits = _clean_json_lines(file.read().decode("utf-8", "replace"), cleaned, turns)
            if hits:
                _overwrite(file, text.encode("utf-8", "replace"))
                done.rewritten.append(str(path))
            return
        whole = file.read().decode("utf-8", "surrogateescape")  # invalid UTF-8 stays as it is
    text, hits = cleaned(whole)
    if not hits or not chosen(path, whole):
        return
    if way == "remove":
        path.unlink(missing_ok=True)
        done.removed.append(str(path))
    elif way == "keep":
        done.kept.append(str(path))
    else:
        with path.open("r+b") as file:
            _overwrite(file, text.encode("utf-8", "surrogateescape"))
        done.rewritten.append(str(path))


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

    def mended(value: Any, clean_one: Clean) -> Any:
        nonlocal total
        if isinstance(value, str):
            value, hits = clean_one(value)
            total += hits
        elif isinstance(value, list):
            value = [mended(item, clean_one) for item in value]
        elif isinstance(value, dict):
            value = {
                key: mended(item, cleaned if key in IDENTIFYING_FIELDS else clean_one) for key, item in value.items()
            }
        return value

    lines = []
    for line in whole.split("\n"):
        before = total
        try:
            value = wire.loads(line) if line.strip() else None
        except BadInput:
            lines.append(mended(line, cleaned))
        else:
            value = mended(value, _empty_text if turns and _uuid_of_line(line) in turns else cleaned)
            lines.append(wire.dumps(value) if total > before else line)
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


#: Returns (a text without its secrets, how many there were by kind).
Redact = Callable[[str], tuple[str, dict[str, int]]]
_MARK = re.compile(r"\[redacted:([a-z-]+)\]")
#: More secrets in one text are only counted, since telling them apart takes too long.
MAX_SEPARATED = 12
#: Characters from which a secret is shown by its first ones.
MIN_PREVIEWED_CHARACTERS = 16
#: How many of its first characters are shown.
PREVIEW_CHARACTERS = 4

#: Table -> (id, session) by which people know a row.
SECRET_PLACE_QUERIES: dict[str, str] = {
    "turns": "select t.uuid, s.id from turns t join sessions s on s.seq = t.session_seq where t.seq = :seq",
    "statements": """select t.uuid, s.id from statements x
        join turns t on t.seq = x.turn_seq join sessions s on s.seq = x.session_seq where x.seq = :seq""",
    "memories": "select id, session_id from memories where seq = :seq",
    "sessions": "select id, id from sessions where seq = :seq",
    "projects": "select key, '' from projects where seq = :seq",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """The secrets of one kind in a text: how many; for a single one its first characters, length and keyed hash."""

    kind: str
    count: int
    preview: str = ""
    length: int = 0
    hash: str = ""


def place_of_secret(rows: Rows, table: str, seq: int) -> tuple[str, str]:
    """Returns (id, session) by which people know a row; its key in other tables."""
    place = rows.first(SECRET_PLACE_QUERIES[table], seq=seq) if table in SECRET_PLACE_QUERIES else None
    return (str(place[0]), str(place[1])) if place else (str(seq), "")


def find_secrets(text: str, redact: Redact, key: bytes) -> list[Secret]:
    """Returns the secrets that the present rules would redact in a text."""
    redacted, kinds = redact(text)
    apart = _secrets_by_mark(text, redacted) if 0 < sum(kinds.values()) <= MAX_SEPARATED else []
    if len(apart) != sum(kinds.values()):
        return [Secret(kind=kind, count=count) for kind, count in kinds.items()]
    return [
        Secret(
            kind=kind,
            count=1,
            preview=f"{secret[:PREVIEW_CHARACTERS]}…" if len(secret) >= MIN_PREVIEWED_CHARACTERS else "…",
            length=len(secret),
            hash=hash_name("secret", secret, key),
        )
        for kind, secret in apart
    ]


def _secrets_by_mark(text: str, redacted: str) -> list[tuple[str, str]]:
    """Returns (kind, secret) of what was replaced, by the positions of the marks in the redacted text."""
    literals = _MARK.split(redacted)
    pattern = re.escape(literals[0])
    for kind, after in zip(literals[1::2], literals[2::2], strict=True):
        pattern += rf"(\[redacted:{kind}\]|.+?)" + re.escape(after)
    match = re.fullmatch(pattern, text, re.DOTALL)
    secrets = zip(literals[1::2], match.groups(), strict=True) if match else ()
    return [(kind, secret) for kind, secret in secrets if not _MARK.fullmatch(secret)]


# --- the search, byte by byte, in a process of its own

#: Bytes of a file that are read at a time.
CHUNK_BYTES = 4 * 1024 * 1024
#: Bytes of the chunk before that are searched again with the next.
OVERLAP_BYTES = 64 * 1024
#: Lines of one file that are named.
MAX_LINES = 20
#: Texts that are returned.
MAX_TEXTS = 2000
#: Folders below the home that are not searched: files that csmd did not write, or copies of its own program.
SKIPPED_FOLDERS = ("models", "hook")
#: The file that marks a Python environment, such as csmd's own in its home, with other people's packages.
ENVIRONMENT_MARKER = "pyvenv.cfg"
MAX_TEXT_CHARACTERS = 4000


@dataclass(slots=True)
class FileHits:
    """Occurrences of a text in a file: at least how many, and the numbers (from 1) of the first lines."""

    path: str
    count: int = 0
    lines: list[int] = field(default_factory=list)


def files_below(folder: Path, *, leave_out: Sequence[str] = (), environments: bool = True) -> Iterator[Path]:
    """Yields every regular file below a folder, or the file itself; no link is followed.

    `leave_out` names folders to skip; Python environments are skipped unless `environments`.
    """
    if folder.is_file() and not folder.is_symlink():
        yield folder
        return
    for place, subfolders, names in os.walk(folder):
        if Path(place) == folder:
            subfolders[:] = [name for name in subfolders if name not in leave_out]
        elif not environments and ENVIRONMENT_MARKER in names:
            subfolders.clear()
            continue
        subfolders.sort()
        for name in sorted(names):
            path = Path(place) / name
            with contextlib.suppress(OSError):
                if stat.S_ISREG(path.lstat().st_mode):
                    yield path


def count_in_bytes(path: Path, needles: Sequence[Needle]) -> int:
    """Returns how often any of the texts occurs in a file of any kind."""
    count = 0
    rest = b""
    with path.open("rb") as file:
        while data := file.read(CHUNK_BYTES):
            chunk = rest + data
            count += len(_spans(chunk, needles))
            rest = chunk[-OVERLAP_BYTES:]
            count -= len(_spans(rest, needles)) if len(data) == CHUNK_BYTES else 0  # the next chunk counts the overlap
    return count


def _spans(data: bytes, needles: Sequence[Needle]) -> list[str]:
    """Returns the matches in some bytes, as they appear there."""
    folded = data.lower()
    likely = [needle for needle in needles if needle.rare in folded]
    if not likely:
        return []
    text = data.decode("utf-8", "replace")
    return [text[start:end] for needle in likely for start, end in needle.spans(text)]


def find_in_lines(path: Path, needles: Sequence[Needle], names: Sequence[bytes], texts: set[str]) -> FileHits:
    """Finds texts and names in a file of lines; adds each match in whole words to `texts`."""
    hits = FileHits(str(path))
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            spans = _spans(line, needles)
            amount = len(spans) + sum(name in line for name in names)
            if amount:
                hits.count += amount
                hits.lines += [number] if len(hits.lines) < MAX_LINES else []
                texts |= {span for span in spans if len(span) <= MAX_TEXT_CHARACTERS and len(texts) < MAX_TEXTS}
    return hits


def scan_files(
    texts: Sequence[str], names: Sequence[str], *, own: Sequence[Path], hosts: Sequence[Path]
) -> tuple[list[FileHits], list[FileHits], list[str]]:
    """Returns (hits in csmd's files, hits in the assistant's, the matches); names count only in the assistant's."""
    needles = [Needle(text) for text in texts]
    left: list[FileHits] = []
    for root in own:
        for path in files_below(root, leave_out=SKIPPED_FOLDERS, environments=False):
            with contextlib.suppress(OSError):
                named = str(path.relative_to(root)) if path != root else ""
                if needles and (
                    count := count_in_bytes(path, needles) + sum(bool(needle.spans(named)) for needle in needles)
                ):
                    left.append(FileHits(str(path), count))
    in_hosts: list[FileHits] = []
    seen: set[str] = set()
    for root in hosts:
        for path in files_below(root):
            with contextlib.suppress(OSError):
                hits = find_in_lines(path, needles, [name.encode() for name in names], seen)
                if hits.count:
                    in_hosts.append(hits)
    return left, in_hosts, sorted(seen)


def main() -> None:
    """Reads {texts, names, own, hosts} from stdin and prints {left, hosts, texts}."""
    request = wire.loads(sys.stdin.buffer.read())
    left, hosts, texts = scan_files(
        request["texts"],
        request["names"],
        own=[Path(path) for path in request["own"]],
        hosts=[Path(path) for path in request["hosts"]],
    )
    answer = {"left": [asdict(hits) for hits in left], "hosts": [asdict(hits) for hits in hosts], "texts": texts}
    sys.stdout.buffer.write(wire.dumps(answer).encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
