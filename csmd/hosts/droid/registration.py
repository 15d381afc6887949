"""csmd's hooks in Droid's `settings.json`, which may hold comments; pure.

Droid also reads `hooks.json`, which it makes where its user adds a hook in a session. What that file has of an event takes
the place of all that the settings have of it: an entry of csmd's there could silence a user's own here, so there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from csmd.hosts import hook_entries
from csmd.hosts.host_files import HostFiles, Kind, Registration, script_in
from csmd.hosts.json_fields import mapping
from csmd.text import entry_edits

HOOK_SCRIPT = "droid"
#: Event -> seconds that Droid grants the hook.
EVENTS: Mapping[str, int] = {"SessionStart": 10, "UserPromptSubmit": 5, "Stop": 5, "SessionEnd": 5}


def script(home: Path) -> Path:
    """The script that the entries run."""
    return script_in(home, HOOK_SCRIPT)


def merge_droid_hooks(text: str, wanted: Registration, where: str) -> str:
    """The settings with our hooks in them, behind others'."""
    handlers = {
        event: hook_entries.handler(hook_entries.command(script(wanted.home), event), seconds, second=1)
        for event, seconds in EVENTS.items()
    }
    return hook_entries.merge(text, handlers, script(wanted.home), where)


def remove_droid_hooks(text: str, home: Path, where: str) -> str:
    """The settings without our hooks."""
    return hook_entries.remove(text, script(home), where)


def hooks_file(folder: Path) -> Path:
    """Where csmd's hooks stand, below Droid's configuration directory."""
    return folder / "settings.json"


def hooks_state(folder: Path, home: Path, read: Callable[[str], str | None]) -> hook_entries.State:
    """Whether Droid runs the hooks of a csmd home, by its user's settings, which `read` reads."""
    settings = hook_entries.parsed(read(str(hooks_file(folder))))
    others = hook_entries.parsed(read(str(folder / "hooks.json"))) or {}
    is_off = mapping(settings or {}, "hooks").get("hooksDisabled") is True or any(others.get(event) for event in EVENTS)
    return hook_entries.state_of(settings, script(home), EVENTS, is_off=is_off)


FILES = HostFiles(
    host="droid", title="Droid", folder=".factory", program="droid", events=EVENTS, launcher=HOOK_SCRIPT,
    hook_command=lambda _, home, event: hook_entries.command(script(home), event),
    kinds=(
        Kind(
            name="droid hooks", what="hooks", file=hooks_file, merge=merge_droid_hooks, remove=remove_droid_hooks,
            decode=partial(entry_edits.decode, entry_edits.JSON),
        ),
    ),
    switched_off="switch hooks on there, and move what hooks.json has of csmd's events into settings.json",
    state=hooks_state, markers={"UserPromptSubmit": ("prompt", "prompt"), "Stop": ("stop", "last_assistant_message")},
)  # fmt: skip
