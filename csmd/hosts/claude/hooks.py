"""Claude Code's hook payloads to events, and injected text to answers."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

from csmd import wire
from csmd.errors import BadInput
from csmd.hosts.adapter import label, string
from csmd.hosts.claude.transcript import FOREIGN_TOOL, HOST, SHELL, prompt_kind, spoken
from csmd.privacy.redaction import redact
from csmd.text import display
from csmd.values import Event, Failure, Turn
from csmd.vocabulary import EventName

EVENTS: dict[str, EventName] = {
    "SessionStart": "session_start",
    "UserPromptSubmit": "prompt",
    "Stop": "stop",
    "SubagentStop": "subagent_stop",
    "PreCompact": "pre_compact",
    "SessionEnd": "session_end",
    "PostCompact": "post_compact",
    "StopFailure": "stop_failure",
    "PostToolUseFailure": "tool_failure",
}
SPEAKING: frozenset[EventName] = frozenset({"prompt", "stop", "subagent_stop"})
#: Events whose answer the assistant reads; the others must print nothing (facts: claude-code 1.6).
INJECTING: dict[EventName, str] = {
    "session_start": "SessionStart",
    "prompt": "UserPromptSubmit",
    "tool_failure": "PostToolUseFailure",
    "pre_compact": "PreCompact",
}
#: Events whose answer is plain text: what PreCompact prints is appended to the summariser's instructions (1.10).
PLAIN: frozenset[EventName] = frozenset({"pre_compact"})
#: Longest answer in UTF-16 units: the host cuts at 10,000 (facts: claude-code 1.7).
ANSWER_LIMIT_UNITS = 9_000
#: Bytes of a failure that are read, from both ends: more than is stored of the same output by default.
MOST_BYTES = 32_768


def decode_failure(value: dict[str, Any], counts: Counter[str]) -> Failure | None:
    """The failure of a tool call; None where somebody interrupted it, and for tools whose failures are not recognised."""
    tool, given = label(value, "tool_name", 120), value.get("tool_input")
    if value.get("is_interrupt") is True or not (tool == SHELL or tool.startswith(FOREIGN_TOOL)):
        return None
    command = string(given, "command")[:MOST_BYTES] if tool == SHELL and isinstance(given, dict) else ""
    said = display.cut_middle(string(value, "error"), limit=MOST_BYTES)
    return Failure(
        tool=tool,
        command=redact(wire.clean(command), counts),
        said=redact(wire.clean(display.strip_fenced(said)), counts),
    )


def decode_event(body: bytes, *, name: str, event_id: str, at: str, counts: Counter[str]) -> Event | None:
    """The event in a hook's payload, redacted; None for one that csmd does not need."""
    known = EVENTS.get(name)
    if known is None:
        return None
    value = wire.loads(body)
    if not isinstance(value, dict):
        raise BadInput("a hook's payload is not a JSON object")
    session = label(value, "session_id", 200)
    if not session or len(string(value, "session_id")) > 200:
        raise BadInput("a hook's payload has no session_id")
    if known == "subagent_stop" and value.get("agent_type") == "":
        return None  # a compaction reports its own summariser this way
    failed = decode_failure(value, counts) if known == "tool_failure" else None
    if known == "tool_failure" and failed is None:
        return None
    agent = label(value, "agent_id", 200) if known == "subagent_stop" else ""
    if known == "subagent_stop" and not agent and string(value, "agent_id"):
        raise BadInput("a hook's payload has no agent_id")  # what it said is not the session's
    said = string(value, "prompt") if known == "prompt" else string(value, "last_assistant_message")
    said = spoken(said, counts, as_typed=known == "prompt") if known in SPEAKING else ""
    return Event(
        id=event_id,
        host=HOST,
        name=known,
        session_id=session,
        at=at,
        cwd=redact(wire.clean(string(value, "cwd")), counts),
        transcript_path=wire.clean(string(value, "agent_transcript_path") or string(value, "transcript_path")),
        text=said,
        source=label(value, "source", 40) or label(value, "trigger", 40) or label(value, "reason", 40),
        agent_id=agent,
        payload=hashlib.sha256(body).hexdigest(),
        by_user=known == "prompt" and prompt_kind(said) == "user",
        failure=failed,
    )


def encode_answer(name: EventName, text: str, notice: str = "") -> bytes:
    """What the hook prints so that the assistant reads `text`, and its user `notice`; b"" for nothing."""
    if not (text or notice) or name not in INJECTING:
        return b""
    if name in PLAIN:
        return text.encode("utf-8", "replace") + b"\n"
    answer: dict[str, Any] = {"systemMessage": notice} if notice else {}
    if text:
        answer["hookSpecificOutput"] = {"hookEventName": INJECTING[name], "additionalContext": text}
    return wire.dumps(answer).encode("utf-8", "replace")


def turn_of_event(event: Event) -> Turn | None:
    """The provisional turn that an event reports, or None: prompts and final messages are turns."""
    if not event.text or event.name not in SPEAKING:
        return None
    return Turn(
        uuid=f"hook:{event.id}",
        session_id=event.session_id,
        kind=prompt_kind(event.text) if event.name == "prompt" else "assistant",
        text=event.text,
        at=event.at,
        agent_id=event.agent_id,
        cwd=event.cwd,
    )
