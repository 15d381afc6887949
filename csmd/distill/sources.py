"""Which turns of a conversation are sources: every prompt at once, the reply when it is over, and long work in between.

Work in between is looked at when it has grown by a table's amount since the last source (seed 003): a diagnosis made
in the middle of two hours of work is not in the last message. Where the sources of an exchange lie depends on its
turns alone, not on when somebody looked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from csmd.model import PROMPTS, StoredTurn

Role = Literal["prompt", "midway", "reply"]

#: So many messages and calls of tools since the last source make the assistant's latest words one.
MESSAGES, TOOL_CALLS = 20, 3
#: A call and its result are a message each; of them only the places are known here.
MESSAGES_PER_CALL = 2


class Source(NamedTuple):
    """A turn that statements may come from; `tools` is about how many tools were called since its exchange began."""

    turn: StoredTurn
    role: Role
    tools: int = 0


def sources(turns: Sequence[StoredTurn], *, settled: bool) -> list[Source]:
    """The sources among what was spoken in one conversation, in order.

    A trailing assistant text is the reply when `settled`; otherwise more of the same message may still come.
    Notifications, commands, summaries and tool traffic are no sources and end nothing.
    """
    found: list[Source] = []
    last: Source | None = None
    hidden = calls_before = 0
    before = since = turns[0].ordinal - 1 if turns else 0
    for turn in turns:
        hidden += turn.ordinal - before - 1
        before = turn.ordinal
        if turn.kind in PROMPTS:
            if last is not None:
                found.append(last)
            found.append(Source(turn, "prompt"))
            last, hidden, calls_before, since = None, 0, 0, turn.ordinal
        elif turn.kind == "assistant" and turn.text.strip():
            if last is not None and _is_long(last.turn.ordinal - since, last.tools - calls_before):
                found.append(last._replace(role="midway"))
                since, calls_before = last.turn.ordinal, last.tools
            last = Source(turn, "reply", hidden // MESSAGES_PER_CALL)
    if settled and last is not None:
        found.append(last)
    return found


def _is_long(messages: int, calls: int) -> bool:
    return messages >= MESSAGES and calls >= TOOL_CALLS
