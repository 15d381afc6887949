"""What every backend of the store keeps: stories told through the one fixture `store`.

A second backend is one more entry of BACKENDS: a function that opens an empty store below a
directory, and opens the same one again when it is called with the same directory. Nothing
here knows a file, a dialect or an extension.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from csmd.briefs import BriefItem
from csmd.conversation import Event, Project, StoredTurn, Turn
from csmd.errors import DeadlineExceeded, Refused, StoreError
from csmd.knowledge import Link, Memory, Provenance, Statement
from csmd.store import (
    activity,
    core,
    cursors,
    events,
    fulltext,
    memories,
    memory_deletion,
    memory_links,
    projects,
    provisional_turns,
    receipts,
    search,
    session_context,
    statement_rows,
    turns,
    vectors,
)
from csmd.store.core import Store
from csmd.store.integrity import check_database
from csmd.store.sqlite import Rows
from csmd.text import tokens

NOW = "2026-01-01T00:00:00.000Z"
PATIENCE_S = 30.0
Open = Callable[[Path], Store]


def open_sqlite(directory: Path) -> Store:
    return Store(directory / "csmd.db", now=NOW)


BACKENDS: dict[str, Open] = {"sqlite": open_sqlite}


@pytest.fixture(params=sorted(BACKENDS))
def opening(request: pytest.FixtureRequest) -> Open:
    return BACKENDS[request.param]


@pytest.fixture
def store(opening: Open, tmp_path: Path) -> Iterator[Store]:
    made = opening(tmp_path)
    yield made
    assert made.write(check_database) == []
    made.close()


@pytest.fixture
def reopened(opening: Open, tmp_path: Path, store: Store) -> Iterator[Callable[[], Store]]:
    """Opens the store of this test once more, beside the first."""
    made: list[Store] = []

    def again() -> Store:
        made.append(opening(tmp_path))
        return made[-1]

    yield again
    for other in made:
        other.close()


def at(second: int) -> str:
    return f"2026-01-01T00:{second // 60:02}:{second % 60:02}.000Z"


def say(
    rows: Rows, uuid: str, text: str, *, session: str = "s1", second: int = 0, kind: Any = "user", name: str = "shop"
) -> int:
    """A transcript's line; the row key of its turn."""
    project = projects.ensure(rows, Project(key=name, root=f"/home/me/{name}", name=name, kind="path"), now=NOW)
    turn = Turn(uuid=uuid, session_id=session, kind=kind, text=text, at=at(second))
    turns.add_turn(rows, turn, text_hash=tokens.normalise(text), host="claude", project=project, path="/t.jsonl")
    return search.turns_of_uuids(rows, [uuid])[uuid]


def report(rows: Rows, ident: str, text: str, *, session: str = "s1", second: int = 0) -> bool:
    """A prompt's event and its provisional turn; whether the event was new."""
    event = Event(id=ident, host="claude", name="prompt", session_id=session, at=at(second), text=text)
    if not events.record_event(rows, event, text_hash=tokens.normalise(text), payload_hash=f"{session} {text}"):
        return False
    project = projects.ensure(rows, Project(key="shop", root="/home/me/shop", name="shop", kind="path"), now=NOW)
    turn = Turn(uuid=f"hook:{ident}", session_id=session, kind="user", text=text, at=at(second))
    provisional_turns.add_provisional(
        rows, turn, event="prompt", text_hash=tokens.normalise(text), host="claude", project=project, path=""
    )
    return True


def memory(ident: str, text: str, *, uuid: str = "l1", project: int = 0, **more: Any) -> Memory:
    values: dict[str, Any] = {
        "gate": "behavioral", "category": "preference", "type": "preference", "tier": "daily", "decay": "durable",
        "authority": "user", "origin": "stated", "confidence": 0.8, "scope": "user", "session_id": "s1",
        "created_at": NOW, "confirmed_at": NOW, "hot_until": 3, "warm_until": 30, "archive_at": 90,
        "provenance": (Provenance(uuid=uuid, session_id="s1", at=NOW),), **more,
    }  # fmt: skip
    return Memory(id=ident, text=text, project_seq=project, **values)


def said_in(rows: Rows, session: str) -> list[str]:
    sessions = {behind.session_id: behind.session_seq for behind in cursors.sessions_behind(rows, "nobody's")}
    return [turn.uuid for turn in turns.read_stream_turns(rows, sessions[session], after=0)]


# --- writing and reading ---------------------------------------------------------------------------------------------


def test_what_was_acknowledged_is_there_for_everybody_and_after_opening_again(
    store: Store, reopened: Callable[[], Store]
) -> None:
    store.write(lambda rows: activity.increment_counters(rows, [("a", 1)]))
    assert store.read(activity.read_counters, lane="hook") == {"a": 1}
    other = reopened()
    assert other.read(activity.read_counters) == {"a": 1}
    assert other.hash_key == store.hash_key


def test_a_write_that_fails_leaves_nothing_and_harms_nobody(store: Store) -> None:
    def fail(rows: Rows) -> None:
        activity.increment_counters(rows, [("half", 1)])
        raise ValueError("in the middle")

    start = threading.Event()
    blocking = store.submit(lambda rows: start.wait(PATIENCE_S))
    futures = [
        store.submit(task)
        for task in (
            lambda rows: activity.increment_counters(rows, [("a", 1)]),
            fail,
            lambda rows: activity.increment_counters(rows, [("a", 1)]),
        )
    ]
    start.set()
    assert blocking.result(PATIENCE_S)
    with pytest.raises(ValueError, match="in the middle"):
        futures[1].result(PATIENCE_S)
    futures[2].result(PATIENCE_S)
    assert store.read(activity.read_counters) == {"a": 2}


def test_a_statement_that_the_backend_refuses_is_a_store_error(store: Store) -> None:
    with pytest.raises(StoreError):
        store.write(lambda rows: rows.run("insert into nowhere (a) values (:a)", a=1))
    with pytest.raises(StoreError):
        store.read(lambda rows: rows.value("select nothing from meta"))


def test_many_threads_lose_no_increment(store: Store) -> None:
    with ThreadPoolExecutor(8) as pool:
        for done in [
            pool.submit(store.write, lambda rows: activity.increment_counters(rows, [("a", 1)])) for _ in range(80)
        ]:
            done.result(PATIENCE_S)
    assert store.read(activity.read_counters) == {"a": 80}


def test_a_reader_cannot_write(store: Store) -> None:
    for lane in core.LANES:
        with pytest.raises(StoreError):
            store.read(lambda rows: activity.increment_counters(rows, [("a", 1)]), lane=lane)


def test_a_read_sees_one_moment_and_the_next_read_the_next(store: Store) -> None:
    def look(rows: Rows) -> list[dict[str, int]]:
        first = activity.read_counters(rows)
        store.write(lambda writing: activity.increment_counters(writing, [("a", 1)]))
        return [first, activity.read_counters(rows)]

    assert store.read(look) == [{}, {}]
    assert store.read(activity.read_counters) == {"a": 1}


def test_a_read_ends_at_its_deadline_and_frees_its_lane(store: Store) -> None:
    endless = "with recursive c (x) as (select 1 union all select x + 1 from c) select count(*) from c"
    for lane in core.LANES:
        with pytest.raises(DeadlineExceeded):
            store.read(lambda rows: rows.all(endless), lane=lane, deadline_s=0.05)
        with pytest.raises(DeadlineExceeded):
            store.read(activity.read_counters, lane=lane, deadline_s=0.0)
        assert store.read(activity.read_counters, lane=lane, deadline_s=PATIENCE_S) == {}


def test_a_store_that_is_closed_refuses_and_what_it_took_in_was_performed(opening: Open, tmp_path: Path) -> None:
    store = opening(tmp_path)
    waiting = [store.submit(lambda rows: activity.increment_counters(rows, [("a", 1)])) for _ in range(50)]
    store.close()
    assert all(future.exception(0) is None for future in waiting)
    for refused in (store.write, store.submit, store.read):
        with pytest.raises(Refused):
            refused(activity.read_counters)
    again = opening(tmp_path)
    assert again.migrated == []
    assert again.read(activity.read_counters) == {"a": 50}
    again.close()


# --- turns from two sources ------------------------------------------------------------------------------------------


def test_a_turn_of_the_hook_and_of_the_transcript_is_one_in_either_order(store: Store) -> None:
    def story(rows: Rows) -> None:
        assert report(rows, "e1", "use tabs")
        assert not report(rows, "e1", "use tabs")
        say(rows, "l1", "Use tabs!", second=1)
        say(rows, "l2", "go on", second=50)
        assert report(rows, "e2", "go on", second=51)
        assert report(rows, "e3", "go on", second=90)
        assert said_in(rows, "s1") == ["l1", "l2", "hook:e3"]
        say(rows, "l3", "go on", second=91)
        assert said_in(rows, "s1") == ["l1", "l2", "l3"]
        say(rows, "l1", "Use tabs!")
        assert activity.counts(rows)["turns"] == 3 and activity.counts(rows)["provisional"] == 0

    store.write(story)


def test_a_fork_lists_the_turns_it_shares_and_stores_them_once(store: Store) -> None:
    def story(rows: Rows) -> None:
        report(rows, "e1", "one")
        for session in ("fork", "s1"):
            for uuid in ("one", "two"):
                say(rows, uuid, uuid, session=session)
        say(rows, "three", "three", session="fork")
        assert said_in(rows, "s1") == ["one", "two"]
        assert said_in(rows, "fork") == ["one", "two", "three"]
        assert activity.counts(rows)["turns"] == 3

    store.write(story)


def test_a_hooks_turn_without_a_line_is_kept_and_a_double_is_dropped(store: Store) -> None:
    def story(rows: Rows) -> tuple[int, int]:
        say(rows, "l1", "yes", kind="notification")
        for ident, text, second in (("e2", "yes", 40), ("e3", "only here", 45)):
            report(rows, ident, text, second=second)
        say(rows, "l2", "later", second=100)
        return provisional_turns.close_provisional(
            rows,
            provisional_turns.list_expired_provisional(rows, before=at(200), after=provisional_turns.START, limit=1000)[
                0
            ],
        )

    assert store.write(story) == (1, 1)
    assert sorted(store.read(lambda rows: said_in(rows, "s1"))) == ["hook:e3", "l1", "l2"]
    assert store.read(activity.counts)["hook_only"] == 1


def test_what_was_made_of_a_hooks_turn_rests_on_the_transcripts(store: Store) -> None:
    def story(rows: Rows) -> None:
        report(rows, "e1", "use tabs")
        turn = StoredTurn(seq=search.turns_of_uuids(rows, ["hook:e1"])["hook:e1"], uuid="hook:e1", session_id="s1",
                          project_seq=1, kind="user", text="use tabs", at=NOW, ordinal=1)  # fmt: skip
        statement = Statement(
            text="use tabs", gate="behavioral", category="preference", confidence=0.8, authority="user"
        )
        assert statement_rows.add_statement(rows, statement, turn, session_seq=1, text_hash="h")
        assert not statement_rows.add_statement(rows, statement, turn, session_seq=1, text_hash="h")
        memories.insert(rows, memory("m1", "use tabs", uuid="hook:e1"), text_hash="h")
        say(rows, "l1", "use tabs")
        assert [row[2] for row in statement_rows.list_statements_after(rows, 0, limit=9)] == ["l1"]
        memory_now = memories.by_id(rows, "m1")
        assert memory_now is not None and [source.uuid for source in memory_now.provenance] == ["l1"]

    store.write(story)


# --- memories, search, receipts --------------------------------------------------------------------------------------


def test_a_memory_comes_back_whole_changes_and_is_forgotten(store: Store) -> None:
    def story(rows: Rows) -> None:
        made = memory("m1", "prefers tabs 🦘")
        made = replace(made, seq=memories.insert(rows, made, text_hash="h1"))
        other = memories.insert(rows, memory("m2", "kangaroo"), text_hash="h2")
        memory_links.add_link(rows, Link(from_id="m1", to_id="m2", relationship="RELATES_TO", weight=0.5), now=NOW)
        assert memories.by_hash(rows, "h1", project=0) == memories.by_id(rows, "m1") == made
        memories.update_belief(rows, replace(made, confidence=0.9, pinned=True))
        assert memories.list_memories(rows, projects=None)[0] == replace(made, confidence=0.9, pinned=True, version=2)
        assert len(fulltext.text_hits(rows, "memory", ["tab"], projects=[0], limit=9)) == 1
        memory_deletion.delete_memory(rows, made)
        assert fulltext.text_hits(rows, "memory", ["tab"], projects=None, limit=9) == []
        assert memory_links.list_links(rows, "m2") == []
        assert memories.insert(rows, memory("m3", "newer"), text_hash="h3") > other

    store.write(story)


def test_a_memory_that_nobody_said_is_refused(store: Store) -> None:
    with pytest.raises(StoreError):
        store.write(lambda rows: memories.insert(rows, memory("m1", "x", provenance=()), text_hash="h"))


def test_words_find_turns_in_the_projects_asked_for_the_best_first(store: Store) -> None:
    def story(rows: Rows) -> None:
        for number in range(5):
            say(rows, f"c{number}", f"deploy the server {number}")
        best = say(rows, "best", "deploying the kangaroo")
        elsewhere = say(rows, "elsewhere", "kangaroo", name="other")
        say(rows, "tool", "kangaroo", kind="tool_result")
        hits = fulltext.text_hits(rows, "passage", ["deploy", "kangaroo"], projects=[1], limit=9)
        assert hits[0][0] == best and len(hits) == 6
        assert {row[0] for row in fulltext.text_hits(rows, "passage", ["kangaroo"], projects=None, limit=9)} == {
            best,
            elsewhere,
        }
        for hostile in ('"', "a OR", "NEAR(", "'; drop table turns; --", "a\0b", "%", "\\"):
            assert fulltext.text_hits(rows, "passage", [hostile], projects=None, limit=9) == []

    store.write(story)


def test_vectors_find_the_nearest_passages_of_one_model_and_go_with_their_row(store: Store) -> None:
    def story(rows: Rows) -> None:
        model, later = (vectors.ensure_model(rows, name, 4, now=NOW) for name in ("small", "other"))
        keys = [
            memories.insert(rows, memory(f"m{number}", f"text {number}"), text_hash=str(number)) for number in range(3)
        ]
        assert vectors.count_waiting(rows, model) == 3
        made = [(key, 0, 0, 6, bytes([number * 10, 1, 1, 1])) for number, key in enumerate(keys)]
        assert vectors.add_vectors(rows, "memory", model, made, reached=keys[-1]) == 3
        assert vectors.add_vectors(rows, "memory", later, made[:1], reached=keys[0]) == 1
        assert (vectors.count_waiting(rows, model), vectors.count_waiting(rows, later)) == (0, 2)
        near = vectors.find_vector_hits(rows, "memory", model, bytes([10, 1, 1, 1]), projects=None, limit=2)
        assert near[0] == (keys[1], 0, 6, 0.0) and len(near) == 2
        assert near == vectors.find_vector_hits(rows, "memory", model, bytes([10, 1, 1, 1]), projects=[0], limit=2)
        assert vectors.find_vector_hits(rows, "memory", model, bytes(4), projects=[7], limit=2) == []
        gone = memories.by_seqs(rows, keys)[keys[1]]
        memory_deletion.delete_memory(rows, gone)
        assert keys[1] not in {
            row[0] for row in vectors.find_vector_hits(rows, "memory", model, bytes(4), projects=None, limit=9)
        }

    store.write(story)


def test_a_session_has_been_told_what_it_was_given_since_its_context_began(store: Store) -> None:
    def begin(rows: Rows, source: str, second: int) -> None:
        event = Event(id=source, host="claude", name="session_start", session_id="s1", at=at(second), source=source)
        assert events.record_event(rows, event, text_hash="", payload_hash=source)

    def story(rows: Rows) -> None:
        begin(rows, "startup", 0)
        receipts.add_receipt(rows, receipt_id="r1", session_id="s1", event="session_start", project=0, at=at(0), tokens=5,
                            text_hash="h", items=[BriefItem(id="m1", score=0.5, reason="x")])  # fmt: skip
        begin(rows, "resume", 50)
        assert session_context.ids_in_context(rows, "s1") == {"m1"}
        begin(rows, "compact", 90)
        assert session_context.ids_in_context(rows, "s1") == set()
        assert session_context.is_injected(rows, "s1", "m1")

    store.write(story)


def test_a_cursor_moves_with_the_rows_it_stands_for_or_not_at_all(store: Store) -> None:
    def fail(rows: Rows) -> None:
        cursors.move_cursor(rows, "distill", "1", 9)
        cursors.save_file(rows, cursors.FileState(path="/t", device=1, inode=1 << 60, position=9, head="h"), now=NOW)
        raise ValueError

    with pytest.raises(ValueError):
        store.write(fail)
    assert store.read(lambda rows: (cursors.read_cursor(rows, "distill", "1"), cursors.file_positions(rows))) == (0, {})
    store.write(lambda rows: cursors.move_cursor(rows, "distill", "1", 9))
    assert store.read(lambda rows: cursors.read_cursor(rows, "distill", "1")) == 9
