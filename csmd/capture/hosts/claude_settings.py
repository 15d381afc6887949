"""Claude Code's settings as far as csmd goes by them: which files hold them, and after how many days transcripts go.

A file that is missing or no JSON object says nothing, as for the client itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
    if text is None:
        return {}
    try:
        value = wire.loads(text.removeprefix("\ufeff"))
    except BadInput:
        return {}
    return value if isinstance(value, dict) else {}
