"""Every file and directory of csmd's own, by the home they lie in; nothing here touches the disk."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


def mark_of(home: Path) -> str:
    """What tells a home from another in the name of a unit or socket outside it: 12 hex digits."""
    import hashlib

    return hashlib.sha256(os.fsencode(home)).hexdigest()[:12]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """Every file and directory of csmd's own; all of them 0600 or 0700."""

    home: Path
    config_file: Path
    log_dir: Path

    @property
    def database(self) -> Path:
        return self.home / "csmd.db"

    @property
    def endpoint(self) -> Path:
        """Holds the socket's path; hooks read this file and nothing else."""
        return self.home / "endpoint"

    @property
    def run_dir(self) -> Path:
        return self.home / "run"

    @property
    def lock(self) -> Path:
        return self.home / "run" / "daemon.lock"

    @property
    def instance(self) -> Path:
        """JSON about the running daemon: pid, start token, version, protocol, socket."""
        return self.home / "run" / "daemon.json"

    @property
    def complaint(self) -> Path:
        """What a daemon said on stderr that could not start."""
        return self.home / "run" / "start.stderr"

    @property
    def stopped_mark(self) -> Path:
        """Present while the user has stopped the daemon on purpose."""
        return self.home / "run" / "stopped-by-user"

    @property
    def hung_mark(self) -> Path:
        """Set by a hook that got no answer in time: for 30 s the others spool at once."""
        return self.home / "run" / "hung"

    @property
    def passed_by_mark(self) -> Path:
        """Touched by the hooks of a session that the user keeps out (CSMD_DISABLE): hooks run."""
        return self.home / "run" / "passed-by"

    @property
    def pauses(self) -> Path:
        """From when to when nothing is captured (csmd/exclusions.py); outlives every database."""
        return self.home / "pauses.json"

    @property
    def spool(self) -> Path:
        return self.home / "spool"

    @property
    def quarantine(self) -> Path:
        return self.home / "quarantine"

    @property
    def models(self) -> Path:
        return self.home / "models"

    @property
    def sessions(self) -> Path:
        """Session files of csmd's own: `<folder of a project>/<session>.jsonl`."""
        return self.home / "sessions"

    @property
    def memory(self) -> Path:
        """The markdown that people read and edit: `user.md`, `projects/`, `topics/`, `daily/`."""
        return self.home / "memory"

    @property
    def dream_lock(self) -> Path:
        """Who dreams: it lies beside the markdown, where two machines that share it both see it."""
        return self.home / "memory" / ".dream.lock"

    @property
    def hook_dir(self) -> Path:
        return self.home / "hook"

    @property
    def hook_script(self) -> Path:
        return self.home / "hook" / "csmd_hook.py"

    @property
    def install_record(self) -> Path:
        """JSON: what `csmd install` wrote outside the home and how to take it back."""
        return self.home / "install.json"

    @property
    def log_file(self) -> Path:
        return self.log_dir / "csmd.log"
