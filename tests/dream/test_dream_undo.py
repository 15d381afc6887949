"""What undoing takes along and what it leaves, as values."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from csmd.dream import dream_undo
from csmd.errors import CsmdError
from csmd.memory import undo
from csmd.store.dreams import Dream
from csmd.store.journal import ChangedFile
from csmd.tools.dreams import unified_diff


def had(seq: int, state: Any = "done", begun_at: str = "") -> Dream:
    return Dream(seq=seq, id=f"d{seq}", why="", state=state, begun_at=begun_at)


def test_undoing_one_undoes_every_dream_since_newest_first() -> None:
    dreams = [had(1), had(2, "failed"), had(3, "undone"), had(4, "cancelled")]
    assert dream_undo.find_dreams_to_undo(dreams, "d2") == [dreams[3], dreams[1]]
    assert dream_undo.find_dreams_to_undo(dreams, "d4") == [dreams[3]]


@pytest.mark.parametrize(
    ("ident", "state", "why"),
    [("d9", "done", "no dream 'd9'"), ("d1", "undone", "already undone"), ("d1", "running", "is running")],
)
def test_what_cannot_be_undone_says_why(ident: str, state: str, why: str) -> None:
    with pytest.raises(CsmdError, match=why):
        dream_undo.find_dreams_to_undo([had(1, state)], ident)


FIRST = datetime(2026, 3, 1, tzinfo=UTC)


def begun(*days: int) -> list[Dream]:
    """Dreams on these days, in this order; the same clock may be set to and fro between them."""
    return [had(number, begun_at=(FIRST + timedelta(days=day)).isoformat()) for number, day in enumerate(days, 1)]


@pytest.mark.invariant("A dream's journal goes by the days that were lived, and by no clock that was set")
@pytest.mark.parametrize(
    ("days", "now", "old"),
    [
        (range(100), 100, [*range(1, 11)]),
        (range(100), 99 + 3650, [*range(1, 17)]),
        ([*range(80), 3650, 3651], 3652, []),
        ([*range(80), 3650, 80], 81, []),
        ([3650, *range(80)], 81, []),
        (range(100), -3650, [*range(1, 10)]),
        ([0, 60], 120, []),
        ([0, *range(5, 200, 5)], 200, [*range(1, 23)]),
    ],
    ids=[
        "one a day", "a clock set ten years ahead", "and dreams by that clock", "and set back", "set back before",
        "set back now", "nobody was at work for months", "one in five days",
    ],
)  # fmt: skip
def test_a_journal_goes_by_the_days_that_were_lived_and_by_no_clock_that_was_set(
    days: Sequence[int], now: int, old: list[int]
) -> None:
    at = (FIRST + timedelta(days=now)).isoformat()
    found = dream_undo.find_expired(begun(*days), now=at, keep_days=90, every_h=24)
    assert sorted(found) == old
    assert dream_undo.find_expired(begun(*days), now=at, keep_days=100_000, every_h=24) == []


def test_where_dreams_are_chosen_to_be_weeks_apart_they_age_by_weeks() -> None:
    at = (FIRST + timedelta(days=120)).isoformat()
    assert dream_undo.find_expired(begun(0, 30, 60, 90), now=at, keep_days=90, every_h=24 * 30) == [1]


WAS = {"text": "a", "tier": "daily", "superseded_by": "", "used_at": "", "version": 1, "hot_until": 3, "sources": []}
THEN = {**WAS, "tier": "archive", "version": 2, "hot_until": 1}


@pytest.mark.parametrize(
    ("was", "now", "obstacle", "why"),
    [
        (WAS, THEN, "", ""),
        (WAS, {**WAS, "version": 9}, "", ""),
        (WAS, {**THEN, "hot_until": 7, "project_seq": 4}, "", ""),
        (WAS, {**THEN, "used_at": "2026", "version": 3, "hot_until": 9}, "", ""),
        (WAS, {**THEN, "sources": ["u"], "version": 3}, "", "a source of it was added or removed since"),
        (WAS, {**THEN, "superseded_by": "m2"}, "", "it was superseded or restored since"),
        (WAS, {**THEN, "version": 3}, "", undo.CHANGED),
        (WAS, {}, "", undo.GONE),
        (WAS, THEN, undo.FORGOTTEN, undo.FORGOTTEN),
        (WAS, THEN, undo.PURGED_SINCE, undo.PURGED_SINCE),
        (WAS, THEN, "m3 is gone", "m3 is gone"),
        ({}, THEN, "", ""),
        ({}, THEN, undo.ALREADY_WAITING, undo.ALREADY_WAITING),
        ({}, {}, undo.ALREADY_WAITING, ""),
    ],
)
def test_a_row_goes_back_only_where_it_is_what_the_action_left(
    was: dict[str, Any], now: dict[str, Any], obstacle: str, why: str
) -> None:
    assert undo.find_reason_to_stay(was, THEN, now, obstacle) == why


def test_where_what_was_made_has_to_stay_all_of_the_action_does() -> None:
    assert undo.keep_all_or_none({"m1": ""}, {"c1": "", "m2": "newer"}) == {"m1": "", "c1": "", "m2": "newer"}
    assert undo.keep_all_or_none({"m1": "newer"}, {"c1": "", "m2": "older"}) == {
        "m1": "newer", "c1": "m1, which was made of it, stays", "m2": "older",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("now", "kept"),
    [
        ("c", {1: "", 2: ""}),
        ("other", {1: dream_undo.EDITED_SINCE, 2: dream_undo.EDITED_SINCE}),
        ("b", {1: "", 2: ""}),
        (None, {1: dream_undo.EDITED_SINCE, 2: dream_undo.EDITED_SINCE}),
    ],
)
def test_a_file_goes_back_as_far_as_nobody_wrote_in_between(now: str | None, kept: dict[int, str]) -> None:
    chain = [_wrote(1, None, "b"), _wrote(2, "b", "c")]
    assert dream_undo.find_skip_reasons(chain, now) == kept
    killed = [_wrote(1, None, "b"), _wrote(2, None, "c")]
    assert dream_undo.find_skip_reasons(killed, None) == {1: "", 2: ""}, "what is noted may never have been written"
    edited = [_wrote(1, "a", "b"), _wrote(2, "b, edited", "c")]
    assert dream_undo.find_skip_reasons(edited, "c") == {1: dream_undo.EDITED_SINCE, 2: ""}
    purged = [_wrote(1, "a", "b"), _wrote(2, "b", "c")]
    assert dream_undo.find_skip_reasons(purged, "c", [2]) == {1: undo.PURGED_SINCE, 2: undo.PURGED_SINCE}


def _wrote(seq: int, before: str | None, after: str) -> ChangedFile:
    return ChangedFile(seq=seq, path="user.md", before=before, after=after)


def test_a_file_is_shown_as_a_unified_diff() -> None:
    assert unified_diff("user.md", None, "one\ntwo\n").splitlines()[:2] == ["--- /dev/null", "+++ user.md"]
    assert unified_diff("user.md", "one\ntwo\n", "one\n").splitlines()[-2:] == [" one", "-two"]
