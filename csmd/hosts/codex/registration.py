"""csmd's entries in Codex' `hooks.json`, which has the form of Claude Code's hooks; pure.

Codex runs a hook only after its user has trusted it, and trusts it by a hash of its definition and its place: an entry
that changes in one byte stops without a word. So the command, its timeout and the list of events stay as they are over
csmd's versions; what may change is in the script that it runs (`hooks/codex`).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from csmd.hosts.claude.registration import Form, Registration, merge_hooks, remove_hooks, script_in

#: Event -> seconds that Codex grants the hook; more than 3 at a session's end brings a warning at each.
EVENTS: Mapping[str, int] = {
    "SessionStart": 10,
    "UserPromptSubmit": 5,
    "Stop": 5,
    "SubagentStop": 5,
    "SessionEnd": 3,
}
HOOK_SCRIPT = "codex"
#: What an installation tells the user, who alone can say so.
TRUST = 'Codex runs csmd\'s hooks once you trust them: start `codex` and choose "Trust all and continue"'


def script(home: Path) -> Path:
    """The script that the entries run."""
    return script_in(home, HOOK_SCRIPT)


def hook_command(home: Path, event: str) -> str:
    """The command line registered for an event: the same for every version of csmd."""
    return f"{shlex.join([str(script(home)), event])} || true"


def _group(wanted: Registration, event: str) -> dict[str, Any]:
    handler = {"type": "command", "command": hook_command(wanted.home, event), "timeout": EVENTS[event]}
    return {"hooks": [handler]}


FORM = Form(HOOK_SCRIPT, _group)


def merge_codex_hooks(text: str, wanted: Registration, where: str) -> str:
    """The settings with our hooks in them, behind others'."""
    return merge_hooks(text, replace(wanted, events=tuple(EVENTS)), where, FORM)


def remove_codex_hooks(text: str, home: Path, where: str) -> str:
    """The settings without our hooks."""
    return remove_hooks(text, home, where, form=FORM)


def hooks_file(folder: Path) -> Path:
    """Where Codex keeps a user's hooks, below its configuration directory."""
    return folder / "hooks.json"
