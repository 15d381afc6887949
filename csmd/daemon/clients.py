"""Which of the assistant's versions and directories are in use: told in status, and acted on where it must be.

A client older than the registered events allow ignores its whole settings file: `csmd hooks settle` is started as a
child, which takes those events out, once a day for a version. A directory that a hook names and that is not read is
noted, never read: it is the user who says that it is (`csmd install --config-dir`).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from csmd import text
from csmd.capture.redact import storable_path
from csmd.config import Config, child_environment
from csmd.daemon.context import Context
from csmd.daemon.now import iso, now_iso
from csmd.errors import ConfigError, CsmdError
from csmd.store import events, files, tombstones
from csmd.store.sqlite import Rows

IN_USE_DAYS = 30
SETTLE_AGAIN_S = 86_400.0
CHILD_PATIENCE_S = 5.0


class Clients:
    """Owns the child that settles the hooks, and what hooks named since it was last looked at."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._settled: dict[str, float] = {}
        self._child: subprocess.Popen[bytes] | None = None

    def look(self) -> bool:
        """Notes the directories that hooks named; whether there was one."""
        found = False
        for transcript in self._context.take_elsewhere():
            found |= self._note(transcript)
        return found

    def _note(self, transcript: str) -> bool:
        folder, inside = directory_of(transcript)
        if folder is None or not is_config_dir(folder):
            return False
        real = folder.resolve()
        for known in self._context.config.assistant_dirs:
            if known.resolve() == real:  # by another name, a link's
                self._context.hint(str(known / "projects" / inside))
                return True
        store, path = self._context.store, storable_path(str(folder))

        def note(rows: Rows) -> None:
            events.note_elsewhere(rows, tombstones.listed_path(rows, path, key=store.hash_key), at=now_iso())

        store.write(note)
        return True

    def settle(self, now: float) -> bool:
        """Has the newer events taken out where a client in use does not know them; at the monotonic time `now`."""
        if self._child is not None:
            code = self._child.poll()
            if code is None:
                return False
            self._child = None
            if code:
                raise CsmdError(f"`csmd hooks settle` ended with exit code {code}; run it to see why")
        context = self._context
        old = too_old(context.config, context.store.read(versions))
        due = [version for version in old if now - self._settled.get(version, -SETTLE_AGAIN_S) >= SETTLE_AGAIN_S]
        if not due:
            return False
        self._settled.update(dict.fromkeys(due, now))
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-m", "csmd", "hooks", "settle"],
            cwd=str(context.config.paths.home),
            env=child_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return True

    def close(self) -> None:
        """Waits for the child: without a daemon to ask it ends at once, and what it writes it writes whole."""
        if self._child is not None:
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(CHILD_PATIENCE_S)
            self._child.returncode = self._child.returncode or 0


def directory_of(transcript: str) -> tuple[Path | None, str]:
    """The configuration directory a transcript would lie in, and its place below `projects`; None for no transcript."""
    path = Path(os.path.normpath(transcript))
    if not path.is_absolute() or path.suffix != ".jsonl":
        return None, ""
    for parent in path.parents:
        inside = path.relative_to(parent)
        if parent.name == "projects" and len(inside.parts) > 1:
            return parent.parent, str(inside)
    return None, ""


def is_config_dir(folder: Path) -> bool:
    """Whether it is a directory of this user's in which an assistant has written; anybody may name any to a hook."""
    try:
        return (folder / "projects").is_dir() and folder.stat().st_uid == os.getuid()
    except OSError:
        return False


def versions(rows: Rows) -> dict[str, str]:
    """The versions in use, and when each wrote its last line."""
    return events.versions_since(rows, iso(datetime.now(UTC) - timedelta(days=IN_USE_DAYS)))


def too_old(config: Config, seen: Mapping[str, str]) -> list[str]:
    """The versions in use that do not know every event that is registered."""
    needed = text.version_of(str(_record(config).get("needs") or ""))
    return [version for version in seen if needed and (text.version_of(version) or needed) < needed]


def told(rows: Rows, config: Config) -> dict[str, Any]:
    """What is known of the assistant's clients: versions, the newer events, the directories read and not read."""
    seen, record = versions(rows), _record(config)
    return {
        "versions": [{"version": version, "last_at": at} for version, at in seen.items()],
        "newer_events": list(record.get("events") or []),
        "kept_out_by": str(record.get("kept_out_by") or ""),
        "directories": [str(folder) for folder in config.assistant_dirs],
        "elsewhere": [path for path in events.elsewhere(rows) if is_elsewhere(config, Path(path))],
    }


def is_elsewhere(config: Config, folder: Path) -> bool:
    """Whether a directory is one of an assistant's that csmd does not read."""
    return is_config_dir(folder) and folder.resolve() not in {known.resolve() for known in config.assistant_dirs}


def warnings(known: Mapping[str, Any], config: Config) -> list[str]:
    """What of this is amiss, for `csmd status`; `known` is what `told` gives."""
    found = [
        f"sessions write to {path}, which csmd does not read: csmd install --config-dir {path}"
        for path in known["elsewhere"]
    ]
    if old := too_old(config, {row["version"]: row["last_at"] for row in known["versions"]}):
        found.append(
            f"hooks: {', '.join(known['newer_events'])} are registered, which Claude Code {old[0]} does not know: "
            "csmd hooks settle"
        )
    return found


def _record(config: Config) -> dict[str, Any]:
    """What `csmd install` recorded; a damaged one says nothing here, the command line tells of it."""
    try:
        return files.read_json(config.paths.install_record) or {}
    except ConfigError:
        return {}
