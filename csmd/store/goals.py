"""Goals: what a person, or an assistant, said a project or one session is for, until it is done."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import NamedTuple

from csmd.store.sqlite import Rows

_COLUMNS = "g.seq, g.id, g.project_seq, g.session_id, g.text, g.authority, g.created_at, g.done_at"


class Goal(NamedTuple):
    """A declared goal; `session_id` is "" for one of a project, `done_at` "" while it is open."""

    seq: int
    id: str
    project_seq: int
    session_id: str
    text: str
    authority: str
    created_at: str
    done_at: str


def add(rows: Rows, *, project: int, session_id: str, text: str, authority: str, now: str) -> tuple[str, bool]:
    """(id, whether it is new) of a goal; the same words again are the same goal, a person's where a person says them."""
    ident = (
        "g" + hashlib.sha256(f"{project}:{session_id}:{' '.join(text.casefold().split())}".encode()).hexdigest()[:10]
    )
    known = rows.value("select done_at from goals where id = :id", id=ident)
    rows.run(
        "insert into goals (id, project_seq, session_id, text, authority, created_at) values "
        "(:id, :project, :session, :text, :authority, :now) on conflict (id) do update set done_at = '', "
        "authority = case when excluded.authority = 'user' then 'user' else goals.authority end",
        id=ident,
        project=project,
        session=session_id,
        text=text,
        authority=authority,
        now=now,
    )
    return ident, known != ""


def open_ones(rows: Rows, *, projects: Sequence[int], session_id: str) -> list[Goal]:
    """The goals of a session, and those that a person declared for one of these projects, the oldest first."""
    keys = ", ".join(str(int(seq)) for seq in projects) or "-1"
    found = rows.all(
        f"select {_COLUMNS} from goals g where g.done_at = '' and g.project_seq in ({keys}) "  # noqa: S608
        "and g.session_id in ('', :session) and (g.session_id <> '' or g.authority = 'user') order by g.created_at, g.seq",
        session=session_id,
    )
    return [Goal(*row) for row in found]


def listing(rows: Rows, *, projects: Sequence[int] | None, done: bool) -> list[Goal]:
    """The goals of these projects (None: of all), those that are done only where asked for, the latest first."""
    among = "" if projects is None else f"and g.project_seq in ({', '.join(str(int(p)) for p in projects)})"
    found = rows.all(
        f"select {_COLUMNS} from goals g where (:done = 1 or g.done_at = '') {among} "  # noqa: S608
        "order by g.created_at desc, g.seq desc",
        done=int(done),
    )
    return [Goal(*row) for row in found]


def like(rows: Rows, prefix: str) -> list[Goal]:
    """Up to five goals whose id begins with `prefix`."""
    found = rows.all(
        f"select {_COLUMNS} from goals g where g.id >= :prefix and g.id < :prefix || '~' order by g.id limit 5",  # noqa: S608
        prefix=prefix,
    )
    return [Goal(*row) for row in found]


def finish(rows: Rows, ident: str, *, now: str) -> bool:
    """Notes that a goal is done; False when it was already."""
    return bool(rows.run("update goals set done_at = :now where id = :id and done_at = ''", now=now, id=ident))


# --- with their project and session


def merge(rows: Rows, source: int, into: int) -> None:
    """Gives a project's goals to another, which remembers whose they were."""
    rows.run(
        "update goals set origin_seq = case when origin_seq = 0 then :source else origin_seq end, project_seq = :target "
        "where project_seq = :source",
        source=source,
        target=into,
    )


def split(rows: Rows, source: int, part: int, *, tree: Collection[int]) -> None:
    """Gives back what came with `part`, and with what had been merged into it."""
    keys = ", ".join(str(int(seq)) for seq in sorted(tree))
    rows.run(
        "update goals set project_seq = :part, origin_seq = case when origin_seq = :part then 0 else origin_seq end "  # noqa: S608
        f"where project_seq = :source and origin_seq in ({keys})",
        part=part,
        source=source,
    )


def clear(rows: Rows, *, project: int, until: str) -> int:
    """Removes the goals of a project up to a time; how many."""
    return rows.run(
        "delete from goals where project_seq = :project and created_at <= :until", project=project, until=until
    )


def clear_session(rows: Rows, session_id: str) -> int:
    """Removes the goals of a session; how many."""
    return rows.run("delete from goals where session_id = :session", session=session_id)
