"""Hook payloads to events, and injected text to answers, in Claude Code's form, which other assistants adopted."""

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
from csmd.hosts.json_fields import string
from csmd.hosts.labels import LONGEST_ID, label, session_id
from csmd.privacy.redaction import redact
from csmd.vocabulary import TurnKind

EVENT_OF: dict[str, EventName] = {rule.hook: name for name, rule in EVENTS.items()}


def answer(name: EventName, text: str, notice: str, *, event: str = "") -> bytes:
    """The output of an event's hook that gives `text` to the assistant and `notice` to its user; `event` is the host's
    name of it."""
    value: dict[str, Any] = {"systemMessage": notice} if notice else {}
    if text:
        value["hookSpecificOutput"] = {"hookEventName": event or EVENTS[name].hook, "additionalContext": text}
    return wire.dumps(value).encode("utf-8", "replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """How an assistant's hook payloads become events and turns, and injected text an answer; by default as Claude
    Code's."""

    host: str
    events: frozenset[EventName]
    """The events that are stored; all others are dropped."""
    clean: Callable[[str, Counter[str]], str]
    """A text as it is stored: without the additions of csmd and others, redacted."""
    clean_prompt: Callable[[str, Counter[str]], str] | None = None
    """The same for a prompt, if it differs."""
    prompt_kind: Callable[[str], TurnKind]
    """The kind of a prompt that a hook reports."""
    prepare: Callable[[dict[str, Any], EventName], dict[str, Any] | None] = lambda value, _: value
    """A payload in Claude Code's form; None for one that csmd does not need."""
    failure: Callable[[dict[str, Any], Counter[str]], Failure | None] = lambda *_: None
    """The failure in a payload, redacted; None for one that is not recognised."""
    session_id: Callable[[str], str] | None = None
    """The id under which a session is stored, if it is not the host's name and the session's id."""
    answer: Callable[[EventName, str, str], bytes] = answer
    """The output of an injecting event's hook, by event, text for the assistant and notice for its user."""

    def decode_event(self, body: bytes, *, name: str, event_id: str, at: str, counts: Counter[str]) -> Event | None:
        """The event in a hook's payload, redacted; None for one that csmd does not need, BadInput for a malformed
        one."""
        event = EVENT_OF.get(name)
        if event is None or event not in self.events:
            return None
        value = self.prepare(read_payload(body), event)
        failure = self.failure(value, counts) if value is not None and event == "tool_failure" else None
        if value is None or (event == "tool_failure" and failure is None):
            return None
        is_prompt, agent = event == "prompt", label(value, "agent_id") if event == "subagent_stop" else ""
        if event == "subagent_stop" and not agent and string(value, "agent_id"):
            raise BadInput("a hook's payload has an unusable agent_id")  # its words are not the session's
        clean = self.clean_prompt if is_prompt and self.clean_prompt else self.clean
        text, ident = clean(words_in(value, event), counts), label(value, "session_id")
        return Event(
            id=event_id, host=self.host, name=event, at=at, text=text,
            session_id=self.session_id(ident) if self.session_id else session_id(self.host, ident),
            cwd=redact(wire.clean(string(value, "cwd")), counts),
            transcript_path=wire.clean(string(value, "agent_transcript_path") or string(value, "transcript_path")),
            source=label(value, "source", 40) or label(value, "trigger", 40) or label(value, "reason", 40),
            agent_id=agent, payload=hashlib.sha256(body).hexdigest(),
            by_user=is_prompt and self.prompt_kind(text) == "user",
            failure=failure,
        )  # fmt: skip

    def turn_of_event(self, event: Event) -> Turn | None:
        """The provisional turn that an event reports, a prompt or a final message; None if it reports no words."""
        if not event.text or not EVENTS[event.name].words:
            return None
        kind = self.prompt_kind(event.text) if event.name == "prompt" else "assistant"
        return Turn(
            uuid=f"hook:{event.id}", session_id=event.session_id, kind=kind, text=event.text, at=event.at,
            agent_id=event.agent_id, cwd=event.cwd,
        )  # fmt: skip

    def encode_answer(self, name: EventName, text: str, notice: str = "") -> bytes:
        """The output of the hook that gives `text` to the assistant and `notice` to its user; b"" for nothing."""
        return self.answer(name, text, notice) if (text or notice) and EVENTS[name].injects else b""


def read_payload(body: bytes) -> dict[str, Any]:
    """The object in a hook's payload; BadInput if it names no session."""
    value = wire.loads(body)
    if not isinstance(value, dict):
        raise BadInput("a hook's payload is not a JSON object")
    if not label(value, "session_id") or len(string(value, "session_id")) > LONGEST_ID:
        raise BadInput("a hook's payload has no usable session_id")
    return value


def words_in(value: dict[str, Any], name: EventName) -> str:
    """The words that a payload reports, unchanged; "" if it reports none."""
    return string(value, EVENTS[name].words) if EVENTS[name].words else ""
