"""The service managers that can keep the daemon: systemd's for users, and launchd; spoken to by their own commands.

A unit of csmd's carries the mark of its home: what has none is somebody else's and is never written over.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from csmd.cli import units, wsl
from csmd.cli.units import Unit
from csmd.config import default_paths, has_screen, manager_environment, unit_environment, unit_folders
from csmd.errors import CsmdError
from csmd.paths import Paths

#: A question to a manager; one that hangs is none.
ASK_S = 10.0
#: A start or a stop: the unit's own limits are shorter.
ACT_S = 40.0
LINGER = "it ends when you log out; `loginctl enable-linger` has it go on, and start with the machine"


def shipped(folder: str, name: str) -> str:
    """A template: inside the wheel, or beside the package in a source tree."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "_share" / folder / name
    return (inside if inside.is_file() else package.parent / folder / name).read_text(encoding="utf-8")


def unit_of(paths: Paths, kind: str) -> Unit:
    """What a manager is told about this home: this interpreter, and where things are."""
    return Unit(
        home=paths.home,
        is_default=paths.home == default_paths({}).home,
        command=(sys.executable, "-P", "-m", "csmd.daemon"),
        environment=unit_environment(kind),
    )


@dataclass(frozen=True, slots=True)
class Systemd:
    """One unit of the user's systemd; `file` is where it lies."""

    paths: Paths
    file: Path

    kind: Literal["systemd"] = "systemd"

    @property
    def name(self) -> str:
        """The unit's name."""
        return self.file.name

    def text(self) -> str:
        """What the unit should say for the systemd that runs."""
        version = re.search(r"^Version=(\d+)", _ask("systemctl", "--user", "show", "-p", "Version"), re.MULTILINE)
        unit = unit_of(self.paths, self.kind)
        template = shipped("systemd", "csmd.service")
        return units.systemd_unit(template, unit, version=int(version.group(1)) if version else 0)

    def reachable(self) -> bool:
        """Whether the manager answers."""
        return bool(_ask("systemctl", "--user", "show", "-p", "Version"))

    def reload(self) -> None:
        """Has the manager read the unit that was written."""
        _act("systemctl", "--user", "daemon-reload")

    def enable(self) -> None:
        """Starts with each login from now on."""
        _act("systemctl", "--user", "--quiet", "enable", self.name)

    def disable(self) -> None:
        """Does not start with a login any more."""
        _act("systemctl", "--user", "--quiet", "disable", self.name)

    def start(self) -> str:
        """Starts and waits until the daemon is ready; what the manager says when it is not, else ""."""
        _run("systemctl", "--user", "reset-failed", self.name)  # it may have given up on an earlier one
        done = _run("systemctl", "--user", "start", self.name)
        # One that takes long, because it migrates, is no failure yet.
        return "" if done is None or done.returncode == 0 else _words(done)

    def stop(self) -> None:
        """Ends the daemon, also one that waits to be started again."""
        _act("systemctl", "--user", "stop", self.name)

    def forget(self) -> None:
        """Leaves the manager without a trace of the unit, whose file is gone."""
        (self.file.parent / "default.target.wants" / self.name).unlink(missing_ok=True)
        if self.reachable():
            _act("systemctl", "--user", "daemon-reload")
            _run("systemctl", "--user", "reset-failed", self.name)

    def where_to_look(self) -> str:
        """The command that shows what the manager noted."""
        return f"journalctl --user -u {self.name.removesuffix('.service')} -n 20"

    def gave_up(self) -> bool:
        """Whether it died so often that the manager starts it no more by itself."""
        return _ask("systemctl", "--user", "show", "-p", "ActiveState", "--value", self.name).strip() == "failed"

    def note(self) -> str:
        """What a person should know of how long it lives; "" when it lives as long as one would think."""
        if has_screen():
            return ""
        said = _ask("loginctl", "show-user", str(os.getuid()), "-p", "Linger", "--value")
        return LINGER if said.strip() == "no" else ""


@dataclass(frozen=True, slots=True)
class Launchd:
    """One agent of the user's launchd; `file` is where it lies."""

    paths: Paths
    file: Path

    kind: Literal["launchd"] = "launchd"

    @property
    def name(self) -> str:
        """The agent's label."""
        return self.file.name.removesuffix(".plist")

    @property
    def _domain(self) -> str:
        return f"gui/{os.getuid()}"

    def text(self) -> str:
        """What the agent should say."""
        template = shipped("launchd", "io.csmd.daemon.plist")
        stderr = self.paths.run_dir / "service.stderr"
        return units.launchd_plist(template, unit_of(self.paths, self.kind), stderr=stderr)

    def reachable(self) -> bool:
        """Whether the user has a session that launchd keeps agents for."""
        return bool(_ask("launchctl", "print", self._domain))

    def reload(self) -> None:
        """Has launchd forget the agent as it was; `start` gives it the new one."""
        self.stop()

    def enable(self) -> None:
        """Starts with each login from now on."""
        _act("launchctl", "enable", f"{self._domain}/{self.name}")

    def disable(self) -> None:
        """Does not start with a login any more."""
        _act("launchctl", "disable", f"{self._domain}/{self.name}")

    def start(self) -> str:
        """Has launchd start it; what launchd says when it does not, else ""."""
        done = _run("launchctl", "bootstrap", self._domain, str(self.file))
        if done is None or done.returncode:  # it is there already
            done = _run("launchctl", "kickstart", f"{self._domain}/{self.name}")
        return "" if done is not None and done.returncode == 0 else _words(done)

    def stop(self) -> None:
        """Ends the daemon and has launchd forget the agent until the next start or login."""
        if _ask("launchctl", "print", f"{self._domain}/{self.name}"):
            _act("launchctl", "bootout", f"{self._domain}/{self.name}")

    def forget(self) -> None:
        """Leaves launchd without a trace of the agent, whose file is gone."""
        self.enable()  # "disabled" would be remembered

    def where_to_look(self) -> str:
        """The command that shows what launchd noted."""
        return f"launchctl print {self._domain}/{self.name}"

    def gave_up(self) -> bool:
        """Never: launchd tries again for ever, less and less often."""
        return False

    def note(self) -> str:
        """What a person should know of how long it lives."""
        return ""


Manager = Systemd | Launchd
KINDS: dict[str, type[Systemd] | type[Launchd]] = {"systemd": Systemd, "launchd": Launchd}


def found(paths: Paths, *, platform: str = sys.platform, version: str = "") -> Manager | str:
    """The manager that can keep this home's daemon, or why there is none; `version` is /proc/version's text."""
    if platform == "darwin":
        agent = Launchd(paths, unit_folders("launchd")[0] / f"{_name(paths, 'launchd')}.plist")
        return agent if agent.reachable() else "launchd keeps no agents for you here (no session at the screen)"
    if shutil.which("systemctl", path=manager_environment().get("PATH")) is None:
        return _without_systemd("there is no systemd here", version)
    answer = _ask("systemctl", "--user", "show", "-p", "UnitPath")
    if not answer:
        return _without_systemd("no systemd user manager answers here", version)
    looked_at = f" {answer.strip().partition('=')[2]} "
    for folder in unit_folders("systemd"):
        if f" {folder} " in looked_at:
            return Systemd(paths, folder / f"{_name(paths, 'systemd')}.service")
    # Another HOME than that of the session: a unit there would never be read.
    return f"your systemd does not look for units in {unit_folders('systemd')[0]}"


def recorded(paths: Paths, kind: str, file: str) -> Manager | None:
    """The manager that an earlier install put a unit into; None for a kind of a later csmd."""
    made = KINDS.get(kind)
    return made(paths, Path(file)) if made else None


def _name(paths: Paths, kind: str) -> str:
    unit = unit_of(paths, kind)
    return unit.name("csmd", "-") if kind == "systemd" else unit.name("io.csmd.daemon", ".")


def _without_systemd(what: str, version: str) -> str:
    return f"{what}; {wsl.ENABLE_SYSTEMD}" if wsl.is_wsl(version) else what


def _ask(*command: str) -> str:
    """What a command answers; "" when it fails."""
    done = _run(*command, patience_s=ASK_S)
    return done.stdout if done is not None and done.returncode == 0 else ""


def _act(*command: str) -> None:
    done = _run(*command)
    if done is None or done.returncode:
        raise CsmdError(
            f"`{' '.join(command)}` failed: {_words(done)}", hint="`csmd install --no-service` does without"
        )


def _words(done: subprocess.CompletedProcess[str] | None) -> str:
    """The first line of what a failed command said."""
    said = "no answer" if done is None else (done.stderr.strip() or f"exit code {done.returncode}")
    return said.splitlines()[0]


def _run(*command: str, patience_s: float = ACT_S) -> subprocess.CompletedProcess[str] | None:
    """Runs a manager's command; None when it is not there or does not end."""
    try:
        return subprocess.run(
            command, env=manager_environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=patience_s, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
