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
from typing import Any

from csmd import machine, wire
from csmd.config import boot_id
from csmd.daemon.context import iso
from csmd.errors import BadInput, ConfigError
from csmd.store import files

#: A holder on another host without a sign of life for so long is given up.
HEARTBEAT_TIMEOUT = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A process on a host: `boot` is that of its machine ("" for unknown), `start` when the process began.

    `beat` is the time of its last sign of life, `token` random for each time that it takes the lock.
    """

    host: str
    boot: str
    pid: int
    start: float
    beat: str
    token: str

    @property
    def named(self) -> str:
        return f"{self.host} (process {self.pid})"


#: Returns when a process began, None where there is none.
Started = Callable[[int], float | None]


def encode_holder(holder: Holder) -> bytes:
    """The content of the lock file, of the same length at each heartbeat."""
    return wire.dumps(asdict(holder)).encode("utf-8", "replace") + b"\n"


def decode_holder(content: bytes) -> Holder | None:
    """The holder that a lock file names; None where it names none."""
    types: dict[str, Callable[[Any], Any]] = {
        "host": str, "boot": str, "pid": int, "start": float, "beat": str, "token": str,
    }  # fmt: skip
    try:
        value = wire.loads(content)
        return Holder(**{name: as_type(value[name]) for name, as_type in types.items()})
    except (BadInput, KeyError, TypeError, ValueError, OverflowError):
        return None


def why_stale(holder: Holder, *, host: str, boot: str, started: Started, now: datetime) -> str:
    """Why a holder's lock is stale, seen from `host` at `now`; "" while it is held."""
    if holder.host == host:
        if holder.boot != boot:
            return "it was taken before the machine was started anew"
        began = started(holder.pid)
        if began is None:
            return "its process is gone"
        return "" if abs(began - holder.start) < machine.SAME_START_S else "its process is gone, another has its number"
    return "" if was_heard_of(holder.beat, now) else "nothing was heard of it for an hour"


def was_heard_of(beat: str, now: datetime) -> bool:
    """Whether a sign of life is of the last hour; a time that cannot be read is not."""
    try:
        return abs(now - datetime.fromisoformat(beat)) <= HEARTBEAT_TIMEOUT
    except (ValueError, TypeError, OverflowError):
        return False


MOST_BYTES = 4096
#: A mark that is older was left by a process that was killed during a takeover.
MARK_S = 60.0
#: Attempts to take the lock; who loses looks again at who won.
TRIES = 3
UNKNOWN_HOLDER = Holder(host="somebody", boot="", pid=0, start=0.0, beat="", token="")


class DreamLock:
    """Owns the dream lock while this process has it; `host` and `boot` are this machine's unless a test moves it.

    Its file says who dreams, beside the markdown, where every daemon that shares that directory sees it. A new one is
    made with O_EXCL. A stale one is taken over under a mark that is named after the very holder that is given up, so
    that of two that try one wins. The file is known by its descriptor from then on: a heartbeat goes into what was taken
    and never into what took its place, and only what is one's own is removed.
    """

    def __init__(self, path: Path, *, host: str = "", boot: str | None = None) -> None:
        self.path = path
        self._host = host or socket.gethostname()
        self._boot = boot_id() if boot is None else boot
        self._descriptor = -1
        self._token = ""

    def holder(self, now: datetime) -> Holder | None:
        """The holder of the lock at `now`; None if it is free, stale, or its directory is missing."""
        return self._judge(now)[0]

    def _judge(self, now: datetime) -> tuple[Holder | None, bytes | None]:
        """(who holds it, what its file says): (None, bytes) for a stale one, (None, None) where there is no file."""
        content, written = self._read()
        if content is None:
            return None, None
        holder = decode_holder(content)
        if holder is None:  # it is just being written, or no file of csmd's
            return (UNKNOWN_HOLDER if was_heard_of(iso(written), now) else None), content
        is_stale = why_stale(holder, host=self._host, boot=self._boot, started=machine.started, now=now)
        return (None if is_stale else holder), content

    def acquire(self, now: datetime) -> Holder | None:
        """Acquires the lock; None when it is ours, else who has it. ConfigError where it cannot be made or is not one's own."""
        folder = self.path.parent
        try:
            # A link of the user's own, to a folder that machines share, is followed.
            is_own_link = folder.is_symlink() and folder.lstat().st_uid == os.getuid()
            files.make_private(folder.resolve() if is_own_link else folder)
            for _ in range(TRIES):
                if self._create(self.path, now):
                    return None
                holder, content = self._judge(now)
                if holder is not None:
                    return holder
                if content is not None and self._take_over(content, now):
                    return None
            return self.holder(now) or UNKNOWN_HOLDER
        except OSError as error:
            self.leave()
            raise ConfigError(
                f"{error.filename or self.path}: {error.strerror or error}",
                hint=f"make {folder} writable and see that its disk has room",
            ) from error

    def beat(self, now: datetime) -> bool:
        """Writes a sign of life; False when the lock is not ours any more, and whoever dreams has to end."""
        if not self.is_mine():
            return False
        try:
            self._write(now)
        except OSError:  # a shared folder from which the file is gone
            return False
        return self.is_mine()

    def is_mine(self) -> bool:
        """Whether the file is still the one that was taken here."""
        if self._descriptor < 0:
            return False
        try:
            return os.path.samestat(os.fstat(self._descriptor), self.path.lstat())
        except OSError:
            return False

    def leave(self) -> None:
        """Lets go of it; what is not ours any more stays."""
        if self._descriptor < 0:
            return
        with suppress(OSError):
            if self.is_mine():
                self.path.unlink()
        with suppress(OSError):
            os.close(self._descriptor)
        self._descriptor = -1

    def _create(self, path: Path, now: datetime) -> bool:
        """Writes a lock of ours into a new file; False where there is one."""
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
        holder = Holder(host=self._host, boot=self._boot, pid=pid, start=started, beat=iso(now), token=self._token)
        os.pwrite(self._descriptor, encode_holder(holder), 0)
        os.fsync(self._descriptor)

    def _take_over(self, content: bytes, now: datetime) -> bool:
        """Puts a file of ours in the place of a stale one with this content; False when another process was faster."""
        mark = self.path.with_name(f"{self.path.name}.over-{hashlib.sha256(content).hexdigest()[:12]}")
        try:
            mark.mkdir(mode=0o700)
        except FileExistsError:
            with suppress(OSError):
                if abs(time.time() - mark.stat().st_mtime) > MARK_S:
                    mark.rmdir()
            return False
        temp = self.path.with_name(f"{self.path.name}.{secrets.token_hex(6)}.tmp")
        try:
            # Inside the mark nobody else replaces this very holder; whoever came first has done so already.
            if self._read()[0] != content:
                return False
            self._create(temp, now)
            temp.replace(self.path)
            return True
        finally:
            temp.unlink(missing_ok=True)
            mark.rmdir()

    def _read(self) -> tuple[bytes | None, datetime]:
        """The file's content, None where there is none, and when it was written; ConfigError for what is not ours."""
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
            return os.read(descriptor, MOST_BYTES), datetime.fromtimestamp(info.st_mtime, UTC)
        finally:
            os.close(descriptor)
