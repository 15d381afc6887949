"""Qwen Code's hook payloads to events, and injected text to answers: both in Claude Code's form, with differences.

The event of a prompt fires after each result of a tool, too, without words: what is answered there, the model is sent as
a user's message. What the user typed stands beside the prompt, which has files and other hooks' text in it.
"""

from __future__ import annotations

from collections import Counter

from csmd.hosts import gemini_parts, hook_payloads
from csmd.hosts.json_fields import label, string
from csmd.hosts.qwen.transcript import HOST, session_id
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
INJECTING: dict[EventName, str] = {"session_start": "SessionStart", "prompt": "UserPromptSubmit"}


def decode_event(body: bytes, *, name: str, event_id: str, at: str, counts: Counter[str]) -> Event | None:
    """The event in a hook's payload, redacted; None for one that csmd does not need."""
    known = EVENTS.get(name)
    if known is None:
        return None
    value = hook_payloads.read_payload(body)
    if known == "prompt":
        value["prompt"] = string(value, "submitted_prompt") or string(value, "prompt")
    value.pop("agent_transcript_path", None)  # it names the session's
    said = gemini_parts.spoken(hook_payloads.words_in(value, known), counts)
    if known == "prompt" and not said:
        return None
    return hook_payloads.event_of(
        value, body, host=HOST, name=known, event_id=event_id, session_id=session_id(label(value, "session_id", 200)),
        at=at, said=said, by_user=known == "prompt" and gemini_parts.prompt_kind(said) == "user", counts=counts,
    )  # fmt: skip


def encode_answer(name: EventName, text: str, notice: str = "") -> bytes:
    """What the hook prints so that Qwen reads `text`, and its user `notice`; b"" for nothing."""
    return hook_payloads.answer(INJECTING[name], text, notice) if name in INJECTING else b""


def turn_of_event(event: Event) -> Turn | None:
    """The provisional turn that an event reports, or None: prompts and final messages are turns."""
    return hook_payloads.reported_turn(event, gemini_parts.prompt_kind(event.text))
