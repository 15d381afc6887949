"""Which memories last where nobody asked: not what was about to change, was doubted, done at once or others'; pure.

Search and a prompt find such things, and they are believed as before. Where a session begins or a page is read a month
later they say what was true of one afternoon. A correction and a rule stay whatever stands beside them, and so does
what somebody pinned or wrote.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from csmd import text
from csmd.model import Authority, Gate, Memory
from csmd.patterns import at_first_use


class Passing(NamedTuple):
    """Why what somebody says is soon over: the words by which it is known, of whom, and in which gates (none: in all)."""

    why: str
    by: Authority
    said: re.Pattern[str]
    gates: frozenset[Gate] = frozenset()


def _re(pattern: str) -> re.Pattern[str]:
    return at_first_use(pattern, re.IGNORECASE)


#: The only one of these for which a correction is on no page.
DOUBTED = "doubted"

PASSING: tuple[Passing, ...] = (
    Passing("about to change", "user", _re(r"^\W*now,? (?:when|if)\b|\b(?:right now|currently|at the moment(?! of\b)|as of now)\b|^\W*the current\b")),
    Passing("about to change", "assistant", _re(r"\bcurrently\b|^\W*the current\b")),
    Passing(
        "about to change",
        "user",
        _re(r"\b(?:i(?:['’]d| would) like|i want|let['’]?s|can (?:you|we)|please) (?:us |you )?(?:to )?(?:change|fix|improve) (?:this|that|it)\b"),
    ),
    Passing(
        DOUBTED,
        "user",
        _re(r"\bi(?: am|['’]m) not (?:really |quite )?(?:sold|convinced|sure (?:(?:that )?this|about (?:this|that|it)|(?:if|whether) (?:this|that|it)))\b|\bi (?:might|may|could) be wrong\b|\bjust (?:pointing out|thinking (?:out )?a?loud|an idea)\b"),
    ),
    Passing("done at once", "user", _re(r"(?:^|[.;:!]\W{0,3})(?:let['’]?s|can you|could you|please)\b"), frozenset({"promissory"})),
    Passing(
        "of other projects",
        "assistant",
        _re(r"\b(?:across|among|in|of) (?:the |all |many |most |other |popular |\d{1,3} )*(?:projects|repos|repositories|tools)\b (?:that|which|studied|i looked)|\bmost (?:common|popular) [\w -]{1,40} (?:across|among|in)\b"),
    ),
    Passing(
        "a report",
        "assistant",
        _re(r"^\W*(?:changes (?:made|are) (?:to|in)\b|(?:\w+\W{1,3})?i(?:['’]ve| have)? (?:just |now |also |successfully )?(?:set up|created|added|implemented|updated|fixed|made|written|wrote|cleaned up)\b)|^\W*(?:committed|successfully)\b|\bcommit(?:s|ted)?\b.{0,30}\b(?:succeeded|successful(?:ly)?|went through)\b|\bare now committed\b|[.;]\s(?:i )?(?:updated|changed|adjusted|corrected) (?:it|them|that) to\b"),
    ),
)  # fmt: skip


#: What holds from now on.
_RULE = _re(r"(?<!currently )\b(?:always|never|(?<!-)only(?!-)|must|from now on|every|until)\b")


def passing(memory: Memory) -> str:
    """Why a memory does not last, "" where it does."""
    if memory.pinned or memory.origin == "inferred" or not memory.session_id:
        return ""
    rows = [
        one
        for one in PASSING
        if (one.why == DOUBTED or memory.gate != "correction")
        and one.by == memory.authority
        and (not one.gates or memory.gate in one.gates)
    ]
    return _why(memory.text, rows)


def is_decision(said: str) -> bool:
    """Whether what counts as decided, whoever said it, is no report and no state that was about to change."""
    return not _why(said, [one for one in PASSING if not one.gates and one.why != DOUBTED])


def _why(said: str, rows: Sequence[Passing]) -> str:
    """The first of these for which the sentences of a text speak that are no rule; "" for none."""
    passes = " ".join(sentence for sentence in text.sentences(said) if not _RULE.search(sentence))
    return next((one.why for one in rows if one.said.search(passes)), "")
