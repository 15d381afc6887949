"""Projects: identities, aliases, active days, workspaces and names."""

from __future__ import annotations

from typing import NamedTuple

from csmd.conversation import Project
from csmd.store import files
from csmd.store.sqlite import Rows
from csmd.vocabulary import NEVER

#: A day after every other.
LAST_DAY = "9999-12-31"
#: Whether `root` is the directory or contains it; an empty root contains nothing.
_AROUND = "root <> '' and (root = :place or substr(:place, 1, length(root) + 1) = root || '/')"
#: Projects with a fingerprint, and by remote those in which nothing was said on this machine.
_PRINT = "fingerprint = :mark"
_BROUGHT = "remote = :mark and merged_into = 0 and seq not in (select project_seq from directories)"
#: Why a missing directory belongs to a project. A project merged for it has its own identity under this alias too: one
#: that is split off again is left alone.
WORKTREE = "worktree"


class SettledProject(NamedTuple):
    """The row of the project that a directory belongs to now, and the row of the directory (0 if not recorded)."""

    seq: int
    directory: int = 0


def ensure(rows: Rows, project: Project, *, now: str) -> int:
    """Returns the row key of a directory's project, created if it is new."""
    return find_current_project(rows, _ensure_own_row(rows, project, now), project.place or project.root)


def ensure_with_directory(rows: Rows, project: Project, *, now: str) -> SettledProject:
    """Returns the project as `ensure` does, and records the directory, so that a project can be split off again."""
    directory_path = project.place or project.root
    own = _ensure_own_row(rows, project, now)
    seq = find_current_project(rows, own, directory_path)
    raw = _find_identified_row(rows, own, seq)
    directory = rows.find("directories", "seq", path=directory_path, project_seq=raw)
    return SettledProject(seq, directory or rows.insert_keyed("directories", path=directory_path, project_seq=raw))


def _find_identified_row(rows: Rows, own: int, current: int) -> int:
    part = current != own and rows.find("projects", "part_of", seq=current)
    return current if part else own


def find_identified_row(rows: Rows, project: Project) -> int | None:
    """Returns the row that a directory was identified as, before any merge; None if unknown."""
    own = find_by_key(rows, project)
    return (
        None
        if own is None
        else _find_identified_row(rows, own, find_current_project(rows, own, project.place or project.root))
    )


def seq_of(rows: Rows, project: Project) -> int | None:
    """Returns the row key of a directory's project, by its key alone; None if unknown."""
    own = find_by_key(rows, project)
    return None if own is None else find_current_project(rows, own, project.place or project.root)


def _ensure_own_row(rows: Rows, project: Project, now: str) -> int:
    """Returns the row of a directory's own key, before merges and splits; created or recognized if the key is new."""
    seq = find_by_key(rows, project)
    if seq is not None:
        if project.fingerprint or project.remote:
            _refresh(rows, seq, project)
        return seq
    match = recognise(rows, project)
    main = project.worktree_of
    if match is None and main is not None and may_create(rows, main, project):
        match = _ensure_own_row(rows, main, now), WORKTREE
    if match is None:
        return rows.insert_keyed(
            "projects", key=project.key, root=project.root, name=project.name, kind=project.kind, created_at=now,
            remote=project.remote, fingerprint=project.fingerprint, workspace_seq=find_workspace_around(rows, project.root),
        )  # fmt: skip
    seq, why = match
    key, root = rows.all("select key, root from projects where seq = :seq", seq=seq)[0]
    if why == "moved":
        add_alias(rows, key, seq, path=root, why="moved", now=now)
        rows.update("projects", seq, root=project.root, name=project.name)
    add_alias(rows, project.key, seq, path=project.root, why=why, now=now)
    _refresh(rows, seq, project)
    return seq


def _refresh(rows: Rows, seq: int, project: Project) -> None:
    """Records how a project is recognized now, and its root if it was moved back."""
    root, *identity = rows.all("select root, remote, fingerprint from projects where seq = :seq", seq=seq)[0]
    if root == project.root:
        if identity != [project.remote, project.fingerprint]:
            rows.update("projects", seq, remote=project.remote, fingerprint=project.fingerprint)
        return
    why = rows.find("aliases", "why", key=project.key, path=project.root)
    if why == "moved" and files.is_missing(str(root)):
        rows.update("projects", seq, root=project.root, name=project.name)


def add_alias(rows: Rows, key: str, project: int, *, path: str, why: str, now: str) -> None:
    """Adds an identity to a project."""
    conflict = (
        "on conflict (key) do update set project_seq = excluded.project_seq, path = excluded.path, why = excluded.why"
    )
    rows.insert("aliases", conflict, key=key, project_seq=project, path=path, why=why, created_at=now)


def remove_alias(rows: Rows, key: str) -> bool:
    """Removes an identity that the user named; False if there is none."""
    return bool(rows.all("delete from aliases where key = :key and why = 'named' returning key", key=key))


def read_key(rows: Rows, seq: int) -> str:
    """Returns the first identity of a project."""
    return str(rows.find("projects", "key", seq=seq))


def name_of(rows: Rows, seq: int) -> str:
    """Returns the name of a project; "" for everywhere."""
    return rows.text("select name from projects where seq = :seq", seq=seq) if seq else ""


def list_visible_projects(rows: Rows, *, inside: int) -> list[int] | None:
    """Returns every row visible from inside a workspace (0: from outside all); None if there is no wall."""
    closed = rows.value("select seq from projects where kind = 'workspace' limit 1") or rows.value(
        "select seq from projects where merged_into > 0 limit 1"
    )
    if closed is None:
        return None
    sql = """select seq from projects where merged_into = 0
        and (seq = :inside or (kind <> 'workspace' and workspace_seq in (0, :inside))) order by seq"""
    return rows.column(sql, inside=inside)


def record_active_day(rows: Rows, project: int, at: str, *, source: int = 0) -> None:
    """Records an active day; an earlier day than the last shifts the thresholds of memories confirmed after it.

    `source` is the project whose merge brings the day.
    """
    for scope in {project, everywhere_of(rows, project), 0}:
        if rows.insert("activity", "on conflict do nothing", project_seq=scope, day=at[:10], from_seq=source):
            _shift_thresholds(rows, scope, at[:10], 1)


def remove_active_day(rows: Rows, project: int, day: str) -> None:
    """Removes an active day and shifts the thresholds back."""
    if rows.delete("activity", project_seq=project, day=day):
        _shift_thresholds(rows, project, day, -1)


def _shift_thresholds(rows: Rows, scope: int, day: str, by: int) -> None:
    sql = """update memories set hot_until = hot_until + :by,
        warm_until = case when warm_until >= :never then warm_until else warm_until + :by end,
        archive_at = case when archive_at >= :never then archive_at else archive_at + :by end
        where project_seq = :scope and hot_until < :never
        and substr(case when used_at > confirmed_at then used_at else confirmed_at end, 1, 10) > :day"""
    rows.run(sql, never=NEVER, scope=scope, day=day, by=by)


def active_days(rows: Rows, project: int, *, source: int | None = None) -> list[str]:
    """Returns the active days of a project in order; with `source` those that its merge brought."""
    sql = "select day from activity where project_seq = :project and (:all = 1 or from_seq = :source) order by day"
    return rows.column(sql, project=project, all=int(source is None), source=source or 0)


def active_day(rows: Rows, project: int, *, on: str = LAST_DAY) -> int:
    """Returns the number of active days of a scope up to a day (by default: so far); ages are differences of it."""
    sql = "select count(*) from activity where project_seq = :project and day <= :day"
    return rows.number(sql, project=project, day=on)


def find_by_key(rows: Rows, project: Project) -> int | None:
    """Returns the row of a directory's own key, before merges and splits; one that exists again is no lost worktree."""
    sql = """select coalesce((select project_seq from aliases where key = :key
        and (:gone = 1 or why <> :worktree)), (select seq from projects where key = :key))"""
    return rows.key(sql, key=project.key, gone=int(project.gone), worktree=WORKTREE)


def find_current_project(rows: Rows, seq: int, directory: str) -> int:
    """Returns the project that rows belong to now: the part split off for a directory, or the merged project."""
    seen = {seq}
    while True:
        merged, parts = rows.all(
            """select p.merged_into, (select count(*) from projects x where x.part_of = p.seq)
                from projects p where p.seq = :seq""",
            seq=seq,
        )[0]
        sql = f"select seq from projects where part_of = :seq and {_AROUND} order by length(root) desc limit 1"  # noqa: S608
        step = parts and rows.value(sql, seq=seq, place=directory)
        if not step or step in seen:
            step = merged
        if not step or step in seen:
            return int(step or seq)
        seq = int(step)
        seen.add(seq)


def recognise(rows: Rows, project: Project) -> tuple[int, str] | None:
    """Returns (row key, why) of the known project of a directory with an unknown key; None if it is new.

    Why is "same place", "worktree" or "moved". Moved: the directory has the fingerprint of exactly one known project
    whose own directory is gone, or the remote of an imported one in which nothing was said here yet.
    """
    sql = """select seq from projects where root = :root and root <> ''
        and part_of = 0 and seq > 0 and kind <> 'workspace' and (:gone = 1 or not exists (select 1 from aliases a
        where a.key = projects.key and a.project_seq = projects.seq and a.why = :worktree)) order by seq limit 1"""
    place_row = rows.value(sql, root=project.root, gone=int(project.gone), worktree=WORKTREE)
    if place_row is not None:
        return int(place_row), "same place"
    repository = find_repository(rows, project)
    if repository is not None and may_join_repository(rows, repository, project):
        return repository, WORKTREE
    for marked, mark in ((_PRINT, project.fingerprint), (_BROUGHT, project.remote)):
        matches = rows.all(f"select seq, root from projects where {marked} and part_of = 0 and seq > 0", mark=mark)  # noqa: S608
        lost = [seq for seq, root in matches if mark and files.is_missing(root)]
        if len(matches) == len(lost) == 1:
            return lost[0], "moved"
    return None


def find_repository(rows: Rows, project: Project) -> int | None:
    """Returns the known repository of a missing worktree, by its transcript, then by its path; None if unknown."""
    if not project.gone:
        return None
    sql = """select project_seq from aliases where why = :why
        and (path = :root or substr(:root, 1, length(path) + 1) = path || '/') order by length(path) desc limit 1"""
    alias = rows.value(sql, why=WORKTREE, root=project.root)
    if alias is not None:
        return int(alias)
    main = project.worktree_of
    if main is None:
        return None
    seq = find_by_key(rows, main)
    match = recognise(rows, main) if seq is None else (seq, "")
    return None if match is None else match[0]


def may_join_repository(rows: Rows, repository: int, worktree: Project) -> bool:
    """Whether new rows of a worktree may go to its repository: both are in the same workspace or in none."""
    wall = everywhere_of(rows, find_current_project(rows, repository, worktree.root))
    return find_workspace_around(rows, worktree.root) in (0, wall)


def may_create(rows: Rows, repository: Project, worktree: Project) -> bool:
    """Whether an unknown repository may be created for its worktree: both are in the same workspace or in none."""
    walls = (0, find_workspace_around(rows, repository.root))
    return find_repository(rows, worktree) is None and find_workspace_around(rows, worktree.root) in walls


def list_seqs(rows: Rows) -> list[int]:
    """Returns the row keys of all projects."""
    return rows.column("select seq from projects order by seq")


def everywhere_of(rows: Rows, project: int) -> int:
    """Returns the row of what applies everywhere for a project: its workspace's, or 0."""
    sql = "select case when kind = 'workspace' then seq else workspace_seq end from projects where seq = :seq"
    return rows.number(sql, seq=project)


def find_workspace_around(rows: Rows, directory: str) -> int:
    """Returns the workspace of the nearest project around a directory, which new projects there join; 0 for none."""
    sql = f"select workspace_seq from projects where workspace_seq > 0 and {_AROUND} order by length(root) desc limit 1"  # noqa: S608
    return rows.number(sql, place=directory)


def find_lens_around(rows: Rows, directory: str) -> int:
    """Returns the lens of the nearest directory around a directory; 0 for none."""
    sql = f"select lens_seq from projects where lens_seq > 0 and {_AROUND} order by length(root) desc limit 1"  # noqa: S608
    return rows.number(sql, place=directory)


def find_reachable_projects(rows: Rows, project: int, step: str) -> frozenset[int]:
    """Returns a project and everything that a query reaches from it, repeatedly."""
    reached_projects = {project}
    waiting = [project]
    while waiting:
        new = set(rows.column(step, seq=waiting.pop())) - reached_projects
        reached_projects |= new
        waiting += new
    return frozenset(reached_projects)


def find_merged_projects(rows: Rows, project: int) -> frozenset[int]:
    """Returns a project and all that was merged into it, directly or not."""
    return find_reachable_projects(rows, project, "select seq from projects where merged_into = :seq")


# --- memories


def list_worktrees(rows: Rows, seq: int) -> list[str]:
    """Returns the identities of a project's missing worktrees."""
    sql = "select key from aliases where project_seq = :seq and why = :why order by key"
    return rows.column(sql, seq=seq, why=WORKTREE)


def list_projects_since(rows: Rows, since: str) -> list[tuple[int, str]]:
    """Returns (row key, root) of the projects with a session since a time, the latest first."""
    sql = """select p.seq, p.root from projects p join sessions s on s.project_seq = p.seq
        where p.seq > 0 group by p.seq, p.root having max(s.last_at) >= :since order by max(s.last_at) desc"""
    return rows.all(sql, since=since)
