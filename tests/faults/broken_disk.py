"""A disk that fails at the n-th thing asked of it, below SQLite: an apsw VFS over the platform's own.

Not a test. Counted is what changes the disk: opening, writing, syncing, truncating, deleting. It fails once or from
then on, as full (ENOSPC) or as broken (EIO), until it is healed.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import apsw

Kind = Literal["full", "broken"]
_NUMBERS = itertools.count(1)


class BrokenDisk(apsw.VFS):
    """Registered under `name` for as long as it lives."""

    def __init__(self) -> None:
        self.name = f"broken-{next(_NUMBERS)}"
        self._lock = threading.Lock()
        self.asked = 0
        self.failed = 0
        self.by_name: dict[str, int] = {}
        self._at = self._until = 0
        self._kind: Kind = "full"
        super().__init__(self.name, "")

    def fail(self, at: int, *, kind: Kind, lasting: bool) -> None:
        """From now on the `at`-th request fails, and all after it when `lasting`."""
        with self._lock:
            self.asked = self.failed = 0
            self._at, self._until, self._kind = at, (1 << 62 if lasting else at), kind

    def heal(self) -> None:
        """Nothing fails any more."""
        with self._lock:
            self._at = self._until = 0

    def ask(self, what: str) -> None:
        """One thing asked of the disk; the error that it answers with."""
        with self._lock:
            self.asked += 1
            self.by_name[what] = self.by_name.get(what, 0) + 1
            if not self._at <= self.asked <= self._until:
                return
            self.failed += 1
        if self._kind == "full" and what != "sync":
            raise apsw.FullError("no space left on this disk")
        error = apsw.IOError(f"this disk fails to {what}")
        error.extendedresult = {
            "write": apsw.SQLITE_IOERR_WRITE, "sync": apsw.SQLITE_IOERR_FSYNC, "truncate": apsw.SQLITE_IOERR_TRUNCATE,
            "delete": apsw.SQLITE_IOERR_DELETE, "open": apsw.SQLITE_IOERR,
        }[what]  # fmt: skip
        raise error

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        if flags[0] & (apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_READWRITE):
            self.ask("open")
        return _File(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self.ask("delete")
        super().xDelete(filename, syncdir)


class _File(apsw.VFSFile):
    def __init__(self, disk: BrokenDisk, name: Any, flags: list[int]) -> None:
        self._disk = disk
        super().__init__("", name, flags)

    def xWrite(self, data: Any, offset: int) -> None:
        self._disk.ask("write")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self._disk.ask("sync")
        super().xSync(flags)

    def xTruncate(self, size: int) -> None:
        self._disk.ask("truncate")
        super().xTruncate(size)


@contextmanager
def broken_disk() -> Iterator[BrokenDisk]:
    """A disk for one test."""
    disk = BrokenDisk()
    try:
        yield disk
    finally:
        disk.heal()
        disk.unregister()
