"""A spool of thousands: taken in in order, each event once, while what happens now is served.

CSMD_FAULT_SPOOL=10000 makes it long.
"""

from __future__ import annotations

import os
import threading
import time

import pytest
from faults.kill_rounds import World
from machine import Machine, eventually

from csmd.store import files

LEFT = int(os.environ.get("CSMD_FAULT_SPOOL", "2000"))


@pytest.fixture
def world(machine: Machine) -> World:
    files.make_private(machine.home)
    files.make_private(machine.paths.spool)
    return World(machine, 1)


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
