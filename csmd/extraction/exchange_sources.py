"""Finds the turns of a conversation that statements may come from; pure.

Sources are every prompt, the reply once it is complete, and the work in between: the assistant's latest message after
MIDWAY_MESSAGES and MIDWAY_CALLS, since a diagnosis made during two hours of work is not in the last message, and plans,
commit messages, reports of agents and summaries of compactions. The sources of an exchange depend only on its turns,
not on when it was read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from csmd.conversation import StoredTurn
from csmd.hosts import tool_calls
from csmd.vocabulary import PROMPTS, TurnKind

Role = Literal["prompt", "midway", "reply", "plan", "commit", "report", "summary"]

#: Messages after the last source before the assistant's latest message is a source, too.
MIDWAY_MESSAGES = 20
#: Fewest tool calls between the two.
MIDWAY_CALLS = 3
#: A call and its result are a message each; spoken turns show only that their ordinals are missing.
MESSAGES_PER_CALL = 2
_NOTIFIED: dict[TurnKind, tuple[Role, Callable[[str], str]]] = {
    "notification": ("report", tool_calls.read_notified_report),
    "summary": ("summary", tool_calls.extract_learned),
}


class Source(NamedTuple):
    """A turn that statements may come from; `tools` is roughly the number of tool calls since its exchange began.

    All sources but prompts count as the assistant's words, also when they quote.
    """

    turn: StoredTurn
    role: Role
    tools: int = 0


def find_sources(turns: Sequence[StoredTurn], *, settled: bool, worked: Iterable[Source] = ()) -> list[Source]:
    """Finds the sources of one conversation, in order, and inserts those of its work (`worked`).

    A trailing assistant text is the reply when `settled`; otherwise more of the same message may still come.
    Notifications, commands, summaries and tool traffic end nothing.
    """
    sources: list[Source] = []
    reply: Source | None = None
    hidden_turns = source_calls = 0
    previous = source_ordinal = turns[0].ordinal - 1 if turns else 0
    for turn in turns:
        hidden_turns += turn.ordinal - previous - 1
        previous = turn.ordinal
        if turn.kind in PROMPTS:
            sources += [reply, Source(turn, "prompt")] if reply else [Source(turn, "prompt")]
            reply, hidden_turns, source_calls, source_ordinal = None, 0, 0, turn.ordinal
        elif turn.kind == "assistant" and turn.text.strip():
            is_midway = reply is not None and reply.turn.ordinal - source_ordinal >= MIDWAY_MESSAGES
            if reply and is_midway and reply.tools - source_calls >= MIDWAY_CALLS:
                sources.append(reply._replace(role="midway"))
                source_ordinal, source_calls = reply.turn.ordinal, reply.tools
            reply = Source(turn, "reply", hidden_turns // MESSAGES_PER_CALL)
    if settled and reply:
        sources.append(reply)
    return sorted([*sources, *worked], key=lambda source: source.turn.ordinal)


def find_notified_sources(turns: Iterable[StoredTurn]) -> list[Source]:
    """Finds the sources among summaries and the notifications that report."""
    sources = []
    for turn in turns:
        if turn.kind in _NOTIFIED:
            role, read_text = _NOTIFIED[turn.kind]
            if text := read_text(turn.text):
                sources.append(Source(replace(turn, kind="assistant", text=text), role))
    return sources


def read_call_source(turn: StoredTurn, tool: str, result: StoredTurn | None) -> Source | None:
    """Returns the source in a tool call, at the ordinal of its result; None if there is none.

    Its turn is the one that holds the words: the result for a report, else the call.
    """
    if result is None or tool not in tool_calls.CALLS:
        return None
    role, read_text = tool_calls.CALLS[tool]
    text = read_text(turn.text, result.text)
    holder = result if role == "report" else replace(turn, ordinal=result.ordinal)
    return Source(replace(holder, kind="assistant", text=text), role) if text else None
