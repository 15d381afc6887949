"""How tool calls and results of several assistants are put into the form that is stored (`csmd/hosts/tool_calls.py`)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from csmd import wire
from csmd.exclusions import Withheld
from csmd.hosts.tool_calls import transcripts_written
from csmd.privacy.redaction import redact, redact_tree
from csmd.text import display
from csmd.values import Turn

#: A call as it is stored: the tool's name, and its input.
Call = tuple[str, dict[str, Any]]

#: How a stored result begins of a call that the user turned down.
TURNED_DOWN = "The user doesn't want to take this action"
#: The files of a patch, each with what is done to it.
_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)


def call_turns(
    bare: Turn, ident: str, calls: Iterable[Call], counts: Counter[str], withheld: Withheld, limit: int
) -> list[Turn]:  # fmt: skip
    """The turns of a tool call of this id; `limit` is how many bytes of an input are kept.

    `bare` is a turn of the call's line without text, and the first one's uuid; the others have their number behind it.
    """
    turns = []
    for place, (tool, given) in enumerate(calls):
        uuid = f"{bare.uuid}/{place}" if place else bare.uuid
        body = wire.clean(wire.dumps(redact_tree(withheld.keep_input(ident, given), counts)))
        shown = display.cut_middle(body, limit=limit, of=f"turn {uuid}")
        # Of the call as it was made: what is trimmed, redacted or withheld may be where it writes.
        writes = transcripts_written(tool, given)
        turns.append(
            replace(bare, uuid=uuid, kind="tool_call", text=shown, tool_name=tool, tool_id=ident, writes=writes)
        )
    return turns


def result_turn(bare: Turn, ident: str, text: str, counts: Counter[str], withheld: Withheld, limit: int) -> Turn:
    """The turn of what a tool call of this id gave back: `bare` with the text, of which `limit` bytes are kept."""
    body = redact(wire.clean(display.strip_fenced(withheld.shown(ident, text, None))), counts)
    return replace(
        bare, kind="tool_result", text=display.cut_middle(body, limit=limit, of=f"turn {bare.uuid}"), tool_id=ident
    )


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
