"""csmd's entries in Codex' `hooks.json`, which has the form of Claude Code's hooks; pure.

Codex runs a hook only after its user has trusted it, which it remembers by a hash of its definition and its position:
an entry that changes in one byte silently stops. So the command, its timeout and the list of events are the same for
all versions of csmd; what may change is in the script that it runs (`hooks/assistant`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from csmd.hosts.hook_entries import HookEntries
from csmd.hosts.host_files import HooksState, Question, hook_timeouts
from csmd.json_fields import parse_object
from csmd.text import json_edits

#: Event -> seconds that Codex grants the hook; with more than 3 it warns at the end of each session.
_TIMEOUTS = hook_timeouts("session_start", "prompt", "stop", "subagent_stop", "session_end")
EVENTS: Mapping[str, int] = {**_TIMEOUTS, "SessionEnd": 3}
HOOKS = HookEntries(
    host="codex", file=lambda folder: folder / "hooks.json", second=1, decode=json_edits.decode, events=EVENTS,
    is_off=lambda *_: False,
)  # fmt: skip


def hooks_state(folder: Path, home: Path, read: Callable[[str], str | None]) -> HooksState:
    """Whether Codex runs the hooks of a csmd home: they are in the file, and its user was asked about each.

    Only Codex knows whether a hook has changed since it was trusted.
    """
    file = HOOKS.file(folder)
    text = read(str(file))
    if text is None or str(HOOKS.script(home)) not in text:
        return "gone"
    config = read(str(folder / "config.toml")) or ""
    trusted = [event for event in EVENTS if f'"{file}:{_to_snake_case(event)}:' in config]
    return "there" if len(trusted) == len(EVENTS) else "untrusted"


def _to_snake_case(event: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", event).lower()


def _make_requests(cwd: Path) -> list[dict[str, Any]]:
    """Asks Codex' app server which hooks run; no model is called."""
    return [
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "csmd", "version": "1"}}},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [str(cwd)]}},
    ]


def _read_trust(line: str, home: Path) -> dict[str, str] | None:
    """Event -> whether Codex trusts csmd's hook for it."""
    answer = parse_object(line) or {}
    if answer.get("id") != 2:
        return None
    hooks = [hook for directory in answer["result"]["data"] for hook in directory["hooks"]]
    own_hooks = [hook for hook in hooks if str(HOOKS.script(home)) in hook["command"]]
    states = {hook["eventName"].lower(): hook["trustStatus"] for hook in own_hooks}
    return {event: str(states[event.lower()]) for event in EVENTS if event.lower() in states}


FILES = HOOKS.files(
    title="Codex", folder=".codex", variable="CODEX_HOME", state=None, markers={},
    question=Question(
        arguments=("app-server",), requests=_make_requests, read=_read_trust, runs=frozenset({"trusted", "managed"}),
    ),
    setup_step='start `codex` and choose "Trust all and continue"',
)  # fmt: skip
