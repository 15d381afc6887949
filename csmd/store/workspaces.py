"""Workspaces: named sets of projects with a wall around them.

A workspace has a row in `projects`, which is to its projects what row 0 is to all others: there
stands what was said in one of them and holds everywhere. From within a wall one sees what was said
outside of every wall; from outside, and from another workspace, nothing of what is inside.
"""

from __future__ import annotations

from csmd.model import Memory
from csmd.store import memories, merges, projects, told_days, tombstones
from csmd.store.sqlite import Rows

KIND = "workspace"


def ensure(rows: Rows, name: str, *, now: str) -> int:
    """The row of a workspace, made when it is new."""
    found = named(rows, name)
    if found is not None:
        return found
    return int(
        rows.value(
            "insert into projects (key, root, name, kind, created_at) values (:key, '', :name, :kind, :now) "
            "returning seq",
            key=f"workspace:{name}",
            name=name,
            kind=KIND,
            now=now,
        )
    )


def named(rows: Rows, name: str) -> int | None:
    """The row of a workspace, or None."""
    found = rows.value("select seq from projects where key = :key", key=f"workspace:{name}")
    return None if found is None else int(found)


def join(rows: Rows, workspace: int, project: int) -> int:
    """Puts a project behind a wall; how many memories went with it from "everywhere".

    Those go whose sources are all inside: what was said elsewhere too is known outside already.
    """
    rows.run(
        "update projects set workspace_seq = :workspace where seq = :project", workspace=workspace, project=project
    )
    told_days.move(rows, project)
    for day in projects.days(rows, project):
        projects.touch(rows, project, day)
    inside = members(rows, workspace)
    moved = 0
    for memory in memories.listing(rows, projects=[0]):
        if _is_from(rows, memory, inside):
            merges.give(rows, memory, workspace)
            moved += 1
    return moved


def open_below(rows: Rows, root: str) -> list[int]:
    """The projects below a directory that are behind no wall."""
    return [
        int(seq)
        for (seq,) in rows.all(
            "select seq from projects where workspace_seq = 0 and merged_into = 0 and seq > 0 and kind <> 'workspace' "
            "and substr(root, 1, length(cast(:root as text)) + 1) = cast(:root as text) || '/' order by seq",
            root=root,
        )
    ]


def leave(rows: Rows, project: int, *, key: bytes) -> None:
    """Takes a project out from behind its wall; what held everywhere inside stays there, and what was forgotten forgotten."""
    if wall := projects.everywhere(rows, project):
        tombstones.carry(rows, wall, project, key=key)
    rows.run("update projects set workspace_seq = 0 where seq = :project", project=project)
    told_days.move(rows, project)


def members(rows: Rows, workspace: int) -> list[int]:
    """The projects of a workspace."""
    return [
        int(seq) for (seq,) in rows.all("select seq from projects where workspace_seq = :w order by seq", w=workspace)
    ]


def _is_from(rows: Rows, memory: Memory, inside: list[int]) -> bool:
    said = [
        rows.value("select project_seq from turns where uuid = :uuid", uuid=source.uuid) for source in memory.provenance
    ]
    return all(project in inside for project in said)
