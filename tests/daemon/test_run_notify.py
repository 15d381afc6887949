"""What the service manager hears: ready when csmd answers, alive while hooks' parts make progress, ending."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from machine import LIMIT_S, Machine, eventually

from csmd.daemon.run import WRITER_PATIENCE_S, Notify, Part, Watchdog, ask_writer, watching
from csmd.errors import Damaged, Refused
from csmd.store.core import Store

NOW = "2026-05-04T00:00:00.000Z"


@pytest.fixture
def ear(tmp_path: Path) -> Iterator[socket.socket]:
    """A manager's socket; nothing waits longer than a moment for a word."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0csmd-test-{os.getpid()}-{tmp_path.name}")
        listening.settimeout(LIMIT_S)
        yield listening


def address(ear: socket.socket) -> str:
    return "@" + ear.getsockname()[1:].decode()


def test_ready_is_told_when_csmd_answers_and_stopping_when_it_ends(machine: Machine, ear: socket.socket) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "csmd.daemon"], cwd=machine.root, stderr=subprocess.DEVNULL,
        env=machine.environment(NOTIFY_SOCKET=address(ear), WATCHDOG_USEC="400000", CSMD_SERVICE="systemd"),
    )  # fmt: skip
    machine.daemons.append(child)
    assert ear.recv(4096).startswith(b"READY=1\nSTATUS=csmd ")
    assert machine.status()["service"] == "systemd" and machine.instance() == child.pid
    for _ in range(3):
        assert ear.recv(4096) == b"WATCHDOG=1"
    child.terminate()
    last = b""
    while last != b"STOPPING=1":
        last = ear.recv(4096)
    assert child.wait(LIMIT_S) == 0


def test_without_a_manager_nothing_is_said_and_one_that_is_gone_harms_nobody() -> None:
    Notify("").tell("READY=1")
    Notify("@nobody-listens-here").tell("READY=1")
    Notify("/nonexistent/socket").tell("READY=1")


def test_a_daemon_that_ends_before_it_is_ready_leaves_its_reason_where_start_looks(machine: Machine) -> None:
    machine.home.mkdir(mode=0o700)
    machine.paths.run_dir.mkdir(mode=0o700)
    machine.paths.config_file.write_text("brief.max_token: 3\n")
    words = [sys.executable, "-m", "csmd.daemon"]
    for kind, kept in (("", False), ("systemd", True), ("launchd", True)):
        done = subprocess.run(words, env=machine.environment(CSMD_SERVICE=kind), capture_output=True, check=False)
        assert done.returncode == 1 and b"unknown key" in done.stderr
        assert machine.paths.complaint.exists() is kept
    assert machine.paths.complaint.read_bytes() == done.stderr
    assert machine.paths.complaint.stat().st_mode & 0o777 == 0o600
    assert "the last one ended at once: " in machine.run("status").stderr


# --- alive


def test_a_part_stands_still_when_its_question_stays_open_too_long() -> None:
    asked: list[Callable[[], None]] = []
    part = Part(asked.append, 10.0)
    assert not part.stands_still(100.0) and not part.stands_still(110.0)
    assert part.stands_still(110.1) and len(asked) == 1, "asked once, not again and again"
    asked[0]()
    assert not part.stands_still(200.0) and len(asked) == 2
    at_once = Part(lambda answered: answered(), 10.0)
    assert not any(at_once.stands_still(now) for now in (0.0, 100.0, 1000.0))


def test_the_manager_hears_that_csmd_is_alive_only_while_every_part_is(ear: socket.socket) -> None:
    asked: list[Callable[[], None]] = []
    parts = {"one": Part(lambda answered: answered(), 1.0), "other": Part(asked.append, 1.0)}
    watchdog = Watchdog(Notify(address(ear)), 60.0, parts)
    assert (watchdog.step(0.0), ear.recv(99)) == ("", b"WATCHDOG=1")
    assert (watchdog.step(2.0), ear.recv(99)) == ("other", b"STATUS=other stands still")
    asked[0]()
    assert (watchdog.step(3.0), ear.recv(99)) == ("", b"WATCHDOG=1")


@pytest.mark.invariant(
    "Ready means that csmd answers; a stop lasts until the next start; killed or hung, it comes back and has lost nothing"
)
def test_a_writer_at_a_long_write_is_alive_for_minutes_and_a_wedged_one_is_not(tmp_path: Path) -> None:
    store = Store(tmp_path / "csmd.db", now=NOW)
    held = threading.Event()
    try:
        watchdog = watching(Notify(""), 60.0, server=lambda answered: answered(), store=store)
        store.submit(lambda _: held.wait(LIMIT_S))
        assert [watchdog.step(now) for now in (0.0, 60.0, WRITER_PATIENCE_S)] == ["", "", ""]
        assert watchdog.step(WRITER_PATIENCE_S + 1) == "the writer"
        held.set()
        eventually(lambda: watchdog.step(WRITER_PATIENCE_S + 2) == "")
    finally:
        held.set()
        store.close()


def test_a_store_that_refuses_for_damage_is_alive_and_one_whose_queue_is_full_has_not_answered() -> None:
    class Refusing:
        def __init__(self, error: Exception) -> None:
            self.error = error

        def submit(self, run: object) -> None:
            raise self.error

    answers: list[str] = []
    for error in (Damaged("the file is damaged"), Refused("2000 writes are waiting already")):
        ask_writer(Refusing(error), lambda: answers.append("answered"))  # type: ignore[arg-type]
    assert answers == ["answered"]


@pytest.mark.invariant(
    "Ready means that csmd answers; a stop lasts until the next start; killed or hung, it comes back and has lost nothing"
)
@pytest.mark.parametrize(
    ("stuck", "told"),
    [
        ("csmd.daemon.server.Server._dispatch", b"STATUS=the socket's thread stands still"),
        ("csmd.daemon.scheduler.Scheduler.step", b"WATCHDOG=1"),
    ],
)
def test_a_daemon_is_alive_while_hooks_are_served_whatever_the_steward_does(
    machine: Machine, ear: socket.socket, stuck: str, told: bytes
) -> None:
    """In a real daemon, one of whose threads waits for ever once a hook has come."""
    place, _, name = stuck.rpartition(".")
    module = place.rpartition(".")[0]
    wedged = (
        f"import runpy, sys, threading, {module}\n"
        f"{place}.{name} = lambda *_: threading.Event().wait()\n"
        f"sys.argv = ['csmd.daemon']; runpy.run_module('csmd.daemon', run_name='__main__', alter_sys=True)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", wedged], cwd=machine.root, stderr=subprocess.DEVNULL, start_new_session=True,
        env=machine.environment(NOTIFY_SOCKET=address(ear), WATCHDOG_USEC="400000"),
    )  # fmt: skip
    machine.daemons.append(child)
    assert ear.recv(4096).startswith(b"READY=1")
    assert ear.recv(4096) == b"WATCHDOG=1"
    assert machine.hook("Stop", last_assistant_message="It is done.") == b"", "the hook is not hurt"
    said = [ear.recv(4096) for _ in range(8)]
    assert said[-1] == told and set(said) <= {b"WATCHDOG=1", told}
    child.kill()
    child.wait(LIMIT_S)
