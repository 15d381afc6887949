"""csmd's own files: private directories, atomic writes, the spool and the quarantine.

Directories are 0700 and files 0600; a file appears whole or not at all (temp, fsync, rename);
nothing that csmd did not make is deleted.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from csmd import wire
from csmd.errors import BadInput, ConfigError, StoreError

SPOOL_SUFFIX = ".event"
#: A payload and the line before it.
SPOOL_LIMIT_BYTES = wire.MAX_BODY_BYTES + 1000
SPOOL_UNFINISHED = ".tmp-"
SPOOL_MAGIC = b"csmd-spool "
SPOOL_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Spooled:
    """One event that a hook left because no daemon answered; `at_ns` is the hook's clock."""

    path: Path
    id: str
    host: str
    name: str
    at_ns: int
    body: bytes


def make_private(path: Path) -> Path:
    """Makes a directory that only its owner can enter; ConfigError when it is somebody else's or a link."""
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700, parents=True)
    info = path.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
        raise ConfigError(f"{path} is not a directory of yours", hint="move it away, or choose another CSMD_HOME")
    if stat.S_IMODE(info.st_mode) & 0o077:
        path.chmod(0o700)
    return path


def write_atomic(path: Path, data: bytes, *, mode: int = 0o600, durable: bool = True) -> None:
    """Writes a file whole: temp in the same directory, fsync (unless it may be lost in a power cut), rename."""
    # One for each call: two threads may write the same file at once.
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
    """The JSON object in a file of csmd's own, or None when there is no such file."""
    try:
        value = wire.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except BadInput as error:
        raise ConfigError(f"{path}: {error.what}", hint=f"move {path} away") from error
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: expected a JSON object", hint=f"move {path} away")
    return value


def spool_places(home: Path) -> list[Path]:
    """Where hooks leave events: the home, and for when that is not writable a second place of this home's own.

    The second place is named after the home (`%` and `/` escaped), so that one home's daemon
    never takes another's events; hooks/csmd_spool.py makes the same name.
    """
    name = os.path.realpath(home).replace("%", "%25").replace("/", "%2F")
    return [home / "spool", Path(f"/tmp/csmd-{os.getuid()}/spool-{name}")]  # noqa: S108


def spooled_paths(home: Path) -> list[Path]:
    """Every spooled event, oldest first (their names begin with the time)."""
    return sorted((path for path in _in_spool(home) if path.suffix == SPOOL_SUFFIX), key=lambda path: path.name)


def clear_unfinished(home: Path, *, before_s: float) -> int:
    """Removes what a hook that was killed while spooling left before a time (seconds since 1970); how many files.

    Half an event is no event, but it is raw text: the transcript has the whole one.
    """
    removed = 0
    for path in _in_spool(home):
        with contextlib.suppress(OSError):
            if path.name.startswith(SPOOL_UNFINISHED) and path.lstat().st_mtime < before_s:
                path.unlink()
                removed += 1
    return removed


def _in_spool(home: Path) -> list[Path]:
    found: list[Path] = []
    for place in spool_places(home):
        with contextlib.suppress(OSError):
            if _is_private(place) and (place.parent == home or _is_private(place.parent)):
                found += list(place.iterdir())
    return found


def _is_private(directory: Path) -> bool:
    info = directory.lstat()
    return stat.S_ISDIR(info.st_mode) and info.st_uid == os.getuid() and not info.st_mode & 0o077


def read_spooled(path: Path) -> Spooled:
    """One spooled event; BadInput when it is not one of ours, StoreError when it is a newer csmd's."""
    try:
        # Opened once and asked through the descriptor: a name can change hands between two looks.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise BadInput(f"{path}: not a file of yours") from error
        raise
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode) or info.st_uid != os.getuid():
            raise BadInput(f"{path}: not a file of yours")
        if info.st_size > SPOOL_LIMIT_BYTES:
            raise BadInput(f"{path}: {info.st_size} bytes; the limit is {SPOOL_LIMIT_BYTES}")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            head, newline, body = file.read(SPOOL_LIMIT_BYTES).partition(b"\n")
    finally:
        os.close(descriptor)
    parts = head.decode("ascii", "replace").split(" ")
    if not newline or not head.startswith(SPOOL_MAGIC) or len(head) > 1000 or not parts[1].isdecimal():
        raise BadInput(f"{path}: not a spooled event")
    if int(parts[1]) > SPOOL_VERSION:
        raise StoreError("spooled by a newer csmd", hint="csmd restart")  # and may take it in
    if len(parts) != 6 or not parts[5].isdecimal():
        raise BadInput(f"{path}: not a spooled event")
    return Spooled(path=path, id=parts[2], host=parts[3], name=parts[4], at_ns=int(parts[5]), body=body)


def quarantine(directory: Path, *, source: str, reason: str, data: bytes, offset: int = 0, now: str) -> None:
    """Notes input that could not be read: where it stands, its length, hash and the reason, never its bytes.

    A note is not flushed to the disk: nothing rests on it.
    """
    digest = hashlib.sha256(data).hexdigest()
    note = {"at": now, "source": source, "offset": offset, "bytes": len(data), "sha256": digest, "reason": reason}
    _note(directory, digest, note)


def quarantine_rest(directory: Path, *, source: str, lines: int, first: int, last: int, now: str) -> None:
    """One note on many more lines of a source that could not be read: how many, and the offsets of the outermost."""
    reason = f"{lines} more lines that could not be read"
    note = {"at": now, "source": source, "lines": lines, "first_offset": first, "last_offset": last, "reason": reason}
    _note(directory, hashlib.sha256(f"{source}:{first}".encode("utf-8", "replace")).hexdigest(), note)


def _note(directory: Path, digest: str, note: dict[str, object]) -> None:
    make_private(directory)
    write_atomic(directory / f"{digest[:24]}.json", wire.dumps(note).encode("utf-8", "replace") + b"\n", durable=False)


def open_regular(path: Path) -> BinaryIO:
    """Opens a file for reading without ever waiting for its other end; OSError for a pipe, a device or a directory."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
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


def read_small(path: str, limit: int = 65_536) -> str | None:
    """The text of a small file, "" for a directory, None when there is nothing to read: a pipe or device is not."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            mode = os.fstat(descriptor).st_mode
            if stat.S_ISDIR(mode):
                return ""
            return os.read(descriptor, limit).decode("utf-8", "replace") if stat.S_ISREG(mode) else None
        finally:
            os.close(descriptor)
    except (OSError, ValueError):
        return None


def clear_stale_socket(path: Path) -> None:
    """Removes a socket that a dead daemon left; the caller holds the instance lock. Anything else stays."""
    try:
        info = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(info.st_mode) or info.st_uid != os.getuid():
        raise ConfigError(f"{path} is in the way and is not a socket of yours", hint=f"move {path} away")
    path.unlink()
