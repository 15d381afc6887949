"""What a dream does, as values: actions with reason, evidence and the row versions they saw, and the plan of them.

The plan is the dry run: nothing is decided while it is carried out. What a plan has left is a plan of nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from csmd.model import Memory, Tier

#: In the order in which a dream does them; what one does the next one sees.
Kind = Literal[
    "merge",  # a memory goes into another that says the same
    "strengthen",  # what several sessions confirm is surer
    "supersede",  # of two that contradict each other the older gives way
    "ask",  # of two that may contradict each other a person says which holds
    "lift",  # what the user asked for in several projects holds everywhere
    "promote",  # to a longer tier
    "raise",  # what recurs in packets becomes a candidate, and a memory where it is sure enough
    "archive",  # what decayed, was superseded, or was for a day: found by explicit search from then on
]
Phase = Literal["orient", "gather", "consolidate", "prune"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something counted over journal and packets (the narrator's): a sentence in a template, with what it counts.

    `evidence` are uuids of turns, one of each session before any second; there are two at least. `fingerprint` is the
    same for the same fact whatever the counts are; `seen` of `total` occasions in `sessions` sessions.
    """

    kind: Literal["command", "procedure", "fix", "files", "convention"]
    fingerprint: str
    text: str
    project_seq: int
    seen: int
    total: int
    sessions: int
    confidence: float
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One change: of `memory` as it was seen (its version), into or by `other`; `raise` has a fact and no memory.

    `made` is the memory that a `lift` makes, `sure` how sure it is that what an `ask` asks about is so.

    `evidence` are ids of memories and uuids of turns that the reason rests on: the id of `other` first, then the turns
    that speak for the memory besides its own. `confidence` and `tier` are what the memory has afterwards, or of a merge
    the one that stays; None and "" where the action leaves them.
    """

    kind: Kind
    project_seq: int
    reason: str
    evidence: tuple[str, ...]
    memory: Memory | None = None
    other: Memory | None = None
    fact: Fact | None = None
    confidence: float | None = None
    tier: Tier | Literal[""] = ""
    made: Memory | None = None
    sure: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What orienting found in one project: memories by tier, how many say what another says, staleness (0-1) by tier."""

    project_seq: int
    tiers: dict[str, int]
    duplicates: int
    staleness: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamPlan:
    """What a dream would do, in its order, and what it was planned from."""

    actions: tuple[Action, ...] = ()
    tallies: tuple[Tally, ...] = ()
