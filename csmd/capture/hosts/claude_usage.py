"""What a message of a model took, by a transcript's line: every line of a message repeats it, the last one is right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from csmd.capture.fields import label, string

#: The name of the agents that have none in the session's own file.
UNNAMED = "sidechain"
#: The host's names of what the store calls `input`, `output`, `cache_read` and `cache_write`.
NAMES = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


@dataclass(frozen=True, slots=True)
class Took:
    """What a line says that its message took: the fields of the store's Spent in its order.

    `place` is the turn that the line is, or the last one before a line that is none; -1 where none stood before.
    """

    stream: str
    message_id: str
    amounts: tuple[int, int, int, int]
    place: int = -1


def spent(value: dict[str, Any]) -> Took | None:
    """The tokens that an `assistant` line tells of its message; None for one that tells none.

    A sub-agent's are its own stream's.
    """
    message = value.get("message")
    usage = message.get("usage") if isinstance(message, dict) else None
    if value.get("type") != "assistant" or not isinstance(message, dict) or not isinstance(usage, dict):
        return None
    session, ident = label(value, "sessionId", 200), label(message, "id", 200)
    agent = agent_of(value)
    given, made, read, written = (tokens(usage, name) for name in NAMES)
    if not session or not ident or agent is None or not any((given, made, read, written)):
        return None
    return Took(f"{session}/{agent}" if agent else session, ident, (given, made, read, written))


def agent_of(value: dict[str, Any]) -> str | None:
    """The sub-agent that a line is of, "" for the session's own, None for a name that cannot be one.

    Early versions wrote what their agents said into the session's file, all under no name.
    """
    if not value.get("isSidechain"):
        return ""
    return (label(value, "agentId", 200) or None) if string(value, "agentId") else UNNAMED


def tokens(usage: Any, name: str) -> int:
    """An amount of tokens; 0 for what is none."""
    amount = usage.get(name) if isinstance(usage, dict) else 0
    return amount if type(amount) is int and 0 <= amount < 2**40 else 0
