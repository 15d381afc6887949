"""The assistant's own lock on a file that it rewrites while it runs: a directory `<file>.lock` beside it.

Every version that was measured makes it, reads, writes and removes it, within milliseconds. An edit made under the lock
stays; one made beside it can be overwritten with what the assistant had read before (3 of 4 times at a session's start).
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from csmd.errors import ConfigError

PATIENCE_S = 15.0
#: A lock that nobody touched for so long was left behind by a process that died; the assistant takes it over, too.
STALE_S = 10.0


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Holds the lock on `path` (through its links); without a directory for it there is nothing to lock.

    ConfigError when somebody else keeps it.
    """
    real = Path(os.path.realpath(path))
    lock = real.with_name(f"{real.name}.lock")
    if not real.parent.is_dir():
        yield
        return
    until = time.monotonic() + PATIENCE_S
    while not _make(lock):
        if time.monotonic() > until:
            raise ConfigError(f"{real} is being written by somebody else", hint=f"try again; else remove {lock}")
        time.sleep(0.01)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            lock.rmdir()


def _make(lock: Path) -> bool:
    """Whether the lock is ours now; one that was left behind is taken away first."""
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
