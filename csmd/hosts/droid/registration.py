"""csmd's hooks in Droid's `settings.json`, which may contain comments; pure.

Droid also reads `hooks.json`, which it creates when its user adds a hook in a session. That file's hooks for an event
replace all of the settings' hooks for it: an entry of csmd's there could silence a user's own hook here, so csmd writes
none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from csmd.hosts.hook_entries import HookEntries, parse_settings
from csmd.hosts.host_files import hook_timeouts
from csmd.json_fields import mapping

EVENTS = hook_timeouts("session_start", "prompt", "stop", "session_end")


def _is_off(settings: dict[str, Any], _script: Path, hooks_json: str | None) -> bool:
    others = parse_settings(hooks_json) or {}
    return mapping(settings, "hooks").get("hooksDisabled") is True or any(others.get(event) for event in EVENTS)


HOOKS = HookEntries(
    host="droid", file=lambda folder: folder / "settings.json", second=1, events=EVENTS, is_off=_is_off,
    second_file="hooks.json",
)  # fmt: skip
FILES = HOOKS.files(
    title="Droid", folder=".factory",
    switched_off="switch hooks on there, and move what hooks.json has of csmd's events into settings.json",
)  # fmt: skip
