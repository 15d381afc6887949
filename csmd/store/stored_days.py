"""The sessions in the file of each day.

A session is in the file of each day on which it ended, with the digest that it had when the file was written. When a
session is withdrawn (a purge, a tampered transcript), its rows are marked, and the files are rewritten to match.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, partial
from typing import Literal, NamedTuple

from csmd.store import tombstones
from csmd.store.sqlite import Rows, in_keys
from csmd.text import similarity

_CLOSED = "exists (select 1 from events e where e.session_id = s.id and e.name = 'session_end' and e.at >= s.last_at)"
_SESSION = """s.seq, s.id, p.seq, p.name, p.workspace_seq, case when p.workspace_seq = 0 then ''
    else (select w.name from projects w where w.seq = p.workspace_seq) end, s.started_at, s.last_at, s.cwd, p.root"""
#: People's sessions with their last digest, without what a day's file has of them.
_ENDINGS = f"""select coalesce((select d.seq
    from digests d where d.session_seq = s.seq order by d.version desc limit 1), 0), {_SESSION}, 0, 0, '', ''
    from sessions s join projects p on p.seq = s.project_seq where s.parent = '' and s.host <> 'probe' """  # noqa: S608


class Ending(NamedTuple):
    """A session for the file of a day: `wall` is its workspace ("" for none), `closed` whether its host ended it.

    `written` is the digest that a file has last (0 for none), of the day `day`, up to the time `written_at` ("" for
    none).
    """

    digest_seq: int
    session_seq: int
    id: str
    project_seq: int
    project: str
    workspace_seq: int
    wall: str
    started_at: str
    last_at: str
    cwd: str
    root: str
    closed: bool
    written: int
    day: str
    written_at: str


class DayPart(NamedTuple):
    """A session in the file of a day: its row, its id, the workspace of the file and the session's workspace now."""

    seq: int
    id: str
    day: str
    wall: str
    wall_now: str
    workspace_now: int


def list_endings_after(rows: Rows, *, after: int, limit: int) -> list[Ending]:
    """Returns the sessions whose last digest has a row key past `after`, in the order of these keys."""
    sql = f"""select d.seq, {_SESSION}, {_CLOSED}, coalesce(t.digest_seq, 0),
        coalesce(t.day, ''), coalesce(t.last_at, '') from digests d join sessions s on s.seq = d.session_seq
        join projects p on p.seq = s.project_seq left join told_days t on t.session_seq = s.seq
        and t.seq = (select max(o.seq) from told_days o where o.session_seq = s.seq) where d.seq > :after
        and d.version = (select max(x.version) from digests x where x.session_seq = s.seq) order by d.seq limit :limit"""  # noqa: S608
    return rows.read(Ending, sql, after=after, limit=limit)


def list_live_endings(rows: Rows, *, since: str, limit: int) -> list[Ending]:
    """Returns people's sessions with a turn since a time that their host has not ended, without digests."""
    sql = f"{_ENDINGS}and s.last_at > :since and not {_CLOSED} order by s.last_at desc, s.seq limit :limit"
    return rows.read(Ending, sql, since=since, limit=limit)


def list_endings_between(rows: Rows, *, since: str, until: str, projects: Sequence[int] | None) -> list[Ending]:
    """Returns people's sessions of some projects (None: all) that ran between two times, by their ends."""
    sql = f"""{_ENDINGS}and s.last_at >= :since and s.started_at < :until and {in_keys("s.project_seq", projects)}
        order by s.last_at, s.seq"""
    return rows.read(Ending, sql, since=since, until=until)


def note_day(rows: Rows, ending: Ending, *, day: str, as_of: tuple[int, str]) -> None:
    """Records that a day's file has a session, which is due again if something was forgotten since the state `as_of`.

    A session without anything to report is recorded with the day "", so that it waits for its next digest.
    """
    values = {"digest_seq": ending.digest_seq, "last_at": ending.last_at, "workspace_seq": ending.workspace_seq}
    due = "" if tombstones.forgetting_state(rows) == as_of else "again"
    rows.upsert("told_days", "session_seq, day", session_seq=ending.session_seq, day=day, due=due, **values)


def days_due(rows: Rows, what: Literal["move", "leave", "again"], *, limit: int) -> list[DayPart]:
    """Returns the parts to move to another workspace, to remove from their file, or to search again."""
    sql = """select t.seq, s.id, t.day, coalesce(a.name, ''), coalesce(b.name, ''), p.workspace_seq
        from told_days t join sessions s on s.seq = t.session_seq join projects p on p.seq = s.project_seq
        left join projects a on a.seq = t.workspace_seq and a.seq > 0 left join projects b on b.seq = p.workspace_seq
        and b.seq > 0 where t.due = :what and t.due <> '' order by t.seq limit :limit"""
    return rows.read(DayPart, sql, what=what, limit=limit)


def mark_days_due(rows: Rows, uuids: Iterable[str], sessions: Iterable[int]) -> None:
    """Marks the parts about some sessions and the sessions of some turns: they may contain what was forgotten."""
    listing = "select st.session_seq from session_turn st join turns t on t.seq = st.turn_seq where t.uuid = :uuid"
    for session in {*sessions, *(seq for uuid in uuids for seq in rows.column(listing, uuid=uuid))}:
        rows.run("update told_days set due = 'again' where due = '' and session_seq = :session", session=session)


def note_days_read(rows: Rows, parts: Sequence[DayPart], changed: Collection[str], *, as_of: tuple[int, str]) -> None:
    """Records that parts were searched, unless something was forgotten since the state `as_of`.

    Earlier versions of the files of the days in `changed` are dropped from the journal.
    """
    for part in parts if tombstones.forgetting_state(rows) == as_of else ():
        rows.run("update told_days set due = '' where seq = :seq and due = 'again'", seq=part.seq)
    for day in changed:
        _drop_images(rows, day)


def make_forgotten_test(rows: Rows, session_id: str, *, key: bytes) -> Callable[[str], bool]:
    """Returns whether a sentence was forgotten in any project of a session, unless the user states it there.

    Each sentence counts as said at the session's start, because nothing records when the assistant said it.
    """
    began = rows.text("select started_at from sessions where id = :id", id=session_id)
    projects = rows.column(
        """select project_seq from sessions where id = :id union select t.project_seq from sessions s
            join session_turn st on st.session_seq = s.seq join turns t on t.seq = st.turn_seq where s.id = :id""",
        id=session_id,
    ) or [0]
    sql = """select distinct m.text, m.project_seq, m.at from sessions s join session_turn st on st.session_seq = s.seq
        join statements m on m.turn_seq = st.turn_seq where s.id = :id and m.authority = 'user'"""
    stated = rows.all(sql, id=session_id)

    def is_forgotten(text: str) -> bool:
        forgotten_by = partial(tombstones.is_forgotten, rows, text, key=key)
        if not any(forgotten_by(authority="assistant", project=place, at=began) for place in projects):
            return False
        return not any(
            similarity.repeats(words, text) and not forgotten_by(authority="user", project=project, at=at)
            for words, project, at in stated
        )

    return cache(is_forgotten)


def list_digest_texts(rows: Rows, session_id: str) -> list[str]:
    """Returns the goals and open points in a session's digests, of every version."""
    sql = """select distinct i.text from sessions s join digests d on d.session_seq = s.seq
        join digest_items i on i.digest_seq = d.seq where s.id = :id and i.kind in ('goal', 'open')"""
    return rows.column(sql, id=session_id)


def move_days(rows: Rows, parts: Sequence[DayPart]) -> None:
    """Records that parts are in the files of their present workspaces, where they are searched again."""
    for part in parts:
        rows.update("told_days", part.seq, workspace_seq=part.workspace_now, due="again")


def drop_days(rows: Rows, parts: Sequence[DayPart]) -> None:
    """Records that parts were removed from their files."""
    for part in parts:
        rows.delete("told_days", seq=part.seq)


def take_back_days(rows: Rows, turn_seq: int) -> None:
    """Marks the parts about the sessions that list a turn for removal, and drops what could restore them."""
    for session in rows.column("select session_seq from session_turn where turn_seq = :turn", turn=turn_seq):
        clear_days(rows, session)


def clear_days(rows: Rows, session_seq: int) -> None:
    """Marks the parts about a session for removal."""
    sql = "update told_days set due = 'leave' where session_seq = :session and due <> 'leave' returning day"
    for day in rows.column(sql, session=session_seq):
        _drop_images(rows, day)


def _drop_images(rows: Rows, day: str) -> None:
    """Deletes the earlier versions of a day's files from the journal of dreams."""
    sql = "delete from changed_files where path like :markdown or path like :data"
    rows.run(sql, markdown=f"memory/%daily/{day}.md", data=f"memory/%daily/{day}.yaml")


def mark_days_moved(rows: Rows, project: int) -> None:
    """Marks the parts about a project's sessions, whose workspace changed."""
    sql = """update told_days set due = 'move'
        where due in ('', 'again') and session_seq in (select s.seq from sessions s where s.project_seq = :project)"""
    rows.run(sql, project=project)
