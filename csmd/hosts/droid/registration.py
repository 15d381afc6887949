"""csmd's hooks in Droid's `settings.json`, which may hold comments; pure.

Droid also reads `hooks.json`, which it makes where its user adds a hook in a session. What that file has of an event takes
the place of all that the settings have of it: an entry of csmd's there could silence a user's own here, so there is none.
"""

from __future__ import annotations

from pathlib import Path

from csmd.hosts import hook_entries
from csmd.hosts.adapter import HooksState
from csmd.hosts.claude.registration import Registration, script_in
from csmd.hosts.json_fields import mapping

HOOK_SCRIPT = "droid"
#: Event -> seconds that Droid grants the hook.
EVENTS = {"SessionStart": 10, "UserPromptSubmit": 5, "Stop": 5, "SessionEnd": 5}


def script(home: Path) -> Path:
    """The script that the entries run."""
    return script_in(home, HOOK_SCRIPT)


def merge_droid_hooks(text: str, wanted: Registration, where: str) -> str:
    """The settings with our hooks in them, behind others'."""
    return hook_entries.merge(text, hook_entries.handlers(script(wanted.home), EVENTS), script(wanted.home), where)


def remove_droid_hooks(text: str, home: Path, where: str) -> str:
    """The settings without our hooks."""
    return hook_entries.remove(text, script(home), where)


def hooks_file(folder: Path) -> Path:
    """Where csmd's hooks stand, below Droid's configuration directory."""
    return folder / "settings.json"


def hooks_state(text: str | None, home: Path) -> HooksState:
    """Whether the settings have the hooks of a csmd home, by their text (None for no file)."""
    settings = hook_entries.parsed(text)
    is_off = mapping(settings or {}, "hooks").get("hooksDisabled") is True
    return hook_entries.state_of(settings, script(home), EVENTS, is_off=is_off)


def shadowed(text: str | None) -> list[str]:
    """The events of csmd's hooks that the text of `hooks.json` (None for no file) has hooks for."""
    return [event for event in EVENTS if (hook_entries.parsed(text) or {}).get(event)]
