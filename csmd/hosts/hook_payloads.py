"""Converts hook payloads to events and injected text to hook output, in Claude Code's format."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from csmd import wire
from csmd.conversation import Event, Failure, Turn
from csmd.errors import BadInput
from csmd.hook_events import EVENTS, EventName
from csmd.hosts.labels import MAX_ID_CHARACTERS, make_session_id, read_label
from csmd.json_fields import string
from csmd.privacy.redaction import redact
from csmd.vocabulary import TurnKind

EVENT_BY_HOOK: dict[str, EventName] = {rule.hook_name: name for name, rule in EVENTS.items()}


def encode_context(name: EventName, text: str, notice: str, *, hook: str = "") -> bytes:
    """Returns the output of an event's hook that passes `text` to the assistant and `notice` to its user.

    `hook` is the host's name of the event, by default Claude Code's.
    """
    value: dict[str, Any] = {"systemMessage": notice} if notice else {}
    if text:
        value["hookSpecificOutput"] = {"hookEventName": hook or EVENTS[name].hook_name, "additionalContext": text}
    return wire.dumps(value).encode("utf-8", "replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """An assistant's hook adapter; the defaults are Claude Code's."""

    host: str
    events: frozenset[EventName]
    """The events that are stored; all others are dropped."""
    clean: Callable[[str, Counter[str]], str]
    """Returns a text as it is stored: without the additions of csmd and others, redacted."""
    clean_prompt: Callable[[str, Counter[str]], str] | None = None
    """Cleans a prompt; None uses `clean`."""
    classify_prompt: Callable[[str], TurnKind]
    """Returns the kind of a prompt that a hook reports."""
    prepare: Callable[[dict[str, Any], EventName], dict[str, Any] | None] = lambda value, _: value
    """Returns a payload in Claude Code's form; None if csmd does not need it."""
    read_failure: Callable[[dict[str, Any], Counter[str]], Failure | None] = lambda *_: None
    """Returns the failure in a payload, redacted; None if it is not recognised."""
    make_session_id: Callable[[str], str] | None = None
    """Returns the id under which a session is stored; None prefixes the host's name."""
    encode: Callable[[EventName, str, str], bytes] = encode_context
    """Returns the output of an injecting event's hook, by event, text for the assistant and notice for its user."""

    def decode_event(self, body: bytes, *, name: str, event_id: str, at: str, counts: Counter[str]) -> Event | None:
        """Returns the event in a hook's payload, redacted; None if csmd does not need it, BadInput if it is malformed."""
        event = EVENT_BY_HOOK.get(name)
        if event is None or event not in self.events:
            return None
        value = self.prepare(read_payload(body), event)
        if value is None:
            return None
        failure = self.read_failure(value, counts) if event == "tool_failure" else None
        if event == "tool_failure" and failure is None:
            return None
        is_prompt = event == "prompt"
        clean = self.clean_prompt if is_prompt and self.clean_prompt else self.clean
        text, session_id = clean(read_text(value, event), counts), read_label(value, "session_id")
        return Event(
            id=event_id, host=self.host, name=event, at=at, text=text,
            session_id=self.make_session_id(session_id) if self.make_session_id else make_session_id(self.host, session_id),
            cwd=redact(wire.clean(string(value, "cwd")), counts),
            transcript_path=wire.clean(string(value, "agent_transcript_path") or string(value, "transcript_path")),
            source=next(filter(None, (read_label(value, key, 40) for key in ("source", "trigger", "reason"))), ""),
            agent_id=_read_agent_id(value) if event == "subagent_stop" else "",
            payload=hashlib.sha256(body).hexdigest(), by_user=is_prompt and self.classify_prompt(text) == "user",
            failure=failure,
        )  # fmt: skip

    def make_turn(self, event: Event) -> Turn | None:
        """Returns the provisional turn of a prompt or a final message; None if an event reports no words."""
        if not event.text or not EVENTS[event.name].text_field:
            return None
        kind = self.classify_prompt(event.text) if event.name == "prompt" else "assistant"
        return Turn(
            uuid=f"hook:{event.id}", session_id=event.session_id, kind=kind, text=event.text, at=event.at,
            agent_id=event.agent_id, cwd=event.cwd,
        )  # fmt: skip

    def encode_answer(self, name: EventName, text: str, notice: str = "") -> bytes:
        """Returns the hook's output with `text` for the assistant and `notice` for its user; b"" if there is neither."""
        return self.encode(name, text, notice) if (text or notice) and EVENTS[name].can_inject else b""


def _read_agent_id(value: dict[str, Any]) -> str:
    agent = read_label(value, "agent_id")
    if not agent and string(value, "agent_id"):  # a sub-agent's text must not be stored as the session's
        raise BadInput("a hook's payload has an unusable agent_id")
    return agent


def read_payload(body: bytes) -> dict[str, Any]:
    """Returns the object in a hook's payload; BadInput if it names no session."""
    value = wire.loads(body)
    if not isinstance(value, dict):
        raise BadInput("a hook's payload is not a JSON object")
    if not read_label(value, "session_id") or len(string(value, "session_id")) > MAX_ID_CHARACTERS:
        raise BadInput("a hook's payload has no usable session_id")
    return value


def read_text(value: dict[str, Any], name: EventName) -> str:
    """Returns the words that a payload reports, unchanged; "" if it reports none."""
    return string(value, EVENTS[name].text_field) if EVENTS[name].text_field else ""
