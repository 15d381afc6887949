"""Codex' tool calls and results in the form that is stored for every assistant (`csmd/hosts/tool_calls.py`)."""

from __future__ import annotations

import re
from typing import Any

from csmd.hosts.json_fields import json_object, mapping, string
from csmd.hosts.labels import label
from csmd.hosts.stored_calls import Call, patched_files, with_exit_code

#: Tools that run a shell line, and the field that holds it: a text, or the words of a command.
_SHELLS = {"exec_command": "cmd", "shell": "command", "shell_command": "command"}
#: How the names of servers begin.
FOREIGN = "mcp__"
#: Shells that take the line as one word, behind this.
_LINE_OPTIONS = ("-c", "-lc")
#: What stands above an output; one version or another leaves some of it out.
_ABOVE_OUTPUT = re.compile(
    r"(?:(?:Chunk ID|Wall time|Process exited|Exit code|Original token count|Total output)[^\n]*\n)+Output:\n?"
)
_EXIT_CODE = re.compile(r"(?:Process exited with code|Exit code:?) (\d{1,3})\b")


def calls_in(payload: dict[str, Any]) -> list[Call]:
    """The stored calls of a line that holds one: several for a patch of several files."""
    name, space = label(payload, "name", 100), label(payload, "namespace", 100)
    if payload.get("type") == "local_shell_call":
        return [("Bash", {"command": _shell_line(mapping(payload, "action").get("command"))})]
    text = string(payload, "arguments") or string(payload, "input")
    given = json_object(text)
    if given is None:
        given = {"input": text}
    if space.startswith(FOREIGN):
        return [(f"{space}__{name}", given)]
    if name in _SHELLS:
        return [("Bash", {"command": _shell_line(given.get(_SHELLS[name]))})]
    if name == "apply_patch":
        return patched_files(string(given, "input")) or [(name, given)]
    steps = given.get("plan")
    if name == "update_plan" and isinstance(steps, list):
        return [("TodoWrite", {"todos": [_entry(step) for step in steps if isinstance(step, dict)]})]
    return [(name, given)]


def _shell_line(command: Any) -> str:
    words = [str(word) for word in command] if isinstance(command, list) else [str(command or "")]
    return words[2] if len(words) == 3 and words[1] in _LINE_OPTIONS else " ".join(words)


def _entry(step: dict[str, Any]) -> dict[str, str]:
    return {"content": string(step, "step"), "status": string(step, "status")}


def stored_result(output: Any) -> str:
    """What a call gave back: what it printed, below its exit code where that is not 0."""
    text = _flat(output)
    wrapped = json_object(text) if text.startswith('{"output"') else None
    if wrapped is not None:  # versions of before 0.60
        metadata = wrapped.get("metadata")
        code = metadata.get("exit_code") if isinstance(metadata, dict) else 0
        return with_exit_code(string(wrapped, "output"), str(code or 0))
    above = _ABOVE_OUTPUT.match(text)
    if above is None:
        return text
    code = _EXIT_CODE.search(above[0])
    return with_exit_code(text[above.end() :], code[1] if code else "0")


def _flat(output: Any) -> str:
    if isinstance(output, dict):
        output = output.get("content")
    if isinstance(output, list):
        return "\n".join(string(part, "text") for part in output if isinstance(part, dict))
    return output if isinstance(output, str) else ""
