"""How tool calls and results of several assistants are put into the form that is stored (`csmd/hosts/tool_calls.py`)."""

from __future__ import annotations

import re
from typing import Any

#: A call as it is stored: the tool's name, and its input.
Call = tuple[str, dict[str, Any]]

#: How a stored result begins of a call that the user turned down.
TURNED_DOWN = "The user doesn't want to take this action"
#: The files of a patch, each with what is done to it.
_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)


def patched_files(patch: str) -> list[Call]:
    """The stored calls of a patch (`*** Update File: ...`), one for each file; [] for a text that is none."""
    found = list(_PATCHED.finditer(patch))
    ends = [*(one.start() for one in found[1:]), len(patch)]
    return [
        ("Write" if one[1] == "Add" else "Edit", {"file_path": one[2].strip(), "patch": patch[one.end() : end].strip()})
        for one, end in zip(found, ends, strict=True)
    ]


def with_exit_code(printed: str, code: str) -> str:
    """What a command printed, below its exit code where that is not 0."""
    return printed if code == "0" else f"Exit code {code}\n{printed}"
