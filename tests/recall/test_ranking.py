"""How well a statement bears on a question: features between 0 and 1, a fitted score over them, nothing of its length."""

from __future__ import annotations

import dataclasses
import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.recall import ranking, threads
from csmd.recall.ranking import Match, SearchTerms
from csmd.text import search_terms, tokens

WORDS = (
    "queue worker deploy Redis table `config.py` timeout 8443 never release broker staging ist nicht очередь".split()
)
STOPS = "the a of and to is that it in on for with as at by this be was are".split()
said = st.lists(st.sampled_from(WORDS + STOPS), max_size=40).map(" ".join)
measured = st.floats(0, 60)
cosines = st.floats(-0.2, 1)
matches = st.builds(
    Match,
    text=said,
    by_user=st.booleans(),
    meaning=st.none() | cosines,
    near_shared=measured,
    near_meaning=cosines,
    session_shared=measured,
    session_meaning=cosines,
    kept=st.booleans(),
)
asked = st.builds(
    SearchTerms,
    rarity=st.dictionaries(st.sampled_from(WORDS).map(tokens.stem), st.floats(0, 1), max_size=8),
    sessions=st.integers(0, 5000),
)
#: What is a cosine may be a little below nothing.
OF_MEANING = {"meaning", "near meaning", "session meaning"}
EVIDENCE = [
    ("near_shared", "near shared"),
    ("session_shared", "session shared"),
    ("meaning", "meaning"),
    ("near_meaning", "near meaning"),
    ("session_meaning", "session meaning"),
]


@given(matches, asked)
def test_features_are_between_0_and_1_and_the_same_each_time(match: Match, of: SearchTerms) -> None:
    found = ranking.features(match, of)
    for name, value in found.items():
        least, most = (-0.2, 1.0) if name in OF_MEANING else (0.0, 1.1)
        assert least <= value <= most, name
    assert ranking.features(dataclasses.replace(match), dataclasses.replace(of)) == found
    assert 0.0 <= ranking.rate_relevance(found) <= 1.0


@given(matches, asked)
def test_every_weight_has_a_feature(match: Match, of: SearchTerms) -> None:
    found = set(ranking.features(match, of))
    kind = "words" if match.meaning is None else "meaning"
    weight = set(ranking.weights()[kind]) - {""}
    assert weight <= found
    assert bool(found & OF_MEANING) is (kind == "meaning")


def test_the_weights_file_is_complete() -> None:
    named = {"meaning", "words", "thread", "thread words", "line", "line words", "prompt"}
    assert set(ranking.weights()) == named
    for name, weight in ranking.weights().items():
        assert "" in weight and len(weight) > 3, name
        assert all(isinstance(value, int | float) and math.isfinite(value) for value in weight.values())
        assert weight[""] < 0, f"{name}: what shows nothing bears on nothing"
    assert not OF_MEANING & set(ranking.weights()["words"])
    assert not {"meaning", "lead meaning"} & set(ranking.weights()["thread words"])


@given(matches, asked, st.sampled_from(EVIDENCE), st.floats(0, 1))
def test_a_score_follows_its_weights(match: Match, of: SearchTerms, evidence: tuple[str, str], more: float) -> None:
    """More of one thing raises or lowers the score as its weight says, all else the same."""
    field, name = evidence
    if match.meaning is None and field == "meaning":
        return
    raised = dataclasses.replace(match, **{field: (getattr(match, field) or 0.0) + more})
    before, after = ranking.features(match, of), ranking.features(raised, of)
    assert after[name] >= before[name] if name in before else name not in after
    weight = ranking.weights()["meaning" if match.meaning is not None else "words"].get(name, 0.0)
    change = ranking.rate_relevance(after) - ranking.rate_relevance(before)
    assert change * weight >= -1e-12


@given(matches, st.text(st.sampled_from("abcdefg ?`1_"), max_size=80), st.lists(st.sampled_from(STOPS), max_size=200))
def test_padding_a_prompt_with_stop_words_changes_no_feature(match: Match, prompt: str, padding: list[str]) -> None:
    def of(said: str) -> SearchTerms:
        stems = [tokens.stem(term) for term in search_terms.question_terms(said) if " " not in term]
        return SearchTerms(rarity={stem: len(stem) / 100 for stem in stems}, sessions=7)

    padded = f"{prompt}\n{' '.join(padding)}"
    assert ranking.features(match, of(padded)) == ranking.features(match, of(prompt))


@given(matches, asked)
def test_an_answer_is_never_below_itself_put_as_a_question(match: Match, of: SearchTerms) -> None:
    if match.text.strip():
        asks = dataclasses.replace(match, text=match.text.rstrip("?") + "?")
        tells = dataclasses.replace(match, text=match.text.rstrip("?") + ".")
        assert ranking.features(asks, of)["asks"] == 1.0 and ranking.features(tells, of)["asks"] == 0.0
        assert ranking.rate_relevance(ranking.features(asks, of)) <= ranking.rate_relevance(ranking.features(tells, of))


@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_the_fewer_passages_hold_a_word_the_rarer_it_is(count: int, of: int) -> None:
    assert 0.0 <= ranking.rarity(count, of) <= 1.0
    assert ranking.rarity(count + 1, of) <= ranking.rarity(count, of)


scores = st.dictionaries(st.integers(1, 50), st.floats(-100, 100), max_size=30)


@given(scores)
def test_scores_moved_to_0_to_1_keep_their_order(found: dict[int, float]) -> None:
    moved = ranking.normalised(found)
    assert set(moved) == set(found) and all(0.0 <= value <= 1.0 for value in moved.values())
    order = sorted(found, key=lambda key: found[key])
    assert all(moved[a] <= moved[b] + 1e-9 for a, b in itertools.pairwise(order))


def test_of_a_few_that_match_about_as_well_none_is_worth_nothing() -> None:
    near = ranking.normalised({1: 10.0, 2: 9.8, 3: 9.6})
    assert near[1] == 1.0 and min(near.values()) > 0.9
    far = ranking.normalised({1: 10.0, 2: 4.0, 3: 1.0})
    assert (far[1], far[3]) == (1.0, 0.0) and far[2] == pytest.approx(1 / 3)


@given(st.lists(st.floats(0, 100), max_size=12))
def test_what_a_session_is_worth_is_what_its_best_are(values: list[float]) -> None:
    assert ranking.best_mean(values) <= max(values, default=0.0) + 1e-9
    assert ranking.best_mean([*values, 100.0]) >= ranking.best_mean(values) - 1e-9
    assert ranking.best_mean([5.0]) < ranking.best_mean([5.0, 5.0, 5.0]) == pytest.approx(5.0)


def test_a_vector_scaled_to_int8_keeps_its_cosine() -> None:
    assert ranking.cosine(0.0) == 1.0
    assert ranking.cosine(2 * ranking.VECTOR_SCALE**2) == pytest.approx(0.0)


def test_a_sum_that_is_far_out_is_no_overflow() -> None:
    assert ranking.logistic({"": -1e9}, {}) == 0.0
    assert ranking.logistic({"": 1e9}, {}) == 1.0


ANSWERS = [
    ("The queue lives in the jobs table", {"queue": 0.7, "live": 0.5}),
    ("We deploy on Tuesdays, after the standup.", {"deploy": 0.6, "standup": 0.8}),
]


@pytest.mark.parametrize(("body", "rarity"), ANSWERS)
@pytest.mark.parametrize("meaning", [None, 0.75])
def test_an_answer_stands_above_what_shares_nothing_with_the_question(
    body: str, rarity: dict[str, float], meaning: float | None
) -> None:
    """Both stand beside each other in a session of two, as in a young home."""
    of = SearchTerms(rarity={tokens.stem(word): value for word, value in rarity.items()}, sessions=1)

    def match(said: str, own: float) -> Match:
        return Match(
            text=said, by_user=True, meaning=None if meaning is None else own, near_shared=1.2, near_meaning=0.75,
            session_shared=0.6, session_meaning=0.4,
        )  # fmt: skip

    answer, other = match(body, 0.75), match("The logo is drawn by Kim, in blue", 0.05)
    assert ranking.rate_relevance(ranking.features(answer, of)) > ranking.rate_relevance(ranking.features(other, of))


@given(st.text(max_size=200), asked, st.booleans(), st.floats(0, 1), st.sampled_from([None, 0.4]))
def test_the_features_of_a_line_are_between_0_and_1_and_every_weight_has_one(
    text: str, of: SearchTerms, by_user: bool, warm: float, meaning: float | None
) -> None:
    found = {"warm": warm, "led": 0.0, **({} if meaning is None else {"meaning": meaning})}
    values = ranking.line_features(text, of, found, by_user=by_user)
    assert all(0.0 <= value <= 1.0 for value in values.values())
    assert set(ranking.weights()["line words" if meaning is None else "line"]) - {""} <= set(values)


def test_a_threads_features_have_weights() -> None:
    assert set(ranking.weights()["thread"]) - {""} >= {"meaning", "shared", "same session"}
    assert threads.probability({}) < threads.MIN_STORED
