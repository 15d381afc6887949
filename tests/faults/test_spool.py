"""A spool of thousands: taken in in order, each event once, while what happens now is served.

CSMD_FAULT_SPOOL=10000 makes it long.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from faults.kill_rounds import World
from machine import Machine, eventually

from csmd.daemon import reading
from csmd.store import files

LEFT = int(os.environ.get("CSMD_FAULT_SPOOL", "2000"))


@pytest.fixture
def world(machine: Machine) -> World:
    files.make_private(machine.home)
    files.make_private(machine.paths.spool)
    return World(machine, 1)


def test_what_is_taken_in_together_is_bounded_in_number_and_size(tmp_path: Path) -> None:
    """32 payloads of 32 MB at once would be a gigabyte."""
    sizes = [10] * 70 + [reading.TOGETHER_BYTES // 2] * 3 + [reading.TOGETHER_BYTES * 2] * 2 + [10]
    waiting = [tmp_path / f"{number:03d}.event" for number in range(len(sizes))]
    for path, size in zip(waiting, sizes, strict=True):
        with path.open("wb") as file:
            file.truncate(size)
    waiting[5].unlink()  # another one took it in meanwhile
    found = list(reading.groups(waiting))
    assert [path for group in found for path in group] == waiting
    assert max(map(len, found)) == reading.TOGETHER
    for group in found:
        assert len(group) == 1 or sum(sizes[waiting.index(path)] for path in group) <= reading.TOGETHER_BYTES
    assert len(found) < 12


@pytest.mark.invariant(
    "A long spool is taken in once and in order while hooks are served; fifty sessions at once are stored once"
)
@pytest.mark.timeout(400)
def test_thousands_of_spooled_events_are_taken_in_once_in_order_while_hooks_are_served(world: World) -> None:
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
