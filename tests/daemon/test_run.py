"""The daemon's life with real processes, from its start to its end, and what the service manager hears of it."""

from __future__ import annotations

import ctypes
import json
import logging
import os
import re
import resource
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import forked_process
import psutil
import pytest
from machine import LIMIT_S, PREFERENCE, Machine, ask, call_frames, event_frames, eventually, peer, temporary_directory

from csmd.daemon.logs import WordlessFormatter
from csmd.daemon.run import MAX_SOCKET_PATH_BYTES, choose_socket_path
from csmd.daemon.service_manager import (
    WRITER_TIMEOUT_S,
    Part,
    Watchdog,
    list_watched_parts,
    notify_manager,
    ping_writer,
)
from csmd.errors import BadInput, CsmdError, Damaged, Refused
from csmd.store import files
from csmd.store.core import Store
from csmd.store.files import clear_stale_socket


def prompts(machine: Machine) -> int:
    return int(machine.status()["counts"]["events"])


# --- one daemon


@pytest.mark.invariant(
    "One daemon for a home, and its socket is the user's alone: the lock is taken before the socket is touched"
)
def test_a_second_daemon_is_refused_and_the_first_keeps_its_socket(machine: Machine) -> None:
    first = machine.start()
    inode = machine.socket.stat().st_ino
    second = machine.spawn()
    assert second.wait(30) == 1
    assert second.stderr is not None
    assert "already running" in second.stderr.read().decode()
    assert machine.socket.stat().st_ino == inode
    assert machine.status()["daemon"]["pid"] == first.pid
    assert machine.instance() == first.pid


@pytest.mark.invariant(
    "One daemon for a home, and its socket is the user's alone: the lock is taken before the socket is touched"
)
def test_the_lock_is_taken_before_the_socket_is_touched(machine: Machine) -> None:
    """A daemon that comes second may not even look at what lies at the socket's place."""
    machine.start()
    held = machine.socket
    moved = held.with_name("moved")
    held.rename(moved)
    held.write_text("somebody else's")
    assert machine.spawn().wait(30) == 1
    assert held.read_text() == "somebody else's"
    held.unlink()
    moved.rename(held)


def test_a_daemon_that_was_killed_is_followed_by_a_new_one(machine: Machine) -> None:
    first = machine.start()
    assert machine.event("UserPromptSubmit", prompt="I prefer tabs over spaces in Makefiles.")[0] == "ok"
    first.kill()
    first.wait()
    assert machine.paths.endpoint.exists() and machine.socket.is_socket()
    done = machine.run("status")
    assert (done.returncode, done.stdout) == (3, "")
    assert "no csmd daemon is running" in done.stderr
    second = machine.start()
    assert prompts(machine) == 1
    assert machine.status()["daemon"]["pid"] == second.pid != first.pid


# --- sockets and places


@pytest.mark.invariant(
    "One daemon for a home, and its socket is the user's alone: the lock is taken before the socket is touched"
)
def test_the_socket_is_the_users_alone(machine: Machine) -> None:
    machine.start()
    mode = {path: stat.S_IMODE(path.stat().st_mode) for path in (machine.socket, machine.socket.parent, machine.home)}
    assert list(mode.values()) == [0o600, 0o700, 0o700]
    for path in machine.home.rglob("*"):
        assert not path.lstat().st_mode & 0o077, path


def test_only_a_socket_of_ours_is_cleared_away(tmp_path: Path) -> None:
    place = temporary_directory() / "sock"
    clear_stale_socket(place)  # nothing there: nothing to do
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(place))
    clear_stale_socket(place)
    assert not place.exists()
    target = tmp_path / "file"
    target.write_text("precious")
    place.symlink_to(target)
    for make in (lambda: None, lambda: (place.unlink(), place.write_text("precious"))):
        make()
        with pytest.raises(CsmdError, match="not a socket of yours"):
            clear_stale_socket(place)
    assert (place.read_text(), target.read_text()) == ("precious", "precious")
    place.unlink()
    place.parent.rmdir()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a socket that is somebody else's")
def test_a_socket_of_somebody_else_stays() -> None:
    place = temporary_directory() / "sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(place))
    os.chown(place, 12345, 12345)
    with pytest.raises(CsmdError, match="not a socket of yours"):
        clear_stale_socket(place)
    assert place.is_socket()
    place.unlink()
    place.parent.rmdir()


def test_a_file_in_the_sockets_place_ends_the_daemon_with_a_word(machine: Machine) -> None:
    files.make_private(machine.home)
    files.make_private(machine.paths.run_dir)
    choose_socket_path(machine.home).write_text("mine")
    child = machine.spawn()
    assert child.wait(30) == 1
    assert child.stderr is not None
    assert b"not a socket of yours" in child.stderr.read()
    assert choose_socket_path(machine.home).read_text() == "mine"
    assert not machine.paths.endpoint.exists()


def test_a_start_that_fails_half_way_leaves_no_process_behind(machine: Machine) -> None:
    """The store's threads run already when the model's name turns out to be none."""
    files.make_private(machine.home)
    machine.paths.config_file.write_text("embed.model: .hidden\n")
    child = machine.spawn()
    assert child.wait(30) == 1
    assert child.stderr is not None
    assert b"cannot be the name of a model" in child.stderr.read()
    assert not machine.paths.instance.exists()
    machine.paths.config_file.unlink()
    machine.start()


@pytest.fixture
def far_away() -> Iterator[Machine]:
    """A machine whose home has a path that no socket can have."""
    top = temporary_directory()
    made = Machine(root=top / ("d" * 60) / ("e" * 60))
    made.root.mkdir(parents=True)
    yield made
    made.end()
    (top / ("d" * 60)).rmdir()
    top.rmdir()


def test_a_home_with_too_long_a_path_gets_a_short_private_socket(far_away: Machine) -> None:
    child = far_away.start()
    chosen = far_away.socket
    assert len(os.fsencode(chosen)) <= MAX_SOCKET_PATH_BYTES < len(os.fsencode(far_away.home / "run" / "csmd.sock"))
    assert chosen == choose_socket_path(far_away.home) != choose_socket_path(far_away.home.with_name("other"))
    assert stat.S_IMODE(chosen.parent.stat().st_mode) == 0o700
    assert far_away.csmd("status", "--json")["daemon"]["pid"] == child.pid
    assert far_away.hook("Stop", last_assistant_message="It is done.") == b""
    assert (prompts(far_away), far_away.spooled()) == (1, [])
    assert far_away.stop(child) == 0
    assert not chosen.exists()


# --- the end


def test_sigterm_drains_and_takes_everything_away(machine: Machine) -> None:
    child = machine.start()
    path = machine.socket
    for number in range(20):
        assert machine.event("UserPromptSubmit", prompt=f"Prompt number {number}.")[0] == "ok"
    assert machine.stop(child) == 0
    gone = (machine.paths.endpoint, machine.paths.instance, path)
    assert not any(file.exists() for file in gone)
    store = Store(machine.paths.database, now="2026-05-04T00:00:00.000Z")
    try:
        assert store.read(lambda rows: rows.value("select count(*) from events")) == 20
    finally:
        store.close()
    wal = machine.paths.database.with_name("csmd.db-wal")
    assert not wal.exists() or wal.stat().st_size == 0


@pytest.mark.invariant("Nothing captured is lost. An ack means committed; without one the event is in the spool")
def test_who_waits_when_the_daemon_ends_is_told_to_come_back(machine: Machine) -> None:
    """Many requests at once, SIGTERM in their midst: each gets `ok` or `retry`, and what got `ok` is on the disk."""
    child = machine.start()
    sent, answers = 400, []
    with peer(machine.socket) as dealer:
        for number in range(sent):
            dealer.send_multipart(
                event_frames(
                    "Stop", {"session_id": "s", "last_assistant_message": f"Done {number}."}, ident=f"e{number}"
                )
            )
        assert dealer.poll(30_000)
        child.terminate()
        while len(answers) < sent and dealer.poll(3_000):
            answers.append(dealer.recv_multipart()[0])
    assert child.wait(30) == 0
    assert set(answers) <= {b"ok", b"retry"}
    machine.start()
    assert prompts(machine) >= answers.count(b"ok") > 0


def open_to_signals(pid: int) -> Iterator[int]:
    """The threads of a process that block no signal: ZeroMQ's own block all, so that no signal is sent to them."""
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        if int(re.search(r"^SigBlk:\s*(\w+)", status.read_text(), re.MULTILINE)[1], 16) == 0:
            yield int(status.parent.name)


@pytest.mark.skipif(sys.platform != "linux", reason="a signal for one thread is sent by a call of Linux")
def test_a_signal_that_another_thread_gets_ends_it_too(machine: Machine) -> None:
    """As behind SIGCONT: the main thread's wait is not interrupted by it."""
    child = machine.start()
    other = next(number for number in open_to_signals(child.pid) if number != child.pid)
    libc = ctypes.CDLL(None, use_errno=True)
    tgkill = {"x86_64": 234, "aarch64": 131}[os.uname().machine]
    assert libc.syscall(tgkill, child.pid, other, signal.SIGTERM) == 0, os.strerror(ctypes.get_errno())
    assert child.wait(30) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_other_polite_signals_end_it_too(machine: Machine, number: int) -> None:
    child = machine.start()
    child.send_signal(number)
    assert child.wait(30) == 0
    assert not machine.paths.endpoint.exists()


def test_the_worker_ends_with_the_daemon(machine: Machine, tiny_model: Path) -> None:
    child = machine.start()
    machine.work("csm_model_add", path=str(tiny_model))
    pid = machine.status()["worker"]["pid"]
    worker = psutil.Process(pid)
    assert worker.ppid() == child.pid
    assert machine.stop(child) == 0
    eventually(lambda: not worker.is_running())


# --- a disk that refuses


@pytest.mark.invariant("Nothing captured is lost. An ack means committed; without one the event is in the spool")
@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="prlimit is Linux's")
def test_a_store_that_refuses_is_told_and_the_hook_keeps_the_event(machine: Machine) -> None:
    child = machine.start()
    before = prompts(machine)
    limits = resource.prlimit(child.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (1, limits[1]))  # as a full disk: every write fails
    said = {"session_id": "s1", "last_assistant_message": "It is done."}
    status, body = ask(machine.socket, event_frames("Stop", said))
    assert (status, b"hint" in body) == (b"refused", True), body
    assert machine.hook("UserPromptSubmit", prompt="I prefer tabs over spaces in Makefiles.") == b""
    assert len(machine.spooled()) == 1
    assert machine.status()["counts"]["events"] == before, "reading goes on"
    resource.prlimit(child.pid, resource.RLIMIT_FSIZE, limits)
    machine.sync()
    assert (machine.spooled(), prompts(machine)) == ([], before + 1)


# --- the spool


@pytest.mark.invariant("Nothing captured is lost. An ack means committed; without one the event is in the spool")
def test_what_hooks_kept_while_no_daemon_ran_is_taken_in_once(machine: Machine) -> None:
    files.make_private(machine.home)
    for event, more in (
        ("SessionStart", {"source": "startup"}),
        ("UserPromptSubmit", {"prompt": "I prefer tabs over spaces in Makefiles."}),
        ("Stop", {"last_assistant_message": "It is done."}),
    ):
        assert b"additionalContext" not in machine.hook(event, **more)
    kept = {path.name: path.read_bytes() for path in machine.spooled()}
    assert len(kept) == 3
    machine.start()
    eventually(lambda: not machine.spooled())
    for name, data in kept.items():  # a crash between commit and removal leaves the file
        half = machine.paths.spool / f".tmp-{name}"  # as a hook does: the daemon looks while we write
        half.write_bytes(data)
        half.rename(machine.paths.spool / name)
    result = machine.sync()
    status = machine.status()
    assert (result["degraded"], machine.spooled()) == ([], [])
    assert (status["counts"]["events"], status["counts"]["turns"], status["counters"].get("bad events", 0)) == (3, 2, 0)


def test_a_spool_file_that_is_no_event_is_quarantined_and_stops_no_other(machine: Machine) -> None:
    files.make_private(machine.home)
    secret = "ghp_" + "a" * 36
    machine.hook("Stop", last_assistant_message="It is done.")
    good = machine.spooled()[0]
    bad = {
        "0a.event": b"",
        "0b.event": f"not a spooled event {secret}".encode(),
        "0c.event": b"csmd-spool 1 x claude Stop 99999999999999999999999999\n{}",
        "0d.event": b"csmd-spool 1 x claude Stop 1760000000000000000\n{not json",
        "0e.event": b'csmd-spool 1 x claude SessionStart 1760000000000000000\n{"session_id":"s","source":"\\ud800"}',
    }
    for name, data in bad.items():
        (machine.paths.spool / name).write_bytes(data)
    (machine.paths.spool / "0f.event").mkdir()
    machine.start()
    eventually(lambda: not good.exists())
    machine.sync()
    left = [path.name for path in machine.paths.spool.iterdir()]
    status = machine.status()
    assert left == ["0f.event"], "a directory is not ours to remove"
    assert status["counts"]["events"] in (1, 2)  # the lone surrogate may be read or kept out, never in the way
    bad_events = status["counters"]["bad events"]
    assert bad_events + status["counts"]["events"] == len(bad) + 2
    notes = [path.read_text() for path in machine.paths.quarantine.iterdir()]
    assert notes and not any(secret in note for note in notes)
    machine.sync()
    assert machine.status()["counters"]["bad events"] == bad_events, "noted once"


def test_a_daemon_says_on_stderr_why_it_cannot_run(machine: Machine) -> None:
    files.make_private(machine.home)
    machine.paths.config_file.write_text("brief.max_token: 3\n")
    done = subprocess.run(
        [sys.executable, "-m", "csmd.daemon"], env=machine.environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "unknown key 'brief.max_token'" in done.stderr and "brief.max_tokens" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_nobody_expected_is_told_without_its_words(machine: Machine) -> None:
    (machine.root / "heron").write_text("in the way")
    environment = {**machine.environment(), "CSMD_HOME": str(machine.root / "heron" / "csmd")}
    done = subprocess.run(
        [sys.executable, "-m", "csmd.daemon"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "NotADirectoryError" in done.stderr and "read_json" in done.stderr
    assert "heron" not in done.stderr and "Traceback" not in done.stderr


@pytest.mark.invariant("Every column and file that holds text is named; log and quarantine hold nobody's words")
def test_the_log_holds_nobodys_words(machine: Machine) -> None:
    """`heron` goes in by every way there is; what is said on stderr is in a file of the run directory."""
    machine.csmd("start")
    machine.event("UserPromptSubmit", prompt="The heron stands in the third pond.")
    for frames in (
        [b"heron"],
        [b"heron"] * 7,
        event_frames("Stop", b"{heron"),
        event_frames("heron", b"{heron"),
        event_frames("Stop", {"session_id": "heron", "transcript_path": "/heron.jsonl", "cwd": "\0heron"}),
        event_frames("Stop", {"heron": 1}, ident="heron"),
        [b"1", b"h", b"event", b"9", b"heron", b"Stop", b"{}"],
        [b"1", b"h", b"heron", b"9", b"claude", b"Stop", b"{}"],
        [b"1", b"h", b"event", b"heron", b"claude", b"Stop", b"{}"],
        call_frames("csm_heron", {}),
        call_frames("csm_job", {"id": "heron"}),
        call_frames("csm_job", {"heron": "heron"}),
        call_frames("csm_job", b"{heron"),
        call_frames("csm_import", {"path": "/heron"}),
        call_frames("csm_memory_search", {"query": 'heron" AND (', "limit": "heron"}),
        call_frames("csm_memory_search", {"query": 'heron" AND ('}),
        call_frames("csm_memory_show", {"id": "heron"}),
        call_frames("csm_memory_search", {"query": "heron"}, deadline_ms=0),
    ):
        ask(machine.socket, frames)
    for name, data in (
        ("heron.event", b"heron"),
        ("0heron.event", b"csmd-spool 1 heron claude heron 1\n{heron"),
        ("1heron.event", b"csmd-spool 1 heron heron heron 1\n{heron"),
    ):
        (machine.paths.spool / name).write_bytes(data)
    (machine.paths.spool / "2heron.event").mkdir()
    path = machine.transcript("{heron\n", '{"type":"heron"}\n', machine.line("user", PREFERENCE), session="heron")
    if Path("/proc/self/mem").exists():
        path.with_name("heron2.jsonl").symlink_to("/proc/self/mem")  # reading it is an error
    machine.sync()
    machine.csmd("stop")
    log = machine.paths.log_file.read_text()
    assert (
        "stopped" in log
        and "malformed" in log
        and ("transcript: Input/output error" in log or not Path("/proc").exists())
    )
    assert stat.S_IMODE(machine.paths.log_file.stat().st_mode) == 0o600
    kept = [path for folder in (machine.paths.log_dir, machine.paths.run_dir) for path in folder.rglob("*")]
    assert {"csmd.log", "start.stderr"} <= {path.name for path in kept}
    for path in kept:
        assert "heron" not in path.name and (not path.is_file() or b"heron" not in path.read_bytes().lower()), path


@pytest.mark.invariant("Every column and file that holds text is named; log and quarantine hold nobody's words")
def test_of_what_an_exception_says_nothing_is_written() -> None:
    def fail() -> None:
        try:
            int("heron")
        except ValueError as error:
            raise BadInput("not a heron") from error

    formatter = WordlessFormatter("%(message)s")
    try:
        fail()
    except BadInput:
        record = logging.LogRecord("csmd.x", logging.ERROR, "", 1, "it failed", None, sys.exc_info())
    written = formatter.format(record)
    assert written.startswith("it failed\nBadInput\n") and "after ValueError" in written
    assert f"{__file__}:" in written and " in fail" in written
    foreign = logging.LogRecord("watchdog", logging.ERROR, "", 1, "a %s", ("heron",), None)
    assert "heron" not in written + formatter.format(foreign)


# --- What the service manager hears: ready when csmd answers, alive while hooks' parts make progress, ending.


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
    notify_manager("", "READY=1")
    notify_manager("@nobody-listens-here", "READY=1")
    notify_manager("/nonexistent/socket", "READY=1")


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


def test_a_part_is_stuck_when_its_question_stays_open_too_long() -> None:
    asked: list[Callable[[], None]] = []
    part = Part(asked.append, 10.0)
    assert not part.is_stuck(100.0) and not part.is_stuck(110.0)
    assert part.is_stuck(110.1) and len(asked) == 1, "asked once, not again and again"
    asked[0]()
    assert not part.is_stuck(200.0) and len(asked) == 2
    at_once = Part(lambda answered: answered(), 10.0)
    assert not any(at_once.is_stuck(now) for now in (0.0, 100.0, 1000.0))


def test_the_manager_hears_that_csmd_is_alive_only_while_every_part_is(ear: socket.socket) -> None:
    asked: list[Callable[[], None]] = []
    parts = {"one": Part(lambda answered: answered(), 1.0), "other": Part(asked.append, 1.0)}
    watchdog = Watchdog(address(ear), 60.0, parts)
    assert (watchdog.step(0.0), ear.recv(99)) == ("", b"WATCHDOG=1")
    assert (watchdog.step(2.0), ear.recv(99)) == ("other", b"STATUS=other is stuck")
    asked[0]()
    assert (watchdog.step(3.0), ear.recv(99)) == ("", b"WATCHDOG=1")


@pytest.mark.invariant(
    "Ready means that csmd answers; a stop lasts until the next start; killed or hung, it comes back and has lost nothing"
)
def test_a_writer_at_a_long_write_is_alive_for_minutes_and_a_wedged_one_is_not(tmp_path: Path) -> None:
    store = Store(tmp_path / "csmd.db", now=NOW)
    held = threading.Event()
    try:
        watchdog = Watchdog("", 60.0, list_watched_parts(lambda answered: answered(), store, 60.0))
        store.submit(lambda _: held.wait(LIMIT_S))
        assert [watchdog.step(now) for now in (0.0, 60.0, WRITER_TIMEOUT_S)] == ["", "", ""]
        assert watchdog.step(WRITER_TIMEOUT_S + 1) == "the writer"
        held.set()
        eventually(lambda: watchdog.step(WRITER_TIMEOUT_S + 2) == "")
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
        ping_writer(Refusing(error), lambda: answers.append("answered"))  # type: ignore[arg-type]
    assert answers == ["answered"]


@pytest.mark.invariant(
    "Ready means that csmd answers; a stop lasts until the next start; killed or hung, it comes back and has lost nothing"
)
@pytest.mark.parametrize(
    ("stuck", "told"),
    [
        ("csmd.daemon.server.Server._dispatch", b"STATUS=the socket's thread is stuck"),
        ("csmd.daemon.jobs.Background.step", b"WATCHDOG=1"),
    ],
)
def test_a_daemon_is_alive_while_hooks_are_served_whatever_the_background_does(
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
    environment = machine.environment(NOTIFY_SOCKET=address(ear), WATCHDOG_USEC="400000")
    child = forked_process.spawn("-c", wedged, cwd=machine.root, env=environment)
    machine.daemons.append(child)
    assert ear.recv(4096).startswith(b"READY=1")
    assert ear.recv(4096) == b"WATCHDOG=1"
    assert machine.hook("Stop", last_assistant_message="It is done.") == b"", "the hook is not hurt"
    said = [ear.recv(4096) for _ in range(8)]
    assert said[-1] == told and set(said) <= {b"WATCHDOG=1", told}
    child.kill()
    child.wait(LIMIT_S)


def test_hooks_of_a_directory_that_csmd_was_never_told_are_told_with_the_command_that_adds_it(machine: Machine) -> None:
    def start(session: str, folder: Path, source: str = "startup") -> str:
        path = machine.conversation(session, folder / "projects" / "-shop")
        _, body = machine.event("SessionStart", session, source=source, transcript_path=str(path))
        return str(json.loads(body or "{}").get("systemMessage", ""))

    def unread() -> list[dict[str, str]]:
        checks = json.loads(machine.run("doctor", "--json").stdout)["checks"]
        return [finding for check in checks if check["id"] == "config-dirs" for finding in check["findings"]]

    child, other, third = machine.start(), machine.root / ".claude work", machine.root / ".claude-third"
    assert start("s1", machine.assistant) == ""
    command = f"csmd install --config-dir '{other}'"
    assert start("s2", other, "compact") == "", "not in the middle of work"
    assert start("s3", other).endswith(command)
    assert start("s4", other) == "", "once a day"
    assert str(third) in start("s5", third)
    eventually(lambda: len(machine.call("csm_clients")["elsewhere"]) == 2)
    assert command in str(unread())
    machine.stop(child)
    machine.csmd("install", "--no-start", "--no-service", "--config-dir", str(other))
    child = machine.start()
    assert start("s6", other) == ""
    machine.sync()
    assert len(machine.call("csm_session_list", project="")["sessions"]) == 5, "those of both, and none of the third"
    machine.stop(child)
