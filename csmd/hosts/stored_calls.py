"""Puts tool calls and results of several assistants into the form that is stored (`csmd/hosts/tool_calls.py`)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from csmd import wire
from csmd.conversation import Turn
from csmd.exclusions import Withheld
from csmd.hosts.tool_calls import find_written_transcripts
from csmd.privacy.redaction import redact, redact_tree
from csmd.text import display

#: A stored call: the tool's name and its input.
Call = tuple[str, dict[str, Any]]

#: The beginning of the stored result of a call that the user rejected.
REJECTED_RESULT = "The user doesn't want to proceed with this tool use"
#: The files of a patch, each with what is done to it.
_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)


def make_call_turns(
    bare: Turn, ident: str, calls: Iterable[Call], counts: Counter[str], withheld: Withheld, limit: int
) -> list[Turn]:  # fmt: skip
    """Returns the turns of a tool call with this id; at most `limit` bytes of its input are kept.

    `bare` is a turn of the call's line without text. The first turn has its uuid, the others append their number to it.
    """
    turns = []
    for number, (tool, arguments) in enumerate(calls):
        uuid = f"{bare.uuid}/{number}" if number else bare.uuid
        body = wire.clean(wire.dumps(redact_tree(withheld.filter_input(ident, arguments), counts)))
        text = display.cut_middle(body, limit=limit, of=f"turn {uuid}")
        # From the original input: what is cut, redacted or withheld may be the path that is written.
        writes = find_written_transcripts(tool, arguments)
        turns.append(
            replace(bare, uuid=uuid, kind="tool_call", text=text, tool_name=tool, tool_id=ident, writes=writes)
        )
    return turns


def make_result_turn(bare: Turn, ident: str, text: str, counts: Counter[str], withheld: Withheld, limit: int) -> Turn:
    """Returns the turn of a tool call's result: `bare` with at most `limit` bytes of the text."""
    body = redact(wire.clean(display.strip_fenced(withheld.filter_output(ident, text, None))), counts)
    return replace(
        bare, kind="tool_result", text=display.cut_middle(body, limit=limit, of=f"turn {bare.uuid}"), tool_id=ident
    )


def parse_patch(patch: str) -> list[Call]:
    """The stored calls of a patch (`*** Update File: ...`), one for each file; [] for a text that is not a patch."""
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
