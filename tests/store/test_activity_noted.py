"""What was composed and looked for is kept as numbers, for a while, and of no session that was purged."""

from __future__ import annotations

from typing import Any

import pytest

from csmd.store import activity, tombstones
from csmd.store.activity import Composed, Recalled
from csmd.store.core import Store
from csmd.store.sqlite import Rows

KEY = b"k" * 32


def composed(at: str, session: str = "s1") -> Composed:
    return Composed(at=at, session_id=session, event="prompt", chosen=0, cut=1, tokens=0, degraded=1, ms=3)


def recalled(at: str) -> Recalled:
    return Recalled(at=at, kind="search", query_hash="h", results=2, top=0.5, ms=4)


def test_only_the_latest_are_kept(store: Store, given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity, "MOST_NOTED", 3)

    def story(rows: Rows) -> None:
        for second in range(6):
            at = given.at(second)
            activity.add_lookups(
                rows, [composed(at)], [recalled(at)], before=given.at(4) if second == 5 else "", key=KEY
            )
            assert (
                len(activity.composed_since(rows, ""))
                == len(activity.recalled_since(rows, ""))
                == (2 if second == 5 else min(second + 1, 3))
            )
        assert activity.composed_since(rows, given.at(5)) == [composed(given.at(5))]
        assert activity.recalled_since(rows, given.at(5)) == [recalled(given.at(5))]

    store.write(story)


def test_a_session_that_was_purged_meanwhile_is_not_noted(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        tombstones.purge_names(rows, "session", ["s1"], key=KEY, now=given.now)
        activity.add_lookups(rows, [composed(given.at(1)), composed(given.at(2), "s2")], [], before="", key=KEY)
        assert [one.session_id for one in activity.composed_since(rows, "")] == ["s2"]

    store.write(story)
