"""csmd's hooks in Qwen Code's `settings.json`, which may hold comments; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from csmd.hosts import hook_entries
from csmd.hosts.host_files import HostFiles, Kind, Registration, script_in
from csmd.text import entry_edits

HOOK_SCRIPT = "qwen"
#: Event -> seconds that Qwen Code grants the hook.
EVENTS: Mapping[str, int] = {"SessionStart": 10, "UserPromptSubmit": 5, "Stop": 5, "SubagentStop": 5, "SessionEnd": 5}


def script(home: Path) -> Path:
    """The script that the entries run."""
    return script_in(home, HOOK_SCRIPT)


def hook_command(home: Path, event: str) -> str:
    """The command line registered for an event: the same for every version of csmd."""
    return hook_entries.command(script(home), event)


def merge_qwen_hooks(text: str, wanted: Registration, where: str) -> str:
    """The settings with our hooks in them, behind others'."""
    handlers = {
        event: hook_entries.handler(hook_command(wanted.home, event), seconds) for event, seconds in EVENTS.items()
    }
    return hook_entries.merge(text, handlers, script(wanted.home), where)


def remove_qwen_hooks(text: str, home: Path, where: str) -> str:
    """The settings without our hooks."""
    return hook_entries.remove(text, script(home), where)


def hooks_file(folder: Path) -> Path:
    """Where Qwen Code keeps a user's hooks, below its configuration directory."""
    return folder / "settings.json"


def hooks_state(folder: Path, home: Path, read: Callable[[str], str | None]) -> hook_entries.State:
    """Whether Qwen Code runs the hooks of a csmd home, by its user's settings, which `read` reads."""
    settings = hook_entries.parsed(read(str(hooks_file(folder))))
    is_off = (settings or {}).get("disableAllHooks") is True
    return hook_entries.state_of(settings, script(home), EVENTS, is_off=is_off)


FILES = HostFiles(
    host="qwen", title="Qwen Code", folder=".qwen", variable="QWEN_HOME", program="qwen", events=EVENTS, launcher=HOOK_SCRIPT,
    hook_command=lambda _, home, event: hook_command(home, event),
    kinds=(
        Kind(
            name="qwen hooks", what="hooks", file=hooks_file, merge=merge_qwen_hooks, remove=remove_qwen_hooks,
            decode=partial(entry_edits.decode, entry_edits.JSON),
        ),
    ),
    state=hooks_state, markers={"UserPromptSubmit": ("prompt", "prompt"), "Stop": ("stop", "last_assistant_message")},
)  # fmt: skip
