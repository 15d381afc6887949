"""Unit files, service managers, `csmd start`, `stop` and `restart`, and Windows' Linux."""

from __future__ import annotations

import json
import os
import plistlib
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import forked_process
import psutil
import pytest
from machine import LIMIT_S, Machine, eventually

from csmd import wire
from csmd.config import SILENT, manager_environment, started_by, take_notify_socket, unit_environment, unit_folders
from csmd.errors import ConfigError, CsmdError
from csmd.installer import home_disk, plan, service
from csmd.installer.service import LINGER, Manager, Unit
from csmd.machine import start_token
from csmd.store import files

DTD = Path(__file__).resolve().parent.parent / "data" / "service" / "plist.dtd"
#: Paths that mean something else to systemd or XML when they are written down as they stand.
AWKWARD = ["/plain/csmd", "/with a blank", "/100%h", "/say \"hi\" 'now'", "/$HOME/${X}", "/back\\slash\\x41", "/a&b<c>", "/ü/日本", "/semi;colon #x", "/a@EXEC@b"]  # fmt: skip


def unit(
    home: str = "/home/me/.local/share/csmd", *, is_default: bool = True, python: str = "/venv/bin/python"
) -> Unit:
    environment = unit_environment("systemd", {"CSMD_HOME": home, "CLAUDE_CONFIG_DIR": "/c d"})
    return Unit(home=Path(home), is_default=is_default, command=(python, "-P", "-m", "csmd.daemon"), environment=environment)  # fmt: skip


def systemd_text(made: Unit, version: int = 252) -> str:
    return service.format_systemd_unit(made, version=version)


def plist(made: Unit) -> bytes:
    return service.format_launchd_plist(made, stderr=made.home / "run" / "service.stderr").encode()


def verified(tmp_path: Path, text: str) -> str:
    """What systemd has to say about a unit; "" when nothing."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze here")
    file = tmp_path / "csmd.service"
    file.write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "--user", "--man=no", "verify", str(file)], env={"XDG_RUNTIME_DIR": str(tmp_path), "PATH": "/bin:/usr/bin", "HOME": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stderr if done.stderr or done.returncode == 0 else f"exit code {done.returncode}"


# --- systemd


def test_the_unit_is_one_that_systemd_has_nothing_to_say_about(tmp_path: Path) -> None:
    assert verified(tmp_path, systemd_text(unit(python="/bin/sh"))) == ""
    broken = systemd_text(unit(python="/bin/sh")).replace("WatchdogSec=", "WatchdogSeconds=")
    assert "WatchdogSeconds" in verified(tmp_path, broken), "a check that cannot fail is none"


@pytest.mark.invariant("Any path is read back from the unit as it is, or refused")
@pytest.mark.parametrize("place", AWKWARD)
def test_systemd_reads_an_awkward_path_back_as_it_is(place: str, tmp_path: Path) -> None:
    program = tmp_path / place.strip("/").replace("/", "-") / "python"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    text = systemd_text(unit(f"{tmp_path}{place}", is_default=False, python=str(program)))
    assert verified(tmp_path, text) == "", "it says so when the program is not there"
    if not set(place) & set("\\\"'"):  # else a shell starts it
        program.unlink()
        assert str(program) in verified(tmp_path, text)


def test_a_path_that_no_unit_can_hold_is_refused() -> None:
    for made in (systemd_text, plist):
        with pytest.raises(ConfigError, match="not UTF-8"):
            made(unit("/home/\udcff"))
    with pytest.raises(ConfigError, match="control character"):
        plist(unit("/home/\x07"))
    assert 'Environment="CSMD_HOME=/home/two\\x0alines"' in systemd_text(unit("/home/two\nlines"))


def test_the_wait_between_restarts_grows_where_systemd_knows_how() -> None:
    assert "RestartSteps" not in systemd_text(unit(), version=253)
    assert "RestartSteps=4" in systemd_text(unit(), version=254)
    assert not any("@" in line for line in systemd_text(unit()).splitlines() if not line.startswith("#"))


def test_every_home_has_a_name_of_its_own_and_units_tell_whose_they_are() -> None:
    default, other, third = unit(), unit("/a", is_default=False), unit("/b", is_default=False)
    names = [made.name("systemd") for made in (default, other, third)]
    assert names[0] == "csmd" and len(set(names)) == 3
    for made in (default, other, third):
        for text in (systemd_text(made), plist(made).decode()):
            assert service.find_mark(text) == made.mark
    assert service.find_mark("[Service]\nExecStart=/bin/true\n") == ""


# --- launchd


@pytest.mark.invariant("Any path is read back from the unit as it is, or refused")
@pytest.mark.parametrize("place", AWKWARD)
def test_a_plist_reads_back_as_what_was_meant(place: str) -> None:
    made = unit(place, is_default=False, python=f"{place}/bin/python")
    value: dict[str, Any] = plistlib.loads(plist(made))
    assert value["ProgramArguments"] == list(made.command)
    assert value["EnvironmentVariables"] == {"CSMD_HOME": place, "CLAUDE_CONFIG_DIR": "/c d", "CSMD_SERVICE": "systemd"}
    assert value["StandardErrorPath"] == f"{place}/run/service.stderr"
    assert value["KeepAlive"] == {"SuccessfulExit": False} and value["Umask"] == 0o077
    assert value["Label"] == f"io.csmd.daemon.{made.mark}"
    assert plistlib.loads(plistlib.dumps(value)) == value


def test_a_plist_is_valid_and_a_broken_one_is_not(tmp_path: Path) -> None:
    if shutil.which("xmllint") is None:
        pytest.skip("no xmllint here")

    def valid(text: bytes) -> bool:
        file = tmp_path / "agent.plist"
        file.write_bytes(text)
        done = subprocess.run(["xmllint", "--noout", "--nonet", "--dtdvalid", str(DTD), str(file)], capture_output=True, check=False)  # fmt: skip
        return done.returncode == 0

    good = plist(unit())
    assert valid(good)
    for broken in (
        good.replace(b"<string>io.csmd.daemon</string>", b""),
        good.replace(b"<true/>", b"<yes/>"),
        good.replace(b"<integer>30</integer>", b"30"),
        good.replace(b"</dict>\n</plist>", b"</plist>"),
    ):
        assert broken != good and not valid(broken)


# --- the environment


def test_a_unit_gets_the_places_that_were_chosen_and_nothing_else() -> None:
    shell = {"CSMD_HOME": "/h", "XDG_STATE_HOME": "/s", "XDG_CONFIG_HOME": "", "API_KEY": "x", "PATH": "/bin"}
    assert unit_environment("launchd", shell) == {"CSMD_HOME": "/h", "XDG_STATE_HOME": "/s", "CSMD_SERVICE": "launchd"}
    assert [started_by(env) for env in (shell, {"CSMD_SERVICE": "systemd"}, {"CSMD_SERVICE": "cron"})] == [
        "detached", "systemd", "detached",
    ]  # fmt: skip


def test_the_managers_socket_is_taken_out_of_the_environment_and_meant_for_us() -> None:
    told = {"NOTIFY_SOCKET": "/s", "WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "7", "PATH": "/bin"}
    env = dict(told)
    assert take_notify_socket(env, pid=7) == ("/s", 60.0) and env == {"PATH": "/bin"}
    assert take_notify_socket(dict(told), pid=8) == ("/s", 0.0), "another's watchdog"
    assert take_notify_socket({"NOTIFY_SOCKET": "/s", "WATCHDOG_USEC": "soon"}) == ("/s", 0.0)
    assert take_notify_socket({}) == ("", 0.0)


def test_units_lie_where_the_user_keeps_configuration(a_home_of_its_own: Path) -> None:
    home = a_home_of_its_own
    assert unit_folders("systemd", {}) == (home / ".config/systemd/user",)
    assert unit_folders("systemd", {"XDG_CONFIG_HOME": "/x"}) == (
        Path("/x/systemd/user"),
        home / ".config/systemd/user",
    )
    assert unit_folders("launchd", {}) == (home / "Library/LaunchAgents",)
    assert "API_KEY" not in manager_environment({"API_KEY": "x", "PATH": "/bin"})


# --- `csmd start`, `stop` and `restart` with real daemons: once, from two places at the same time, after a crash.


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


def age(path: Path, seconds: float) -> None:
    """Makes a file as old as if its time had passed."""
    os.utime(path, (time.time() - seconds,) * 2)


@pytest.mark.invariant("A daemon that nobody keeps comes back with the next session, and none that a person stopped")
def test_a_daemon_that_was_killed_is_brought_back_by_the_next_session_and_by_nothing_else(machine: Machine) -> None:
    def killed() -> int:
        pid = int(machine.csmd("start", "--json")["daemon"]["pid"])
        psutil.Process(pid).kill()
        eventually(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
        return pid

    pid, command = killed(), machine.paths.start_command
    machine.hook("SessionStart", source="startup")
    assert machine.instance() == pid, "it was started less than a minute ago"
    age(command, 61)
    machine.hook("UserPromptSubmit", prompt="is anybody there?")
    assert machine.instance() == pid, "a prompt does not wait for a daemon"
    assert machine.hook("SessionStart", source="startup") == b"", "nobody need be told"
    eventually(lambda: machine.instance() != pid)
    child = psutil.Process(machine.instance())
    assert (child.cwd(), os.getsid(child.pid)) == (str(machine.home), child.pid)
    machine.sync()
    assert machine.status()["counts"]["turns"] == 1 and not machine.spooled()

    for hindrance in ("stopped", "switched off", "another's"):
        if hindrance == "stopped":
            machine.csmd("stop")
        elif hindrance == "switched off":
            machine.csmd("config", "set", "hooks.start_daemon", "false")
            killed()
            assert not command.exists()
        else:
            machine.csmd("config", "unset", "hooks.start_daemon")
            killed()
            machine.paths.run_dir.chmod(0o777)  # anybody could have written the command
        if command.exists():
            age(command, 61)
        before = machine.instance()
        machine.hook("SessionStart", source="startup")
        assert (machine.instance(), service.find_process(machine.paths)) == (before, None), hindrance
        machine.paths.run_dir.chmod(0o700)


def test_a_daemon_that_ends_at_once_is_tried_again_and_the_user_told(machine: Machine) -> None:
    machine.csmd("start")
    psutil.Process(machine.instance()).kill()
    machine.paths.config_file.write_text("no: such key\n")
    age(machine.paths.start_command, 61)
    machine.hook("SessionStart", source="startup")
    eventually(lambda: "unknown key" in machine.paths.complaint.read_text())
    age(machine.paths.start_command, 61)
    machine.paths.complaint.write_text("of the one before")
    assert b"its daemon is not running" in machine.hook("SessionStart", source="startup")
    eventually(lambda: "unknown key" in machine.paths.complaint.read_text())  # this one, too, has found the bad file


def test_a_daemon_whose_program_is_gone_is_told_of_and_the_assistant_sees_no_complaint(machine: Machine) -> None:
    machine.csmd("start")
    psutil.Process(machine.instance()).kill()
    command = machine.paths.start_command
    complaint, program, rest = command.read_bytes().split(b"\0", 2)
    gone = program + b"-gone"
    command.write_bytes(b"\0".join((complaint, gone, rest)))
    age(command, 61)
    assert machine.hook("SessionStart", source="startup") == b""
    eventually(lambda: machine.paths.complaint.read_bytes() == b"csmd: cannot run " + gone + b"\n")
    age(command, 61)
    assert b"its daemon is not running" in machine.hook("SessionStart", source="startup")


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
    assert service.find_process(machine.paths) is not None
    child.kill()
    child.wait()
    assert machine.instance() == child.pid, "its file is still there"
    assert service.find_process(machine.paths) is None
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
        assert service.find_process(machine.paths) is None, text
    assert machine.csmd("stop", "--json") == {"stopped": False}


def test_a_process_that_got_a_dead_daemons_pid_within_the_same_second_is_not_our_daemon(machine: Machine) -> None:
    def begin() -> subprocess.Popen[bytes]:
        return subprocess.Popen(["sleep", "600"])

    child = machine.start()
    noted = json.loads(machine.paths.instance.read_bytes())
    machine.stop(child)
    dead, foreign = begin(), begin()
    while start_token(foreign.pid) == start_token(dead.pid):  # within the same hundredth of a second
        foreign.kill()
        foreign.wait()
        foreign = begin()
    assert start_token(foreign.pid) - start_token(dead.pid) < 1.0
    left = {**noted, "pid": foreign.pid, "start": start_token(dead.pid)}
    machine.paths.instance.write_text(json.dumps(left))
    assert machine.csmd("stop", "--json") == {"stopped": False}
    assert machine.csmd("start", "--json")["started"] is True
    machine.csmd("stop")
    assert foreign.poll() is None, "it was left alone"
    for process in (dead, foreign):
        process.kill()
        process.wait()


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
    older = forked_process.spawn("-c", OLDER, cwd=machine.root, env=machine.environment())
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
    assert "is already running; nothing to do." in machine.csmd("upgrade") and machine.status()["daemon"]["pid"] == pid


def test_an_upgrade_starts_nothing_that_was_stopped_on_purpose_and_needs_an_installation(machine: Machine) -> None:
    done = machine.run("upgrade")
    assert done.returncode == 1 and "not installed" in done.stderr and "csmd install" in done.stderr
    machine.csmd("install", "--no-start")
    machine.csmd("stop")
    (machine.paths.hook_dir / "prompt").write_text("older")
    record = wire.loads(machine.paths.install_record.read_bytes())
    machine.paths.install_record.write_text(wire.pretty({**record, "version": "0.0.9"}))
    shown = machine.csmd("upgrade")
    assert "0.0.9 to" in shown and "prompt" in shown and "daemon   stopped; `csmd start` starts it" in shown
    assert service.find_process(machine.paths) is None and machine.paths.stopped_mark.exists()
    assert (machine.paths.hook_dir / "prompt").read_bytes() == (plan.find_shipped_folder() / "prompt").read_bytes()


WSL2 = "Linux version 5.15.153.1-microsoft-standard-WSL2 (root@x) (gcc 11.2.0) #1 SMP"


@pytest.fixture
def linux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets what /proc says: the kernel's version and the table of mounts."""

    def says(version: str, mounts: str = "") -> None:
        for name, text in (("KERNEL", version), ("MOUNTS", mounts)):
            (tmp_path / name).write_text(text)
            monkeypatch.setattr(home_disk, name, tmp_path / name)

    return says


def test_a_home_on_a_drive_of_windows_is_refused_before_anything_is_made(
    machine: Machine, linux: Callable[..., None]
) -> None:
    linux(WSL2, f"C:\\134 {machine.root} 9p rw 0 0\n")
    for refused in (lambda: service.start(machine.paths), lambda: service.plan_unit(machine.paths)):
        with pytest.raises(ConfigError, match="on a Windows drive"):
            refused()
    assert not machine.home.exists()


# --- Which service manager is there, and what is said and done where none is; its commands are stand-ins on PATH.


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that PATH consists of; what a stand-in was asked is in `asked`."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    return tmp_path


def stand_in(commands: Path, name: str, answers: str) -> None:
    """A command that answers by cases of its words, `PATTERN) ...;;` as sh has them."""
    script = commands / name
    script.write_text(f'#!/bin/sh\necho "{name} $*" >>"{commands}/asked"\ncase "$*" in\n{answers}\n*) exit 1;;\nesac\n')
    script.chmod(0o755)


def asked(commands: Path) -> list[str]:
    file = commands / "asked"
    return file.read_text().splitlines() if file.exists() else []


# --- systemd


def test_where_no_manager_is_the_reason_is_given(machine: Machine, commands: Path, linux: Callable[..., None]) -> None:
    assert service.find_manager(machine.paths, platform="linux") == "there is no systemd here"
    stand_in(commands, "systemctl", "")
    assert service.find_manager(machine.paths, platform="linux") == "no systemd user manager answers here"
    linux(WSL2)
    told = service.find_manager(machine.paths, platform="linux")
    assert isinstance(told, str) and service.ENABLE_SYSTEMD in told
    stand_in(commands, "systemctl", "*UnitPath*) echo UnitPath=/somewhere/else /etc/systemd/user;;")
    told = service.find_manager(machine.paths, platform="linux")
    assert isinstance(told, str) and "does not search" in told


def test_a_manager_that_looks_where_we_write_is_used(machine: Machine, commands: Path, a_home_of_its_own: Path) -> None:
    folder = a_home_of_its_own / ".config/systemd/user"
    stand_in(commands, "systemctl", f"*UnitPath*) echo 'UnitPath=/a {folder} /b';;\n*Version*) echo Version=257.1-2;;")
    found = service.find_manager(machine.paths, platform="linux")
    assert (
        isinstance(found, Manager)
        and found.kind == "systemd"
        and found.file.parent == folder
        and found.name.startswith("csmd-")
    )
    assert "RestartSteps=" in found.text() and f"Environment=CSMD_HOME={os.environ['CSMD_HOME']}\n" in found.text()


def test_the_end_at_logout_is_told_where_nobody_sits_at_a_screen(
    machine: Machine, commands: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Manager(machine.paths, machine.root / "csmd.service", "systemd")
    stand_in(commands, "loginctl", "*Linger*) echo no;;")
    assert kept.describe_lifetime() == LINGER and "enable-linger" in LINGER
    monkeypatch.setenv("DISPLAY", ":0")
    assert kept.describe_lifetime() == ""
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.1 1 10.0.0.2 22")
    assert kept.describe_lifetime() == LINGER
    stand_in(commands, "loginctl", "*Linger*) echo yes;;")
    assert kept.describe_lifetime() == ""
    assert not any("enable" in line for line in asked(commands)), "said, never done"


# --- placing


@pytest.mark.invariant("Leaving takes unit, directories and processes back; a foreign unit is never written over")
def test_a_unit_that_somebody_else_wrote_is_not_written_over(machine: Machine, commands: Path) -> None:
    stand_in(commands, "systemctl", "*Version*) echo Version=252;;")
    kept = Manager(machine.paths, machine.root / "csmd.service", "systemd")
    for theirs in ("[Service]\nExecStart=/bin/true\n", kept.text().replace("csmd: home ", "csmd: home 0123456789ab ")):
        kept.file.write_text(theirs)
        with pytest.raises(ConfigError, match="exists and is not"):
            service.plan_for(kept)
    kept.file.unlink()
    kept.file.symlink_to("/dev/null")  # a masked unit
    with pytest.raises(ConfigError, match="exists and is not"):
        service.plan_for(kept)


def test_what_was_placed_is_taken_back_even_where_the_manager_is_gone(machine: Machine, commands: Path) -> None:
    stand_in(commands, "systemctl", "*) echo Version=252;;")
    kept = Manager(machine.paths, machine.root / "made" / "for it" / "csmd.service", "systemd")
    machine.home.mkdir(mode=0o700)
    before = sorted(machine.root.rglob("*"))
    planned = service.plan_for(kept)
    assert service.install_unit(machine.paths, planned) is True
    assert kept.file.stat().st_mode & 0o777 == 0o600
    assert service.install_unit(machine.paths, service.plan_for(kept)) is False, "as it should be"
    wants = kept.file.parent / "default.target.wants"
    wants.mkdir()  # as `systemctl enable` does
    (wants / kept.file.name).symlink_to(kept.file)
    assert service.find_recorded_manager(machine.paths) == kept
    stand_in(commands, "systemctl", "")
    assert service.find_recorded_manager(machine.paths) is None, "it does not answer"
    assert service.remove_unit(machine.paths) is True and service.remove_unit(machine.paths) is False
    assert sorted(machine.root.rglob("*")) == before


def test_a_manager_that_refuses_is_told_with_what_it_said(machine: Machine, commands: Path) -> None:
    stand_in(
        commands, "systemctl", "*Version*) echo Version=252;;\n*enable*) echo 'Access denied' >&2; exit 1;;\n*) ;;"
    )
    kept = Manager(machine.paths, machine.root / "csmd.service", "systemd")
    machine.home.mkdir(mode=0o700)
    with pytest.raises(CsmdError, match="Access denied") as raised:
        service.install_unit(machine.paths, service.plan_for(kept))
    assert "--no-service" in raised.value.hint
    assert service.read_recorded_unit(machine.paths) == str(kept.file), "so that it can be taken back"


# --- launchd


def test_launchd_is_told_what_to_keep_and_to_forget_it(
    machine: Machine, commands: Path, a_home_of_its_own: Path
) -> None:
    assert "launchd keeps no agents" in str(service.find_manager(machine.paths, platform="darwin"))
    stand_in(commands, "launchctl", "*) echo fine;;")
    kept = service.find_manager(machine.paths, platform="darwin")
    assert (
        isinstance(kept, Manager)
        and kept.kind == "launchd"
        and kept.file.parent == a_home_of_its_own / "Library/LaunchAgents"
    )
    machine.home.mkdir(mode=0o700)
    service.install_unit(machine.paths, service.plan_for(kept))
    assert plistlib.loads(kept.file.read_bytes())["Label"] == kept.name
    (commands / "asked").unlink()
    mine = f"gui/{os.getuid()}"
    assert kept.start() == ""
    kept.run_if_loaded("stop")
    kept.run("disable")
    assert asked(commands) == [
        f"launchctl bootstrap {mine} {kept.file}",
        f"launchctl print {mine}/{kept.name}",
        f"launchctl bootout {mine}/{kept.name}",
        f"launchctl disable {mine}/{kept.name}",
    ]
    service.remove_unit(machine.paths)
    assert (
        not (a_home_of_its_own / "Library").exists() and asked(commands)[-1] == f"launchctl enable {mine}/{kept.name}"
    )


# --- Windows' Linux: told from the kernel's words; a home on a Windows drive is refused, with the reason.


WSL1 = "Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com) (gcc version 5.4.0)"
DEBIAN = "Linux version 6.1.0-13-amd64 (debian-kernel@lists.debian.org)"
MOUNTS = """none /mnt/wsl tmpfs rw 0 0
/dev/sdc / ext4 rw 0 0
C:\\134 /mnt/c 9p rw,dirsync,aname=drvfs;path=C:\\ 0 0
D:\\134 /mnt/my\\040disk drvfs rw 0 0
/dev/sdd /mnt/d ext4 rw 0 0
C:\\134 /mnt/late ext4 rw 0 0
C:\\134 /mnt/late 9p rw 0 0
"""


@pytest.mark.parametrize(
    ("home", "version", "mounts", "refused"),
    [
        ("/home/me/.local/share/csmd", WSL2, MOUNTS, False),
        ("/mnt/c/Users/me/csmd", WSL2, MOUNTS, True),
        ("/mnt/c/Users/me/csmd", WSL1, MOUNTS, True),
        ("/mnt/c/Users/me/csmd", DEBIAN, MOUNTS, False),
        ("/mnt/my disk/csmd", WSL2, MOUNTS, True),
        ("/mnt/d/csmd", WSL2, MOUNTS, False),
        ("/mnt/d/csmd", WSL2, "", True),
        ("/mnt/late/csmd", WSL2, MOUNTS, True),
        ("/mnt/data/csmd", WSL2, "", False),
        ("/mnt/cc/csmd", WSL2, MOUNTS, False),
    ],
)
def test_a_home_on_a_drive_of_windows_is_refused(
    home: str, version: str, mounts: str, refused: bool, linux: Callable[..., None]
) -> None:
    linux(version, mounts)
    with pytest.raises(ConfigError, match=f"{home}.*write-ahead log") if refused else nullcontext():
        home_disk.check(Path(home))


@pytest.mark.parametrize(("version", "is_wsl"), [(WSL2, True), (WSL1, True), (DEBIAN, False), ("", False)])
def test_windows_linux_is_known_by_its_kernel(version: str, is_wsl: bool, linux: Callable[..., None]) -> None:
    linux(version)
    assert home_disk.is_wsl() is is_wsl
