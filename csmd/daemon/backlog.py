"""In which order a past is taken in, and how gently: the newest sessions first, in turn across projects.

Pure: what was found in, its order out. Whoever has just installed csmd asks about what happened lately, in whichever
project they stand; a sub-agent's transcript says little without its session's, so that they are read together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from csmd.capture.transcripts import OnDisk


@dataclass(frozen=True, slots=True)
class Past:
    """A session's transcripts, its own before its sub-agents'; `rank` is its place in its project, the newest 0."""

    project: str
    session: str
    rank: int
    mtime_ns: int
    files: tuple[OnDisk, ...]


def in_order(found: Iterable[OnDisk], roots: Sequence[str]) -> list[Past]:
    """The sessions of these transcripts: the newest of every project, then every project's second, and so on.

    `roots` are the directories whose own directories are projects; a transcript below none of them belongs to
    the directory it lies in.
    """
    by_session: dict[tuple[str, str], list[OnDisk]] = {}
    for one in found:
        by_session.setdefault(place_of(one.path, roots), []).append(one)
    by_project: dict[str, list[tuple[int, str, list[OnDisk]]]] = {}
    for (project, session), files in by_session.items():
        latest = max(one.mtime_ns for one in files)
        by_project.setdefault(project, []).append((-latest, session, files))
    ranked = [
        Past(project, session, rank, -latest, tuple(sorted(files, key=_own_first)))
        for project, sessions in by_project.items()
        for rank, (latest, session, files) in enumerate(sorted(sessions, key=lambda one: one[:2]))
    ]
    return sorted(ranked, key=lambda one: (one.rank, -one.mtime_ns, one.project, one.session))


def place_of(path: str, roots: Sequence[str]) -> tuple[str, str]:
    """(project directory, session) of a transcript, by where it lies."""
    root = next((root for root in roots if path.startswith(f"{root}/")), "")
    if not root:
        folder, _, name = path.rpartition("/")
        return folder, name.removesuffix(".jsonl")
    project, _, rest = path[len(root) + 1 :].partition("/")
    if not rest:  # a transcript in the root itself
        return root, project.removesuffix(".jsonl")
    return f"{root}/{project}", rest.partition("/")[0].removesuffix(".jsonl")


def _own_first(one: OnDisk) -> tuple[int, str]:
    return len(PurePath(one.path).parts), one.path


#: Fewer sessions are read before anybody has looked: nothing worth telling.
WORTH_TELLING = 5


class Backlog:
    """Owns the list; only the background thread changes it."""

    def __init__(self) -> None:
        self._files: dict[str, OnDisk] = {}
        self._session_of: dict[str, str] = {}
        self._left: Counter[str] = Counter()
        """Transcripts left of each session."""
        self._bytes = self._most = self._done = self._read = 0
        self._took_s = 0.0

    def __bool__(self) -> bool:
        return bool(self._files)

    def __contains__(self, path: str) -> bool:
        return path in self._files

    def fill(self, sessions: Iterable[Past]) -> None:
        """Takes what a sweep found for what is left now; what is done is counted from when nothing was left."""
        if not self._files:
            self._most = self._done = self._read = 0
            self._took_s = 0.0
        self._files, self._session_of = {}, {}
        for past in sessions:
            for one in past.files:
                self._files[one.path] = one
                self._session_of[one.path] = f"{past.project}/{past.session}"
        self._left = Counter(self._session_of.values())
        self._bytes = sum(one.size for one in self._files.values())
        self._most = max(self._most, len(self._left))

    def first(self) -> OnDisk | None:
        """What is to be read next."""
        return next(iter(self._files.values()), None)

    def note(self, *, read: int, took_s: float) -> None:
        """Notes what reading a piece has given: from it is told how long the rest will take."""
        self._read += read
        self._took_s += took_s

    def drop(self, path: str) -> None:
        """Takes a transcript off the list: it is read."""
        one = self._files.pop(path, None)
        if one is None:
            return
        self._bytes -= one.size
        session = self._session_of.pop(path)
        self._left[session] -= 1
        if not self._left[session]:
            del self._left[session]
            self._done += 1

    def shown(self) -> dict[str, Any] | None:
        """What `csmd status` says; None when nothing worth telling is left. `eta_s` is None until it can be told."""
        sessions, left = len(self._left), self._bytes
        if not sessions or self._most < WORTH_TELLING:
            return None
        eta = round(left * self._took_s / self._read) if self._read else None
        return {"sessions_left": sessions, "bytes_left": left, "sessions_done": self._done, "eta_s": eta}
