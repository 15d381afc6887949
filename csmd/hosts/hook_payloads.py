"""Hook payloads to events, and injected text to answers, in the form that Claude Code began and others took over."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from csmd import wire
from csmd.errors import BadInput
from csmd.hook_events import EVENTS, EventName
from csmd.hosts.json_fields import string
from csmd.hosts.labels import label
from csmd.hosts.stored_ids import session_id
from csmd.privacy.redaction import redact
from csmd.values import Event, Failure, Turn
from csmd.vocabulary import TurnKind

EVENT_OF: dict[str, EventName] = {rule.hook: name for name, rule in EVENTS.items()}


def answer(name: EventName, text: str, notice: str, *, event: str = "") -> bytes:
    """What the hook of an event, which its host calls `event`, prints so that the assistant reads `text`, and its user `notice`."""
    value: dict[str, Any] = {"systemMessage": notice} if notice else {}
    if text:
        value["hookSpecificOutput"] = {"hookEventName": event or EVENTS[name].hook, "additionalContext": text}
    return wire.dumps(value).encode("utf-8", "replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """How an assistant's hook payloads become events and turns, and injected text an answer.

    What is not said here has Claude Code's form.
    """

    host: str
    events: frozenset[EventName]
    """Those that are reported; all others are dropped."""
    spoken: Callable[[str, Counter[str]], str]
    """Words as they are kept: without what csmd and others put into them, redacted."""
    typed: Callable[[str, Counter[str]], str] | None = None
    """The same of a prompt, where that is read in another way."""
    prompt_kind: Callable[[str], TurnKind]
    """What a prompt is that a hook reports."""
    prepare: Callable[[dict[str, Any], EventName], dict[str, Any] | None] = lambda value, _: value
    """A payload in Claude Code's form; None for one that csmd does not need."""
    failure: Callable[[dict[str, Any], Counter[str]], Failure | None] = lambda *_: None
    """The failure in a payload, redacted; None for one that is not recognised."""
    session_id: Callable[[str], str] | None = None
    """The id under which a session is stored, where that is not the host's name and its id."""
    answer: Callable[[EventName, str, str], bytes] = answer
    """What the hook of an injecting event prints so that the assistant reads a text, and its user a notice."""

    def decode_event(self, body: bytes, *, name: str, event_id: str, at: str, counts: Counter[str]) -> Event | None:
        """The event in a hook's payload, redacted; None for one that csmd does not need, BadInput for a malformed one."""
        known = EVENT_OF.get(name)
        if known is None or known not in self.events:
            return None
        value = self.prepare(read_payload(body), known)
        failure = self.failure(value, counts) if value is not None and known == "tool_failure" else None
        if value is None or (known == "tool_failure" and failure is None):
            return None
        is_prompt, agent = known == "prompt", label(value, "agent_id", 200) if known == "subagent_stop" else ""
        if known == "subagent_stop" and not agent and string(value, "agent_id"):
            raise BadInput("a hook's payload has no agent_id")  # what it said is not the session's
        read = self.typed if is_prompt and self.typed else self.spoken
        said = read(words_in(value, known), counts)
        ident = label(value, "session_id", 200)
        return Event(
            id=event_id, host=self.host, name=known, at=at, text=said,
            session_id=self.session_id(ident) if self.session_id else session_id(self.host, ident),
            cwd=redact(wire.clean(string(value, "cwd")), counts),
            transcript_path=wire.clean(string(value, "agent_transcript_path") or string(value, "transcript_path")),
            source=label(value, "source", 40) or label(value, "trigger", 40) or label(value, "reason", 40),
            agent_id=agent, payload=hashlib.sha256(body).hexdigest(), by_user=is_prompt and self.prompt_kind(said) == "user",
            failure=failure,
        )  # fmt: skip

    def turn_of_event(self, event: Event) -> Turn | None:
        """The provisional turn that an event reports, a prompt or a final message; None where nobody speaks."""
        if not event.text or not EVENTS[event.name].words:
            return None
        kind = self.prompt_kind(event.text) if event.name == "prompt" else "assistant"
        return Turn(
            uuid=f"hook:{event.id}", session_id=event.session_id, kind=kind, text=event.text, at=event.at,
            agent_id=event.agent_id, cwd=event.cwd,
        )  # fmt: skip

    def encode_answer(self, name: EventName, text: str, notice: str = "") -> bytes:
        """What the hook prints so that the assistant reads `text`, and its user `notice`; b"" for nothing."""
        return self.answer(name, text, notice) if (text or notice) and EVENTS[name].injects else b""


def read_payload(body: bytes) -> dict[str, Any]:
    """The object in a hook's payload; BadInput where it names no session."""
    value = wire.loads(body)
    if not isinstance(value, dict):
        raise BadInput("a hook's payload is not a JSON object")
    if not label(value, "session_id", 200) or len(string(value, "session_id")) > 200:
        raise BadInput("a hook's payload has no session_id")
    return value


def words_in(value: dict[str, Any], name: EventName) -> str:
    """What somebody says in a payload, as it came; "" where nobody does."""
    return string(value, EVENTS[name].words) if EVENTS[name].words else ""
