"""Starting and stopping the daemon as a detached process; knows pids and the socket, nothing inside.

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
from csmd.cli.disk import make_private
from csmd.config import Paths, boot_id, child_environment
from csmd.errors import BadInput, CsmdError, DaemonBusy, DaemonUnreachable

START_PATIENCE_S = 30.0
STOP_PATIENCE_S = 20.0


def running(paths: Paths) -> psutil.Process | None:
    """The daemon's process, or None; told by the instance file's pid and start time together."""
    try:
        instance = wire.loads(paths.instance.read_bytes())
        process = psutil.Process(int(instance["pid"]))
        # As the daemon's start_token: since the boot, because the clock may have been set since.
        start = process.create_time() - (psutil.boot_time() if psutil.LINUX else 0.0)
        same = abs(start - float(instance["start"])) < 1.0 and instance["boot"] == boot_id()
        alive = same and process.status() != psutil.STATUS_ZOMBIE
    except (OSError, BadInput, KeyError, TypeError, ValueError, psutil.Error):
        return None
    return process if alive else None


def start(paths: Paths) -> dict[str, Any]:
    """Starts the daemon detached and waits until it answers; its status, with `started` False when it ran already."""
    for folder in (paths.home, paths.run_dir):
        make_private(folder)
    with _one_at_a_time(paths):
        until = time.monotonic() + START_PATIENCE_S
        child: subprocess.Popen[bytes] | None = None
        while time.monotonic() < until:
            process = running(paths)
            if process is not None:
                with contextlib.suppress(DaemonUnreachable, DaemonBusy):
                    status = _ask(paths)
                    if child is not None:
                        # Popen would warn about a child it never waited for: this one outlives us on purpose.
                        child.poll()
                        child.returncode = child.returncode or 0
                    return {**status, "started": child is not None and status["daemon"]["pid"] == child.pid}
            elif child is None:
                child = _spawn(paths)
            elif child.poll() is not None:
                what, hint = complaint(_complaint_path(paths).read_text(encoding="utf-8", errors="replace"))
                raise CsmdError(
                    f"the daemon ended at once: {what or f'exit code {child.returncode}'}",
                    hint=hint or f"see {paths.log_file}",
                )
            time.sleep(0.02)
        if child is not None:
            child.returncode = child.poll() or 0
        raise CsmdError(f"the daemon did not answer within {START_PATIENCE_S:g} s", hint=f"see {paths.log_file}")


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
    """Ends the daemon and waits until it is gone; False when none ran. `by_user` leaves the stopped mark."""
    process = running(paths)
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
    """The same error with what the last daemon said that could not start, if one did."""
    with contextlib.suppress(OSError):
        what, hint = complaint(_complaint_path(paths).read_text(encoding="utf-8", errors="replace"))
        if what and running(paths) is None:
            return DaemonUnreachable(f"{error.what}; the last one ended at once: {what}", hint=hint or error.hint)
    return error


def _ask(paths: Paths) -> dict[str, Any]:
    return dict(client.call(paths, "csm_runtime_status", patience_s=5.0))


def _complaint_path(paths: Paths) -> Path:
    return paths.home / "run" / "start.stderr"


def _complaint_file(paths: Paths) -> IO[bytes]:
    return os.fdopen(
        os.open(_complaint_path(paths), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb"
    )
