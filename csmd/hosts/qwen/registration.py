"""csmd's hooks in Qwen Code's `settings.json`, which may hold comments; pure."""

from __future__ import annotations

from pathlib import Path

from csmd.hosts import hook_entries
from csmd.hosts.adapter import HooksState
from csmd.hosts.claude.registration import Registration, script_in

HOOK_SCRIPT = "qwen"
#: Event -> milliseconds that Qwen Code grants the hook.
EVENTS = {"SessionStart": 10_000, "UserPromptSubmit": 5_000, "Stop": 5_000, "SubagentStop": 5_000, "SessionEnd": 5_000}


def script(home: Path) -> Path:
    """The script that the entries run."""
    return script_in(home, HOOK_SCRIPT)


def merge_qwen_hooks(text: str, wanted: Registration, where: str) -> str:
    """The settings with our hooks in them, behind others'."""
    return hook_entries.merge(text, hook_entries.handlers(script(wanted.home), EVENTS), script(wanted.home), where)


def remove_qwen_hooks(text: str, home: Path, where: str) -> str:
    """The settings without our hooks."""
    return hook_entries.remove(text, script(home), where)


def hooks_file(folder: Path) -> Path:
    """Where Qwen Code keeps a user's hooks, below its configuration directory."""
    return folder / "settings.json"


def hooks_state(text: str | None, home: Path) -> HooksState:
    """Whether Qwen Code runs the hooks of a csmd home, by the text of its user's settings (None for no file)."""
    settings = hook_entries.parsed(text)
    is_off = (settings or {}).get("disableAllHooks") is True
    return hook_entries.state_of(settings, script(home), EVENTS, is_off=is_off)
