"""How full a context is decides how much is added to it; what the user allows is never passed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.recall import compose

WINDOW = 200_000
CASES: dict[int, compose.Bracket] = {
    0: "FRESH", 59_999: "FRESH", 60_000: "MODERATE", 109_999: "MODERATE", 110_000: "DEPLETED", 149_999: "DEPLETED",
    150_000: "CRITICAL", 200_000: "CRITICAL", 260_000: "CRITICAL",
}  # fmt: skip


@pytest.mark.parametrize("used", CASES)
def test_a_bracket_begins_where_the_table_says(used: int) -> None:
    assert compose.bracket_of(used, WINDOW) == CASES[used]


@pytest.mark.invariant(
    "No bracket of context gives more than the user allows; the advisory neither orders nor claims without exception"
)
@given(st.integers(0, 2_000_000), st.integers(0, 1_000_000), st.integers(0, 9000))
def test_no_bracket_gives_more_than_the_user_allows(used: int, window: int, most: int) -> None:
    policy = compose.POLICY[compose.bracket_of(used, window)]
    assert 0 <= policy.recall_tokens(most) <= most
    assert 0 <= compose.policy_after_compaction(used, window).restored_tokens(most) <= most


def test_a_fuller_context_is_filled_less_and_given_back_more_after_its_compaction() -> None:
    policies = list(compose.POLICY.values())
    recalled = [one.recall_tokens(1000) for one in policies]
    restored = [one.restored_tokens(1000) for one in policies]
    assert recalled == sorted(recalled, reverse=True) and recalled[-1] < recalled[0]
    assert restored == sorted(restored) and restored[0] < restored[-1]


def test_where_nobody_knows_a_prompt_has_all_and_a_compaction_found_it_full() -> None:
    assert compose.bracket_of(0, 0) == "FRESH"
    assert compose.policy_after_compaction(0, WINDOW) == compose.POLICY["CRITICAL"]
