"""Parts of the stored form of tool calls and results that several assistants share (`csmd/hosts/tool_calls.py`)."""

from __future__ import annotations

import re
from typing import Any

#: A stored call: the tool's name and its input.
Call = tuple[str, dict[str, Any]]

#: The beginning of the stored result of a call that the user rejected.
REJECTED_RESULT = "The user doesn't want to proceed with this tool use"
#: The files of a patch, each with what is done to it.
_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)


def parse_patch(patch: str) -> list[Call]:
    """Returns the stored calls of a patch (`*** Update File: ...`), one for each file; [] if a text is not a patch."""
    files = list(_PATCHED.finditer(patch))
    ends = [*(file.start() for file in files[1:]), len(patch)]
    calls: list[Call] = []
    for file, end in zip(files, ends, strict=True):
        arguments = {"file_path": file[2].strip(), "patch": patch[file.end() : end].strip()}
        calls.append(("Write" if file[1] == "Add" else "Edit", arguments))
    return calls


def add_exit_code(output: str, code: str) -> str:
    """Returns the output of a command below its exit code, unless that is 0."""
    return output if code == "0" else f"Exit code {code}\n{output}"
