"""Starting and stopping the daemon as a detached process; knows pids and the socket, nothing inside.

A pid names our daemon only together with its start time: pids come round again. A zombie is
gone: on some machines nobody reaps an orphan for a while.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from csmd import client, wire
from csmd.config import Config, Paths, child_environment
from csmd.errors import BadInput, CsmdError, DaemonUnreachable

START_PATIENCE_S = 30.0
STOP_PATIENCE_S = 20.0


def running(paths: Paths) -> psutil.Process | None:
    """The daemon's process, or None; told by the instance file's pid and start time together."""
    try:
        instance = wire.loads(paths.instance.read_bytes())
        process = psutil.Process(int(instance["pid"]))
        alive = process.status() != psutil.STATUS_ZOMBIE and abs(process.create_time() - float(instance["start"])) < 1.0
    except (OSError, BadInput, KeyError, TypeError, ValueError, psutil.Error):
        return None
    return process if alive else None


def start(config: Config) -> dict[str, Any]:
    """Starts the daemon detached and waits until it answers; its status. Nothing to do when it runs."""
    paths = config.paths
    process = running(paths)
    if process is not None:
        return {**_ask(paths), "started": False}
    paths.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Its own session and no pipe to us: whoever started us must not wait for it, nor end it with us.
    child = subprocess.Popen(
        [sys.executable, "-m", "csmd.daemon"],
        cwd=str(paths.home),
        env=child_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=(complaint := _complaint_file(paths)),
        start_new_session=True,
        close_fds=True,
    )
    complaint.close()
    until = time.monotonic() + START_PATIENCE_S
    while time.monotonic() < until:
        if child.poll() is not None:
            said = _complaint_path(paths).read_text(encoding="utf-8", errors="replace").strip()
            raise CsmdError(
                f"the daemon ended at once: {said or f'exit code {child.returncode}'}", hint=f"see {paths.log_file}"
            )
        try:
            status = _ask(paths)
            if status["daemon"]["pid"] == child.pid:
                # Popen would warn about a child it never waited for: this one outlives us on purpose.
                child.returncode = 0
                return {**status, "started": True}
        except DaemonUnreachable:
            pass
        time.sleep(0.05)
    raise CsmdError(f"the daemon did not answer within {START_PATIENCE_S:g} s", hint=f"see {paths.log_file}")


def stop(config: Config, *, by_user: bool) -> bool:
    """Ends the daemon and waits until it is gone; False when none ran. `by_user` leaves the stopped mark."""
    paths = config.paths
    process = running(paths)
    if process is None:
        return False
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
        pass
    if by_user:
        paths.stopped_mark.touch(mode=0o600)
    return True


def _ask(paths: Paths) -> dict[str, Any]:
    return dict(client.call(paths, "csm_runtime_status", patience_s=5.0))


def _complaint_path(paths: Paths) -> Path:
    return paths.home / "run" / "start.stderr"


def _complaint_file(paths: Paths) -> Any:
    path = _complaint_path(paths)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb")
