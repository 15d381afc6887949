"""Starting and stopping the daemon: through the service manager that has its unit, else as a detached process.

Knows pids and the socket, nothing inside. A manager that cannot be reached keeps nobody from starting or stopping.

A pid names our daemon only together with its start time: pids come round again. A zombie is
gone: on some machines nobody reaps an orphan for a while.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import psutil

from csmd import client, wire
from csmd.cli import managers, record, wsl
from csmd.cli.disk import make_private
from csmd.cli.managers import Manager
from csmd.config import boot_id, child_environment
from csmd.errors import BadInput, ConfigError, CsmdError, DaemonBusy, DaemonUnreachable
from csmd.paths import Paths

START_PATIENCE_S = 30.0
STOP_PATIENCE_S = 20.0
#: Where Linux says what it is, and what is mounted.
KERNEL, MOUNTS = Path("/proc/version"), Path("/proc/mounts")


def running(paths: Paths) -> psutil.Process | None:
    """The daemon's process, or None; told by the instance file's pid and start time together."""
    try:
        known = instance(paths)
        process = psutil.Process(int(known["pid"]))
        # As the daemon's start_token: since the boot, because the clock may have been set since.
        start = process.create_time() - (psutil.boot_time() if psutil.LINUX else 0.0)
        same = abs(start - float(known["start"])) < 1.0 and known["boot"] == boot_id()
        alive = same and process.status() != psutil.STATUS_ZOMBIE
    except (KeyError, TypeError, ValueError, psutil.Error):
        return None
    return process if alive else None


def instance(paths: Paths) -> dict[str, Any]:
    """What the daemon that runs, or the last one that was killed, says of itself; empty when none does."""
    try:
        value = wire.loads(paths.instance.read_bytes())
    except (OSError, BadInput):
        return {}
    return value if isinstance(value, dict) else {}


def manager(paths: Paths) -> Manager | None:
    """The manager that has this home's unit and answers; None when the daemon is to run detached."""
    try:
        known = record.load(paths)["service"]
    except (OSError, CsmdError):
        return None  # a damaged record must keep nobody from stopping a daemon
    if not isinstance(known, dict) or not Path(str(known.get("file"))).is_file():
        return None
    keeper = managers.recorded(paths, str(known.get("kind")), str(known.get("file")))
    return keeper if keeper is not None and keeper.reachable() else None


def note(paths: Paths, kind: str) -> str:
    """What a person should know of how long a daemon lives that `kind` keeps; "" when it lives as one would think."""
    if kind == "detached":
        return "after a reboot `csmd start` brings it back"
    keeper = manager(paths)
    return keeper.note() if keeper is not None else ""


def refuse_windows(paths: Paths) -> None:
    """ConfigError when this home is on a drive of Windows, where csmd cannot live."""
    why = wsl.refusal(paths.home, version=kernel(), mounts=_text(MOUNTS))
    if why:
        raise ConfigError(why, hint="leave CSMD_HOME away, or set it to a directory of Linux's own, e.g. ~/.csmd")


def kernel() -> str:
    """What the system says it is; "" where it does not."""
    return _text(KERNEL)


def start(paths: Paths) -> dict[str, Any]:
    """Starts the daemon and waits until it answers; its status, with `started` False when it ran already."""
    refuse_windows(paths)
    for folder in (paths.home, paths.run_dir):
        make_private(folder)
    with _one_at_a_time(paths):
        until = time.monotonic() + START_PATIENCE_S
        beginning: _Beginning | None = None
        while time.monotonic() < until:
            if running(paths) is not None:
                with contextlib.suppress(DaemonUnreachable, DaemonBusy):
                    status = _ask(paths)
                    if beginning is not None:
                        beginning.let_go()
                    return {**status, "started": beginning is not None and beginning.is_it(status["daemon"]["pid"])}
            elif beginning is None:
                beginning = _begin(paths)
            elif (ended := beginning.ended()) is not None:
                what, hint = complaint(_said(paths))
                raise CsmdError(f"the daemon ended at once: {what or ended}", hint=hint or beginning.where_to_look)
            time.sleep(0.02)
        if beginning is not None:
            beginning.let_go()
        raise CsmdError(f"the daemon did not answer within {START_PATIENCE_S:g} s", hint=f"see {paths.log_file}")


class _Beginning:
    """Owns a start under way: a child of ours that outlives us, or what a manager said about it."""

    def __init__(self, paths: Paths, child: subprocess.Popen[bytes] | None, refused: str, where_to_look: str) -> None:
        self._paths, self._child, self._refused, self.where_to_look = paths, child, refused, where_to_look

    def ended(self) -> str | None:
        """How it ended before it answered; None while it may still come."""
        if self._child is None:
            return self._refused or ("it could not run" if _said(self._paths) else None)
        return None if self._child.poll() is None else f"exit code {self._child.returncode}"

    def is_it(self, pid: int) -> bool:
        """Whether the daemon that answers is the one that was started here."""
        return self._child is None or self._child.pid == pid

    def let_go(self) -> None:
        """Popen would warn about a child it never waited for: this one outlives us on purpose."""
        if self._child is not None:
            self._child.returncode = self._child.poll() or 0


def _begin(paths: Paths) -> _Beginning:
    keeper = manager(paths)
    if keeper is None:
        return _Beginning(paths, _spawn(paths), "", f"see {paths.log_file}")
    paths.complaint.unlink(missing_ok=True)
    keeper.enable()  # `csmd stop` has it stay away, also at the next login
    return _Beginning(paths, None, keeper.start(), keeper.where_to_look())


@contextlib.contextmanager
def _one_at_a_time(paths: Paths) -> Iterator[None]:
    """Two that start at once: the second waits, and finds the first one's daemon."""
    descriptor = os.open(paths.run_dir / "start.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _spawn(paths: Paths) -> subprocess.Popen[bytes]:
    # Its own session and no pipe to us: whoever started us must not wait for it, nor end it with us.
    with _complaint_file(paths) as complaint:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "csmd.daemon"],
            cwd=str(paths.home),
            env=child_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=complaint,
            start_new_session=True,
            close_fds=True,
        )


def stop(paths: Paths, *, by_user: bool) -> bool:
    """Ends the daemon and waits until it is gone; False when none ran.

    `by_user` leaves the stopped mark, and has a service manager not start it at the next login.
    """
    process, keeper = running(paths), manager(paths)
    if keeper is not None:
        keeper.stop()  # also where none runs: it may be about to be started again
        if by_user:
            keeper.disable()
    if process is not None:
        _end(process)
    if by_user and paths.run_dir.is_dir():
        paths.stopped_mark.touch(mode=0o600)
    return process is not None


def _end(process: psutil.Process) -> None:
    try:
        process.send_signal(signal.SIGTERM)
        until = time.monotonic() + STOP_PATIENCE_S
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            if time.monotonic() > until:
                raise CsmdError(
                    f"the daemon (pid {process.pid}) did not end within {STOP_PATIENCE_S:g} s",
                    hint=f"kill -9 {process.pid}; nothing acknowledged is lost by that",
                )
            time.sleep(0.02)
    except psutil.NoSuchProcess:
        return


def complaint(said: str) -> tuple[str, str]:
    """(what, hint) of what a process of csmd's said on stderr when it ended."""
    what, _, hint = said.strip().removeprefix("csmd: ").partition("\n  try: ")
    return what, hint


def why_not(paths: Paths, error: DaemonUnreachable) -> DaemonUnreachable:
    """The same error with what is known of the last daemon: what one said that could not start, or who gave it up."""
    if running(paths) is not None:
        return error
    what, hint = complaint(_said(paths))
    if what:
        return DaemonUnreachable(f"{error.what}; the last one ended at once: {what}", hint=hint or error.hint)
    keeper = manager(paths)
    if keeper is not None and keeper.gave_up():
        return DaemonUnreachable(
            f"{error.what}; it died several times in a row and {keeper.kind} starts it no more",
            hint=f"csmd start; why it died: {keeper.where_to_look()}",
        )
    return error


def _ask(paths: Paths) -> dict[str, Any]:
    return dict(client.call(paths, "csm_runtime_status", patience_s=5.0))


def _said(paths: Paths) -> str:
    """What the last daemon that could not start said; "" when it said nothing."""
    return _text(paths.complaint)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _complaint_file(paths: Paths) -> IO[bytes]:
    return os.fdopen(os.open(paths.complaint, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb")
