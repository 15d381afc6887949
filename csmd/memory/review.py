"""What a person can answer to what waits for one: policy as tables; pure.

Four answers, one key each. What each does depends on what is asked about: a memory, a belief that was inferred, a
pair of memories, a warning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from csmd.model import AUTHORITY_RANK, Candidate, CandidateKind, Memory

#: Pinning is asked of a memory by name and answers nothing that waits.
Verb = Literal["keep", "edit", "drop", "supersede", "pin", "unpin"]
About = Literal["memory", "belief", "pair", "change", "warning"]

#: A memory that nobody stated and that is less sure than this is shown to a person while it is new.
LOW = 0.7
NEW_DAYS = 30
#: How sure a memory is at least that a person has looked at and kept.
KEPT_CONFIDENCE = 0.9
#: Verb -> why a memory gave way to another, as its audit says it.
WHY: Mapping[Verb, str] = {"edit": "worded anew", "supersede": "told"}

#: The source of candidates that ask whether a newer memory replaces an older one.
CHANGE = "supersede"
ABOUT: Mapping[CandidateKind, About] = {
    "belief": "belief", "preference": "belief", "worldview": "belief", "opinion": "belief", "drift_warning": "warning",
    "duplicate": "pair", "near_duplicate": "pair", "stale": "memory", "missing_embedding": "memory", "orphan": "memory",
}  # fmt: skip
#: About -> verb -> what it does, as a person is told.
DOES: Mapping[About, Mapping[Verb, str]] = {
    "memory": {
        "keep": "it is right: from now on it counts as yours",
        "edit": "your wording takes its place",
        "drop": "it goes, and does not come back",
        "supersede": "another memory takes its place",
    },
    "belief": {
        "keep": "it becomes a memory of yours",
        "edit": "your wording becomes a memory",
        "drop": "it is not proposed again",
        "supersede": "it becomes a memory and takes another's place",
    },
    "pair": {
        "keep": "both stay, and you are not asked again",
        "edit": "your wording takes the place of both",
        "drop": "the second goes, and does not come back",
        "supersede": "the first takes the second's place",
    },
    "change": {
        "keep": "both hold, and you are not asked again",
        "edit": "your wording takes the place of both",
        "drop": "the older holds; the newer goes, and does not come back",
        "supersede": "the newer replaces the older, or the part that it speaks of",
    },
    "warning": {
        "keep": "seen: it leaves the list",
        "edit": "your wording becomes a memory",
        "drop": "it is not told again",
    },
}
#: Kind -> what it is called above its text.
TITLES: Mapping[CandidateKind, str] = {
    "belief": "inferred", "preference": "inferred preference", "worldview": "inferred view", "opinion": "inferred opinion",
    "drift_warning": "drift", "duplicate": "said twice", "near_duplicate": "nearly said twice", "stale": "old",
    "missing_embedding": "without a vector", "orphan": "without a source",
}  # fmt: skip


#: The same of what the pages that people edit have brought, and of what speaks against a memory; by source and kind.
TITLES_OF: Mapping[tuple[str, CandidateKind], str] = {
    ("page", "stale"): "removed from a page", ("page", "belief"): "written on a page by a tool",
    (CHANGE, "stale"): "replaced?",
}  # fmt: skip


def title(candidate: Candidate) -> str:
    """What stands above a candidate's text."""
    return TITLES_OF.get((candidate.source, candidate.kind), TITLES[candidate.kind])


def about(candidate: Candidate, alive: int) -> About:
    """What a candidate asks about, with so many of its memories still there."""
    if candidate.source == CHANGE:
        return "change" if alive > 1 else "warning"
    found = ABOUT[candidate.kind]
    if found == "pair" and alive < 2:
        return "memory" if alive else "warning"
    return "warning" if found == "memory" and not alive else found


def strength(memory: Memory) -> tuple[int, bool, float, str, str]:
    """By what one of two that say the same stays: who said it, pinned, how sure, how lately."""
    return AUTHORITY_RANK[memory.authority], memory.pinned, memory.confidence, memory.confirmed_at, memory.id


def why_shown(memory: Memory) -> str:
    """Why a memory waits for a person."""
    if memory.origin == "model_saved":
        return "a model saved it, and nobody has said it: no session is told it until you keep it"
    said = "an assistant said it" if memory.authority == "assistant" else "nobody you know has said it"
    return f"{said}, and csmd is only {memory.confidence * 100:.0f} % sure"
