"""csmd's hooks in Gemini CLI's `settings.json`, which may hold comments; pure.

The four events that a turn needs: each further one costs a process at every model call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from csmd.hosts import hook_entries
from csmd.hosts.host_files import HostFiles, Kind, Registration, script_in
from csmd.hosts.json_fields import mapping
from csmd.text import entry_edits

HOOK_SCRIPT = "gemini"
#: Event -> seconds that Gemini CLI grants the hook.
EVENTS: Mapping[str, int] = {"SessionStart": 10, "BeforeAgent": 5, "AfterAgent": 5, "SessionEnd": 5}
#: Event -> its name on the hook's command line, where that is another: Claude Code's, by which a hook knows what it waits for.
NAMES: Mapping[str, str] = {"BeforeAgent": "UserPromptSubmit", "AfterAgent": "Stop"}


def script(home: Path) -> Path:
    """The script that the entries run."""
    return script_in(home, HOOK_SCRIPT)


def hook_command(home: Path, event: str) -> str:
    """The command line registered for an event: the same for every version of csmd."""
    return hook_entries.command(script(home), NAMES.get(event, event))


def merge_gemini_hooks(text: str, wanted: Registration, where: str) -> str:
    """The settings with our hooks in them, behind others'."""
    handlers = {
        event: hook_entries.handler(hook_command(wanted.home, event), seconds) for event, seconds in EVENTS.items()
    }
    return hook_entries.merge(text, handlers, script(wanted.home), where)


def remove_gemini_hooks(text: str, home: Path, where: str) -> str:
    """The settings without our hooks."""
    return hook_entries.remove(text, script(home), where)


def hooks_file(folder: Path) -> Path:
    """Where Gemini CLI keeps a user's hooks, below its configuration directory."""
    return folder / "settings.json"


def hooks_state(folder: Path, home: Path, read: Callable[[str], str | None]) -> hook_entries.State:
    """Whether Gemini CLI runs the hooks of a csmd home, by its user's settings, which `read` reads."""
    settings = hook_entries.parsed(read(str(hooks_file(folder))))
    chosen = mapping(settings or {}, "hooksConfig")
    names = chosen.get("disabled")
    disabled = any(str(script(home)) in str(name) for name in (names if isinstance(names, list) else ()))
    return hook_entries.state_of(settings, script(home), EVENTS, is_off=chosen.get("enabled") is False or disabled)


FILES = HostFiles(
    host="gemini", title="Gemini CLI", folder=".gemini", program="gemini", events=EVENTS, launcher=HOOK_SCRIPT,
    hook_command=lambda _, home, event: hook_command(home, event),
    kinds=(
        Kind(
            name="gemini hooks", what="hooks", file=hooks_file, merge=merge_gemini_hooks, remove=remove_gemini_hooks,
            decode=partial(entry_edits.decode, entry_edits.JSON),
        ),
    ),
    state=hooks_state, markers={"BeforeAgent": ("prompt", "prompt"), "AfterAgent": ("stop", "prompt_response")},
)  # fmt: skip
