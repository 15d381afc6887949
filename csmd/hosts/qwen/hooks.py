"""Qwen Code's hook payloads, which have Claude Code's form with differences.

The prompt event also fires, without words, after each result of a tool; an answer to it reaches the model as a user's
message. What the user typed is in a field next to the prompt, which contains files and the output of other hooks.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from csmd.hook_events import EventName
from csmd.hosts import gemini_parts
from csmd.hosts.hook_payloads import Hooks, read_text
from csmd.hosts.qwen.transcript import HOST
from csmd.json_fields import string


def _prepare(value: dict[str, Any], name: EventName) -> dict[str, Any] | None:
    value.pop("agent_transcript_path", None)  # it names the session's
    if name == "prompt":
        value["prompt"] = string(value, "submitted_prompt") or string(value, "prompt")
        return value if gemini_parts.clean_parts_text(read_text(value, name), Counter()) else None
    return value


HOOKS = Hooks(
    host=HOST, events=frozenset({"session_start", "prompt", "stop", "subagent_stop", "session_end"}),
    clean=gemini_parts.clean_parts_text, classify_prompt=gemini_parts.classify_prompt, prepare=_prepare,
)  # fmt: skip
