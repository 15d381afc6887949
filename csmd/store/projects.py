"""Projects: which row a place counts to, and the days on which each was active (ages are counted in these).

A place counts to the project of its key, or to the one that it is recognised as (recognition.py). An alias, a
merge or a split sends it on to another; whoever asks gets the row that holds now.
"""

from __future__ import annotations

from dataclasses import dataclass

from csmd.model import NEVER, Project
from csmd.store import disk
from csmd.store.recognition import WORKTREE, current, may_be_made, row_of
from csmd.store.recognition import everywhere as everywhere
from csmd.store.recognition import recognised as recognised
from csmd.store.recognition import wall_around as wall_around
from csmd.store.sqlite import Rows

#: A day after every other.
LAST_DAY = "9999-12-31"


@dataclass(frozen=True, slots=True)
class Settled:
    """The row a place counts to now, and the row of its directory (0 where none is noted)."""

    seq: int
    directory: int = 0


def ensure(rows: Rows, project: Project, *, now: str) -> int:
    """The row key of the project that a place counts to, made when it is new."""
    return current(rows, _own(rows, project, now), project.place or project.root)


def settle(rows: Rows, project: Project, *, now: str) -> Settled:
    """As `ensure`, and notes the directory, so that what is said there can be taken apart again."""
    place = project.place or project.root
    own = _own(rows, project, now)
    seq = current(rows, own, place)
    raw = _identified(rows, own, seq)
    directory = rows.value(
        "select seq from directories where path = :path and project_seq = :project", path=place, project=raw
    ) or rows.value(
        "insert into directories (path, project_seq) values (:path, :project) returning seq", path=place, project=raw
    )
    return Settled(seq, int(directory))


def _identified(rows: Rows, own: int, current: int) -> int:
    part = current != own and rows.value("select part_of from projects where seq = :seq", seq=current)
    return current if part else own


def identified(rows: Rows, project: Project) -> int | None:
    """The row that a place was identified as, whatever that was merged into since; None for an unknown one."""
    own = row_of(rows, project)
    return None if own is None else _identified(rows, own, current(rows, own, project.place or project.root))


def seq_of(rows: Rows, project: Project) -> int | None:
    """The row key of the project that a place counts to, by its key alone; None for an unknown one."""
    own = row_of(rows, project)
    return None if own is None else current(rows, own, project.place or project.root)


def _own(rows: Rows, project: Project, now: str) -> int:
    """The row of a place's own key, before merges and splits; made, or recognised, when the key is new."""
    known = row_of(rows, project)
    if known is not None:
        if project.fingerprint or project.remote:
            _refresh(rows, known, project)
        return known
    found = recognised(rows, project)
    main = project.worktree_of
    if found is None and main is not None and may_be_made(rows, main, project):
        found = _own(rows, main, now), WORKTREE
    if found is None:
        return int(
            rows.value(
                "insert into projects (key, root, name, kind, created_at, remote, fingerprint, workspace_seq) values "
                "(:key, :root, :name, :kind, :now, :remote, :fingerprint, :workspace) returning seq",
                key=project.key,
                root=project.root,
                name=project.name,
                kind=project.kind,
                now=now,
                remote=project.remote,
                fingerprint=project.fingerprint,
                workspace=wall_around(rows, project.root),
            )
        )
    seq, why = found
    key, root = rows.all("select key, root from projects where seq = :seq", seq=seq)[0]
    if why == "moved":
        add_alias(rows, str(key), seq, path=str(root), why="moved", now=now)
        _set_root(rows, seq, project)
    add_alias(rows, project.key, seq, path=project.root, why=why, now=now)
    _refresh(rows, seq, project)
    return seq


def _refresh(rows: Rows, seq: int, project: Project) -> None:
    """Notes what a project is recognised by now, and its place when it was moved back."""
    root, *known = rows.all("select root, remote, fingerprint from projects where seq = :seq", seq=seq)[0]
    if root == project.root:
        if known != [project.remote, project.fingerprint]:
            rows.run(
                "update projects set remote = :remote, fingerprint = :fingerprint where seq = :seq",
                remote=project.remote,
                fingerprint=project.fingerprint,
                seq=seq,
            )
        return
    why = rows.value("select why from aliases where key = :key and path = :root", key=project.key, root=project.root)
    if why == "moved" and disk.is_gone(str(root)):
        _set_root(rows, seq, project)


def _set_root(rows: Rows, seq: int, project: Project) -> None:
    rows.run(
        "update projects set root = :root, name = :name where seq = :seq", root=project.root, name=project.name, seq=seq
    )


def add_alias(rows: Rows, key: str, project: int, *, path: str, why: str, now: str) -> None:
    """Has an identity count to a project from now on."""
    rows.run(
        "insert into aliases (key, project_seq, path, why, created_at) values (:key, :project, :path, :why, :now) "
        "on conflict (key) do update set project_seq = excluded.project_seq, path = excluded.path, why = excluded.why",
        key=key,
        project=project,
        path=path,
        why=why,
        now=now,
    )


def remove_alias(rows: Rows, key: str) -> bool:
    """Takes back what the user named; False when there was nothing."""
    return bool(rows.all("delete from aliases where key = :key and why = 'named' returning key", key=key))


def key_of(rows: Rows, seq: int) -> str:
    """The first identity of a project."""
    return str(rows.value("select key from projects where seq = :seq", seq=seq))


def name_of(rows: Rows, seq: int) -> str:
    """The name of a project; "" for the scope of everything."""
    return str(rows.value("select name from projects where seq = :seq", seq=seq) or "") if seq else ""


def visible(rows: Rows, *, inside: int) -> list[int] | None:
    """Every row that may be seen from inside a workspace (0: from outside of all); None for all, without a wall."""
    closed = rows.value("select seq from projects where kind = 'workspace' limit 1") or rows.value(
        "select seq from projects where merged_into > 0 limit 1"
    )
    if closed is None:
        return None
    return [
        int(seq)
        for (seq,) in rows.all(
            "select seq from projects where merged_into = 0 and (seq = :inside or (kind <> 'workspace' "
            "and workspace_seq in (0, :inside))) order by seq",
            inside=inside,
        )
    ]


def touch(rows: Rows, project: int, at: str, *, source: int = 0) -> None:
    """Notes a day of activity; one that comes to light between others moves what was believed after it.

    `source` is the project whose merge brings the day.
    """
    for scope in {project, everywhere(rows, project), 0}:
        new = rows.value(
            "insert into activity (project_seq, day, from_seq) values (:scope, :day, :source) on conflict do nothing "
            "returning day",
            scope=scope,
            day=at[:10],
            source=source,
        )
        if new is not None:
            _shift(rows, scope, at[:10], 1)


def take_day(rows: Rows, project: int, day: str) -> None:
    """Takes a day of activity back, and with it what it moved."""
    if rows.run("delete from activity where project_seq = :project and day = :day", project=project, day=day):
        _shift(rows, project, day, -1)


def _shift(rows: Rows, scope: int, day: str, by: int) -> None:
    rows.run(
        "update memories set hot_until = hot_until + :by, "
        "warm_until = case when warm_until >= :never then warm_until else warm_until + :by end, "
        "archive_at = case when archive_at >= :never then archive_at else archive_at + :by end "
        "where project_seq = :scope and hot_until < :never and "
        "substr(case when used_at > confirmed_at then used_at else confirmed_at end, 1, 10) > :day",
        never=NEVER,
        scope=scope,
        day=day,
        by=by,
    )


def days(rows: Rows, project: int, *, source: int | None = None) -> list[str]:
    """The days on which a project was active, in order; with `source` those that its merge brought."""
    return [
        str(day)
        for (day,) in rows.all(
            "select day from activity where project_seq = :project and (:all = 1 or from_seq = :source) order by day",
            project=project,
            all=int(source is None),
            source=source or 0,
        )
    ]


def active_day(rows: Rows, project: int, *, on: str = LAST_DAY) -> int:
    """How many days the scope had been active on a day (by default: so far); ages are differences of this number."""
    return int(
        rows.value(
            "select count(*) from activity where project_seq = :project and day <= :day", project=project, day=on
        )
    )
