"""Whether a prompt asks for what was said before: its form, clause by clause."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.recall import asking

FLOOR = 0.5
WRITTEN = Path(__file__).parent.parent / "data" / "prompts.json"


@pytest.mark.parametrize(
    ("prompt", "asks"),
    [
        ("Where does the queue live?", True),
        ("where does the queue live", True),
        ("why did we drop the message broker?", True),
        ("how do we release to staging, was there a script?", True),
        ("may I call os.Getwd in a handler?", True),
        ("Could you merge the tables with customers, what are the keys?", True),
        ("the modbus line fails again at high baud. what was the cause in january", True),
        ("do we use yarn or pnpm in the frontend?", True),
        ("can i support android 7", True),
        ("yes", False),
        ("ok, do that", False),
        ("commit", False),
        ("fix the lint", False),
        ("do it for the other handlers", False),
        ("can you add a test for this?", False),
        ("when running the tests I get failures, can you check?", False),
        ("let's rename the handler to Router", False),
        ("but this means both run, right?", False),
        ("how would we get a token for that?", False),
        ("if we keep only the metadata, would the rewind break?", False),
        ("", False),
    ],
)
def test_a_prompt_asks_for_the_past_by_its_form(prompt: str, asks: bool) -> None:
    assert (asking.asks(prompt) >= FLOOR) is asks


def test_of_written_prompts_of_projects_that_nothing_was_learned_from_most_are_told_apart() -> None:
    unseen = [one for one in json.loads(WRITTEN.read_text()).values() if not one["learned"]]
    asks = [asking.asks(prompt) >= FLOOR for one in unseen for prompt in one["asks"]]
    ordinary = [asking.asks(prompt) < FLOOR for one in unseen for prompt in one["ordinary"]]
    # Before prompts were read by clause .78 and .82: half of these ordinary prompts are questions of the moment.
    assert sum(asks) >= 0.8 * len(asks)
    assert sum(ordinary) >= 0.75 * len(ordinary)


@pytest.mark.parametrize("gap", [" ", "\t", "\u00a0", "\n", " \n", "- ", ", ", "!", "(", "hm, ", "and "])
def test_a_megabyte_is_read_at_its_ends_whatever_it_is_made_of(gap: str) -> None:
    assert asking.asks("look at this" + gap * (1_000_000 // len(gap)) + "\nwhich port does the gateway use?") >= FLOOR


@given(st.text(max_size=200))
def test_any_text_has_a_form_within_bounds(prompt: str) -> None:
    assert 0.0 <= asking.asks(prompt) <= 1.0
    assert set(asking.form(prompt)) == set(asking.WEIGHTS) - {""}
    assert all(0.0 <= value <= 1.0 for value in asking.form(prompt).values())
