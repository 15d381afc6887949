"""Ranking is arithmetic: normalised lists, neighbours, relevance to a prompt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.recall import rank

scores = st.dictionaries(st.integers(1, 50), st.floats(-100, 100), max_size=30)


@given(scores, scores)
def test_a_fused_score_is_between_nothing_and_one(lexical: dict[int, float], vector: dict[int, float]) -> None:
    fused = rank.fuse(lexical, vector)
    assert set(fused) == {*lexical, *vector}
    assert all(0.0 <= row.score <= 1.0 + 1e-9 for row in fused.values())


@given(scores, st.floats(0.1, 10))
def test_normalising_does_not_care_for_scale(found: dict[int, float], scale: float) -> None:
    one = rank.normalised(found)
    other = rank.normalised({key: value * scale for key, value in found.items()})
    if len({round(value, 3) for value in found.values()}) == len(found):
        assert other == pytest.approx(one, abs=1e-3)


def test_of_a_few_that_match_about_as_well_none_is_worth_nothing() -> None:
    near = rank.normalised({1: 10.0, 2: 9.8, 3: 9.6})
    assert near[1] == 1.0 and min(near.values()) > 0.9
    far = rank.normalised({1: 10.0, 2: 4.0, 3: 1.0})
    assert (far[1], far[3]) == (1.0, 0.0) and far[2] == pytest.approx(1 / 3)


def test_where_one_list_is_missing_the_other_counts_whole() -> None:
    assert rank.fuse({1: 3.0, 2: 1.0}, {})[1].score == pytest.approx(1.0)


def test_an_answer_gains_from_the_question_beside_it() -> None:
    fused = rank.fuse({1: 5.0, 2: 1.0, 3: 1.0}, {})
    raised = rank.raised(fused, rank.neighbours(fused, {2: [1, 0]}), "neighbour", weight=0.3)
    assert raised[2].score > raised[3].score
    assert raised[1].score == fused[1].score


@given(scores, scores, scores, st.floats(0, 2))
def test_a_score_is_the_sum_of_its_factors_and_a_weight_of_nothing_changes_nothing(
    lexical: dict[int, float], vector: dict[int, float], beside: dict[int, float], weight: float
) -> None:
    fused = rank.fuse(lexical, vector)
    raised = rank.raised(fused, beside, "beside", weight=weight)
    for row in raised.values():
        assert row.score == pytest.approx(sum(row.factors.values()), abs=1e-3)
    assert rank.raised(fused, beside, "beside", weight=0.0) == fused


def test_a_session_in_which_the_rare_words_fall_is_the_one_that_is_meant() -> None:
    common, rare = {1: 9, 2: 1, 3: 1}, {2: 1}
    found = rank.spread([common, rare, {}], 3)
    assert 1.0 > found[2] > found[1] > found[3] > 0.0
    assert rank.spread([{}], 3) == rank.spread([], 3) == {}
    assert rank.spread([{1: 90}, {2: 2, 1: 1}], 2)[1] < 2 * rank.spread([{1: 9}, {2: 2, 1: 1}], 2)[1]


def test_a_session_that_holds_little_of_a_question_gains_little_though_no_other_holds_more() -> None:
    all_of_it = rank.spread([{1: 3}, {1: 3}, {1: 3}], 9)[1]
    a_third = rank.spread([{1: 3}, {2: 3}, {3: 3}], 9)[1]
    assert a_third == pytest.approx(all_of_it / 3)


def test_where_many_memories_are_near_only_what_is_nearer_than_those_says_something() -> None:
    few, many = {1: 0.6, 2: 0.1}, {seq: 0.6 - seq / 1000 for seq in range(rank.STATED_RANK + 9)}
    assert rank.nearness(few) == {1: pytest.approx(0.6 - rank.STATED_FLOOR), 2: 0.0}
    gains = rank.nearness(many)
    assert len(gains) == rank.STATED_RANK and gains[0] == pytest.approx(rank.STATED_RANK / 1000)
    assert rank.nearness({}) == {}


def test_what_is_newest_gains_most_and_nothing_gains_more_than_the_design_allows() -> None:
    assert rank.recency(-3) == rank.recency(0) == 1.0
    assert 0.0 < rank.recency(900) < rank.recency(90) < rank.recency(1)
    assert rank.RECENCY_WEIGHT <= 0.10


def weights(prompt: str) -> dict[str, float]:
    return {term: rank.rarity(0, 100) for term in rank.text.query_terms(prompt)}


def test_a_vector_scaled_to_int8_keeps_its_cosine() -> None:
    assert rank.cosine(0.0) == 1.0
    assert rank.cosine(2 * rank.VECTOR_SCALE**2) == pytest.approx(0.0)


def place(key: str, day: int, score: float, *, thread: str = "s1", about: str = "retry", **more: object) -> rank.Place:
    stems = frozenset({about, "release"})
    values = {"key": key, "thread": thread, "at": f"2026-03-{day:02d}", "score": score, "asked": stems, "stems": stems}
    return rank.Place(**{**values, **more})  # type: ignore[arg-type]


#: (hits, best first, the order they are shown in)
ORDERS = [
    ([place("old", 1, 1.0), place("new", 2, 0.95)], ["new", "old"]),
    ([place("old", 1, 1.0), place("poor", 2, 0.8)], ["old", "poor"]),
    ([place("old", 1, 1.0), place("new", 2, 0.8, replaces=True)], ["new", "old"]),
    ([place("old", 1, 1.0), place("poor", 2, 0.7, replaces=True)], ["old", "poor"]),
    ([place("old", 1, 1.0), place("taken back", 2, 0.65, retracts=True)], ["taken back", "old"]),
    ([place("old", 1, 1.0), place("poor", 2, 0.5, retracts=True)], ["old", "poor"]),
    ([place("old", 1, 1.0), place("aside", 2, 0.65, about="colour", retracts=True, thread="s2")], ["old", "aside"]),
    (
        [
            place("old", 1, 1.0, project="p"),
            place("now", 2, 0.5, thread="s2", project="p", overtakes=frozenset({"old"})),
        ],
        ["now", "old"],
    ),
    ([place("old", 1, 1.0), place("poor", 2, 0.25, overtakes=frozenset({"old"}))], ["old", "poor"]),
    ([place("old", 1, 1.0), place("far", 2, 0.5, thread="s2", overtakes=frozenset({"old"}))], ["old", "far"]),
    ([place("new", 2, 1.0), place("old", 1, 0.9)], ["new", "old"]),
    ([place("old", 1, 1.0), place("aside", 2, 0.9, about="colour", asked=frozenset({"colour"}))], ["old", "aside"]),
    ([place("old", 1, 1.0), place("other", 2, 0.9, thread="s2")], ["old", "other"]),
    ([place("old", 1, 1.0, project="p"), place("new", 2, 0.9, thread="s2", project="p")], ["new", "old"]),
    (
        [
            place("old", 1, 1.0, project="p", in_all=1.5),
            place("poor", 2, 1.0, thread="s2", project="p", in_all=1.3),
        ],
        ["old", "poor"],
    ),
    ([place("old", 1, 1.0, project="p"), place("far", 2, 0.9, thread="s2", project="q")], ["old", "far"]),
    ([place("old", 1, 1.0, project="p"), place("no thread", 2, 0.9, thread="", project="p")], ["old", "no thread"]),
    # What is enough in one thread, a third of the words, is too little in two.
    (
        [place("old", 1, 1.0, stems=frozenset("abc")), place("new", 2, 0.9, stems=frozenset("ade"))],
        ["new", "old"],
    ),
    (
        [
            place("old", 1, 1.0, project="p", stems=frozenset("abc")),
            place("other", 2, 0.9, project="p", thread="s2", stems=frozenset("ade")),
        ],
        ["old", "other"],
    ),
    (
        [place("old", 1, 1.0), place("other", 1, 0.9, thread="s2"), place("new", 2, 0.9)],
        ["new", "old", "other"],
    ),
    (
        [place("old", 1, 1.0, overturned_by=frozenset({"new"})), place("x", 1, 0.9), place("new", 9, 0.2, thread="s2")],
        ["new", "old", "x"],
    ),
]


@pytest.mark.parametrize(("hits", "order"), ORDERS)
def test_of_what_speaks_of_the_same_the_later_stands_in_front(hits: list[rank.Place], order: list[str]) -> None:
    assert rank.newest_first(hits) == order


def test_of_a_hit_that_was_put_before_another_one_it_is_said_which() -> None:
    hits = [place("old", 1, 1.0), place("x", 1, 0.9, thread="s2"), place("new", 2, 0.95)]
    assert rank.ordered(hits) == (["new", "old", "x"], {"new": "old"})
    gone = [place("old", 1, 1.0, overturned_by=frozenset({"new"})), place("new", 9, 0.2, thread="s2")]
    assert rank.ordered(gone) == (["new", "old"], {"new": "old"})


places = st.lists(
    st.builds(
        place, st.uuids().map(str), st.integers(1, 28), st.floats(0, 1), thread=st.sampled_from(["", "s1", "s2"])
    ),
    max_size=12,
)


@given(places)
def test_an_order_loses_no_hit_and_without_a_project_moves_a_thread_only_within_itself(hits: list[rank.Place]) -> None:
    order = rank.newest_first(hits)
    assert sorted(order) == sorted(hit.key for hit in hits)
    alone = [hit.key for hit in hits if not hit.thread]
    assert [key for key in order if key in alone] == alone
    for thread in ("s1", "s2"):
        others = [hit.key for hit in hits if hit.thread != thread]
        kept = rank.newest_first([hit for hit in hits if hit.thread != thread])
        assert [key for key in order if key in others] == kept


in_threads = st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 2)), max_size=12).map(
    lambda hits: sorted(hits, key=lambda hit: -hit[1])
)


@given(in_threads)
def test_a_front_of_several_threads_loses_no_hit_and_keeps_each_threads_order(hits: list[tuple[str, float]]) -> None:
    places = rank.varied(hits)
    assert sorted(places) == list(range(len(hits))) and places[:1] == [0][: len(hits)]
    for thread in "abc":
        own = [at for at in places if hits[at][0] == thread]
        assert own == sorted(own)
    assert places[rank.FRONT :] == sorted(places[rank.FRONT :])


def test_no_thread_fills_the_front_where_another_answers_nearly_as_well() -> None:
    hits = [*[("long", 1.0 - number / 100) for number in range(6)], ("short", 0.8), ("far", 0.2)]
    assert [hits[at][0] for at in rank.varied(hits)][: rank.FRONT].count("short") == 1
    assert "far" not in [hits[at][0] for at in rank.varied(hits)][: rank.FRONT]
