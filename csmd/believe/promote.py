"""Which candidates become memories, and why: a plan that can be read before anything is done.

Gates: confidence, how often it was seen, pieces of evidence, nobody says the same already, nothing against it. What
something counts against waits for a person. `relaxed` is for looking at what a small history would give; nothing
uses it unless it is asked for by name. Pure: applying a plan is the stage's, which plans anew what has moved since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from csmd import text
from csmd.believe.scan import KINDS
from csmd.model import Candidate


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a candidate has to reach: confidence (0-1), times seen, pieces of evidence."""

    confidence: float
    reinforcement: int
    evidence: int


DEFAULT = Profile(confidence=0.7, reinforcement=3, evidence=2)
RELAXED = Profile(confidence=0.3, reinforcement=1, evidence=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What is to be done with one candidate, and the reasons in words; `memory_id` is what says the same already."""

    candidate: Candidate
    step: Literal["promote", "review", "known", "wait"]
    reasons: tuple[str, ...]
    memory_id: str = ""


def plan(candidates: Iterable[Candidate], *, profile: Profile, known: Mapping[str, str]) -> list[Action]:
    """What is to be done with candidates that wait, the surest first; `known` names the memory that says the same."""
    ordered = sorted(candidates, key=lambda one: (-one.confidence, one.kind, one.fingerprint, one.project_seq))
    return [_action(one, profile, known.get(one.id, "")) for one in ordered]


def _action(candidate: Candidate, profile: Profile, known: str) -> Action:
    if candidate.kind not in KINDS or not KINDS[candidate.kind].promoted:
        return Action(candidate=candidate, step="wait", reasons=("is told, and is nothing to remember",))
    if candidate.contradicted or candidate.status == "needs_review":
        times = text.amount(candidate.contradicted, "session")
        return Action(candidate=candidate, step="review", reasons=(f"{times} against it: a person has to say",))
    if known:
        return Action(candidate=candidate, step="known", reasons=(f"{known} says the same",), memory_id=known)
    evidence = sum(not one.against for one in candidate.evidence)
    measured = (
        ("confidence", round(candidate.confidence * 100), round(profile.confidence * 100), candidate.confidence >= profile.confidence),
        ("times seen", candidate.reinforcement, profile.reinforcement, candidate.reinforcement >= profile.reinforcement),
        ("evidence", evidence, profile.evidence, evidence >= profile.evidence),
    )  # fmt: skip
    if all(enough for *_, enough in measured):
        return Action(
            candidate=candidate,
            step="promote",
            reasons=tuple(f"{name} {has} (at least {needed})" for name, has, needed, _ in measured),
        )
    return Action(
        candidate=candidate,
        step="wait",
        reasons=tuple(f"{name} {has}, {needed} are needed" for name, has, needed, enough in measured if not enough),
    )
