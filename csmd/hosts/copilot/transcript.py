"""Copilot CLI's transcripts to turns and token usage.

A session's transcript is `session-state/<session>/events.jsonl`, one event a line; the first one names the session. A resumed
session goes on in it. A fork's file begins with the lines of the session that it left, under their ids; a rewind takes
the lines that it undoes out of the file. A sub-agent's events stand among its session's and carry its id.

Of a prompt `content` is what was typed; `transformedContent` beside it is what the model got, with what hooks said. That a
program handed the prompts in (`copilot -p`) stands nowhere but in the first words of the prompt of the model
(`system.message`), which is written behind the prompt, and again only where it has changed.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from csmd import wire
from csmd.hosts import adapter
from csmd.hosts.adapter import (
    BACK_BYTES,
    Opened,
    Reading,
    ReadLine,
    Took,
    quoted_answers,
    refuse,
    spoken,
    tokens,
    took,
)  # fmt: skip
from csmd.hosts.copilot import tool_forms
from csmd.hosts.json_fields import json_object, mapping, moment, object_in, string, strings
from csmd.hosts.labels import label
from csmd.hosts.stored_calls import call_turns, result_turn
from csmd.hosts.stored_ids import LONGEST_ID, session_id, stream, uuid_in
from csmd.privacy.redaction import Removed, redact
from csmd.values import Turn
from csmd.vocabulary import TurnKind

HOST = "copilot"
#: The context window that Copilot reckons with where its catalogue names no other.
WINDOW = 128_000
#: Stands for what the first prompt of a session goes on from.
ROOT = "root"
#: The longest first line.
FIRST_LINE_BYTES = 1024 * 1024
#: In how much of the file's beginning it is looked for what a line depends on and no longer stands shortly before it.
BEGINNING_BYTES = 1024 * 1024

_FIRST = re.compile(rb'\s*\{"type":\s?"session\.start",\s?"data":\s?\{"sessionId":')
_FILE = re.compile(r"(?P<session>[\w-]+)/events\.jsonl", re.ASCII)
#: Events that change what later lines depend on: where the session is, who hands in its prompts, what was said last.
_PLACES, _MODE = ("session.start", "session.resume", "session.context_changed"), "system.message"
_SAID = (
    "user.message",
    "assistant.message",
    "tool.execution_start",
    "tool.execution_complete",
    "session.compaction_complete",
)
_TYPE = re.compile(rb'\s*\{"type":\s?"([\w.]{1,60})"')
#: What the prompt of the model begins with where a program hands in the prompts.
_BY_PROGRAM = re.compile(r"[^\n]{0,400}\bnon-interactive mode\b")
#: Of a message's source: nobody but the user has typed it.
_TYPED = ("", "user")
#: Text that Copilot writes in the user's name.
WRITTEN_FOR_USER = re.compile(r"\s*<(?:system_notification|system_reminder|skill-context)[\s>]")


def is_transcript(beginning: bytes) -> bool:
    """Whether a file's first bytes are those of a session's events."""
    return _FIRST.match(beginning) is not None


def place_of(root: str, inside: str) -> tuple[str, str] | None:
    """(project directory, session) of a transcript: each has a directory, whatever its project is."""
    found = _FILE.fullmatch(inside)
    return (root, found["session"]) if found else None


prompt_kind = partial(adapter.prompt_kind, WRITTEN_FOR_USER)


@dataclass(slots=True)
class Session:
    """Whose lines are read, and how far the reading is."""

    ident: str
    version: str
    cwd: str = ""
    by_person: bool = True
    last: str = ROOT
    """The line in which the session's own conversation went on last: the next prompt goes on from there."""
    prompt: Turn | None = None
    """The prompt in the line before. A program's waits for the line behind it, which may say that a person goes on."""
    context: int = 0

    def follow(self, value: dict[str, Any], data: dict[str, Any]) -> None:
        """Takes up what later lines depend on in a line of this decoded content."""
        kind = value.get("type")
        if kind in _PLACES:
            self.cwd = redact(wire.clean(string(mapping(data, "context") or data, "cwd")), Counter()) or self.cwd
        elif value.get("agentId"):
            return
        elif kind == _MODE:
            self.by_person = _BY_PROGRAM.match(string(data, "content")) is None
        elif kind in _SAID:
            self.last = uuid_in(HOST, value, "id") or self.last

    def turn(self, value: dict[str, Any], kind: TurnKind, text: str, **more: Any) -> Turn:
        """A turn of the line."""
        is_assistant = kind == "assistant"
        return Turn(
            uuid=uuid_in(HOST, value, "id"), session_id=session_id(HOST, self.ident), agent_id=label(value, "agentId", LONGEST_ID),
            kind=kind, text=text, at=moment(value), cwd=self.cwd, version=self.version, parent_uuid=self.last,
            context=self.context if is_assistant else 0, **more,
        )  # fmt: skip


def session_of(line: bytes) -> Session | None:
    """The session of a transcript by its first line; None where that names none."""
    value = json_object(line) or {}
    data = mapping(value, "data")
    ident = label(data, "sessionId", LONGEST_ID)
    if value.get("type") != "session.start" or not ident:
        return None
    session = Session(ident=ident, version=label(data, "copilotVersion", 40))
    session.follow(value, data)
    return session


def read_from(opened: Opened) -> ReadLine:
    """How the lines of a transcript are read from a position on."""
    session = session_of(opened.first_line(FIRST_LINE_BYTES))
    if session is None:
        return refuse
    for line in _lines_depended_on(opened):
        value = json_object(line) or {}
        data = mapping(value, "data")
        session.prompt = (
            _prompt(value, data, session, Counter()) if opened.before(len(line) + 1) == line + b"\n" else None
        )
        session.follow(value, data)
    return partial(read_line, session=session)


def _type_of(line: bytes) -> str:
    """The type of the event in a line; "" for none."""
    found = _TYPE.match(line)
    return found[1].decode() if found else ""


def _lines_depended_on(opened: Opened) -> list[bytes]:
    """The lines before the position that say where the session is and who types, and the last two in which something was said.

    What says it lies within 8 MiB before the position or 1 MiB of the beginning, else it goes unseen: the work of one reading
    must not grow with the file.
    """
    for size in BACK_BYTES:
        before = opened.before(size).splitlines()
        types = [_type_of(line) for line in before]
        state = [(kind, line) for line, kind in zip(before, types, strict=True) if kind in (*_PLACES, _MODE)]
        # A sub-agent's prompt of the model says nothing of its session's.
        own_state = {kind == _MODE for kind, line in state if b'"agentId":' not in line}
        if size >= opened.position or own_state == {True, False}:
            break
    else:
        opened.file.seek(0)
        *beginning, _ = opened.file.read(BEGINNING_BYTES).split(b"\n")
        state = [*((kind, line) for line in beginning if (kind := _type_of(line)) in (*_PLACES, _MODE)), *state]
    said = (line for line, kind in zip(reversed(before), reversed(types), strict=True) if kind in _SAID)
    own = (line for line in said if not (json_object(line) or {"agentId": ""}).get("agentId"))
    return [*(line for _, line in state), *reversed(list(itertools.islice(own, 2)))]


def read_line(line: bytes, into: Reading, session: Session, *, tool_limit: int) -> None:
    """Adds what one line of a session's transcript holds; BadInput when it is malformed."""
    value = object_in(line)
    data, counts = mapping(value, "data"), Removed()
    prompt, session.prompt = session.prompt, None
    turns: list[Turn] = []
    match value.get("type"):
        case "user.message":
            session.prompt = _prompt(value, data, session, counts)
            turns = [session.prompt] if session.prompt and session.prompt.kind != "relayed" else []
        case "assistant.message":
            said = spoken(string(data, "content"), counts)
            names = {"model": label(data, "model", 100), "message_id": label(data, "messageId", LONGEST_ID)}
            turns = [session.turn(value, "assistant", said, **names)] if said else []
        case "tool.execution_start" | "tool.user_requested":
            bare, ident = session.turn(value, "tool_call", ""), label(data, "toolCallId", LONGEST_ID)
            turns = call_turns(bare, ident, tool_forms.calls_in(data), counts, into.withheld, tool_limit)
        case "tool.execution_complete":
            if ident := label(data, "toolCallId", LONGEST_ID):
                bare, result = session.turn(value, "tool_result", ""), tool_forms.stored_result(data)
                turns = [result_turn(bare, ident, result, counts, into.withheld, tool_limit)]
        case "human_response.recorded" | "permission.completed":
            said = spoken(_answer(data), counts)
            turns = [session.turn(value, "user" if session.by_person else "relayed", said)] if said else []
        case "session.compaction_complete":
            said = spoken(string(data, "summaryContent"), counts)
            turns = [session.turn(value, "summary", said)] if said else []
        case "session.usage_record":
            usage = mapping(data, "usage")
            session.context = tokens(usage, "inputTokens")
            into.spent += _spent(value, usage, session, len(into.turns) - 1)
        case _:
            into.skipped += 1
    session.follow(value, data)
    if counts:
        into.note_removed(turns or ([session.prompt] if session.prompt else []), counts)
    if prompt and prompt.kind == "relayed":
        turns = [replace(prompt, kind="user" if session.by_person else "relayed"), *turns]
    elif prompt and prompt.kind == "user" and not (prompt.agent_id or session.by_person):
        if prompt in into.turns:
            into.turns[into.turns.index(prompt)] = replace(prompt, kind="relayed")
        else:  # it is stored already, with what it goes on from
            turns = [replace(prompt, kind="relayed", parent_uuid="")]
    into.turns += [turn for turn in turns if turn.uuid]


def _prompt(value: dict[str, Any], data: dict[str, Any], session: Session, counts: Counter[str]) -> Turn | None:
    """The prompt in a line; None where there is none."""
    said = spoken(string(data, "content"), counts) if value.get("type") == "user.message" else ""
    if not said:
        return None
    is_agents = bool(value.get("agentId"))
    # A sub-agent's prompt is told from the user's by its conversation, as everywhere.
    kind = prompt_kind(said, by_person=session.by_person or is_agents)
    if not is_agents and (string(data, "source") not in _TYPED or data.get("isAutopilotContinuation")):
        kind = "notification"
    return session.turn(value, kind, said, is_prompt_line=True)


def _answer(data: dict[str, Any]) -> str:
    """What the user answered to a question, or said when they turned a tool or a plan down; "" where nobody did."""
    response, result = mapping(data, "response"), mapping(data, "result")
    if data.get("decisionSource") == "human_response":
        return string(result, "feedback")
    if data.get("actor") != "human_response":
        return ""
    answer = string(response, "answer") or "\n".join(strings(response.get("content")))
    asked = string(response, "question") or string(response, "message")
    return quoted_answers([(asked, answer)]) or string(response, "feedback")


def _spent(value: dict[str, Any], usage: dict[str, Any], session: Session, place: int) -> list[Took]:
    """The tokens of one response."""
    names = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")
    given, made, read, written = (tokens(usage, name) for name in names)
    where = stream(session_id(HOST, session.ident), label(value, "agentId", LONGEST_ID))
    ident = label(usage, "apiCallId", LONGEST_ID)
    return took(where, ident, place, given=given, made=made, read=read, written=written)
