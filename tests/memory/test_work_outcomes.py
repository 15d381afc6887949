"""How kinds of work ended is counted; a warning says where that got clearly worse, and is rare by chance."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

import pytest

from csmd.extraction.digest import OUTCOME_WORDS
from csmd.memory import work_outcomes
from csmd.memory.work_outcomes import DigestItem, StoredEnding, find_drifts, find_endings, sum_up_capabilities


@dataclass(frozen=True)
class Case:
    seen: tuple[tuple[str, str, str], ...]
    outcome: str
    wanted: dict[str, str]


CASES = (
    Case((("command", "uv run pytest -q", "mended"),), "checked", {"tests": "well"}),
    Case((("command", "pytest -k a", "failed"), ("command", "pytest", "passed")), "checked", {"tests": "well"}),
    Case((("command", "pytest", "failed"),), "failing", {"tests": "badly"}),
    Case((("command", "git rebase main", "failed"),), "unchecked", {"git": "badly"}),
    Case((("command", "git status", "passed"),), "answered", {}),
    Case((("file", "docs/usage.md", ""),), "rejected", {"documentation": "badly"}),
    Case((("file", "src/App.tsx", ""),), "committed", {"frontend": "well"}),
    Case((("file", "a.py", ""), ("word", "bug", "")), "corrected", {"debugging": "badly"}),
    Case((("word", "bug", ""),), "answered", {}),
    Case((("file", "db/migrations/2.sql", ""),), "unchecked", {"database": "undecided"}),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_was_done_and_how_it_ended_is_told_by_commands_files_and_the_goal(case: Case) -> None:
    seen = [DigestItem(kind, text, "u1", state) for kind, text, state in case.seen]
    assert {ending.capability: ending.outcome for ending in find_endings(case.outcome, seen)} == case.wanted


def test_every_outcome_of_a_session_counts_in_one_way() -> None:
    assert set(work_outcomes.ENDINGS) == set(OUTCOME_WORDS)


def ended(outcomes: str, *, name: str = "debugging", begin: int = 0) -> list[StoredEnding]:
    """`+` well, `-` badly, `?` undecided; one session each."""
    words = {"+": "well", "-": "badly", "?": "undecided"}
    return [
        StoredEnding(
            name, words[sign], f"u{begin + at}", f"s{begin + at}", f"2026-03-01T{at // 60:02d}:{at % 60:02d}:00.000Z"
        )
        for at, sign in enumerate(outcomes)
    ]


def test_a_confidence_is_a_share_of_decided_sessions_and_never_certain() -> None:
    (tests,) = sum_up_capabilities(ended("+" * 12 + "-" * 5 + "???"))
    assert (tests.well, tests.decided, tests.sessions, tests.confidence) == (12, 17, 20, 0.68)
    assert sum_up_capabilities(ended("+"))[0].confidence < 1
    assert sum_up_capabilities(ended("-"))[0].confidence > 0


def test_a_fork_does_not_count_twice_what_its_trunk_did() -> None:
    trunk = ended("++")
    assert sum_up_capabilities(
        [*trunk, *(ending._replace(session_id="fork") for ending in trunk)]
    ) == sum_up_capabilities(trunk)


def test_a_clear_fall_is_a_warning_and_a_bad_day_is_none() -> None:
    (drift,) = find_drifts(ended("+" * 14 + "+---+---"))
    assert (drift.recent_well, drift.recent, drift.earlier_well, drift.earlier) == (2, 8, 14, 14)
    assert len(drift.against) == 6
    assert find_drifts(ended("+" * 14 + "+++-+++-")) == []
    assert find_drifts(ended("+-" * 10)) == []
    assert find_drifts(ended("+" * 5 + "-" * 8)) == []


@pytest.mark.invariant(
    "Digests, links and the self model do not depend on the order of sessions; a warning is rare by chance and orders nothing"
)
def test_by_chance_alone_a_warning_is_rare() -> None:
    chance = random.Random(5)
    raised = sum(bool(find_drifts(ended("".join(chance.choices("+-", (3, 1), k=30))))) for _ in range(400))
    assert raised <= 400 * work_outcomes.MAX_CHANCE


@pytest.mark.invariant(
    "Digests, links and the self model do not depend on the order of sessions; a warning is rare by chance and orders nothing"
)
def test_a_warning_says_what_was_seen_and_orders_nothing() -> None:
    text = work_outcomes.describe_drift(find_drifts(ended("+" * 14 + "--------"))[0])
    assert text == "debugging: 0 of the last 8 sessions ended well, 14 of 14 before 2026-03-01"
    assert not re.search(r"\b(?:must|should|always|never|do not|stop|avoid)\b", text)
