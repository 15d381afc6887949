"""What a hook tells of a tool that failed, in the words in which the transcript's own lines will tell it; pure."""

from __future__ import annotations

from collections import Counter
from typing import Any

from csmd import text, wire
from csmd.capture.fields import label, string
from csmd.capture.hosts.claude_lines import FOREIGN_TOOL
from csmd.capture.redact import redact
from csmd.model import Failure

#: The tool whose input is a shell line.
SHELL = "Bash"
#: Bytes of a failure that are looked at, both ends of it: more than is kept of the same words by default.
MOST_BYTES = 32_768


def failure(value: dict[str, Any], counts: Counter[str]) -> Failure | None:
    """What failed; None where somebody stopped it, and for tools whose failures are not known again."""
    tool, given = label(value, "tool_name", 120), value.get("tool_input")
    if value.get("is_interrupt") is True or not (tool == SHELL or tool.startswith(FOREIGN_TOOL)):
        return None
    command = string(given, "command")[:MOST_BYTES] if tool == SHELL and isinstance(given, dict) else ""
    said = text.both_ends(string(value, "error"), limit=MOST_BYTES)
    return Failure(
        tool=tool,
        command=redact(wire.clean(command), counts),
        said=redact(wire.clean(text.strip_fenced(said)), counts),
    )
