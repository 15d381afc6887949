"""Confidence, decay and attention are arithmetic: golden tables and properties."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_factory import memory

from csmd.memory import confidence as score
from csmd.vocabulary import CATEGORIES, DECAY_HORIZON_DAYS

EVALUATION = Path(os.environ.get("CSMD_EVAL") or Path(__file__).resolve().parents[3] / "shared" / "eval")
confidences = st.floats(0.0, 1.0)
categories = st.sampled_from(sorted(CATEGORIES))
decays = st.sampled_from(sorted(DECAY_HORIZON_DAYS))
gates = st.sampled_from(["behavioral", "relational", "epistemic", "promissory", "correction"])


@pytest.mark.invariant(
    "What is promised for a date is told until that has passed, and neither asked about nor archived before"
)
@pytest.mark.parametrize(
    ("text", "until"),
    [
        ("freeze on December 3", "2026-12-03"), ("the demo is by Feb 16", "2027-02-16"), ("ship it on the 3rd of Dec", "2026-12-03"),
        ("ship it on 3 Dec", "2026-12-03"), ("we migrate in January", "2027-01-31"), ("ends on 31 December 2028", "2028-12-31"),
        ("between 2026-12-01 and 2026-12-24", "2026-12-24"), ("we said so on Nov 3", ""), ("we may do it", ""),
        ("on June 31 we stop", ""), ("version 2020-01 is out", ""), ("tidy up by 2026-11-22", "2026-11-22"),
        ("we ship on 2026-12-10, the old plan of 2031-01-01 is dropped", "2026-12-10"),
        ("the plan of 2031-01-01 is dropped, we ship on 2026-12-10", "2026-12-10"), ("freeze from Dec 1 to Dec 24, review in March", "2026-12-24"),
        # The 22nd is a Sunday.
        ("I'll send it by Friday", "2026-11-27"), ("I'll send it tomorrow", "2026-11-23"), ("we ship next Tuesday", "2026-11-24"),
        ("done by the 20th", "2026-12-20"), ("done by the 25th", "2026-11-25"), ("in two weeks we ship", "2026-12-06"),
        ("by the end of the month", "2026-11-30"), ("I'll do it next month", "2026-12-31"), ("we meet every Friday", ""),
        ("after Friday's build", ""), ("the 2nd try", ""),
        ("moved from 2026-11-01 to 2026-12-24", "2026-12-24"), ("on Dec 1, Dec 5 and Dec 9", "2026-12-09"),
    ],
)  # fmt: skip
def test_a_promise_is_due_on_the_first_day_to_come_that_it_names_and_of_days_in_a_row_on_the_last(
    text: str, until: str
) -> None:
    at = "2026-11-22T10:00:00.000Z"
    assert score.find_due_day(text, gate="promissory", at=at) == until
    assert score.find_due_day(text, gate="epistemic", at=at) == ""


def test_days_are_counted_to_the_day_and_none_to_what_is_past() -> None:
    assert [
        score.count_days_to(day, on="2026-11-22T23:00:00.000Z")
        for day in ("2026-12-03", "2026-11-22", "2026-01-01", "")
    ] == [11, 0, 0, 0]


@pytest.mark.invariant("Confidence stays within what the category allows")
@given(confidences, categories, gates)
def test_a_confidence_is_inside_its_categorys_range(value: float, category: score.Category, gate: score.Gate) -> None:
    clamped = score.clamp(value, category, gate)
    assert 0.5 <= clamped <= CATEGORIES[category].high
    assert gate == "correction" or clamped >= CATEGORIES[category].low


@given(confidences, st.booleans())
def test_a_confirmation_never_lowers_and_never_passes_one(value: float, pinned: bool) -> None:
    confirmed = score.confirm(value, pinned=pinned)
    assert confirmed == value if pinned else round(value, 4) <= confirmed <= 1.0


@given(confidences, decays, gates, categories, st.integers(0, 5000), st.booleans())
def test_a_memory_cools_in_order_and_lasting_ones_stay_warm(
    confidence: float, decay: score.Decay, gate: score.Gate, category: score.Category, today: int, stated: bool
) -> None:
    by = "user" if stated else "assistant"
    limits = score.set_thresholds(
        memory("m1", "it holds", confidence=confidence, decay=decay, gate=gate, category=category, authority=by),
        today=today,
    )
    assert limits.hot_until <= limits.warm_until <= limits.archive_at
    if gate == "correction" or (stated and category == "preference"):
        far = score.NEVER - 1
        assert score.classify_attention(today=far, hot_until=limits.hot_until, warm_until=limits.warm_until) != "COLD"


def test_decay_counts_active_days_as_the_plan_has_it() -> None:
    """c * 3^-(age/horizon): a durable 0.9 falls below 0.7 after 20 active days and below 0.3 after 90."""
    limits = score.set_thresholds(memory("m1", "it holds", confidence=0.9), today=100)
    assert (limits.hot_until, limits.warm_until) == (120, 190)
    assert score.classify_attention(today=120, hot_until=120, warm_until=190) == "HOT"
    assert score.classify_attention(today=121, hot_until=120, warm_until=190) == "WARM"
    assert score.classify_attention(today=191, hot_until=120, warm_until=190) == "COLD"


@pytest.mark.parametrize(
    ("decay", "for_good", "sessions", "confidence", "tier"),
    [
        ("durable", False, 1, 0.95, "daily"),
        ("durable", False, 2, 0.9, "daily"),
        ("durable", False, 2, 0.95, "durable"),
        ("durable", True, 1, 0.6, "durable"),
        ("session", False, 1, 0.8, "daily"),
        ("session", False, 2, 0.95, "durable"),
        ("ephemeral", True, 2, 0.95, "session"),
        ("permanent", False, 1, 0.5, "durable"),
    ],
)
def test_durable_is_earned_stated_for_good_or_pinned(
    decay: score.Decay, for_good: bool, sessions: int, confidence: float, tier: str
) -> None:
    assert score.choose_tier(decay=decay, for_good=for_good, sessions=sessions, confidence=confidence) == tier
