"""Which turns of a conversation are sources: every prompt at once, the reply when it is over, and what stands between.

Work in between is looked at when it has grown by a table's amount since the last source (seed 003): a diagnosis made
in the middle of two hours of work is not in the last message. So is what the work says in words: a plan that was
taken, a commit's message, an agent's report, a compaction's summary. Where the sources of an exchange lie depends on
its turns alone, not on when somebody looked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from heapq import merge
from typing import Literal, NamedTuple

from csmd.hosts.claude import tool_calls
from csmd.model import PROMPTS, StoredTurn, TurnKind

Role = Literal["prompt", "midway", "reply", "plan", "commit", "report", "summary"]

#: So many messages and calls of tools since the last source make the assistant's latest words one.
MESSAGES, TOOL_CALLS = 20, 3
#: A call and its result are a message each; of them only the places are known here.
MESSAGES_PER_CALL = 2


class Source(NamedTuple):
    """A turn that statements may come from; `tools` is about how many tools were called since its exchange began.

    What is no prompt is the assistant's own word, whoever it quotes: its turn says so.
    """

    turn: StoredTurn
    role: Role
    tools: int = 0


def sources(turns: Sequence[StoredTurn], *, settled: bool, worked: Iterable[Source] = ()) -> list[Source]:
    """The sources among what was spoken in one conversation, in order, with what the work between said in words.

    A trailing assistant text is the reply when `settled`; otherwise more of the same message may still come.
    Notifications, commands, summaries and tool traffic end nothing.
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
    return list(merge(found, sorted(worked, key=_place), key=_place))


def told_beside(turns: Iterable[StoredTurn]) -> list[Source]:
    """The sources among what nobody says to anybody: notifications that report, and summaries."""
    found = []
    for turn in turns:
        if turn.kind in _BESIDE:
            role, said = _BESIDE[turn.kind]
            if text := said(turn.text):
                found.append(_source(turn, role, text))
    return found


def called(turn: StoredTurn, tool: str, result: StoredTurn | None) -> Source | None:
    """What a call of a tool says, once its result is there; None for nothing. It stands where its result does.

    The turn is the one in which the words are.
    """
    if result is None or tool not in tool_calls.CALLS:
        return None
    role, said = tool_calls.CALLS[tool]
    text = said(turn.text, result.text)
    return _source(result if role == "report" else replace(turn, ordinal=result.ordinal), role, text) if text else None


_BESIDE: dict[TurnKind, tuple[Role, Callable[[str], str]]] = {
    "notification": ("report", tool_calls.notified),
    "summary": ("summary", tool_calls.summary),
}


def _source(turn: StoredTurn, role: Role, text: str) -> Source:
    return Source(replace(turn, kind="assistant", text=text), role)


def _place(source: Source) -> int:
    return source.turn.ordinal


def _is_long(messages: int, calls: int) -> bool:
    return messages >= MESSAGES and calls >= TOOL_CALLS
