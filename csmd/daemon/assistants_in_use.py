"""The assistants' versions, directories and hooks that are in use, and warnings about unread or outdated ones."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from csmd.config import Config, child_environment
from csmd.daemon.context import Context, now_iso, to_iso
from csmd.errors import CsmdError
from csmd.hosts import adapters
from csmd.paths import is_directory
from csmd.privacy.redaction import storable_path
from csmd.store import client_versions, files, tombstones
from csmd.store.sqlite import Rows
from csmd.text import display


def detached_arguments() -> dict[str, Any]:
    """Returns the arguments that start a child detached from the terminal and without our files."""
    null = subprocess.DEVNULL
    return {"env": child_environment(), "stdin": null, "stdout": null, "stderr": null, "start_new_session": True}


MAX_SETTINGS_BYTES = 1_000_000


def read_install_record(config: Config) -> dict[str, Any]:
    """Returns the record of `csmd install`; {} if it is damaged, which the command line reports."""
    try:
        return files.read_json(config.paths.install_record) or {}
    except (CsmdError, OSError):
        return {}


def read_settings(path: str) -> str | None:
    """Returns the text of a settings file; None if it does not exist or is too large."""
    return files.read_small(path, MAX_SETTINGS_BYTES)


def describe_hosts(config: Config, counted: Iterable[tuple[str, int, int, str, str]]) -> list[dict[str, Any]]:
    """Returns the assistants whose directories are read, in `csmd status`; reads the disk."""
    by_host = {row[0]: row[1:] for row in counted}
    hosts = []
    for adapter, folder in adapters.list_directories(config):
        sessions, turns, last, event = by_host.get(adapter.host, (0, 0, "", ""))
        state = adapter.hooks_state(folder, config.paths.home, read_settings)
        hosts.append({
            "host": adapter.host, "title": adapter.title, "directory": str(folder), "sessions": sessions,
            "turns": turns, "last_turn": last, "last_event": event, "hooks": state,
        })  # fmt: skip
    return hosts


#: A version or directory is in use if it was used within this many days.
IN_USE_DAYS = 30
SETTLE_EVERY_S = 86_400.0
CHILD_TIMEOUT_S = 5.0


class Clients:
    """Owns the child process that adapts the registered hooks to the versions of the assistant in use."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._settled: dict[str, float] = {}
        """Version -> when hooks were last adapted for it; monotonic."""
        self._child: subprocess.Popen[bytes] | None = None

    def note_directories(self) -> bool:
        """Records the directories that hooks named and csmd does not read; returns whether there were any."""
        return sum(self._note_directory(transcript) for transcript in self._context.take_unknown_transcripts()) > 0

    def _note_directory(self, transcript: str) -> bool:
        folder, inside = find_config_dir(transcript)
        if folder is None or not _is_config_dir(folder):
            return False
        real = os.path.realpath(folder)
        for directory in self._context.config.assistant_dirs:
            if os.path.realpath(directory) == real:  # named by a link
                self._context.hint(str(directory / "projects" / inside))
                return True
        store, path = self._context.store, storable_path(str(folder))

        def write(rows: Rows) -> None:
            name = tombstones.cursor_name(rows, path, key=store.hash_key)
            client_versions.record_other_directory(rows, name, at=now_iso())

        store.write(write)
        return True

    def settle_hooks(self, now: float) -> bool:
        """Starts removing hooks that a version in use does not know, at the monotonic time `now`; returns whether."""
        if self._child is not None:
            code = self._child.poll()
            if code is None:
                return False
            self._child = None
            if code:
                raise CsmdError(f"`csmd hooks settle` ended with exit code {code}; run it to see why")
        config = self._context.config
        outdated = find_outdated_versions(config, self._context.store.read(list_versions_in_use))
        due = [version for version in outdated if now - self._settled.get(version, -SETTLE_EVERY_S) >= SETTLE_EVERY_S]
        if due:
            self._settled.update(dict.fromkeys(due, now))
            command = [sys.executable, "-P", "-m", "csmd", "hooks", "settle"]
            self._child = subprocess.Popen(command, cwd=str(config.paths.home), **detached_arguments())
        return bool(due)

    def close(self) -> None:
        """Waits for the child, which ends at once without a daemon and never writes half a file."""
        if self._child is not None:
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(CHILD_TIMEOUT_S)
            self._child.returncode = self._child.returncode or 0


def find_config_dir(transcript: str) -> tuple[Path | None, str]:
    """Returns the configuration directory of a transcript and its path in `projects`; (None, "") for another file."""
    path = Path(os.path.normpath(transcript))
    if not path.is_absolute() or path.suffix != ".jsonl":
        return None, ""
    for parent in path.parents:
        inside = path.relative_to(parent)
        if parent.name == "projects" and len(inside.parts) > 1:
            return parent.parent, str(inside)
    return None, ""


def _is_config_dir(folder: Path) -> bool:
    """Whether it is this user's directory in which an assistant has written; anyone may pass any path to a hook."""
    try:
        return is_directory(folder / "projects") and folder.stat().st_uid == os.getuid()
    except OSError:
        return False


def list_versions_in_use(rows: Rows) -> dict[str, str]:
    """Returns the versions in use, and when each wrote its last line."""
    return client_versions.list_versions_since(rows, to_iso(datetime.now(UTC) - timedelta(days=IN_USE_DAYS)))


def find_outdated_versions(config: Config, versions: Iterable[str]) -> list[str]:
    """Returns the versions in use that do not know every registered event."""
    needed = display.parse_version(str(read_install_record(config).get("needs") or ""))
    return [version for version in versions if needed and (display.parse_version(version) or needed) < needed]


def find_unread_directories(paths: Iterable[str], config: Config, at: list[str]) -> list[str]:
    """Returns the assistant's directories that hooks named and csmd does not read.

    `at` holds the directory that is being read.
    """
    directories = {os.path.realpath(folder) for folder in config.assistant_dirs}
    unread = []
    for path in paths:
        at[:] = [path]
        if _is_config_dir(Path(path)) and os.path.realpath(path) not in directories:
            unread.append(path)
    return unread


def warn_of_unread(folder: str) -> str:
    """Returns the warning about a directory that csmd does not read, with the command that adds it."""
    return f"sessions write to {folder}, which csmd does not read: csmd install --config-dir {shlex.quote(folder)}"


def describe_clients(rows: Rows, config: Config, *, unread: list[str]) -> dict[str, Any]:
    """Returns the versions of the assistant in use, the newer events, and the read and unread directories."""
    record = read_install_record(config)
    return {
        "versions": [{"version": version, "last_at": at} for version, at in list_versions_in_use(rows).items()],
        "newer_events": list(record.get("events") or []), "kept_out_by": str(record.get("kept_out_by") or ""),
        "directories": [str(folder) for folder in config.assistant_dirs],
        "of_hosts": [str(folder) for _, folder in config.host_dirs], "elsewhere": unread,
    }  # fmt: skip


def list_client_warnings(clients: Mapping[str, Any], config: Config) -> list[str]:
    """Returns the warnings in `csmd status` about the result of `describe_clients`."""
    warnings = [warn_of_unread(path) for path in clients["elsewhere"]]
    if outdated := find_outdated_versions(config, [row["version"] for row in clients["versions"]]):
        events, version = ", ".join(clients["newer_events"]), f"Claude Code {outdated[0]}"
        warnings.append(f"hooks: {events} are registered, which {version} does not know: csmd hooks settle")
    return warnings
