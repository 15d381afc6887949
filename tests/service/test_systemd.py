"""The daemon under a real `systemd --user`: ready when it answers, back when it dies or hangs, gone when csmd leaves."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from machine import eventually
from scripted_models import ScriptedModels
from systemd_machine import ServedMachine
from team_server import PASSWORD, TeamServer

import csmd
from csmd.installer import service
from csmd.installer.service import Unit
from csmd.team import postgres

#: A drop-in of the user's: the same unit, only sooner.
SOONER = "[Service]\nWatchdogSec=1\nTimeoutAbortSec=1\nRestartSec=100ms\n"
#: What an older csmd's interpreter runs: a daemon that says another version and knows no request of today's.
OLDER = """#!{python} -P
import runpy, sys, csmd, csmd.wire
csmd.__version__, csmd.wire.PROTO = "0.0.9", 0
sys.argv = ["csmd.daemon"]
runpy.run_module("csmd.daemon", run_name="__main__", alter_sys=True)
"""


def sooner(served: ServedMachine, text: str = SOONER) -> None:
    drop_in = served.units / "csmd.service.d" / "sooner.conf"
    drop_in.parent.mkdir(parents=True, exist_ok=True)
    drop_in.write_text(text)
    served.sh("systemctl", "--user", "daemon-reload")


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.invariant("Leaving takes unit, directories and processes back; a foreign unit is never written over")
def test_installing_has_systemd_keep_the_daemon_and_leaving_takes_everything_back(served: ServedMachine) -> None:
    (served.root / ".config").mkdir()
    before = tree(served.root / ".config")
    planned = served.csmd("install", "--dry-run")
    assert tree(served.root) == {".config", "project"}, "a dry run writes nothing"
    installed = served.csmd("install", "--json")
    file = served.units / "csmd.service"
    assert installed["service"]["kind"] == "systemd" and installed["service"]["file"] == str(file)
    assert all(line in planned for line in file.read_text().splitlines()), "the dry run shows the unit's text"
    status = served.csmd("status", "--json")
    properties = served.shown("ActiveState", "UnitFileState", "MainPID", "MemoryMax", "StatusText", "NeedDaemonReload")
    assert properties == {
        "ActiveState": "active", "UnitFileState": "enabled", "MainPID": str(status["daemon"]["pid"]),
        "MemoryMax": str(1 << 30), "StatusText": f"csmd {csmd.__version__} captures sessions",
        "NeedDaemonReload": "no",
    }  # fmt: skip
    assert status["service"] == "systemd"
    kernel = served.sh("cat", f"/proc/{properties['MainPID']}/status")
    assert "NoNewPrivs:\t1\n" in kernel and "Seccomp:\t2\n" in kernel, "the hardening is in force"
    assert "kept by systemd" in served.csmd("install") and served.shown("MainPID")["MainPID"] == properties["MainPID"]
    assert f"would be removed: {file}" in served.csmd("uninstall", "--dry-run") and file.exists()
    shown = served.csmd("uninstall", "--purge", "--yes")
    assert f"removed {file}" in shown and "the daemon is stopped" in shown
    assert tree(served.root / ".config") == before
    assert served.shown("LoadState", "ActiveState") == {"LoadState": "not-found", "ActiveState": "inactive"}
    assert served.processes() == [] and not served.home.exists()


@pytest.mark.invariant(
    "Ready means that csmd answers; a stop lasts until the next start; killed or hung, it comes back and has lost nothing"
)
def test_a_start_ends_when_csmd_answers_and_a_stop_lasts_until_the_next_start(served: ServedMachine) -> None:
    served.csmd("install", "--no-start")
    assert served.shown("ActiveState", "UnitFileState") == {"ActiveState": "inactive", "UnitFileState": "enabled"}
    served.sh("systemctl", "--user", "start", "csmd.service")
    assert served.shown("ActiveState")["ActiveState"] == "active"
    first = served.status()["daemon"]["pid"]
    second = served.csmd("restart", "--json")
    assert second["started"] is True and second["daemon"]["pid"] != first
    assert "it stays stopped" in served.csmd("stop") and served.paths.stopped_mark.exists()
    assert served.shown("ActiveState", "UnitFileState") == {"ActiveState": "inactive", "UnitFileState": "disabled"}
    third = served.csmd("start", "--json")
    assert third["service"] == "systemd" and served.shown("MainPID")["MainPID"] == str(third["daemon"]["pid"])
    assert served.shown("UnitFileState")["UnitFileState"] == "enabled"


@pytest.mark.invariant(
    "Ready means that csmd answers; a stop lasts until the next start; killed or hung, it comes back and has lost nothing"
)
def test_a_daemon_that_is_killed_or_hangs_is_started_again_and_has_lost_nothing(served: ServedMachine) -> None:
    served.csmd("install", "--no-start")
    sooner(served)
    served.sh("systemctl", "--user", "start", "csmd.service")
    assert served.hook("UserPromptSubmit", prompt="I prefer tabs over spaces in Makefiles.") == b""
    for number, signal in enumerate(("KILL", "STOP"), start=1):
        pid = served.shown("MainPID")["MainPID"]
        served.sh("kill", f"-{signal}", pid)
        eventually(lambda pid=pid: served.shown("MainPID", "ActiveState")["MainPID"] not in ("0", pid))
        eventually(lambda: served.shown("ActiveState")["ActiveState"] == "active")
        assert served.shown("NRestarts")["NRestarts"] == str(number), signal
    assert served.status()["counts"]["events"] == 1
    served.csmd("uninstall")
    assert (served.units / "csmd.service.d" / "sooner.conf").exists(), "what the user wrote stays"


@pytest.mark.invariant("An upgrade loses no event, whatever the older daemon's protocol")
def test_an_upgrade_replaces_what_is_older_and_loses_no_event(served: ServedMachine) -> None:
    served.csmd("install", "--no-start")
    file, record = served.units / "csmd.service", served.paths.install_record
    unit, hook = file.read_text(), served.paths.hook_script.read_bytes()
    older = served.root / "older-python"
    older.write_text(OLDER.format(python=sys.executable))
    older.chmod(0o755)
    file.write_text(unit.replace(sys.executable, str(older), 1))
    record.write_text(json.dumps({**json.loads(record.read_text()), "version": "0.0.9"}))
    served.sh("systemctl", "--user", "daemon-reload")
    served.sh("systemctl", "--user", "start", "csmd.service")
    served.hook("UserPromptSubmit", prompt="I prefer tabs over spaces in Makefiles.")
    assert len(served.spooled()) == 1, "the older daemon does not know today's hooks"
    served.paths.hook_script.write_bytes(b"# older\n" + hook)
    assert served.run("status").returncode == 1
    done = served.csmd("upgrade", "--json")
    assert (done["from"], done["to"], done["hooks"]) == ("0.0.9", csmd.__version__, ["csmd_hook.py"])
    assert done["service"] == str(file) and done["daemon"]["replaced"] == "0.0.9"
    assert (file.read_text(), served.paths.hook_script.read_bytes()) == (unit, hook)
    served.sync()
    assert served.status()["counts"]["events"] == 1 and served.spooled() == []
    assert "is already running; nothing to do." in served.csmd("upgrade")
    assert served.shown("MainPID")["MainPID"] == str(done["daemon"]["pid"])
    served.csmd("stop")
    file.write_text(f"{unit}# older\n")
    assert "stopped; `csmd start` starts it" in served.csmd("upgrade") and file.read_text() == unit
    assert served.shown("UnitFileState", "ActiveState") == {"UnitFileState": "disabled", "ActiveState": "inactive"}


@pytest.mark.invariant("What cannot run says why and does not spin")
def test_a_daemon_that_cannot_run_says_why_and_does_not_spin(served: ServedMachine) -> None:
    served.csmd("install", "--no-start")
    sooner(served, f"{SOONER}[Unit]\nStartLimitBurst=2\n")
    config = served.root / ".config" / "csmd" / "config.yaml"
    config.parent.mkdir()
    config.write_text("brief.max_token: 3\n")
    done = served.run("start")
    assert done.returncode == 1 and "unknown key 'brief.max_token'" in done.stderr, done.stderr
    eventually(lambda: served.shown("ActiveState")["ActiveState"] == "failed")
    assert int(served.shown("NRestarts")["NRestarts"]) <= 2
    assert "unknown key" in served.run("status").stderr
    config.unlink()
    assert served.csmd("start", "--json")["service"] == "systemd"
    assert not served.paths.complaint.exists()

    def is_given_up_when_killed() -> bool:
        eventually(lambda: served.shown("ActiveState")["ActiveState"] in ("active", "failed"))
        served.sh("systemctl", "--user", "kill", "--signal=KILL", "csmd.service", check=False)
        return served.shown("ActiveState")["ActiveState"] == "failed"

    eventually(is_given_up_when_killed)
    status = served.run("status")
    assert (
        status.returncode == 3 and "systemd no longer starts it" in status.stderr and "journalctl" in status.stderr
    ), status


def test_each_home_has_a_unit_of_its_own_whatever_its_path(served: ServedMachine) -> None:
    detached = served.csmd("install", "--no-service", "--json")
    assert detached["service"]["kind"] == "detached" and not served.units.exists()
    plain = served.csmd("install", "--json")
    assert plain["daemon"]["pid"] != detached["daemon"]["pid"] and plain["service"]["kind"] == "systemd"
    served.chosen["CSMD_HOME"] = str(served.root / "a 100% \"$HOME\" 'other' \\one")
    other = served.csmd("install", "--json")
    assert other["service"]["file"] != plain["service"]["file"]
    status = served.status()
    assert status["service"] == "systemd" and status["home"] == served.chosen["CSMD_HOME"]
    assert len(served.processes()) == 2
    served.csmd("uninstall")
    del served.chosen["CSMD_HOME"]
    assert len(served.processes()) == 1
    assert served.status()["daemon"]["pid"] == plain["daemon"]["pid"]


def test_a_program_is_started_whatever_its_path(served: ServedMachine) -> None:
    """A stand-in for the interpreter, in places that mean something else to systemd."""
    served.units.mkdir(parents=True)
    for place in ("a b", "100%h", "$HOME", "say \"hi\" 'now'", "back\\slash", 'a=b "c"'):
        program = served.root / place / "python"
        program.parent.mkdir()
        program.write_text('#!/bin/sh\necho "$#" "$@" >"$CSMD_HOME/said"\n')
        program.chmod(0o755)
        unit = Unit(
            home=program.parent, is_default=True, command=(str(program), "-P", "-m", "csmd.daemon"),
            environment={"CSMD_HOME": str(program.parent)},
        )  # fmt: skip
        (served.units / "csmd.service").write_text(
            service.format_systemd_unit(unit, version=252).replace("Type=notify", "Type=oneshot")
        )
        served.sh("systemctl", "--user", "daemon-reload")
        served.sh("systemctl", "--user", "start", "csmd.service")
        assert (program.parent / "said").read_text() == "3 -P -m csmd.daemon\n", place


@pytest.mark.invariant("The daemon has no network of its own; a language model is asked by a process beside its unit")
def test_a_language_model_is_asked_beside_the_unit_that_has_no_network(served: ServedMachine) -> None:
    served.csmd("install")
    served.sh("systemctl", "--user", "set-environment", "MODEL_KEY=k-1")
    with ScriptedModels() as server:
        place = ("--url", f"{server.url}/v1", "--model", "small", "--key-env", "MODEL_KEY")
        served.csmd("provider", "add", "openai", *place, "--yes")
        tested = served.csmd("provider", "test", "--json")
        assert (tested["tokens_in"], tested["tokens_out"]) == server.counted and server.keys == ["Bearer k-1"]
        served.csmd("config", "set", "embed.model", "openai/vectors", "--yes")
        served.csmd("restart")
        served.csmd("remember", "I prefer tabs over spaces in Makefiles.")
        served.csmd("sync")
        assert served.status()["model"] == {"name": "openai/vectors@endpoint-8", "waiting": 0, "suggested": ""}
        served.csmd("stop")  # and with it the worker
    served.csmd("start")
    # What the daemon's unit says of the network is in force: a process in it gets no socket.
    restricted = served.shown("RestrictAddressFamilies")["RestrictAddressFamilies"]
    assert restricted == "AF_UNIX"
    code = "import socket; socket.socket(); print('a network')"
    within = (f"--property=RestrictAddressFamilies={families}" for families in (restricted, "AF_INET AF_UNIX"))
    tried = [
        served.sh("systemd-run", "--user", "--pipe", "--wait", "--collect", "--quiet", rule, sys.executable, "-c", code, check=False)
        for rule in within
    ]  # fmt: skip
    assert tried == ["", "a network\n"]
    served.sh("systemctl", "--user", "unset-environment", "MODEL_KEY")
    assert "run-" not in served.sh(
        "systemctl", "--user", "list-units", "--all", "--plain", "--no-legend", "--type=service"
    )
    assert served.run("provider", "test").returncode == 1
    assert served.status()["provider"]["failure"] == "refused", "the variable is gone"


@pytest.mark.invariant("The daemon has no network of its own; a language model is asked by a process beside its unit")
def test_a_team_is_shared_with_beside_the_unit_that_has_no_network(served: ServedMachine, team: TeamServer) -> None:
    (served.root / ".pgpass").write_text(f"127.0.0.1:{team.port}:*:cyd:{PASSWORD}\n")
    (served.root / ".pgpass").chmod(0o600)
    served.csmd("install")
    served.conversation()
    served.csmd("sync")
    assert (
        "ask the owner of the database to join first"
        in served.run("team", "join", team.network_url("cyd"), "--yes").stderr
    )
    with postgres.open_connection(team.url("ann")) as rows:  # who owns the database makes the tables
        postgres.prepare(rows)
    served.csmd("team", "join", team.network_url("cyd"), "--yes")
    served.csmd("team", "share", str(served.project), "--as", "shop", "--private", "--yes")
    eventually(lambda: served.csmd("team", "status", "--json")["team"]["waiting"] == 0)
    assert team.rows("cyd", "select name, author from projects") == [("shop", "cyd")]
    (hit, *_) = served.csmd("search", "--team", "job queue", "--json")["hits"]
    assert "LISTEN/NOTIFY" in hit["text"] and hit["author"] == "cyd"
    assert served.shown("RestrictAddressFamilies")["RestrictAddressFamilies"] == "AF_UNIX"
