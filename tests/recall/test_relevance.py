"""Whether a prompt is told anything: its form, and how well the best matches answer it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.recall import relevance
from csmd.recall.relevance import Ground

FLOOR = 0.5


@pytest.mark.parametrize(
    ("prompt", "asks"),
    [
        ("Where does the queue live?", True),
        ("where does the queue live", True),
        ("why did we drop the message broker?", True),
        ("how do we release to staging, was there a script?", True),
        ("may I call os.Getwd in a handler?", True),
        ("yes", False),
        ("ok, do that", False),
        ("commit", False),
        ("fix the lint", False),
        ("can you add a test for this?", False),
        ("let's rename the handler to Router", False),
        ("but this means both run, right?", False),
        ("", False),
    ],
)
def test_a_prompt_asks_for_the_past_by_its_form(prompt: str, asks: bool) -> None:
    assert (relevance.asks(prompt) >= FLOOR) is asks


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


@given(st.text(max_size=200))
def test_any_text_has_a_form_within_bounds(prompt: str) -> None:
    assert 0.0 <= relevance.asks(prompt) <= 1.0
    assert set(relevance.form(prompt)) == set(relevance.FORM_WEIGHTS) - {""}
    assert all(0.0 <= value <= 1.0 for value in relevance.form(prompt).values())


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
