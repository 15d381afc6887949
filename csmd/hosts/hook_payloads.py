"""The form of hook payloads and answers that Claude Code began and others took over."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

from csmd import wire
from csmd.errors import BadInput
from csmd.hosts.json_fields import label, string
from csmd.privacy.redaction import redact
from csmd.values import Event, Failure, Turn
from csmd.vocabulary import EventName, TurnKind

#: Events that bring words: the prompt, or the last message.
SPEAKING: frozenset[EventName] = frozenset({"prompt", "stop", "subagent_stop"})


def read_payload(body: bytes) -> dict[str, Any]:
    """The object in a hook's payload; BadInput where it names no session."""
    value = wire.loads(body)
    if not isinstance(value, dict):
        raise BadInput("a hook's payload is not a JSON object")
    if not label(value, "session_id", 200) or len(string(value, "session_id")) > 200:
        raise BadInput("a hook's payload has no session_id")
    return value


def words_in(value: dict[str, Any], name: EventName) -> str:
    """What somebody says in a payload, as it came; "" where nobody does."""
    if name not in SPEAKING:
        return ""
    return string(value, "prompt") if name == "prompt" else string(value, "last_assistant_message")


def event_of(
    value: dict[str, Any], body: bytes, *, host: str, name: EventName, event_id: str, session_id: str, at: str, said: str,
    by_user: bool, counts: Counter[str], failure: Failure | None = None,
) -> Event:  # fmt: skip
    """The event in a payload, in which `said` is what somebody says; BadInput for an agent's that has no name."""
    agent = label(value, "agent_id", 200) if name == "subagent_stop" else ""
    if name == "subagent_stop" and not agent and string(value, "agent_id"):
        raise BadInput("a hook's payload has no agent_id")  # what it said is not the session's
    return Event(
        id=event_id,
        host=host,
        name=name,
        session_id=session_id,
        at=at,
        cwd=redact(wire.clean(string(value, "cwd")), counts),
        transcript_path=wire.clean(string(value, "agent_transcript_path") or string(value, "transcript_path")),
        text=said,
        source=label(value, "source", 40) or label(value, "trigger", 40) or label(value, "reason", 40),
        agent_id=agent,
        payload=hashlib.sha256(body).hexdigest(),
        by_user=by_user,
        failure=failure,
    )


def answer(event: str, text: str, notice: str) -> bytes:
    """What the hook of an event prints so that the assistant reads `text`, and its user `notice`; b"" for nothing."""
    if not (text or notice):
        return b""
    value: dict[str, Any] = {"systemMessage": notice} if notice else {}
    if text:
        value["hookSpecificOutput"] = {"hookEventName": event, "additionalContext": text}
    return wire.dumps(value).encode("utf-8", "replace")


def reported_turn(event: Event, prompted: TurnKind) -> Turn | None:
    """The provisional turn that an event reports, a prompt's of the kind `prompted`; None where nobody speaks."""
    if not event.text or event.name not in SPEAKING:
        return None
    return Turn(
        uuid=f"hook:{event.id}",
        session_id=event.session_id,
        kind=prompted if event.name == "prompt" else "assistant",
        text=event.text,
        at=event.at,
        agent_id=event.agent_id,
        cwd=event.cwd,
    )
