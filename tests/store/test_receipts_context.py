"""What a session has in its context: told, or said in it, since that began; a receipt for each injection."""

from __future__ import annotations

from typing import Any

import pytest

from csmd.briefs import BriefItem
from csmd.store import events, memories, project_merges, projects, receipts, session_context, turns
from csmd.store.core import Store
from csmd.store.sqlite import Rows


def receipt(
    rows: Rows, given: Any, ident: str, *items: str, second: float, session: str = "s1", project: int = 0
) -> None:
    receipts.add_receipt(
        rows, receipt_id=ident, session_id=session, event="prompt", project=project, at=given.at(second), tokens=len(items),
        text_hash="h", items=[BriefItem(id=item, score=0.5, reason="words") for item in items],
    )  # fmt: skip


def begin(rows: Rows, given: Any, source: str, *, second: float, session: str = "s1") -> None:
    event = given.event(f"{source}-{second}", session=session, second=second, name="session_start", source=source)
    assert events.record_event(rows, event, text_hash="", payload_hash=event.id)


@pytest.mark.parametrize(
    ("source", "kept"), [("startup", False), ("clear", False), ("compact", False), ("resume", True)]
)
def test_a_session_that_begins_afresh_has_been_told_nothing_yet(
    store: Store, given: Any, source: str, kept: bool
) -> None:
    def story(rows: Rows) -> None:
        begin(rows, given, "startup", second=0)
        receipt(rows, given, "r1", "m1", "m2", second=0)
        assert session_context.ids_in_context(rows, "s1") == {"m1", "m2"}, "told in the answer to its start"
        begin(rows, given, source, second=100)
        assert session_context.ids_in_context(rows, "s1") == ({"m1", "m2"} if kept else set())
        assert session_context.is_injected(rows, "s1", "m1"), "use is use, whatever was compacted since"
        receipt(rows, given, "r2", "m2", second=100)
        assert "m2" in session_context.ids_in_context(rows, "s1")
        assert session_context.ids_in_context(rows, "s2") == set() and not session_context.is_injected(rows, "s2", "m1")

    store.write(story)


def test_another_sessions_start_is_not_this_ones(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        receipt(rows, given, "r1", "m1", second=0)
        begin(rows, given, "compact", second=100, session="s2")
        assert session_context.ids_in_context(rows, "s1") == {"m1"}

    store.write(story)


def test_a_receipt_is_written_once_with_each_item_once(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        receipt(rows, given, "r1", "m1", "m1", "m2", second=0)
        receipt(rows, given, "r1", "m3", second=5)
        receipt(rows, given, "r2", second=9)
        found = receipts.list_receipts(rows, projects=None, limit=9)
        assert [(one.receipt.id, one.receipt.at, one.receipt.tokens, one.items) for one in found] == [
            ("r2", given.at(9), 0, 0),
            ("r1", given.at(0), 3, 2),
        ]
        assert len(receipts.list_receipts(rows, projects=None, session_id="s1", limit=1)) == 1
        assert (
            receipts.list_receipts(rows, projects=[7], limit=9)
            == receipts.list_receipts(rows, projects=None, session_id="s2", limit=9)
            == []
        )

    store.write(story)


def test_what_was_said_in_a_session_needs_not_be_told_to_it(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        memories.insert(rows, given.memory("m1", "use tabs"), text_hash="h")
        assert session_context.ids_in_context(rows, "s1") == {"m1"}
        begin(rows, given, "compact", second=100)
        assert session_context.ids_in_context(rows, "s1") == set()

    store.write(story)


def test_a_receipt_of_a_project_unknown_at_a_sessions_start_counts_for_its_sessions_project_alone(
    store: Store, given: Any
) -> None:
    def story(rows: Rows) -> None:
        here = projects.ensure(rows, given.project("shop"), now=given.now)
        other = projects.ensure(rows, given.project("forge"), now=given.now)
        receipt(rows, given, "r1", "m1", second=0)
        assert receipts.find_last_session(rows, [here, 0]) == "", "a session that was not read is in no project"
        turns.add_turn(rows, given.turn("u1", "hello"), text_hash="h", host="claude", project=here, path="")
        assert receipts.find_last_session(rows, [here, 0]) == "s1"
        (listed,) = receipts.list_receipts(rows, projects=[here, 0], limit=9)
        assert (
            listed.receipt.project_seq == here and receipts.sum_usage_since(rows, "", projects=[here]).injections == 1
        )
        assert receipts.find_last_session(rows, [other, 0]) == ""
        assert receipts.list_receipts(rows, projects=[other, 0], limit=9) == []
        assert receipts.sum_usage_since(rows, "", projects=[other, 0]).injections == 0

    store.write(story)


def test_receipts_of_a_merged_project_count_for_the_one_that_it_was_merged_into(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        source = projects.ensure(rows, given.project("shop"), now=given.now)
        into = projects.ensure(rows, given.project("forge"), now=given.now)
        turns.add_turn(rows, given.turn("u1", "hello"), text_hash="h", host="claude", project=source, path="")
        receipt(rows, given, "r1", "m1", second=0, project=source)
        project_merges.merge_projects(rows, source, into)
        assert receipts.find_last_session(rows, [into, 0]) == "s1"

    store.write(story)
