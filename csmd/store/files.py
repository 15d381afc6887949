"""csmd's own files: private directories, atomic writes, spool, quarantine, and checks that never raise."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import yaml

from csmd import wire
from csmd.config import spool_places
from csmd.errors import BadInput, ConfigError, StoreError, TooLarge
from csmd.text.display import amount
from csmd.vocabulary import OFF_MARK

SPOOL_SUFFIX = ".event"
#: A payload and the line before it.
SPOOL_LIMIT_BYTES = wire.MAX_BODY_BYTES + 1000
SPOOL_UNFINISHED = ".tmp-"
SPOOL_MAGIC = b"csmd-spool "
SPOOL_VERSION = 1
#: Longer files are left alone: nobody writes so much in a day.
MEMORY_FILE_BYTES = 4 * 1024 * 1024
#: Lines of one file and read that get a note each; the others share one.
MAX_NOTES = 20
SESSION_FILE_BYTES = 50 * 1024 * 1024
#: A session's name is a file name.
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
SESSION_SUFFIX = ".jsonl"


class Spooled(NamedTuple):
    """An event that a hook left because no daemon answered; `at_ns` is the hook's clock."""

    path: Path
    id: str
    host: str
    name: str
    at_ns: int
    body: bytes


def make_private(path: Path) -> Path:
    """Creates a directory that only its owner can enter; raises ConfigError if it is another user's or a link."""
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700, parents=True)
    info = path.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
        raise ConfigError(f"{path} is not a directory of yours", hint="move it away, or choose another CSMD_HOME")
    if stat.S_IMODE(info.st_mode) & 0o077:
        path.chmod(0o700)
    return path


def write_atomic(path: Path, data: bytes, *, mode: int = 0o600, durable: bool = True) -> None:
    """Writes a file atomically: temporary file, fsync (unless a power cut may lose it), rename."""
    # A name for each call: two threads may write the same file at once.
    temp = path.with_name(f".{path.name}.{os.urandom(6).hex()}.tmp")
    descriptor = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        temp.chmod(mode)
        temp.replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            temp.unlink()
        raise


def read_json(path: Path) -> dict[str, object] | None:
    """Returns the JSON object in one of csmd's own files, or None if the file is missing."""
    try:
        value = wire.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except BadInput as error:
        raise ConfigError(f"{path}: {error.what}", hint=f"move {path} away") from error
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: expected a JSON object", hint=f"move {path} away")
    return value


def spooled_paths(home: Path) -> list[Path]:
    """Returns the spooled events, oldest first: their names begin with the time."""
    return sorted((path for path in _list_spool_files(home) if path.suffix == SPOOL_SUFFIX), key=lambda path: path.name)


def clear_unfinished(home: Path, *, before_s: float) -> int:
    """Removes the unfinished files of hooks killed before a time (seconds since 1970); returns their number.

    Half an event is useless but raw text; the transcript has the whole event.
    """
    removed = 0
    for path in _list_spool_files(home):
        with contextlib.suppress(OSError):
            if path.name.startswith(SPOOL_UNFINISHED) and path.lstat().st_mtime < before_s:
                path.unlink()
                removed += 1
    return removed


def _list_spool_files(home: Path) -> list[Path]:
    paths: list[Path] = []
    for directory in spool_places(home):
        with contextlib.suppress(OSError):
            if _is_private(directory) and (directory.parent == home or _is_private(directory.parent)):
                paths += list(directory.iterdir())
    return paths


def _is_private(directory: Path) -> bool:
    info = directory.lstat()
    return stat.S_ISDIR(info.st_mode) and info.st_uid == os.getuid() and not info.st_mode & 0o077


def read_spooled(path: Path) -> Spooled:
    """Reads a spooled event; raises BadInput for a foreign file, StoreError for a newer csmd's."""
    try:
        # Opened once and checked through the descriptor: a name can change owners between two checks.
        with open_regular(path, follow_links=False) as file:
            info = os.fstat(file.fileno())
            is_whole = info.st_size <= SPOOL_LIMIT_BYTES
            head, newline, body = file.read(SPOOL_LIMIT_BYTES if is_whole else 0).partition(b"\n")
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.EINVAL):
            raise BadInput(f"{path}: not a file of yours") from error
        raise
    if info.st_uid != os.getuid():
        raise BadInput(f"{path}: not a file of yours")
    if not is_whole:
        raise BadInput(f"{path}: {info.st_size} bytes; the limit is {SPOOL_LIMIT_BYTES}")
    parts = head.decode("ascii", "replace").split(" ")
    if not newline or not head.startswith(SPOOL_MAGIC) or len(head) > 1000 or not parts[1].isdecimal():
        raise BadInput(f"{path}: not a spooled event")
    if int(parts[1]) > SPOOL_VERSION:
        raise StoreError("spooled by a newer csmd", hint="csmd restart")  # a newer csmd may take it in
    if len(parts) != 6 or not parts[5].isdecimal():
        raise BadInput(f"{path}: not a spooled event")
    return Spooled(path=path, id=parts[2], host=parts[3], name=parts[4], at_ns=int(parts[5]), body=body)


def quarantine(directory: Path, *, source: str, reason: str, data: bytes, offset: int = 0, now: str) -> None:
    """Records input that could not be read: its path, length, hash and the reason, never its bytes.

    A record is not flushed to the disk: nothing depends on it.
    """
    digest = hashlib.sha256(data).hexdigest()
    note = {"at": now, "source": source, "offset": offset, "bytes": len(data), "sha256": digest, "reason": reason}
    _write_note(directory, digest, note)


def _write_note(directory: Path, digest: str, note: dict[str, object]) -> None:
    make_private(directory)
    write_atomic(directory / f"{digest[:24]}.json", wire.dumps(note).encode("utf-8", "replace") + b"\n", durable=False)


def open_regular(path: Path, *, follow_links: bool = True) -> BinaryIO:
    """Opens a regular file for reading; raises OSError for a pipe, which could block, a device or a directory."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | (0 if follow_links else os.O_NOFOLLOW))
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_plain(path: Path, limit: int = -1) -> bytes | None:
    """Returns at most `limit` bytes of a file, None if it is missing; a NUL byte for a link and an unreadable file."""
    try:
        if path.is_symlink():
            return b"\0"
        with open_regular(path) as file:
            return file.read(limit)
    except FileNotFoundError:
        return None
    except OSError:
        return b"\0"


def read_small(path: str, limit: int = 65_536) -> str | None:
    """Returns the text of a small file, "" for a directory, None for a missing or special file."""
    try:
        with open_regular(Path(path)) as file:
            return file.read(limit).decode("utf-8", "replace")
    except IsADirectoryError:
        return ""
    except (OSError, ValueError):
        return None


# --- questions about the disk that never raise; `capture.project_identity.Disk` is satisfied by these


def resolve(path: str) -> tuple[str, bool]:
    """Returns (the path with every link resolved, whether it exists)."""
    for strict in (True, False):
        with contextlib.suppress(OSError, ValueError):
            return os.path.realpath(path, strict=strict), strict
    return path, False


def is_link(path: str) -> bool:
    """Whether a name is a symbolic link."""
    with contextlib.suppress(OSError, ValueError):
        return Path(path).is_symlink()
    return False


def is_same_file(path: str, other: str) -> bool:
    """Whether both paths name one existing file or directory (device and inode)."""
    with contextlib.suppress(OSError, ValueError):
        return Path(path).samefile(other)
    return False


def list_names(folder: str) -> list[str]:
    """Returns the names in a directory; [] if there is none."""
    with contextlib.suppress(OSError, ValueError):
        return os.listdir(folder)  # noqa: PTH208
    return []


def file_stamp(path: str) -> str:
    """Returns "inode:change time", which survives a move of the directory but not a copy; "" if the file is missing."""
    with contextlib.suppress(OSError, ValueError):
        info = Path(path).stat()
        return f"{info.st_ino}:{info.st_ctime_ns}"
    return ""


def has_off_mark(folder: str) -> bool:
    """Whether a directory or one above it contains the file `.csmd-off`."""
    parts = folder.rstrip("/").split("/")
    if parts[0]:
        return False  # a relative path is below no known directory
    try:
        return any(os.path.lexists(f"{'/'.join(parts[:depth])}/{OFF_MARK}") for depth in range(len(parts), 0, -1))
    except ValueError:
        return False


def is_missing(path: str) -> bool:
    """Whether nothing exists at a path; a directory that may not be read is not missing."""
    try:
        Path(path).stat()
    except (OSError, ValueError) as error:
        return isinstance(error, FileNotFoundError | NotADirectoryError)
    return False


def clear_stale_socket(path: Path) -> None:
    """Removes a dead daemon's socket, and nothing else; the caller holds the instance lock."""
    try:
        info = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(info.st_mode) or info.st_uid != os.getuid():
        raise ConfigError(f"{path} exists and is not a socket of yours", hint=f"move {path} away")
    path.unlink()


def read_memory_file(path: Path) -> str | None:
    """Returns a file's text, "" if it is missing; None if it must not be written to (a link, a device, a huge file)."""
    try:
        if path.is_symlink():
            return None
        with open_regular(path) as file:
            data = file.read(MEMORY_FILE_BYTES + 1)
    except FileNotFoundError:
        return ""
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.EISDIR):
            return None
        raise
    return None if len(data) > MEMORY_FILE_BYTES else data.decode("utf-8", "surrogateescape")


def write_memory_file(root: Path, path: Path, text: str) -> None:
    """Writes a file below `root` atomically; every directory on the way is private."""
    folders = [path.parent, *(folder for folder in path.parent.parents if folder.is_relative_to(root))]
    for folder in reversed(folders):
        make_private(folder)
    write_atomic(path, text.encode("utf-8", "surrogateescape"))


def list_files(folder: Path, suffix: str = "") -> list[str]:
    """Returns the names of the files in a folder, in order; [] if there is no folder."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        return sorted(path.name for path in folder.iterdir() if path.name.endswith(suffix) and path.is_file())
    return []


def parse_yaml(text: str) -> Any:
    """Parses YAML; None for an empty or invalid text."""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None


def to_yaml(value: Any) -> str:
    """Returns a value as readable YAML, in its own order."""
    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120))


class QuarantineNotes:
    """The notes on one read of one transcript: one for each of the first malformed lines, one for the rest.

    A note has `source` (the path, redacted) and a reason, never a line's content.
    """

    def __init__(self, directory: Path, *, source: str) -> None:
        self._directory = directory
        self._source = source
        self._own = 0
        self._rest: list[int] = []
        self._now = ""

    def add(self, line: bytes | None, offset: int, *, reason: str, now: str) -> None:
        """Records a malformed line; None for one that was too long to be read."""
        self._now = now
        if self._own >= MAX_NOTES:
            self._rest.append(offset)
            return
        self._own += 1
        seen = line if line is not None else f"{self._source}:{offset}".encode("utf-8", "replace")
        quarantine(self._directory, source=self._source, reason=reason, data=seen, offset=offset, now=now)

    def close(self) -> None:
        """Writes the note on the remaining lines."""
        if self._rest:
            first = self._rest[0]
            lines = len(self._rest)
            note: dict[str, object] = {
                "at": self._now, "source": self._source, "lines": lines, "first_offset": first,
                "last_offset": self._rest[-1], "reason": f"{amount(lines, 'more line')} that could not be read",
            }  # fmt: skip
            name = hashlib.sha256(f"{self._source}:{first}".encode("utf-8", "replace")).hexdigest()
            _write_note(self._directory, name, note)


def check_session_id(session_id: str) -> str:
    """Returns `session_id` if a session file may have this name; raises BadInput otherwise."""
    if not _ID.fullmatch(session_id):
        raise BadInput(
            f"{session_id[:60]!r} cannot be a session's name",
            hint="use letters, digits, `.`, `_` and `-`, at most 100, beginning with a letter or digit",
        )
    return session_id


def find_session_file(root: Path, session_id: str) -> Path | None:
    """Returns the file of a session in any folder, or None."""
    name = check_session_id(session_id) + SESSION_SUFFIX
    return next((path for path in sorted(root.glob(f"*/{name}")) if path.is_file() and not path.is_symlink()), None)


def append_lines(path: Path, line: bytes) -> None:
    """Appends a line to a file, creating it if needed; the line is on the disk when this returns.

    Raises TooLarge if the file would pass MAX_BYTES, StoreError if it cannot be written; the file is then unchanged.
    """
    for folder in (path.parent.parent, path.parent):
        make_private(folder)
    is_new = not path.exists()
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except OSError as error:
        raise StoreError(
            f"{path}: {error.strerror}", hint="make it a file of yours, in a directory of yours"
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # a purge may be rewriting it
        size = os.fstat(descriptor).st_size
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        data = b"\n" * torn + line + b"\n"
        if size + len(data) > SESSION_FILE_BYTES:
            raise TooLarge(
                f"{path.stem} has {size} bytes, and a session file may have {SESSION_FILE_BYTES}; nothing was written",
                hint="begin another session",
            )
        try:
            if os.write(descriptor, data) != len(data):
                raise OSError(0, "only a part of the line was written")
            os.fsync(descriptor)
        except OSError as error:
            os.ftruncate(descriptor, size)
            raise StoreError(
                f"{path}: {error.strerror}", hint="free some space on that disk, then write it again"
            ) from error
    finally:
        os.close(descriptor)
    if is_new:
        flush_to_disk(path.parent)


def flush_to_disk(path: Path) -> None:
    """Flushes a file, or a directory's entries, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_session_lines(path: Path) -> Iterator[bytes]:
    """Yields the lines of a session file, also an unfinished last one; raises TooLarge beyond SESSION_FILE_BYTES."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > SESSION_FILE_BYTES:
            raise TooLarge(
                f"{path} has {size} bytes, and a session file may have {SESSION_FILE_BYTES}", hint=f"move {path} away"
            )
        yield from (line for line in file if line.strip())
