"""Worktrees that are gone, and the projects that were made of them before anything told whose they were."""

from __future__ import annotations

from collections.abc import Callable

from csmd.model import Project
from csmd.store import merges, projects
from csmd.store.recognition import WORKTREE, current, is_behind, row_of
from csmd.store.sqlite import Rows


def lone(rows: Rows, *, below: str = "") -> list[str]:
    """The roots of the projects that are told by their path alone and were never merged, taken apart or walled with others.

    With `below` of those at this directory or below it.
    """
    return [
        str(root)
        for (root,) in rows.all(
            "select p.root from projects p where p.kind = 'path' and p.merged_into = 0 and p.part_of = 0 and p.seq > 0 "
            "and substr(p.root, 1, 1) = '/' and (:below = '' or p.root = :below "
            "or substr(p.root, 1, length(cast(:below as text)) + 1) = cast(:below as text) || '/') "
            "and not exists (select 1 from projects x where x.part_of = p.seq) "
            "and not exists (select 1 from aliases a where a.key = p.key and a.why = :worktree) order by p.seq",
            below=below,
            worktree=WORKTREE,
        )
    ]


def bring_home(rows: Rows, worktree: Project, repository: Project, *, is_gone: Callable[[str], bool], now: str) -> int:
    """Has a worktree that is gone count to its repository; how many projects of its own were merged for it.

    Nothing where a wall is between them, and nothing of a project that was split off again: `csmd project split` is what
    takes this back. A repository that nothing is known of is made only for what there is to bring.
    """
    known = row_of(rows, repository)
    into = None if known is None else current(rows, known, repository.root)
    wall = projects.wall_around(rows, repository.root) if into is None else projects.everywhere(rows, into)
    merged = 0
    for root in lone(rows, below=worktree.root):
        own, key = rows.all(
            "select seq, key from projects where root = :root and kind = 'path' order by seq", root=root
        )[0]
        if is_gone(root) and own not in (known, into) and projects.everywhere(rows, own) == wall:
            projects.add_alias(rows, key, own, path=root, why=WORKTREE, now=now)
            merges.merge(rows, own, projects.ensure(rows, repository, now=now))
            merged += 1
    known = row_of(rows, repository)
    is_new = row_of(rows, worktree) is None and not _is_project(rows, worktree.root)
    if known and is_new and is_behind(rows, known, worktree):
        projects.add_alias(rows, worktree.key, known, path=worktree.root, why=WORKTREE, now=now)
    return merged


def _is_project(rows: Rows, root: str) -> bool:
    """Whether something is known as a project at a directory, be it a repository that is gone."""
    return rows.value("select 1 from projects where root = :root and seq > 0", root=root) is not None


def worktrees_of(rows: Rows, seq: int) -> list[str]:
    """The identities of worktrees that are gone and count to a project."""
    found = rows.all(
        "select key from aliases where project_seq = :seq and why = :why order by key", seq=seq, why=WORKTREE
    )
    return [str(key) for (key,) in found]


def last_turn(rows: Rows) -> int:
    """The row key of the turn that was stored last; 0 for none."""
    return int(rows.value("select coalesce(max(seq), 0) from turns"))


def calls(rows: Rows, tool: str, *, after: int, upto: int, near: int) -> list[tuple[str, str, str]]:
    """(input, output, directory) of a tool's calls that speak of worktrees, past a turn up to another one.

    The output is looked for in the next `near` turns; "" for none.
    """
    found = rows.all(
        # A join of the two would have SQLite index all turns for it, each time.
        "select c.text, coalesce((select r.text from turns r where r.seq > c.seq and r.seq <= c.seq + :near "
        "and r.session_seq = c.session_seq and r.kind = 'tool_result' and r.tool_id = c.tool_id order by r.seq limit 1), "
        "''), d.path from turns c join directories d on d.seq = c.directory_seq where c.seq > :after and c.seq <= :upto "
        "and c.kind = 'tool_call' and c.tool_name = :tool and c.tool_id <> '' and c.text like '%worktree%' "
        "order by c.seq",
        near=near,
        after=after,
        upto=upto,
        tool=tool,
    )
    return [(str(given), str(printed), str(path)) for given, printed, path in found]
