"""In which order a past is taken in, and how gently: the newest sessions first, in turn across projects.

Pure: what was found in, its order out. Whoever has just installed csmd asks about what happened lately, in whichever
project they stand; a sub-agent's transcript says little without its session's, so that they are read together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from csmd.capture.transcripts import OnDisk

#: After a step that nobody waits for the steward rests so many times as long: a past takes half of one core at most,
#: and a hook meets it half as often. Not a lower priority: a thread that has one and holds the interpreter holds up
#: the threads that answer hooks.
REST = 1.0


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
