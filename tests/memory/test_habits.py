"""A plan of promotion: every gate keeps out by itself, and every action has its reasons."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from csmd.memory import habits
from csmd.model import Candidate, Evidence

SURE = Candidate(
    id="c1", kind="preference", source="habits", project_seq=1, fingerprint="order:commit", text="Says when to commit: in 3 of 3 sessions.",
    reason="", confidence=0.7, reinforcement=3, created_at="2026-01-01", updated_at="2026-01-02",
    evidence=tuple(Evidence(uuid=f"u{number}", session_id=f"s{number}", at="2026-01-01") for number in range(2)),
)  # fmt: skip


@pytest.mark.invariant("Each threshold of promotion keeps out by itself and says why; only a person lowers them")
@pytest.mark.parametrize(
    ("changed", "step", "reason"),
    [
        ({}, "promote", "confidence 70 (at least 70)"),
        ({"confidence": 0.69}, "wait", "confidence 69, 70 are needed"),
        ({"reinforcement": 2}, "wait", "times seen 2, 3 are needed"),
        ({"evidence": SURE.evidence[:1]}, "wait", "evidence 1, 2 are needed"),
        ({"evidence": (SURE.evidence[0], replace(SURE.evidence[1], against=True))}, "wait", "evidence 1, 2 are needed"),
        ({"contradicted": 1}, "review", "1 session against it"),
        ({"kind": "drift_warning"}, "wait", "nothing to remember"),
        ({"kind": "duplicate"}, "wait", "nothing to remember"),
        ({"id": "known"}, "known", "m1 says the same"),
    ],
)
def test_each_gate_keeps_out_by_itself_and_says_why(changed: dict[str, Any], step: str, reason: str) -> None:
    (action,) = habits.promotions([replace(SURE, **changed)], profile=habits.DEFAULT, known={"known": "m1"})
    assert action.step == step and reason in "; ".join(action.reasons)


def test_the_relaxed_thresholds_are_lower_and_skip_no_gate() -> None:
    weak = replace(SURE, confidence=0.3, reinforcement=1, evidence=SURE.evidence[:1])
    steps = [
        habits.promotions([one], profile=profile, known={})[0].step
        for one in (weak, replace(weak, contradicted=1))
        for profile in (habits.DEFAULT, habits.RELAXED)
    ]
    assert steps == ["wait", "promote", "review", "review"]


def test_the_surest_come_first_whatever_the_order() -> None:
    some = [replace(SURE, id=f"c{number}", confidence=number / 10, fingerprint=str(number)) for number in (3, 9, 5)]
    for given in (some, some[::-1]):
        assert [action.candidate.id for action in habits.promotions(given, profile=habits.DEFAULT, known={})] == [
            "c9",
            "c5",
            "c3",
        ]
