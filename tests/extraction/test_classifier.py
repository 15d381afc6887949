"""What holds for every sentence that is classified; single sentences stand in tests/data/kept.txt."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.extraction import classifier
from csmd.extraction.classifier import CATEGORIES_OF, GATES, GATES_OF, HEADS, Model, Speaker, classify, confidence_of
from csmd.vocabulary import CATEGORIES

EVALUATION = Path(os.environ.get("CSMD_EVAL") or Path(__file__).resolve().parents[3] / "shared" / "eval")
BENCH = Path(__file__).resolve().parent.parent / "bench"
WEIGHTS = Path(classifier.__file__).parent.parent / "data" / "classifier.json"

ASSISTANTS = [
    ("The root cause was that the cache key lacked the locale.", "epistemic"),
    ("No, that's wrong: the parser never sees comments.", "epistemic"),
    ("Sessions now use the repository's root instead of the current directory.", "epistemic"),
    ("Retries for the mail queue are left for a separate pull request as follow-up.", "promissory"),
]
STATEMENTS = [
    "we use uv here, not pip", "I prefer early returns", "the staging database is called orders_stage", "Sarah owns billing",
    "let's go with Postgres for the queue because we need LISTEN/NOTIFY", "I'll follow up with the vendor next week",
]  # fmt: skip
speakers = st.sampled_from(["user", "assistant"])
sentences = st.one_of(
    st.text(max_size=300),
    st.lists(
        st.sampled_from([*sorted(classifier.word_classes())[::40], "Anna", "`code()`", "a_b", "wrong?", "2"]),
        max_size=30,
    ).map(" ".join),
)


@pytest.mark.parametrize(("said", "gate"), ASSISTANTS)
def test_an_assistant_gives_an_account_and_corrects_nobody(said: str, gate: str) -> None:
    assert classify(said, speaker="assistant").gate == gate


@pytest.mark.invariant("Authority is set by the path; an assistant cannot raise its own")
@pytest.mark.parametrize("said", STATEMENTS)
def test_what_is_to_be_remembered_lasts_and_is_what_it_is_without_that(said: str) -> None:
    alone, asked = (classify(f"{lead}{said}", speaker="user") for lead in ("", "remember that "))
    assert (asked.gate, asked.category, asked.for_good) == (alone.gate, alone.category, True)
    assert asked.reasons[0] == classifier.ASKED
    assert classify(f"remember that {said}", speaker="assistant").reasons[0] != classifier.ASKED


@pytest.mark.parametrize(
    ("sentence", "is_promise"),
    [("We'll use port 9000 for the scales.", False), ("We'll use port 9000 for the scales by 12 May.", True)],
)
def test_a_value_that_is_set_for_no_day_is_no_promise_and_lasts(sentence: str, is_promise: bool) -> None:
    found = classify(sentence, speaker="user")
    assert (found.gate == "promissory", found.decay == "session") == (is_promise, is_promise)


@pytest.mark.invariant("Confidence stays within what the category allows")
@given(sentences, speakers)
def test_every_sentence_is_something_within_what_its_gate_and_category_allow(said: str, speaker: Speaker) -> None:
    found = classify(said, speaker=speaker)
    rule = CATEGORIES[found.category]
    assert found.gate in GATES_OF[speaker] and found.category in CATEGORIES_OF[found.gate] and found.reasons
    assert rule.low <= found.confidence <= min(rule.high, classifier.MAX_CONFIDENCE)
    assert found.decay == "durable" or not found.for_good or found.reasons[0] == classifier.ASKED
    assert not (found.gate == "promissory" and found.decay == "durable"), "plans change"


@given(st.floats(0, 1), st.floats(0, 1), st.sampled_from(GATES), st.sampled_from(list(CATEGORIES)), speakers)
def test_what_is_clearer_is_no_less_sure(one: float, other: float, gate: str, category: str, speaker: Speaker) -> None:
    low, high = sorted((one, other))
    sure = [confidence_of(gate, category, clarity, speaker) for clarity in (low, high)]  # type: ignore[arg-type]
    assert sure == sorted(sure)
    assert confidence_of(gate, category, high, "assistant") <= confidence_of(gate, category, high, "user")  # type: ignore[arg-type]


@pytest.mark.invariant("The models that choose are readable and small; no feature is a place or the kind of a source")
def test_weights_of_other_classes_are_refused_and_the_file_stays_small() -> None:
    held = json.loads(WEIGHTS.read_bytes())
    assert WEIGHTS.stat().st_size < 300_000
    assert sum(map(len, HEADS.values())) == len(held["bias"])
    with pytest.raises(ValueError, match="other classes"):
        Model(held | {"heads": held["heads"] | {"gate": ["one", "two"]}})


def test_a_word_is_of_one_class() -> None:
    lines = (WEIGHTS.parent / "word_classes.txt").read_text().splitlines()
    words = [word for line in lines if not line.startswith("#") for word in line.partition(":")[2].split()]
    assert len(words) == len(set(words)) == len(classifier.word_classes())


@pytest.mark.parametrize("piece", ["a ", "not ", "we ", "a_b ", "a/", "`", "(", "is it really ", "A. ", "Ab", "1."])
def test_a_megabyte_costs_what_a_page_costs(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    page = text[:4000]

    def took(said: str) -> float:
        begun = time.perf_counter()
        classify(said, speaker="user")
        return time.perf_counter() - begun

    took(page)
    assert (
        min(took(text + str(turn)) for turn in range(3)) < 20 * min(took(page + str(turn)) for turn in range(3)) + 0.02
    )


@pytest.mark.skipif(
    not (EVALUATION / "sentences.jsonl").is_file(), reason=f"no labelled set at {EVALUATION}; set CSMD_EVAL"
)
def test_on_rows_that_it_was_not_fitted_on_the_gates_have_a_macro_f1_of_seven_tenths() -> None:
    sys.path.insert(0, str(BENCH))
    import train_classifier as bench

    rows = bench.sentences(EVALUATION, odd=True)
    assert len(rows) == 1006
    found = bench.figures(rows, classifier.load_model())
    assert found["with none"]["macro"] >= 0.70
    assert found["gates"]["macro"] >= 0.70
    assert min(found["gates"].values()) >= 0.65
