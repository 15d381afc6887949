"""Turns to experience packets: what a user asked for, what was run and how it ended, with the state of the session.

A packet says what kind of thing happened (`subject` is its name, the same in every session), where and when; the words
stay with their turn. Pure: the same turns give the same packets, however many of them come at a time, as long as each
is given with the same turns before it. A tool call becomes one when its result is there: then its end is known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from csmd import quotations
from csmd.distill import commands
from csmd.distill.orders import orders
from csmd.distill.state import Moment, state
from csmd.model import PROMPTS, Heard, Packet, PacketKind

#: So many turns before the first new one are to be given: what the state and a result's call are looked for in.
WINDOW = 40
SHELL = frozenset({"Bash", "PowerShell"})
#: Tools that change files, and the parameter that names the file.
WRITERS = {"Edit": "file_path", "Write": "file_path", "MultiEdit": "file_path", "NotebookEdit": "notebook_path"}
_FAILED = re.compile(r"\s*(?:Exit code [1-9]|<tool_use_error>|Error:|error: )")


def packets(turns: Sequence[Heard], *, after: int) -> list[Packet]:
    """The packets of the turns past the ordinal `after`, in order; `turns` begins WINDOW turns earlier."""
    found: list[Packet] = []
    for at, turn in enumerate(turns):
        if turn.ordinal > after:
            found += _observed(turns[max(0, at - WINDOW) : at], turn)
    return found


def _observed(before: Sequence[Heard], turn: Heard) -> list[Packet]:
    if turn.kind == "user" and not turn.agent:
        first = not any(earlier.kind in PROMPTS for earlier in before) and turn.ordinal <= WINDOW
        seen: list[tuple[PacketKind, str, str]] = [("session", "begin", "")] if first else []
        said = quotations.own_words(turn.text)
        seen += [("order", order.words, "against" if order.against else "asked") for order in orders(said)]
        return [_packet(turn, before, turn, *one) for one in seen]
    if turn.kind == "tool_result" and turn.tool_id:
        calls = [one for one in before if one.kind == "tool_call" and one.tool_id == turn.tool_id]
        if calls:
            return [_packet(calls[-1], before, turn, *one) for one in _done(calls[-1], turn)]
    return []


def _done(call: Heard, result: Heard) -> list[tuple[PacketKind, str, str]]:
    """What a tool call that has ended was: a command, a milestone, a file whose change counts, an error."""
    failed = bool(_FAILED.match(result.text))
    outcome = "failed" if failed else "ok"
    if call.tool_name in SHELL:
        ran = commands.commands(commands.given(call.text, "command"))
        seen: list[tuple[PacketKind, str, str]] = [
            ("milestone" if commands.milestone(name) else "tool", name, outcome) for name in ran
        ]
        return seen + ([("error", ran[0] if ran else call.tool_name, outcome)] if failed else [])
    if call.tool_name in WRITERS and not failed:
        name = commands.notable(commands.given(call.text, WRITERS[call.tool_name]))
        return [("tool", name, outcome)] if name else []
    return [("error", call.tool_name, outcome)] if failed else []


def _packet(about: Heard, before: Sequence[Heard], now: Heard, kind: PacketKind, subject: str, outcome: str) -> Packet:
    return Packet(
        kind=kind, subject=subject, outcome=outcome, uuid=about.uuid, session_id=about.session_id,
        project_seq=about.project_seq, ordinal=about.ordinal, at=about.at, words=len(about.text.split()),
        state=state(_moment(before, now)),
    )  # fmt: skip


def _moment(before: Sequence[Heard], now: Heard) -> Moment:
    prompts = [turn for turn in (*before, now) if turn.kind in PROMPTS]
    outcomes = [not _FAILED.match(turn.text) for turn in (*before, now) if turn.kind == "tool_result"]
    gap = -1.0
    if len(prompts) > 1:
        gap = max(0.0, (_when(prompts[-1].at) - _when(prompts[-2].at)).total_seconds())
    return Moment(
        said=quotations.own_words(prompts[-1].text).strip() if prompts else "",
        earlier=tuple(turn.text for turn in prompts[:-1]),
        outcomes=tuple(outcomes),
        gap_s=gap,
        ordinal=now.ordinal,
    )


def _when(at: str) -> datetime:
    return datetime.fromisoformat(at)
