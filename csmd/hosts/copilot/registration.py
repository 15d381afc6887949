"""csmd's hooks of Copilot CLI, in a file of their own; pure.

Copilot reads every file in `hooks/`, takes Claude Code's form of one, and hands Claude Code's payload to events that
are registered by its names.
"""

from __future__ import annotations

from pathlib import Path

from csmd.hosts import hook_entries
from csmd.hosts.adapter import HooksState
from csmd.hosts.claude.registration import Registration, script_in

HOOK_SCRIPT = "copilot"
#: Event -> seconds that Copilot CLI grants the hook.
EVENTS = {"SessionStart": 10, "UserPromptSubmit": 5, "Stop": 5, "SubagentStop": 5, "SessionEnd": 5}


def script(home: Path) -> Path:
    """The script that the entries run."""
    return script_in(home, HOOK_SCRIPT)


def merge_copilot_hooks(text: str, wanted: Registration, where: str) -> str:
    """The file with our hooks in it."""
    return hook_entries.merge(text, hook_entries.handlers(script(wanted.home), EVENTS), script(wanted.home), where)


def remove_copilot_hooks(text: str, home: Path, where: str) -> str:
    """The file without our hooks."""
    return hook_entries.remove(text, script(home), where)


def hooks_file(folder: Path) -> Path:
    """Where csmd's hooks stand, below Copilot's configuration directory."""
    return folder / "hooks" / "csmd.json"


def hooks_state(text: str | None, home: Path) -> HooksState:
    """Whether Copilot CLI runs the hooks of a csmd home, by the text of the file (None for no file)."""
    settings = hook_entries.parsed(text)
    is_off = (settings or {}).get("disableAllHooks") is True
    return hook_entries.state_of(settings, script(home), EVENTS, is_off=is_off)
