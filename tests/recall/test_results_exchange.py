"""An exchange is shown once: what matched first, what stands beside it after, within the room that a hit has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.recall import results
from csmd.recall.results import Part
from csmd.text import display


def part(said: str, place: str = "", speaker: str = "user") -> Part:
    return Part(speaker=speaker, place=place, text=said, cut=lambda limit: display.cut(said, limit))


def test_a_turn_alone_is_told_as_it_is() -> None:
    assert results.render_exchange([part("use uv here")], limit=1200) == "use uv here"


def test_of_several_each_says_who_speaks_and_the_one_that_matched_stands_first() -> None:
    parts = [part("uv", speaker="assistant"), part("pip or uv?", "before"), part("thanks", "after")]
    told = results.render_exchange(parts, limit=1200)
    assert told == "assistant: uv\n[before] user: pip or uv?\n[after] user: thanks"
    assert results.matched_part(told) == "assistant: uv"


words = st.text(alphabet="abc ", max_size=3000)


@given(words, words, words, st.integers(200, 1200))
def test_an_exchange_keeps_to_its_room_and_its_match_has_half_of_it(one: str, two: str, three: str, limit: int) -> None:
    told = results.render_exchange([part(one), part(two, "before"), part(three, "after")], limit=limit)
    assert len(told) <= limit
    first = told.split("\n[before]")[0].removeprefix("user: ")
    assert len(first) >= min(len(one), limit // 4)
    assert len(one) + len(two) + len(three) > limit - 60 or told.count("…") == 0


rows = st.integers(1, 30)


@pytest.mark.invariant(
    "No turn is shown in two hits of a search, and a hit is explained by the features that its score was made from"
)
@given(
    st.lists(rows, unique=True, max_size=20),
    st.dictionaries(rows, st.lists(st.integers(0, 30), max_size=2)),
    st.integers(1, 9),
)
def test_no_turn_is_shown_in_two_hits(ranked: list[int], near: dict[int, list[int]], most: int) -> None:
    groups = results.group_exchanges(ranked, near, {}, most=most)
    shown = [seq for group in groups for seq in group]
    assert len(shown) == len(set(shown)) and 0 not in shown
    assert len(groups) <= most
    assert [group[0] for group in groups] == [seq for seq in ranked if seq in {group[0] for group in groups}]
    if len(groups) < most:
        assert set(ranked) <= set(shown)


def test_of_the_turns_beside_a_hit_the_better_comes_first() -> None:
    assert results.group_exchanges([5], {5: (6, 4)}, {4: 0.9, 6: 0.1}, most=3) == [[5, 4, 6]]


@pytest.mark.invariant(
    "A search shows an exchange: a prompt with its answer, what was said at work between them only once"
)
def test_what_was_said_at_work_is_no_hit_beside_the_exchange_that_it_is_of() -> None:
    near = {2: (4, 1), 3: (4, 1), 4: (0, 1), 6: (7, 5)}
    assert results.group_exchanges([2, 3, 6], near, {}, most=9, midway={2, 3}) == [[2, 4, 1], [6, 7, 5]]
    assert results.group_exchanges([4, 3], near, {}, most=9, midway={3}) == [[4, 1]]
    assert results.group_exchanges([2, 3], near, {}, most=9) == [[2, 4, 1], [3]]
