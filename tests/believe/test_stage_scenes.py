"""Where something was said, over a real store: as it is noted, told, searched for, forgotten and brought elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from talked import NOW, Talk, go_through

from csmd.dream import lines, pages
from csmd.model import Memory
from csmd.recall import compose, stage_search
from csmd.store import memories, purge_whole, search
from csmd.store.core import Store

WANTED = "i do also want to send the command flags and arguments, in other words, the whole thing executed by the user"
ASKED = "How can I try the order form before it is merged?"
FOUND = (
    "The catch: the gateway only renders issue templates from the default branch, because it caches them once a day."
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "csmd.db", now=NOW)
    yield opened
    opened.close()


def the_one(store: Store) -> Memory:
    idents = store.read(lambda rows: [str(ident) for (ident,) in rows.all("select id from memories")])
    assert len(idents) == 1
    found = store.read(lambda rows: memories.by_id(rows, idents[0]))
    assert found is not None
    return found


def worked_on(store: Store) -> Talk:
    talk = Talk(store)
    talk.say("user", WANTED)
    go_through(store)
    assert the_one(store).scene == "", "nothing was done yet"
    talk.mend("/p/alpha/telemetry/sent.go")
    talk.say("assistant", "Done.")
    go_through(store)
    return talk


def test_the_file_at_hand_is_noted_once_the_work_is_done_and_told_wherever_the_memory_is(store: Store) -> None:
    worked_on(store)
    memory = the_one(store)
    assert memory.scene == "at telemetry/sent.go"
    told = compose.line(compose.told(memory, reason="r"))
    assert told.endswith(f"(at telemetry/sent.go, {memory.confirmed_at[:10]}, {memory.id})")
    hits = store.read(
        lambda rows: stage_search.find(rows, "command flags", projects=None, kind="memory", limit=5, embed=None)
    )[0]
    assert [hit.scene for hit in hits if hit.id == memory.id] == [memory.scene]
    section = lines.Section(heading="Facts", items=(pages.line(memory),))
    assert "  - said at telemetry/sent.go <!-- csmd -->" in lines.written(lines.Page(path="", sections=(section,)))


def test_it_moves_with_the_work_and_to_go_through_it_again_changes_nothing(store: Store) -> None:
    talk = worked_on(store)
    for _ in range(2):
        talk.mend("/p/alpha/telemetry/flags.go")
    go_through(store)
    assert the_one(store).scene == "at telemetry/flags.go"
    before = store.read(lambda rows: rows.all("select * from scenes"))
    store.write(lambda rows: rows.run("delete from cursors where stage = 'gotchas'"))
    go_through(store)
    assert store.read(lambda rows: rows.all("select * from scenes")) == before


def test_what_is_said_again_elsewhere_keeps_the_scene_of_its_own_session(store: Store) -> None:
    worked_on(store)
    again = Talk(store, "s2", day=2)
    again.say("user", WANTED)
    again.mend("/p/alpha/other/place.go")
    again.say("assistant", "Done.")
    go_through(store)
    memory = the_one(store)
    assert (memory.times, memory.scene) == (2, "at telemetry/sent.go")


def test_an_answer_is_told_with_its_question_until_that_is_purged(store: Store) -> None:
    talk = Talk(store)
    asked = talk.say("user", ASKED)
    talk.say("assistant", FOUND)
    go_through(store)
    assert the_one(store).scene == f'in answer to "{ASKED}"'
    seq = store.read(lambda rows: search.turns_of_uuids(rows, [asked])[asked])
    store.write(lambda rows: purge_whole.purge_turn(rows, seq, store.hash_key))
    assert the_one(store).scene == ""
