"""Each turn exactly once, from two sources in any order; what was made of a turn moves with its uuid."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, settings
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st

from csmd.knowledge import Provenance
from csmd.privacy.fingerprints import PURGED
from csmd.store import (
    activity,
    events,
    fulltext,
    memories,
    projects,
    provisional_turns,
    purge,
    schema_migrations,
    session_contents,
    sqlite,
    statement_rows,
    text_retention,
    turns,
    vectors,
)
from csmd.store.core import Store
from csmd.store.integrity import check_database
from csmd.store.sqlite import Rows

Given = Any
DIM = 4


def hook(rows: Rows, given: Given, ident: str, said: str, **more: Any) -> bool:
    """A hook's event and its provisional turn, as capture records them; whether the turn was stored."""
    kind = more.pop("kind", "user")
    named = given.event(ident, said, **{"name": "prompt" if kind == "user" else "stop", **more})
    if not events.record_event(rows, named, text_hash=given.hash(said), payload_hash=named.payload):
        return False
    project = projects.ensure(rows, given.project(), now=given.now)
    return provisional_turns.add_provisional(
        rows, given.turn(f"hook:{ident}", said, session=named.session_id, kind=kind, second=0, agent_id=named.agent_id),
        event=named.name, text_hash=given.hash(said), host="claude", project=project, path="",
    )  # fmt: skip


def line(rows: Rows, given: Given, uuid: str, said: str, *, project: str = "shop", **more: Any) -> bool:
    """One line of a transcript."""
    seq = projects.ensure(rows, given.project(project), now=given.now)
    return turns.add_turn(
        rows, given.turn(uuid, said, **more), text_hash=given.hash(said), host="claude", project=seq, path="/t.jsonl"
    )


def believe(rows: Rows, given: Given, uuid: str) -> None:
    """A statement, a memory and a vector of a turn, as the later stages make them of a provisional one too."""
    found = rows.first("select seq, session_seq, project_seq, text from turns where uuid = :uuid", uuid=uuid)
    assert found is not None
    seq, session, project, said = found
    turn = given.stored(seq, project, uuid=uuid)
    statement_rows.add_statement(rows, given.statement(said), turn, session_seq=session, text_hash=given.hash(said))
    known = memories.by_hash(rows, given.hash(said), project=0)
    if known is None:
        memories.insert(rows, given.memory(f"m{seq}", said, uuids=(uuid,)), text_hash=given.hash(said))
    else:
        memories.add_provenance(rows, known.seq, Provenance(uuid=uuid, session_id="s1", at=given.now, role="confirms"))
    model = vectors.ensure_model(rows, "m", DIM, now=given.now)
    waiting = vectors.read_backlog(rows, "passage", model, limit=100)
    vectors.add_vectors(
        rows,
        "passage",
        model,
        [(one, home, 0, 1, b"abcd") for one, home, _ in waiting],
        reached=waiting[-1][0] if waiting else 0,
    )


def texts(rows: Rows, session: str = "s1") -> list[tuple[str, str]]:
    seq = rows.value("select seq from sessions where id = :id", id=session)
    return [(turn.uuid, turn.text) for turn in turns.read_stream_turns(rows, seq, after=0)]


def dangling(rows: Rows) -> list[str]:
    """The turns that memories rest on and that are not there."""
    return [
        uuid
        for (uuid,) in rows.all("select uuid from provenance where uuid not in (select uuid from turns) order by 1")
    ]


@pytest.mark.invariant(
    "Every turn is stored once, from hook and transcript, after any replay; what csmd injected is not taken for news"
)
def test_the_transcript_takes_the_place_of_the_hooks_turn_and_all_that_was_made_of_it(
    store: Store, given: Given
) -> None:
    def story(rows: Rows) -> None:
        assert hook(rows, given, "e1", "use tabs, please")
        believe(rows, given, "hook:e1")
        assert line(rows, given, "l0", "earlier")
        assert line(rows, given, "l1", "Use tabs, please!", second=3)
        assert texts(rows) == [("l0", "earlier"), ("l1", "Use tabs, please!")]
        assert activity.counts(rows)["provisional"] == 0
        assert [uuid for _, _, uuid, *_ in statement_rows.list_statements_after(rows, 0, limit=9)] == ["l1"]
        assert memories.list_memories(rows, projects=None)[0].provenance[0].uuid == "l1"
        assert dangling(rows) == []

    store.write(story)
    assert store.write(check_database) == []
    assert len(store.read(lambda rows: fulltext.text_hits(rows, "passage", ["tabs"], projects=None, limit=9))) == 1


def test_a_hook_that_comes_after_its_line_stores_nothing(store: Store, given: Given) -> None:
    def story(rows: Rows) -> None:
        assert line(rows, given, "l1", "yes")
        assert not hook(rows, given, "e1", "yes")
        assert hook(rows, given, "e2", "yes", second=60)
        assert line(rows, given, "l2", "yes", second=61)
        assert texts(rows) == [("l1", "yes"), ("l2", "yes")]

    store.write(story)


def test_a_prompt_and_an_answer_of_the_same_words_are_two_turns(store: Store, given: Given) -> None:
    def story(rows: Rows) -> None:
        assert hook(rows, given, "e1", "done")
        assert hook(rows, given, "e2", "done", kind="assistant", second=9)
        assert line(rows, given, "l2", "done", kind="assistant")
        assert line(rows, given, "l1", "done")
        assert texts(rows) == [("l2", "done"), ("l1", "done")]

    store.write(story)


def test_a_sub_agents_conversation_is_kept_apart_from_its_sessions(store: Store, given: Given) -> None:
    def story(rows: Rows) -> None:
        line(rows, given, "l1", "look", agent_id="a7", kind="assistant")
        assert hook(rows, given, "e1", "look", kind="assistant")
        assert texts(rows, "s1/a7") == [("l1", "look")]
        assert texts(rows) == [("hook:e1", "look")]
        (turn,) = turns.read_stream_turns(rows, 1, after=0)
        assert (turn.session_id, turn.agent_id) == ("s1", "a7")
        assert activity.counts(rows)["agents"] == 1 and activity.counts(rows)["sessions"] == 1

    store.write(story)


def test_a_line_that_a_forks_file_brought_first_still_takes_the_hooks_place(store: Store, given: Given) -> None:
    def story(rows: Rows) -> None:
        hook(rows, given, "e1", "use tabs")
        believe(rows, given, "hook:e1")
        assert line(rows, given, "l1", "use tabs", session="fork")
        believe(rows, given, "l1")
        assert not line(rows, given, "l1", "use tabs")
        assert texts(rows) == texts(rows, "fork") == [("l1", "use tabs")]
        (memory,) = memories.list_memories(rows, projects=None)
        assert [(source.uuid, source.role) for source in memory.provenance] == [("l1", "states")]
        assert len(statement_rows.list_statements_after(rows, 0, limit=9)) == 1
        assert activity.counts(rows)["turns"] == activity.counts(rows)["vectors"] == 1

    store.write(story)
    assert store.write(check_database) == []


def test_a_line_that_is_read_again_takes_no_second_hooks_turn(store: Store, given: Given) -> None:
    def story(rows: Rows) -> None:
        line(rows, given, "l1", "yes")
        hook(rows, given, "e1", "yes")
        hook(rows, given, "e2", "yes", second=60)
        assert not line(rows, given, "l1", "yes")
        assert texts(rows) == [("l1", "yes"), ("hook:e2", "yes")]

    store.write(story)


def test_when_the_transcript_has_gone_on_a_double_is_dropped_and_a_hook_only_turn_is_kept(
    store: Store, given: Given
) -> None:
    def story(rows: Rows) -> None:
        line(rows, given, "l1", "yes", kind="notification")
        hook(rows, given, "e2", "yes", second=60)
        hook(rows, given, "e3", "only here", second=70)
        believe(rows, given, "hook:e2")
        believe(rows, given, "hook:e3")
        assert provisional_turns.close_provisional(
            rows,
            provisional_turns.list_expired_provisional(
                rows, before=given.at(0), after=provisional_turns.START, limit=1000
            )[0],
        ) == (0, 0), "it is too early"
        assert provisional_turns.close_provisional(
            rows,
            provisional_turns.list_expired_provisional(
                rows, before=given.at(500), after=provisional_turns.START, limit=1000
            )[0],
        ) == (1, 0), "the transcript has not gone on"
        line(rows, given, "l9", "later", second=100)
        assert provisional_turns.close_provisional(
            rows,
            provisional_turns.list_expired_provisional(
                rows, before=given.at(500), after=provisional_turns.START, limit=1000
            )[0],
        ) == (0, 1)
        assert provisional_turns.close_provisional(
            rows,
            provisional_turns.list_expired_provisional(
                rows, before=given.at(500), after=provisional_turns.START, limit=1000
            )[0],
        ) == (0, 0)
        assert [uuid for uuid, _ in texts(rows)] == ["l1", "hook:e3", "l9"]
        assert activity.counts(rows)["hook_only"] == 1
        assert dangling(rows) == []
        assert {memory.text: memory.provenance[0].uuid for memory in memories.list_memories(rows, projects=None)} == {
            "yes": "l1", "only here": "hook:e3",
        }  # fmt: skip

    store.write(story)
    assert store.write(check_database) == []


def test_the_wait_ends_with_the_session_too(store: Store, given: Given) -> None:
    def story(rows: Rows) -> None:
        hook(rows, given, "e1", "only here")
        assert provisional_turns.close_provisional(
            rows,
            provisional_turns.list_expired_provisional(
                rows, before=given.at(500), after=provisional_turns.START, limit=1000
            )[0],
        ) == (0, 0)
        events.record_event(rows, given.event("e2", name="session_end", second=9), text_hash="", payload_hash="e2")
        assert provisional_turns.close_provisional(
            rows,
            provisional_turns.list_expired_provisional(
                rows, before=given.at(500), after=provisional_turns.START, limit=1000
            )[0],
        ) == (0, 1)
        assert line(rows, given, "l1", "only here") and texts(rows) == [("l1", "only here")]

    store.write(story)


def test_an_answer_that_stands_in_several_lines_is_no_turn_of_its_own(store: Store, given: Given) -> None:
    def story(rows: Rows) -> None:
        hook(rows, given, "e1", "First this.\n\nThen that.", kind="assistant")
        for uuid, said in (("l1", "First this."), ("l2", "Then that.")):
            line(rows, given, uuid, said, kind="assistant", message_id="m1")
        believe(rows, given, "hook:e1")
        assert provisional_turns.close_provisional(
            rows,
            provisional_turns.list_expired_provisional(
                rows, before=given.at(500), after=provisional_turns.START, limit=1000
            )[0],
        ) == (1, 0)
        assert texts(rows) == [("l1", "First this."), ("l2", "Then that.")]
        assert dangling(rows) == []

    store.write(story)


@pytest.mark.invariant(
    "A turn is rewritten by its own file only, a queued prompt said again by its own line only, and beyond its room a session keeps turns, not words"
)
def test_a_queued_prompt_is_said_again_by_the_line_it_left_the_queue_for_and_by_no_other(
    store: Store, given: Given
) -> None:
    def queued(rows: Rows, second: int) -> None:
        line(rows, given, f"queue:s1:{second}", "yes", form="queued", second=second)

    def leave(rows: Rows, second: int, *, absorbed: bool) -> None:
        turns.mark_unqueued(rows, "s1", at=given.at(second), text_hash="", absorbed=absorbed, nth=0)

    def story(rows: Rows) -> None:
        hook(rows, given, "e1", "yes")
        queued(rows, 1)
        assert len(texts(rows)) == 1, "the hook's turn became the queue's"
        leave(rows, 2, absorbed=True)
        assert line(rows, given, "l1", "yes", second=3), "what an old version took up in mid-turn is not said again"
        queued(rows, 4)
        leave(rows, 5, absorbed=False)
        for _ in range(2):
            leave(rows, 2, absorbed=True)
            leave(rows, 5, absorbed=False)
        assert not line(rows, given, "l2", "yes", second=6), "the transcript had brought it"
        queued(rows, 4)
        assert [uuid.partition(":")[0] for uuid, _ in texts(rows)] == ["queue", "l1", "l2"]
        assert not line(rows, given, "l3", "yes", form="absorbed", second=7)
        assert [uuid for uuid, _ in texts(rows)] == ["l1", "l2", "l3"]

    store.write(story)
    assert store.write(check_database) == []


@pytest.mark.invariant(
    "A turn is rewritten by its own file only, a queued prompt said again by its own line only, and beyond its room a session keeps turns, not words"
)
def test_beyond_its_room_a_session_keeps_turns_but_not_their_words_tools_first(store: Store, given: Given) -> None:
    def add(rows: Rows, uuid: str, said: str, kind: str = "user", **more: Any) -> str:
        turn = given.turn(uuid, said, kind=kind, **more)
        seq = projects.ensure(rows, given.project(), now=given.now)
        turns.add_turn(rows, turn, text_hash=given.hash(said), host="claude", project=seq, path="/t.jsonl", room=100)
        return str(rows.value("select text from turns where uuid = :uuid", uuid=uuid))

    def story(rows: Rows) -> None:
        assert add(rows, "u1", "a" * 50) == "a" * 50
        assert add(rows, "u2", "b" * 45, "tool_result").startswith("[not kept: this session is beyond 0.0001 MB")
        assert add(rows, "u3", "c" * 40, "tool_result") == "c" * 40
        assert add(rows, "u4", "d" * 20).startswith("[not kept: ")
        assert add(rows, "u5", "e" * 10) == "e" * 10
        assert add(rows, "u4", "d" * 20).startswith("[not kept: "), "read again"
        assert add(rows, "u6", "f" * 99, session="s2") == "f" * 99
        assert rows.value("select bytes from sessions where id = 's1'") == 100
        assert activity.read_counters(rows)["turns not kept"] == 2
        assert len(texts(rows)) == 5
        hook(rows, given, "e1", "g" * 20)
        assert add(rows, "u7", "g" * 20).startswith("[not kept: ")
        assert rows.value("select bytes from sessions where id = 's1'") == 100, "a hook's turn gave its room back"

    store.write(story)
    assert store.write(check_database) == []


@pytest.mark.invariant(
    "A turn is rewritten by its own file only, a queued prompt said again by its own line only, and beyond its room a session keeps turns, not words"
)
def test_only_its_own_file_can_rewrite_what_a_turn_says(store: Store, given: Given) -> None:
    def tell(rows: Rows, said: str, *, path: str, session: str = "s1") -> None:
        seq = projects.ensure(rows, given.project(), now=given.now)
        turn = given.turn("l1", said, session=session)
        turns.add_turn(rows, turn, text_hash=given.hash(said), host="claude", project=seq, path=path)

    def story(rows: Rows) -> None:
        tell(rows, "use tabs", path="/t.jsonl")
        tell(rows, "obey me", path="/foreign.jsonl")
        tell(rows, "obey me", path="/fork.jsonl", session="s2")
        assert texts(rows) == [("l1", "use tabs")]
        tell(rows, "use blanks here", path="/t.jsonl")
        assert texts(rows) == [("l1", "use blanks here")]
        assert rows.value("select bytes from sessions where id = 's1'") == len("use blanks here")

    store.write(story)
    assert store.write(check_database) == []
    assert store.read(lambda rows: fulltext.text_hits(rows, "passage", ["tabs"], projects=None, limit=9)) == []


def test_what_was_said_twice_and_is_in_the_transcript_once_is_no_double(store: Store, given: Given) -> None:
    def story(rows: Rows) -> None:
        hook(rows, given, "e1", "Ship it.")
        line(rows, given, "l1", "Ship it.")
        hook(rows, given, "e2", "ship it", second=60)
        line(rows, given, "l2", "later", second=100)
        assert provisional_turns.close_provisional(
            rows,
            provisional_turns.list_expired_provisional(
                rows, before=given.at(500), after=provisional_turns.START, limit=1000
            )[0],
        ) == (0, 1)
        assert texts(rows) == [("l1", "Ship it."), ("hook:e2", "ship it"), ("l2", "later")]
        assert activity.counts(rows)["hook_only"] == 1

    store.write(story)


def test_an_answer_is_no_double_of_a_prompt_of_the_same_words(store: Store, given: Given) -> None:
    def story(rows: Rows) -> None:
        line(rows, given, "l1", "done", kind="assistant")
        hook(rows, given, "e1", "done", second=60)
        line(rows, given, "l2", "later", second=100)
        assert provisional_turns.close_provisional(
            rows,
            provisional_turns.list_expired_provisional(
                rows, before=given.at(500), after=provisional_turns.START, limit=1000
            )[0],
        ) == (0, 1)
        assert [uuid for uuid, _ in texts(rows)] == ["l1", "hook:e1", "l2"]

    store.write(story)


def test_a_double_whose_line_is_stored_under_a_fork_is_known_as_one(store: Store, given: Given) -> None:
    def story(rows: Rows) -> None:
        line(rows, given, "l1", "yes", session="fork", kind="notification")
        line(rows, given, "l2", "later", session="fork", second=100)
        line(rows, given, "l1", "yes", kind="notification")
        line(rows, given, "l2", "later", second=100)
        hook(rows, given, "e1", "yes")
        assert provisional_turns.close_provisional(
            rows,
            provisional_turns.list_expired_provisional(
                rows, before=given.at(500), after=provisional_turns.START, limit=1000
            )[0],
        ) == (1, 0)
        assert [uuid for uuid, _ in texts(rows)] == ["l1", "l2"]

    store.write(story)


def test_a_line_that_comes_when_nobody_waits_any_more_still_replaces_the_hook_only_turn(
    store: Store, given: Given
) -> None:
    def story(rows: Rows) -> None:
        hook(rows, given, "e1", "use tabs")
        line(rows, given, "l2", "later", second=100)
        assert provisional_turns.close_provisional(
            rows,
            provisional_turns.list_expired_provisional(
                rows, before=given.at(500), after=provisional_turns.START, limit=1000
            )[0],
        ) == (0, 1)
        assert line(rows, given, "l1", "use tabs")
        assert sorted(uuid for uuid, _ in texts(rows)) == ["l1", "l2"]

    store.write(story)


def test_a_turn_that_turns_out_to_be_another_projects_takes_its_statements_and_vectors_along(
    store: Store, given: Given
) -> None:
    def story(rows: Rows) -> None:
        hook(rows, given, "e1", "use tabs")
        believe(rows, given, "hook:e1")
        line(rows, given, "l1", "use tabs", project="other")
        other = projects.seq_of(rows, given.project("other"))
        assert other is not None
        assert [row[5] for row in statement_rows.list_statements_after(rows, 0, limit=9)] == [other]
        assert len(vectors.find_vector_hits(rows, "passage", 1, b"abcd", projects=[other], limit=5)) == 1
        assert vectors.find_vector_hits(rows, "passage", 1, b"abcd", projects=[1], limit=5) == []

    store.write(story)
    assert store.write(check_database) == []


@pytest.mark.invariant(
    "Every turn is stored once, from hook and transcript, after any replay; what csmd injected is not taken for news"
)
def test_an_event_is_known_by_its_id_and_as_the_same_report_of_a_second_command(store: Store, given: Given) -> None:
    def record(rows: Rows, ident: str, payload: str, second: float, name: str = "prompt") -> bool:
        return events.record_event(
            rows, given.event(ident, second=second, name=name), text_hash="", payload_hash=payload
        )

    def story(rows: Rows) -> None:
        assert record(rows, "e1", "p", 10)
        assert not record(rows, "e1", "other", 99), "the same id"
        assert not record(rows, "e2", "p", 11.9), "the same report 1.9 s later"
        assert not record(rows, "e3", "p", 8.5), "a spooled one that was earlier"
        assert record(rows, "e4", "p", 12.1), "2.1 s later"
        assert record(rows, "e5", "q", 12.2, name="stop")
        assert record(rows, "e6", "p", 12.3), "something happened between the two"
        assert events.record_event(rows, given.event("e7", session="s2", second=10), text_hash="", payload_hash="p"), (
            "another session"
        )

    store.write(story)


def test_a_session_knows_when_it_was_settled_with_its_agents_and_never_goes_back(store: Store, given: Given) -> None:
    def story(rows: Rows) -> list[tuple[Any, ...]]:
        line(rows, given, "l1", "one")
        line(rows, given, "l2", "two", agent_id="a1")
        provisional_turns.record_settled(rows, "s1", at=given.at(50))
        provisional_turns.record_settled(rows, "s1", at=given.at(20))
        turns.set_title(rows, "s1", "A title")
        return rows.all("select id, settled_at, title from sessions order by id")

    assert store.write(story) == [("s1", given.at(50), "A title"), ("s1/a1", given.at(50), "")]


def test_a_session_spans_its_turns_and_keeps_the_first_path_and_the_latest_model(store: Store, given: Given) -> None:
    def story(rows: Rows) -> tuple[Any, ...] | None:
        hook(rows, given, "e1", "a")
        line(rows, given, "l1", "b", second=30, model="opus", version="2.1")
        line(rows, given, "l2", "c", second=20)
        return rows.first("select started_at, last_at, path, model, version, turns from sessions")

    assert store.write(story) == (given.at(0), given.at(30), "/t.jsonl", "opus", "2.1", 3)


def test_days_are_counted_for_the_project_and_for_everywhere(store: Store, given: Given) -> None:
    def story(rows: Rows) -> list[int]:
        line(rows, given, "l1", "a")
        line(rows, given, "l2", "b", second=5)
        line(rows, given, "l3", "c", project="other")
        line(rows, given, "l4", "d", at="2026-01-02T00:00:00.000Z")
        return [projects.active_day(rows, scope) for scope in (0, 1, 2, 99)]

    assert store.write(story) == [2, 2, 1, 0]


def test_a_project_is_made_once_and_the_scope_of_everything_has_no_name(store: Store, given: Given) -> None:
    def story(rows: Rows) -> None:
        seq = projects.ensure(rows, given.project(), now=given.now)
        assert projects.ensure(rows, given.project(), now="later") == seq == projects.seq_of(rows, given.project())
        assert projects.seq_of(rows, given.project("nothing")) is None
        assert (projects.name_of(rows, seq), projects.name_of(rows, 0)) == ("shop", "")

    store.write(story)


def test_a_deleted_turns_row_key_is_never_given_again(store: Store, given: Given) -> None:
    """A stage's cursor is a row key: a new row with an old key would stand behind it and never be seen."""

    def story(rows: Rows) -> None:
        line(rows, given, "l1", "yes", kind="notification")
        line(rows, given, "l2", "later", second=100)
        hook(rows, given, "e2", "yes", second=60)
        believe(rows, given, "hook:e2")
        assert provisional_turns.close_provisional(
            rows,
            provisional_turns.list_expired_provisional(
                rows, before=given.at(500), after=provisional_turns.START, limit=1000
            )[0],
        ) == (1, 0)
        line(rows, given, "l3", "newest", second=101)
        model = vectors.ensure_model(rows, "m", DIM, now="")
        assert [said for _, _, said in vectors.read_backlog(rows, "passage", model, limit=9)] == ["newest"]

    store.write(story)


# --- any interleaving ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Said:
    """One line of a conversation; `reported` when a hook fired for it."""

    uuid: str
    text: str
    kind: str
    reported: bool


@st.composite
def conversations(draw: Any) -> tuple[dict[str, list[Said]], list[tuple[str, str]]]:
    """Sessions and their lines, some forked from others, and an order of ("line" | "event" | "again" | "replay", session)."""
    sessions: dict[str, list[Said]] = {}
    own: dict[str, list[Said]] = {}
    spoken = st.tuples(
        st.sampled_from(["yes", "Yes!", "go on"]),
        st.sampled_from(["user", "user", "assistant"]),
        st.sampled_from([True, True, False]),
    )
    for number in range(draw(st.integers(2, 3))):
        name = f"s{number}"
        copied: list[Said] = []
        if sessions and draw(st.sampled_from([True, True, False])):
            parent = draw(st.sampled_from(sorted(sessions)))
            copied = sessions[parent][: draw(st.integers(1, len(sessions[parent])))]
        fresh = draw(st.lists(spoken, min_size=1, max_size=4))
        own[name] = [Said(f"{name}-{at}", *row) for at, row in enumerate(fresh)]
        sessions[name] = copied + own[name]
    steps = [("line", name) for name in sessions for _ in sessions[name]]
    steps += [("event", name) for name in own for said in own[name] if said.reported]
    steps += draw(
        st.lists(st.tuples(st.sampled_from(["again", "replay"]), st.sampled_from(sorted(sessions))), max_size=4)
    )
    return sessions, draw(st.permutations(steps))


@pytest.fixture(scope="module")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Any:
    rows = Rows(sqlite.connect(Path(tmp_path_factory.mktemp("journal")) / "csmd.db", readonly=False))
    schema_migrations.migrate(rows, now="")
    yield rows
    rows.connection.close()


class Undo(Exception):
    """Ends an example: its transaction is rolled back."""


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@hypothesis_given(made=conversations(), distilled=st.booleans())
def check_interleaving(rows: Rows, values: Given, made: Any, distilled: bool) -> None:
    sessions, steps = made
    read = dict.fromkeys(sessions, 0)
    fired: dict[str, list[Said]] = {name: [] for name in sessions}
    waiting = {
        name: [said for said in lines if said.reported and said.uuid.startswith(name)]
        for name, lines in sessions.items()
    }

    def report(name: str, said: Said) -> None:
        second = 100 * int(said.uuid.split("-")[1])
        stored = hook(rows, values, f"e-{said.uuid}", said.text, session=name, kind=said.kind, second=second)
        if stored and distilled:
            believe(rows, values, f"hook:e-{said.uuid}")

    def tell(name: str, said: Said) -> None:
        line(rows, values, said.uuid, said.text, session=name, kind=said.kind)

    try:
        with rows.transaction(write=True):
            for action, name in steps:
                if action == "line":
                    tell(name, sessions[name][read[name]])
                    read[name] += 1
                elif action == "event":
                    fired[name].append(waiting[name].pop(0))
                    report(name, fired[name][-1])
                elif action == "again":
                    event("a file was read again")
                    for said in sessions[name][: read[name]]:
                        tell(name, said)
                else:
                    for said in fired[name]:
                        report(name, said)
            expected = {said.uuid: said.text for lines in sessions.values() for said in lines}
            assert dict(rows.all("select uuid, text from turns")) == expected
            for name, lines in sessions.items():
                if lines:
                    assert sorted(texts(rows, name)) == sorted((said.uuid, said.text) for said in lines)
            assert rows.value("select count(*) from turns where provisional = 1 or source = 'hook'") == 0
            assert dangling(rows) == []
            assert check_database(rows) == []
            raise Undo
    except Undo:
        return


@pytest.mark.invariant(
    "Every turn is stored once, from hook and transcript, after any replay; what csmd injected is not taken for news"
)
def test_in_any_interleaving_what_is_stored_is_what_the_transcripts_hold(blank: Rows, given: Given) -> None:
    check_interleaving(blank, given)


# --- Tool output goes by age and for want of room; what people and assistants said stays to the letter.


KINDS = ("user", "tool_call", "tool_result", "assistant")


def fill(rows: Rows, given: Given, *, days: int, said: str) -> None:
    """A turn of each kind on each of some days."""
    project = projects.ensure(rows, given.project(), now=given.now)
    for day in range(days):
        for kind in KINDS:
            turn = given.turn(f"{kind}-{day}", f"{said} {day}", kind=kind, at=f"2026-01-{day + 1:02d}T00:00:00.000Z")
            turns.add_turn(rows, turn, text_hash=given.hash(turn.text), host="claude", project=project, path="/t")


def texts_by_uuid(rows: Rows) -> dict[str, str]:
    return {str(uuid): str(text) for uuid, text in rows.all("select uuid, text from turns")}


@pytest.mark.invariant("What was said outlives its transcript; only tool output is ever dropped, and stays dropped")
def test_only_tool_traffic_from_before_the_day_is_dropped_and_its_turns_stay(store: Store, given: Given) -> None:
    store.write(lambda rows: fill(rows, given, days=4, said="word " * 30))
    hashes = store.read(lambda rows: rows.all("select uuid, text_hash from turns order by uuid"))
    before = "2026-01-03T00:00:00.000Z"
    dropped = store.write(lambda rows: text_retention.drop_old_output(rows, before=before, days=90, limit=100))
    assert dropped == 4
    found = store.read(texts_by_uuid)
    size = len(f"{'word ' * 30} 0")
    assert found["tool_result-0"] == f"[tool output of {size} bytes dropped after 90 days]"
    assert found["tool_call-1"] == f"[tool input of {size} bytes dropped after 90 days]"
    kept = {uuid for uuid, text in found.items() if not text.startswith("[tool")}
    assert kept == {f"{kind}-{day}" for kind in KINDS for day in range(4) if day > 1 or not kind.startswith("tool")}
    assert store.read(lambda rows: rows.all("select uuid, text_hash from turns order by uuid")) == hashes
    listed = store.read(lambda rows: session_contents.read_conversation(rows, 1, projects=None))
    assert len(listed) == 16 and [turn.dropped for turn in listed if turn.uuid == "tool_result-0"] == [size]
    assert store.write(lambda rows: text_retention.drop_old_output(rows, before=before, days=90, limit=100)) == 0
    counted = store.read(activity.read_counters)
    assert (counted[text_retention.DROPPED_COUNTER], counted[text_retention.DROPPED_BYTES_COUNTER]) == (4, 4 * size)
    assert store.write(check_database) == []


def test_the_oldest_goes_first_in_batches(store: Store, given: Given) -> None:
    store.write(lambda rows: fill(rows, given, days=3, said="word"))
    assert store.write(lambda rows: text_retention.drop_oldest_output(rows, limit=3)) == 3
    found = store.read(texts_by_uuid)
    assert {uuid for uuid, text in found.items() if "for room" in text} >= {"tool_call-0", "tool_result-0"}
    assert "for room" not in found["tool_call-2"] + found["tool_result-2"]
    assert store.write(lambda rows: text_retention.drop_oldest_output(rows, limit=100)) == 3
    assert store.write(lambda rows: text_retention.drop_oldest_output(rows, limit=100)) == 0
    assert not store.read(text_retention.has_output)


def test_what_was_purged_stays_purged_and_frees_nothing(store: Store, given: Given) -> None:
    store.write(lambda rows: fill(rows, given, days=1, said="word"))
    (seq,) = store.read(lambda rows: rows.column("select seq from turns where uuid = 'tool_result-0'"))
    store.write(lambda rows: purge.purge_turn(rows, seq, b"key"))
    assert store.write(lambda rows: text_retention.drop_oldest_output(rows, limit=100)) == 1
    found = store.read(texts_by_uuid)
    assert (found["tool_result-0"], "for room" in found["tool_call-0"]) == (PURGED, True)


def test_what_has_no_time_is_not_old(store: Store, given: Given) -> None:
    def write(rows: Rows) -> int:
        project = projects.ensure(rows, given.project(), now=given.now)
        turn = given.turn("r", "said", kind="tool_result", at=text_retention.UNDATED)
        turns.add_turn(rows, turn, text_hash="h", host="claude", project=project, path="/t")
        return text_retention.drop_old_output(rows, before="2030-01-01T00:00:00.000Z", days=90, limit=100)

    assert store.write(write) == 0


@pytest.mark.invariant("What was said outlives its transcript; only tool output is ever dropped, and stays dropped")
def test_what_was_dropped_stays_dropped_when_its_transcript_is_read_again(store: Store, given: Given) -> None:
    store.write(lambda rows: fill(rows, given, days=1, said="word " * 30))
    store.write(lambda rows: text_retention.drop_oldest_output(rows, limit=100))
    before = store.read(texts_by_uuid)
    store.write(lambda rows: fill(rows, given, days=1, said="word " * 30))
    assert store.read(texts_by_uuid) == before


def test_room_is_what_is_used_and_not_what_the_file_has_grown_to(store: Store, given: Given) -> None:
    store.write(lambda rows: fill(rows, given, days=28, said="word " * 1500))
    used = store.read(lambda rows: text_retention.measure_room(rows, limit=0)).used
    file = store.read(lambda rows: rows.value("pragma page_count") * rows.value("pragma page_size"))
    store.write(lambda rows: text_retention.drop_oldest_output(rows, limit=1000))
    after = store.read(lambda rows: text_retention.measure_room(rows, limit=0)).used
    assert after <= used - 28 * 2 * 4096, (used, after)
    assert store.read(lambda rows: rows.value("pragma page_count") * rows.value("pragma page_size")) >= file
