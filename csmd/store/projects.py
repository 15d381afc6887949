"""Projects and the days on which they were active: ages are counted in these."""

from __future__ import annotations

from csmd.model import NEVER, Project
from csmd.store.sqlite import Rows

#: A day after every other.
LAST_DAY = "9999-12-31"


def ensure(rows: Rows, project: Project, *, now: str) -> int:
    """The project's row key, made when it is new."""
    found = rows.value("select seq from projects where key = :key", key=project.key)
    if found is not None:
        return int(found)
    return int(
        rows.value(
            "insert into projects (key, root, name, kind, created_at) values (:key, :root, :name, :kind, :now) "
            "returning seq",
            key=project.key,
            root=project.root,
            name=project.name,
            kind=project.kind,
            now=now,
        )
    )


def seq_of(rows: Rows, key: str) -> int | None:
    """The row key of a known project, or None."""
    found = rows.value("select seq from projects where key = :key", key=key)
    return None if found is None else int(found)


def name_of(rows: Rows, seq: int) -> str:
    """The name of a project; "" for the scope of everything."""
    return str(rows.value("select name from projects where seq = :seq", seq=seq) or "") if seq else ""


def touch(rows: Rows, project: int, at: str) -> None:
    """Notes a day of activity; one that comes to light between others moves what was believed after it."""
    for scope in {project, 0}:
        new = rows.value(
            "insert into activity (project_seq, day) values (:scope, :day) on conflict do nothing returning day",
            scope=scope,
            day=at[:10],
        )
        if new is not None:
            rows.run(
                "update memories set hot_until = hot_until + 1, "
                "warm_until = case when warm_until >= :never then warm_until else warm_until + 1 end, "
                "archive_at = case when archive_at >= :never then archive_at else archive_at + 1 end "
                "where project_seq = :scope and substr(confirmed_at, 1, 10) > :day and hot_until < :never",
                never=NEVER,
                scope=scope,
                day=at[:10],
            )


def active_day(rows: Rows, project: int, *, on: str = LAST_DAY) -> int:
    """How many days the scope had been active on a day (by default: so far); ages are differences of this number."""
    return int(
        rows.value(
            "select count(*) from activity where project_seq = :project and day <= :day", project=project, day=on
        )
    )
