"""Codex' hook payloads to events, and injected text to answers: both in Claude Code's form, with differences.

A sub-agent's prompt is reported as a prompt of its parent's session, but is the model's: its rollout tells it. Whether a
person or `codex exec` asked is not reported; the rollout says it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from csmd.hosts import hook_payloads
from csmd.hosts.adapter import HooksState
from csmd.hosts.codex import registration
from csmd.hosts.codex.transcript import HOST, prompt_kind, session_id, spoken
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
INJECTING: dict[EventName, str] = {"session_start": "SessionStart", "prompt": "UserPromptSubmit"}


def decode_event(body: bytes, *, name: str, event_id: str, at: str, counts: Counter[str]) -> Event | None:
    """The event in a hook's payload, redacted; None for one that csmd does not need."""
    known = EVENTS.get(name)
    if known is None:
        return None
    value = hook_payloads.read_payload(body)
    if known == "prompt" and string(value, "agent_id"):
        return None
    said = spoken(hook_payloads.words_in(value, known), counts)
    return hook_payloads.event_of(
        value, body, host=HOST, name=known, event_id=event_id, session_id=session_id(label(value, "session_id", 200)),
        at=at, said=said, by_user=known == "prompt" and prompt_kind(said, by_person=True) == "user", counts=counts,
    )  # fmt: skip


def encode_answer(name: EventName, text: str, notice: str = "") -> bytes:
    """What the hook prints so that Codex reads `text`, and its user `notice`; b"" for nothing."""
    return hook_payloads.answer(INJECTING[name], text, notice) if name in INJECTING else b""


def turn_of_event(event: Event) -> Turn | None:
    """The provisional turn that an event reports, or None: prompts and final messages are turns."""
    return hook_payloads.reported_turn(event, prompt_kind(event.text, by_person=True))


def hooks_state(folder: Path, home: Path, read: Callable[[str], str | None]) -> HooksState:
    """Whether Codex runs the hooks of a csmd home: there, and its user was asked about each.

    Whether a hook has changed since it was trusted only Codex knows.
    """
    file = registration.hooks_file(folder)
    text = read(str(file))
    if text is None or str(registration.script(home)) not in text:
        return "gone"
    asked = read(str(folder / "config.toml")) or ""
    trusted = [event for event in registration.EVENTS if f'"{file}:{_snake(event)}:' in asked]
    return "there" if len(trusted) == len(registration.EVENTS) else "untrusted"


def _snake(event: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", event).lower()
