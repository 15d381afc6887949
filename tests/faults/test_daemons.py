"""More than one daemon, daemons of other versions, and what dead ones left behind: exactly one serves, nothing is lost."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import forked_process
import psutil
import pytest
from machine import LIMIT_S, Machine, ask, event_frames, eventually

from csmd.config import boot_id
from csmd.installer import service
from csmd.store import files

AT_ONCE = 8
#: What runs in place of the command line of a csmd whose protocol is one ahead.
NEWER_COMMAND = """
from csmd import wire
wire.Request.__init__.__kwdefaults__["proto"] = wire.PROTO + 1
from csmd.cli.main import entry
entry()
"""


def newer_command(machine: Machine, *words: str) -> subprocess.CompletedProcess[str]:
    return forked_process.run(
        "-c", NEWER_COMMAND, *words, cwd=machine.project, env=machine.environment(), stdin=subprocess.DEVNULL,
        timeout=LIMIT_S,
    )  # fmt: skip


# --- several at once


@pytest.mark.invariant(
    "Of daemons that start at once one serves; a daemon is known by pid, start and boot, not by the clock"
)
def test_of_daemons_that_start_at_once_exactly_one_serves_and_the_socket_is_its_own(machine: Machine) -> None:
    children = [machine.spawn() for _ in range(AT_ONCE)]
    eventually(lambda: sum(child.poll() is None for child in children) == 1)
    (alive,) = (child for child in children if child.poll() is None)
    eventually(machine.paths.endpoint.exists)
    assert machine.status()["daemon"]["pid"] == alive.pid == machine.instance()
    for child in children:
        if child is not alive:
            assert child.wait() == 1
            assert child.stderr is not None and b"already running" in child.stderr.read()
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(machine.socket))
        assert peer.getpeername() == str(machine.socket)
        pid = int.from_bytes(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 4), sys.byteorder)
    assert pid == alive.pid, "who listens is who holds the lock"
    assert machine.event("Stop", last_assistant_message="It is done.")[0] == "ok"


# --- other versions


@pytest.mark.invariant("Other versions lose no event")
def test_a_newer_hook_is_told_upgrade_and_its_event_is_taken_in_from_the_spool(machine: Machine) -> None:
    machine.start()
    said = {"session_id": "s1", "cwd": str(machine.project), "last_assistant_message": "It is done."}
    assert ask(machine.socket, event_frames("Stop", said, proto=2)) == [b"upgrade", b""]
    machine.hook("SessionStart")
    script = machine.paths.hook_dir / "csmd_hook.py"
    plain = script.read_text()
    newer = plain.replace('head = b"1", ', 'head = b"2", ')
    assert newer != plain
    machine.paths.hook_dir.chmod(0o700)
    script.chmod(0o600)
    script.write_text(newer)
    line = [sys.executable, "-I", "-S", str(script), str(machine.home), "Stop"]
    done = subprocess.run(line, input=json.dumps(said).encode(), capture_output=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    machine.sync()
    assert machine.spooled() == []
    assert machine.status()["counts"]["events"] == 2, "both hooks', and not what was answered with upgrade"


@pytest.mark.invariant("Other versions lose no event")
def test_an_event_of_a_newer_spool_waits_for_a_newer_daemon(machine: Machine) -> None:
    machine.start()
    newer = machine.paths.spool / f"{1:016x}{2:016x}.event"
    kept = b"csmd-spool 2 of which we know nothing\n{}"
    newer.write_bytes(kept)
    machine.hook("Stop", last_assistant_message="It is done.")
    result = machine.sync()
    assert newer.read_bytes() == kept
    assert any("spooled by a newer csmd" in trouble for trouble in result["degraded"]), result
    status = machine.status()
    assert any("a newer csmd" in trouble for trouble in status["degraded"]), status["degraded"]
    assert status["counts"]["events"] == 1, "those behind it are taken in"
    assert status["counters"].get("bad events", 0) == 0


@pytest.mark.parametrize("words", [["status"], ["search", "x"], ["start"], ["sync"]], ids=" ".join)
def test_a_newer_command_tells_that_the_daemon_is_older_and_what_to_do(
    shared_machine: Machine, words: list[str]
) -> None:
    if shared_machine.instance() == 0:
        shared_machine.start()
    done = newer_command(shared_machine, *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert "the daemon is older than this command" in done.stderr and "csmd upgrade" in done.stderr


def test_a_newer_command_can_end_an_older_daemon(machine: Machine) -> None:
    child = machine.start()
    done = newer_command(machine, "stop")
    assert (done.returncode, child.wait(LIMIT_S)) == (0, 0), done


def test_an_older_hook_is_served_by_a_newer_daemon(machine: Machine) -> None:
    """The newer daemon is this one, asked with the protocol before: a lower number is never refused."""
    machine.start()
    said = {"session_id": "s1", "cwd": str(machine.project), "last_assistant_message": "It is done."}
    assert ask(machine.socket, event_frames("Stop", said, proto=0))[0] == b"ok"
    assert machine.status()["counts"]["events"] == 1


# --- what dead ones left


def test_all_that_a_dead_daemon_left_is_no_hindrance(machine: Machine) -> None:
    first = machine.start()
    first.kill()
    first.wait()
    left = (machine.socket, machine.paths.lock, machine.paths.endpoint, machine.paths.instance)
    assert all(path.exists() for path in left)
    machine.paths.hung_mark.touch()
    assert machine.hook("Stop", last_assistant_message="It is done.") == b""
    assert service.find_process(machine.paths) is None
    second = machine.start()
    eventually(lambda: not machine.paths.hung_mark.exists())
    eventually(lambda: not machine.spooled())
    assert machine.status()["counts"]["events"] == 1
    assert service.find_process(machine.paths) == psutil.Process(second.pid)


@pytest.mark.invariant(
    "Of daemons that start at once one serves; a daemon is known by pid, start and boot, not by the clock"
)
def test_a_stranger_with_the_dead_daemons_pid_is_left_alone(machine: Machine) -> None:
    """Pids come round again: same pid, another start; or same pid and start, another boot."""
    files.make_private(machine.home)
    files.make_private(machine.paths.run_dir)
    with subprocess.Popen(["sleep", "600"]) as stranger:
        start = psutil.Process(stranger.pid).create_time() - (psutil.boot_time() if psutil.LINUX else 0.0)
        for instance in (
            {"pid": stranger.pid, "start": start - 5, "boot": boot_id()},
            {"pid": stranger.pid, "start": start, "boot": "another"},
        ):
            machine.paths.instance.write_text(json.dumps(instance))
            machine.paths.endpoint.write_text(str(machine.home / "nobody.sock"))
            assert service.find_process(machine.paths) is None
            assert machine.csmd("stop", "--json") == {"stopped": False}
            assert stranger.poll() is None
        assert machine.csmd("start", "--json")["started"] is True
        assert stranger.poll() is None
        stranger.kill()


@pytest.mark.invariant(
    "Of daemons that start at once one serves; a daemon is known by pid, start and boot, not by the clock"
)
@pytest.mark.skipif(not psutil.LINUX, reason="only there psutil makes a time of day of a start")
def test_a_daemon_is_known_after_the_clock_was_set(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel tells when it booted by the clock of now: a step of the clock moves the start of every process."""
    child = machine.start()
    shown = machine.root / "proc"
    shown.mkdir()
    for step_s in (3600, -86_400):
        stat = Path("/proc/stat").read_text()
        booted = int(next(line for line in stat.splitlines() if line.startswith("btime ")).split()[1])
        (shown / "stat").write_text(stat.replace(f"btime {booted}", f"btime {booted + step_s}"))
        if not (shown / str(child.pid)).exists():
            (shown / str(child.pid)).symlink_to(f"/proc/{child.pid}")
        monkeypatch.setattr(psutil, "PROCFS_PATH", str(shown))
        assert abs(psutil.boot_time() - booted - step_s) < 2, "the clock was set"
        found = service.find_process(machine.paths)
        assert found is not None and found.pid == child.pid
