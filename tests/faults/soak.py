"""Hours of work in one: sessions talk while trees are imported, dreams run, sessions are purged, the daemon ends and the disk fails.

    python tests/faults/soak.py [--minutes 60] [--seed N] [--json FILE]

Eight sessions grow, each by its transcript and its hooks, and two more that only hooks tell of. Every few seconds one of
EVENTS happens. In the end what is stored must be what was said, as after a kill (kill_rounds.py); memory, handles,
threads, write-ahead log and spool must not have grown from the second quarter to the last.

The disk that fails is a limit on the size of the daemon's files, set from outside while it runs: a write beyond it is
refused by the system, in the middle of a commit as well.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from faults.kill_rounds import PEER_PATIENCE_MS, World
from machine import Machine, event_frames, eventually, own_machine, peer

SESSIONS, HOOK_ONLY = 8, 2
#: Seconds between two turns of a session, two events and two looks.
TALK_S, EVENT_S, LOOK_S = 1.0, 6.0, 2.0
#: A task beside everything else on a busy machine.
LONGEST_S = 900.0
#: What a figure may be of its median in the second quarter, and more than that in its own unit.
GROWTH = {"rss_mb": (1.25, 16), "handles": (1.25, 16), "threads": (1.25, 6), "wal_mb": (2.0, 32), "spool": (2.0, 200)}


class Soak(World):
    """A world that goes on for long; `purged` are the sessions that are no more, with how many turns they had."""

    def __init__(self, machine: Machine, seed: int) -> None:
        super().__init__(machine, seed)
        self.chance = random.Random(seed)
        self.purged: Counter[str] = Counter()
        self.happened: Counter[str] = Counter()
        self.looks: list[dict[str, float]] = []

    def tell(self, session: str) -> None:
        """Reports an answer of a session that only hooks tell of; without an acknowledgement it goes to the spool."""
        ident, payload = self.event(session)
        self.reported.setdefault(session, []).append(payload["last_assistant_message"])
        answered = False
        with suppress(OSError), peer(self.machine.socket) as dealer:
            dealer.send_multipart(event_frames("Stop", payload, ident=ident))
            answered = bool(dealer.poll(PEER_PATIENCE_MS)) and dealer.recv_multipart()[0] == b"ok"
        self.acknowledged.add(ident) if answered else self.spool(ident, payload)

    def look(self) -> None:
        """Notes the figures of the daemon of the moment, if there is one."""
        try:
            process, wal = psutil.Process(self.machine.instance()), self.machine.paths.database.with_name("csmd.db-wal")
            with process.oneshot():
                figures = {
                    "rss_mb": process.memory_info().rss / 1e6, "handles": process.num_fds(), "threads": process.num_threads(),
                    "wal_mb": wal.stat().st_size / 1e6, "spool": len(self.machine.spooled()),
                }  # fmt: skip
        except (psutil.Error, OSError, ValueError):
            return  # between two daemons
        self.looks.append({"at": time.monotonic(), **figures})

    def grown(self) -> dict[str, tuple[float, float]]:
        """The figures that have grown: (median of the second quarter, of the last)."""
        quarter = len(self.looks) // 4
        found = {}
        for name, (share, more) in GROWTH.items():
            early, late = (
                statistics.median(look[name] for look in self.looks[part * quarter : (part + 1) * quarter])
                for part in (1, 3)
            )
            if late > early * share + more:
                found[name] = early, late
        return found

    def _stored(self, db: Any) -> dict[str, list[tuple[str, str, str]]]:
        stored = super()._stored(db)
        for session in self.purged:
            gone = stored.pop(session, [])
            assert all(text == "[purged]" for _, text, _ in gone), f"{session} was purged"
        return stored

    def turns(self) -> int:
        return super().turns() + self.purged.total()


def work(world: Soak, tool: str, **params: Any) -> Any:
    """Does a task, however long it takes beside all the others; its result."""
    job = world.machine.call(tool, **params)["job"]
    state = eventually(
        lambda: found if (found := world.machine.call("csm_job", id=job))["state"] in ("done", "failed") else None,
        within_s=LONGEST_S,
    )
    assert state["state"] == "done", state
    return state["result"]


# --- what happens


def _import(world: Soak) -> None:
    number = world.number()
    folder = world.machine.root / f"import{number}"
    for _ in range(30):
        world.speak(world.chance, f"i{number}", hooks=False, folder=folder)
    work(world, "csm_import", path=str(folder), vectors=False)


def _dream(world: Soak) -> None:
    work(world, "csm_dream_run", force=True)


def _purge(world: Soak) -> None:
    number = world.number()
    session = f"purged-{number}"
    for _ in range(4):
        world.speak(world.chance, session, hooks=False)
    work(world, "csm_sync", vectors=False)
    path = world.path(session, None)
    done = work(world, "csm_privacy_purge", what=session, kind="session", by_person=True)
    assert done["left"] == [], done
    world.purged[session] = len(world.files.pop(path))
    path.unlink()


def _restart(world: Soak) -> None:
    world.daemon.terminate()
    assert world.daemon.wait(60) == 0
    world.daemon = world.machine.start()


def _kill(world: Soak) -> None:
    world.kill()
    world.daemon = world.machine.start()


def _fail_the_disk(world: Soak) -> None:
    process, most = psutil.Process(world.daemon.pid), world.machine.paths.database.stat().st_size
    process.rlimit(psutil.RLIMIT_FSIZE, (max(4096, most // 2), resource.RLIM_INFINITY))
    time.sleep(world.chance.uniform(0.5, 3))
    process.rlimit(psutil.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    eventually(lambda: not world.machine.status()["alarms"])


def _search(world: Soak) -> None:
    for word in ("queue", "worker", "schema"):
        world.machine.call("csm_memory_search", query=f"which {word} do we prefer?")


EVENTS: dict[str, Callable[[Soak], None]] = {
    "import": _import, "dream": _dream, "purge": _purge, "restart": _restart, "kill": _kill, "disk fails": _fail_the_disk,
    "search": _search,
}  # fmt: skip


def run(machine: Machine, *, minutes: float, seed: int, say: Callable[[str], None]) -> Soak:
    """Lets everything happen for so long; AssertionError says what did not hold."""
    world, over = Soak(machine, seed), threading.Event()
    world.daemon = machine.start()
    failures: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> Callable[[], None]:
        def do() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 - raised when all have ended
                failures.append(error)
                over.set()

        return do

    def talk(number: int) -> None:
        chance = random.Random(f"{seed}:{number}")
        while not over.is_set():
            world.speak(chance, f"s{number}")
            over.wait(chance.uniform(0, 2 * TALK_S))

    def knock(number: int) -> None:
        while not over.is_set():
            world.tell(f"h{number}")
            over.wait(TALK_S / 4)

    def look() -> None:
        while not over.wait(LOOK_S):
            world.look()

    actors = [threading.Thread(target=guarded(lambda number=number: talk(number))) for number in range(SESSIONS)]
    actors += [threading.Thread(target=guarded(lambda number=number: knock(number))) for number in range(HOOK_ONLY)]
    actors.append(threading.Thread(target=guarded(look)))
    for actor in actors:
        actor.start()
    end = time.monotonic() + minutes * 60
    try:
        while time.monotonic() < end and not over.is_set():
            name = world.chance.choice(list(EVENTS))
            EVENTS[name](world)
            world.happened[name] += 1
            say(f"{name}; {len(world.acknowledged)} acknowledged, {world.turns()} turns, {world.looks[-1:]}")
            over.wait(EVENT_S)
    finally:
        over.set()
        for actor in actors:
            actor.join()
    if failures:
        raise failures[0]
    work(world, "csm_sync", vectors=False)
    eventually(lambda: not machine.spooled(), within_s=LONGEST_S)
    world.check()
    assert not world.grown(), f"grown from the second quarter to the last: {world.grown()}"
    return world


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    with own_machine() as machine:
        world = run(machine, minutes=chosen.minutes, seed=chosen.seed, say=lambda line: print(line, flush=True))
        print("\n| figure | second quarter | last quarter | most |\n|---|---|---|---|")
        quarter = len(world.looks) // 4
        for name in GROWTH:
            values = [look[name] for look in world.looks]
            early, late = (statistics.median(values[part * quarter : (part + 1) * quarter]) for part in (1, 3))
            print(f"| {name} | {early:.1f} | {late:.1f} | {max(values):.1f} |")
        print(
            f"\nseed {chosen.seed}: {dict(world.happened)}; {len(world.acknowledged)} events acknowledged, 0 of them lost; "
            f"{world.turns()} turns said, each stored once"
        )
        if chosen.json:
            chosen.json.write_text(json.dumps({"seed": chosen.seed, "happened": world.happened, "looks": world.looks}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
