"""How a process of the daemon's begins and ends: with the recorded configuration, its errors on stderr."""

from __future__ import annotations

import errno
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from csmd.capture.redact import redact
from csmd.config import Config, default_paths, load
from csmd.errors import CsmdError
from csmd.store import files

#: What a disk says that is full, broken or not to be written: no fault of ours.
DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)


def configuration() -> Config:
    """The configuration in force, with the assistant's directories that `csmd install` recorded."""
    paths = default_paths()
    record = files.read_json(paths.install_record) or {}
    recorded = record.get("assistant_dirs")
    extra = tuple(Path(str(folder)) for folder in recorded) if isinstance(recorded, list) else ()
    return load(paths=paths, extra_dirs=extra)


def explaining(work: Callable[[], None], *, also: Path | None = None) -> int:
    """Does what a process is for; the exit code. What stops it is said on stderr, and to the file `also`.

    A service manager has our stderr for itself: there `csmd start` finds in that file why the daemon ended.
    """
    try:
        work()
    except CsmdError as error:
        _say(redact(error.what, Counter()), error.hint, also)
        return error.exit_code
    except OSError as error:
        if error.errno not in DISK:
            raise
        place = error.filename or "the home"
        _say(
            f"{place}: {error.strerror}",
            "free some space, or make that directory writable; hooks spool meanwhile",
            also,
        )
        return 1
    return 0


def _say(what: str, hint: str, also: Path | None) -> None:
    said = f"csmd: {what}\n" + (f"  try: {hint}\n" if hint else "")
    sys.stderr.write(said)
    if also is not None:
        with suppress(OSError, CsmdError):  # that no file can be written is often what is told
            files.write_atomic(also, said.encode("utf-8", "replace"))
