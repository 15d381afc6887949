"""A user's machine whose service manager is a real `systemd --user`, in namespaces of its own.

Not a test: tests/service/conftest.py makes one. Needs root and `unshare`; where a machine forbids it these tests skip, and say so. What the tests run in there enters
by `nsenter`. Everything ends with the namespace, and its cgroups are removed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from machine import LIMIT_S, Machine

HERE = Path(__file__).resolve().parent / "service"
SYSTEMD = next((place for place in ("/lib/systemd/systemd", "/usr/lib/systemd/systemd") if Path(place).exists()), "")
UNSHARE = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]
CGROUPS = "mount -t cgroup2 cgroup2 {place} && find {place}/{name} -depth -type d -exec rmdir {{}} ';'"


def forbidden() -> str:
    """Why no user manager can be had here; "" when one can."""
    if sys.platform != "linux" or not SYSTEMD or not shutil.which("systemctl") or not shutil.which("nsenter"):
        return "no systemd here"
    if os.getuid() != 0:
        return "only root can make the namespaces"
    mount = [*UNSHARE, "mount", "-t", "cgroup2", "cgroup2", "/mnt"]
    tried = subprocess.run(mount, capture_output=True, check=False, timeout=LIMIT_S)
    return "" if tried.returncode == 0 else "this machine lets nobody mount in a namespace of its own"


@dataclass(kw_only=True)
class ServedMachine(Machine):
    """A machine with a user manager; the home is the default one unless a test chooses another."""

    inside: int = 0
    """The first process of the namespaces."""
    chosen: dict[str, str] = field(default_factory=dict)

    @property
    def runtime(self) -> Path:
        return Path("/run/user/0")

    @property
    def home(self) -> Path:
        return Path(self.chosen["CSMD_HOME"]) if "CSMD_HOME" in self.chosen else self.root / ".local/share/csmd"

    @property
    def units(self) -> Path:
        return self.root / ".config" / "systemd" / "user"

    def environment(self, **more: str) -> dict[str, str]:
        environment = super().environment(XDG_RUNTIME_DIR=str(self.runtime), **{**self.chosen, **more})
        if "CSMD_HOME" not in self.chosen:
            del environment["CSMD_HOME"]
        return environment

    def sh(self, *words: str, check: bool = True) -> str:
        """What a command inside says."""
        done = subprocess.run(
            ["nsenter", "--target", str(self.inside), "--mount", "--pid", "--", *words], cwd=self.project,
            env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S,
            check=False,
        )  # fmt: skip
        assert not check or done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def run(self, *arguments: str, stdin: Any = subprocess.DEVNULL, **more: str) -> subprocess.CompletedProcess[str]:
        """`csmd` with these arguments, inside."""
        return subprocess.run(
            ["nsenter", "--target", str(self.inside), "--mount", "--pid", "--", sys.executable, "-m", "csmd", *arguments],
            cwd=self.project, env=self.environment(**more), text=True, capture_output=True, stdin=stdin,
            timeout=LIMIT_S * 2, check=False,
        )  # fmt: skip

    def shown(self, *properties: str, unit: str = "csmd.service") -> dict[str, str]:
        """What the manager says of a unit."""
        shown = self.sh("systemctl", "--user", "show", unit, *(f"--property={name}" for name in properties))
        return dict(line.partition("=")[::2] for line in shown.splitlines())

    def processes(self) -> list[str]:
        """The command lines inside that are csmd's."""
        return [line for line in self.sh("ps", "-eo", "args").splitlines() if "csmd.daemon" in line]


def first_process(namespaces: subprocess.Popen[bytes]) -> int:
    """The process that is the first one in its namespace; 0 while there is none."""
    assert namespaces.poll() is None, "the namespaces have ended"
    children = Path(f"/proc/{namespaces.pid}/task/{namespaces.pid}/children").read_text().split()
    return int(children[0]) if children else 0
