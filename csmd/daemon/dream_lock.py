"""The dream lock's file: who dreams, beside the markdown, where every daemon that shares that directory sees it.

One that is new is made with O_EXCL. A stale one is taken over under a mark that is named after the very holder that is
given up, so that of two that try one wins. The file is known by its descriptor from then on: a heartbeat goes into
what was taken and never into what took its place, and only what is one's own is removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import socket
import stat
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from csmd.config import boot_id
from csmd.daemon import machine
from csmd.daemon.now import iso
from csmd.dream import gates as holders
from csmd.dream.gates import Holder
from csmd.errors import ConfigError
from csmd.store import files

MOST_BYTES = 4096
#: A mark that is older was left by one that was killed while it took over.
MARK_S = 60.0
#: Whoever loses looks again, at the one who won.
TRIES = 3
NOBODY_KNOWN = Holder(host="somebody", boot="", pid=0, start=0.0, beat="", token="")


class DreamLock:
    """Owns the lock while this process has it; `host` and `boot` are this machine's unless a test moves it."""

    def __init__(self, path: Path, *, host: str = "", boot: str | None = None) -> None:
        self.path = path
        self._host = host or socket.gethostname()
        self._boot = boot_id() if boot is None else boot
        self._descriptor = -1
        self._mine: Holder | None = None

    def holder(self, now: datetime) -> Holder | None:
        """Who holds it at `now`, None for nobody; a stale one is nobody, and so is a missing directory."""
        return self._judged(now)[0]

    def _judged(self, now: datetime) -> tuple[Holder | None, bytes | None]:
        """(who holds it, what its file says): (None, bytes) for a stale one, (None, None) where there is no file."""
        said, written = self._read()
        if said is None:
            return None, None
        found = holders.read(said)
        if found is None:  # somebody is at writing it, or it is none of ours
            return (NOBODY_KNOWN if holders.heard_of(iso(written), now) else None), said
        gone = holders.stale(found, host=self._host, boot=self._boot, started=machine.started, now=now)
        return (None if gone else found), said

    def take(self, now: datetime) -> Holder | None:
        """Takes it; None when it is ours, else who has it. ConfigError where it cannot be made or is not one's own."""
        with self._explained():
            directory(self.path.parent)
            for _ in range(TRIES):
                if self._create(now):
                    return None
                other, said = self._judged(now)
                if other is not None:
                    return other
                if said is not None and self._take_over(said, now):
                    return None
            return self.holder(now) or NOBODY_KNOWN

    def beat(self, now: datetime) -> bool:
        """A sign of life; False when the lock is not ours any more, and whoever dreams has to end."""
        if self._mine is None or not self.is_mine():
            return False
        self._mine = self._held(now, token=self._mine.token)
        try:
            os.pwrite(self._descriptor, holders.text(self._mine), 0)
            os.fsync(self._descriptor)
        except OSError:  # a shared folder from which the file is gone
            return False
        return self.is_mine()

    def is_mine(self) -> bool:
        """Whether the file is still the one that was taken here."""
        if self._descriptor < 0:
            return False
        try:
            mine, there = os.fstat(self._descriptor), self.path.stat(follow_symlinks=False)
        except OSError:
            return False
        return (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino)

    def leave(self) -> None:
        """Lets go of it; what is not ours any more stays."""
        if self._descriptor < 0:
            return
        try:
            if self.is_mine():
                with contextlib.suppress(OSError):
                    self.path.unlink()
        finally:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
            self._descriptor, self._mine = -1, None

    def _held(self, now: datetime, *, token: str) -> Holder:
        pid = os.getpid()
        return Holder(
            host=self._host, boot=self._boot, pid=pid, start=machine.start_token(pid), beat=iso(now), token=token
        )

    def _create(self, now: datetime) -> bool:
        try:
            descriptor = self._made(self.path)
        except FileExistsError:
            return False
        self._keep(descriptor, now)
        return True

    def _made(self, path: Path) -> int:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

    def _keep(self, descriptor: int, now: datetime) -> None:
        self._descriptor, self._mine = descriptor, self._held(now, token=secrets.token_hex(8))
        os.pwrite(descriptor, holders.text(self._mine), 0)
        os.fsync(descriptor)

    def _take_over(self, said: bytes, now: datetime) -> bool:
        """Puts a file of ours in the place of a stale one that said this; False when somebody else did, or is at it."""
        mark = self.path.with_name(f"{self.path.name}.over-{hashlib.sha256(said).hexdigest()[:12]}")
        try:
            mark.mkdir(mode=0o700)
        except FileExistsError:
            with contextlib.suppress(OSError):
                if abs(time.time() - mark.stat().st_mtime) > MARK_S:
                    mark.rmdir()
            return False
        temp = self.path.with_name(f"{self.path.name}.{secrets.token_hex(6)}.tmp")
        try:
            # Inside the mark nobody else replaces this very holder; whoever came first has done so already.
            if self._read()[0] != said:
                return False
            self._keep(self._made(temp), now)
            temp.replace(self.path)
            return True
        finally:
            temp.unlink(missing_ok=True)
            mark.rmdir()

    def _read(self) -> tuple[bytes | None, datetime]:
        """The file's content, None where there is none, and when it was written; ConfigError for what is not ours."""
        nothing = datetime.fromtimestamp(0).astimezone()
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return None, nothing
        except OSError as error:
            raise _not_ours(self.path) from error
        try:
            info = os.fstat(descriptor)
            if not stat.S_ISREG(info.st_mode) or info.st_uid != os.getuid():
                raise _not_ours(self.path)
            return os.read(descriptor, MOST_BYTES), datetime.fromtimestamp(info.st_mtime).astimezone()
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.leave()
            said = f"{error.filename or self.path}: {error.strerror or error}"
            raise ConfigError(said, hint=f"make {self.path.parent} writable and see that its disk has room") from error


def directory(path: Path) -> Path:
    """The memory directory, made and private; a link of the user's own, to a folder that machines share, is followed."""
    if path.is_symlink() and path.lstat().st_uid == os.getuid():
        return files.make_private(path.resolve())
    return files.make_private(path)


def _not_ours(path: Path) -> ConfigError:
    return ConfigError(f"{path} is not a file of yours", hint=f"move {path} away")
