"""A home whose memories an older csmd has chosen, for what chooses them anew; not a test: found through tests/conftest.py."""

from __future__ import annotations

import random
import time
from contextlib import closing
from typing import Any

import apsw
import old_stores
from machine import LIMIT_S, Daemon, Machine

from csmd.store import belief_changes, integrity, memories
from csmd.store.core import Store
from csmd.store.sqlite import Rows, open_rows
from csmd.text import tokens

#: What users say in sessions, so that csmd remembers it.
LASTING = (
    "I prefer {0} over {1} in this repository, always.",
    "Let's go with {0} for the {1} because it never blocks.",
    "Remember that the {0} must be started before the {1}.",
    "We use {0} for every {1} here, not the old one.",
)
NOUNS = "heron wren tern gull plover curlew dunlin godwit ruff snipe knot stint rail crake coot grebe".split()
CHANGES = "select count(*) from dream_changes"


def conversations(machine: Machine, sessions: int = 4) -> None:
    chance = random.Random(7)
    for number in range(sessions):
        name = f"s{number}"
        lines = []
        for _ in range(5):
            said = chance.choice(LASTING).format(*chance.sample(NOUNS, 2))
            lines += [machine.line("user", said, session=name), machine.line("assistant", "Done.", session=name)]
        machine.transcript(*lines, session=name)


def of_before(rows: Rows, key: bytes) -> None:
    """Memories as an older csmd had them: some told in other words, some that nobody would choose, some not there at all."""
    for number, memory in enumerate(memories.list_memories(rows, projects=None)):
        if number % 4 in (1, 2):
            words = f"{memory.text} Or so." if number % 4 == 1 else f"ok then {number}"
            rows.run(
                "update memories set text = :text, text_hash = :hash where seq = :seq",
                text=words,
                hash=tokens.keyed_hash(words, key),
                seq=memory.seq,
            )
        elif number % 4 == 3:
            belief_changes.delete_memory(rows, memory)
    rows.run(
        "insert into cursors (stage, subject, position) values ('reselection', 'due', 1) "
        "on conflict (stage, subject) do update set position = 1"
    )


def image(rows: Rows) -> list[Any]:
    """Every memory with its sources, links, receipts and history, but for what counts changes."""
    idents = [str(one) for (one,) in rows.all("select id from memories order by id")]
    return [
        (one.memory_id, belief_changes.content_of(one), belief_changes.outgoing_links(one))
        for one in belief_changes.before_of(rows, idents)
    ]


def plain(found: list[Any]) -> list[Any]:
    """An image without the version and the days, which an undo counts on."""
    left_out = {"version", "hot_until", "warm_until", "archive_at"}
    return [(ident, {k: v for k, v in seen.items() if k not in left_out}, links) for ident, seen, links in found]


def age(machine: Machine) -> None:
    """Gives a machine without a daemon sessions, and memories of an older csmd."""
    conversations(machine)
    daemon = machine.start()
    machine.sync()
    assert machine.stop(daemon) == 0
    with closing(Store(machine.paths.database, now=old_stores.NOW)) as store:
        store.write(lambda rows: of_before(rows, store.hash_key))


def looked_at(machine: Machine) -> list[Any]:
    with open_rows(machine.paths.database, readonly=False) as rows:
        key = rows.value("select value from meta where key = 'hash_key'")
        assert integrity.integrity(rows) == [] and integrity.violations(rows, key) == {}
        return plain(image(rows))


def killed(machine: Machine, daemon: Daemon, changes: int) -> None:
    """Has a daemon choose anew and kills it when its journal holds so many changes, or is through."""
    job = machine.call("csm_distill_again")["job"]
    until = time.monotonic() + LIMIT_S
    with closing(apsw.Connection(str(machine.paths.database), flags=apsw.SQLITE_OPEN_READONLY)) as watched:
        watched.set_busy_timeout(1000)
        while next(watched.execute(CHANGES))[0] < changes and machine.call("csm_job", id=job)["state"] != "done":
            assert time.monotonic() < until, machine.log()
    daemon.kill()
    daemon.wait(LIMIT_S)
