"""Each gate keeps a dream out by itself and says why; what clocks do is decided here, with moved clocks and no waiting."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from csmd.config import Settings
from csmd.daemon.context import to_iso
from csmd.dream import gates
from csmd.dream.gates import GateFacts

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def ago(**span: float) -> str:
    return to_iso(NOW - timedelta(**span))


OPEN = GateFacts(
    now=NOW,
    last_at=ago(hours=30),
    first_at=ago(days=90),
    sessions=7,
    last_turn=ago(minutes=20),
    calm_s=1300.0,
    load=0.1,
)


def said(facts: GateFacts = OPEN, settings: Settings | None = None, **changed: Any) -> str:
    return gates.ask_gates(settings or Settings(), replace(facts, **changed)).words


@pytest.mark.invariant("Each dream gate keeps out by itself, and every reason is kept; no clock shuts one for good")
@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, "due now: 7 new sessions, 30 h since the last dream, quiet for 20 min"),
        ({"last_at": "", "sessions": 5}, "due now: 5 new sessions, 90 d since the first session, quiet for 20 min"),
        ({"last_at": ago(hours=5.5), "sessions": 3}, "next dream after 2 more sessions and 19 h"),
        ({"last_at": ago(hours=23.9)}, "next dream after 6 min"),
        ({"last_at": "", "first_at": "", "sessions": 0, "last_turn": ""}, "next dream after 5 more sessions and 24 h"),
        ({"last_turn": ago(minutes=4)}, "next dream after 11 min of quiet"),
        ({"calm_s": 70.0}, "next dream after 14 min of quiet"),
        ({"load": 1.64}, "waits: the machine is busy (load 1.6 a core)"),
        ({"load": None, "on_mains": None}, "due now: 7 new sessions, 30 h since the last dream, quiet for 20 min"),
        ({"on_mains": False}, "waits: on battery"),
        ({"on_mains": False, "calm_s": 0.0}, "next dream after 15 min of quiet; on battery"),
        ({"failed_at": ago(minutes=12)}, "waits: the last dream failed; retry in 48 min"),
        ({"no_writes": "No space left on device"}, "waits: No space left on device"),
        ({"failed_at": ago(hours=2)}, "due now: 7 new sessions, 30 h since the last dream, quiet for 20 min"),
        ({"undone_at": ago(hours=2)}, "waits: the last dream was undone; retry in 22 h"),
        ({"undone_at": ago(hours=25)}, "due now: 7 new sessions, 30 h since the last dream, quiet for 20 min"),
        ({"holder": "other (process 7) dreams already"}, "waits: other (process 7) dreams already"),
    ],
)
def test_each_closed_gate_alone_prevents_a_dream_and_gives_its_reason(changed: dict[str, Any], words: str) -> None:
    assert said(**changed) == words


@pytest.mark.invariant("Each dream gate keeps out by itself, and every reason is kept; no clock shuts one for good")
def test_a_verdict_holds_the_reasons_of_all_gates() -> None:
    verdict = gates.ask_gates(
        Settings(stages_dream=False),
        replace(OPEN, last_at=ago(hours=1), sessions=0, calm_s=0, holder="h (process 1) dreams already"),
    )
    assert [(answer.gate, answer.is_open) for answer in verdict.answers] == [
        ("switch", False), ("time", False), ("sessions", False), ("again", True), ("quiet", False), ("lock", False),
        ("storage", True),
    ]  # fmt: skip
    assert verdict.words == "off (stages.dream)" and len(verdict.closed()) == 5
    assert verdict.closed(forced=True) == ("h (process 1) dreams already",), "a person passes all but the lock"


def test_the_gates_follow_the_users_settings() -> None:
    assert said(settings=Settings(dream_every_h=48)) == "next dream after 18 h"
    assert said(settings=Settings(dream_sessions=8)) == "next dream after 1 more session"
    assert said(
        settings=Settings(dream_every_h=0, dream_sessions=0, dream_quiet_min=0), sessions=0, calm_s=0.0
    ).startswith("due now")
    assert said(settings=Settings(dream_on_battery=True), on_mains=False).startswith("due now")


def test_a_crowded_tier_opens_time_and_sessions_but_neither_quiet_nor_lock() -> None:
    full = {"crowded": ("2,104 durable memories in heron",), "last_at": ago(hours=1), "sessions": 1}
    assert said(**full) == "due now: 2,104 durable memories in heron, quiet for 20 min"
    assert said(**full, calm_s=0.0) == "next dream after 15 min of quiet"
    assert said(**full, holder="h (process 1) dreams already") == "waits: h (process 1) dreams already"
    nothing_new = said(**{**full, "sessions": 0})
    assert nothing_new == "next dream after 5 more sessions and 23 h", (
        "what a dream has left crowded does not keep it dreaming"
    )


# --- clocks


@pytest.mark.invariant("Each dream gate keeps out by itself, and every reason is kept; no clock shuts one for good")
def test_a_clock_set_back_closes_no_gate_for_good() -> None:
    future = to_iso(NOW + timedelta(days=400))
    assert said(last_at=future) == (
        "due now: 7 new sessions, the clock was set back since the last dream, quiet for 20 min"
    )
    assert gates.find_session_start(NOW, future, 24) == ago(hours=24), "else no session would ever be new"
    assert said(failed_at=future).startswith("due now") and said(undone_at=future).startswith("due now")
    assert said(last_turn=future).startswith("due now"), "of a turn in the future the monotonic clock knows when it was"
    assert said(last_turn=future, calm_s=60.0) == "next dream after 14 min of quiet"


def test_a_small_correction_of_the_clock_does_not_count_as_set_back() -> None:
    just_now = to_iso(NOW + timedelta(minutes=5))
    assert said(last_at=just_now) == "next dream after 24 h"
    assert gates.find_session_start(NOW, just_now, 24) == just_now
    assert gates.find_session_start(NOW, "", 24) == ""


def test_hours_asleep_count_for_the_time_gate_and_not_for_the_quiet_gate() -> None:
    """Ten hours in suspend: the wall clock has gone on, the monotonic one stood still."""
    evening = replace(OPEN, last_at=ago(hours=14), last_turn=ago(minutes=2), calm_s=120.0)
    assert said(evening) == "next dream after 10 h and 13 min of quiet"
    morning = replace(evening, now=NOW + timedelta(hours=10, minutes=1))
    assert said(morning) == "next dream after 13 min of quiet", "a lid that was just opened is no quiet"
    assert said(replace(morning, calm_s=15 * 60.0)).startswith("due now")


def test_a_clock_set_forward_does_not_open_the_quiet_gate() -> None:
    assert said(now=NOW + timedelta(days=300), calm_s=30.0) == "next dream after 15 min of quiet"


WAITED = {"waiting_at": ago(hours=25), "last_at": ago(hours=26)}
BUSY = {"calm_s": 0.0, "load": 3.0, "on_mains": False}


@pytest.mark.invariant("After a day with something new a dream runs, or a reason that a person can act on says why not")
@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (WAITED | BUSY | {"sessions": 1}, "due now: overdue: new memories have waited for 25 h, 26 h since the last dream"),
        (WAITED | BUSY | {"sessions": 0}, "next dream after 5 more sessions and 15 min of quiet; the machine is busy (load 3.0 a core); on battery"),
        (WAITED | BUSY | {"sessions": 1, "waiting_at": ago(hours=23)}, "next dream after 4 more sessions and 15 min of quiet; the machine is busy (load 3.0 a core); on battery"),
        (WAITED | {"holder": "h (process 7) dreams already"}, "overdue, new memories have waited for 25 h: h (process 7) dreams already; if that process hangs, end it"),
        (WAITED | {"failed_at": ago(minutes=12)}, "overdue, new memories have waited for 25 h: the last dream failed; retry in 48 min; `csmd dream run` does not wait"),
        (WAITED | {"no_writes": "No space left on device"}, "overdue, new memories have waited for 25 h: No space left on device; see `csmd doctor`"),
    ],
)  # fmt: skip
def test_what_is_new_waits_for_a_day_at_most_or_a_reason_says_what_to_do(changed: dict[str, Any], words: str) -> None:
    assert said(**changed) == words


def test_a_user_who_wants_longer_between_dreams_or_none_is_not_overruled() -> None:
    for settings in (Settings(dream_every_h=48), Settings(stages_dream=False)):
        assert not gates.ask_gates(settings, replace(OPEN, **WAITED, calm_s=0.0)).ok
