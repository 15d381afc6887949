"""File events that are lost, or cannot be had at all: the sweeps find every transcript all the same.

The daemon is the real one with its sweeps moved together: what takes 15 minutes takes a moment here. That it is the
sweep that finds them, and no hint, is seen by a daemon without sweeps: it finds nothing.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import forked_process
import pytest
from faults.kill_rounds import World
from faults.test_hung import stopped
from machine import Daemon, Machine, eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")

DAEMON = """
import sys
from csmd.daemon import jobs, reading
jobs.LIVE_SWEEP_S = jobs.FULL_SWEEP_S = jobs.WATCHED_SWEEP_S = 0.5
jobs.TICK_S = 0.1
if sys.argv[1] == "no":
    reading.sweep_transcripts = lambda context, *, full: 0
from csmd.daemon.__main__ import main
sys.argv[1:] = []
sys.exit(main())
"""
QUEUE = Path("/proc/sys/fs/inotify/max_queued_events")


def daemon(machine: Machine, *, sweeps: bool, before: tuple[str, ...] = ()) -> Daemon:
    """A daemon that sweeps twice a second or never, listening; `before` stands before its command."""
    program, place, environment = (DAEMON, "yes" if sweeps else "no"), machine.root, machine.environment()
    child: Daemon
    if before:
        child = subprocess.Popen(
            [*before, sys.executable, "-c", *program], cwd=place, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
    else:
        child = forked_process.spawn("-c", *program, cwd=place, env=environment)
    machine.daemons.append(child)
    eventually(lambda: child.poll() is not None or machine.paths.endpoint.exists())
    assert child.poll() is None, (child.stderr.read() if child.stderr else b"", machine.log())
    return child


def turns(machine: Machine) -> int:
    return int(machine.status()["counts"]["turns"])


def say(world: World, session: str, *, folder: str) -> None:
    """Two turns of a session that no hook tells of."""
    place = world.machine.assistant / "projects" / folder
    for kind in ("user", "assistant"):
        line = world.machine.line(kind, f"Step {world.number()} of {session}.", session=session)
        said = f"Step {world.number() - 1} of {session}."
        path = place / f"{session}.jsonl"
        world.files.setdefault(path, []).append((session, line["uuid"], said))
        world.machine.transcript(line, session=session, folder=place)


def flood(place: Path) -> int:
    """More file events than the kernel keeps for one watcher; how many."""
    events = int(QUEUE.read_text()) + 100
    with (place / "a.jsonl").open("ab", buffering=0) as a, (place / "b.jsonl").open("ab", buffering=0) as b:
        for number in range(events):  # in turns: events that follow their like are one
            (a, b)[number % 2].write(b"\n")
    return events


@pytest.fixture
def world(machine: Machine) -> Iterator[World]:
    (machine.assistant / "projects" / "-first").mkdir(parents=True)
    yield World(machine, 1)


@pytest.mark.invariant(
    "File events are hints; the sweep finds everything. Order is the transcript's, whatever the clocks say"
)
@pytest.mark.parametrize("sweeps", [True, False])
def test_what_happens_after_the_queue_of_file_events_has_overflowed_is_found_by_the_sweep(
    world: World, sweeps: bool
) -> None:
    machine = world.machine
    child = daemon(machine, sweeps=sweeps)
    eventually(lambda: machine.status()["watching"])
    say(world, "before", folder="-first")
    eventually(lambda: turns(machine) == 2)
    with stopped(child):
        flood(machine.assistant / "projects" / "-first")
        for number in range(20):
            say(world, f"lost{number}", folder="-first" if number % 2 else f"-new{number}")
    if sweeps:
        eventually(lambda: turns(machine) == world.turns())
    else:
        # What comes while the queue is still full is lost as well.
        eventually(lambda: say(world, "after", folder="-first") or "after" in sessions(world))
        assert sessions(world) == {"before", "after"}, "nobody hinted at the others"
    machine.sync()
    world.check()


def sessions(world: World) -> set[str]:
    with world.copy() as db:
        return {ident for (ident,) in db.execute("select id from sessions")}


def can_limit_watches() -> bool:
    command = ["unshare", "--user", "--map-root-user", "test", "-w", "/proc/sys/user/max_inotify_watches"]
    return shutil.which("unshare") is not None and subprocess.run(command, check=False).returncode == 0


@pytest.mark.invariant(
    "File events are hints; the sweep finds everything. Order is the transcript's, whatever the clocks say"
)
@pytest.mark.skipif(not can_limit_watches(), reason="needs a user namespace of one's own")
@pytest.mark.parametrize(("watches", "told"), [(0, True), (2, False)])
def test_without_room_for_watches_the_sweep_finds_everything_and_status_tells(
    world: World, watches: int, told: bool
) -> None:
    """With none the root cannot be watched, with two no directory that appears later."""
    machine = world.machine
    limit = f'echo {watches} > /proc/sys/user/max_inotify_watches && exec "$@"'
    daemon(machine, sweeps=True, before=("unshare", "--user", "--map-root-user", "sh", "-c", limit, "sh"))
    for number in range(6):
        say(world, f"s{number}", folder="-first" if number % 2 else f"-new{number}")
    eventually(lambda: turns(machine) == world.turns())
    assert any("cannot watch" in trouble for trouble in machine.status()["degraded"]) == told
    say(world, "s0", folder="-new0")
    say(world, "s1", folder="-first")
    eventually(lambda: turns(machine) == world.turns())
    world.check()
    assert "Traceback" not in machine.log()
    assert machine.stop(machine.daemons[-1]) == 0
