"""Reads turns and token usage from OpenCode and Kilo sessions, which are database rows.

`csmd.capture.transcript_source` turns the rows into lines: an object for the session, and one for each message with its
parts. A fork copies messages under new ids with their old times and texts. So a turn is identified by its message's
time, role and hash of its texts, which are the same in a fork, and by its position in the message. A sub-agent has a
session of its own.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from csmd import wire
from csmd.conversation import Turn
from csmd.errors import BadInput
from csmd.hosts.labels import make_session_id, read_label, read_path, read_tokens
from csmd.hosts.stored_text import quote_answers
from csmd.hosts.tool_calls import REJECTED_RESULT, Call, add_exit_code
from csmd.hosts.transcript_reading import (
    Conversation,
    Line,
    Reading,
    ReadLine,
    TokenUse,
    Transcript,
    read_objects,
    refuse_line,
)
from csmd.json_fields import mapping, mappings, parse_object, string
from csmd.privacy.redaction import redact
from csmd.vocabulary import TurnKind

KILO = "kilo"
#: Host -> its database, in its directory of data.
DATABASES: Mapping[str, str] = {"opencode": "opencode.db", KILO: "kilo.db"}
#: The context window of a model unless another is known.
WINDOW_TOKENS = 200_000
#: The session id that stands for a path: all sessions are in one database, whatever their project.
PATH_PATTERN = re.compile(r"(ses_\w+)", re.ASCII)

_FIRST_LINE = re.compile(rb'\{"database":"(\w*)')
#: The title of a session that has none yet.
_UNTITLED = re.compile(r"(?:New|Child) session - \d{4}-")
#: The mark that csmd's plugin puts on the text of a slash command.
_COMMAND_MARK = "csmd_command"
#: The tool that asks the user.
_QUESTION_TOOL = "question"
#: Names of tools -> the stored names.
_TOOLS = {
    "bash": "Bash", "read": "Read", "write": "Write", "edit": "Edit", "multiedit": "MultiEdit", "glob": "Glob",
    "grep": "Grep", "list": "LS", "todowrite": "TodoWrite", "task": "Task", "webfetch": "WebFetch",
    "websearch": "WebSearch",
    _QUESTION_TOOL: "AskUserQuestion",
}  # fmt: skip
#: Fields of their input -> the stored names.
_FIELDS = {"filePath": "file_path", "oldString": "old_string", "newString": "new_string", "replaceAll": "replace_all"}
#: The beginning of the error of a call that the user rejected.
_REJECTED = re.compile(r"The user rejected permission to use this specific tool call")


def is_transcript(host: str, beginning: bytes) -> bool:
    """Whether these are the first bytes of a session of this host; a database with another name is OpenCode's."""
    first = _FIRST_LINE.match(beginning)
    return first is not None and (first[1].decode() == KILO) == (host == KILO)


def read_titles(host: str, beginning: bytes) -> dict[str, str]:
    """Returns the title of the session with these first bytes; {} for a sub-agent's."""
    head = parse_object(beginning) or {}
    session_id, title = read_label(head, "id"), string(head, "title")
    if not session_id or string(head, "root") != session_id or not title or _UNTITLED.match(title):
        return {}
    return {make_session_id(host, session_id): redact(wire.clean(title), Counter())}


def parse_prompt(text: str) -> tuple[str, bool]:
    """Returns the prompt, and whether a person typed it: `opencode run` quotes a prompt that contains spaces."""
    inner = text.strip()
    if len(inner) > 1 and inner[0] == inner[-1] == '"':
        return inner[1:-1].replace('\\"', '"'), False
    return text, True


@dataclass(slots=True, kw_only=True)
class Session(Conversation):
    """The session whose messages are read; a noninteractive one was begun by `opencode run`."""

    host: str
    is_noninteractive: bool

    def make_uuid(self, name: str) -> str:
        """Returns the uuid of the message with this name.

        It includes the sub-agent: several may be asked the same at one moment, and forks do not copy their messages.
        """
        return f"{self.host}:{self.agent}:{name}" if self.agent else f"{self.host}:{name}"


def parse_session(host: str, beginning: bytes) -> Session | None:
    """Returns the session by its first line; None if the line names none."""
    head = parse_object(beginning) or {}
    session_id = read_label(head, "id")
    if not session_id:
        return None
    root = read_label(head, "root") or session_id
    rules: object = None
    with contextlib.suppress(BadInput):
        rules = wire.loads(string(head, "permission"))
    return Session(
        host=host, session=make_session_id(host, root), agent="" if root == session_id else session_id,
        version=read_label(head, "version", 40), cwd=read_path(head, "cwd"),
        is_noninteractive=any(
            (rule.get("permission"), rule.get("action")) == ("question", "deny") for rule in mappings(rules)
        ),
    )  # fmt: skip


def make_reader(host: str, transcript: Transcript) -> ReadLine:
    """Returns a function that reads the messages of a session; each is complete in itself."""
    session, titles = parse_session(host, transcript.beginning), read_titles(host, transcript.beginning)
    if session is None:
        return refuse_line
    read_line = read_objects(lambda line: _read_turns(session, line))

    def read_next(data: bytes, into: Reading) -> None:
        read_line(data, into)
        into.titles |= titles
        into.title_at |= dict.fromkeys(titles, len(into.turns))

    return read_next


def _read_turns(session: Session, line: Line) -> list[Turn]:
    """Returns the turns of a message."""
    data = mapping(line.value, "message")
    if data.get("role") not in ("user", "assistant") or not isinstance(line.value.get("parts"), list):
        raise BadInput("a message has no role or no parts")
    cwd = read_path(mapping(data, "path"), "cwd", line.redactions) or session.cwd
    message = _Message(session, line, data, session.make_uuid(string(line.value, "name")), cwd)
    turns = [turn for part in mappings(line.value["parts"]) for turn in message.read_part(part)]
    line.reading.skipped += not turns
    if not message.is_prompt and any(message.token_counts):
        turn = len(line.reading.turns) + len(turns) - 1
        line.reading.token_uses.append(TokenUse(session.stream, message.uuid, message.token_counts, turn))
    return turns


@dataclass(slots=True)
class _Message:
    """A message (`data`) while its parts are read."""

    session: Session
    line: Line
    data: dict[str, Any]
    uuid: str
    cwd: str
    count: int = field(default=0, init=False)
    """The number of turns so far."""

    @property
    def is_prompt(self) -> bool:
        return bool(self.data["role"] == "user")

    @property
    def token_counts(self) -> tuple[int, int, int, int]:
        """Its tokens as in `TokenUse`."""
        usage = mapping(self.data, "tokens")
        cache = mapping(usage, "cache")
        output = read_tokens(usage, "output") + read_tokens(usage, "reasoning")
        return read_tokens(usage, "input"), output, read_tokens(cache, "read"), read_tokens(cache, "write")

    def read_part(self, part: dict[str, Any]) -> list[Turn]:
        """Returns the turns of a part: of a text, or of a tool call and its result."""
        match part.get("type"):
            case "text" if not (part.get("synthetic") or part.get("ignored")):
                is_command = mapping(part, "metadata").get(_COMMAND_MARK)
                return self._read_text_turns(string(part, "text"), is_typed=not is_command)
            case "tool":
                return self._read_tool_turns(part)
        return []

    def _make_turn(self, kind: TurnKind, text: str, **fields: Any) -> Turn:
        """Returns the next turn of the message."""
        session, uuid = self.session, f"{self.uuid}+{self.count}" if self.count else self.uuid
        self.count += 1
        # Of two prompts with the same parent, the later one replaces the earlier.
        if kind in ("user", "relayed") and self.count == 1:
            previous = string(self.line.value, "before")
            parent = session.make_uuid(previous) if previous else session.session
            fields |= {"parent_uuid": parent, "is_prompt_line": True}
        if kind == "assistant":
            input_tokens, _, cache_read, cache_write = self.token_counts
            context = input_tokens + cache_read + cache_write
            fields |= {"model": read_label(self.data, "modelID", 100), "context": context}
        return session.new_turn(uuid, self.line.value, kind, text, cwd=self.cwd, **fields)

    def _read_text_turns(self, text: str, *, is_typed: bool) -> list[Turn]:
        kind: TurnKind = "summary" if self.data.get("summary") is True else "assistant"
        if self.is_prompt:
            text, by_person = parse_prompt(text)
            # A sub-agent's prompt is distinguished from the user's by its conversation, as for every assistant.
            is_typed = is_typed and by_person and not self.session.is_noninteractive
            kind = "user" if self.session.agent or is_typed else "relayed"
        text = self.line.clean(text)
        return [self._make_turn(kind, text)] if text else []

    def _read_tool_turns(self, part: dict[str, Any]) -> list[Turn]:
        state, call_id = mapping(part, "state"), read_label(part, "callID", 120)
        if not call_id:
            return []
        call = make_call(read_label(part, "tool", 100), mapping(state, "input"))
        turns = self.line.make_call_turns(self._make_turn("tool_call", ""), call_id, [call])
        if state.get("status") not in ("completed", "error"):
            return turns
        turns.append(self.line.make_result_turn(self._make_turn("tool_result", ""), call_id, read_result(state)))
        return [*turns, *self._read_answer_turns(part, state)]

    def _read_answer_turns(self, part: dict[str, Any], state: dict[str, Any]) -> list[Turn]:
        """Returns the turn in which the user answers the assistant's questions, which are quoted."""
        questions, picked = mapping(state, "input").get("questions"), mapping(state, "metadata").get("answers")
        if part.get("tool") != _QUESTION_TOOL or self.session.agent:
            return []
        if not isinstance(questions, list) or not isinstance(picked, list):
            return []
        pairs = zip(questions, picked, strict=False)
        text = self.line.clean(quote_answers(_read_pair(*pair) for pair in pairs if isinstance(pair[0], dict)))
        # The `/N` suffix marks a turn as an answer, as in every host.
        uuid = f"{self.uuid}/{self.count}"
        return [replace(self._make_turn("user", text, is_pick=True), uuid=uuid)] if text else []


def _read_pair(question: dict[str, Any], answers: Any) -> tuple[str, str]:
    return string(question, "question"), ", ".join(map(str, answers)) if isinstance(answers, list) else ""


def make_call(name: str, arguments: dict[str, Any]) -> Call:
    """Returns a tool call by the names of `csmd/hosts/tool_calls.py`; MCP servers' tools keep theirs."""
    if name not in _TOOLS:
        return name, arguments
    return _TOOLS[name], {_FIELDS.get(key, key): value for key, value in arguments.items()}


def read_result(state: dict[str, Any]) -> str:
    """Returns a call's output below its exit code unless that is 0, or its error."""
    if state.get("status") == "error":
        error = string(state, "error")
        return _REJECTED.sub(REJECTED_RESULT, error) if _REJECTED.match(error) else f"Error: {error}"
    output, code = string(state, "output"), mapping(state, "metadata").get("exit")
    return add_exit_code(output, str(code)) if type(code) is int else output
