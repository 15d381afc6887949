"""Somebody else on the same machine can neither connect, read nor write, whatever they lay in the way beforehand.

Each attack runs in a process of another uid; so the test itself must be root. That an attack is one is seen by opening
the guard for a moment: then it succeeds.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import forked_process
import pytest
from machine import Machine, eventually, temporary_directory

from csmd.config import default_paths
from csmd.daemon.run import choose_socket_path
from csmd.errors import CsmdError
from csmd.store import files

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")

#: Two users that no machine has.
VICTIM, ATTACKER = 61_234, 61_235
DENIED = "PermissionError"
SCRIPTS = Path(__file__).resolve().parent.parent.parent / "hooks"
BODY = b'{"session_id":"s1","last_assistant_message":"My words are nobody\'s business."}'


def as_user(uid: int, work: Callable[[], Any]) -> Any:
    """What `work` gives, or the name of its error, in a process of that user's with no right besides."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(out)
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            os.umask(0o022)
            try:
                value = work()
            except (OSError, CsmdError) as error:
                value = type(error).__name__
            os.write(into, json.dumps(value).encode())
        finally:
            os._exit(0)
    os.close(into)
    with os.fdopen(out, "rb") as said:
        answer = said.read()
    os.waitpid(child, 0)
    assert answer, "the other user's process failed"
    return json.loads(answer)


@contextmanager
def umask(value: int) -> Iterator[None]:
    old = os.umask(value)
    try:
        yield
    finally:
        os.umask(old)


def knock(path: Path) -> str:
    """Connects to a socket and says something."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(path))
        peer.sendall(b"\xff")
    return "connected"


def take(path: Path) -> str:
    """Reads a file or lists a directory."""
    if stat.S_ISDIR(path.stat().st_mode):
        return f"{len(os.listdir(path))} names"
    with path.open("rb") as file:
        return f"{len(file.read())} bytes"


def leave(place: Path) -> str:
    """Puts a forged event into a spool."""
    (place / f"{'0' * 32}.event").write_bytes(b"csmd-spool 1 forged claude Stop 1\n" + BODY)
    return "written"


@pytest.fixture
def open_machine(machine: Machine) -> Machine:
    """A machine on which everybody may look, and a home that was made in advance, open to all."""
    machine.root.chmod(0o755)
    with umask(0):
        machine.home.mkdir(mode=0o777)
    return machine


@pytest.mark.invariant("Another uid can neither connect nor read nor write")
def test_another_uid_can_neither_connect_nor_read_nor_write(open_machine: Machine, tiny_model: Path) -> None:
    machine = open_machine
    with umask(0):
        child = machine.start()
    machine.work("csm_model_add", path=str(tiny_model))
    path = machine.conversation()
    with umask(0):
        machine.hook("UserPromptSubmit", prompt="I prefer tabs over spaces in Makefiles.")
        machine.transcript("{not a line\n", session=path.stem)
        machine.sync()
        child.kill()
        child.wait()
        machine.hook("Stop", last_assistant_message="My words are nobody's business.")
        for place in (machine.paths.spool, *machine.spooled()):
            assert as_user(ATTACKER, lambda place=place: take(place)) == DENIED
        assert machine.spooled()
    with umask(0):
        child = machine.start()
    assert as_user(ATTACKER, lambda: knock(machine.socket)) == DENIED
    places = [machine.home, *machine.home.rglob("*")]
    assert {"csmd.db", "csmd.log", "endpoint", "csmd.sock", "spool", "quarantine", "hook"} <= {p.name for p in places}
    for place in places:
        if not place.is_socket():
            assert as_user(ATTACKER, lambda place=place: take(place)) == DENIED, place
    for place in (machine.home, machine.paths.spool, machine.paths.run_dir):
        assert as_user(ATTACKER, lambda place=place: leave(place)) == DENIED, place
    machine.sync()
    assert machine.status()["counts"]["events"] == 2, "those that were reported"

    socket_place = machine.socket  # the same attacks with the guard open
    machine.home.chmod(0o755)
    assert as_user(ATTACKER, lambda: knock(socket_place)) == DENIED, "the inner directory is one too"
    machine.paths.run_dir.chmod(0o755)
    assert as_user(ATTACKER, lambda: knock(socket_place)) == DENIED, "and the socket's own mode"
    socket_place.chmod(0o666)
    assert as_user(ATTACKER, lambda: knock(socket_place)) == "connected"
    assert as_user(ATTACKER, lambda: take(machine.home)).endswith("names")
    assert as_user(ATTACKER, lambda: take(machine.paths.database)) == DENIED
    assert machine.status()["daemon"]["pid"] == child.pid, "and whoever gets that far does no harm to the others"


def test_the_platforms_own_places_are_as_private(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without CSMD_HOME, in a HOME that everybody may enter, with a umask that takes nothing away."""
    machine.root.chmod(0o755)
    environment = {key: value for key, value in machine.environment().items() if key != "CSMD_HOME"}
    monkeypatch.setenv("HOME", str(machine.root))
    paths = default_paths(environment)
    with umask(0):
        child = forked_process.spawn("csmd.daemon", cwd=machine.root, env=environment)
    machine.daemons.append(child)
    eventually(lambda: child.poll() is not None or paths.endpoint.exists())
    assert child.poll() is None, child.stderr and child.stderr.read()
    assert machine.root in paths.home.parents and paths.home not in paths.log_dir.parents
    for top in (paths.home, paths.log_dir):
        for place in (top, *top.rglob("*")):
            assert as_user(ATTACKER, lambda place=place: take(place)) in (DENIED, "FileNotFoundError"), place
        assert as_user(ATTACKER, lambda top=top: leave(top)) == DENIED
    assert machine.stop(child) == 0


def test_an_event_that_somebody_else_put_into_the_spool_is_not_taken_in(machine: Machine) -> None:
    machine.start()
    machine.paths.spool.chmod(0o700)
    forged = machine.paths.spool / f"{'0' * 32}.event"
    half = forged.with_name("half")
    half.write_bytes(b"csmd-spool 1 forged claude Stop 1\n" + BODY)
    os.chown(half, ATTACKER, ATTACKER)
    half.rename(forged)
    machine.sync()
    status = machine.status()
    assert (status["counts"]["events"], status["counters"]["bad events"]) == (0, 1)


# --- the places in /tmp


@pytest.fixture
def victim() -> Iterator[Path]:
    """The home of a user, its hook in it, whose spool takes no file."""
    top = temporary_directory()
    top.chmod(0o755)
    home = top / "csmd"
    (home / "hook").mkdir(parents=True)
    for script in ("csmd_hook.py", "csmd_spool.py"):
        shutil.copy(SCRIPTS / script, home / "hook")
    for name in ("spool", "spool-2"):
        (home / name).write_text("in the way")
    for place in (home, *home.rglob("*")):
        os.chown(place, VICTIM, VICTIM)
    home.chmod(0o700)
    yield home
    shutil.rmtree(top)
    _clear(second(home).parent)


def _clear(place: Path) -> None:
    if place.is_symlink() or place.is_file():
        place.unlink()
    elif place.exists():
        shutil.rmtree(place)


def second(home: Path) -> Path:
    """The second spool of the victim's home."""
    name = os.path.realpath(home).replace("%", "%25").replace("/", "%2F")
    return Path(f"/tmp/csmd-{VICTIM}/spool-{name}")


def run_hook(home: Path) -> None:
    """Runs the hook as the victim, on the interpreter that is loaded already: the other users may not reach ours."""
    script = home / "hook" / "csmd_hook.py"
    out, into = os.pipe()
    os.write(into, BODY)
    os.close(into)
    child = os.fork()
    if child == 0:
        try:
            os.dup2(out, 0)
            os.setgroups([])
            os.setresgid(VICTIM, VICTIM, VICTIM)
            os.setresuid(VICTIM, VICTIM, VICTIM)
            os.umask(0)
            sys.argv = [str(script), str(home), "Stop"]
            exec(compile(script.read_bytes(), str(script), "exec"), {"__name__": "__main__"})
        finally:
            os._exit(9)
    os.close(out)
    assert os.waitpid(child, 0)[1] == 0, "a hook exits with 0, whatever lies in its way"


def spooled_by(home: Path) -> list[str]:
    """What the victim's daemon would find in its spools."""
    found: list[str] = as_user(VICTIM, lambda: [str(path) for path in files.spooled_paths(home)])
    return found


def test_the_second_spool_is_nobody_elses_to_read_or_write(victim: Path) -> None:
    place = second(victim)
    assert not place.parent.exists()
    run_hook(victim)
    (event,) = spooled_by(victim)
    assert Path(event).parent == place and Path(event).read_bytes().endswith(BODY)
    for there in (place.parent, place, Path(event)):
        assert as_user(ATTACKER, lambda there=there: take(there)) == DENIED
        assert there.stat().st_uid == VICTIM and not there.stat().st_mode & 0o077
    assert as_user(ATTACKER, lambda: leave(place)) == DENIED
    assert as_user(ATTACKER, lambda: place.parent.rename("/tmp/csmd-moved")) == DENIED


def plant_link(top: Path, trap: Path) -> None:
    top.symlink_to(trap)


def plant_directory(top: Path, trap: Path) -> None:
    top.mkdir(mode=0o777)
    top.chmod(0o777)


def plant_file(top: Path, trap: Path) -> None:
    top.write_text("in the way")


@pytest.mark.invariant("Another uid can neither connect nor read nor write")
@pytest.mark.parametrize("plant", [plant_link, plant_directory, plant_file])
def test_what_somebody_else_planted_in_tmp_gets_no_word_and_gives_none(
    victim: Path, plant: Callable[[Path, Path], None]
) -> None:
    place = second(victim)
    trap = victim.parent / "trap"
    trap.mkdir()
    os.chown(trap, ATTACKER, ATTACKER)
    trap.chmod(0o777)

    def prepare() -> str:
        plant(place.parent, trap)
        if not place.parent.is_file():
            place.mkdir()
            place.chmod(0o777)
            leave(place)
        return "planted"

    assert as_user(ATTACKER, prepare) == "planted"
    run_hook(victim)
    words = [path for path in (*trap.rglob("*.event"), *place.parent.rglob("*.event")) if "0" * 32 not in path.name]
    assert words == [], "better lost than read by another"
    assert spooled_by(victim) == [], "and what was forged there is not taken in"
    far = victim / ("d" * 60) / ("e" * 60)
    assert as_user(VICTIM, lambda: str(choose_socket_path(far))) == "ConfigError", "nor is a socket put there"


def test_a_short_socket_in_tmp_is_the_owners_alone(victim: Path) -> None:
    far = victim / ("d" * 60) / ("e" * 60)
    path = Path(as_user(VICTIM, lambda: str(choose_socket_path(far))))
    assert path.parent == Path(f"/tmp/csmd-{VICTIM}")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        path.chmod(0o666)
        assert as_user(ATTACKER, lambda: knock(path)) == DENIED
        path.parent.chmod(0o755)
        assert as_user(ATTACKER, lambda: knock(path)) == "connected"


def test_a_home_that_somebody_else_made_is_refused(victim: Path) -> None:
    other = victim.parent / "planted"
    trap = victim.parent / "trap"
    trap.mkdir()
    os.chown(trap, ATTACKER, ATTACKER)
    other.symlink_to(trap)
    for place in (other, trap):
        assert as_user(VICTIM, lambda place=place: str(files.make_private(place))) == "ConfigError"
