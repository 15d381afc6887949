"""The one process that serves a home: its configuration, its lock, and how its errors are explained."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import filelock

from csmd.config import Config, default_paths, load, recorded_hosts
from csmd.daemon.context import now_iso
from csmd.errors import DISK_ERRORS, AlreadyRunning, ConfigError, CsmdError, explain_disk_error
from csmd.paths import Paths
from csmd.privacy.redaction import redact
from csmd.store import backup, files, keys


def load_configuration() -> Config:
    """Returns the configuration, with the assistants' directories that `csmd install` recorded."""
    paths = default_paths()
    record = files.read_json(paths.install_record) or {}
    recorded = record.get("assistant_dirs")
    extra = tuple(Path(str(folder)) for folder in recorded) if isinstance(recorded, list) else ()
    return load(paths=paths, extra_dirs=extra, host_dirs=recorded_hosts(record.get("hosts")))


def run_explained(work: Callable[[], None], *, complaint: Path | None = None) -> int:
    """Does a process's work and returns its exit code. An error is explained on stderr and in the file `complaint`.

    A service manager keeps our stderr: `csmd start` reads in that file why the daemon ended.
    """
    try:
        work()
        return 0
    except CsmdError as error:
        failure = error
    except OSError as error:
        if error.errno not in DISK_ERRORS:
            raise
        failure = explain_disk_error(error, "the home")
    explained = f"csmd: {redact(failure.what, Counter())}\n" + (f"  try: {failure.hint}\n" if failure.hint else "")
    sys.stderr.write(explained)
    if complaint is not None:
        with suppress(OSError, CsmdError):  # the error is often that no file can be written
            files.write_atomic(complaint, explained.encode("utf-8", "replace"))
    return failure.exit_code


@contextmanager
def hold_instance_lock(paths: Paths, unlock: Callable[[], None] | None = None) -> Iterator[Path | None]:
    """Holds the instance lock of a home; AlreadyRunning if another process has it.

    `unlock` gives SQLite the key of an encrypted home; the default raises KeyMissing if it is not available. Creates
    the home's directories, and finishes a restore or repair that was killed while it replaced the database. If the
    database was deleted while its daemon ran, the daemon's copy replaces it; yields that copy, else None.
    """
    lock = filelock.FileLock(paths.lock, mode=0o600)
    try:
        for directory in (paths.home, paths.run_dir, paths.spool, paths.models):
            files.make_private(directory)
        lock.acquire(timeout=0)
    except filelock.Timeout:
        what = f"a csmd daemon is already running for {paths.home}"
        raise AlreadyRunning(what, hint="`csmd status` shows it, `csmd stop` ends it") from None
    except OSError as error:
        what = f"{error.filename or paths.home}: {error.strerror or error}; hooks spool until then"
        raise ConfigError(what, hint="make that directory writable and see that its disk has room") from error
    try:
        backup.finish_replacement(paths.database)
        (unlock or partial(keys.use_stored_key, paths.home))()
        rescued = backup.restore_rescued(paths.database)
        backup.move_stale_log_aside(paths.database, now=now_iso())
        yield rescued
    finally:
        lock.release()
