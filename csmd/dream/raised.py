"""Facts that may become memories: which, as what, and in which words; pure.

A fact stands on its project's page; a memory is told to sessions, and has to recur for that.
Commands and procedures are habits', which are counted and promoted already (csmd/believe/scan.py). A candidate's words
hold no counts, so that the memory made of it stays the same while they grow: its reason has them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from csmd.believe import promote, score
from csmd.dream.actions import Fact
from csmd.model import CATEGORIES, Candidate, Category, Evidence

#: The rule that put such a candidate there, as `Candidate.source`.
SOURCE = "dream"
#: Kind of fact -> what it becomes: pattern, convention or gotcha. What is not here only stands on its page.
CATEGORY: Mapping[str, Category] = {"fix": "gotcha", "files": "pattern", "convention": "convention"}
#: In so many sessions it has to be seen: as often as a project had sessions between two dreams, and not by chance.
RECURS = 5
#: What was done, not only named, and never otherwise, in so many: then it is as sure as what is remembered unasked.
DONE, RECURS_ALWAYS = frozenset({"fix", "files"}), 3
#: The counts of a sentence: "(3 times in 2 sessions)", "mended 3 times", ": in 4 of 5 sessions" and ": 9 of 10" at its end.
_COUNTS = re.compile(
    r"\s*\(\d+ times? in \d+ sessions?\)|(?<=mended) \d+ times|[:,] (?:in )?\d+ of \d+(?: \w+)?(?=\.?$)"
)


def recurs(fact: Fact) -> bool:
    """Whether a fact that no habit tells was seen often enough to be remembered."""
    always = fact.kind in DONE and fact.sessions >= RECURS_ALWAYS and fact.confidence >= promote.DEFAULT.confidence
    return fact.kind in CATEGORY and (fact.sessions >= RECURS or always)


def core(fact: Fact) -> str:
    """What a fact says without its counts."""
    return _COUNTS.sub("", fact.text)


def candidate(fact: Fact) -> Candidate:
    """A fact as it waits in the queue; it has no id, and neither time nor session of its evidence yet."""
    category = CATEGORY[fact.kind]
    rule = CATEGORIES[category]
    return Candidate(
        id="", kind="belief", source=SOURCE, project_seq=fact.project_seq, fingerprint=fact.fingerprint,
        text=core(fact), reason=f"seen {fact.seen} of {fact.total} times in {fact.sessions} sessions",
        confidence=min(round(fact.confidence, 4), score.clamp(1.0, category, rule.gate)), created_at="", updated_at="",
        gate=rule.gate, category=category, reinforcement=fact.seen,
        evidence=tuple(Evidence(uuid=uuid, session_id="", at="") for uuid in sorted(fact.evidence)),
    )  # fmt: skip


def says(one: Candidate) -> Candidate:
    """What a candidate says, to be compared: without its id, its fate, and the times of its evidence."""
    evidence = tuple(Evidence(uuid=cited.uuid, session_id="", at="") for cited in one.evidence)
    return replace(
        one, id="", seq=0, version=1, status="open", memory_ids=(), created_at="", updated_at="",
        evidence=tuple(sorted(evidence, key=lambda cited: cited.uuid)),
    )  # fmt: skip
