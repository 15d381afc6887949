"""What is counted is recounted from the rows, and counters add up."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from csmd.store import activity, events, memories, projects, telemetry_rows, tombstones, turns, workspaces
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.store.telemetry_rows import Composition, Lookup


def test_counters_add_up_by_name(store: Store) -> None:
    def story(rows: Rows) -> dict[str, int]:
        activity.increment_counters(rows, [("bad lines", 2), ("redacted key", 1), ("bad lines", 3)])
        activity.increment_counters(rows, [])
        return activity.read_counters(rows)

    assert store.write(story) == {"bad lines": 5, "redacted key": 1}


def test_an_empty_store_counts_nothing_and_the_scope_of_everything_is_no_project(store: Store) -> None:
    assert set(store.read(activity.counts).values()) == {0}
    assert store.read(activity.project_counts) == []
    assert store.read(activity.list_last_event_times) == {}


def test_the_project_with_the_latest_session_comes_first_and_one_without_last(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        for name in ("old", "silent", "new"):
            projects.ensure(rows, given.project(name), now="")
        for uuid, project, second in (("a", 1, 5), ("b", 3, 9)):
            turn = given.turn(uuid, uuid, session=uuid, second=second)
            turns.add_turn(rows, turn, text_hash=uuid, host="claude", project=project, path="")
        assert activity.project_counts(rows) == [
            (3, "/home/me/new", "new", 1, 0, given.at(9)),
            (1, "/home/me/old", "old", 1, 0, given.at(5)),
            (2, "/home/me/silent", "silent", 0, 0, ""),
        ]

    store.write(story)


def test_the_latest_of_each_kind_of_event_is_known(store: Store, given: Any) -> None:
    def story(rows: Rows) -> dict[str, str]:
        for ident, name, second in (("a", "prompt", 9), ("b", "prompt", 5), ("c", "stop", 1)):
            event = given.event(ident, name=name, second=second)
            events.record_event(rows, event, text_hash="", payload_hash=ident)
        return activity.list_last_event_times(rows)

    assert store.write(story) == {"prompt": given.at(9), "stop": given.at(1)}


def test_what_status_shows_is_what_there_is(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        project = projects.ensure(rows, given.project(), now="")
        for number in range(5):
            turn = given.turn(f"u{number}", f"words {number}")
            turns.add_turn(rows, turn, text_hash=f"h{number}", host="claude", project=project, path="")
            events.record_event(rows, given.event(f"e{number}"), text_hash="", payload_hash=f"p{number}")
        assert activity.read_tallies(rows) == activity.counts(rows) and activity.read_tallies(rows)["turns"] == 5
        rows.run("insert into statements (turn_seq, session_seq, project_seq, text, text_hash, gate, category, "
                 "confidence, authority, reasons, at) values (1, 1, 1, 't', 'h', 'g', 'c', 1, 'user', '', '')")  # fmt: skip
        rows.run("delete from turns where seq <= 2")  # its statement goes with it
        assert activity.read_tallies(rows) == activity.counts(rows)
        assert (activity.read_tallies(rows)["turns"], activity.read_tallies(rows)["statements"]) == (3, 0)

    store.write(story)


def test_a_write_that_was_undone_is_not_counted(store: Store, given: Any) -> None:
    def broken(rows: Rows) -> None:
        events.record_event(rows, given.event("e1"), text_hash="", payload_hash="p")
        raise ValueError

    with contextlib.suppress(ValueError):
        store.write(broken)
    assert store.read(activity.read_tallies)["events"] == 0


def test_memories_are_counted_by_gate_and_tier(store: Store, given: Any) -> None:
    def story(rows: Rows) -> list[tuple[str, str, int]]:
        for ident, gate, tier in (
            ("a", "correction", "daily"),
            ("b", "behavioral", "durable"),
            ("c", "behavioral", "durable"),
        ):
            memories.insert(rows, given.memory(ident, ident, gate=gate, tier=tier), text_hash=ident)
        return activity.count_by_gate_and_tier(rows)

    assert store.write(story) == [("behavioral", "durable", 2), ("correction", "daily", 1)]


def test_one_size_is_kept_for_a_day_and_the_latest_days_only(store: Store) -> None:
    days = [f"2026-{month:02}-{day:02}" for month in (1, 2, 3) for day in range(1, 29)]

    def story(rows: Rows) -> list[tuple[str, int]]:
        assert [activity.record_size(rows, day) for day in days] == [True] * len(days)
        assert not activity.record_size(rows, days[-1])
        return activity.list_sizes(rows)

    found = store.write(story)
    assert [day for day, _ in found] == days[-activity.MAX_SIZE_DAYS :]
    assert all(size > 0 for _, size in found)


# --- What was composed and looked for is kept as numbers, for a while, and of no session that was purged.


KEY = b"k" * 32


def composed(at: str, session: str = "s1") -> Composition:
    return Composition(at=at, session_id=session, event="prompt", chosen=0, cut=1, tokens=0, degraded=1, ms=3)


def recalled(at: str) -> Lookup:
    return Lookup(at=at, kind="search", query_hash="h", results=2, top=0.5, ms=4)


def test_only_the_latest_are_kept(store: Store, given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry_rows, "MAX_ROWS", 3)

    def story(rows: Rows) -> None:
        for second in range(6):
            at = given.at(second)
            telemetry_rows.add_records(
                rows, [composed(at), recalled(at)], before=given.at(4) if second == 5 else "", key=KEY
            )
            assert (
                len(telemetry_rows.read_since(rows, Composition, ""))
                == len(telemetry_rows.read_since(rows, Lookup, ""))
                == (2 if second == 5 else min(second + 1, 3))
            )
        assert telemetry_rows.read_since(rows, Composition, given.at(5)) == [composed(given.at(5))]
        assert telemetry_rows.read_since(rows, Lookup, given.at(5)) == [recalled(given.at(5))]

    store.write(story)


def test_a_session_that_was_purged_meanwhile_is_not_noted(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        tombstones.purge_names(rows, "session", ["s1"], key=KEY, now=given.now)
        telemetry_rows.add_records(rows, [composed(given.at(1)), composed(given.at(2), "s2")], before="", key=KEY)
        assert [one.session_id for one in telemetry_rows.read_since(rows, Composition, "")] == ["s2"]

    store.write(story)


def test_every_count_of_memories_leaves_out_the_superseded_which_are_counted_by_themselves(
    store: Store, given: Any
) -> None:
    def story(rows: Rows) -> None:
        project = projects.ensure(rows, given.project(), now="")
        for ident in ("m1", "m2"):
            memories.insert(rows, given.memory(ident, ident, project=project), text_hash=ident)
        rows.run("update memories set superseded_by = 'm2' where id = 'm1'")
        for counts in (activity.counts(rows), activity.read_tallies(rows)):
            assert (counts["memories"], counts["superseded"]) == (1, 1)
        assert [count for *_, count in activity.count_by_gate_and_tier(rows)] == [1]
        assert [count for *_, count, _ in activity.project_counts(rows)] == [1]
        assert [summary.memories for summary in workspaces.list_projects(rows)] == [1]

    store.write(story)
