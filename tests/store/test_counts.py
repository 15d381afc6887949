"""What is counted is recounted from the rows, and counters add up."""

from __future__ import annotations

from typing import Any

from csmd.store import counts, events, journal, projects
from csmd.store.core import Store
from csmd.store.sqlite import Rows


def test_counters_add_up_by_name(store: Store) -> None:
    def story(rows: Rows) -> dict[str, int]:
        counts.count(rows, [("bad lines", 2), ("redacted key", 1), ("bad lines", 3)])
        counts.count(rows, [])
        return counts.counters(rows)

    assert store.write(story) == {"bad lines": 5, "redacted key": 1}


def test_an_empty_store_counts_nothing_and_the_scope_of_everything_is_no_project(store: Store) -> None:
    assert set(store.read(counts.counts).values()) == {0}
    assert store.read(counts.projects) == []
    assert store.read(counts.last_event) == {}


def test_the_project_with_the_latest_session_comes_first_and_one_without_last(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        for name in ("old", "silent", "new"):
            projects.ensure(rows, given.project(name), now="")
        for uuid, project, second in (("a", 1, 5), ("b", 3, 9)):
            turn = given.turn(uuid, uuid, session=uuid, second=second)
            journal.add_turn(rows, turn, text_hash=uuid, host="claude", project=project, path="")
        assert counts.projects(rows) == [
            (3, "/home/me/new", "new", 1, 0, given.at(9)),
            (1, "/home/me/old", "old", 1, 0, given.at(5)),
            (2, "/home/me/silent", "silent", 0, 0, ""),
        ]

    store.write(story)


def test_the_latest_of_each_kind_of_event_is_known(store: Store, given: Any) -> None:
    def story(rows: Rows) -> dict[str, str]:
        for ident, name, second in (("a", "prompt", 9), ("b", "prompt", 5), ("c", "stop", 1)):
            event = given.event(ident, name=name, second=second)
            events.record(rows, event, text_hash="", payload_hash=ident)
        return counts.last_event(rows)

    assert store.write(story) == {"prompt": given.at(9), "stop": given.at(1)}
