"""Habits are counted over sessions: what recurs is named with its counts, and the order of sessions makes no difference."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.extraction import packets
from csmd.knowledge import Packet, State
from csmd.memory import habits
from csmd.vocabulary import PacketKind

CALM = State(frustration=0.0, energy=0.5, stance="orders", urgency=0.0)
_NUMBERS = itertools.count(1)


def packet(
    session: int, kind: PacketKind, subject: str, outcome: str = "asked", *, ordinal: int = 0, words: int = 3
) -> Packet:
    number = next(_NUMBERS)
    return Packet(
        kind=kind, subject=subject, outcome=outcome, uuid=f"u{session}-{kind}-{subject}-{ordinal or number}",
        session_id=f"s{session}", project_seq=1, ordinal=ordinal or number, words=words, state=CALM,
        at=f"2026-03-{session % 28 + 1:02}T10:{(ordinal or number) % 60:02}:00.000Z",
    )  # fmt: skip


def plain_sessions(count: int) -> list[Packet]:
    return [packet(number, "session", "begin", "") for number in range(count)]


def habit_texts(packets: list[Packet]) -> dict[str, str]:
    return {habit.fingerprint: habit.text for habit in habits.find_habits(packets)}


def test_an_order_that_recurs_is_told_in_its_shortest_wording_with_its_counts_and_once_is_none() -> None:
    worded = [
        "water the tomatoes",
        "water all tomatoes on the roof",
        "give the tomatoes some water",
        "water the tomatoes",
    ]
    orders = [packet(number, "order", words) for number, words in enumerate(worded)]
    assert habit_texts(plain_sessions(6) + orders) == {
        "order:tomato water": 'Asks again and again: "water the tomatoes": in 4 of 6 sessions.'
    }
    assert habit_texts(plain_sessions(6) + [packet(1, "order", "water the tomatoes") for _ in range(5)]) == {}
    single = [packet(number, "order", "deploy") for number in range(3)]
    assert habit_texts(single)["order:deplo"] == 'Asks again and again: "deploy": in 3 of 3 sessions.'


#: A prompt that assents, greets, thanks or lets the other go on, in as many languages as csmd knows the words of.
DIALOGUE = [
    "Sounds good, thank you!", "Alles klar, weitermachen bitte", "Bonsoir, c'est parfait merci", "Buenas tardes. Correcto, sigue",
    "D'accordo, procedi", "Combinado, prossiga", "Akkoord, ga verder", "Tack, fortsätt", "Selvfølgelig, fortsett",
    "Selvä, jatka kiitos", "Dobrze, kontynuuj", "Jasně, pokračuj", "Rendben, folytasd", "Mulțumesc, continuă", "Harika, devam edelim",
    "Baik, lanjutkan", "Vâng, tiếp tục", "Понятно, продолжим", "Гаразд, продовжуй", "Εντάξει, συνέχισε", "حسنا، تابع",
    "בסדר, תמשיך", "没问题，接着", "很好继续吧", "了解です、続行してください", "おはようございます", "알겠습니다. 진행해주세요",
]  # fmt: skip


@pytest.mark.parametrize("prompt", DIALOGUE)
def test_who_assents_greets_or_says_to_go_on_has_no_habit(prompt: str) -> None:
    ordered = [order.words for order in packets.find_orders(prompt)] or [prompt.lower()]
    assert habit_texts([packet(number, "order", words) for number in range(5) for words in ordered]) == {}


def test_orders_that_share_one_word_are_different_ones_and_each_counts_once() -> None:
    orders = [
        packet(number, "order", words)
        for number in range(3)
        for words in ("water the roses", "water the lawn at night")
    ]
    both = [packet(number, "order", "water roses and lawn") for number in range(3, 5)]
    assert habit_texts(orders + both) == {
        "order:lawn water": 'Asks again and again: "water roses and lawn": in 5 of 5 sessions.',
        "order:ros water": 'Asks again and again: "water the roses": in 3 of 5 sessions.',
    }


def test_the_command_that_serves_a_purpose_in_most_sessions_is_told() -> None:
    ran = [packet(number, "tool", "mise run test", "ok") for number in range(41)]
    other = [packet(number, "tool", "go test", "ok") for number in range(41, 43)]
    linted = [packet(number, "tool", "mise run lint", "ok") for number in range(9)]
    assert habit_texts(ran + other + linted) == {
        "commands": "`mise run lint` lints and `mise run test` runs the tests: in 9 and 41 sessions."
    }
    assert habit_texts(ran[:3] + other) == {"commands": "`mise run test` runs the tests: in 3 sessions."}
    assert habit_texts(ran[:2] + other) == {}, "neither of two is the one"


def release(session: int, *, changelog: bool = True) -> list[Packet]:
    steps = ["CHANGELOG.md"] * changelog + ["package.json"]
    made = [packet(session, "tool", name, "ok", ordinal=place + 1) for place, name in enumerate(steps)]
    return [*made, packet(session, "milestone", "git tag", "ok", ordinal=9)]


def test_what_stands_before_every_release_is_a_procedure() -> None:
    assert habit_texts([step for number in range(4) for step in release(number)]) == {
        "procedure:release": "A release is `CHANGELOG.md`, `package.json`, then `git tag`: 4 of 4 times."
    }
    some = [step for number in range(4) for step in release(number, changelog=number > 0)]
    assert habit_texts(some) == {
        "procedure:release": "A release is `CHANGELOG.md`, `package.json`, then `git tag`: 3 of 4 times."
    }
    assert habit_texts([step for number in range(4) for step in release(number, changelog=number > 2)]) == {}


def test_steps_count_from_the_milestone_before_and_failed_ones_do_not() -> None:
    run = [
        step
        for number in range(3)
        for step in (
            packet(number, "tool", "make lint", "ok", ordinal=1), packet(number, "tool", "make test", "failed", ordinal=2),
            packet(number, "milestone", "git commit", "ok", ordinal=3), packet(number, "milestone", "git commit", "ok", ordinal=4),
        )
    ]  # fmt: skip
    assert habit_texts(run)["procedure:commit"] == "Before a commit comes `make lint`: 3 of 3 times."


def test_a_failing_command_is_a_warning_only_where_it_did_not_fail_before() -> None:
    runs = [packet(number, "tool", "make test", "ok") for number in range(8)]
    failing = [packet(number, "tool", "make test", "failed") for number in range(20, 25)]
    (warning,) = [
        candidate
        for candidate in habits.derive_candidates(runs + failing, project=1)
        if candidate.kind == "drift_warning"
    ]
    assert warning.text == "`make test` fails lately: 5 of the latest 6 runs."
    always = [packet(number, "tool", "make test", "failed") for number in range(20)]
    assert [
        candidate for candidate in habits.derive_candidates(always, project=1) if candidate.kind == "drift_warning"
    ] == []


@pytest.mark.parametrize(
    ("count", "fit", "against", "wanted"),
    [(2, 1, 0, 0.6154), (3, 1, 0, 0.7059), (12, 1, 0, 0.9057), (12, 1, 1, 0.7763), (4, 0.5, 0, 0.381), (0, 1, 0, 0)],
)
def test_confidence_follows_its_formula(count: int, fit: float, against: int, wanted: float) -> None:
    assert habits.estimate_confidence(count, fit=fit, against=against) == pytest.approx(wanted, abs=1e-4)


@given(st.integers(0, 10**6), st.floats(0, 100), st.integers(0, 1000))
def test_confidence_stays_within_bounds_and_contradiction_lowers_it(count: int, fit: float, against: int) -> None:
    sure = habits.estimate_confidence(count, fit=fit, against=against)
    assert 0 <= sure <= 1 and sure <= habits.estimate_confidence(count, fit=fit, against=0)


def test_what_counts_against_it_needs_a_person_and_an_assistants_command_is_its_word() -> None:
    packets = [packet(number, "order", "commit") for number in range(5)] + [packet(9, "order", "commit", "against")]
    (candidate,) = habits.derive_candidates(packets, project=1)
    assert (
        candidate.status,
        candidate.contradicted,
        [source.against for source in candidate.evidence].count(True),
    ) == (
        "needs_review",
        1,
        1,
    )
    assert {kind: rule.authority for kind, rule in habits.KINDS.items()} == {
        "preference": "user", "belief": "assistant", "worldview": "assistant", "drift_warning": "assistant",
    }  # fmt: skip


@given(st.randoms(use_true_random=False))
def test_the_order_of_sessions_makes_no_difference(chance: random.Random) -> None:
    packets = [
        packet(number % 5, kind, subject, outcome, ordinal=number, words=number % 4)  # type: ignore[arg-type]
        for number, (kind, subject, outcome) in enumerate(
            [("order", "commit", "asked"), ("order", "add tests", "asked"), ("tool", "make lint", "ok"),
             ("milestone", "git commit", "ok"), ("order", "commit", "against"), ("tool", "make test", "failed")] * 5, 1
        )
    ]  # fmt: skip
    wanted = habits.derive_candidates(packets, project=1)
    chance.shuffle(packets)
    assert wanted and habits.derive_candidates(packets, project=1) == wanted
