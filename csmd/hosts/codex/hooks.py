"""Codex' hook payloads, which have Claude Code's form with differences.

A sub-agent's prompt is reported as a prompt of its parent's session, but the model wrote it: the rollout holds it.
Whether a person or `codex exec` asked is in the rollout, not in the payload.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from csmd.hook_events import EventName
from csmd.hosts.codex.transcript import HOST, classify_prompt, clean_words
from csmd.hosts.hook_payloads import Hooks
from csmd.json_fields import string


def _prepare(value: dict[str, Any], name: EventName) -> dict[str, Any] | None:
    return None if name == "prompt" and string(value, "agent_id") else value


HOOKS = Hooks(
    host=HOST, events=frozenset({"session_start", "prompt", "stop", "subagent_stop", "session_end"}),
    clean=clean_words, classify_prompt=partial(classify_prompt, by_person=True), prepare=_prepare,
)  # fmt: skip
