"""Copilot CLI's hook payloads to events, and injected text to answers.

Events that are registered by Claude Code's names bring its payload. A sub-agent's prompt and its end are reported as a
prompt and a stop under the agent's id in place of the session's: its transcript tells them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from csmd import wire
from csmd.hosts import hook_payloads
from csmd.hosts.copilot.transcript import HOST, prompt_kind, session_id, spoken
from csmd.hosts.json_fields import label, string
from csmd.values import Event, Turn
from csmd.vocabulary import EventName

EVENTS: dict[str, EventName] = {
    "SessionStart": "session_start",
    "UserPromptSubmit": "prompt",
    "Stop": "stop",
    "SubagentStop": "subagent_stop",
    "SessionEnd": "session_end",
}
#: Events whose answer the assistant reads.
INJECTING: frozenset[EventName] = frozenset({"session_start", "prompt"})
#: Copilot's words for how a process began. What its start is told stands before the whole conversation and in no
#: transcript: a process that resumes a session has nothing of what the one before was told.
_BEGAN = {"new": "startup", "resume": "startup"}


def decode_event(body: bytes, *, name: str, event_id: str, at: str, counts: Counter[str]) -> Event | None:
    """The event in a hook's payload, redacted; None for one that csmd does not need."""
    known = EVENTS.get(name)
    if known is None:
        return None
    value = hook_payloads.read_payload(body)
    if known != "subagent_stop" and string(value, "agent_id"):
        return None
    said = spoken(hook_payloads.words_in(value, known), counts)
    event = hook_payloads.event_of(
        value, body, host=HOST, name=known, event_id=event_id, session_id=session_id(label(value, "session_id", 200)),
        at=at, said=said, by_user=known == "prompt" and prompt_kind(said, by_person=True) == "user", counts=counts,
    )  # fmt: skip
    return replace(event, source=_BEGAN.get(event.source, event.source)) if known == "session_start" else event


def encode_answer(name: EventName, text: str, notice: str = "") -> bytes:
    """What the hook prints so that Copilot reads `text`; b"" for nothing. Copilot shows its user nothing of a hook's."""
    del notice
    return wire.dumps({"additionalContext": text}).encode("utf-8", "replace") if text and name in INJECTING else b""


def turn_of_event(event: Event) -> Turn | None:
    """The provisional turn that an event reports, or None: prompts and a sub-agent's final messages are turns."""
    return hook_payloads.reported_turn(event, prompt_kind(event.text, by_person=True))
