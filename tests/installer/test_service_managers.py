"""Which service manager is there, and what is said and done where none is; its commands are stand-ins on PATH."""

from __future__ import annotations

import os
import plistlib
from pathlib import Path

import pytest
from machine import Machine

from csmd.errors import ConfigError, CsmdError
from csmd.installer import service
from csmd.installer.service import LINGER, Manager

WSL2 = "Linux version 5.15.153.1-microsoft-standard-WSL2"


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


def test_where_no_manager_is_the_reason_is_given(machine: Machine, commands: Path) -> None:
    assert service.find_manager(machine.paths, platform="linux") == "there is no systemd here"
    stand_in(commands, "systemctl", "")
    assert service.find_manager(machine.paths, platform="linux") == "no systemd user manager answers here"
    told = service.find_manager(machine.paths, platform="linux", version=WSL2)
    assert isinstance(told, str) and service.ENABLE_SYSTEMD in told
    stand_in(commands, "systemctl", "*UnitPath*) echo UnitPath=/somewhere/else /etc/systemd/user;;")
    told = service.find_manager(machine.paths, platform="linux")
    assert isinstance(told, str) and "does not look for units in" in told


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
    assert kept.lifetime_note() == LINGER and "enable-linger" in LINGER
    monkeypatch.setenv("DISPLAY", ":0")
    assert kept.lifetime_note() == ""
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.1 1 10.0.0.2 22")
    assert kept.lifetime_note() == LINGER
    stand_in(commands, "loginctl", "*Linger*) echo yes;;")
    assert kept.lifetime_note() == ""
    assert not any("enable" in line for line in asked(commands)), "said, never done"


# --- placing


@pytest.mark.invariant("Leaving takes unit, directories and processes back; a foreign unit is never written over")
def test_a_unit_that_somebody_else_wrote_is_not_written_over(machine: Machine, commands: Path) -> None:
    stand_in(commands, "systemctl", "*Version*) echo Version=252;;")
    kept = Manager(machine.paths, machine.root / "csmd.service", "systemd")
    for theirs in ("[Service]\nExecStart=/bin/true\n", kept.text().replace("csmd: home ", "csmd: home 0123456789ab ")):
        kept.file.write_text(theirs)
        with pytest.raises(ConfigError, match="is there already"):
            service.plan_for(kept)
    kept.file.unlink()
    kept.file.symlink_to("/dev/null")  # a masked unit
    with pytest.raises(ConfigError, match="is there already"):
        service.plan_for(kept)


def test_what_was_placed_is_taken_back_even_where_the_manager_is_gone(machine: Machine, commands: Path) -> None:
    stand_in(commands, "systemctl", "*) echo Version=252;;")
    kept = Manager(machine.paths, machine.root / "made" / "for it" / "csmd.service", "systemd")
    machine.home.mkdir(mode=0o700)
    before = sorted(machine.root.rglob("*"))
    planned = service.plan_for(kept)
    assert service.place(machine.paths, planned) is True
    assert kept.file.stat().st_mode & 0o777 == 0o600
    assert service.place(machine.paths, service.plan_for(kept)) is False, "as it should be"
    wants = kept.file.parent / "default.target.wants"
    wants.mkdir()  # as `systemctl enable` does
    (wants / kept.file.name).symlink_to(kept.file)
    assert service.recorded_manager(machine.paths) == kept
    stand_in(commands, "systemctl", "")
    assert service.recorded_manager(machine.paths) is None, "it does not answer"
    assert service.remove(machine.paths) is True and service.remove(machine.paths) is False
    assert sorted(machine.root.rglob("*")) == before


def test_a_manager_that_refuses_is_told_with_what_it_said(machine: Machine, commands: Path) -> None:
    stand_in(
        commands, "systemctl", "*Version*) echo Version=252;;\n*enable*) echo 'Access denied' >&2; exit 1;;\n*) ;;"
    )
    kept = Manager(machine.paths, machine.root / "csmd.service", "systemd")
    machine.home.mkdir(mode=0o700)
    with pytest.raises(CsmdError, match="Access denied") as raised:
        service.place(machine.paths, service.plan_for(kept))
    assert "--no-service" in raised.value.hint
    assert service.recorded_unit(machine.paths) == str(kept.file), "so that it can be taken back"


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
    service.place(machine.paths, service.plan_for(kept))
    assert plistlib.loads(kept.file.read_bytes())["Label"] == kept.name
    (commands / "asked").unlink()
    mine = f"gui/{os.getuid()}"
    assert kept.start() == ""
    kept.stop()
    kept.disable()
    assert asked(commands) == [
        f"launchctl bootstrap {mine} {kept.file}",
        f"launchctl print {mine}/{kept.name}",
        f"launchctl bootout {mine}/{kept.name}",
        f"launchctl disable {mine}/{kept.name}",
    ]
    service.remove(machine.paths)
    assert (
        not (a_home_of_its_own / "Library").exists() and asked(commands)[-1] == f"launchctl enable {mine}/{kept.name}"
    )
