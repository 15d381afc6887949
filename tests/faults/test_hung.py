"""A daemon that is there and does not answer: hooks keep to their deadline, one of them in 30 s, and keep the event."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest
from faults.kill_rounds import World
from machine import Machine, eventually

pytestmark = pytest.mark.skipif(not psutil.LINUX, reason="what a thread is at is told by Linux")

HUNG_FOR_S = 30
AFTERWARDS = 7
BACKLOG_LIMIT = 5000


@contextmanager
def stopped(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Keeps a daemon from running, as a debugger, a full swap or a suspended container does."""
    child.send_signal(signal.SIGSTOP)
    try:
        eventually(lambda: all(state == "T" for state in states(child.pid)))
        yield
    finally:
        child.send_signal(signal.SIGCONT)


def states(pid: int) -> list[str]:
    """What the kernel says each thread of a process is at: T is stopped."""
    threads = Path(f"/proc/{pid}/task").glob("*/stat")
    return [thread.read_text().rpartition(")")[2].split()[0] for thread in threads]


def started(machine: Machine) -> subprocess.Popen[bytes]:
    """A daemon that runs, with hooks installed; a busy machine has left no mark."""
    child = machine.start()
    machine.hook("SessionEnd", "warm")
    machine.sync()
    machine.paths.hung_mark.unlink(missing_ok=True)
    return child


def report(world: World, event: str, session: str) -> None:
    """Runs the registered hook with something new."""
    key = "prompt" if event == "UserPromptSubmit" else "last_assistant_message"
    said = f"Said while it hangs, n{world.number()}."
    world.reported.setdefault(session, []).append(said)
    assert world.machine.hook(event, session, **{key: said}) == b""


@pytest.mark.parametrize("event", ["UserPromptSubmit", "Stop"])
def test_of_the_hooks_at_a_hung_daemon_one_in_30_s_waits_and_every_event_is_stored_once(
    machine: Machine, event: str
) -> None:
    world = World(machine, 1)
    child = started(machine)
    mark = machine.paths.hung_mark
    with stopped(child):
        report(world, event, "h1")
        marked = mark.stat().st_mtime_ns
        assert len(machine.spooled()) == 1
        for _ in range(AFTERWARDS):
            report(world, event, "h1")
        assert mark.stat().st_mtime_ns == marked, "whoever waits in vain marks anew: nobody waited"
        assert len(machine.spooled()) == 1 + AFTERWARDS
        old = mark.stat().st_mtime - HUNG_FOR_S - 1
        os.utime(mark, (old, old))
        report(world, event, "h1")
        assert mark.stat().st_mtime_ns > marked, "the mark was old: it was asked again"
    machine.sync()
    world.check()  # what was asked in vain is in the socket and in the spool
    mark.unlink(missing_ok=True)
    report(world, event, "h1")
    machine.sync()
    world.check()


def test_hooks_that_find_a_full_listen_queue_end_and_keep_the_event(machine: Machine) -> None:
    world = World(machine, 1)
    child = started(machine)
    path = machine.socket
    with ExitStack() as ending:
        with stopped(child):
            connected = fill(path, ending)
            for event in ("Stop", "UserPromptSubmit"):
                report(world, event, "h1")
            assert len(machine.spooled()) == 2
            assert connected > 0
        machine.sync()  # among all those who say nothing
        world.check()


def fill(path: Path, ending: ExitStack) -> int:
    """Connects until nobody else can; how many did."""
    for count in range(BACKLOG_LIMIT):
        peer = ending.enter_context(socket.socket(socket.AF_UNIX))
        peer.setblocking(False)
        try:
            peer.connect(str(path))
        except BlockingIOError:
            return count
    raise AssertionError("the listen queue has no end")
