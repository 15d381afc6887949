"""Claude Code's hook payloads to events, and injected text to answers."""

from __future__ import annotations

from collections import Counter
from typing import Any

from csmd import wire
from csmd.hosts import hook_payloads
from csmd.hosts.claude.transcript import FOREIGN_TOOL, HOST, SHELL, prompt_kind, spoken
from csmd.hosts.json_fields import label, string
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
#: Events whose answer the assistant reads; the others must print nothing (facts: claude-code 1.6).
INJECTING: dict[EventName, str] = {
    "session_start": "SessionStart",
    "prompt": "UserPromptSubmit",
    "tool_failure": "PostToolUseFailure",
    "pre_compact": "PreCompact",
}
#: Events whose answer is plain text: what PreCompact prints is appended to the summariser's instructions (1.10).
PLAIN: frozenset[EventName] = frozenset({"pre_compact"})
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
    value = hook_payloads.read_payload(body)
    if known == "subagent_stop" and value.get("agent_type") == "":
        return None  # a compaction reports its own summariser this way
    failed = decode_failure(value, counts) if known == "tool_failure" else None
    if known == "tool_failure" and failed is None:
        return None
    said = spoken(hook_payloads.words_in(value, known), counts, as_typed=known == "prompt")
    return hook_payloads.event_of(
        value, body, host=HOST, name=known, event_id=event_id, session_id=label(value, "session_id", 200), at=at,
        said=said, by_user=known == "prompt" and prompt_kind(said) == "user", counts=counts, failure=failed,
    )  # fmt: skip


def encode_answer(name: EventName, text: str, notice: str = "") -> bytes:
    """What the hook prints so that the assistant reads `text`, and its user `notice`; b"" for nothing."""
    if not (text or notice) or name not in INJECTING:
        return b""
    if name in PLAIN:
        return text.encode("utf-8", "replace") + b"\n"
    return hook_payloads.answer(INJECTING[name], text, notice)


def turn_of_event(event: Event) -> Turn | None:
    """The provisional turn that an event reports, or None: prompts and final messages are turns."""
    return hook_payloads.reported_turn(event, prompt_kind(event.text))
