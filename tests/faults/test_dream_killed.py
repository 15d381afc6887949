"""kill -9 of a real daemon that dreams, at random points: the store is sound, the next dream does the rest, undo takes all back.

CSMD_FAULT_SEED repeats one that failed; without a seed each run has its own. A point is what the journal says by then.
"""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from dream_fixtures import save_memory
from machine import LIMIT_S, Daemon, Machine

from csmd.store import dreams, files, integrity, memory_invariants
from csmd.store.core import Store
from csmd.store.sqlite import Rows, open_rows


@pytest.fixture
def machine() -> Iterator[Machine]:
    """A machine on the disk: in memory a dream may be over before it is killed."""
    made = Machine(root=Path(tempfile.mkdtemp(prefix="csmd-t-", dir="/tmp")).resolve())
    yield made
    made.end()


SEED = int(os.environ.get("CSMD_FAULT_SEED") or random.SystemRandom().randrange(1 << 32))
#: Memories of each project, each of which is there twice.
TOLD, PROJECTS = 14, ("alpha", "beta", "gamma")
DOUBLES = TOLD * len(PROJECTS)
MERGED = "select count(*) from change_sets where kind = 'merge'"
PAGES = "select count(*) from change_sets where kind = 'page'"
BELIEVED = "select id, text, tier, superseded_by, confidence from memories order by id"


def with_doubles(machine: Machine, chance: random.Random) -> list[tuple[object, ...]]:
    """Fills the store of a machine whose daemon has not begun yet; what is believed then."""
    words = [f"{one}{two}" for one in ("gull", "fern", "mast", "quay", "reef", "dune") for two in "abcdefghijklmnop"]
    files.make_private(machine.home)
    with closing(Store(machine.paths.database, now="2026-01-01T10:00:00.000Z")) as store:

        def write(rows: Rows) -> None:
            for project in PROJECTS:
                for number in range(TOLD):
                    said = " ".join(chance.sample(words, 9))
                    tell = {"key": store.hash_key, "day": number, "project": project, "number": 2 * number}
                    save_memory(rows, said, **tell)  # type: ignore[arg-type]
                    other = save_memory(
                        rows, f"{number} is not said yet in {project}", **{**tell, "number": 2 * number + 1}
                    )  # type: ignore[arg-type]
                    rows.run("update memories set text = :text where id = :id", text=f"{said}!", id=other)

        store.write(write)
        return store.read(lambda rows: rows.all(BELIEVED))


def killed(machine: Machine, daemon: Daemon, counted: str, at: int) -> None:
    """Has a daemon dream, and kills it when its journal holds so much."""
    job = machine.call("csm_dream_run", force=True)["job"]
    until = time.monotonic() + LIMIT_S
    with closing(apsw.Connection(str(machine.paths.database), flags=apsw.SQLITE_OPEN_READONLY)) as watched:
        watched.set_busy_timeout(1000)
        while next(watched.execute(counted))[0] < at:
            assert time.monotonic() < until, (machine.call("csm_job", id=job), machine.log())
    os.kill(daemon.pid, signal.SIGKILL)
    daemon.wait(LIMIT_S)


def is_sound(machine: Machine) -> bool:
    with open_rows(machine.paths.database, readonly=False) as rows:  # an index checks itself by a command
        key = rows.value("select value from meta where key = 'hash_key'")
        assert integrity.check_database(rows) == [] and memory_invariants.find_violations(rows, key) == {}
        return True


@pytest.mark.invariant(
    "A daemon killed while it dreams leaves a sound store; the next dream does the rest, and undo takes all of it back"
)
@pytest.mark.long
def test_a_daemon_that_is_killed_while_it_dreams_leaves_a_sound_store_and_the_next_dream_does_the_rest(
    machine: Machine,
) -> None:
    chance = random.Random(SEED)
    print(f"CSMD_FAULT_SEED={SEED}")
    believed = with_doubles(machine, chance)
    points = ((MERGED, chance.randrange(1, DOUBLES // 2)), (PAGES, chance.randrange(1, len(PROJECTS))))
    for counted, at in points:
        killed(machine, machine.start(), counted, at)
        assert is_sound(machine)
    daemon = machine.start()
    history = machine.call("csm_dream_history")["dreams"]
    assert [(one["state"], one["error"]) for one in history] == [("failed", dreams.KILLED_ERROR)] * len(points)
    done = machine.work("csm_dream_run", force=True)
    assert done["state"] == "done"
    assert machine.call("csm_dream_plan")["actions"] == [], "it has planned anew, and left nothing"
    with open_rows(machine.paths.database, readonly=True) as rows:
        assert rows.value(MERGED) == DOUBLES, "each once, whichever dream it was"
        assert rows.value("select count(*) from memories where tier <> 'archive'") == DOUBLES
    undone = machine.work("csm_dream_undo", id=history[-1]["id"], dry_run=False)
    assert undone["kept"] == [] and len(undone["dreams"]) == len(points) + 1
    assert machine.stop(daemon) == 0
    assert is_sound(machine)
    with open_rows(machine.paths.database, readonly=True) as rows:
        assert rows.all(BELIEVED) == believed
    assert not list(machine.paths.memory.rglob("*.md")), "no page of a dream that was taken back"
