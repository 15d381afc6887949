"""What a place is known by: its key, an alias, its directory, its fingerprint, or that it was a worktree; and its wall.

A worktree that is gone counts to its repository as far as anything tells which that was: never through a wall, and never
a directory that is there.
"""

from __future__ import annotations

from collections.abc import Callable

from csmd.model import Project
from csmd.store import disk
from csmd.store.sqlite import Rows

#: `root` is the place or stands around it; an empty root stands around nothing.
_AROUND = "root <> '' and (root = :place or substr(:place, 1, length(root) + 1) = root || '/')"
#: Known by a fingerprint; by its remote, where nothing was said in it on this machine.
_PRINT = "fingerprint = :mark"
_BROUGHT = "remote = :mark and merged_into = 0 and seq not in (select project_seq from directories)"
#: Why a directory that is gone counts to a project. On a project that was merged for it, its own identity has this
#: alias, too: one that was split off again is left alone.
WORKTREE = "worktree"


def row_of(rows: Rows, project: Project) -> int | None:
    """The row of a place's own key, before merges and splits; a directory that is there again is no lost worktree."""
    found = rows.value(
        "select coalesce((select project_seq from aliases where key = :key and (:gone = 1 or why <> :worktree)), "
        "(select seq from projects where key = :key))",
        key=project.key,
        gone=int(project.gone),
        worktree=WORKTREE,
    )
    return None if found is None else int(found)


def current(rows: Rows, seq: int, place: str) -> int:
    """Where a project's rows go now: into the part that was split off for this place, or what it was merged into."""
    seen = {seq}
    while True:
        merged, parts = rows.all(
            "select p.merged_into, (select count(*) from projects x where x.part_of = p.seq) from projects p "
            "where p.seq = :seq",
            seq=seq,
        )[0]
        step = parts and rows.value(
            f"select seq from projects where part_of = :seq and {_AROUND} order by length(root) desc limit 1",  # noqa: S608
            seq=seq,
            place=place,
        )
        if not step or step in seen:
            step = merged
        if not step or step in seen:
            return int(step or seq)
        seq = int(step)
        seen.add(seq)


def recognised(
    rows: Rows, project: Project, *, is_gone: Callable[[str], bool] = disk.is_gone
) -> tuple[int, str] | None:
    """(row key, why) of the known project that a place with an unknown key is: "same place", "worktree" or "moved".

    None for a new one. Moved is a directory with the fingerprint of exactly one known project, whose own directory is
    gone; or with the remote of one that an import brought, and in which nothing was said here yet.
    """
    beside = rows.value(
        "select seq from projects where root = :root and root <> '' and part_of = 0 and seq > 0 "
        "and kind <> 'workspace' and (:gone = 1 or not exists (select 1 from aliases a where a.key = projects.key "
        "and a.project_seq = projects.seq and a.why = :worktree)) order by seq limit 1",
        root=project.root,
        gone=int(project.gone),
        worktree=WORKTREE,
    )
    if beside is not None:
        return int(beside), "same place"
    repository = repository_of(rows, project)
    if repository is not None and is_behind(rows, repository, project):
        return repository, WORKTREE
    for marked, mark in ((_PRINT, project.fingerprint), (_BROUGHT, project.remote)):
        alike = rows.all(f"select seq, root from projects where {marked} and part_of = 0 and seq > 0", mark=mark)  # noqa: S608
        lost = [int(seq) for seq, root in alike if mark and is_gone(str(root))]
        if len(alike) == len(lost) == 1:
            return lost[0], "moved"
    return None


def repository_of(rows: Rows, project: Project) -> int | None:
    """The row of the known repository whose worktree a directory was that is gone; None where nothing tells it.

    What a transcript says counts first, then its path.
    """
    if not project.gone:
        return None
    told = rows.value(
        "select project_seq from aliases where why = :why and (path = :root or "
        "substr(:root, 1, length(path) + 1) = path || '/') order by length(path) desc limit 1",
        why=WORKTREE,
        root=project.root,
    )
    if told is not None:
        return int(told)
    main = project.worktree_of
    if main is None:
        return None
    known = row_of(rows, main)
    found = recognised(rows, main) if known is None else (known, "")
    return None if found is None else found[0]


def is_behind(rows: Rows, repository: int, worktree: Project) -> bool:
    """Whether what is new in a worktree may be its repository's: no wall is around it, or that around both."""
    wall = everywhere(rows, current(rows, repository, worktree.root))
    return wall_around(rows, worktree.root) in (0, wall)


def may_be_made(rows: Rows, repository: Project, worktree: Project) -> bool:
    """The same of a repository that nothing is known of yet."""
    walls = (0, wall_around(rows, repository.root))
    return repository_of(rows, worktree) is None and wall_around(rows, worktree.root) in walls


def everywhere(rows: Rows, project: int) -> int:
    """The row of what holds everywhere as a project sees it: its workspace's, 0 where there is no wall."""
    found = rows.value(
        "select case when kind = 'workspace' then seq else workspace_seq end from projects where seq = :seq",
        seq=project,
    )
    return int(found or 0)


def wall_around(rows: Rows, place: str) -> int:
    """The workspace of the nearest walled project around a place: what is new there is behind that wall; 0 for none."""
    found = rows.value(
        f"select workspace_seq from projects where workspace_seq > 0 and {_AROUND} "  # noqa: S608
        "order by length(root) desc limit 1",
        place=place,
    )
    return int(found or 0)
