"""csmd's hooks of Copilot CLI, in a file of their own; pure.

Copilot reads every file in `hooks/`, takes Claude Code's form of one, and hands Claude Code's payload to events that
are registered by its names.
"""

from __future__ import annotations

from csmd.hosts.hook_entries import HookEntries
from csmd.hosts.host_files import MARKERS, HostFiles, granted
from csmd.text import json_edits

HOOKS = HookEntries(
    host="copilot", file=lambda folder: folder / "hooks" / "csmd.json", second=1, decode=json_edits.decode,
    events=granted("session_start", "prompt", "stop", "subagent_stop", "session_end"),
    is_off=lambda settings, *_: settings.get("disableAllHooks") is True,
)  # fmt: skip
FILES = HostFiles(
    host="copilot", title="Copilot CLI", folder=".copilot", variable="COPILOT_HOME", program="copilot", launcher="copilot",
    events=HOOKS.events, hook_command=lambda _, home, event: HOOKS.command(home, event), kinds=(HOOKS.kind,),
    state=HOOKS.state, markers=MARKERS,
)  # fmt: skip
