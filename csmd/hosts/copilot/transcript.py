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
from pathlib import Path
from typing import Any

from csmd import wire
from csmd.errors import BadInput
from csmd.exclusions import Withheld
from csmd.hosts.adapter import Opened, Reading, ReadLine, Took, cut_long, tokens, without_injections
from csmd.hosts.copilot import tool_forms
from csmd.hosts.json_fields import json_object, label, mapping, moment, string, strings
from csmd.hosts.tool_calls import transcripts_written
from csmd.privacy.redaction import Removed, redact, redact_tree
from csmd.text import display
from csmd.values import Turn
from csmd.vocabulary import TurnKind

HOST = "copilot"
#: The context window that Copilot reckons with where its catalogue names no other.
WINDOW = 128_000
#: Enough of a session's id to be one.
LONGEST_ID = 200
#: Stands for what the first prompt of a session goes on from.
ROOT = "root"
#: The longest first line.
FIRST_LINE_BYTES = 1024 * 1024
#: How far back it is looked for what a line depends on; then in so much of the file's beginning.
BACK_BYTES, BEGINNING_BYTES = (256 * 1024, 8 * 1024 * 1024), 1024 * 1024

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
_SLASH = re.compile(r"/[a-zA-Z][\w:.-]*(?:\s|$)")
#: Text that Copilot writes in the user's name.
WRITTEN_FOR_USER = re.compile(r"\s*<(?:system_notification|system_reminder|skill-context)[\s>]")


def is_transcript(beginning: bytes) -> bool:
    """Whether a file's first bytes are those of a session's events."""
    return _FIRST.match(beginning) is not None


def place_of(root: str, inside: str) -> tuple[str, str] | None:
    """(project directory, session) of a transcript: each has a directory, whatever its project is."""
    found = _FILE.fullmatch(inside)
    return (root, found["session"]) if found else None


def places(folder: Path) -> list[Path]:
    """Where Copilot keeps what was said below its configuration directory."""
    names = ("session-state", "session-store.db", "session-store.db-wal", "command-history-state.json", "logs")
    return [folder / name for name in names]


def session_id(ident: str) -> str:
    """The id under which a session is stored; "" for none."""
    return f"{HOST}:{ident}" if ident else ""


def spoken(text: str, counts: Counter[str]) -> str:
    """A text without csmd's injections, redacted."""
    return without_injections(cut_long(wire.clean(text), counts), counts)


def prompt_kind(said: str, *, by_person: bool) -> TurnKind:
    """Whether a prompt is the user's own words, a command, a program's or Copilot's own."""
    if WRITTEN_FOR_USER.match(said):
        return "notification"
    if _SLASH.match(said):
        return "command"
    return "user" if by_person else "relayed"


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
            self.last = label(value, "id", LONGEST_ID) or self.last

    def turn(self, value: dict[str, Any], kind: TurnKind, text: str, **more: Any) -> Turn:
        """A turn of the line."""
        is_assistant = kind == "assistant"
        return Turn(
            uuid=label(value, "id", LONGEST_ID), session_id=session_id(self.ident), agent_id=label(value, "agentId", LONGEST_ID),
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
    opened.file.seek(0)
    session = session_of(opened.file.readline(FIRST_LINE_BYTES))
    if session is None:
        return _refuse
    for line in _lines_depended_on(opened):
        value = json_object(line) or {}
        data = mapping(value, "data")
        session.prompt = (
            _prompt(value, data, session, Counter()) if opened.before(len(line) + 1) == line + b"\n" else None
        )
        session.follow(value, data)

    def read_next(line: bytes, into: Reading, *, tool_limit: int) -> None:
        read_line(line, into, session, tool_limit=tool_limit)

    return read_next


def _refuse(*_: object, **__: object) -> None:
    raise BadInput("a line of a transcript whose first line names no session")


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
    value = wire.loads(line)
    if not isinstance(value, dict):
        raise BadInput("a transcript line is not a JSON object")
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
            turns = _calls(value, data, session, counts, into.withheld, tool_limit)
        case "tool.execution_complete":
            turns = _results(value, data, session, counts, into.withheld, tool_limit)
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
    # The question is the assistant's, and stands above the answer as a quotation.
    quoted = "\n".join(f"> {line}" for line in asked.splitlines())
    return f"{quoted}\n{answer}" if answer.strip() else string(response, "feedback")


def _calls(
    value: dict[str, Any], data: dict[str, Any], session: Session, counts: Counter[str], withheld: Withheld, limit: int
) -> list[Turn]:
    """The turns of a tool call."""
    ident, uuid = label(data, "toolCallId", LONGEST_ID), label(value, "id", LONGEST_ID)
    turns = []
    for place, (tool, given) in enumerate(tool_forms.calls_in(data)):
        body = wire.clean(wire.dumps(redact_tree(withheld.given(ident, given), counts)))
        named = f"{uuid}/{place}" if place else uuid
        shown = display.cut_middle(body, limit=limit, of=f"turn {named}")
        # Of the call as it was made: what is trimmed, redacted or withheld may be where it writes.
        writes = transcripts_written(tool, given)
        turn = session.turn(value, "tool_call", shown, tool_name=tool, tool_id=ident, writes=writes)
        turns.append(replace(turn, uuid=named))
    return turns


def _results(
    value: dict[str, Any], data: dict[str, Any], session: Session, counts: Counter[str], withheld: Withheld, limit: int
) -> list[Turn]:
    """The turn of what came of a tool call."""
    ident = label(data, "toolCallId", LONGEST_ID)
    shown = withheld.shown(ident, tool_forms.stored_result(data), None)
    body = redact(wire.clean(display.strip_fenced(shown)), counts)
    body = display.cut_middle(body, limit=limit, of=f"turn {label(value, 'id', LONGEST_ID)}")
    return [session.turn(value, "tool_result", body, tool_id=ident)] if ident else []


def _spent(value: dict[str, Any], usage: dict[str, Any], session: Session, place: int) -> list[Took]:
    """The tokens of one response."""
    names = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")
    ident, (given, made, read, written) = label(usage, "apiCallId", LONGEST_ID), (tokens(usage, name) for name in names)
    if not ident or not any((given, made)):
        return []
    agent, stream = label(value, "agentId", LONGEST_ID), session_id(session.ident)
    amounts = (max(0, given - read - written), made, read, written)
    return [Took(f"{stream}/{agent}" if agent else stream, ident, amounts, place)]
