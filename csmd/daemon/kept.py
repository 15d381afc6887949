"""How long the assistant keeps its transcripts, and how many sessions csmd keeps that have none any more."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from csmd.capture.hosts import claude_environment
from csmd.config import Config
from csmd.store import activity, files, sessions
from csmd.store.sqlite import Rows

SETTINGS_BYTES = 1_000_000
#: Projects whose own settings are looked at, the latest first.
MOST_PROJECTS = 100


def transcripts(rows: Rows, config: Config) -> dict[str, Any]:
    """What `csmd status` says of transcripts; looks at the disk. `projects` are those with a number of their own."""
    days = {str(folder): _days(str(folder)) for folder in config.assistant_dirs}
    roots = [root for _, root, *_ in activity.project_counts(rows)[:MOST_PROJECTS] if root and Path(root).is_dir()]
    own = {root: min(_days(folder, root) for folder in days) for root in roots} if days else {}
    usual = min(days.values(), default=claude_environment.CLEANUP_DAYS)
    named = sessions.transcript_paths(rows)
    missing = [seq for seq, path in named if not os.path.exists(path)]  # noqa: PTH110 - thousands, at each status
    return {
        "days": usual,
        "by_directory": days,
        "by_project": {root: number for root, number in own.items() if number != usual},
        "sessions": len(named),
        # Not the one that a hook has just opened: the assistant writes its transcript a moment later.
        "gone": sessions.read_among(rows, missing),
    }


def _days(folder: str, project: str = "") -> int:
    places = claude_environment.settings_files(folder, platform=sys.platform, project=project)
    found = claude_environment.cleanup_days([files.read_small(place, SETTINGS_BYTES) for place in places])
    return claude_environment.CLEANUP_DAYS if found is None else found
