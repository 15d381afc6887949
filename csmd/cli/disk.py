"""What the command line writes appears whole or not at all, in directories that only their owner can enter."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

from csmd.errors import ConfigError
from csmd.model import OFF_MARK


def left_out(folder: str) -> str:
    """The mark `.csmd-off` that leaves a directory out, in it or in one above it; "" for none."""
    if not folder.startswith("/"):
        return ""
    for place in (Path(folder), *Path(folder).parents):
        if os.path.lexists(place / OFF_MARK):
            return str(place / OFF_MARK)
    return ""


def write_whole(
    path: Path, data: bytes, *, mode: int = 0o600, like: Path | None = None, still: Callable[[], None] | None = None
) -> None:
    """Write a file by way of a new one beside it; `still` is asked last and raises when the file must stay as it is.

    With `like` the new one has that file's owner, mode and attributes instead of `mode`. OSError where it cannot be
    written; then it is as it was.
    """
    handle, temp = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".csmd", dir=path.parent)
    try:
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            if like is None:
                os.fchmod(handle, mode)
            else:
                _dress(handle, like)
            os.fsync(handle)
        if still is not None:
            still()
        Path(temp).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temp).unlink()
        raise


def _dress(handle: int, like: Path) -> None:
    """Gives a new file the owner, mode and extended attributes (access lists among them) of another."""
    info = like.stat()
    if info.st_uid != os.geteuid():
        os.fchown(handle, info.st_uid, info.st_gid)  # only root comes so far: whose file it is must not change
    else:
        with contextlib.suppress(OSError):  # a group that the user is not in any more
            os.fchown(handle, -1, info.st_gid)
    if hasattr(os, "listxattr"):  # not on macOS
        with contextlib.suppress(OSError):
            for name in os.listxattr(like):
                with contextlib.suppress(OSError):  # a name that only the system may set, or that is on already
                    os.setxattr(handle, name, os.getxattr(like, name))
    os.fchmod(handle, stat.S_IMODE(info.st_mode))  # last: a change of owner takes some of it away


def make_private(folder: Path) -> None:
    """Make a directory of csmd's own, 0700; ConfigError where a link, a file or somebody else's directory stands."""
    try:
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700, parents=True)
        found = folder.lstat()
        if stat.S_ISLNK(found.st_mode):
            raise ConfigError(
                f"{folder} is a symbolic link, and what csmd writes must not follow one",
                hint="set CSMD_HOME to the directory itself, or remove the link",
            )
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise ConfigError(f"{folder} is not a directory of yours", hint="move it away, or choose another CSMD_HOME")
        folder.chmod(0o700)
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot be made: {error.strerror or error}", hint="choose another CSMD_HOME"
        ) from error
