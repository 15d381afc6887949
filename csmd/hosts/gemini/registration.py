"""csmd's hooks in Gemini CLI's `settings.json`, which may contain comments; pure.

Only the four events that a turn needs: each further event would start a process at every model call.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from csmd.hosts.hook_entries import HookEntries
from csmd.hosts.host_files import hook_timeouts
from csmd.json_fields import mapping

#: Gemini CLI's name of an event -> its name on the hook's command line, if it differs.
NAMES: Mapping[str, str] = {"BeforeAgent": "UserPromptSubmit", "AfterAgent": "Stop"}
HOST_NAMES = {ours: own for own, ours in NAMES.items()}


def _is_off(settings: dict[str, Any], script: Path, _: str | None) -> bool:
    chosen = mapping(settings, "hooksConfig")
    names = chosen.get("disabled")
    is_disabled = any(str(script) in str(name) for name in (names if isinstance(names, list) else ()))
    return chosen.get("enabled") is False or is_disabled


HOOKS = HookEntries(
    host="gemini", file=lambda folder: folder / "settings.json", names=NAMES, is_off=_is_off,
    events={
        HOST_NAMES.get(event, event): seconds
        for event, seconds in hook_timeouts("session_start", "prompt", "stop", "session_end").items()
    },
)  # fmt: skip
FILES = HOOKS.files(
    title="Gemini CLI", folder=".gemini",
    markers={"BeforeAgent": ("prompt", "prompt"), "AfterAgent": ("stop", "prompt_response")},
)  # fmt: skip
