"""What the check of a store finds: each thing that must hold, broken once."""

from __future__ import annotations

from typing import Any

import pytest

from csmd.model import Turn
from csmd.store import cursors, memories, projects, turns, vectors
from csmd.store.core import Store
from csmd.store.integrity import integrity
from csmd.store.sqlite import Rows


def story(rows: Rows, given: Any) -> None:
    """A project with a turn and a memory, each with a vector."""
    project = projects.ensure(rows, given.project(), now=given.now)
    for number in (1, 2):
        turn: Turn = given.turn(f"u{number}", f"word {number}", second=number)
        turns.add_turn(rows, turn, text_hash=given.hash(turn.text), host="claude", project=project, path="/t")
    memories.insert(rows, given.memory("m1", "use tabs", project=project), text_hash="h")
    model = vectors.ensure_model(rows, "m", 4, now="")
    vectors.add(rows, "passage", model, [(seq, project, 0, 4, b"abcd") for seq in (1, 2)], reached=2)
    vectors.add(rows, "memory", model, [(1, project, 0, 4, b"abcd")], reached=1)
    rows.run("insert into counters (name, value) values ('bad lines', 1)")
    cursors.move_cursor(rows, "distill", "1", 1)


#: What is broken -> a word of what is said of it.
BROKEN: dict[str, str] = {
    "delete from session_turn where ordinal = 1": "no session's order",
    "update session_turn set ordinal = 9 where ordinal = 2": "past their last",
    "update sessions set last_at = '1999'": "before they begin",
    "delete from provenance": "rest on no turn",
    "update counters set value = -1": "below zero",
    "update cursors set position = -1 where stage = 'distill'": "below zero",
    "delete from vec_passage_1 where rowid = 1": "one of two passage tables",
    "delete from vec_memory_1": "one of two memory tables",
    "delete from vector_codes where kind = 'passage'": "lack their signs",
    "update vector_codes set project_seq = 77": "lack their signs",
    "update vectors set row_seq = 77 where kind = 'memory'": "a memory that is gone",
    "update memories set project_seq = 0": "another project",
    "delete from vectors": "passed by",
    "insert into memories_fts (rowid, text) values (9, 'planted')": "memories_fts",
    "delete from turns_fts_data where id > 9": "turns_fts",
    "delete from passages_fts_data where id > 9": "passages_fts",
    "delete from passages_fts where rowid = 1": "not in it",
    "insert into passages_fts (rowid, text) values (99, 'planted')": "have no passage",
    "delete from passages": "passages: 2 turns",
}


@pytest.mark.parametrize("broken", BROKEN)
def test_each_thing_that_must_hold_is_looked_at(store: Store, given: Any, broken: str) -> None:
    store.write(lambda rows: story(rows, given))
    assert store.write(integrity) == []
    store.write(lambda rows: rows.run(broken))
    found = store.write(integrity)
    assert any(BROKEN[broken] in problem for problem in found), found


def test_vectors_begun_anew_wait_to_be_made(store: Store, given: Any) -> None:
    def begin_anew(rows: Rows) -> int:
        story(rows, given)
        vectors.delete_vector(rows, "passage", 1, 1)
        vectors.begin_anew(rows)
        return vectors.left(rows, 1)

    assert store.write(begin_anew) == 3
    assert store.write(integrity) == []
