"""Codex' tool calls and results in the form that is stored for every assistant (`csmd/hosts/tool_calls.py`)."""

from __future__ import annotations

import re
from typing import Any

from csmd.hosts.json_fields import mapping, mappings, parse_object, string
from csmd.hosts.labels import read_label
from csmd.hosts.stored_calls import Call, add_exit_code, parse_patch

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


def read_calls(payload: dict[str, Any]) -> list[Call]:
    """The stored calls of a line that holds one: several for a patch of several files."""
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
    """A call's result: its output, below its exit code unless that is 0."""
    text = _flatten_output(output)
    wrapped = parse_object(text) if text.startswith('{"output"') else None
    if wrapped is not None:  # before version 0.60
        return add_exit_code(string(wrapped, "output"), str(mapping(wrapped, "metadata").get("exit_code") or 0))
    above = _ABOVE_OUTPUT.match(text)
    if above is None:
        return text
    code = _EXIT_CODE.search(above[0])
    return add_exit_code(text[above.end() :], code[1] if code else "0")


def _flatten_output(output: Any) -> str:
    if isinstance(output, dict):
        output = output.get("content")
    if isinstance(output, list):
        return "\n".join(string(part, "text") for part in mappings(output))
    return output if isinstance(output, str) else ""
