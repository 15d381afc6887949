"""Reads the instruction files of projects again when they change, when a session starts, and in sweeps."""

from __future__ import annotations

import fnmatch
import threading
import time
from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from csmd import machine
from csmd.capture import claude_instructions, instruction_files
from csmd.daemon.context import Context, iso_before, now_iso
from csmd.errors import CsmdError
from csmd.hosts.adapters import ADAPTERS
from csmd.paths import is_directory
from csmd.store import projects

#: Days since its last session within which a project is swept.
RECENT_DAYS = 30
#: Most projects that a sweep reads; each has some twenty small files.
MAX_PROJECTS = 200
#: Most paths that are noted between two steps; the next sweep finds the rest.
MAX_WAITING = 1000
#: Most directories that are watched, those of the latest projects: each costs a thread. The files of other projects are
#: read again when a session starts there, and by the sweep.
MAX_WATCHED = 40
INSTRUCTION_NAMES = frozenset({"CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "MEMORY.md"})
#: Patterns for the names of other assistants' instruction files.
OTHER_HOSTS_PATTERNS = {
    name.rpartition("/")[2] for adapter in ADAPTERS.values() if adapter.instructions for name in adapter.instructions
}
#: Time after which a disk that did not answer is tried again.
HUNG_RETRY_S = 600.0


class InstructionRefresh:
    """The instruction files that must be read again, and the directories of each project's files."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._waiting: dict[str, dict[str, None]] = {"visited": {}, "touched": {}}
        #: (project, root) -> the directories of its instructions, their stamp (() to read again); latest last.
        self._projects: dict[tuple[int, str], tuple[set[str], instruction_files.Stamp]] = {}
        self._hung: dict[str, float] = {}
        """Project -> when its disk is tried again; monotonic."""

    def visit(self, directory: str) -> None:
        """Notes a directory in which a session is active; cheap, from any thread."""
        if directory:
            self._add_path("visited", directory)

    def touch(self, path: str) -> None:
        """Notes a changed file, if it may be an instruction file; cheap, from any thread."""
        name = path.rpartition("/")[2]
        matches = partial(fnmatch.fnmatchcase, name)
        is_named = name in INSTRUCTION_NAMES or any(map(matches, OTHER_HOSTS_PATTERNS))
        if is_named or (name.endswith(".md") and "/rules/" in path) or self._may_be_imported(path):
            self._add_path("touched", path)

    def _add_path(self, kind: str, path: str) -> None:
        with self._lock:
            if len(self._waiting[kind]) < MAX_WAITING:
                self._waiting[kind][path] = None
        self._context.poke()

    def _may_be_imported(self, path: str) -> bool:
        """Whether a path may be an imported file: in a directory of instructions, and not the assistant's own data."""
        folder = path.rpartition("/")[0]
        config = self._context.config
        if path.endswith(".jsonl") or folder in map(str, (*config.assistant_dirs, *dict(config.host_dirs).values())):
            return False
        return any(folder in folders for folders, _ in list(self._projects.values()))

    def list_folders(self) -> list[Path]:
        """Returns the directories to watch, without subdirectories: those of the latest projects."""
        with self._lock:
            latest_first = list(self._projects.values())[::-1]
        folders = dict.fromkeys(folder for folders, _ in latest_first for folder in sorted(folders))
        return [Path(folder) for folder in islice(folders, MAX_WATCHED)]

    def has_waiting(self) -> bool:
        """Whether any file must be read."""
        return any(self._waiting.values())

    def step(self) -> int:
        """Reads the instructions of visited directories and touched files; returns how many files changed."""
        with self._lock:
            waiting, self._waiting = self._waiting, {"visited": {}, "touched": {}}
        visited = (instruction_files.find_project(self._context.store, directory) for directory in waiting["visited"])
        active = [project for project in visited if project is not None]
        changed = {path.rpartition("/")[0] for path in waiting["touched"]}
        stale = [
            (seq, root)
            for (seq, root), (folders, _) in self._projects.items()
            if folders & changed or any(folder.startswith(f"{root}/.claude/") for folder in changed)
        ]
        for project in stale:
            self._projects[project] = self._projects[project][0], ()
        total = sum(self._refresh(*project) for project in dict.fromkeys([*active, *stale]))
        self._mark_latest(active)
        return total

    def sweep(self) -> int:
        """Reads the files of every project with a recent session; returns how many changed."""
        since = iso_before(RECENT_DAYS * 86_400)
        recent = self._context.store.read(lambda rows: projects.list_projects_since(rows, since))[:MAX_PROJECTS]
        for project in self._projects.keys() - set(recent):
            del self._projects[project]
        total = sum(self._refresh(*project) for project in recent if not self._context.is_stopping)
        self._mark_latest(recent[::-1])
        return total

    def _mark_latest(self, active: Sequence[tuple[int, str]]) -> None:
        """Moves projects to the end of the order, where the latest are."""
        with self._lock:
            for project in active:
                if project in self._projects:
                    self._projects[project] = self._projects.pop(project)

    def _refresh(self, seq: int, root: str) -> int:
        """Reads a project's files if their stamp changed; a project on another machine keeps its stored ones."""
        store, user = self._context.store, claude_instructions.find_user(self._context.config)
        _, stamp = self._projects.get((seq, root), (set(), ()))

        def read() -> int:
            if not self._disk_answers(root):
                raise CsmdError(f"{root}: its file system does not answer", hint="`df` shows which one hangs")
            is_unchanged = stamp and instruction_files.make_stamp(path for path, *_ in stamp) == stamp
            if is_unchanged or not root or not is_directory(root):
                return 0
            changed, folders, paths = instruction_files.refresh_instructions(store, seq, root, user, now=now_iso())
            self._projects[seq, root] = folders, instruction_files.make_stamp(paths)
            return changed

        return self._context.guard("instructions", read, about=root) or 0

    def _disk_answers(self, root: str) -> bool:
        """Whether the disk of a project answers; one that did not is tried again after HUNG_RETRY_S."""
        now = time.monotonic()
        if now < self._hung.get(root, now):
            return False
        self._hung.pop(root, None)
        if machine.run_bounded(partial(is_directory, root), machine.DISK_S) is None:
            self._hung[root] = now + HUNG_RETRY_S
        return root not in self._hung
