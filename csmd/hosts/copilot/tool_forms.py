"""Copilot CLI's tool calls and results in the form that is stored for every assistant (`csmd/hosts/tool_calls.py`)."""

from __future__ import annotations

import re
from typing import Any

from csmd.hosts.json_fields import mapping, string
from csmd.hosts.labels import read_label
from csmd.hosts.stored_calls import REJECTED_RESULT, Call, add_exit_code, parse_patch

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


def read_calls(data: dict[str, Any]) -> list[Call]:
    """The stored calls of an event that holds one: several for a patch of several files."""
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
    """A call's result: its output, below its exit code unless that is 0."""
    error, code = mapping(data, "error"), mapping(data, "shellExecution").get("exitCode")
    if error:
        message = string(error, "message")
        return f"{REJECTED_RESULT}. {message}" if error.get("code") == "denied" else f"Error: {message}"
    output = _GUIDANCE.sub("", string(mapping(data, "result"), "content"))
    return add_exit_code(_AFTER_OUTPUT.sub("", output), str(code)) if type(code) is int else output
