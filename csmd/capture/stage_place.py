"""Which project a directory is, with what the disk and the store know of it: for capture, recall, tools alike."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from csmd.capture import project
from csmd.capture.redact import redact
from csmd.model import Project
from csmd.store import disk, projects
from csmd.store.sqlite import Rows


class Places:
    """The projects of one transcript's directories, each looked up once; `start` is where its session began."""

    def __init__(self, start: str) -> None:
        self._start = start
        self._known: dict[str, Project] = {}

    def of(self, cwd: str) -> Project:
        """The project of a directory with its marks; of the session's start for a line that names none."""
        place = self._known.get(cwd)
        if place is None:
            place = marked(identify(cwd, start=self._start or cwd))
            self._known[cwd] = place
        return place


def identify(cwd: str, *, start: str = "") -> Project:
    """The project of a directory, without its marks: they are read for a project that is not known yet."""
    return project.identify(cwd, disk=disk, start=start)


def marked(place: Project) -> Project:
    """A project with its fingerprint and remote."""
    found = project.with_marks(place, disk=disk)
    if found.worktree_of is not None:
        found = replace(found, worktree_of=marked(found.worktree_of))
    return replace(found, remote=redact(found.remote, Counter())) if found.remote else found


def entering(rows: Rows, place: Project) -> Project:
    """A place as `projects.settle` takes it in: with its marks when it is new. Asks the disk, so before the write."""
    return place if projects.seq_of(rows, place) is not None else marked(place)


def known(rows: Rows, cwd: str, *, start: str = "") -> int | None:
    """The row that a directory counts to; None for one that nothing was said in. Writes nothing."""
    return _known(rows, identify(cwd, start=start))


def _known(rows: Rows, place: Project) -> int | None:
    seq = projects.seq_of(rows, place)
    if seq is not None:
        return seq
    found = projects.recognised(rows, marked(place))
    return None if found is None else projects.seq_of(rows, replace(place, key=projects.key_of(rows, found[0])))


def scopes(rows: Rows, cwd: str, *, start: str = "") -> list[int]:
    """The rows that are seen from a directory: its project's, its workspace's, and what was said outside of walls."""
    seq, inside = _home(rows, cwd, start)
    return list(dict.fromkeys([*([] if seq is None else [seq]), inside, 0]))


def wall(rows: Rows, cwd: str) -> int:
    """The workspace that a directory is in; 0 for none, and for ""."""
    return _home(rows, cwd, "")[1] if cwd else 0


def _home(rows: Rows, cwd: str, start: str) -> tuple[int | None, int]:
    place = identify(cwd, start=start)
    seq = _known(rows, place)
    return seq, projects.wall_around(rows, place.place) if seq is None else projects.everywhere(rows, seq)
