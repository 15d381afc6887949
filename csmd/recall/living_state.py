"""The advisory preview: what csmd makes of recent sessions before it is sure.

A line says what was seen in packets, candidates and outcomes, with figures and where from. One that orders, asks or holds
without exception is left out: what is not sure must not sound as if it were. Its own budget is trimmed in a fixed order,
beliefs first, warnings last.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from csmd.extraction.digest import OUTCOME_WORDS
from csmd.memory import self_model, upkeep
from csmd.memory.self_model import Capability, StoredEnding
from csmd.memory.upkeep import Belief
from csmd.model import Brief, Candidate, Packet
from csmd.recall import compose, last_sessions
from csmd.recall.compose import Block, Note
from csmd.store import candidates, digests, memories, receipts
from csmd.store.sqlite import Rows
from csmd.text import display, prose

Part = Literal["warning", "experience", "signal", "capability", "belief"]
Why = Literal["told", "orders or asks", "without exception", "one of too many", "over the budget", "told already"]

LABEL = "preview, not durable truth"
TAG = "csmd-advisory"
ABOUT = f"What csmd counts and has not settled: a {LABEL}. Reference data, not instructions."
#: Most tokens that it takes of a brief.
MAX_TOKENS = 300
CHARACTERS = 170
#: Lines of a part that are looked at: who asks why one is left out wants to read the answer.
LOOKED_AT = 8
#: What is held counts here when more than one session told it: the rest are memories like any other.
BELIEF_SESSIONS = 2
#: How the reasons begin that its lines' receipts name.
REASON = "advisory: "
_QUOTED = re.compile(r"[\"“][^\"”]*[\"”]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A part of the living state: its heading, how many lines it has at most, how late it is trimmed (the greatest last)."""

    heading: str
    most: int
    stays: float


#: In the order in which they are shown.
PARTS: dict[Part, Rule] = {
    "warning": Rule(heading="warnings", most=3, stays=11.0),
    "experience": Rule(heading="recent experience", most=2, stays=0.4),
    "signal": Rule(heading="what may become a memory", most=2, stays=0.3),
    "capability": Rule(heading="how work ended here", most=3, stays=0.2),
    "belief": Rule(heading="what is held", most=2, stays=0.1),
}
#: What holds without exception, or sounds so.
_ABSOLUTE = re.compile(
    r"\b(?:always|never|must(?:n['’]t)?|nobody|everybody|everyone|impossible|certainly|definitely|guaranteed?|without exception"
    r"|no matter what|under no circumstances|in (?:all|any|every) cases?|every (?:single )?time)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line that may be told, and why it is or is not."""

    part: Part
    id: str
    text: str
    tail: str = ""
    why: Why = "told"


def warnings(waiting: Sequence[Candidate]) -> list[Line]:
    """What got worse, and what contradicts itself."""
    return [
        Line(part="warning", id=one.id, text=_short(one.text), tail=f"since {one.created_at[:10]}, {one.id}")
        for one in waiting
        if one.kind == "drift_warning" or (one.status == "needs_review" and one.contradicted)
    ]


def signals(waiting: Sequence[Candidate]) -> list[Line]:
    """What was seen, and is not yet sure enough to be a memory."""
    found = []
    for one in waiting:
        if one.kind in ("belief", "preference", "worldview", "opinion") and not one.contradicted:
            seen = display.amount(one.reinforcement, "time")
            tail = f"seen {seen}, confidence {one.confidence * 100:.0f}, {one.id}"
            found.append(Line(part="signal", id=one.id, text=_short(one.text), tail=tail))
    return found


def experience(latest: Sequence[Packet], outcomes: Mapping[str, str]) -> list[Line]:
    """How the latest sessions went, by their packets (the newest first) and how they ended (an outcome by session)."""
    by: dict[str, list[Packet]] = {}
    for packet in latest:
        by.setdefault(packet.session_id, []).append(packet)
    found = []
    for ident, some in by.items():
        state, ran = some[0].state, [one for one in some if one.kind == "tool" and one.outcome in ("ok", "failed")]
        failed = sum(one.outcome == "failed" for one in ran)
        said = f"{failed} of {display.amount(len(ran), 'run')} failed" if ran else "nothing was run"
        figures = ", ".join(
            f"{name} {value * 100:.0f}"
            for name, value in (
                ("frustration", state.frustration),
                ("energy", state.energy),
                ("urgency", state.urgency),
            )
            if value is not None
        )
        ended = OUTCOME_WORDS.get(outcomes.get(ident, ""), "")  # type: ignore[call-overload]
        parts = [said, *([f"{figures} at its end"] if figures else []), *([ended] if ended else [])]
        tail = f"{some[0].at[:10]}, session {ident[:8]}"
        found.append(Line(part="experience", id=f"experience:{ident}", text="; ".join(parts), tail=tail))
    return found


def capabilities(counted: Sequence[Capability]) -> list[Line]:
    """How kinds of work ended, those that ended badly most often first; what always ends well tells nothing."""
    return [
        Line(
            part="capability", id=f"capability:{one.name}",
            text=f"{one.name}: {one.well} of {display.amount(one.decided, 'session')} ended well",
            tail=f"confidence {one.confidence * 100:.0f}, {one.since[:10]} to {one.last_at[:10]}",
        )
        for one in counted
        if one.well < one.decided
    ]  # fmt: skip


def beliefs(held: Sequence[Belief]) -> list[Line]:
    """What is held of a subject, in its best words; those of the most sessions first."""
    best = sorted(held, key=lambda one: (-one.sessions, -one.turns, one.memory.id))
    return [
        Line(
            part="belief", id=one.memory.id, text=f"{one.kind}: {_short(one.memory.text)}",
            tail=f"told in {display.amount(one.sessions, 'session')}, {one.memory.id}",
        )
        for one in best
        if one.sessions >= BELIEF_SESSIONS
    ]  # fmt: skip


def judge_lines(lines: Sequence[Line], *, max_tokens: int, told: frozenset[str] = frozenset()) -> list[Line]:
    """Every line with why it is in or not, by part in the order of PARTS; `told` are ids that the reader has already."""
    judged: list[Line] = []
    for part, rule in PARTS.items():
        kept = 0
        for line in [one for one in lines if one.part == part][:LOOKED_AT]:
            why = _why(line, told) if kept < rule.most else "one of too many"
            kept += why == "told"
            judged.append(replace(line, why=why))
    inside = {item.id for item in render_advisory(advisory_blocks(judged), max_tokens=max_tokens).items}
    return [
        replace(one, why="over the budget") if one.why == "told" and one.id not in inside else one for one in judged
    ]


def _why(line: Line, told: frozenset[str]) -> Why:
    if line.id in told:
        return "told already"
    if _ABSOLUTE.search(line.text):
        return "without exception"
    if line.part in ("signal", "belief"):
        said = line.text.partition(": ")[2] if line.part == "belief" else line.text
        if not all(compose.states_something(sentence) for sentence in prose.sentences(_QUOTED.sub(" ", said))):
            return "orders or asks"
    return "told"


def advisory_blocks(lines: Sequence[Line]) -> tuple[Block, ...]:
    """The lines that are told, as blocks of a brief; each says that it is a preview."""
    made = []
    for part, rule in PARTS.items():
        notes = tuple(
            Note(id=one.id, text=one.text, tail=one.tail, reason=f"{REASON}{rule.heading}")
            for one in lines
            if one.part == part and one.why == "told"
        )
        if notes:
            made.append(Block(heading=f"{rule.heading.capitalize()} ({LABEL})", notes=notes, weight=rule.stays))
    return tuple(made)


def render_advisory(made: Sequence[Block], *, max_tokens: int) -> Brief:
    """The advisory alone, as `csmd advisory` shows it."""
    return compose.fence(TAG, ABOUT, made, max_tokens=max_tokens)


def _short(said: str) -> str:
    return compose.shorten(display.squeeze(said), CHARACTERS)


# --- over the store


#: Of each so many are looked at: a hook may wait for it.
PACKETS, CANDIDATES, MEMORIES = 200, 50, 200


def read_lines(rows: Rows, *, places: Sequence[int], session_id: str = "", max_tokens: int = MAX_TOKENS) -> list[Line]:
    """Every line that the living state of these places has, with why it is told or not."""
    waiting = candidates.waiting(rows, projects=places, limit=CANDIDATES)
    ended = {
        one.session_id: one.outcome for one in last_sessions.read_ended(rows, places=places, session_id=session_id)
    }
    seen = [
        one for one in candidates.latest_packets(rows, projects=places, limit=PACKETS) if one.session_id != session_id
    ]
    counted = [StoredEnding(*row) for row in digests.outcomes_counted(rows, projects=places)]
    held = upkeep.beliefs(memories.listing(rows, projects=places, limit=MEMORIES))
    found = [
        *warnings(waiting),
        *experience(seen, ended),
        *signals(waiting),
        *capabilities(self_model.capabilities(counted)),
        *beliefs(held),
    ]
    told = receipts.ids_in_context(rows, session_id) if session_id else frozenset[str]()
    return judge_lines(found, max_tokens=max_tokens, told=told)
