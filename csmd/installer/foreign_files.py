"""Files that csmd has entries in but does not own: locked, written atomically, restored."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from csmd.errors import ConfigError
from csmd.vocabulary import OFF_MARK

#: An original that is the file without our entries.
BY_REMOVAL = "by-removal"

#: A file's bytes to its bytes without our entries.
Remove = Callable[[bytes], bytes]


class ChangedMeanwhile(ConfigError):
    """The file was changed between reading and writing it."""


def read(path: Path) -> bytes | None:
    """Returns the bytes of a file, None if it does not exist; ConfigError if it cannot be read or is a link to
    nothing."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        if path.is_symlink():
            hint = "restore its target (is a disk not mounted?), or remove the link"
            what = f"{path} is a symbolic link to {path.readlink()}, which is not there"
            raise ConfigError(what, hint=hint) from None
        return None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}", hint="check its permissions") from error


# --- the record


def record_entry(
    before: bytes | None, after: bytes, remove: Remove, previous: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Returns the install record's entry for one file: how to restore its bytes, and the sha256 of what we wrote.

    `original` is None (there was no file), BY_REMOVAL, or where that does not give the bytes back `{"at": [start, end],
    "put": base64}`: what to put in place of bytes start to end of what the removal leaves.
    `previous` is the entry of an earlier install: while the file is unedited since, its original stays.
    """
    original = None if before is None else remove(before)
    if before is not None and previous is not None and _sha256(before) == previous["sha256"]:
        original = _original(before, previous, remove)
    return {"original": _way_back(original, remove(after)), "sha256": _sha256(after)}


def restored(current: bytes | None, entry: Mapping[str, Any], remove: Remove) -> bytes | None:
    """Returns the file as it was before install, None if it did not exist; if it was edited since, without our
    entries."""
    if current is None:
        return None
    if _sha256(current) == entry["sha256"]:
        return _original(current, entry, remove)
    stripped = remove(current)
    made_by_us = entry["original"] is None and stripped != current
    return None if made_by_us and b"".join(stripped.split()) in (b"", b"{}") else stripped


def _sha256(data: bytes) -> str:
    import hashlib

    return hashlib.sha256(data).hexdigest()


def _way_back(original: bytes | None, stripped: bytes) -> Any:
    """Returns the smallest record that leads from the file without our entries to the original."""
    import base64

    if original is None or original == stripped:
        return None if original is None else BY_REMOVAL
    start = _common_length(original, stripped)
    same_end = _common_length(original[start:][::-1], stripped[start:][::-1])
    put = original[start : len(original) - same_end]
    return {"at": [start, len(stripped) - same_end], "put": base64.b64encode(put).decode()}


def _common_length(first: bytes, second: bytes) -> int:
    """Returns the length of the common beginning."""
    return len(os.path.commonprefix([first, second]))  # noqa: RUF071 - bytes, and no path


def _original(current: bytes, entry: Mapping[str, Any], remove: Remove) -> bytes | None:
    """Returns the bytes from before `install`; `current` is what it wrote."""
    import base64

    way = entry["original"]
    if way is None:
        return None
    stripped = remove(current)
    if way == BY_REMOVAL:
        return stripped
    start, end = way["at"]
    return stripped[:start] + base64.b64decode(way["put"]) + stripped[end:]


# --- the disk


_BY_HAND = "make it writable, or paste the output of `csmd hooks print` into it"


def check(path: Path) -> None:
    """Raises ConfigError if a file must not be written, even if its directory would allow replacing it."""
    real = Path(os.path.realpath(path))
    try:
        info = real.stat()
    except FileNotFoundError:
        read(path)  # raises for a link to nothing
        folder = next(folder for folder in real.parents if folder.exists())
        why = "" if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK) else f"cannot be made in {folder}"
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}"
    else:
        if not stat.S_ISREG(info.st_mode):
            why = "is not a regular file"
        elif os.geteuid() not in (0, info.st_uid):
            why = "belongs to another user"
        elif not info.st_mode & stat.S_IWUSR:
            why = "is read-only"
        else:
            why = "" if os.access(real.parent, os.W_OK | os.X_OK) else "is in a directory that cannot be written"
    if why:
        raise ConfigError(f"{path}{'' if path == real else f' ({real})'} {why}", hint=_BY_HAND)


def apply(path: Path, before: bytes | None, after: bytes | None) -> None:
    """Writes `after` (None: deletes the file) through `path`'s symlinks, whole or not at all.

    The new file has the old one's owner, mode and attributes, as far as the platform lets. ConfigError when the file
    is no longer `before` (ChangedMeanwhile), or where it cannot be written; then it is as it was.
    """
    if after == before:
        return
    real = Path(os.path.realpath(path))
    check(path)
    try:
        if after is None:
            _check_unchanged(real, before)
            real.unlink()
            return
        real.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        like = None if before is None else real
        write_atomic(real, after, like=like, last_check=lambda: _check_unchanged(real, before))
    except OSError as error:
        raise ConfigError(f"{real} cannot be written: {error.strerror or error}", hint=_BY_HAND) from error


def _check_unchanged(real: Path, before: bytes | None) -> None:
    if read(real) != before:
        raise ChangedMeanwhile(f"{real} was just changed by another program", hint="run this again")


def diff(before: bytes | None, after: bytes | None, path: Path, *, context: int = 3) -> str:
    """Returns the change that `apply` would make as a unified diff; "" if there is none."""
    import difflib

    old, new = (([] if data is None else data.decode(errors="replace").splitlines(True)) for data in (before, after))
    names = ("/dev/null" if before is None else str(path), "/dev/null" if after is None else str(path))
    lines = difflib.unified_diff(old, new, *names, n=context)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


#: Seconds to wait for a lock that another process holds.
PATIENCE_S = 15.0
#: Age in seconds at which a lock is stale, because its process died; the assistant uses the same limit.
STALE_S = 10.0


@contextlib.contextmanager
def assistant_lock(path: Path) -> Iterator[None]:
    """Holds the lock on `path` (through its links); without a directory for it there is nothing to lock.

    ConfigError when another process holds it too long.
    """
    real = Path(os.path.realpath(path))
    lock = real.with_name(f"{real.name}.lock")
    if not real.parent.is_dir():
        yield
        return
    until = time.monotonic() + PATIENCE_S
    while not _take_lock(lock):
        if time.monotonic() > until:
            raise ConfigError(f"{real} is being written by another program", hint=f"try again; else remove {lock}")
        time.sleep(0.01)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            lock.rmdir()


def _take_lock(lock: Path) -> bool:
    """Takes the lock and returns whether that worked; removes a stale one, for the next try."""
    try:
        lock.mkdir(mode=0o700)
        return True
    except FileExistsError:
        with contextlib.suppress(OSError):
            if time.time() - lock.stat().st_mtime > STALE_S:
                lock.rmdir()
        return False
    except OSError as error:
        raise ConfigError(f"{lock} cannot be made: {error.strerror or error}", hint="check its permissions") from error


def find_off_mark(folder: str) -> str:
    """Returns the path of the file `.csmd-off` that excludes a directory, in it or above it; "" for none."""
    parents = (Path(folder), *Path(folder).parents) if folder.startswith("/") else ()
    return next((str(parent / OFF_MARK) for parent in parents if os.path.lexists(parent / OFF_MARK)), "")


def write_atomic(
    path: Path,
    data: bytes,
    *,
    mode: int = 0o600,
    like: Path | None = None,
    last_check: Callable[[], object] = lambda: None,
) -> None:
    """Writes a file by replacing it with a new one; `last_check` raises when the file must stay as it is.

    With `like` the new one has that file's owner, mode and attributes instead of `mode`. OSError where it cannot be
    written; then it is as it was.
    """
    import tempfile  # with shutil behind it; a command that only asks writes nothing

    handle, temp = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".csmd", dir=path.parent)
    try:
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            if like is None:
                os.fchmod(handle, mode)
            else:
                _copy_attributes(like, handle)
            os.fsync(handle)
        last_check()
        Path(temp).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temp).unlink()
        raise


def _copy_attributes(like: Path, handle: int) -> None:
    """Gives a new file the owner, mode and extended attributes (access lists among them) of another."""
    info = like.stat()
    if info.st_uid != os.geteuid():
        os.fchown(handle, info.st_uid, info.st_gid)  # only root gets here: the owner must not change
    else:
        with contextlib.suppress(OSError):  # a group that the user is not in any more
            os.fchown(handle, -1, info.st_gid)
    if hasattr(os, "listxattr"):  # not on macOS
        with contextlib.suppress(OSError):
            for name in os.listxattr(like):
                with contextlib.suppress(OSError):  # a name that only the system may set, or that is on already
                    os.setxattr(handle, name, os.getxattr(like, name))
    os.fchmod(handle, stat.S_IMODE(info.st_mode))  # last: changing the owner clears some bits


def make_private(folder: Path) -> None:
    """Makes a private directory (0700); ConfigError when the path is a link, a file or another user's directory."""
    try:
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700, parents=True)
        info = folder.lstat()
        if stat.S_ISLNK(info.st_mode):
            hint = "set CSMD_HOME to the directory itself, or remove the link"
            raise ConfigError(f"{folder} is a symbolic link, and what csmd writes must not follow one", hint=hint)
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
            raise ConfigError(f"{folder} is not a directory of yours", hint="move it away, or choose another CSMD_HOME")
        folder.chmod(0o700)
    except OSError as error:
        hint = "choose another CSMD_HOME"
        raise ConfigError(f"{folder} cannot be made: {error.strerror or error}", hint=hint) from error
