"""Gemini CLI's hook payloads, which have Claude Code's form under other names.

A prompt is reported with the output of SessionStart's hooks and the files that it names; the end of a turn with
everything that was said in it. A sub-agent is not reported.
"""

from __future__ import annotations

from typing import Any

from csmd.hook_events import EVENTS, EventName
from csmd.hosts import gemini_parts, hook_payloads
from csmd.hosts.gemini.registration import HOST_NAMES
from csmd.hosts.gemini.transcript import HOST, read_final_message
from csmd.hosts.hook_payloads import Hooks


def _prepare(value: dict[str, Any], _name: EventName) -> dict[str, Any]:
    value["last_assistant_message"] = read_final_message(value)
    return value


def _encode(name: EventName, text: str, notice: str) -> bytes:
    hook = EVENTS[name].hook_name
    return hook_payloads.encode_context(name, text, notice, hook=HOST_NAMES.get(hook, hook))


HOOKS = Hooks(
    host=HOST, events=frozenset({"session_start", "prompt", "stop", "session_end"}),
    clean=gemini_parts.clean_parts_text, classify_prompt=gemini_parts.classify_prompt, prepare=_prepare, encode=_encode,
)  # fmt: skip
