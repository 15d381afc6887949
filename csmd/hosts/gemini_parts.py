"""Messages in parts, as in Gemini's API, the form in which Gemini CLI and its fork Qwen Code store them; pure.

A part is a text, a thought, a tool call or its response. Calls and results are put into the form that is stored for
every assistant (`csmd/hosts/tool_calls.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from csmd import wire
from csmd.conversation import Turn
from csmd.hosts.labels import read_label
from csmd.hosts.stored_text import clean_text, is_slash_command, quote_answers
from csmd.hosts.tool_calls import REJECTED_RESULT, add_exit_code
from csmd.hosts.transcript_reading import Line
from csmd.json_fields import mapping, mappings, string
from csmd.text import display
from csmd.vocabulary import TurnKind

#: Precedes the content of files that a prompt names with `@`; that content is not the user's.
REFERENCED = "\n--- Content from referenced files ---"
#: The tags around a hook's addition to a prompt or a result; Gemini CLI removes tags from the text between.
_HOOK_CONTEXT = ("<hook_context>", "</hook_context>")
#: The host's own texts among the parts of the user's messages.
_OF_HOST = re.compile(r"\s*<(?:session_context|loaded_context|qwen:[\w-]{1,40}|system-reminder)[\s>]")
#: The summary of a compaction, and the beginning of a message that holds nothing else.
_SNAPSHOT = re.compile(r"<state_snapshot>(.*?)</state_snapshot>", re.DOTALL)
_SUMMARISES = re.compile(r"\s*<(?:state_snapshot|scratchpad)>")
_TAG_LINE = re.compile(r"^[ \t]*</?[a-z_]{1,40}>[ \t]*\n?", re.MULTILINE)

#: The hosts' names of tools -> the stored names; the fields of their inputs are the same.
_TOOLS = {
    "run_shell_command": "Bash", "write_file": "Write", "replace": "Edit", "edit": "Edit", "read_file": "Read",
    "list_directory": "LS", "glob": "Glob", "grep_search": "Grep", "search_file_content": "Grep",
    "invoke_agent": "Agent", "agent": "Agent", "write_todos": "TodoWrite", "todo_write": "TodoWrite",
    "exit_plan_mode": "ExitPlanMode", "ask_user": "AskUserQuestion", "ask_user_question": "AskUserQuestion",
}  # fmt: skip
#: A result between its tags, and the lines before and after a shell's output in it.
_AROUND = re.compile(r"\A\s*<untrusted_context>\n?(.*?)\n?</untrusted_context>\s*\Z", re.DOTALL)
_BEFORE_OUTPUT = re.compile(r"(?:Command: [^\n]*\nDirectory: [^\n]*\n)?Output: ")
_AFTER_OUTPUT = re.compile(r"\n(?:Error|Exit Code|Signal|Background PIDs|Process Group PGID): [^\n]*\Z")
_EXIT_CODE = re.compile(r"\nExit Code: (\d{1,3})\Z")
#: The mark of an empty output.
_EMPTY = "(empty)"


def list_parts(content: Any) -> list[dict[str, Any]]:
    """Returns the parts of a message, which is a text or a list."""
    return [{"text": content}] if isinstance(content, str) else mappings(content)


def join_text(parts: Iterable[dict[str, Any]]) -> str:
    """Returns the text of parts, without thoughts and the host's own texts."""
    texts = (string(part, "text") for part in parts if not part.get("thought"))
    return "".join(text for text in texts if not _OF_HOST.match(text))


def clean_parts_text(text: str, counts: Counter[str]) -> str:
    """Returns a text without the additions of hooks and the content of files that it names, redacted."""
    plain = display.remove_spans(wire.clean(text), *_HOOK_CONTEXT)
    return clean_text(plain.partition(REFERENCED)[0], counts)


def is_from_program(parts: Sequence[dict[str, Any]]) -> bool:
    """Whether a prompt came by `-p`: then the output of the session's start hooks is in the prompt's own part."""
    opening, closing = _HOOK_CONTEXT
    first = string(parts[0], "text") if parts else ""
    return first.startswith(opening) and bool(first.partition(closing)[2].strip())


def classify_prompt(prompt: str) -> TurnKind:
    """Whether a prompt is the user's own words or a command to the host."""
    return "command" if is_slash_command(prompt) else "user"


def is_summary(text: str) -> bool:
    """Whether a message in the user's name is the summary of a compaction."""
    return _SUMMARISES.match(text) is not None and "<state_snapshot>" in text


def read_summary(text: str, counts: Counter[str]) -> str:
    """Returns the text of a compaction's summary, without its tags."""
    match = _SNAPSHOT.search(text)
    return clean_parts_text(_TAG_LINE.sub("", match[1]), counts) if match else ""


def make_call_turns(line: Line, bare: Turn, call: dict[str, Any]) -> list[Turn]:
    """Returns the turn of a call {id, name, args}; [] if it has no id."""
    call_id, name = read_label(call, "id", 120), read_label(call, "name", 120)
    if not call_id:
        return []
    stored = _TOOLS.get(name, name), _stored_input(name, mapping(call, "args"))
    return line.make_call_turns(make_sibling(bare, f"/{call_id}"), call_id, [stored])


def make_response_turns(line: Line, bare: Turn, response: dict[str, Any], *, rejected: bool = False) -> list[Turn]:
    """Returns the turn of a functionResponse {id, name, response}; [] if it has no id."""
    call_id = read_label(response, "id", 120)
    if not call_id:
        return []
    result = read_result(mapping(response, "response"), rejected=rejected)
    return [line.make_result_turn(make_sibling(bare, f"/{call_id}="), call_id, result)]


def make_answer_turns(line: Line, bare: Turn, suffix: str, pairs: Iterable[tuple[str, str]]) -> list[Turn]:
    """Returns the turn of the user's answers to the assistant's (question, answer) pairs; [] if there are none."""
    text = clean_parts_text(quote_answers(pairs), line.redactions)
    return [replace(make_sibling(bare, suffix), text=text)] if text else []


def make_sibling(bare: Turn, suffix: str) -> Turn:
    """Another turn of the same line, without text, whose uuid has this suffix."""
    return Turn(
        uuid=f"{bare.uuid}{suffix}", session_id=bare.session_id, agent_id=bare.agent_id, kind="user", text="",
        at=bare.at,
        cwd=bare.cwd, version=bare.version,
    )  # fmt: skip


def _stored_input(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    todos = arguments.get("todos")
    if _TOOLS.get(name) == "TodoWrite" and isinstance(todos, list):
        return {"todos": list(map(_store_todo, mappings(todos)))}
    if name == "read_file" and "absolute_path" in arguments:  # before version 0.9
        return {"file_path" if key == "absolute_path" else key: value for key, value in arguments.items()}
    return arguments


def _store_todo(todo: dict[str, Any]) -> dict[str, str]:
    return {"content": string(todo, "content") or string(todo, "description"), "status": string(todo, "status")}


def read_result(response: dict[str, Any], *, rejected: bool = False) -> str:
    """Returns a call's result: its output, below its exit code unless that is 0."""
    error = string(response, "error")
    text = display.remove_spans(error or string(response, "output"), *_HOOK_CONTEXT).rstrip()
    around = _AROUND.match(text)
    text = around[1] if around else text
    if rejected:
        return f"{REJECTED_RESULT}. {text}"
    opening = _BEFORE_OUTPUT.match(text)
    if opening is None:
        return f"Error: {text}" if error else text
    code = "0"
    while after := _AFTER_OUTPUT.search(text, opening.end() - 1):
        exit_code = _EXIT_CODE.search(text, after.start())
        code = exit_code[1] if exit_code else code
        text = text[: after.start()]
    printed = text[opening.end() :]
    return add_exit_code("" if printed == _EMPTY else printed, code)
