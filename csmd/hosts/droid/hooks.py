"""Droid's hook payloads to events, and injected text to answers: both in Claude Code's form.

The end of a turn is reported without its words: the transcript tells them.
"""

from __future__ import annotations

from collections import Counter

from csmd.hosts import hook_payloads
from csmd.hosts.droid.transcript import HOST, prompt_kind, session_id, spoken
from csmd.hosts.json_fields import label
from csmd.values import Event, Turn
from csmd.vocabulary import EventName

EVENTS: dict[str, EventName] = {
    "SessionStart": "session_start",
    "UserPromptSubmit": "prompt",
    "Stop": "stop",
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
    said = spoken(hook_payloads.words_in(value, known), counts)
    return hook_payloads.event_of(
        value, body, host=HOST, name=known, event_id=event_id, session_id=session_id(label(value, "session_id", 200)),
        at=at, said=said, by_user=known == "prompt" and prompt_kind(said, by_person=True) == "user", counts=counts,
    )  # fmt: skip


def encode_answer(name: EventName, text: str, notice: str = "") -> bytes:
    """What the hook prints so that Droid reads `text`, and its user `notice`; b"" for nothing."""
    return hook_payloads.answer(INJECTING[name], text, notice) if name in INJECTING else b""


def turn_of_event(event: Event) -> Turn | None:
    """The provisional turn that an event reports, or None: a prompt is a turn."""
    return hook_payloads.reported_turn(event, prompt_kind(event.text, by_person=True))
