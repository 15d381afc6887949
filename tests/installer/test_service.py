"""The unit files: what systemd and launchd read back is what was meant, whatever a path holds."""

from __future__ import annotations

import plistlib
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from csmd.config import manager_environment, started_by, take_notify_socket, unit_environment, unit_folders
from csmd.errors import ConfigError
from csmd.installer import service
from csmd.installer.service import Unit

DTD = Path(__file__).resolve().parent.parent / "data" / "service" / "plist.dtd"
#: Paths that mean something else to systemd or XML when they are written down as they stand.
AWKWARD = ["/plain/csmd", "/with a blank", "/100%h", "/say \"hi\" 'now'", "/$HOME/${X}", "/back\\slash\\x41", "/a&b<c>", "/ü/日本", "/semi;colon #x", "/a@EXEC@b"]  # fmt: skip


def unit(
    home: str = "/home/me/.local/share/csmd", *, is_default: bool = True, python: str = "/venv/bin/python"
) -> Unit:
    environment = unit_environment("systemd", {"CSMD_HOME": home, "CLAUDE_CONFIG_DIR": "/c d"})
    return Unit(home=Path(home), is_default=is_default, command=(python, "-P", "-m", "csmd.daemon"), environment=environment)  # fmt: skip


def systemd_text(made: Unit, version: int = 252) -> str:
    return service.systemd_unit(made, version=version)


def plist(made: Unit) -> bytes:
    return service.launchd_plist(made, stderr=made.home / "run" / "service.stderr").encode()


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
    names = [made.name("csmd", "-") for made in (default, other, third)]
    assert names[0] == "csmd" and len(set(names)) == 3
    for made in (default, other, third):
        for text in (systemd_text(made), plist(made).decode()):
            assert service.mark_in_unit(text) == made.mark
    assert service.mark_in_unit("[Service]\nExecStart=/bin/true\n") == ""


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
