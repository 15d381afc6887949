"""What csmd's plugin in OpenCode reports to events, and injected text to answers: both in Claude Code's form.

The plugin (`hooks/opencode.js`) reports no sub-agent's prompt, and no words at a turn's end: the database has them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from csmd.hosts import hook_payloads
from csmd.hosts.adapter import HooksState
from csmd.hosts.json_fields import label
from csmd.hosts.opencode import registration
from csmd.hosts.opencode.transcript import session_id, spoken, typed
from csmd.values import Event, Turn
from csmd.vocabulary import EventName

EVENTS: dict[str, EventName] = {"SessionStart": "session_start", "UserPromptSubmit": "prompt", "Stop": "stop"}
#: Events whose answer the plugin reads.
INJECTING: dict[EventName, str] = {"session_start": "SessionStart", "prompt": "UserPromptSubmit"}


def decode_event(host: str, body: bytes, *, name: str, event_id: str, at: str, counts: Counter[str]) -> Event | None:
    """The event in a payload, redacted; None for one that csmd does not need."""
    known = EVENTS.get(name)
    if known is None:
        return None
    value = hook_payloads.read_payload(body)
    text, _ = typed(hook_payloads.words_in(value, known))  # the database says whether a person typed it
    return hook_payloads.event_of(
        value, body, host=host, name=known, event_id=event_id, session_id=session_id(host, label(value, "session_id", 200)),
        at=at, said=spoken(text, counts), by_user=known == "prompt", counts=counts,
    )  # fmt: skip


def encode_answer(name: EventName, text: str, notice: str = "") -> bytes:
    """What the hook prints so that the plugin puts `text` before the model and shows `notice`; b"" for nothing."""
    return hook_payloads.answer(INJECTING[name], text, notice) if name in INJECTING else b""


def turn_of_event(event: Event) -> Turn | None:
    """The provisional turn that an event reports, or None where nobody speaks."""
    return hook_payloads.reported_turn(event, "user")


def hooks_state(host: str, _folder: Path, home: Path, read: Callable[[str], str | None]) -> HooksState:
    """Whether the plugin of a csmd home is there."""
    text = read(str(registration.plugin_file(host)))
    return "there" if text is not None and str(registration.script(home)) in text else "gone"
