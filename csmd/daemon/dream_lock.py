"""The dream lock: one process at a time dreams over the pages."""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from csmd import machine, wire
from csmd.config import boot_id
from csmd.daemon.context import to_iso
from csmd.errors import BadInput, ConfigError
from csmd.store import files

#: A holder on another host loses the lock after this time without a renewal.
RENEWAL_TIMEOUT = timedelta(hours=1)
MAX_LOCK_BYTES = 4096
#: Seconds after which a takeover mark is abandoned.
MARK_TIMEOUT_S = 60.0
#: Attempts to take the lock; after losing one, a process checks again who holds it.
MAX_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A process that has the lock.

    `boot` identifies the boot of its machine ("" if unknown), `start` is when the process began, `beat` the time of its
    last renewal, `token` random for each acquisition.
    """

    host: str
    boot: str
    pid: int
    start: float
    beat: str
    token: str

    def describe_dreaming(self) -> str:
        """Returns in words that this process dreams."""
        return f"{self.host} (process {self.pid}) is already dreaming"


#: Returns when a process began, None if it does not exist.
StartTime = Callable[[int], float | None]


def encode_holder(holder: Holder) -> bytes:
    """Returns the content of the lock file, of the same length at each renewal."""
    return wire.dumps(asdict(holder)).encode("utf-8", "replace") + b"\n"


def decode_holder(content: bytes) -> Holder | None:
    """Returns the holder that a lock file names; None if it names none."""
    try:
        value = wire.loads(content)
        host, boot, beat, token = (str(value[name]) for name in ("host", "boot", "beat", "token"))
        return Holder(host=host, boot=boot, pid=int(value["pid"]), start=float(value["start"]), beat=beat, token=token)
    except (BadInput, KeyError, TypeError, ValueError, OverflowError):
        return None


def explain_stale(holder: Holder, *, host: str, boot: str, started: StartTime, now: datetime) -> str:
    """Returns why a holder's lock is stale, judged on `host` at `now`; "" while it is valid."""
    if holder.host == host:
        if holder.boot != boot:
            return "it was taken before the machine was restarted"
        began = started(holder.pid)
        if began is None:
            return "its process ended"
        return "" if abs(began - holder.start) < machine.SAME_START_S else "its process ended and its PID was reused"
    return "" if is_recent(holder.beat, now) else "it was not renewed for an hour"


def is_recent(beat: str, now: datetime) -> bool:
    """Whether a renewal is less than an hour old; False for a time that cannot be read."""
    try:
        return abs(now - datetime.fromisoformat(beat)) <= RENEWAL_TIMEOUT
    except (ValueError, TypeError, OverflowError):
        return False


#: The holder of a lock file that cannot be read.
UNKNOWN_HOLDER = Holder(host="somebody", boot="", pid=0, start=0.0, beat="", token="")


class DreamLock:
    """Owns the dream lock while this process has it; `host` and `boot` are this machine's unless a test sets them.

    Its file, next to the pages, names the process that dreams for every daemon that shares the directory. A new file is
    created with O_EXCL. A stale one is taken over under a mark named after its holder, so that of two processes one
    wins. From then on the file is identified by its descriptor: a renewal is written into the acquired file, never into
    one that replaced it, and only the own file is removed.
    """

    def __init__(self, path: Path, *, host: str = "", boot: str | None = None) -> None:
        self.path = path
        self._host = host or socket.gethostname()
        self._boot = boot_id() if boot is None else boot
        self._descriptor = -1
        self._token = ""

    def holder(self, now: datetime) -> Holder | None:
        """Returns the holder of the lock at `now`; None if it is free or stale, or its directory is missing."""
        return self._judge(now)[0]

    def _judge(self, now: datetime) -> tuple[Holder | None, bytes | None]:
        """Reads the lock: (holder, content); holder is None if stale, both are None if there is no file."""
        content, written = self._read()
        if content is None:
            return None, None
        holder = decode_holder(content)
        if holder is None:  # it is just being written, or is not csmd's file
            return (UNKNOWN_HOLDER if is_recent(to_iso(written), now) else None), content
        is_stale = explain_stale(holder, host=self._host, boot=self._boot, started=machine.started, now=now)
        return (None if is_stale else holder), content

    def acquire(self, now: datetime) -> Holder | None:
        """Acquires the lock; returns None, or the holder if another has it. ConfigError if its file cannot be created
        or is another user's."""
        folder = self.path.parent
        try:
            # The user's own link, for example to a shared folder, is followed.
            is_own_link = folder.is_symlink() and folder.lstat().st_uid == os.getuid()
            files.make_private(folder.resolve() if is_own_link else folder)
            for _ in range(MAX_TRIES):
                if self._create(self.path, now):
                    return None
                holder, content = self._judge(now)
                if holder is not None:
                    return holder
                if content is not None and self._take_over(content, now):
                    return None
            return self.holder(now) or UNKNOWN_HOLDER
        except OSError as error:
            self.release()
            hint = f"make {folder} writable and see that its disk has room"
            raise ConfigError(f"{error.filename or self.path}: {error.strerror or error}", hint=hint) from error

    def beat(self, now: datetime) -> bool:
        """Renews the lock; False if it was lost, and then the dream has to end."""
        if not self.is_mine():
            return False
        try:
            self._write(now)
        except OSError:  # the file was deleted from a shared folder
            return False
        return self.is_mine()

    def is_mine(self) -> bool:
        """Whether the file is still the acquired one."""
        if self._descriptor < 0:
            return False
        try:
            return os.path.samestat(os.fstat(self._descriptor), self.path.lstat())
        except OSError:
            return False

    def release(self) -> None:
        """Releases the lock; a file that replaced the acquired one stays."""
        if self._descriptor < 0:
            return
        with suppress(OSError):
            if self.is_mine():
                self.path.unlink()
        with suppress(OSError):
            os.close(self._descriptor)
        self._descriptor = -1

    def _create(self, path: Path, now: datetime) -> bool:
        """Writes our lock into a new file; False if the file exists."""
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            self._descriptor = os.open(path, flags, 0o600)
        except FileExistsError:
            return False
        self._token = secrets.token_hex(8)
        self._write(now)
        return True

    def _write(self, now: datetime) -> None:
        pid = os.getpid()
        started = machine.start_token(pid)
        holder = Holder(host=self._host, boot=self._boot, pid=pid, start=started, beat=to_iso(now), token=self._token)
        os.pwrite(self._descriptor, encode_holder(holder), 0)
        os.fsync(self._descriptor)

    def _take_over(self, content: bytes, now: datetime) -> bool:
        """Replaces a stale file with this content by ours; False if another process was faster."""
        mark = self.path.with_name(f"{self.path.name}.over-{hashlib.sha256(content).hexdigest()[:12]}")
        try:
            mark.mkdir(mode=0o700)
        except FileExistsError:
            with suppress(OSError):
                if abs(time.time() - mark.stat().st_mtime) > MARK_TIMEOUT_S:
                    mark.rmdir()
            return False
        temp = self.path.with_name(f"{self.path.name}.{secrets.token_hex(6)}.tmp")
        try:
            # Under the mark no other process replaces this holder, but one may have done so before.
            if self._read()[0] != content:
                return False
            self._create(temp, now)
            temp.replace(self.path)
            return True
        finally:
            temp.unlink(missing_ok=True)
            mark.rmdir()

    def _read(self) -> tuple[bytes | None, datetime]:
        """Returns the lock file's content (None without a file) and the time of its last write.

        Raises ConfigError if the file belongs to another user.
        """
        not_ours = ConfigError(f"{self.path} is not a file of yours", hint=f"move {self.path} away")
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return None, datetime.fromtimestamp(0, UTC)
        except OSError as error:
            raise not_ours from error
        try:
            info = os.fstat(descriptor)
            if not stat.S_ISREG(info.st_mode) or info.st_uid != os.getuid():
                raise not_ours
            return os.read(descriptor, MAX_LOCK_BYTES), datetime.fromtimestamp(info.st_mtime, UTC)
        finally:
            os.close(descriptor)
