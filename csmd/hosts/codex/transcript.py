"""Codex' transcripts ("rollouts") to turns and token usage.

A rollout is `sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl`. Its first line names the thread. A resumed session
continues its file; a fork has a file with its new part only, and so does a sub-agent. A session that continues from an
earlier turn (`thread/revert`) gets a file `..._<part>.jsonl`, whose first line says how many earlier lines are still
valid. Messages are in `item_completed` lines, in older files (without `history_mode: paginated`) in `user_message`
and `agent_message` lines. The `response_item` lines are the model's input: its user messages also contain AGENTS.md,
the environment and the output of hooks, so only tool calls and their results are read from them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from csmd import wire
from csmd.conversation import Turn
from csmd.hosts import stored_text
from csmd.hosts.labels import make_session_id, read_label, read_path, read_tokens
from csmd.hosts.stored_text import clean_text, quote_answers
from csmd.hosts.tool_calls import Call, add_exit_code, parse_patch
from csmd.hosts.transcript_reading import Conversation, Line, ReadLine, Revert, Transcript, read_objects, refuse_line
from csmd.json_fields import mapping, mappings, parse_object, read_time, string
from csmd.vocabulary import PROMPTS, TurnKind

HOST = "codex"
#: The context window of current models, as their rollouts state it.
WINDOW_TOKENS = 258_400
FIRST_LINE = re.compile(rb'\s*\{"timestamp":\s?"[^"]*",\s?(?:"ordinal":\s?\d+,\s?)?"type":\s?"session_meta"')
#: Rollouts are sorted by day, whatever their project.
PATH_PATTERN = re.compile(r"(?:\d{4}/\d\d/\d\d/)?(rollout-[a-zA-Z0-9.:-]+)(?:_[\w-]+)?\.jsonl", re.ASCII)
_PART = re.compile(r"_([\w-]+)\.jsonl\Z", re.ASCII)
#: The thread, the part and the line in a turn's uuid.
_UUID = re.compile(r"([^_:]+)(?:_([\w-]+))?:(\d+)(?:[+/].*)?")
_TURN_BEGINS = re.compile(rb'"type":\s?"task_started"')
#: The longest first line: it contains the model's prompt.
FIRST_LINE_BYTES = 4 * 1024 * 1024

#: The fields of a response's tokens: input, output, cache reads and writes.
_TOKEN_FIELDS = ("input_tokens", "output_tokens", "cached_input_tokens", "cache_write_input_tokens")
#: The sources of sessions in which a person types.
_PERSON_SOURCES = ("cli", "vscode")
#: The trigger of a turn that a person asked for.
_USER_TRIGGER = "user"
#: An editor's heading above a prompt, and the heading of the prompt itself.
_EDITOR_HEADING = "# Context from my IDE setup:"
_REQUEST_HEADING = "## My request for Codex:"
#: Text that Codex writes in the user's name.
WRITTEN_FOR_USER = re.compile(
    r"\s*(?:<(?:environment_context|user_instructions|INSTRUCTIONS|subagent_notification|turn_aborted"
    r"|user_shell_command|skill|permissions instructions|skills_instructions|hook_prompt)[\s>]"
    r"|# AGENTS\.md instructions for )"
)
#: The beginning of a compaction's summary, addressed to the next model.
_SUMMARY = re.compile(r"Another language model started to solve this problem[^\n]*:\n")
#: Tools that run a shell line, and the field with the line: a text or a list of words.
_SHELLS = {"exec_command": "cmd", "shell": "command", "shell_command": "command"}
#: The prefix of MCP servers' names.
MCP_PREFIX = "mcp__"
#: Options after which a shell takes the line as one word.
_LINE_OPTIONS = ("-c", "-lc")
#: The lines above an output; versions differ in which they write.
_ABOVE_OUTPUT = re.compile(
    r"(?:(?:Chunk ID|Wall time|Process exited|Exit code|Original token count|Total output)[^\n]*\n)+Output:\n?"
)
_EXIT_CODE = re.compile(r"(?:Process exited with code|Exit code:?) (\d{1,3})\b")


def clean_words(text: str, counts: Counter[str]) -> str:
    """Returns a text without csmd's injections and an editor's context above a prompt, redacted."""
    plain = wire.clean(text)
    if plain.lstrip().startswith(_EDITOR_HEADING) and _REQUEST_HEADING in plain:
        plain = plain.partition(_REQUEST_HEADING)[2]
    return clean_text(plain, counts)


classify_prompt = partial(stored_text.classify_prompt, WRITTEN_FOR_USER, has_commands=False)


@dataclass(slots=True, kw_only=True)
class Thread(Conversation):
    """The thread whose lines are read, with the state that earlier lines set."""

    thread_id: str
    part: str
    """The part in its file's name; "" for the first file of a thread."""
    is_paginated: bool
    """Whether messages are in `item_completed` lines."""
    by_person: bool
    model: str = ""
    mode: str = ""
    context: int = 0
    line: str = ""
    """The number of the current line, or its time if it has no number."""
    same: int = 0
    """The number of earlier lines with the same time."""

    def begin_line(self, value: dict[str, Any]) -> None:
        """Moves on to the next line."""
        ordinal = value.get("ordinal")
        name = str(ordinal) if type(ordinal) is int else read_time(value)
        self.same = self.same + 1 if name == self.line else 0
        self.line = name

    @property
    def uuid(self) -> str:
        """The uuid of the current line's turn."""
        thread = f"{self.thread_id}_{self.part}" if self.part else self.thread_id
        return f"{thread}:{self.line}+{self.same}" if self.same else f"{thread}:{self.line}"

    def make_turn(self, value: dict[str, Any], kind: TurnKind, text: str, **fields: Any) -> Turn:
        """Returns a turn of the current line."""
        if kind == "assistant":
            fields |= {"model": self.model, "context": self.context}
        mode = self.mode if kind in PROMPTS else ""
        return self.new_turn(self.uuid, value, kind, text, mode=mode, **fields)


def parse_thread(first_line: bytes, name: str) -> Thread | None:
    """Returns the thread of a rollout by its first line and its file's name; None if the line names none."""
    meta = mapping(parse_object(first_line) or {}, "payload")
    thread_id, subagent = read_label(meta, "id"), mapping(mapping(meta, "source"), "subagent")
    parent = read_label(meta, "parent_thread_id") or read_label(mapping(subagent, "thread_spawn"), "parent_thread_id")
    is_agent = bool(parent) or isinstance(meta.get("source"), dict) or string(meta, "thread_source") == "subagent"
    if not thread_id:
        return None
    root = (read_label(meta, "session_id") or parent) if is_agent else thread_id
    part = _PART.search(name)
    return Thread(
        thread_id=thread_id, part=part[1] if part else "", session=make_session_id(HOST, root or thread_id),
        agent=thread_id if is_agent else "", version=read_label(meta, "cli_version", 40),
        is_paginated=string(meta, "history_mode") == "paginated", by_person=string(meta, "source") in _PERSON_SOURCES,
        cwd=read_path(meta, "cwd"),
    )  # fmt: skip


def make_reader(transcript: Transcript) -> ReadLine:
    """Returns a function that reads the lines of a rollout; reads the running turn again first, for its origin."""
    thread = parse_thread(transcript.read_first_line(FIRST_LINE_BYTES), transcript.path.name)
    if thread is None:
        return refuse_line
    read_line = read_objects(partial(_read_turns, thread))
    transcript.reread(transcript.find_before(partial(_find_running_turn, transcript.position)), read_line)
    return read_line


def _find_running_turn(position: int, before: bytes) -> list[bytes]:
    """Returns the lines since the running turn began, or since the file's beginning; [] if the turn began earlier."""
    starts = [match.start() for match in _TURN_BEGINS.finditer(before)]
    if not starts and len(before) < position:
        return []
    return before[before.rfind(b"\n", 0, starts[-1]) + 1 if starts else 0 :].splitlines()


def _read_turns(thread: Thread, line: Line) -> list[Turn]:
    """Returns the turns in a line of a thread's rollout."""
    value, reading = line.value, line.reading
    thread.begin_line(value)
    payload = mapping(value, "payload")
    match value.get("type"), payload.get("type"):
        case "session_meta", _ if (base := mapping(payload, "history_base")).get("thread_id") == thread.thread_id:
            reading.reverts.append(Revert(stream=thread.stream, is_abandoned=_make_abandoned_test(thread, base)))
        case "retained_context", "verified_answer":
            return _read_answer_turns(line, payload, thread)
        case "turn_context", _:
            thread.cwd = read_path(payload, "cwd", line.redactions) or thread.cwd
            thread.model = read_label(payload, "model", 100)
            thread.mode = read_label(mapping(payload, "collaboration_mode"), "mode", 40)
        case "event_msg", "task_started":
            # Older versions do not record who asked for the turn.
            if trigger := string(mapping(payload, "turn_attribution"), "turn_trigger"):
                thread.by_person = trigger == _USER_TRIGGER
        case "event_msg", "item_completed" if thread.is_paginated:
            return _read_item_turns(line, mapping(payload, "item"), thread)
        case "event_msg", "user_message" | "agent_message" if not thread.is_paginated:
            is_prompt = payload["type"] == "user_message"
            return _read_message_turns(line, string(payload, "message"), thread, is_prompt=is_prompt)
        case "event_msg", "token_count":
            thread.context = read_tokens(mapping(mapping(payload, "info"), "last_token_usage"), "input_tokens")
        case "response_item", _:
            return _read_tool_turns(line, payload, thread)
        case "compacted", _:
            summary = clean_words(_SUMMARY.sub("", string(payload, "message"), count=1), line.redactions)
            return [thread.make_turn(value, "summary", summary)] if summary else []
        case "token_usage_record", _:
            line.record_tokens(thread.stream, read_label(payload, "response_id"), payload.get("usage"), _TOKEN_FIELDS)
        case _:
            return line.skip()
    return []


def _make_abandoned_test(thread: Thread, base: dict[str, Any]) -> Callable[[str], bool]:
    """Returns the test for the uuids of turns in earlier parts that this part of a thread abandons."""
    end, thread_id, part = base.get("end_ordinal_exclusive"), thread.thread_id, thread.part

    def is_abandoned(uuid: str) -> bool:
        match = _UUID.fullmatch(uuid)
        if match is None or match[1] != thread_id or type(end) is not int:
            return False
        return (match[2] or "") < part and int(match[3]) >= end

    return is_abandoned


def _read_answer_turns(line: Line, payload: dict[str, Any], thread: Thread) -> list[Turn]:
    """Returns the turn in which the user answers the assistant's questions, which are quoted."""
    pairs = [(string(pair, "question"), string(pair, "answer")) for pair in mappings(payload.get("questions"))]
    text = clean_words(quote_answers((_strip_picked(*pair), pair[1]) for pair in pairs), line.redactions)
    kind: TurnKind = "user" if thread.by_person else "relayed"
    # As for every assistant, the number appended to the line's uuid marks the turn as an answer.
    return [replace(thread.make_turn(line.value, kind, text, is_pick=True), uuid=f"{thread.uuid}/1")] if text else []


def _strip_picked(question: str, answer: str) -> str:
    """Returns a question without its descriptions of the options that were picked."""
    picked = tuple(f"{line}: " for line in answer.splitlines())
    return "\n".join(line for line in question.splitlines() if not line.startswith(picked))


def _read_item_turns(line: Line, item: dict[str, Any], thread: Thread) -> list[Turn]:
    """Returns the turn of an item that is a message."""
    kind, parts = item.get("type"), item.get("content")
    if kind not in ("UserMessage", "AgentMessage") or not isinstance(parts, list):
        return []
    texts = [string(part, "text") for part in mappings(parts) if str(part.get("type")).lower() == "text"]
    return _read_message_turns(line, "\n".join(texts), thread, is_prompt=kind == "UserMessage")


def _read_message_turns(line: Line, message: str, thread: Thread, *, is_prompt: bool) -> list[Turn]:
    text = clean_words(message, line.redactions)
    # A sub-agent's prompt is distinguished from the user's by its conversation, as for every assistant.
    kind = classify_prompt(text, by_person=thread.by_person or bool(thread.agent)) if is_prompt else "assistant"
    return [thread.make_turn(line.value, kind, text)] if text else []


def _read_tool_turns(line: Line, payload: dict[str, Any], thread: Thread) -> list[Turn]:
    """Returns the turns of a tool call, or of its result."""
    kind, call_id = string(payload, "type"), read_label(payload, "call_id", 120)
    if kind.endswith("_call_output") and call_id:
        result = read_result(payload.get("output"))
        return [line.make_result_turn(thread.make_turn(line.value, "tool_result", ""), call_id, result)]
    if not kind.endswith("_call") or not call_id:
        return []
    return line.make_call_turns(thread.make_turn(line.value, "tool_call", ""), call_id, read_calls(payload))


# --- tool calls in the form that is stored for every assistant (`csmd/hosts/tool_calls.py`)


def read_calls(payload: dict[str, Any]) -> list[Call]:
    """Returns the stored calls of a line that holds one: several for a patch of several files."""
    name, space = read_label(payload, "name", 100), read_label(payload, "namespace", 100)
    if payload.get("type") == "local_shell_call":
        return [("Bash", {"command": _join_shell_words(mapping(payload, "action").get("command"))})]
    text = string(payload, "arguments") or string(payload, "input")
    arguments = parse_object(text)
    if arguments is None:
        arguments = {"input": text}
    if space.startswith(MCP_PREFIX):
        return [(f"{space}__{name}", arguments)]
    if name in _SHELLS:
        return [("Bash", {"command": _join_shell_words(arguments.get(_SHELLS[name]))})]
    if name == "apply_patch":
        return parse_patch(string(arguments, "input")) or [(name, arguments)]
    steps = arguments.get("plan")
    if name == "update_plan" and isinstance(steps, list):
        todos = [{"content": string(step, "step"), "status": string(step, "status")} for step in mappings(steps)]
        return [("TodoWrite", {"todos": todos})]
    return [(name, arguments)]


def _join_shell_words(command: Any) -> str:
    words = [str(word) for word in command] if isinstance(command, list) else [str(command or "")]
    return words[2] if len(words) == 3 and words[1] in _LINE_OPTIONS else " ".join(words)


def read_result(output: Any) -> str:
    """Returns a call's result: its output, below its exit code unless that is 0."""
    text = _flatten_output(output)
    wrapped = parse_object(text) if text.startswith('{"output"') else None
    if wrapped is not None:  # before version 0.60
        return add_exit_code(string(wrapped, "output"), str(mapping(wrapped, "metadata").get("exit_code") or 0))
    header = _ABOVE_OUTPUT.match(text)
    if header is None:
        return text
    code = _EXIT_CODE.search(header[0])
    return add_exit_code(text[header.end() :], code[1] if code else "0")


def _flatten_output(output: Any) -> str:
    if isinstance(output, dict):
        output = output.get("content")
    if isinstance(output, list):
        return "\n".join(string(part, "text") for part in mappings(output))
    return output if isinstance(output, str) else ""
