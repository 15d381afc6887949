"""csmd's entries in Codex' `hooks.json`, which has the form of Claude Code's hooks; pure.

Codex runs a hook only after its user has trusted it, which it remembers by a hash of its definition and its position: an entry
that changes in one byte silently stops. So the command, its timeout and the list of events are the same for all versions of
csmd; what may change is in the script that it runs (`hooks/assistant`).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from csmd.hosts.claude.registration import Form, merge_hooks, remove_hooks
from csmd.hosts.host_files import HooksState, HostFiles, Kind, Question, Registration, granted, script_in
from csmd.hosts.json_fields import json_object

#: Event -> seconds that Codex grants the hook; with more than 3 it warns at the end of each session.
EVENTS: Mapping[str, int] = {
    **granted("session_start", "prompt", "stop", "subagent_stop", "session_end"),
    "SessionEnd": 3,
}
HOOK_SCRIPT = "codex"


def script(home: Path) -> Path:
    """The script that the entries run."""
    return script_in(home, HOOK_SCRIPT)


def hook_command(home: Path, event: str) -> str:
    """The command line registered for an event, the same for every version of csmd."""
    return f"{shlex.join([str(script(home)), event])} || true"


def _group(wanted: Registration, event: str) -> dict[str, Any]:
    handler = {"type": "command", "command": hook_command(wanted.home, event), "timeout": EVENTS[event]}
    return {"hooks": [handler]}


FORM = Form(HOOK_SCRIPT, _group)


def merge_codex_hooks(text: str, wanted: Registration, where: str) -> str:
    """The settings with csmd's hooks, after others."""
    return merge_hooks(text, replace(wanted, events=tuple(EVENTS)), where, FORM)


def remove_codex_hooks(text: str, home: Path, where: str) -> str:
    """The settings without csmd's hooks."""
    return remove_hooks(text, home, where, form=FORM)


def hooks_file(folder: Path) -> Path:
    """The file of a user's hooks in Codex' configuration directory."""
    return folder / "hooks.json"


def hooks_state(folder: Path, home: Path, read: Callable[[str], str | None]) -> HooksState:
    """Whether Codex runs the hooks of a csmd home: they are in the file, and its user was asked about each.

    Only Codex knows whether a hook has changed since it was trusted.
    """
    file = hooks_file(folder)
    text = read(str(file))
    if text is None or str(script(home)) not in text:
        return "gone"
    config = read(str(folder / "config.toml")) or ""
    trusted = [event for event in EVENTS if f'"{file}:{_snake(event)}:' in config]
    return "there" if len(trusted) == len(EVENTS) else "untrusted"


def _snake(event: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", event).lower()


def _requests(cwd: Path) -> list[dict[str, Any]]:
    """Asks Codex' app server which hooks run; no model is called."""
    return [
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "csmd", "version": "1"}}},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [str(cwd)]}},
    ]


def _trust(line: str, home: Path) -> dict[str, str] | None:
    """Event -> whether Codex trusts csmd's hook for it."""
    answer = json_object(line) or {}
    if answer.get("id") != 2:
        return None
    hooks = [hook for directory in answer["result"]["data"] for hook in directory["hooks"]]
    ours = {hook["eventName"].lower(): hook["trustStatus"] for hook in hooks if str(script(home)) in hook["command"]}
    return {event: str(ours[event.lower()]) for event in EVENTS if event.lower() in ours}


FILES = HostFiles(
    host="codex", title="Codex", folder=".codex", variable="CODEX_HOME", program="codex", events=EVENTS,
    hook_command=lambda _, home, event: hook_command(home, event), launcher=HOOK_SCRIPT,
    kinds=(
        Kind(name="codex hooks", what="hooks", file=hooks_file, merge=merge_codex_hooks, remove=remove_codex_hooks),
    ),
    question=Question(
        arguments=("app-server",), requests=_requests, read=_trust, runs=frozenset({"trusted", "managed"}),
    ),
    to_do='start `codex` and choose "Trust all and continue"',
)  # fmt: skip
