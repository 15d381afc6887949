"""What a sentence is: golden cases of many projects, and what holds for every sentence."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.distill import kind as kinds
from csmd.distill.kind import GATES, SURE, Speaker, confidence_of, kind
from csmd.distill.kind_weights import BIAS, WEIGHTS
from csmd.distill.traits import CUES, SMALL_WORDS, TOGETHER, relation, traits
from csmd.model import CATEGORIES

EVALUATION = Path(os.environ.get("CSMD_EVAL") or Path(__file__).resolve().parents[3] / "shared" / "eval")
BENCH = Path(__file__).resolve().parent.parent / "bench"

SAID_BY_USERS = [
    ("no, that's wrong: the tax rate is per line, not per invoice", "correction", "fact"),
    ("actually the fixtures live in spec/, not in tests/", "correction", "fact"),
    ("why don't we use the existing retry helper?", "correction", "preference"),
    ("that's not how we do it: handlers never touch the database directly", "correction", "fact"),
    ("it's called tenant_id not customer_id", "correction", "fact"),
    ("you put the check into the wrong handler", "correction", "fact"),
    ("I prefer flat loops over nested ones", "behavioral", "preference"),
    ("from now on run the linter on every file you touch", "behavioral", "convention"),
    ("don't forget to update the changelog before you push", "behavioral", "procedure"),
    ("error strings start lower case in this codebase, please keep that", "behavioral", "convention"),
    ("never use floats for money", "behavioral", "convention"),
    ("let's go with sqlite for the cache because it needs no server", "epistemic", "decision"),
    ("the nightly import fails because the vendor sends two headers", "epistemic", "gotcha"),
    ("the rate limit is 100 requests per minute", "epistemic", "fact"),
    ("remember that the staging host is only reachable over VPN", "epistemic", "constraint"),
    ("Priya owns the billing service", "relational", "person"),
    ("I'll follow up with the vendor next week", "promissory", "plan"),
    ("We're back on Redis", "epistemic", "fact"),
    ("I'm Marta", "relational", "person"),
]
SAID_BY_ASSISTANTS = [
    ("The root cause was that the cache key lacked the locale.", "epistemic", "gotcha"),
    ("The exporter doesn't support nested tables.", "epistemic", "constraint"),
    ("Sessions now use the repository's root instead of the current directory.", "epistemic", "decision"),
    ("Retries for the mail queue are left for a separate pull request as follow-up.", "promissory", "plan"),
    ("No, that's wrong: the parser never sees comments.", "epistemic", "fact"),
]
speakers = st.sampled_from(["user", "assistant"])
sentences = st.one_of(
    st.text(max_size=300),
    st.lists(st.sampled_from([*sorted(SMALL_WORDS), "Anna", "`code()`", "tests", "wrong?", "2"]), max_size=30).map(
        " ".join
    ),
)


@pytest.mark.parametrize(("said", "gate", "category"), SAID_BY_USERS)
def test_what_a_user_says_is_known_for_what_it_is(said: str, gate: str, category: str) -> None:
    found = kind(said, speaker="user")
    assert (found.gate, found.category) == (gate, category), found.reasons


@pytest.mark.parametrize(("said", "gate", "category"), SAID_BY_ASSISTANTS)
def test_what_an_assistant_says_is_an_account_and_never_a_correction(said: str, gate: str, category: str) -> None:
    found = kind(said, speaker="assistant")
    assert (found.gate, found.category) == (gate, category), found.reasons


@pytest.mark.parametrize(
    ("said", "before", "expected"),
    [
        ("the token is not sent with the header", "Done. I've added the token to the header.", {"denies", "reported"}),
        ("the token is sent with the header", "Done. I've added the token to the header.", {"reported"}),
        ("use the second one", "Shall I use a list or a map?", {"answers", "new_subject"}),
        ("the token is not sent", "", set()),
    ],
)
def test_how_a_sentence_answers_is_seen(said: str, before: str, expected: set[str]) -> None:
    found = relation(said, before)
    assert expected <= found
    assert ("denies" in found) == ("denies" in expected)
    assert bool(found) == bool(before)


def test_what_denies_the_report_before_it_is_nearer_to_a_correction() -> None:
    said, report = (
        "the lock is only taken by the second writer",
        "Done. I've changed it: the first writer takes the lock.",
    )
    alone, answering = (kinds.weigh(traits(said, before=before)) for before in ("", report))
    assert answering["correction"] - answering["epistemic"] > alone["correction"] - alone["epistemic"]


@given(sentences, speakers, sentences)
def test_every_sentence_is_something_within_what_its_category_allows(said: str, speaker: Speaker, before: str) -> None:
    found = kind(said, speaker=speaker, before=before)
    rule = CATEGORIES[found.category]
    assert found.gate in GATES and found.reasons
    assert rule.low <= found.confidence <= min(rule.high, kinds.CONFIDENCE_MOST)
    assert speaker == "user" or found.gate != "correction"
    assert kind(said, speaker=speaker, before=before) == found


@given(st.floats(0, 1), st.floats(0, 1), st.sampled_from(GATES), st.sampled_from(list(CATEGORIES)), speakers)
def test_what_is_clearer_is_no_less_sure(one: float, other: float, gate: str, category: str, speaker: Speaker) -> None:
    low, high = sorted((one, other))
    sure = [confidence_of(gate, category, clarity, speaker) for clarity in (low, high)]  # type: ignore[arg-type]
    assert sure == sorted(sure)
    assert confidence_of(gate, category, high, "assistant") <= confidence_of(gate, category, high, "user")  # type: ignore[arg-type]


def test_weights_are_of_traits_that_there_are_and_of_no_projects_words() -> None:
    told = {name for name, _ in CUES} | {name for name, _ in TOGETHER}
    told |= {f"{place}:{word}" for place in ("w", "first") for word in SMALL_WORDS}
    told |= {"negated", "prose", "starts_the", "asks", "works"}
    told |= {"same_subject", "shares", "new_subject", "denies", "answers", "reported", "long_before"}
    assert set(WEIGHTS) | set(kinds.POLICY) <= told
    assert {len(row) for row in (BIAS, *WEIGHTS.values())} == {len(GATES)}


@pytest.mark.parametrize("row", SURE, ids=lambda row: row[0])
def test_a_sure_row_names_a_gate_that_its_speakers_may_have(row: tuple[str, str, str, object]) -> None:
    _, heard, gate, _ = row
    assert gate in GATES and set(heard) <= {"u", "a"}
    assert not ("a" in heard and gate == "correction")


@pytest.mark.parametrize("piece", ["a ", "not ", "we ", "a_b ", "a/", "`", "(", "is it really ", "the module ", "A. "])
def test_a_megabyte_costs_what_a_page_costs(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    page = text[:4000]

    def took(said: str) -> float:
        begun = time.perf_counter()
        kind(said, speaker="user", before=said)
        return time.perf_counter() - begun

    took(page)
    assert min(took(text) for _ in range(3)) < 20 * min(took(page) for _ in range(3)) + 0.01


@pytest.mark.skipif(not (EVALUATION / "transcripts").is_dir(), reason=f"no labelled set at {EVALUATION}; set CSMD_EVAL")
def test_on_sessions_it_was_not_tuned_on_it_beats_the_choosers_cues_and_the_commonest_gate() -> None:
    sys.path.insert(0, str(BENCH))
    import kinds as bench

    check = [row for row in bench.memories(EVALUATION) if not row.tune]
    assert len(check) == 190
    assert bench.f1_of(check, bench.as_shipped)["macro"] >= 0.65
    assert bench.f1_of(check, lambda row: bench.as_shipped(row._replace(before="")))["macro"] >= 0.65
    assert bench.f1_of(check, bench.tables_of_classify)["macro"] < 0.5
