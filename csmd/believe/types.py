"""Which of the twelve types a memory has (seed 000): by how it came to be and what it tells, else by its category.

Each type has a path that ends in it; the first row that fits decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from csmd.model import CATEGORIES, MemoryType, Statement

#: The origin of what the assistant's self model states.
SELF = "self"
#: An assistant on itself: what it cannot do here, what it keeps doing.
_ON_ITSELF = re.compile(
    r"\bI(?:'m| am)? (?:can't|cannot|can not|not able to|unable to|tend to|keep (?:\w+ing)|always|never)\b",
    re.IGNORECASE,
)
#: How a failure shows itself.
_FAILURE = re.compile(
    r"\b(?:errors?|exception|traceback|panics?|segfaults?|core dump|stack trace|exit(?:s|ed)? (?:code|status|with)|"
    r"crash(?:es|ed)?|fail(?:s|ed|ure|ing)?|times? out|timed out|refused|denied)\b|\b\w+(?:Error|Exception)\b",
    re.IGNORECASE,
)
#: What was done, told by who did it.
_DONE = re.compile(
    r"^\W*(?:(?:I|we)(?:'ve| have)? |done[:.,] )?(?:now |also |just )?(?:added|changed|created|deleted|extracted|fixed|implemented|"
    r"introduced|merged|moved|refactored|released|removed|renamed|replaced|rewrote|reverted|simplified|switched|updated|wrote)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Said:
    """A statement with where it came from: `kind` of the turn that says it ("" for none), `origin` of the memory."""

    statement: Statement
    kind: str
    origin: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A type, when it is the one, and that condition in words."""

    type: MemoryType
    why: str
    fits: Callable[[Said], bool]


def _by_assistant(said: Said) -> bool:
    return said.statement.authority == "assistant"


RULES: tuple[Rule, ...] = (
    Rule("self_continuity", "stated by the self model, or by the assistant of itself",
         lambda said: said.origin == SELF or (_by_assistant(said) and bool(_ON_ITSELF.search(said.statement.text)))),
    Rule("conversation", "told by a summary of the conversation", lambda said: said.kind == "summary"),
    Rule("error", "a gotcha that shows how something fails",
         lambda said: said.statement.category == "gotcha" and bool(_FAILURE.search(said.statement.text))),
    Rule("episodic", "the assistant tells what it did, or a session's digest does",
         lambda said: "digest" in said.statement.reasons or (_by_assistant(said) and bool(_DONE.search(said.statement.text)))),
)  # fmt: skip


def type_of(statement: Statement, *, kind: str, origin: str) -> MemoryType:
    """The type of the memory that a statement becomes."""
    said = Said(statement, kind, origin)
    return next((rule.type for rule in RULES if rule.fits(said)), CATEGORIES[statement.category].type)
