"""What the command line writes appears whole or not at all, in directories that only their owner can enter."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

from csmd.errors import ConfigError


def write_whole(path: Path, data: bytes, *, mode: int = 0o600, still: Callable[[], None] | None = None) -> None:
    """Write a file by way of a new one beside it; `still` is asked last and raises when the file must stay as it is.

    OSError where it cannot be written; then it is as it was.
    """
    handle, temp = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".csmd", dir=path.parent)
    try:
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(handle, mode)
            os.fsync(handle)
        if still is not None:
            still()
        Path(temp).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temp).unlink()
        raise


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
