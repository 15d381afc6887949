"""csmd's own session files: `<home>/sessions/<folder>/<session>.jsonl`, only ever appended to, flushed to the disk.

One process writes: the daemon, on one thread. A kill leaves at most a torn last line; the next append begins
a line of its own, so that nothing else is lost. A file that is full refuses, and stays as it is.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from pathlib import Path

from csmd.errors import BadInput, StoreError, TooLarge
from csmd.store import files

MAX_BYTES = 50 * 1024 * 1024
#: What a session may be called: it is a file's name.
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
SUFFIX = ".jsonl"


def check_id(ident: str) -> str:
    """`ident` when a session file may have it as its name, else BadInput."""
    if not _ID.fullmatch(ident):
        raise BadInput(
            f"{ident[:60]!r} cannot be a session's name",
            hint="use letters, digits, `.`, `_` and `-`, at most 100, beginning with a letter or digit",
        )
    return ident


def find(root: Path, ident: str) -> Path | None:
    """The file of a session, in whichever folder it is; None when there is none."""
    name = check_id(ident) + SUFFIX
    return next((path for path in sorted(root.glob(f"*/{name}")) if path.is_file() and not path.is_symlink()), None)


def append(path: Path, line: bytes) -> None:
    """Puts a line at the end of a file, made where there is none; on the disk when this returns.

    TooLarge when the file would pass MAX_BYTES, StoreError when it cannot be written: it is then as it was.
    """
    for folder in (path.parent.parent, path.parent):
        files.make_private(folder)
    is_new = not path.exists()
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except OSError as error:
        raise StoreError(
            f"{path}: {error.strerror}", hint="it must be a file of yours, in a directory of yours"
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # a purge may be at work on it
        size = os.fstat(descriptor).st_size
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        data = b"\n" * torn + line + b"\n"
        if size + len(data) > MAX_BYTES:
            raise TooLarge(
                f"{path.stem} holds {size} bytes, and a session file may have {MAX_BYTES}: nothing was written",
                hint="begin another session; what this one holds stays",
            )
        try:
            if os.write(descriptor, data) != len(data):
                raise OSError(0, "the disk took a part of the line only")
            os.fsync(descriptor)
        except OSError as error:
            os.ftruncate(descriptor, size)
            raise StoreError(
                f"{path}: {error.strerror}", hint="free some space on that disk, then write it again"
            ) from error
    finally:
        os.close(descriptor)
    if is_new:
        _flush_folder(path.parent)


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lines(path: Path) -> Iterator[bytes]:
    """The lines of a session file, a torn last one included; TooLarge for one that csmd cannot have written."""
    with files.open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > MAX_BYTES:
            raise TooLarge(
                f"{path} has {size} bytes, and a session file may have {MAX_BYTES}", hint=f"move {path} away"
            )
        yield from (line for line in file if line.strip())
