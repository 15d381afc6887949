"""csmd's hooks in Gemini CLI's `settings.json`, which may hold comments; pure.

The four events that a turn needs: each further one costs a process at every model call.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from csmd.hosts.hook_entries import HookEntries
from csmd.hosts.host_files import HostFiles, granted
from csmd.hosts.json_fields import mapping

#: Gemini CLI's name of an event -> the one on the hook's command line, where that is another.
NAMES: Mapping[str, str] = {"BeforeAgent": "UserPromptSubmit", "AfterAgent": "Stop"}
OWN_NAMES = {ours: own for own, ours in NAMES.items()}


def _is_off(settings: dict[str, Any], script: Path, _: str | None) -> bool:
    chosen = mapping(settings, "hooksConfig")
    names = chosen.get("disabled")
    is_disabled = any(str(script) in str(name) for name in (names if isinstance(names, list) else ()))
    return chosen.get("enabled") is False or is_disabled


HOOKS = HookEntries(
    host="gemini", file=lambda folder: folder / "settings.json", names=NAMES, is_off=_is_off,
    events={
        OWN_NAMES.get(event, event): seconds
        for event, seconds in granted("session_start", "prompt", "stop", "session_end").items()
    },
)  # fmt: skip
FILES = HostFiles(
    host="gemini", title="Gemini CLI", folder=".gemini", program="gemini", launcher="gemini", events=HOOKS.events,
    hook_command=lambda _, home, event: HOOKS.command(home, event), kinds=(HOOKS.kind,), state=HOOKS.state,
    markers={"BeforeAgent": ("prompt", "prompt"), "AfterAgent": ("stop", "prompt_response")},
)  # fmt: skip
