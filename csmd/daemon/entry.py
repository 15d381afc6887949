"""How a process of the daemon's begins and ends: with the recorded configuration, its errors on stderr."""

from __future__ import annotations

import errno
import sys
from collections import Counter
from collections.abc import Callable
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


def explaining(work: Callable[[], None]) -> int:
    """Does what a process is for; the exit code. What stops it is said on stderr."""
    try:
        work()
    except CsmdError as error:
        print(f"csmd: {redact(error.what, Counter())}", file=sys.stderr)  # noqa: T201
        if error.hint:
            print(f"  try: {error.hint}", file=sys.stderr)  # noqa: T201
        return error.exit_code
    except OSError as error:
        if error.errno not in DISK:
            raise
        print(f"csmd: {error.filename or 'the home'}: {error.strerror}", file=sys.stderr)  # noqa: T201
        print("  try: free some space, or make that directory writable; hooks spool meanwhile", file=sys.stderr)  # noqa: T201
        return 1
    return 0
