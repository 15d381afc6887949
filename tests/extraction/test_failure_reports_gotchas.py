"""The two halves of a gotcha find each other, and what speaks against a cause is told from what does not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csmd.extraction import failure_reports
from csmd.extraction.failure_reports import Failed, Spoken, Told

AT = "2026-03-01T10:00:00.000Z"
CAUSE = "The cause was that `load_settings` returned a fresh object instead of reading the file first."


def turns(*said: tuple[str, str]) -> list[Spoken]:
    return [Spoken(f"u{place}", kind, text, AT, place) for place, (kind, text) in enumerate(said, 1)]


def told(text: str, place: int, *, key: int = 0, category: str = "gotcha", authority: str = "assistant") -> Told:
    return Told(key or place, text, category, authority, f"u{place}", place)


def symptoms(found: failure_reports.Relations) -> list[tuple[int, str]]:
    return [(one.key, one.uuid) for one in found.symptoms]


def test_what_was_reported_belongs_to_the_cause_that_answers_it() -> None:
    said = turns(("user", "I just lost my theme setting after running setup."), ("assistant", CAUSE))
    found = failure_reports.relate(said, [told(CAUSE, 2)], [])
    assert symptoms(found) == [(2, "u1")]
    assert found.symptoms[0].text == "I just lost my theme setting after running setup."


REPORTS = [
    ("I get an empty list when I start it", True),
    ("the checkpoints are missing on the other branch", True),
    ("can you fix the bug with the empty list?", True),
    ("why does it fail now?", True),
    ("can you add a test so we don't forget?", False),
    ("let's summarize this now", False),
    ("commit and push", False),
    ("please rename it to till", False),
]


@pytest.mark.parametrize("said, reports", REPORTS)
def test_a_report_is_told_from_an_order(said: str, reports: bool) -> None:
    assert bool(failure_reports.symptom_in(said)) is reports


def test_an_older_report_belongs_to_a_cause_only_when_both_name_the_same() -> None:
    said = turns(
        ("user", "settings are broken: load_settings gives me nothing"),
        ("assistant", "Looking."),
        ("user", "the colours of the chart are wrong"),
        ("assistant", "Looking."),
        ("user", "thanks, go on with load_settings"),
        ("assistant", CAUSE),
    )
    assert symptoms(failure_reports.relate(said, [told(CAUSE, 6)], [])) == [(6, "u1")]


def test_a_failure_belongs_to_the_cause_that_names_it() -> None:
    failed = [
        Failed("f1", "go test", "undefined: load_settings", "r1", AT, 1),
        Failed("f2", "go vet", "unrelated words here", "r2", AT, 1),
        Failed("f1", "go test", "undefined: load_settings", "r3", AT, 5),
    ]
    found = failure_reports.relate(
        turns(("user", "go on"), ("assistant", "."), ("assistant", CAUSE)), [told(CAUSE, 3)], failed
    )
    assert [(one.uuid, one.fingerprint) for one in found.symptoms] == [("r1", "f1")]


def test_where_both_halves_are_memories_they_are_linked() -> None:
    report = "Running enable with load_settings fails and my push setting is lost."
    said = turns(("user", report), ("assistant", CAUSE))
    found = failure_reports.relate(said, [told(report, 1, authority="user"), told(CAUSE, 2)], [])
    assert found.links == [(1, 2)]
    assert symptoms(found) == [(2, "u1")]  # what a user reports is no cause, and explains nothing


AGAINST = [
    ("user", "that's not it, load_settings and the file are fine", 0.50),
    ("user", "it still fails: load_settings returned a fresh object, not the file", 0.35),
    ("assistant", "I was wrong: `load_settings` reads the file first; the writer drops it.", 0.40),
    ("assistant", "You're right. `load_settings` reads the file first.", 0.20),
    ("user", "great, load_settings reads the file now. commit", 0.0),
    ("user", "that's not it, the colours of the chart are another matter", 0.0),
    ("assistant", "All tests pass: `load_settings` reads the file first.", 0.0),
]


@pytest.mark.parametrize("who, said, lowered", AGAINST)
def test_what_speaks_against_a_cause_says_so_and_is_about_it(who: str, said: str, lowered: float) -> None:
    talk = turns(("user", "load_settings is broken"), ("assistant", CAUSE), (who, said))
    found = failure_reports.relate(talk, [told(CAUSE, 2)], [])
    assert [one.lowered for one in found.refutations] == ([lowered] if lowered else [])


def test_what_a_user_states_is_not_refuted_and_what_comes_much_later_refutes_nothing() -> None:
    against = ("user", "that's not it, load_settings and the file are fine")
    talk = turns(("user", "x"), ("assistant", CAUSE), against)
    assert not failure_reports.relate(talk, [told(CAUSE, 2, authority="user")], []).refutations
    late = turns(("user", "x"), ("assistant", CAUSE), ("user", "go on"), ("user", "and on"), against)
    assert not failure_reports.relate(late, [told(CAUSE, 2)], []).refutations


def test_the_same_error_after_its_cause_was_named_speaks_against_the_cause() -> None:
    failed = [Failed("f1", "go test", "undefined: load_settings", f"r{place}", AT, place) for place in (1, 4)]
    found = failure_reports.relate(
        turns(("user", "x"), ("assistant", "."), ("assistant", CAUSE)), [told(CAUSE, 3)], failed
    )
    assert [(one.uuid, one.lowered, one.reason) for one in found.refutations] == [
        ("r4", 0.20, failure_reports.AGAIN[1])
    ]


def test_a_refuted_cause_names_the_one_that_stands_against_it() -> None:
    other = "I was wrong: the real cause is that the writer drops what `load_settings` returned."
    talk = turns(("user", "load_settings is broken"), ("assistant", CAUSE), ("assistant", other))
    found = failure_reports.relate(talk, [told(CAUSE, 2), told(other, 3)], [])
    assert [(one.key, one.by) for one in found.refutations] == [(2, 3)]


def test_over_a_sessions_end_only_names_count_and_only_for_some_days() -> None:
    symptom, cause = "load_settings loses push_setting", "push_setting was dropped because load_settings is fresh"
    day = "2026-03-02T10:00:00.000Z"
    assert failure_reports.belongs_across(symptom, AT, cause, day)
    assert not failure_reports.belongs_across(symptom, day, cause, AT)
    assert not failure_reports.belongs_across(symptom, AT, cause, "2026-04-02T10:00:00.000Z")
    assert not failure_reports.belongs_across("load_settings is slow", AT, cause, day)
    assert not failure_reports.belongs_across(symptom, "", cause, day)


def test_a_diagnosis_is_a_sentence_that_was_said_and_none_is_better_than_another_failures() -> None:
    before = ("a1", "Let me look. The test fails because `load_settings` returns a fresh object.", True)
    after = ("a2", "Fixed the colours of the chart. All tests pass now.", False)
    assert failure_reports.diagnosis([before, after], about="--- FAIL: TestSettings") == (
        "a1",
        "The test fails because `load_settings` returns a fresh object.",
    )
    assert failure_reports.diagnosis([after], about="--- FAIL: TestSettings") == ("", "")


WORDS = st.lists(st.sampled_from(["I get", "because", "`a_b`", "still fails", "that's not it", "the cause was", "."]))


@given(
    st.lists(st.tuples(st.sampled_from(["user", "assistant", "summary"]), WORDS.map(" ".join)), max_size=8),
)
@settings(max_examples=60, deadline=None)
def test_whatever_is_said_what_belongs_together_does_not_depend_on_how_memories_are_listed(
    said: list[tuple[str, str]],
) -> None:
    talk = turns(*said)
    memories = [told(turn.text, turn.ordinal) for turn in talk if turn.text]
    one = failure_reports.relate(talk, memories, [])
    other = failure_reports.relate(talk, [*reversed(memories)], [])
    assert set(one.symptoms) == set(other.symptoms) and set(one.links) == set(other.links)
    assert {(x.key, x.uuid, x.lowered) for x in one.refutations} == {
        (x.key, x.uuid, x.lowered) for x in other.refutations
    }
