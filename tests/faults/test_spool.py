"""A spool of hundreds: taken in in order, each event once, while what happens now is served.

CSMD_FAULT_SPOOL=10000 makes it long.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from faults.kill_rounds import World
from machine import Machine, ask, event_frames, eventually

from csmd.daemon import spool_replay
from csmd.store import files

LEFT = int(os.environ.get("CSMD_FAULT_SPOOL", "600"))


@pytest.fixture
def world(machine: Machine) -> World:
    files.make_private(machine.home)
    files.make_private(machine.paths.spool)
    return World(machine, 1)


def test_what_is_taken_in_together_is_bounded_in_number_and_size(tmp_path: Path) -> None:
    """32 payloads of 32 MB at once would be a gigabyte."""
    sizes = [10] * 70 + [spool_replay.MAX_GROUP_BYTES // 2] * 3 + [spool_replay.MAX_GROUP_BYTES * 2] * 2 + [10]
    waiting = [tmp_path / f"{number:03d}.event" for number in range(len(sizes))]
    for path, size in zip(waiting, sizes, strict=True):
        with path.open("wb") as file:
            file.truncate(size)
    waiting[5].unlink()  # another one took it in meanwhile
    found = list(spool_replay.group_files(waiting))
    assert [path for group in found for path in group] == waiting
    assert max(map(len, found)) == spool_replay.MAX_GROUP_FILES
    for group in found:
        assert len(group) == 1 or sum(sizes[waiting.index(path)] for path in group) <= spool_replay.MAX_GROUP_BYTES
    assert len(found) < 12


@pytest.mark.invariant(
    "A long spool is taken in once and in order while hooks are served; fifty sessions at once are stored once"
)
@pytest.mark.timeout(400)
def test_hundreds_of_spooled_events_are_taken_in_once_in_order_while_hooks_are_served(world: World) -> None:
    machine = world.machine
    left = [world.event(f"d{number % 20}") for number in range(LEFT)]
    for ident, payload in left:
        world.reported.setdefault(payload["session_id"], []).append(payload["last_assistant_message"])
        world.spool(ident, payload)
    began = time.monotonic()
    machine.start()
    over = threading.Event()
    knocker = threading.Thread(target=world.knock, args=("h1", over))
    knocker.start()
    try:
        assert eventually(lambda: world.acknowledged and machine.spooled()), (
            "hooks are served before the spool is empty"
        )
        eventually(lambda: len(list(machine.paths.spool.iterdir())) == 0, within_s=300)
    finally:
        over.set()
        knocker.join()
    took = time.monotonic() - began
    print(
        f"{LEFT} events in {took:.1f} s, {LEFT / took:.0f} a second; {len(world.acknowledged)} hooks served meanwhile"
    )
    machine.sync()
    world.check()
    with world.copy() as db:
        order = [ident for (ident,) in db.execute("select id from events where session_id <> 'h1' order by seq")]
    assert order == [ident for ident, _ in left]


@pytest.mark.invariant("What only hooks told is stored in the order in which it happened, whatever waited in the spool")
def test_what_waited_in_the_spool_is_put_where_it_happened(world: World) -> None:
    machine = world.machine
    daemon = machine.start()
    events = [world.event("h1") for _ in range(7)]
    texts = [payload["last_assistant_message"] for _, payload in events]

    def report(*numbers: int) -> None:
        for number in numbers:
            ident, payload = events[number]
            assert ask(machine.socket, event_frames("Stop", payload, ident=ident))[0] == b"ok"

    def spool(*numbers: int) -> None:
        for number in numbers:
            world.spool(*events[number])

    def stored() -> list[str]:
        machine.sync()
        return [turn["text"] for turn in machine.call("csm_session_transcript", id="h1")["conversation"]]

    report(0, 2)
    spool(1)  # its hook waited in vain and left it when the next one's event was stored
    assert stored() == texts[:3]
    daemon.kill()
    daemon.wait()
    spool(3)
    daemon = machine.start()
    report(4, 6)
    spool(5)
    assert stored() == texts
    assert machine.call("csm_store_check") == {"problems": []}


def test_what_a_transcript_tells_stays_where_it_is(world: World) -> None:
    machine = world.machine
    machine.start()
    early, (ident, late) = world.event("s1"), world.event("s1")
    machine.transcript(machine.line("user", "first in the file"), machine.line("assistant", "second in the file"))
    machine.sync()
    assert ask(machine.socket, event_frames("Stop", late, ident=ident))[0] == b"ok"
    world.spool(*early)
    machine.sync()
    told = [turn["text"] for turn in machine.call("csm_session_transcript", id="s1")["conversation"]]
    assert told[:2] == ["first in the file", "second in the file"]
    assert told[2:] == [early[1]["last_assistant_message"], late["last_assistant_message"]]


def most_memory(pid: int) -> int:
    """The most bytes of memory that a process ever had."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


@pytest.mark.invariant(
    "Something big, from a hook or in the spool, takes no memory of its size and has no small event spooled"
)
@pytest.mark.parametrize(
    "big",
    [
        "a prompt of 30 MB",
        "a file of 8 GB in the spool",
        pytest.param("200 hooks at once", marks=pytest.mark.long),  # fifty sessions at once are in every run
    ],
)
def test_something_big_neither_starves_what_is_small_nor_fills_the_memory(machine: Machine, big: str) -> None:
    from bench.bench_big import CASES

    daemon = machine.start()
    machine.event("Stop", "warm", last_assistant_message="warm")
    before = most_memory(daemon.pid)
    is_in = CASES[big](machine)
    acknowledged = 0
    while not is_in() or acknowledged < 20:
        assert machine.event("Stop", "small", last_assistant_message=f"small answer {acknowledged}")[0] == "ok"
        acknowledged += 1
    machine.sync()
    assert most_memory(daemon.pid) - before < 300_000_000
    if big.startswith("a prompt"):
        (turn,) = machine.call("csm_session_transcript", id="big")["conversation"]
        assert len(turn["text"]) < 501_000 and "characters left out]" in turn["text"]
        assert turn["text"].endswith("with a jitter of some seconds"), "the end of it is kept, too"
    elif big.startswith("a file"):
        (note,) = machine.paths.quarantine.iterdir()
        assert "the limit is" in note.read_text()
    else:
        for number in range(200):
            (turn,) = machine.call("csm_session_transcript", id=f"many{number}")["conversation"]
            assert turn["text"] == f"one of many {number}"
    told = machine.call("csm_session_transcript", id="small")["conversation"]
    assert [one["text"] for one in told] == [f"small answer {number}" for number in range(acknowledged)]
