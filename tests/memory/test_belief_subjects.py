"""Beliefs by subject: in the best wording, with how many turns and sessions state them."""

from __future__ import annotations

import pytest
from memory_factory import memory

from csmd.knowledge import Provenance
from csmd.memory.belief_subjects import group_beliefs


def sources(*sessions: str) -> tuple[Provenance, ...]:
    return tuple(
        Provenance(uuid=f"{session}-{number}", session_id=session, at=f"2026-03-0{number + 1}T10:00:00.000Z")
        for number, session in enumerate(sessions)
    )


def test_what_is_of_one_subject_is_told_once_in_the_wording_with_the_best_evidence() -> None:
    beliefs = group_beliefs(
        [
            memory("m1", "Indent Python with tabs", gate="behavioral", provenance=sources("s1")),
            memory(
                "m2", "Indent Python code with tabs, never spaces", gate="behavioral", provenance=sources("s2", "s3")
            ),
            memory("m3", "Postgres carries the job queue", category="decision", provenance=sources("s4", "s5", "s6")),
        ]
    )
    assert [(belief.kind, belief.memory.id, [other.id for other in belief.others]) for belief in beliefs] == [
        ("preference", "m2", ["m1"]),
        ("opinion", "m3", []),
    ]
    assert (beliefs[0].turns, beliefs[0].sessions, beliefs[0].subject) == (3, 3, "python")


def test_what_an_assistant_said_once_is_no_belief_nor_is_what_was_put_aside() -> None:
    text = "The parser works on tokens"
    for changes in (
        {"authority": "assistant"},
        {"tier": "archive"},
        {"superseded_by": "m9"},
        {"category": "fact"},
        {"category": "gotcha"},
    ):
        assert group_beliefs([memory("m1", text, **changes)]) == []
    assert len(group_beliefs([memory("m1", text, authority="assistant", provenance=sources("s1", "s2"))])) == 1


def test_the_most_told_come_first() -> None:
    many = [
        memory(
            f"m{number}", f"{word} is what we take", provenance=sources(*(f"s{session}" for session in range(number)))
        )
        for number, word in enumerate(("Redis", "Kafka", "Nginx"), 1)
    ]
    assert [belief.sessions for belief in group_beliefs(many)] == [3, 2, 1]


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("Never restart the mail gateway by hand", "mail gateway"),
        ("Deploy only after the smoke suite is green, on 2026-03-01", "smoke suite"),
        ("Put it under <path>", ""),
        ("Always ask before deleting", ""),
        ("Prices are kept in `price_cents`", "price cents"),
    ],
)
def test_a_subject_is_a_noun_phrase_or_nothing(text: str, subject: str) -> None:
    beliefs = group_beliefs([memory("m1", text, gate="behavioral", provenance=sources("s1"))])
    assert [belief.subject for belief in beliefs] == [subject]


def test_the_other_half_of_an_exchange_does_not_count_as_a_statement_of_a_belief() -> None:
    stated, *_ = sources("s1")
    answered = Provenance(uuid="s2-1", session_id="s2", at=stated.at, role="beside")
    (belief,) = group_beliefs(
        [memory("m1", "Indent Python with tabs", gate="behavioral", provenance=(stated, answered))]
    )
    assert (belief.turns, belief.sessions, belief.memory.times) == (1, 1, 1)
