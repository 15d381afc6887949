"""How far each stage has come is kept with the rows it stands for, and goes nowhere alone."""

from __future__ import annotations

from typing import Any

import pytest

from csmd.errors import StoreError
from csmd.store import activity, cursors, projects, provisional_turns, turns
from csmd.store.core import Store
from csmd.store.cursors import FileState
from csmd.store.sqlite import Rows


def state(**more: Any) -> FileState:
    return FileState(**{"path": "/t.jsonl", "device": 1, "inode": 2, "position": 100, "head": "abc", **more})


def test_a_file_is_known_by_its_path_and_its_latest_state_counts(store: Store) -> None:
    def story(rows: Rows) -> None:
        assert cursors.find_file_state(rows, "/t.jsonl") is None
        cursors.save_file(rows, state(), now="2026-01-01")
        cursors.save_file(rows, state(position=7, inode=1 << 62, bad_lines=3), now="2026-01-03")
        cursors.save_file(rows, state(path="/other"), now="2026-01-02")
        assert cursors.find_file_state(rows, "/t.jsonl") == state(position=7, inode=1 << 62, bad_lines=3)
        assert cursors.file_positions(rows) == {"/t.jsonl": (7, 0), "/other": (100, 0)}
        cursors.save_file(rows, state(path="/late", mtime_ns=9), now="2026-01-02")
        cursors.save_file(rows, state(path="/later", mtime_ns=10), now="2026-01-02")
        assert cursors.file_positions(rows, since=9, limit=5) == {"/later": (100, 10), "/late": (100, 9)}
        assert list(cursors.file_positions(rows, since=9, limit=1)) == ["/later"]

    store.write(story)


def test_a_cursor_begins_at_zero_and_belongs_to_one_stage_and_subject(store: Store) -> None:
    def story(rows: Rows) -> None:
        assert cursors.read_cursor(rows, "distill", "1") == 0
        cursors.move_cursor(rows, "distill", "1", 5)
        cursors.move_cursor(rows, "distill", "1", 3)
        assert [cursors.read_cursor(rows, *of) for of in (("distill", "1"), ("distill", "2"), ("believe", "1"))] == [
            3,
            0,
            0,
        ]

    store.write(story)


def test_a_cursor_does_not_move_when_the_rows_it_stands_for_are_undone(store: Store) -> None:
    def fail(rows: Rows) -> None:
        activity.increment_counters(rows, [("a", 1)])
        cursors.move_cursor(rows, "distill", "1", 5)
        rows.run("insert into nowhere values (1)")

    with pytest.raises(StoreError):
        store.write(fail)
    assert store.read(lambda rows: cursors.read_cursor(rows, "distill", "1")) == 0


def test_a_stage_is_behind_in_the_conversations_of_people_with_turns_past_its_cursor(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        project = projects.ensure(rows, given.project(), now=given.now)
        for uuid, session, second, agent in (
            ("a", "late", 50, ""),
            ("b", "early", 10, ""),
            ("c", "early", 20, ""),
            ("d", "early", 5, "a1"),
        ):
            turn = given.turn(uuid, uuid, session=session, second=second, agent_id=agent)
            turns.add_turn(rows, turn, text_hash=uuid, host="claude", project=project, path="")
        provisional_turns.record_settled(rows, "early", at=given.at(30))
        first, last = cursors.sessions_behind(rows, "distill")
        assert (first.session_id, first.position, first.turns, first.started_at) == ("early", 0, 2, given.at(10))
        assert (first.last_at, first.settled_at, last.session_id) == (given.at(20), given.at(30), "late")
        cursors.move_cursor(rows, "distill", str(first.session_seq), 2)
        assert [behind.session_id for behind in cursors.sessions_behind(rows, "distill")] == ["late"]
        assert len(cursors.sessions_behind(rows, "other")) == 2

    store.write(story)


def test_a_long_session_at_work_is_read_whole_again_when_it_rests_has_grown_or_was_asked_for(
    store: Store, given: Any
) -> None:
    length = 3 * cursors.GROWTH_DIVISOR

    def story(rows: Rows) -> None:
        project = projects.ensure(rows, given.project(), now=given.now)

        def goes_on(first: int, count: int) -> None:
            for number in range(first, first + count):
                turn = given.turn(f"u{number}", "said", session="long", second=30)
                turns.add_turn(rows, turn, text_hash=f"u{number}", host="claude", project=project, path="")

        def is_due(**pace: Any) -> bool:
            at_work = {"quiet_before": given.at(20), "now": given.at(40)}
            return bool(cursors.sessions_behind(rows, "gotchas", pace=cursors.Pace(**{**at_work, **pace})))

        goes_on(0, 1)
        (session,) = cursors.sessions_behind(rows, "gotchas")
        assert is_due(), "of a short one each turn counts"
        goes_on(1, length - 1)
        cursors.move_cursor(rows, "gotchas", str(session.session_seq), length)
        goes_on(length, 3)
        assert not is_due()
        assert is_due(quiet_before=given.at(31)), "it rests"
        assert is_due(now=given.at(29)), "the clock was set back: it would not rest for long"
        assert is_due(required={session.session_seq: length + 3})
        assert not is_due(required={session.session_seq: length}), "what came after it was asked for waits"
        assert cursors.list_sessions_at_work(rows, quiet_before=given.at(30)) == {session.session_seq: length + 3}
        assert cursors.list_sessions_at_work(rows, quiet_before=given.at(31)) == {}
        goes_on(length + 3, 1)
        assert is_due(), "it has grown by a hundredth"

    store.write(story)
