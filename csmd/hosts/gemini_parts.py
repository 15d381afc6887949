"""Messages in parts, as Gemini's API has them: how Gemini CLI and Qwen Code, its fork, store what was said and done; pure.

A part is a text, a thought, a tool's call or its response. Calls and results become the form that is stored for every
assistant (`csmd/hosts/tool_calls.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from csmd import wire
from csmd.exclusions import Withheld
from csmd.hosts import adapter
from csmd.hosts.json_fields import mapping, string
from csmd.hosts.labels import label
from csmd.hosts.stored_calls import call_turns, result_turn, with_exit_code
from csmd.text import display
from csmd.values import Turn
from csmd.vocabulary import TurnKind

#: What stands before the content of files that a prompt names behind an `@`; it is the files', not the user's.
REFERENCED = "\n--- Content from referenced files ---"
#: What a hook put into a prompt or a result; Gemini CLI takes tags out of the text between.
_HOOK_CONTEXT = ("<hook_context>", "</hook_context>")
#: Texts of the host's own that are parts of the user's messages.
_OF_HOST = re.compile(r"\s*<(?:session_context|loaded_context|qwen:[\w-]{1,40}|system-reminder)[\s>]")
#: The summary of a compaction, and how a message begins that holds nothing else.
_SNAPSHOT = re.compile(r"<state_snapshot>(.*?)</state_snapshot>", re.DOTALL)
_SUMMARISES = re.compile(r"\s*<(?:state_snapshot|scratchpad)>")
_TAG_LINE = re.compile(r"^[ \t]*</?[a-z_]{1,40}>[ \t]*\n?", re.MULTILINE)

#: The hosts' names of tools -> the stored ones; the fields of their inputs are the same.
_TOOLS = {
    "run_shell_command": "Bash", "write_file": "Write", "replace": "Edit", "edit": "Edit", "read_file": "Read",
    "list_directory": "LS", "glob": "Glob", "grep_search": "Grep", "search_file_content": "Grep",
    "invoke_agent": "Agent", "agent": "Agent", "write_todos": "TodoWrite", "todo_write": "TodoWrite",
    "exit_plan_mode": "ExitPlanMode", "ask_user": "AskUserQuestion", "ask_user_question": "AskUserQuestion",
}  # fmt: skip
#: A shell's result: what stands around its output, and what around all of it.
_AROUND = re.compile(r"\A\s*<untrusted_context>\n?(.*?)\n?</untrusted_context>\s*\Z", re.DOTALL)
_BEFORE_OUTPUT = re.compile(r"(?:Command: [^\n]*\nDirectory: [^\n]*\n)?Output: ")
_BEHIND_OUTPUT = re.compile(r"\n(?:Error|Exit Code|Signal|Background PIDs|Process Group PGID): [^\n]*\Z")
_EXIT_CODE = re.compile(r"\nExit Code: (\d{1,3})\Z")
_NOTHING = "(empty)"
#: How a result begins of a call that the user turned down, in the stored form.
_REJECTED = "The user doesn't want to proceed with this tool use. "


def parts_in(content: Any) -> list[dict[str, Any]]:
    """The parts of a message, which is a text or a list."""
    if isinstance(content, str):
        return [{"text": content}]
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def words_in(parts: Iterable[dict[str, Any]]) -> str:
    """What is said in parts: no thoughts, nothing of the host's own."""
    return "".join(
        text for part in parts if not part.get("thought") and not _OF_HOST.match(text := string(part, "text"))
    )


def spoken(text: str, counts: Counter[str]) -> str:
    """A text without what hooks put into it and the files that it names, redacted."""
    plain = display.without_spans(wire.clean(text), *_HOOK_CONTEXT)
    return adapter.spoken(plain.partition(REFERENCED)[0], counts)


def is_handed_in(parts: Sequence[dict[str, Any]]) -> bool:
    """Whether a prompt came by `-p`: there what the hooks of a session's start say stands in the prompt's own part."""
    opening, closing = _HOOK_CONTEXT
    first = string(parts[0], "text") if parts else ""
    return first.startswith(opening) and bool(first.partition(closing)[2].strip())


def prompt_kind(said: str) -> TurnKind:
    """Whether a prompt is the user's own words or a command of the host."""
    return "command" if adapter.is_slash_command(said) else "user"


def is_summary(text: str) -> bool:
    """Whether a message of the user's name is the summary of a compaction."""
    return _SUMMARISES.match(text) is not None and "<state_snapshot>" in text


def summary_in(text: str, counts: Counter[str]) -> str:
    """What a compaction's summary says, without its tags."""
    found = _SNAPSHOT.search(text)
    return spoken(_TAG_LINE.sub("", found[1]), counts) if found else ""


def call_turn(bare: Turn, call: dict[str, Any], counts: Counter[str], withheld: Withheld, limit: int) -> Turn | None:
    """The turn of a call {id, name, args}; None where it has no id. `limit` is how many bytes are kept."""
    ident, name = label(call, "id", 120), label(call, "name", 120)
    if not ident:
        return None
    stored = _TOOLS.get(name, name), _stored_input(name, mapping(call, "args"))
    (turn,) = call_turns(beside(bare, f"/{ident}"), ident, [stored], counts, withheld, limit)
    return turn


def response_turn(
    bare: Turn, response: dict[str, Any], counts: Counter[str], withheld: Withheld, limit: int, *, rejected: bool = False
) -> Turn | None:  # fmt: skip
    """The turn of a functionResponse {id, name, response}; None where it has no id."""
    ident = label(response, "id", 120)
    if not ident:
        return None
    result = stored_result(mapping(response, "response"), rejected=rejected)
    return result_turn(beside(bare, f"/{ident}="), ident, result, counts, withheld, limit)


def beside(bare: Turn, place: str) -> Turn:
    """Another turn of the same line without text, with this behind its uuid."""
    return Turn(
        uuid=f"{bare.uuid}{place}", session_id=bare.session_id, agent_id=bare.agent_id, kind="user", text="", at=bare.at,
        cwd=bare.cwd, version=bare.version,
    )  # fmt: skip


def _stored_input(name: str, given: dict[str, Any]) -> dict[str, Any]:
    todos = given.get("todos")
    if _TOOLS.get(name) == "TodoWrite" and isinstance(todos, list):
        entries = [todo for todo in todos if isinstance(todo, dict)]
        return {"todos": [{"content": string(one, "content") or string(one, "description"), "status": string(one, "status")} for one in entries]}  # fmt: skip
    if name == "read_file" and "absolute_path" in given:  # versions of before 0.9
        return {"file_path": given["absolute_path"], **{key: given[key] for key in given if key != "absolute_path"}}
    return given


def stored_result(response: dict[str, Any], *, rejected: bool = False) -> str:
    """What a call gave back: what it printed, below its exit code where that is not 0."""
    error = string(response, "error")
    text = display.without_spans(error or string(response, "output"), *_HOOK_CONTEXT).rstrip()
    around = _AROUND.match(text)
    text = around[1] if around else text
    if rejected:
        return f"{_REJECTED}{text}"
    opened = _BEFORE_OUTPUT.match(text)
    if opened is None:
        return f"Error: {text}" if error else text
    code = "0"
    while behind := _BEHIND_OUTPUT.search(text, opened.end() - 1):
        exit_code = _EXIT_CODE.search(text, behind.start())
        code = exit_code[1] if exit_code else code
        text = text[: behind.start()]
    printed = text[opened.end() :]
    printed = "" if printed == _NOTHING else printed
    return with_exit_code(printed, code)
