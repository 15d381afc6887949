"""Whatever a path does that somebody else chose: status, doctor, brief and recall answer, and say what is wrong.

Projects whose directories are too long, in a circle, forbidden, no directories, on a disk that is gone or never answers.
"""

from __future__ import annotations

import ctypes
import os
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from machine import Machine, eventually, temporary_directory

from csmd import machine as the_machine
from csmd.daemon import task_steps
from csmd.errors import NoThread
from csmd.store.core import run_to_end

LIBC = ctypes.CDLL(None, use_errno=True)
#: prctl(2): takes a capability from what a process may have after exec; root's right to pass by modes.
DROP, DAC_OVERRIDE, DAC_READ_SEARCH = 24, 1, 2


def too_long(folder: Path) -> Path:
    return folder / ("n" * 300) / "project"


def in_a_circle(folder: Path) -> Path:
    (folder / "circle").symlink_to(folder / "circle")
    return folder / "circle" / "project"


def no_directory(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


def forbidden(folder: Path) -> Path:
    (folder / "closed" / "project").mkdir(parents=True)
    (folder / "closed").chmod(0)
    return folder / "closed" / "project"


def without_rights() -> None:
    """Run before the daemon: modes count for it, though the tests may run as root."""
    for capability in (DAC_OVERRIDE, DAC_READ_SEARCH):
        LIBC.prctl(DROP, capability, 0, 0, 0)


class Fuse:
    """A file system whose server never answers; once closed it is one whose server is gone."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.descriptor = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={self.descriptor},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
        if LIBC.mount(b"csmd-test", os.fsencode(place), b"fuse", 0, options.encode()):
            os.close(self.descriptor)
            raise OSError(ctypes.get_errno(), "mount")

    def close(self) -> None:
        """Ends the server: from then on there is no connection."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


@pytest.fixture
def fuse() -> Iterator[Fuse]:
    place = temporary_directory()
    try:
        mounted = Fuse(place)
    except OSError as error:
        pytest.skip(f"this machine lets nobody mount a file system of its own: {error}")
    try:
        yield mounted
    finally:
        mounted.close()
        subprocess.run(["umount", "-l", str(place)], check=False)
        place.rmdir()


def everything_answers(machine: Machine, project: Path) -> dict[str, object]:
    """Asks all that a person asks first; the daemon's state."""
    for words in (
        ["status"], ["doctor", "--json"], ["brief", "--project", str(project), "--json"], ["project", "list"],
        ["recall", "--project", str(project), "--prompt", "what did we decide on the release", "--json"],
        ["memories", "--all-projects", "--json"], ["session", "list"],
    ):  # fmt: skip
        done = machine.run(*words)
        assert done.returncode in (0, 1), (words, done.returncode, done.stderr)
        assert "bug" not in done.stderr, (words, done.stderr)
    state: dict[str, object] = machine.csmd("status", "--json")
    return state


@pytest.mark.invariant("Whatever a path does that somebody else chose, status, doctor and brief answer")
@pytest.mark.parametrize("made", [too_long, in_a_circle, no_directory, forbidden])
def test_whatever_one_path_does_everything_answers(machine: Machine, made: Callable[[Path], Path]) -> None:
    folder = temporary_directory()
    project = made(folder)
    child = machine.start(preexec=without_rights)
    path = project / ".claude" / "projects" / "-p" / "s1.jsonl"
    for name, more in (
        ("SessionStart", {"source": "startup"}),
        ("UserPromptSubmit", {"prompt": "We release on Fridays."}),
    ):
        assert machine.event(name, cwd=str(project), transcript_path=str(path), **more)[0] == "ok"
    machine.sync()
    state = everything_answers(machine, project)
    assert [row["root"] for row in state["projects"] if row["root"] == str(project)], state["projects"]
    machine.stop(child)
    for closed in folder.glob("closed"):
        closed.chmod(stat.S_IRWXU)


def test_a_disk_that_does_not_answer_keeps_nobody_waiting_and_is_named(machine: Machine, fuse: Fuse) -> None:
    child, project = machine.start(), machine.root / "shop"
    project.mkdir()
    assert machine.event("UserPromptSubmit", prompt="We release on Fridays.", cwd=str(project))[0] == "ok"
    machine.sync()
    machine.stop(child)
    # The project's directory becomes one on that disk.
    project.rename(machine.root / "aside")
    project.symlink_to(fuse.place)
    child = machine.start()
    state = machine.status()
    assert state["transcripts"] is None
    assert any(str(project) in text and "does not answer" in text for text in state["degraded"]), state["degraded"]
    assert machine.run("status").returncode == 0
    assert machine.event("UserPromptSubmit", prompt="We also release on Mondays.")[0] == "ok"
    machine.sync()
    fuse.close()
    state = everything_answers(machine, project)
    assert state["transcripts"] is not None
    machine.stop(child)


def test_a_projects_directory_that_is_a_link_is_read_by_sweep_sync_and_import(machine: Machine) -> None:
    def linked(root: Path, name: str) -> None:
        place = machine.root / "stow" / name
        machine.conversation(name, place)
        root.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(place)

    def sessions() -> set[str]:
        return {row["id"] for row in machine.call("csm_session_list", project="")["sessions"]}

    root, old = machine.assistant / "projects", machine.root / "old"
    linked(root, "swept")
    child = machine.start()
    eventually(lambda: sessions() == {"swept"})
    linked(root, "synced")
    machine.sync()
    assert sessions() == {"swept", "synced"}
    linked(old, "imported")
    assert machine.csmd("import", str(old), "--no-vectors", "--json")["turns_new"] == 6
    assert sessions() == {"swept", "synced", "imported"}
    machine.stop(child)


def test_threads_that_hang_are_bounded() -> None:
    end = threading.Event()
    waits = [the_machine.start_in_thread(end.wait) for _ in range(the_machine.MAX_HANGING)]
    before = threading.active_count()
    assert the_machine.run_bounded(lambda: "an answer", 60.0) is None
    assert threading.active_count() == before
    end.set()
    assert all(wait and wait(60.0) for wait in waits)
    assert the_machine.run_bounded(lambda: "an answer", 60.0) == "an answer"


def test_where_no_thread_can_be_started_work_is_refused_and_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_steps, "THREAD_START_TIMEOUT_S", 0.1)
    begun: list[str] = []
    usual = threading.stack_size(1 << 45)  # the system gives none of this size
    try:
        with pytest.raises(NoThread):
            run_to_end(task_steps.run_in_thread(lambda: begun.append("asked")))
        assert [the_machine.run_bounded(lambda: "x", 60.0) for _ in range(2 * the_machine.MAX_HANGING)].count(None)
    finally:
        threading.stack_size(usual)
    assert not begun
    assert run_to_end(task_steps.run_in_thread(lambda: "an answer")) == "an answer"
