"""One user manager for all tests of this folder; each test finds the machine as if csmd had never been there."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from machine import LIMIT_S, eventually, temporary_directory
from systemd_machine import CGROUPS, HERE, SYSTEMD, UNSHARE, ServedMachine, first_process, forbidden


# Of the module, and not of the session: it ends with the folder's last test, whatever else the worker runs.
@pytest.fixture(scope="module")
def user_manager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedMachine]:
    """A machine with a running user manager, for all tests of the folder."""
    why = forbidden()
    if why:
        pytest.skip(why)
    machine = ServedMachine(root=temporary_directory())
    name = f"csmd-test-{os.getpid()}"
    namespaces = subprocess.Popen(
        [*UNSHARE, "bash", str(HERE / "user_manager.sh")],
        env={**machine.environment(), "CGROUP": name, "SYSTEMD": SYSTEMD},
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        machine.inside = eventually(lambda: first_process(namespaces))
        eventually(lambda: "Version=" in machine.sh("systemctl", "--user", "show", "-p", "Version", check=False))
        yield machine
    finally:
        namespaces.kill()  # with --kill-child everything inside goes, too
        namespaces.wait(LIMIT_S)
        shutil.rmtree(machine.root)
        place = tmp_path_factory.mktemp("cgroups")
        clear = ["unshare", "--mount", "sh", "-c", CGROUPS.format(place=place, name=name)]
        eventually(lambda: subprocess.run(clear, capture_output=True, check=False, timeout=LIMIT_S).returncode == 0)


@pytest.fixture
def served(user_manager: ServedMachine) -> Iterator[ServedMachine]:
    """The machine with nothing of csmd's on it; what a test leaves is taken away."""
    yield user_manager
    if user_manager.paths.install_record.exists():
        user_manager.run("uninstall")
    user_manager.chosen.clear()
    for entry in user_manager.root.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    user_manager.sh("systemctl", "--user", "daemon-reload")
