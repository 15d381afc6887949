"""`csmd start`, `stop` and `restart` with real daemons: once, from two places at the same time, after a crash."""

from __future__ import annotations

import os
import subprocess
import sys

import psutil
import pytest
from machine import LIMIT_S, Machine, eventually

from csmd import wire
from csmd.config import SILENT
from csmd.errors import ConfigError
from csmd.installer import plan, service
from csmd.store import files


def test_start_stop_and_restart_say_what_they_did(machine: Machine) -> None:
    first = machine.csmd("start", "--json")
    assert first["started"] is True and psutil.pid_exists(first["daemon"]["pid"])
    said, *hint = machine.csmd("start").splitlines()
    assert said == f"the daemon was running already, pid {first['daemon']['pid']}"
    assert "no hooks are installed here" in " ".join(map(str.strip, hint)), "nothing is installed here"
    second = machine.csmd("restart", "--json")
    assert second["started"] is True and second["daemon"]["pid"] != first["daemon"]["pid"]
    assert not machine.paths.stopped_mark.exists(), "a restart is no stop"
    assert machine.csmd("stop") == "stopped\n"
    assert machine.paths.stopped_mark.exists()
    assert machine.csmd("stop", "--json") == {"stopped": False}
    machine.csmd("start")
    assert not machine.paths.stopped_mark.exists()


def test_of_several_starts_at_once_one_starts_and_all_are_content(machine: Machine) -> None:
    command = [sys.executable, "-m", "csmd", "start", "--json"]
    starts = [
        subprocess.Popen(command, env=machine.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    said = [child.communicate(timeout=LIMIT_S) for child in starts]
    assert [child.returncode for child in starts] == [0] * 4, said
    assert sorted('"started": true' in out for out, _ in said) == [False, False, False, True]
    assert sum(str(machine.home) in str(p.info["environ"]) and "csmd.daemon" in str(p.info["cmdline"])
               for p in psutil.process_iter(["environ", "cmdline"])) == 1  # fmt: skip


def test_the_daemon_is_detached_from_who_started_it(machine: Machine) -> None:
    pid = machine.csmd("start", "--json")["daemon"]["pid"]
    process = psutil.Process(pid)
    assert os.getsid(pid) == pid != os.getsid(0)
    assert process.cwd() == str(machine.home)
    assert {file.path for file in process.open_files()} and process.terminal() is None
    kept = set(process.environ())
    assert "PYTHONPATH" not in kept and kept <= {
        "HOME", "PATH", "LANG", "CSMD_HOME", "CLAUDE_CONFIG_DIR", "LC_CTYPE", *SILENT,
    }  # fmt: skip


def test_a_daemon_that_was_killed_is_known_to_be_gone(machine: Machine) -> None:
    child = machine.start()
    assert service.running_service(machine.paths) is not None
    child.kill()
    child.wait()
    assert machine.instance() == child.pid, "its file is still there"
    assert service.running_service(machine.paths) is None
    assert machine.csmd("stop", "--json") == {"stopped": False}
    assert machine.csmd("start", "--json")["started"] is True


def test_a_pid_that_came_round_again_is_not_our_daemon(machine: Machine) -> None:
    files.make_private(machine.home)
    files.make_private(machine.paths.run_dir)
    for text in (
        f'{{"pid": {os.getpid()}, "start": 1.0}}',
        "{",
        "[]",
        '{"pid": "x"}',
        '{"pid": -1, "start": 0}',
        "\xff",
    ):
        machine.paths.instance.write_text(text)
        assert service.running_service(machine.paths) is None, text
    assert machine.csmd("stop", "--json") == {"stopped": False}


def test_a_daemon_that_cannot_start_is_told_with_its_own_words(machine: Machine) -> None:
    files.make_private(machine.home)
    machine.paths.database.write_text("this is no database, and it is long enough to look like one" * 20)
    done = machine.run("start")
    assert (done.returncode, done.stdout) == (1, "")
    assert "the daemon ended at once" in done.stderr and "not a database" in done.stderr and "try: " in done.stderr
    assert done.stderr.count("csmd:") == 1 and "Traceback" not in done.stderr


# --- an older csmd's daemon

#: A daemon that says another version and knows no request of today's.
OLDER = """
import runpy, sys, csmd, csmd.wire
csmd.__version__, csmd.wire.PROTO = "0.0.9", 0
sys.argv = ["csmd.daemon"]
runpy.run_module("csmd.daemon", run_name="__main__", alter_sys=True)
"""


@pytest.mark.invariant("An upgrade loses no event, whatever the older daemon's protocol")
@pytest.mark.parametrize("verb", ["install", "upgrade"])
def test_an_older_daemon_is_replaced_and_what_it_could_not_take_in_is_taken_in(machine: Machine, verb: str) -> None:
    machine.csmd("install", "--no-start")
    older = subprocess.Popen([sys.executable, "-c", OLDER], cwd=machine.root, env=machine.environment())
    machine.daemons.append(older)
    eventually(lambda: machine.paths.endpoint.exists() and machine.instance() == older.pid)
    machine.hook("UserPromptSubmit", prompt="I prefer tabs over spaces in Makefiles.")
    assert len(machine.spooled()) == 1
    done = machine.run("status")
    assert (done.returncode, done.stdout) == (1, "") and "csmd upgrade" in done.stderr
    assert "0.0.9" in machine.csmd(verb)
    assert older.wait(LIMIT_S) == 0, "it was asked to end and drained"
    machine.sync()
    assert machine.status()["counts"]["events"] == 1 and machine.spooled() == []
    pid = machine.status()["daemon"]["pid"]
    assert "nothing was to be done" in machine.csmd("upgrade") and machine.status()["daemon"]["pid"] == pid


def test_an_upgrade_starts_nothing_that_was_stopped_on_purpose_and_needs_an_installation(machine: Machine) -> None:
    done = machine.run("upgrade")
    assert done.returncode == 1 and "not installed" in done.stderr and "csmd install" in done.stderr
    machine.csmd("install", "--no-start")
    machine.csmd("stop")
    (machine.paths.hook_dir / "prompt").write_text("older")
    record = wire.loads(machine.paths.install_record.read_bytes())
    machine.paths.install_record.write_text(wire.pretty({**record, "version": "0.0.9"}))
    shown = machine.csmd("upgrade")
    assert "0.0.9 to" in shown and "prompt" in shown and "stopped by you" in shown
    assert service.running_service(machine.paths) is None and machine.paths.stopped_mark.exists()
    assert (machine.paths.hook_dir / "prompt").read_bytes() == (plan.shipped_folder() / "prompt").read_bytes()


def test_a_home_on_a_drive_of_windows_is_refused_before_anything_is_made(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, mounts = machine.root / "version", machine.root / "mounts"
    kernel.write_text("Linux version 5.15.153.1-microsoft-standard-WSL2")
    mounts.write_text(f"C:\\134 {machine.root} 9p rw 0 0\n")
    monkeypatch.setattr(service, "KERNEL", kernel)
    monkeypatch.setattr(service, "MOUNTS", mounts)
    for refused in (lambda: service.start(machine.paths), lambda: service.plan_unit(machine.paths)):
        with pytest.raises(ConfigError, match="on a drive of Windows"):
            refused()
    assert not machine.home.exists()
