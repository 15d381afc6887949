"""What the check of a store finds: each thing that must hold, broken once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from csmd.conversation import Turn
from csmd.knowledge import Candidate, Evidence, Link
from csmd.store import (
    candidates,
    cursors,
    integrity,
    memories,
    memory_invariants,
    memory_links,
    projects,
    tombstones,
    turns,
    vectors,
)
from csmd.store.core import Store
from csmd.store.sqlite import Rows


def story(rows: Rows, given: Any) -> None:
    """A project with a turn and a memory, each with a vector."""
    project = projects.ensure(rows, given.project(), now=given.now)
    for number in (1, 2):
        turn: Turn = given.turn(f"u{number}", f"word {number}", second=number)
        turns.add_turn(rows, turn, text_hash=given.hash(turn.text), host="claude", project=project, path="/t")
    memories.insert(rows, given.memory("m1", "use tabs", project=project), text_hash="h")
    model = vectors.ensure_model(rows, "m", 4, now="")
    vectors.add_vectors(rows, "passage", model, [(seq, project, 0, 4, b"abcd") for seq in (1, 2)], reached=2)
    vectors.add_vectors(rows, "memory", model, [(1, project, 0, 4, b"abcd")], reached=1)
    rows.run("insert into counters (name, value) values ('bad lines', 1)")
    cursors.move_cursor(rows, "distill", "1", 1)


#: What is broken -> a word of what is said of it.
BROKEN: dict[str, str] = {
    "delete from session_turn where ordinal = 1": "no session's order",
    "update session_turn set ordinal = 9 where ordinal = 2": "past the last",
    "update sessions set last_at = '1999'": "before the beginning",
    "delete from provenance": "without a source turn",
    "update counters set value = -1": "below zero",
    "update cursors set position = -1 where stage = 'distill'": "below zero",
    "delete from vec_passage_1 where rowid = 1": "one of two passage tables",
    "delete from vec_memory_1": "one of two memory tables",
    "delete from vector_codes where kind = 'passage'": "without signs",
    "update vector_codes set project_seq = 77": "without signs",
    "update vectors set row_seq = 77 where kind = 'memory'": "a memory that is gone",
    "update memories set project_seq = 0": "another project",
    "delete from vectors": "were skipped",
    "insert into memories_fts (rowid, text) values (9, 'planted')": "memories_fts",
    "delete from passages_fts_data where id > 9": "passages_fts",
    "delete from passages_fts where rowid = 1": "missing from it",
    "insert into passages_fts (rowid, text) values (99, 'planted')": "without a passage",
    "delete from passages": "turns without one: 2",
}


@pytest.mark.parametrize("broken", BROKEN)
def test_each_thing_that_must_hold_is_looked_at(store: Store, given: Any, broken: str) -> None:
    store.write(lambda rows: story(rows, given))
    assert store.write(integrity.check_database) == []
    store.write(lambda rows: rows.run(broken))
    found = store.write(integrity.check_database)
    assert any(BROKEN[broken] in problem for problem in found), found


def test_vectors_begun_anew_wait_to_be_made(store: Store, given: Any) -> None:
    def begin_anew(rows: Rows) -> int:
        story(rows, given)
        vectors.delete_vector(rows, "passage", 1, 1)
        vectors.reset_vectors(rows)
        return vectors.count_waiting(rows, 1)

    assert store.write(begin_anew) == 3
    assert store.write(integrity.check_database) == []


# --- The rules of what may be believed: none is broken by what csmd does, and each is seen when it is.


Given = Any
WAITING = Candidate(
    id="c1", kind="preference", source="scan", project_seq=0, fingerprint="f", text="tabs", reason="seen", confidence=0.8,
    created_at="2026", updated_at="2026", reinforcement=3, memory_ids=("m1",), status="promoted",
    evidence=(Evidence(uuid="u1", session_id="s1", at="2026"), Evidence(uuid="u2", session_id="s1", at="2026")),
)  # fmt: skip


def put(rows: Rows, given: Given, ident: str = "m1", said: str = "use tabs", **more: Any) -> None:
    values = {"hot_until": 3, "warm_until": 30, "archive_at": 90, **more}
    memories.insert(rows, given.memory(ident, said, **values), text_hash=ident)


def update(what: str) -> Callable[[Rows, Given], None]:
    return lambda rows, given: rows.run(f"update memories set {what} where id = 'm1'")


def _promoted(**changes: Any) -> Callable[[Rows, Given], None]:
    return lambda rows, given: candidates.put_candidate(rows, replace(WAITING, **changes))


def _forgotten(rows: Rows, given: Given) -> None:
    key = rows.value("select value from meta where key = 'hash_key'")
    tombstones.forget(rows, "Use tabs.", correction=False, by="user", key=key, now=given.now)


def _in_a_project(rows: Rows, given: Given) -> None:
    rows.run("update memories set project_seq = :p", p=projects.ensure(rows, given.project(), now=given.now))


def _superseded_elsewhere(rows: Rows, given: Given) -> None:
    for name in ("shop", "blog"):
        home = projects.ensure(rows, given.project(name), now=given.now)
        put(rows, given, name, name, project=home, scope="project")
    rows.run("update memories set superseded_by = 'blog' where id = 'shop'")


def _merged(rows: Rows, given: Given) -> None:
    put(rows, given, "m2", "use tabs, please")
    memory_links.add_link(rows, Link(from_id="m1", to_id="m2", relationship="merged_into"), now=given.now)


def _statement(authority: str, session: str = "1") -> Callable[[Rows, Given], None]:
    def story(rows: Rows, given: Given) -> None:
        rows.run(
            "insert into sessions (seq, id, host, project_seq, started_at, last_at) values (1, 's', 'h', 0, '', '')"
        )
        rows.run(
            "insert into turns (seq, uuid, session_seq, project_seq, kind, text, text_hash, at, source) values "
            "(1, 't', 1, 0, 'user', '', '', '', 'transcript')"
        )
        rows.run(
            f"insert into statements (turn_seq, session_seq, project_seq, text, text_hash, gate, category, confidence, "
            f"authority, reasons, at) values (1, {session}, 0, 'x', 'x', '', '', 1, :authority, '', '')",
            authority=authority,
        )

    return story


#: (the rule that it breaks, how).
BREACHES: list[tuple[str, Callable[[Rows, Given], None]]] = [
    ("provenance", lambda rows, given: rows.run("delete from provenance")),
    ("evidence", _promoted(confidence=0.69)),
    ("evidence", _promoted(reinforcement=2)),
    ("evidence", _promoted(contradicted=1)),
    ("evidence", _promoted(evidence=WAITING.evidence[:1])),
    ("inferred", update("origin = 'inferred'")),
    ("external", update("authority = 'external'")),
    ("external-statements", _statement("external")),
    ("model-saved", update("origin = 'model_saved'")),
    ("superseded", update("superseded_by = 'gone'")),
    ("superseded", update("superseded_by = 'm1'")),
    ("superseded", _superseded_elsewhere),
    ("merged", _merged),
    ("confidence", update("confidence = 1.2")),
    ("confidence", update("confidence = 0.5")),
    ("confidence", update("confidence = 0.85, category = 'pattern', gate = 'epistemic'")),
    ("forgotten", _forgotten),
    ("links", lambda rows, given: rows.run("insert into links values (1, 77, 'x', 1, '')")),
    ("statements", _statement("user", "77")),
    ("pinned", update("pinned = 1")),
    ("thresholds", update("hot_until = 31")),
    ("thresholds", update("archive_at = 29")),
    ("scope", _in_a_project),
    ("scope", update("scope = 'project'")),
    ("candidates", _promoted(status="open", evidence=(Evidence(uuid="gone", session_id="s", at=""),))),
]


@pytest.mark.invariant("Each rule of what may be believed is seen when it is broken")
@pytest.mark.parametrize(("name", "breach"), BREACHES, ids=[f"{row[0]}-{n}" for n, row in enumerate(BREACHES)])
def test_a_breach_is_seen_and_nothing_else(
    store: Store, given: Given, name: str, breach: Callable[[Rows, Given], None]
) -> None:
    store.write(lambda rows: put(rows, given))
    assert store.read(lambda rows: memory_invariants.find_violations(rows, store.hash_key)) == {}

    def damage(rows: Rows) -> dict[str, list[str]]:
        rows.run("pragma defer_foreign_keys = on")
        breach(rows, given)
        found = memory_invariants.find_violations(rows, store.hash_key)
        raise _Seen(found)

    with pytest.raises(_Seen) as seen:
        store.write(damage)
    assert list(seen.value.args[0]) == [name]
    assert all(seen.value.args[0].values())


class _Seen(Exception):
    """Carries what was found out of a write that is undone."""


def test_the_documents_list_every_rule_and_no_other() -> None:
    tools = Path(__file__).resolve().parent.parent.parent / "docs" / "tools.md"
    listed = tools.read_text().split("| rule | what must hold |", 1)[1].split("\n## ", 1)[0]
    rows = [line.strip("| ").split(" | ") for line in listed.splitlines() if line.startswith("| `")]
    assert rows == [[f"`{one.name}`", one.rule] for one in memory_invariants.INVARIANTS]


def test_every_rule_is_broken_in_some_test_and_has_a_remedy() -> None:
    assert {name for name, _ in BREACHES} == {one.name for one in memory_invariants.INVARIANTS}
    assert all(one.remedy and one.rule for one in memory_invariants.INVARIANTS)


@pytest.mark.parametrize(
    "what",
    [
        "confidence = 0.62, gate = 'correction', category = 'fact'",
        "superseded_by = 'm2'",
        "pinned = 1, decay = 'permanent', tier = 'durable', confidence = 0.2",
        "authority = 'external', origin = 'imported'",
    ],
)
def test_what_is_explained_breaks_no_rule(store: Store, given: Given, what: str) -> None:
    def story(rows: Rows) -> dict[str, list[str]]:
        put(rows, given)
        put(rows, given, "m2", "use spaces")
        update(what)(rows, given)
        candidates.put_candidate(rows, WAITING)
        return memory_invariants.find_violations(rows, store.hash_key)

    assert store.write(story) == {}
