"""`csmd start`, `stop` and `restart` with real daemons: once, from two places at the same time, after a crash."""

from __future__ import annotations

import os
import subprocess
import sys

import psutil
from machine import LIMIT_S, Machine

from csmd.cli import service
from csmd.config import SILENT
from csmd.store import files


def test_start_stop_and_restart_say_what_they_did(machine: Machine) -> None:
    first = machine.csmd("start", "--json")
    assert first["started"] is True and psutil.pid_exists(first["daemon"]["pid"])
    assert machine.csmd("start") == f"the daemon was running already, pid {first['daemon']['pid']}\n"
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
    assert service.running(machine.paths) is not None
    child.kill()
    child.wait()
    assert machine.instance() == child.pid, "its file is still there"
    assert service.running(machine.paths) is None
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
        assert service.running(machine.paths) is None, text
    assert machine.csmd("stop", "--json") == {"stopped": False}


def test_a_daemon_that_cannot_start_is_told_with_its_own_words(machine: Machine) -> None:
    files.make_private(machine.home)
    machine.paths.database.write_text("this is no database, and it is long enough to look like one" * 20)
    done = machine.run("start")
    assert (done.returncode, done.stdout) == (1, "")
    assert "the daemon ended at once" in done.stderr and "not a database" in done.stderr and "try: " in done.stderr
    assert done.stderr.count("csmd:") == 1 and "Traceback" not in done.stderr
