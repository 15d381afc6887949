"""Which projects' instruction files are kept up to date, and when they are read again.

Those of sessions within the last 30 days, and those where one has just started or a prompt was typed. What
happens is a set of names that any thread may add to; the steward reads the disk, so that a slow one holds up
neither a hook nor the writer.
"""

from __future__ import annotations

import logging
import sys
import threading
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

from csmd import config
from csmd.capture import instruction_files as capture
from csmd.daemon.context import Context
from csmd.daemon.now import iso, now_iso
from csmd.store import projects

log = logging.getLogger(__name__)

RECENT_DAYS = 30
#: More projects than anybody works on in a month; each is some twenty small files.
MOST_PROJECTS = 200
#: What is named in a batch of file events or hooks; beyond it the next sweep sees to the rest.
MOST_WAITING = 1000
#: Directories that are watched where they exist, of the some twenty projects at work last: each costs a thread. The
#: others' files are read again when a session starts there, and by the sweep.
MOST_WATCHED = 40
NAMES = frozenset({"CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "MEMORY.md"})


class Instructed:
    """Owns the set of what is to be read again, and which directories each project's instructions lie in."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._visited: dict[str, None] = {}
        self._touched: dict[str, None] = {}
        self._folders: dict[tuple[int, str], set[str]] = {}
        self._stamps: dict[tuple[int, str], capture.Stamp] = {}

    def visit(self, directory: str) -> None:
        """Says that a session is at work in a directory; cheap, from any thread."""
        with self._lock:
            if directory and len(self._visited) < MOST_WAITING:
                self._visited[directory] = None
        self._context.poke()

    def touch(self, path: str) -> None:
        """Says that a file has changed, which may be an instruction file or one of thousands that are none."""
        name = path.rpartition("/")[2]
        if name in NAMES or (name.endswith(".md") and "/rules/" in path) or self._imported(path):
            with self._lock:
                if len(self._touched) < MOST_WAITING:
                    self._touched[path] = None
            self._context.poke()

    def _imported(self, path: str) -> bool:
        """Whether an imported file may lie there: in a directory that one was read from, and no bookkeeping."""
        folder = path.rpartition("/")[0]
        known = list(self._folders.values())
        own = folder in {str(place) for place in self._context.config.assistant_dirs}
        return not own and not path.endswith(".jsonl") and any(folder in folders for folders in known)

    def folders(self) -> list[Path]:
        """The directories to watch, each alone and not what is below it: those of the projects at work last."""
        with self._lock:
            latest_first = list(self._folders.values())[::-1]
        found = dict.fromkeys(folder for folders in latest_first for folder in sorted(folders))
        return [Path(folder) for folder in islice(found, MOST_WATCHED)]

    def _at_work(self, key: tuple[int, str]) -> None:
        """Puts a project behind all those at work before it."""
        with self._lock:
            if key in self._folders:
                self._folders[key] = self._folders.pop(key)

    def waiting(self) -> bool:
        """Whether something is to be read."""
        return bool(self._visited or self._touched)

    def step(self) -> int:
        """Reads what was visited or touched; how many files have changed."""
        with self._lock:
            visited, self._visited = list(self._visited), {}
            touched, self._touched = list(self._touched), {}
        places = [self._place(directory) for directory in visited]
        changed = {path.rpartition("/")[0] for path in touched}
        for key, folders in list(self._folders.items()):
            if self._concerns(key[1], folders, changed):
                self._stamps.pop(key, None)
                places.append(key)
        found = sum(self._refresh(*place) for place in dict.fromkeys(places) if place is not None)
        for place in places[: len(visited)]:
            if place is not None:
                self._at_work(place)
        return found

    def sweep(self) -> int:
        """Reads those of every project that had a session lately; how many files have changed."""
        since = iso(datetime.now(UTC) - timedelta(days=RECENT_DAYS))
        recent = self._context.store.read(lambda rows: projects.projects_since(rows, since))[:MOST_PROJECTS]
        for key in self._folders.keys() - set(recent):
            del self._folders[key]
            self._stamps.pop(key, None)
        found = sum(self._refresh(*place) for place in recent if not self._context.stopping)
        for place in reversed(recent):
            self._at_work(place)
        return found

    def _concerns(self, root: str, folders: set[str], changed: set[str]) -> bool:
        return bool(folders & changed) or any(folder.startswith(f"{root}/.claude/") for folder in changed)

    def _place(self, directory: str) -> tuple[int, str] | None:
        return capture.project_of(self._context.store, directory)

    def _refresh(self, seq: int, root: str) -> int:
        """Reads one project's when its files look changed; one that is not on this machine keeps what was known."""
        changed = 0
        known = self._stamps.get((seq, root))

        def read() -> bool:
            nonlocal changed
            if known is not None and capture.stamp(path for path, *_ in known) == known:
                return True
            if root and Path(root).is_dir():
                changed, folders, marks = capture.refresh(self._context.store, seq, root, self.user(), now=now_iso())
                self._folders[seq, root] = folders
                self._stamps[seq, root] = capture.stamp(marks)
            return True

        self._context.guard("instructions", read, about=root)
        return changed

    def user(self) -> capture.User:
        """Whose files these are."""
        return user_of(self._context.config)


def user_of(settings: config.Config) -> capture.User:
    """Whose files a daemon with this configuration reads."""
    managed = capture.MANAGED.get(sys.platform, capture.MANAGED_ELSEWHERE)
    return capture.User(
        home=str(config.user_home()), configs=tuple(str(path) for path in settings.assistant_dirs), managed=managed
    )
