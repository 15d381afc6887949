"""Confidence, decay, scope and attention are arithmetic: golden tables and properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.believe import score
from csmd.model import CATEGORIES, DECAY_HORIZON_DAYS

confidences = st.floats(0.0, 1.0)
categories = st.sampled_from(sorted(CATEGORIES))
decays = st.sampled_from(sorted(DECAY_HORIZON_DAYS))
gates = st.sampled_from(["behavioral", "relational", "epistemic", "promissory", "correction"])


@pytest.mark.parametrize(
    ("said", "gate", "where"),
    [
        ("I prefer functional patterns over classes", "behavioral", "user"),
        ("in every project write commit messages in the imperative", "behavioral", "user"),
        ("never force-push to main in any of my projects", "correction", "global"),
        ("from now on write commit messages in the imperative", "behavioral", "project"),
        ("always run the tests with make check before you commit, not pytest", "correction", "project"),
        ("I prefer pathlib over os.path in this code", "behavioral", "project"),
        ("always run `make lint` before committing", "behavioral", "project"),
        ("never touch api/generated.go", "correction", "project"),
        ("no, the config key is database_url, not db_url", "correction", "project"),
        ("let's completely remove the start command", "correction", "project"),
        ("we always squash before merging", "behavioral", "project"),
        ("I like short functions", "epistemic", "project"),
        ("in Payments I prefer small tests", "behavioral", "project"),
    ],
)
def test_a_memory_leaves_its_project_only_when_its_words_say_so(said: str, gate: score.Gate, where: str) -> None:
    assert score.scope(said, gate=gate, project_name="payments") == where


@given(confidences, categories, gates)
def test_a_confidence_is_inside_its_categorys_range(value: float, category: score.Category, gate: score.Gate) -> None:
    found = score.clamp(value, category, gate)
    assert 0.5 <= found <= CATEGORIES[category].high
    assert gate == "correction" or found >= CATEGORIES[category].low


@given(confidences, st.booleans())
def test_a_confirmation_never_lowers_and_never_passes_one(value: float, pinned: bool) -> None:
    found = score.confirm(value, pinned=pinned)
    assert found == value if pinned else round(value, 4) <= found <= 1.0


@given(confidences, decays, gates, categories, st.integers(0, 5000), st.booleans())
def test_a_memory_cools_in_order_and_lasting_ones_stay_warm(
    confidence: float, decay: score.Decay, gate: score.Gate, category: score.Category, today: int, stated: bool
) -> None:
    limits = score.thresholds(confidence, decay=decay, gate=gate, category=category, today=today, stated=stated)
    assert limits.hot_until <= limits.warm_until <= limits.archive_at
    if gate == "correction" or (stated and category == "preference"):
        far = score.NEVER - 1
        assert score.attention(today=far, hot_until=limits.hot_until, warm_until=limits.warm_until) != "COLD"


def test_decay_counts_active_days_as_the_plan_has_it() -> None:
    """c * 3^-(age/horizon): a durable 0.9 falls below 0.7 after 20 active days and below 0.3 after 90."""
    limits = score.thresholds(0.9, decay="durable", gate="epistemic", category="decision", today=100, stated=True)
    assert (limits.hot_until, limits.warm_until) == (120, 190)
    assert score.attention(today=120, hot_until=120, warm_until=190) == "HOT"
    assert score.attention(today=121, hot_until=120, warm_until=190) == "WARM"
    assert score.attention(today=191, hot_until=120, warm_until=190) == "COLD"


@pytest.mark.parametrize(
    ("decay", "explicit", "sessions", "confidence", "tier"),
    [
        ("durable", False, 1, 0.8, "durable"),
        ("session", False, 1, 0.8, "daily"),
        ("session", False, 2, 0.95, "durable"),
        ("session", True, 1, 0.6, "durable"),
        ("ephemeral", False, 1, 0.9, "session"),
        ("permanent", False, 1, 0.5, "durable"),
    ],
)
def test_a_tier_follows_from_decay_and_from_how_many_sessions_it_was_said_in(
    decay: score.Decay, explicit: bool, sessions: int, confidence: float, tier: str
) -> None:
    assert score.tier(decay=decay, explicit=explicit, sessions=sessions, confidence=confidence) == tier
