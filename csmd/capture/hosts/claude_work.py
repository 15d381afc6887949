"""What calls of Claude Code's tools did, in words that no assistant owns: commands, files, to-do lists, plans.

Read from what is stored: a call's input is JSON that may be cut in its middle, so that single fields are looked for
and not the whole. What is not recognised did nothing that anybody counts.
"""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple

from csmd import wire
from csmd.errors import BadInput

DeedKind = Literal["run", "change", "look", "todo", "task", "task_state", "plan", "ask"]
#: How far an entry of a to-do list is; "" where a call does not say.
Progress = Literal["done", "doing", "open", ""]
Result = Literal["passed", "failed", "rejected"]

#: Tools that do something or look at a file, what kind of thing, and the field that says to what.
DEEDS: dict[str, tuple[DeedKind, str]] = {
    "Bash": ("run", "command"),
    "Edit": ("change", "file_path"),
    "Write": ("change", "file_path"),
    "MultiEdit": ("change", "file_path"),
    "NotebookEdit": ("change", "notebook_path"),
    "Read": ("look", "file_path"),
    "TodoWrite": ("todo", "todos"),
    "TaskCreate": ("task", "subject"),
    "TaskUpdate": ("task_state", "taskId"),
    "ExitPlanMode": ("plan", "plan"),
    "AskUserQuestion": ("ask", "questions"),
}
#: How results begin of calls that a person turned down, and of those that failed.
_REJECTED = re.compile(r"The user doesn't want to (?:proceed with this tool use|take this action)")
_FAILED = re.compile(r"Exit code [1-9]|<tool_use_error>|Error: |Permission to use \w+ with")
#: How the host begins a session that is to carry out a plan, and how it names the session the plan was made in.
_PLAN = re.compile(r"\s*Implement the following plan:\s+")
_TRANSCRIPT = re.compile(r"read the full transcript at: \S*?/([0-9a-f-]{36})\.jsonl")
_PLAN_ENDS = "\nIf you need specific details from before exiting plan mode"
#: How a summary begins that stands for an earlier conversation.
_CONTINUED = re.compile(r"\s*This session is being continued from a previous conversation")
_TASK_NUMBER = re.compile(r"#(\d{1,6})\b")
DONE = ("completed", "deleted", "cancelled")


class Deed(NamedTuple):
    """One call: what it did to what; `items` are the entries of a to-do list, each with how far it is."""

    kind: DeedKind
    subject: str
    items: tuple[tuple[str, Progress], ...] = ()


def deed(tool: str, given: str) -> Deed | None:
    """What a call did, by its tool and its stored input; None for one that nobody counts."""
    if tool not in DEEDS:
        return None
    kind, name = DEEDS[tool]
    if kind == "todo":
        return Deed(kind, "", _entries(given))
    if kind == "task_state":
        return Deed(kind, field(given, name), (("", _progress(field(given, "status"))),))
    subject = field(given, name)
    return Deed(kind, subject) if subject else None


def result(said: str) -> Result:
    """How a call ended, by the beginning of what came back."""
    if _REJECTED.match(said):
        return "rejected"
    return "failed" if _FAILED.match(said) else "passed"


def task_number(said: str) -> str:
    """The number that a new task was given, by what came back; "" for none."""
    found = _TASK_NUMBER.search(said)
    return found[1] if found else ""


def plan_given(said: str) -> tuple[str, str]:
    """The plan that a prompt of the host's carries and the session it was made in; "" for what it does not say."""
    opened = _PLAN.match(said)
    if not opened:
        return "", ""
    body, _, rest = said[opened.end() :].partition(_PLAN_ENDS)
    named = _TRANSCRIPT.search(rest)
    return body.strip(), named[1] if named else ""


def is_continued(summary: str) -> bool:
    """Whether a summary stands for a conversation that came before its session."""
    return bool(_CONTINUED.match(summary))


def field(given: str, name: str) -> str:
    """A string field of a stored input, also of one that was cut."""
    found = re.search(rf'"{name}":"((?:[^"\\\n]|\\.)*)', given)
    if not found:
        return ""
    body = found[1]
    try:
        value = wire.loads(f'"{body}"')
    except BadInput:  # cut within an escape
        value = body
    return str(value)


def _progress(status: str) -> Progress:
    """How far an entry is, by the host's word for it."""
    if status in DONE:
        return "done"
    return "doing" if status == "in_progress" else "open" if status else ""


def _entries(given: str) -> tuple[tuple[str, Progress], ...]:
    try:
        value: Any = wire.loads(given)
    except BadInput:
        return ()
    todos = value.get("todos") if isinstance(value, dict) else None
    return tuple(
        (todo["content"], _progress(str(todo.get("status") or "pending")))
        for todo in (todos if isinstance(todos, list) else ())
        if isinstance(todo, dict) and isinstance(todo.get("content"), str)
    )
