"""Every error that csmd raises on purpose.

CsmdError                what, where, and a hint what to do; exit code 1
  ConfigError            a file or value the user can correct; exit code 1
  BadInput               a payload, line or frame from outside is malformed
  NotFound               no record has the given id
  TooLarge               input beyond a limit we set
  DaemonUnreachable      no daemon answers on the socket; exit code 3
  DaemonBusy             it runs but asks to try again later
  AlreadyRunning         another daemon holds the instance lock
  StoreError             the database refused
    Damaged              the file cannot be read, or is not a database of csmd: `csmd repair`
      IndexDamaged       a full-text index or vectors only; the rows that they derive from are intact
    Displaced            the file that is open is no longer the one at its path
    SchemaTooNew         written by a newer csmd
    SchemaTooOld         written by a csmd that this one no longer upgrades from
    KeyMissing           it is encrypted, and its key is unavailable
    DeadlineExceeded     a read was interrupted at its deadline
    Refused              the writer's queue is full or it is closing
  EmbeddingUnavailable   no model, or the worker failed; search works without vectors
"""

from __future__ import annotations

import errno

#: Errors of a disk that is full, broken or read-only.
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)


class CsmdError(Exception):
    """An error that csmd explains: what happened, and what to do about it."""

    exit_code = 1

    def __init__(self, what: str, *, hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint


class ConfigError(CsmdError):
    """A configuration file or value that the user can correct."""


class BadInput(CsmdError):
    """A payload, line or frame from outside is malformed."""


class NotFound(BadInput):
    """Nothing that the caller may see has the given id."""


class TooLarge(BadInput):
    """Input beyond one of csmd's limits."""


class DaemonUnreachable(CsmdError):
    """No daemon answers on its socket."""

    exit_code = 3


class DaemonBusy(CsmdError):
    """The daemon is busy and asks to try again."""

    exit_code = 3


class AlreadyRunning(CsmdError):
    """Another daemon holds the instance lock of this home."""


class NoThread(CsmdError):
    """No further thread can be started, or too many hang; the work has not begun."""


class StoreError(CsmdError):
    """The database refused."""


class Damaged(StoreError):
    """The database is damaged, or another file is in its place."""


class IndexDamaged(Damaged):
    """A full-text index or vectors are damaged; the rows that they derive from are whole."""


class Displaced(StoreError):
    """The open database is no longer the file at its path, so writes would be lost."""


class SchemaTooNew(StoreError):
    """The database was written by a newer csmd."""


class SchemaTooOld(StoreError):
    """The database was written by a csmd that this one no longer upgrades from."""


class KeyMissing(StoreError):
    """The database is encrypted and its key is unavailable: the keyring is locked, or the key is gone."""


class DeadlineExceeded(StoreError):
    """A read was interrupted at its deadline."""


class Refused(StoreError):
    """The writer's queue is full, or the store is closing."""


class EmbeddingUnavailable(CsmdError):
    """No embedding model, or its worker failed; search works without vectors."""


def explain_disk_error(error: OSError, subject: str) -> CsmdError:
    """Returns a CsmdError for one of DISK_ERRORS, with a hint; `subject` is named if the error names no file."""
    hint = "free some space, or make that path writable"
    return CsmdError(f"{error.filename or subject}: {error.strerror}", hint=hint)
