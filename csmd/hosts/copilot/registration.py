"""csmd's hooks of Copilot CLI, in a file of their own below its configuration directory; pure.

Copilot reads every file in `hooks/`, takes Claude Code's form of one, and hands Claude Code's payload to events that
are registered by its names.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from csmd import wire
from csmd.hosts.claude.registration import HOOK_SCRIPT, Form, Registration, merge_hooks, remove_hooks, script_in

#: Event -> seconds that Copilot grants the hook.
EVENTS: Mapping[str, int] = {"SessionStart": 10, "UserPromptSubmit": 5, "Stop": 5, "SubagentStop": 5, "SessionEnd": 5}


def hook_command(interpreter: str, home: Path, event: str) -> str:
    """The command line registered for an event; it ends with 0 even where the script or the interpreter is gone."""
    return f"{shlex.join([interpreter, '-I', '-S', *_hook_words(home, event)])} || true"


def _hook_words(home: Path, event: str) -> list[str]:
    return [str(script_in(home, HOOK_SCRIPT)), str(home), event, "copilot"]


def _group(wanted: Registration, event: str) -> dict[str, Any]:
    command = hook_command(wanted.interpreter, wanted.home, event)
    return {"hooks": [{"type": "command", "command": command, "timeout": EVENTS[event]}]}


FORM = Form(HOOK_SCRIPT, _group)


def merge_copilot_hooks(text: str, wanted: Registration, where: str) -> str:
    """The file with our hooks in it."""
    return merge_hooks(text, replace(wanted, events=tuple(EVENTS)), where, FORM)


def remove_copilot_hooks(text: str, home: Path, where: str) -> str:
    """The file without our hooks."""
    return remove_hooks(text, home, where, form=FORM)


def hooks_file(folder: Path) -> Path:
    """Where csmd's hooks stand, below Copilot's configuration directory."""
    return folder / "hooks" / "csmd.json"


def are_registered(text: str, home: Path) -> bool:
    """Whether a file has the hook of every event."""
    return all(wire.dumps(shlex.join(_hook_words(home, event)))[1:-1] in text for event in EVENTS)
