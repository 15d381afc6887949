"""csmd's hooks for Copilot CLI, in a file of their own; pure.

Copilot reads every file in `hooks/`, accepts Claude Code's form of it, and passes Claude Code's payload to hooks for
events that are registered by Claude Code's names.
"""

from __future__ import annotations

from csmd.hosts.hook_entries import HookEntries
from csmd.hosts.host_files import hook_timeouts
from csmd.text import json_edits

HOOKS = HookEntries(
    host="copilot", file=lambda folder: folder / "hooks" / "csmd.json", second=1, decode=json_edits.decode,
    events=hook_timeouts("session_start", "prompt", "stop", "subagent_stop", "session_end"),
    is_off=lambda settings, *_: settings.get("disableAllHooks") is True,
)  # fmt: skip
FILES = HOOKS.files(title="Copilot CLI", folder=".copilot", variable="COPILOT_HOME")
