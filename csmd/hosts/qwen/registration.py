"""csmd's hooks in Qwen Code's `settings.json`, which may contain comments; pure."""

from __future__ import annotations

from csmd.hosts.hook_entries import HookEntries
from csmd.hosts.host_files import hook_timeouts

HOOKS = HookEntries(
    host="qwen", file=lambda folder: folder / "settings.json",
    events=hook_timeouts("session_start", "prompt", "stop", "subagent_stop", "session_end"),
    is_off=lambda settings, *_: settings.get("disableAllHooks") is True,
)  # fmt: skip
FILES = HOOKS.files(title="Qwen Code", folder=".qwen", variable="QWEN_HOME")
