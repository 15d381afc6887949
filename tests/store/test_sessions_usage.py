"""What a session took: each message once, as its last line has it, for every session whose transcript has it."""

from __future__ import annotations

from typing import Any

import pytest

from csmd.store import receipts, sessions, turns
from csmd.store.core import Store
from csmd.store.sessions import Spent, Sum
from csmd.store.sqlite import Rows


@pytest.mark.invariant("A session's tokens equal its transcript's, each message once")
def test_a_message_counts_once_with_what_its_last_line_says(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        for session, agent in (("s1", ""), ("s1", "a1"), ("fork", "")):
            turn = given.turn(f"{session}-{agent}", "x", session=session, agent_id=agent)
            turns.ensure_session(rows, turn, host="claude", project=0, path="")
        lines = [Spent("s1", "m1", 1, 2, 3, 4), Spent("s1", "m1", 1, 9, 3, 4), Spent("s1/a1", "m2", 5, 5, 5, 5)]
        for _ in range(2):  # read again, nothing is added
            sessions.note_usage(rows, lines)
        sessions.note_usage(
            rows, [Spent("s1", "m3", 10, 10, 0, 0), Spent("fork", "m1", 1, 9, 3, 4), Spent("nobody", "m", 1, 1, 1, 1)]
        )
        assert sessions.usage_of(rows, 1) == Sum(2, 11, 19, 3, 4)
        assert sessions.usage_of(rows, 2) == sessions.usage_of_agents(rows, "s1") == Sum(1, 5, 5, 5, 5)
        assert sessions.usage_of(rows, 3) == Sum(1, 1, 9, 3, 4), "a fork's transcript has it, too"
        assert sessions.usage_of_agents(rows, "fork") == Sum()

    store.write(story)


def test_what_csmd_put_before_a_session_is_counted_over_all_of_it(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        for number, tokens in enumerate((40, 2)):
            receipts.add_receipt(
                rows, receipt_id=f"r{number}", session_id="s1", event="prompt", project=0, at=given.at(number),
                tokens=tokens, text_hash="h", items=[],
            )  # fmt: skip
        assert sessions.tokens_injected(rows, "s1") == (2, 42) and sessions.tokens_injected(rows, "s2") == (0, 0)

    store.write(story)
