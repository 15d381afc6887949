"""Copilot CLI's hook payloads, and injected text to its answers.

Events registered by Claude Code's names bring its payload. A sub-agent's prompt and its end are reported as a prompt
and a stop with the agent's id instead of the session's: they are read from the transcript.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from csmd import wire
from csmd.hook_events import EventName
from csmd.hosts.copilot.transcript import HOST, classify_prompt
from csmd.hosts.hook_payloads import Hooks
from csmd.hosts.stored_text import clean_text
from csmd.json_fields import string

#: Copilot's words for how a process began. Text injected at the start precedes the whole conversation and is in no
#: transcript: a process that resumes a session has none of what an earlier process was given.
_BEGAN = {"new": "startup", "resume": "startup"}


def _prepare(value: dict[str, Any], name: EventName) -> dict[str, Any] | None:
    if name == "session_start":
        source = string(value, "source")
        value["source"] = _BEGAN.get(source, source)
    return None if name != "subagent_stop" and string(value, "agent_id") else value


def _encode(_name: EventName, text: str, _notice: str) -> bytes:
    """Without the notice: Copilot shows its user nothing from a hook."""
    return wire.dumps({"additionalContext": text}).encode("utf-8", "replace") if text else b""


HOOKS = Hooks(
    host=HOST, events=frozenset({"session_start", "prompt", "stop", "subagent_stop", "session_end"}),
    clean=clean_text, classify_prompt=partial(classify_prompt, by_person=True), prepare=_prepare, encode=_encode,
)  # fmt: skip
