"""Copilot CLI's transcripts to turns and token usage.

A session's transcript is `session-state/<session>/events.jsonl`, one event a line; the first one names the session. A
resumed session continues its file. A fork's file begins with the lines of the original session, under their ids; a
rewind removes the lines that it undoes from the file. A sub-agent's events are among its session's and carry its id.

`content` of a prompt is the typed text; `transformedContent` is the model's input, including the output of hooks. Only
the first words of the model's prompt (`system.message`) show that a program submitted the prompts (`copilot -p`). That
line is written after the prompt, and again only when it has changed.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from csmd.conversation import Turn
from csmd.hosts import stored_text
from csmd.hosts.labels import make_session_id, read_label, read_path, read_tokens, read_uuid
from csmd.hosts.stored_text import clean_text, quote_answers
from csmd.hosts.tool_calls import REJECTED_RESULT, Call, add_exit_code, parse_patch
from csmd.hosts.transcript_reading import (
    LOOK_BACK_BYTES,
    Conversation,
    Line,
    ReadLine,
    Transcript,
    read_objects,
    refuse_line,
)
from csmd.json_fields import iter_strings, mapping, parse_object, string
from csmd.vocabulary import TurnKind

HOST = "copilot"
#: The context window that Copilot assumes for a model without one in its catalogue.
WINDOW_TOKENS = 128_000
FIRST_LINE = re.compile(rb'\s*\{"type":\s?"session\.start",\s?"data":\s?\{"sessionId":')
#: Each session has a directory, whatever its project.
PATH_PATTERN = re.compile(r"([\w-]+)/events\.jsonl", re.ASCII)
#: The parent of a session's first prompt.
ROOT = "root"
#: The longest first line.
FIRST_LINE_BYTES = 1024 * 1024
#: Bytes of the file's beginning that are searched for the state of a line, if it is not shortly before the line.
BEGINNING_BYTES = 1024 * 1024

#: Events that say in which directory the session is.
_DIRECTORY_EVENTS = ("session.start", "session.resume", "session.context_changed")
#: The event that holds the model's prompt, which says who submits the session's prompts.
_MODE_EVENT = "system.message"
_STATE_EVENTS = (*_DIRECTORY_EVENTS, _MODE_EVENT)
#: Events that continue the conversation.
_SPEECH_EVENTS = (
    "user.message", "assistant.message", "tool.execution_start", "tool.execution_complete",
    "session.compaction_complete",
)  # fmt: skip
#: The fields of a response's tokens: input, output, cache reads and writes.
_TOKEN_FIELDS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")
_TYPE = re.compile(rb'\s*\{"type":\s?"([\w.]{1,60})"')
#: The beginning of the model's prompt when a program submits the prompts.
_BY_PROGRAM = re.compile(r"[^\n]{0,400}\bnon-interactive mode\b")
#: The sources of a message that the user typed.
_TYPED_SOURCES = ("", "user")
#: Text that Copilot writes in the user's name.
WRITTEN_FOR_USER = re.compile(r"\s*<(?:system_notification|system_reminder|skill-context)[\s>]")
#: Copilot's name of a tool -> the stored name.
_NAMES = {
    "bash": "Bash", "local_shell": "Bash", "view": "Read", "create": "Write", "edit": "Edit", "grep": "Grep",
    "glob": "Glob",
    "task": "Task", "exit_plan_mode": "ExitPlanMode",
}  # fmt: skip
#: Copilot's name of a field -> the stored name.
_FIELDS = {"path": "file_path", "file_text": "content", "old_str": "old_string", "new_str": "new_string"}
#: Copilot's suffix of a command's output.
_AFTER_OUTPUT = re.compile(r"\n*<shellId: \S{1,40} completed with exit code -?\d+>\s*\Z")
#: The suffix of any output by the hooks of other programs.
_GUIDANCE = re.compile(r'\n\nTool "[^"\n]{1,200}" \w+\. Additional guidance from \w+ hooks:\n.*', re.DOTALL)


classify_prompt = partial(stored_text.classify_prompt, WRITTEN_FOR_USER)


@dataclass(slots=True, kw_only=True)
class Session(Conversation):
    """The session whose lines are read, with the state that earlier lines set."""

    by_person: bool = True
    last: str = ROOT
    """The last line of the session's own conversation: the parent of the next prompt."""
    prompt: Turn | None = None
    """The prompt in the line before. A program's prompt waits for the next line, which may say that a person goes
    on."""
    context: int = 0

    def follow(self, value: dict[str, Any], data: dict[str, Any]) -> None:
        """Updates the state on which later lines depend."""
        kind = value.get("type")
        if kind in _DIRECTORY_EVENTS:
            self.cwd = read_path(mapping(data, "context") or data, "cwd") or self.cwd
        elif value.get("agentId"):
            return
        elif kind == _MODE_EVENT:
            self.by_person = _BY_PROGRAM.match(string(data, "content")) is None
        elif kind in _SPEECH_EVENTS:
            self.last = read_uuid(HOST, value, "id") or self.last

    def make_turn(self, value: dict[str, Any], kind: TurnKind, text: str, **fields: Any) -> Turn:
        """Returns a turn of the line."""
        fields |= {"agent_id": read_label(value, "agentId"), "parent_uuid": self.last}
        context = self.context if kind == "assistant" else 0
        return self.new_turn(read_uuid(HOST, value, "id"), value, kind, text, context=context, **fields)


def parse_session(first_line: bytes) -> Session | None:
    """Returns the session of a transcript by its first line; None if the line names none."""
    value = parse_object(first_line) or {}
    data = mapping(value, "data")
    session_id = read_label(data, "sessionId")
    if value.get("type") != "session.start" or not session_id:
        return None
    session = Session(session=make_session_id(HOST, session_id), version=read_label(data, "copilotVersion", 40))
    session.follow(value, data)
    return session


def make_reader(transcript: Transcript) -> ReadLine:
    """Returns a function that reads the lines of a transcript from a position on."""
    session = parse_session(transcript.read_first_line(FIRST_LINE_BYTES))
    if session is None:
        return refuse_line
    for line in _find_state_lines(transcript):
        value = parse_object(line) or {}
        data = mapping(value, "data")
        is_directly_before = transcript.read_before(len(line) + 1) == line + b"\n"
        session.prompt = _read_prompt(value, data, session, Counter()) if is_directly_before else None
        session.follow(value, data)
    return read_objects(partial(_read_turns, session))


def _read_type(line: bytes) -> str:
    """Returns the type of the event in a line; "" if there is none."""
    match = _TYPE.match(line)
    return match[1].decode() if match else ""


def _find_state_lines(transcript: Transcript) -> list[bytes]:
    """Returns the lines before the position that set the directory and the submitter of prompts, and the last two of
    the conversation.

    They are found within 8 MiB before the position or in the first 1 MiB of the file, and missed elsewhere: the work of
    one reading must not grow with the file.
    """
    for size in LOOK_BACK_BYTES:
        before = transcript.read_before(size).splitlines()
        types = [_read_type(line) for line in before]
        state = [(kind, line) for line, kind in zip(before, types, strict=True) if kind in _STATE_EVENTS]
        # A sub-agent's model prompt says nothing about its session.
        own_state = {kind == _MODE_EVENT for kind, line in state if b'"agentId":' not in line}
        if size >= transcript.position or own_state == {True, False}:
            break
    else:
        transcript.file.seek(0)
        *beginning, _ = transcript.file.read(BEGINNING_BYTES).split(b"\n")
        state = [*((kind, line) for line in beginning if (kind := _read_type(line)) in _STATE_EVENTS), *state]
    speech = (line for line, kind in zip(reversed(before), reversed(types), strict=True) if kind in _SPEECH_EVENTS)
    own = (line for line in speech if not (parse_object(line) or {"agentId": ""}).get("agentId"))
    return [*(line for _, line in state), *reversed(list(itertools.islice(own, 2)))]


def _read_turns(session: Session, line: Line) -> list[Turn]:
    """Returns the turns in a line of a session's transcript, with the prompt that waited for it."""
    before, session.prompt = session.prompt, None
    turns = _read_own_turns(session, line, mapping(line.value, "data"))
    session.follow(line.value, mapping(line.value, "data"))
    line.record_redactions(turns or ([session.prompt] if session.prompt else []))
    if before is None:
        return turns
    if before.kind == "relayed":
        return [replace(before, kind="user" if session.by_person else "relayed"), *turns]
    if before.kind == "user" and not (before.agent_id or session.by_person):
        stored = line.reading.turns
        if before not in stored:  # it was stored by an earlier reading, with its parent
            return [replace(before, kind="relayed", parent_uuid="")]
        stored[stored.index(before)] = replace(before, kind="relayed")
    return turns


def _read_own_turns(session: Session, line: Line, data: dict[str, Any]) -> list[Turn]:
    """Returns the turns in a line itself, except a prompt that waits for the next line."""
    value, kind, text = line.value, line.value.get("type"), ""
    fields: dict[str, str] = {}
    turn_kind: TurnKind = "assistant"
    match kind:
        case "user.message":
            session.prompt = _read_prompt(value, data, session, line.redactions)
            return [session.prompt] if session.prompt and session.prompt.kind != "relayed" else []
        case "assistant.message":
            text = string(data, "content")
            fields = {"model": read_label(data, "model", 100), "message_id": read_label(data, "messageId")}
        case "tool.execution_start" | "tool.user_requested":
            bare = session.make_turn(value, "tool_call", "")
            return line.make_call_turns(bare, read_label(data, "toolCallId"), read_calls(data))
        case "tool.execution_complete":
            call_id, bare = read_label(data, "toolCallId"), session.make_turn(value, "tool_result", "")
            return [line.make_result_turn(bare, call_id, read_result(data))] if call_id else []
        case "human_response.recorded" | "permission.completed":
            text, turn_kind = _read_answer(data), "user" if session.by_person else "relayed"
        case "session.compaction_complete":
            text, turn_kind = string(data, "summaryContent"), "summary"
        case "session.usage_record":
            usage = mapping(data, "usage")
            session.context = read_tokens(usage, "inputTokens")
            stream = session.make_turn(value, "assistant", "").stream  # a sub-agent's own, by the id on its line
            line.record_tokens(stream, read_label(usage, "apiCallId"), usage, _TOKEN_FIELDS)
        case _:
            return line.skip()
    text = line.clean(text)
    return [session.make_turn(value, turn_kind, text, **fields)] if text else []


def _read_prompt(value: dict[str, Any], data: dict[str, Any], session: Session, counts: Counter[str]) -> Turn | None:
    """Returns the prompt in a line; None if there is none."""
    text = clean_text(string(data, "content"), counts) if value.get("type") == "user.message" else ""
    if not text:
        return None
    is_agents = bool(value.get("agentId"))
    # A sub-agent's prompt is distinguished from the user's by its conversation, as for every assistant.
    kind = classify_prompt(text, by_person=session.by_person or is_agents)
    if not is_agents and (string(data, "source") not in _TYPED_SOURCES or data.get("isAutopilotContinuation")):
        kind = "notification"
    return session.make_turn(value, kind, text, is_prompt_line=True)


def _read_answer(data: dict[str, Any]) -> str:
    """Returns the user's answer to a question, or their words when they rejected a tool or a plan; "" for anything
    else."""
    response, result = mapping(data, "response"), mapping(data, "result")
    if data.get("decisionSource") == "human_response":
        return string(result, "feedback")
    if data.get("actor") != "human_response":
        return ""
    answer = string(response, "answer") or "\n".join(iter_strings(response.get("content")))
    question = string(response, "question") or string(response, "message")
    return quote_answers([(question, answer)]) or string(response, "feedback")


# --- tool calls in the form that is stored for every assistant (`csmd/hosts/tool_calls.py`)


def read_calls(data: dict[str, Any]) -> list[Call]:
    """Returns the stored calls of an event that holds one: several for a patch of several files."""
    name, server = read_label(data, "toolName", 120), read_label(data, "mcpServerName", 60)
    arguments = data.get("arguments")
    arguments = arguments if isinstance(arguments, dict) else {"input": arguments} if isinstance(arguments, str) else {}
    if server:
        return [(f"mcp__{server}__{read_label(data, 'mcpToolName', 60)}", arguments)]
    if name == "apply_patch":
        return parse_patch(string(arguments, "input") or string(arguments, "patch")) or [(name, arguments)]
    if name in ("view", "create", "edit"):
        arguments = {_FIELDS.get(key, key): value for key, value in arguments.items()}
    return [(_NAMES.get(name, name), arguments)] if name else []


def read_result(data: dict[str, Any]) -> str:
    """Returns a call's result: its output, below its exit code unless that is 0."""
    error, code = mapping(data, "error"), mapping(data, "shellExecution").get("exitCode")
    if error:
        message = string(error, "message")
        return f"{REJECTED_RESULT}. {message}" if error.get("code") == "denied" else f"Error: {message}"
    output = _GUIDANCE.sub("", string(mapping(data, "result"), "content"))
    return add_exit_code(_AFTER_OUTPUT.sub("", output), str(code)) if type(code) is int else output
