"""What project identification asks of the disk, bounded in time.

Satisfies `csmd.capture.project_identity.Disk`. Each question is one or two system calls, `real` one for each
part of the path.
"""

from __future__ import annotations

import os
from pathlib import Path

from csmd.model import OFF_MARK
from csmd.store.files import read_small


def read(path: str, limit: int = 65_536) -> str | None:
    """The beginning of a file's text, "" for a directory, None when there is nothing to read."""
    return read_small(path, limit)


def real(path: str) -> tuple[str, bool]:
    """The path with every link resolved, and whether it is there."""
    try:
        return os.path.realpath(path, strict=True), True
    except (OSError, ValueError):
        pass
    try:
        return os.path.realpath(path), False
    except (OSError, ValueError):
        return path, False


def is_link(path: str) -> bool:
    """Whether a name is a symbolic link."""
    try:
        return Path(path).is_symlink()
    except (OSError, ValueError):
        return False


def same(one: str, other: str) -> bool:
    """Whether both name one existing file or directory."""
    try:
        found, beside = Path(other).stat(), Path(one).stat()
    except (OSError, ValueError):
        return False
    return (found.st_dev, found.st_ino) == (beside.st_dev, beside.st_ino)


def names(folder: str) -> list[str]:
    """What a directory holds; [] for none."""
    try:
        return [held.name for held in Path(folder).iterdir()]
    except (OSError, ValueError):
        return []


def stamp(path: str) -> str:
    """What a file keeps when its directory is moved and a copy has not: inode and time of change; "" for nothing."""
    try:
        info = Path(path).stat()
    except (OSError, ValueError):
        return ""
    return f"{info.st_ino}:{info.st_ctime_ns}"


def is_off(folder: str) -> bool:
    """Whether a file `.csmd-off` lies in a directory or in one above it."""
    parts = folder.rstrip("/").split("/")
    if parts[0]:
        return False  # a relative path is below nothing that is known
    try:
        return any(os.path.lexists(f"{'/'.join(parts[:depth])}/{OFF_MARK}") for depth in range(len(parts), 0, -1))
    except ValueError:
        return False


def is_gone(path: str) -> bool:
    """Whether nothing is there any more; a directory that may not be looked at is no lost one."""
    try:
        Path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False
