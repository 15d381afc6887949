"""The daemon chooses the memories of an older csmd anew, once, and undoing it gives every row back."""

from __future__ import annotations

import random
import time
from contextlib import closing
from typing import Any

import apsw
import outdated
import pytest
from machine import LIMIT_S, Machine

from csmd import text
from csmd.daemon.dream_steps import AGAIN
from csmd.store import backup, before, governance, memories, soundness
from csmd.store.core import Store
from csmd.store.sqlite import Rows, opened

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
    for number, memory in enumerate(memories.listing(rows, projects=None)):
        if number % 4 in (1, 2):
            words = f"{memory.text} Or so." if number % 4 == 1 else f"ok then {number}"
            rows.run(
                "update memories set text = :text, text_hash = :hash where seq = :seq",
                text=words,
                hash=text.keyed_hash(words, key),
                seq=memory.seq,
            )
        elif number % 4 == 3:
            memories.delete(rows, memory)
    rows.run(
        "insert into cursors (stage, subject, position) values ('reselection', 'due', 1) "
        "on conflict (stage, subject) do update set position = 1"
    )


def image(rows: Rows) -> list[Any]:
    """Every memory with its sources, links, receipts and history, but for what counts changes."""
    idents = [str(one) for (one,) in rows.all("select id from memories order by id")]
    return [(one.memory_id, before.seen(one), before.leads_to(one)) for one in before.of(rows, idents)]


def plain(found: list[Any]) -> list[Any]:
    """An image without the version and the days, which an undo counts on."""
    left_out = {"version", "hot_until", "warm_until", "archive_at"}
    return [(ident, {k: v for k, v in seen.items() if k not in left_out}, links) for ident, seen, links in found]


@pytest.fixture
def aged(machine: Machine) -> Machine:
    """A home with sessions, whose memories are of an older csmd; its daemon has ended."""
    conversations(machine)
    daemon = machine.start()
    machine.sync()
    assert machine.stop(daemon) == 0
    with closing(Store(machine.paths.database, now=outdated.NOW)) as store:
        store.write(lambda rows: of_before(rows, store.hash_key))
    return machine


def looked_at(machine: Machine) -> list[Any]:
    with opened(machine.paths.database, readonly=False) as rows:
        key = rows.value("select value from meta where key = 'hash_key'")
        assert soundness.integrity(rows) == [] and governance.broken(rows, key) == {}
        return plain(image(rows))


def test_what_is_chosen_keeps_its_id_the_rest_is_archived_and_undo_gives_every_row_back(aged: Machine) -> None:
    was = looked_at(aged)
    daemon = aged.start()
    shown = aged.call("csm_distill_again", dry_run=True)
    assert shown["kept"] and shown["archived"] and shown["new"] and shown["reworded"], shown
    assert shown["needs_yes"] is False
    backups = len(backup.listed(aged.paths.database))
    done = aged.work("csm_distill_again", yes=False)
    assert {"reword", "choose", "archive"} <= done["done"].keys(), done
    assert len(backup.listed(aged.paths.database)) == backups + 1
    again = aged.call("csm_distill_again", dry_run=True)
    assert (again["reworded"], again["coming"], again["leaving"]) == ([], [], []), [
        aged.call("csm_memory_list")["memories"]
    ]
    undone = aged.work("csm_dream_undo", id=done["id"], dry_run=False)
    assert undone["kept"] == []
    assert aged.stop(daemon) == 0
    assert looked_at(aged) == was


def test_killed_in_the_middle_it_goes_on_in_its_own_journal(aged: Machine) -> None:
    was = looked_at(aged)
    daemon = aged.start()
    aged.call("csm_distill_again")
    until = time.monotonic() + LIMIT_S
    with closing(apsw.Connection(str(aged.paths.database), flags=apsw.SQLITE_OPEN_READONLY)) as watched:
        watched.set_busy_timeout(1000)
        while next(watched.execute(CHANGES))[0] < 3:
            assert time.monotonic() < until, aged.log()
    daemon.kill()
    daemon.wait(LIMIT_S)
    looked_at(aged)
    daemon = aged.start()
    done = aged.work("csm_distill_again")
    (one,) = [dream for dream in aged.call("csm_dream_history")["dreams"] if dream["why"] == AGAIN]
    assert (one["id"], one["state"]) == (done["id"], "done")
    aged.work("csm_dream_undo", id=done["id"], dry_run=False)
    assert aged.stop(daemon) == 0
    assert looked_at(aged) == was
