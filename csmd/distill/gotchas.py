"""Which report belongs to which cause, and which cause was refuted: told from a session's turns alone; pure.

A gotcha has two halves: the symptom in what a user reports or a tool says, the cause in what is found out later.
They belong together by what they name (identifiers, then words) and by how near they stand; REFUTES says what speaks
against a cause and by how much it counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from csmd import text as texts
from csmd.distill.halves import CAUSE, SYMPTOM, answers, are_about_the_same, is_cause, share, symptom_in
from csmd.patterns import at_first_use

#: How many prompts before a cause may have reported it, and behind it may refute it.
PROMPTS_BEFORE, PROMPTS_AFTER = 4, 2
#: Tool failures at most so many turns before a cause belong to it.
FAILED_BEFORE = 60
#: Over a session's end nothing but names counts: so many of them, within so many days.
NAMES_ACROSS, DAYS_ACROSS = 2, 14
#: What refutes stands at a turn's beginning, and so does what it is about.
REFUTED_WITHIN, REFUTED_ABOUT = 240, 500


def _re(pattern: str) -> re.Pattern[str]:
    return at_first_use(pattern, re.IGNORECASE)


# fmt: off
#: (who speaks: u a person, a the assistant; how far it lowers a cause; why; how it begins or what it says)
REFUTES: tuple[tuple[str, float, str, re.Pattern[str]], ...] = (
    ("u", 0.50, "the user says that this was not it", _re(
        r"(?:that|this|it)(?:['’]s| is| was) not (?:it|the (?:issue|problem|cause|reason|bug)|why|what (?:is|was) (?:wrong|happening))\b"
        r"|(?:that|this|you)(?:['’]s| is|['’]re| are) (?:wrong|incorrect)\b|\bnot the (?:real |actual )?(?:cause|problem|reason|issue)\b"
        r"|\bi don['’]t think (?:that|this|it)(?:['’]s| is) (?:it|the|right|correct)\b|\bbut the (?:issue|problem|bug) (?:is|was)\b")),
    ("u", 0.35, "the user says that it still fails", _re(
        r"\bstill (?:not|does(?: not|n['’]t)|get(?:ting)?|see(?:ing)?|fail\w*|broken|happen\w*|the same|have the|shows?|is(?: not|n['’]t)|an? (?:issue|problem|error))\b"
        r"|\b(?:did(?: not|n['’]t)|does(?: not|n['’]t)) (?:fix|help|work|solve|change)\b|\bsame (?:error|issue|problem|result)\b|\b(?:no|not any) (?:change|difference)\b|\bhappen(?:s|ed) again\b")),
    ("a", 0.40, "the assistant took it back", _re(
        r"^\W{0,3}(?:i was wrong|my (?:analysis|diagnosis|assumption|mistake)|i misread|i misunderstood|(?:actually|wait|hmm)\b.{0,40}\b(?:issue|problem|bug|cause)\b)"
        r"|\b(?:the (?:real|actual) (?:issue|problem|bug|cause|culprit)\b|not the (?:cause|issue|problem) (?:i|after)|(?:was|is)n['’]t the (?:cause|issue|problem))")),
    ("a", 0.20, "the assistant agreed that it was otherwise", _re(r"^\W{0,3}you(?:['’]re| are) (?:absolutely |completely |quite )?right\b")),
)
#: A failure that comes again after its cause was named.
AGAIN = (0.20, "the same error came again")
# fmt: on


class Spoken(NamedTuple):
    """A turn in which somebody speaks."""

    uuid: str
    kind: str
    text: str
    at: str
    ordinal: int


class Told(NamedTuple):
    """A memory as the turn with this uuid states it; `key` tells memories apart."""

    key: int
    text: str
    category: str
    authority: str
    uuid: str
    ordinal: int


class Failed(NamedTuple):
    """A command's failure, as the turn with this uuid shows it."""

    fingerprint: str
    command: str
    message: str
    uuid: str
    at: str
    ordinal: int


class Symptom(NamedTuple):
    """In whose words a memory will be asked for."""

    key: int
    uuid: str
    at: str
    text: str
    fingerprint: str


class Refutation(NamedTuple):
    """What speaks against a memory, why, how far its confidence goes down; `by` is the memory that stands against it, or 0."""

    key: int
    uuid: str
    at: str
    reason: str
    lowered: float
    by: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Relations:
    """What belongs together in a session; `links` are (symptom's memory, cause's memory)."""

    symptoms: tuple[Symptom, ...] = ()
    refutations: tuple[Refutation, ...] = ()
    links: tuple[tuple[int, int], ...] = ()


def relate(turns: Sequence[Spoken], told: Sequence[Told], failed: Sequence[Failed]) -> Relations:
    """What of a session's turns, memories and failures belongs together; the same whenever it is asked again."""
    prompts = [turn for turn in turns if turn.kind in ("user", "relayed")]
    causes = [one for one in told if is_cause(one.text, category=one.category, authority=one.authority)]
    symptoms: list[Symptom] = []
    refutations: list[Refutation] = []
    links: list[tuple[int, int]] = []
    sure = {cause.key for cause in causes}
    for cause in told:
        for found in _reported(cause, prompts, is_cause=cause.key in sure):
            symptoms.append(found)
            beside = (one for one in told if one.uuid == found.uuid and one.key != cause.key)
            links += [(one.key, cause.key) for one in beside if SYMPTOM.search(one.text) and not CAUSE.search(one.text)]
        if cause.key not in sure:
            continue
        symptoms += _failed(cause, failed)
        if cause.authority != "user":
            refutations += _refuted(cause, turns, prompts, causes, failed)
    return Relations(symptoms=tuple(symptoms), refutations=tuple(refutations), links=tuple(dict.fromkeys(links)))


def belongs_across(symptom: str, said_at: str, cause: str, found_at: str) -> bool:
    """Whether a report of one session belongs to a cause that was found in a later one."""
    try:
        days = (datetime.fromisoformat(found_at) - datetime.fromisoformat(said_at)).total_seconds() / 86_400
    except ValueError:
        return False
    return 0 < days <= DAYS_ACROSS and share(symptom, cause)[0] >= NAMES_ACROSS


def _reported(cause: Told, prompts: Sequence[Spoken], *, is_cause: bool) -> list[Symptom]:
    before = [turn for turn in prompts if turn.ordinal <= cause.ordinal][-PROMPTS_BEFORE:]
    found = []
    for turn in before:
        symptom = symptom_in(turn.text)
        if not symptom or texts.says_the_same(symptom, cause.text):
            continue
        # The assistant answers the last prompt: there nearness is enough.
        is_answer = turn is before[-1] and turn.uuid != cause.uuid and cause.authority == "assistant"
        explains = is_cause or (cause.authority == "assistant" and answers(cause.text, symptom))
        about = are_about_the_same(symptom, cause.text)
        if (is_answer and (explains or about)) or (explains and about):
            found.append(Symptom(cause.key, turn.uuid, turn.at, symptom, ""))
    return found


def _failed(cause: Told, failed: Sequence[Failed]) -> list[Symptom]:
    near = [one for one in failed if 0 <= cause.ordinal - one.ordinal <= FAILED_BEFORE]
    latest = {one.fingerprint: one for one in near if are_about_the_same(one.message, cause.text)}
    return [
        Symptom(cause.key, one.uuid, one.at, ": ".join(filter(None, (one.command, one.message))), one.fingerprint)
        for one in latest.values()
    ]


def _refuted(
    cause: Told, turns: Sequence[Spoken], prompts: Sequence[Spoken], causes: Sequence[Told], failed: Sequence[Failed]
) -> list[Refutation]:
    after = [turn for turn in prompts if turn.ordinal > cause.ordinal][:PROMPTS_AFTER]
    end = after[-1].ordinal if len(after) == PROMPTS_AFTER else 2**62
    found: list[Refutation] = []
    for turn in turns:
        if not cause.ordinal < turn.ordinal <= end:
            continue
        who = "u" if turn.kind == "user" else "a" if turn.kind == "assistant" else ""
        said = turn.text[:REFUTED_WITHIN]
        for speaker, lowered, reason, pattern in REFUTES:
            if speaker != who or not pattern.search(said):
                continue
            named, words = share(turn.text[:REFUTED_ABOUT], cause.text)
            if named >= 2 or (named and words >= 2) or words >= 4:
                by = _against(cause, turn, causes)
                found.append(Refutation(cause.key, turn.uuid, turn.at, reason, lowered, by))
            break
    again = _again(cause, failed, end)
    if again is not None:
        found.append(Refutation(cause.key, again.uuid, again.at, AGAIN[1], AGAIN[0], 0))
    return found


def _again(cause: Told, failed: Sequence[Failed], end: int) -> Failed | None:
    """The failure that a cause was named for, seen once more after it."""
    named = {one.fingerprint for one in _failed(cause, failed)}
    return next((one for one in failed if one.fingerprint in named and cause.ordinal < one.ordinal <= end), None)


def _against(cause: Told, turn: Spoken, causes: Sequence[Told]) -> int:
    """The memory that says what it was instead: of the refuting turn, else the next cause that is about the same."""
    later = [one for one in causes if one.ordinal >= turn.ordinal and one.key != cause.key]
    own = next((one for one in later if one.uuid == turn.uuid), None)
    near = own or next((one for one in later if are_about_the_same(one.text, cause.text)), None)
    return near.key if near else 0
