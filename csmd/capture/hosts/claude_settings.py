"""Claude Code's settings as far as csmd goes by them: which files hold them, after how many days transcripts go, and
whether hooks run.

A file that is missing or no JSON object says nothing, as for the client itself.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any, Literal

from csmd import wire
from csmd.errors import BadInput

#: Days after which the client deletes a transcript, where nobody chose another number.
CLEANUP_DAYS = 30
#: Where an organisation puts settings that nobody can change, by platform; any other is like Linux.
MANAGED = {
    "darwin": "/Library/Application Support/ClaudeCode/managed-settings.json",
    "linux": "/etc/claude-code/managed-settings.json",
}


def settings_files(config_dir: str, *, platform: str, project: str = "") -> list[str]:
    """The files that may hold a setting, the one that decides first; without `project` those that hold everywhere."""
    managed = MANAGED.get(platform, MANAGED["linux"])
    own = [f"{project}/.claude/settings.local.json", f"{project}/.claude/settings.json"] if project else []
    return [managed, *own, f"{config_dir}/settings.json"]


def cleanup_days(texts: Sequence[str | None]) -> int | None:
    """The days that the first of these settings that names any gives transcripts; None when none does."""
    for text in texts:
        found = _object(text).get("cleanupPeriodDays")
        if isinstance(found, int | float) and not isinstance(found, bool) and 0 <= found < 2**31:
            return int(found)
    return None


def _object(text: str | None) -> dict[str, Any]:
    return _read(text) or {}


def _read(text: str | None) -> dict[str, Any] | None:
    """The object in a file's text; None where there is none."""
    if text is None:
        return None
    try:
        value = wire.loads(text.removeprefix("\ufeff"))
    except BadInput:
        return None
    return value if isinstance(value, dict) else None


HooksState = Literal["there", "gone", "off", "unknown"]


def hooks_state(own: str | None, managed: str | None, *, script: str) -> HooksState:
    """Whether a user's settings run csmd's hooks (`script`, or its plugin), as far as the user's and the managed file say.

    A file that is not there has none; one that cannot be read as JSON says nothing.
    """
    mine, above = _object(own), _object(managed)
    if above.get("disableAllHooks") is True or above.get("allowManagedHooksOnly") is True:
        return "off"
    plugins = mine.get("enabledPlugins")
    if own is not None and own.strip(" \t\r\n\ufeff") and _read(own) is None:
        return "unknown"
    by_plugin = isinstance(plugins, dict) and any(name.startswith("csmd@") and on for name, on in plugins.items())
    ours = rf"(?<![\w./~-])(?:{re.escape(script)}|{re.escape(shlex.quote(script))})"
    if not by_plugin and not re.search(ours, _strings(mine.get("hooks"))):
        return "gone"
    return "off" if mine.get("disableAllHooks") is True else "there"


def _strings(value: Any) -> str:
    """Every text in a value, a line each."""
    if isinstance(value, dict | list):
        return "\n".join(_strings(one) for one in (value.values() if isinstance(value, dict) else value))
    return value if isinstance(value, str) else ""


#: A person's session in a terminal says so in its lines, and what it may call: one without hooks (`--bare`) does not.
_TERMINAL = re.compile(rb'"entrypoint":\s?"cli"')
_LISTING = re.compile(rb'"type":\s?"(?:agent_listing_delta|skill_listing)"')
_HOOK_RAN = re.compile(rb'"command":\s?"[^"]{0,2000}csmd_hook\.py')


def expects_hooks(beginning: bytes) -> bool:
    """Whether a transcript's first bytes say that hooks should run in its session, and not that csmd's have run."""
    return all(mark.search(beginning) for mark in (_TERMINAL, _LISTING)) and not _HOOK_RAN.search(beginning)
