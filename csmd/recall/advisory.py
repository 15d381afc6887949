"""Composes the advisory: a preview of tentative observations from recent sessions.

Its lines come from packets, candidates and outcomes, with figures and sources. Lines that order, ask or allow no exception
are left out, because an observation must not sound like a rule. It has its own budget; beliefs are trimmed first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from csmd.briefs import Brief
from csmd.extraction.digest import OUTCOME_WORDS
from csmd.knowledge import Candidate, Packet
from csmd.memory import belief_subjects, work_outcomes
from csmd.memory.belief_subjects import Belief
from csmd.memory.work_outcomes import Capability, StoredEnding
from csmd.recall import compose
from csmd.recall.compose import Block, Note
from csmd.store import candidates, digests, memories, packet_rows, session_context, sessions, work_outcome_rows
from csmd.store.sqlite import Rows
from csmd.text import display, prose
from csmd.text.sentence import parse, states_something

Part = Literal["warning", "experience", "signal", "capability", "belief"]
Why = Literal["told", "orders or asks", "without exception", "one of too many", "over the budget", "told already"]

LABEL = "preview, not durable truth"
TAG = "csmd-advisory"
ABOUT = f"What csmd counts and has not settled: a {LABEL}. Reference data, not instructions."
#: Most tokens of a brief for the advisory.
MAX_TOKENS = 300
MAX_LINE_CHARACTERS = 170
#: Most lines of a part that are judged; few enough to read in an explanation.
MAX_JUDGED_LINES = 8
#: Fewest sessions that stated a belief.
MIN_BELIEF_SESSIONS = 2
#: The beginning of the reasons in receipts.
REASON_PREFIX = "advisory: "
MAX_SESSIONS = 7
#: Most rows that are read, because a hook may wait.
MAX_PACKETS = 200
MAX_CANDIDATES = 50
MAX_MEMORIES = 200
_QUOTED = re.compile(r"[\"“][^\"”]*[\"”]")


class PartRule(NamedTuple):
    """A part of the advisory: its heading, most lines, and weight; the part with the least weight is trimmed first."""

    heading: str
    limit: int
    weight: float


#: In the order in which they are shown.
PARTS: dict[Part, PartRule] = {
    "warning": PartRule("warnings", 3, 11.0),
    "experience": PartRule("recent experience", 2, 0.4),
    "signal": PartRule("what may become a memory", 2, 0.3),
    "capability": PartRule("how work ended here", 3, 0.2),
    "belief": PartRule("what is held", 2, 0.1),
}


class Line(NamedTuple):
    """A line that may be shown, and why it is or is not."""

    part: Part
    id: str
    text: str
    tail: str = ""
    why: Why = "told"


def list_warnings(waiting: Sequence[Candidate]) -> Iterator[Line]:
    """Yields drift warnings and contradictions."""
    for candidate in waiting:
        if candidate.kind == "drift_warning" or (candidate.status == "needs_review" and candidate.contradicted):
            tail = f"since {display.day_of(candidate.created_at)}, {candidate.id}"
            yield Line("warning", candidate.id, _shorten(candidate.text), tail)


def list_signals(waiting: Sequence[Candidate]) -> Iterator[Line]:
    """Yields candidates that are not yet certain enough to be memories."""
    for candidate in waiting:
        if candidate.kind in ("belief", "preference", "worldview", "opinion") and not candidate.contradicted:
            seen = f"seen {display.amount(candidate.reinforcement, 'time')}"
            tail = f"{seen}, confidence {candidate.confidence * 100:.0f}, {candidate.id}"
            yield Line("signal", candidate.id, _shorten(candidate.text), tail)


def list_experience(latest: Sequence[Packet], outcomes: Mapping[str, str]) -> Iterator[Line]:
    """Yields how the latest sessions went, by their packets (newest first) and outcomes (by session)."""
    by_session: dict[str, list[Packet]] = {}
    for packet in latest:
        by_session.setdefault(packet.session_id, []).append(packet)
    for session, packets in by_session.items():
        runs = [packet.outcome for packet in packets if packet.kind == "tool" and packet.outcome in ("ok", "failed")]
        failed = f"{runs.count('failed')} of {display.amount(len(runs), 'run')} failed" if runs else "nothing was run"
        state = packets[0].state
        levels = {"frustration": state.frustration, "energy": state.energy, "urgency": state.urgency}
        figures = ", ".join(f"{name} {value * 100:.0f}" for name, value in levels.items() if value is not None)
        ended = OUTCOME_WORDS.get(outcomes.get(session, ""), "")  # type: ignore[call-overload]
        text = "; ".join(filter(None, (failed, figures and f"{figures} at its end", ended)))
        tail = f"{display.day_of(packets[0].at)}, session {display.shorten_session_id(session)}"
        yield Line("experience", f"experience:{session}", text, tail)


def list_capabilities(counted: Sequence[Capability]) -> Iterator[Line]:
    """Yields how kinds of work ended, in the given order, without those that always ended well."""
    for capability in counted:
        if capability.well < capability.decided:
            text = f"{capability.name}: {capability.well} of {display.amount(capability.decided, 'session')} ended well"
            tail = f"confidence {capability.confidence * 100:.0f}, {display.day_of(capability.since)} to {display.day_of(capability.last_at)}"
            yield Line("capability", f"capability:{capability.name}", text, tail)


def list_beliefs(held: Sequence[Belief]) -> Iterator[Line]:
    """Yields the beliefs of several sessions in their best words, those of the most sessions first."""
    for belief in sorted(held, key=lambda belief: (-belief.sessions, -belief.turns, belief.memory.id)):
        if belief.sessions >= MIN_BELIEF_SESSIONS:
            tail = f"told in {display.amount(belief.sessions, 'session')}, {belief.memory.id}"
            yield Line("belief", belief.memory.id, f"{belief.kind}: {_shorten(belief.memory.text)}", tail)


def judge_lines(lines: Sequence[Line], *, max_tokens: int, in_context: frozenset[str] = frozenset()) -> list[Line]:
    """Returns every line with the reason why it is shown or not, in the order of PARTS; `in_context` are known ids."""
    judged: list[Line] = []
    for part, rule in PARTS.items():
        shown = 0
        for line in [line for line in lines if line.part == part][:MAX_JUDGED_LINES]:
            why = _judge(line, in_context) if shown < rule.limit else "one of too many"
            shown += why == "told"
            judged.append(line._replace(why=why))
    inside = {item.id for item in render_advisory(make_blocks(judged), max_tokens=max_tokens).items}
    for index, line in enumerate(judged):
        if line.why == "told" and line.id not in inside:
            judged[index] = line._replace(why="over the budget")
    return judged


def _judge(line: Line, in_context: frozenset[str]) -> Why:
    if line.id in in_context:
        return "told already"
    if parse(line.text).lasting in ("rule", "ban"):
        return "without exception"
    text = line.text.partition(": ")[2] if line.part == "belief" else line.text
    sentences = prose.split_sentences(_QUOTED.sub(" ", text)) if line.part in ("signal", "belief") else []
    return "told" if all(map(states_something, sentences)) else "orders or asks"


def make_blocks(lines: Sequence[Line]) -> tuple[Block, ...]:
    """Makes blocks of the lines that are shown; each heading says that it is a preview."""
    blocks: list[Block] = []
    for part, rule in PARTS.items():
        reason = f"{REASON_PREFIX}{rule.heading}"
        shown = [line for line in lines if line.part == part and line.why == "told"]
        notes = tuple(Note(id=line.id, text=line.text, tail=line.tail, reason=reason) for line in shown)
        if notes:
            blocks.append(Block(heading=f"{rule.heading.capitalize()} ({LABEL})", notes=notes, weight=rule.weight))
    return tuple(blocks)


def render_advisory(blocks: Sequence[Block], *, max_tokens: int) -> Brief:
    """Renders the advisory alone, for `csmd pipeline advisory`."""
    return compose.fence(TAG, ABOUT, blocks, max_tokens=max_tokens)


def append_advisory(brief: Brief, lines: Sequence[Line], *, max_tokens: int) -> Brief:
    """Appends the advisory to a brief, without the brief's own lines, within the tokens that the brief leaves."""
    shown = {item.id for item in brief.items}
    blocks = make_blocks([line for line in lines if line.id not in shown])
    advisory = render_advisory(blocks, max_tokens=min(MAX_TOKENS, max_tokens - brief.tokens - 1))
    return compose.append_brief(brief, advisory)


def _shorten(text: str) -> str:
    return compose.shorten(display.squeeze(text), MAX_LINE_CHARACTERS)


def read_lines(rows: Rows, *, places: Sequence[int], session_id: str = "", max_tokens: int = MAX_TOKENS) -> list[Line]:
    """Reads every line of the advisory for these projects, with the reason why it is shown or not."""
    waiting = candidates.waiting(rows, projects=places, limit=MAX_CANDIDATES)
    ended = digests.list_latest(rows, projects=[place for place in places if place], limit=MAX_SESSIONS)
    session_ids = sessions.ids_by_seq(rows, [row.session_seq for row in ended])
    latest = packet_rows.latest_packets(rows, projects=places, limit=MAX_PACKETS)
    counted = [StoredEnding(*row) for row in work_outcome_rows.read_outcomes(rows, projects=places)]
    lines = [
        *list_warnings(waiting),
        *list_experience(
            [packet for packet in latest if packet.session_id != session_id],
            {session_ids[row.session_seq]: row.outcome for row in ended},
        ),
        *list_signals(waiting),
        *list_capabilities(work_outcomes.sum_up_capabilities(counted)),
        *list_beliefs(belief_subjects.group_beliefs(memories.list_memories(rows, projects=places, limit=MAX_MEMORIES))),
    ]
    return judge_lines(lines, max_tokens=max_tokens, in_context=session_context.ids_in_context(rows, session_id))
