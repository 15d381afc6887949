"""Gemini CLI's hook payloads to events, and injected text to answers: Claude Code's form under other names.

A prompt is reported with what SessionStart's hooks put before it and the files that it names; the end of a turn with all
that was said in it. A sub-agent is not reported.
"""

from __future__ import annotations

from collections import Counter

from csmd.hosts import gemini_parts, hook_payloads
from csmd.hosts.gemini.transcript import HOST, final_message, session_id
from csmd.hosts.json_fields import label
from csmd.values import Event, Turn
from csmd.vocabulary import EventName

#: By the names on the hook's command line.
EVENTS: dict[str, EventName] = {
    "SessionStart": "session_start",
    "UserPromptSubmit": "prompt",
    "Stop": "stop",
    "SessionEnd": "session_end",
}
#: Events whose answer the assistant reads.
INJECTING: dict[EventName, str] = {"session_start": "SessionStart", "prompt": "BeforeAgent"}


def decode_event(body: bytes, *, name: str, event_id: str, at: str, counts: Counter[str]) -> Event | None:
    """The event in a hook's payload, redacted; None for one that csmd does not need."""
    known = EVENTS.get(name)
    if known is None:
        return None
    value = hook_payloads.read_payload(body)
    value["last_assistant_message"] = final_message(value)
    said = gemini_parts.spoken(hook_payloads.words_in(value, known), counts)
    return hook_payloads.event_of(
        value, body, host=HOST, name=known, event_id=event_id, session_id=session_id(label(value, "session_id", 200)),
        at=at, said=said, by_user=known == "prompt" and gemini_parts.prompt_kind(said) == "user", counts=counts,
    )  # fmt: skip


def encode_answer(name: EventName, text: str, notice: str = "") -> bytes:
    """What the hook prints so that Gemini reads `text`, and its user `notice`; b"" for nothing."""
    return hook_payloads.answer(INJECTING[name], text, notice) if name in INJECTING else b""


def turn_of_event(event: Event) -> Turn | None:
    """The provisional turn that an event reports, or None: prompts and final messages are turns."""
    return hook_payloads.reported_turn(event, gemini_parts.prompt_kind(event.text))
