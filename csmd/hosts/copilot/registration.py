"""csmd's hooks of Copilot CLI, in a file of their own; pure.

Copilot reads every file in `hooks/`, takes Claude Code's form of one, and hands Claude Code's payload to events that
are registered by its names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from csmd.hosts import hook_entries
from csmd.hosts.host_files import HostFiles, Kind, Registration, script_in

HOOK_SCRIPT = "copilot"
#: Event -> seconds that Copilot CLI grants the hook.
EVENTS: Mapping[str, int] = {"SessionStart": 10, "UserPromptSubmit": 5, "Stop": 5, "SubagentStop": 5, "SessionEnd": 5}


def script(home: Path) -> Path:
    """The script that the entries run."""
    return script_in(home, HOOK_SCRIPT)


def merge_copilot_hooks(text: str, wanted: Registration, where: str) -> str:
    """The file with our hooks in it."""
    handlers = {
        event: hook_entries.handler(hook_entries.command(script(wanted.home), event), seconds, second=1)
        for event, seconds in EVENTS.items()
    }
    return hook_entries.merge(text, handlers, script(wanted.home), where)


def remove_copilot_hooks(text: str, home: Path, where: str) -> str:
    """The file without our hooks."""
    return hook_entries.remove(text, script(home), where)


def hooks_file(folder: Path) -> Path:
    """Where csmd's hooks stand, below Copilot's configuration directory."""
    return folder / "hooks" / "csmd.json"


def hooks_state(folder: Path, home: Path, read: Callable[[str], str | None]) -> hook_entries.State:
    """Whether Copilot CLI runs the hooks of a csmd home, by their file, which `read` reads."""
    settings = hook_entries.parsed(read(str(hooks_file(folder))))
    is_off = (settings or {}).get("disableAllHooks") is True
    return hook_entries.state_of(settings, script(home), EVENTS, is_off=is_off)


FILES = HostFiles(
    host="copilot", title="Copilot CLI", folder=".copilot", variable="COPILOT_HOME", program="copilot", events=EVENTS,
    launcher=HOOK_SCRIPT, hook_command=lambda _, home, event: hook_entries.command(script(home), event),
    kinds=(
        Kind(
            name="copilot hooks", what="hooks", file=hooks_file, merge=merge_copilot_hooks, remove=remove_copilot_hooks,
        ),
    ),
    state=hooks_state, markers={"UserPromptSubmit": ("prompt", "prompt"), "Stop": ("stop", "last_assistant_message")},
)  # fmt: skip
