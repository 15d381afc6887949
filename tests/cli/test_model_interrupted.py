"""^C at a command that takes long: the screen says what goes on without it, the store is whole, a second run finishes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from machine import LIMIT_S, Machine, eventually
from scripted_models import Answer, ScriptedModels
from terminal import Terminal

GOES_ON = "it continues in the background; `csmd status` shows it"


class Case(NamedTuple):
    words: tuple[str, ...]
    #: What the job is called in the daemon's state.
    job: str
    #: Whether what the second run says shows that nothing was left for it, or that it could do all of it again.
    finished: Callable[[Machine, Any], bool]


def count_turns(machine: Machine) -> int:
    return int(machine.status()["counts"]["turns"])


CASES = {
    "import": Case(("import", "past", "--no-vectors"), "import", lambda machine, _: count_turns(machine) == 12),
    "export": Case(("export", "--to", "out"), "export", lambda machine, _: (machine.project / "out/memories.jsonl").is_file()),
    "backup": Case(("backup",), "backup", lambda _, said: "copied" in said),
    "sync": Case(("sync", "--no-vectors"), "sync", lambda _, said: "nothing new" in said),
    "purge": Case(
        ("forget", "--purge", "--as", "text", "--yes", "database_url"), "purge",
        lambda _, said: "no longer contain it" in said,

    ),
    "dream": Case(("dream", "run", "--force"), "dream", lambda machine, _: machine.status()["dream"]["running"] is None),
}  # fmt: skip


@contextlib.contextmanager
def busy(machine: Machine) -> Iterator[None]:
    """The daemon works on something that does not end, so that the next job waits."""
    with ScriptedModels([Answer(waits=True)]) as server:
        machine.csmd("provider", "add", "openai", "--url", f"{server.url}/v1/", "--model", "small", "--yes")
        machine.call("csm_provider_test", name="openai")
        eventually(lambda: server.asked)
        yield


def jobs(machine: Machine) -> set[str]:
    """The jobs that are ordered and not done."""
    state = machine.status()
    return {job["kind"] for job in state["jobs"]} | ({"dream"} if state["dream"]["running"] else set())


def interrupt(machine: Machine, case: Case) -> None:
    """Runs a command until the daemon has its job, and presses ^C; nothing else ends it."""
    asking = Terminal(*case.words, cwd=machine.project, environment=machine.environment())
    eventually(lambda: case.job in jobs(machine))
    os.kill(asking.child.pid, signal.SIGINT)
    assert asking.ends() == 130
    assert GOES_ON in " ".join(asking.said.split()), asking.said


@pytest.mark.parametrize("name", CASES)
def test_what_is_interrupted_goes_on_in_the_background_and_a_second_run_finds_it_whole(
    machine: Machine, name: str
) -> None:
    case = CASES[name]
    machine.conversation("first")
    machine.conversation("past", folder=machine.project / "past")
    machine.start()
    machine.sync()
    with busy(machine):
        interrupt(machine, case)
        assert case.job in jobs(machine)
    eventually(lambda: not jobs(machine))
    again = Terminal(*case.words, cwd=machine.project, environment=machine.environment())
    assert again.ends() == 0, again.said
    assert case.finished(machine, again.said), again.said
    assert "nothing to repair" in machine.csmd("repair", "--dry-run")


@pytest.mark.long
def test_an_interrupted_restore_leaves_the_old_database_or_the_new_one_and_the_daemon_runs(machine: Machine) -> None:
    machine.conversation("first")
    machine.start()
    machine.sync()
    machine.csmd("backup")
    words = ("restore", "latest", "--yes")
    restoring = Terminal(*words, cwd=machine.project, environment=machine.environment())
    restoring.sees("waiting")
    restoring.press("\x03")
    assert restoring.ends() in (0, 130), restoring.said
    eventually(lambda: machine.instance() and machine.run("status").returncode == 0)
    assert count_turns(machine) == 6
    assert "nothing to repair" in machine.csmd("repair", "--dry-run")
    assert "restored" in machine.csmd(*words)
    assert count_turns(machine) == 6


#: Stands for the program that downloads: it removes what it has when it is interrupted.
DOWNLOAD = """
import pathlib, sys
folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True)
try:
    sys.stdin.read()
except KeyboardInterrupt:
    folder.rmdir()
    sys.exit(130)
"""


def test_an_interrupted_download_leaves_nothing_and_no_traceback(machine: Machine) -> None:
    machine.start()
    program = (
        "import sys\nfrom csmd.cli import main, model\n"
        f"model._fetch_command = lambda folder, name: [sys.executable, '-c', {DOWNLOAD!r}, str(folder)]\n"
        "main.entry()\n"
    )
    fetching = subprocess.Popen(
        [sys.executable, "-c", program, "model", "fetch"], cwd=machine.project, env=machine.environment(), text=True,
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert fetching.stdin is not None and fetching.stderr is not None
    eventually(machine.paths.fetched_model.exists)
    fetching.send_signal(signal.SIGINT)
    assert fetching.wait(LIMIT_S) == 130
    assert "Traceback" not in fetching.stderr.read()
    fetching.stdin.close()
    fetching.stderr.close()
    assert not machine.paths.fetched_model.exists() and jobs(machine) == set()


def test_a_fetched_model_is_used_though_nobody_waits_for_it_any_more(machine: Machine, tiny_model: Path) -> None:
    machine.start()
    copied = f"['cp', '-r', {str(tiny_model)!r}, str(folder)]"
    program = f"from csmd.cli import main, model\nmodel._fetch_command = lambda folder, name: {copied}\nmain.entry()\n"
    machine.paths.models.mkdir(mode=0o700, exist_ok=True)
    with busy(machine):
        fetching = subprocess.Popen(
            [sys.executable, "-c", program, "model", "fetch"], cwd=machine.project, env=machine.environment(), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        eventually(lambda: "model" in jobs(machine))
        fetching.send_signal(signal.SIGINT)
        _, errors = fetching.communicate(timeout=LIMIT_S)
        assert fetching.returncode == 130 and GOES_ON in errors
    eventually(lambda: machine.status()["model"]["name"])
    eventually(lambda: not jobs(machine))
    assert not machine.paths.fetched_model.exists()
