"""Whether what a prompt asks about was spoken of: how well the best matches answer it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.recall import relevance
from csmd.recall.relevance import Ground

FLOOR = 0.5


@pytest.mark.parametrize(
    ("ground", "told"),
    [
        (Ground(turn=0.6, memory=0.5, covered=0.5, unknown=False), True),
        (Ground(turn=0.3, memory=0.3, covered=0.2, unknown=False), False),
        (Ground(turn=0.45, memory=0.3, covered=0.3, unknown=True), False),
        (Ground(turn=None, memory=None, covered=0.5, unknown=False), True),
        (Ground(turn=None, memory=None, covered=0.5, unknown=True), False),
        (Ground(turn=None, memory=None, covered=0.2, unknown=False), False),
    ],
)
def test_what_nobody_spoke_of_is_not_answered_with_what_is_nearest(ground: Ground, told: bool) -> None:
    assert (relevance.grounded(ground) >= FLOOR) is told


@given(st.floats(-1, 1), st.floats(-1, 1), st.floats(0, 1), st.booleans())
def test_more_words_in_common_and_a_nearer_meaning_never_make_a_prompt_less_grounded(
    turn: float, memory: float, covered: float, unknown: bool
) -> None:
    found = relevance.grounded(Ground(turn=turn, memory=memory, covered=covered, unknown=unknown))
    assert 0.0 <= found <= relevance.grounded(Ground(turn=1.0, memory=1.0, covered=1.0, unknown=False)) <= 1.0
    assert relevance.grounded(Ground(turn=turn, memory=memory, covered=covered, unknown=True)) <= found


@pytest.mark.parametrize(
    ("prompt", "names"),
    [
        ("which Redis cluster do we use?", ["redis"]),
        ("Which cluster do I use? Is S3 one?", ["s3"]),
        ("what did the getUserName call return in 2024?", ["getusername"]),
        ("where does the queue live?", []),
        ("what's Maria's view?", ["maria"]),
    ],
)
def test_names_stand_out_by_capitals_and_digits(prompt: str, names: list[str]) -> None:
    assert relevance.names(prompt) == names


def test_rare_words_say_more_and_common_ones_nothing() -> None:
    assert relevance.rarity(1) > relevance.rarity(50) > relevance.rarity(relevance.COMMON) >= 0
    weights = {"queue": relevance.rarity(1), "live": relevance.rarity(1)}
    assert relevance.covered(weights, "We use Postgres for the queue") == pytest.approx(0.5)
    assert relevance.covered(weights, "The queue lives in Redis") == pytest.approx(1.0)
    assert relevance.covered({}, "anything") == 0.0
