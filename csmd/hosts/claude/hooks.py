"""Claude Code's hook payloads to events, and injected text to answers."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

from csmd import wire
from csmd.conversation import Failure
from csmd.hook_events import EVENTS, EventName
from csmd.hosts import hook_payloads
from csmd.hosts.claude.transcript import FOREIGN_TOOL, HOST, SHELL_TOOL, classify_prompt, clean_message
from csmd.hosts.hook_payloads import Hooks
from csmd.hosts.labels import read_label
from csmd.json_fields import mapping, string
from csmd.privacy.redaction import redact
from csmd.text import display

#: How many bytes of a failure are read, from both ends: more than is stored of the same output by default.
MAX_BYTES = 32_768


def read_failure(value: dict[str, Any], counts: Counter[str]) -> Failure | None:
    """Returns the failure of a tool call; None if it was interrupted, and for tools whose failures are not
    recognised."""
    tool, arguments = read_label(value, "tool_name", 120), mapping(value, "tool_input")
    if value.get("is_interrupt") is True or not (tool == SHELL_TOOL or tool.startswith(FOREIGN_TOOL)):
        return None
    command = string(arguments, "command")[:MAX_BYTES] if tool == SHELL_TOOL else ""
    error = display.cut_middle(string(value, "error"), limit=MAX_BYTES)
    return Failure(
        tool=tool, command=redact(wire.clean(command), counts),
        output=redact(wire.clean(display.strip_fenced(error)), counts),
    )  # fmt: skip


def _prepare(value: dict[str, Any], name: EventName) -> dict[str, Any] | None:
    if name == "subagent_stop" and value.get("agent_type") == "":
        return None  # a compaction reports its own summariser this way
    return value


def _encode(name: EventName, text: str, notice: str) -> bytes:
    # Plain text, which is appended to the summariser's instructions.
    if name == "pre_compact":
        return text.encode("utf-8", "replace") + b"\n"
    return hook_payloads.encode_context(name, text, notice)


HOOKS = Hooks(
    host=HOST, events=frozenset(EVENTS), clean=clean_message, clean_prompt=partial(clean_message, as_typed=True),
    classify_prompt=classify_prompt,
    prepare=_prepare, read_failure=read_failure, make_session_id=str, encode=_encode,
)  # fmt: skip
