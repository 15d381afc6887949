"""Which sessions a day's file tells, and what is known of a session for it; the files themselves lie beside the store.

A session is told by the digest that it had when its file was written, once for each day on which it ended. No text of a
session stands here. What is taken back (a purge, a transcript that proves nothing) is marked, and the files are brought
to say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, partial
from typing import Literal, NamedTuple

from csmd.store import tombstones
from csmd.store.sqlite import Rows
from csmd.text import similarity

_CLOSED = "exists (select 1 from events e where e.session_id = s.id and e.name = 'session_end' and e.at >= s.last_at)"
_SESSION = (
    "s.seq, s.id, p.name, p.workspace_seq, case when p.workspace_seq = 0 then '' else "
    "(select w.name from projects w where w.seq = p.workspace_seq) end, s.started_at, s.last_at, s.cwd, p.root"
)


class Ending(NamedTuple):
    """A session that a day's file may tell: `wall` is the workspace it is behind ("" for none), `closed` what the host said.

    `told` is the row of the digest that was told last (0 for none), `day` its file's day and `told_at` up to when it went
    ("" for none).
    """

    digest_seq: int
    session_seq: int
    id: str
    project: str
    workspace_seq: int
    wall: str
    started_at: str
    last_at: str
    cwd: str
    root: str
    closed: bool
    told: int
    day: str
    told_at: str


class Told(NamedTuple):
    """A part of a day's file: its row, its session's id, where it stands and where it should."""

    seq: int
    id: str
    day: str
    wall: str
    wall_now: str
    workspace_now: int


class Agent(NamedTuple):
    """A sub-agent of a session, and whether the last thing in its transcript is its answer."""

    id: str
    turns: int
    answered: bool


def waiting(rows: Rows, *, after: int, limit: int) -> list[Ending]:
    """The sessions whose last digest was made past a row key, in the order of these; also those that are told already."""
    return rows.read(
        Ending,
        f"select d.seq, {_SESSION}, {_CLOSED}, coalesce(t.digest_seq, 0), coalesce(t.day, ''), coalesce(t.last_at, '') "  # noqa: S608
        "from digests d join sessions s on s.seq = d.session_seq join projects p on p.seq = s.project_seq "
        "left join told_days t on t.session_seq = s.seq "
        "and t.seq = (select max(o.seq) from told_days o where o.session_seq = s.seq) "
        "where d.seq > :after and d.version = (select max(x.version) from digests x where x.session_seq = s.seq) "
        "order by d.seq limit :limit",
        after=after,
        limit=limit,
    )


def live(rows: Rows, *, since: str, limit: int) -> list[Ending]:
    """People's sessions with a turn since a time that the host has not ended; `digest_seq` is 0 for one without."""
    return rows.read(
        Ending,
        "select coalesce((select d.seq from digests d where d.session_seq = s.seq order by d.version desc limit 1), 0), "  # noqa: S608
        f"{_SESSION}, 0, 0, '', '' from sessions s join projects p on p.seq = s.project_seq where s.parent = '' "
        f"and s.host <> 'probe' and s.last_at > :since and not {_CLOSED} order by s.last_at desc, s.seq limit :limit",
        since=since,
        limit=limit,
    )


def note(rows: Rows, one: Ending, *, day: str, as_of: tuple[int, str]) -> None:
    """Notes that a day's file tells a session as its digest has it; one that was read before the last forgetting is due again."""
    told = {"digest_seq": one.digest_seq, "last_at": one.last_at, "workspace_seq": one.workspace_seq}
    due = "" if tombstones.forgettings(rows) == as_of else "again"
    rows.upsert("told_days", "session_seq, day", session_seq=one.session_seq, day=day, due=due, **told)


def due(rows: Rows, what: Literal["move", "leave", "again"], *, limit: int) -> list[Told]:
    """What is due of days: to move behind another wall, to leave its file, to be looked through for what was forgotten."""
    return rows.read(
        Told,
        "select t.seq, s.id, t.day, coalesce(a.name, ''), coalesce(b.name, ''), p.workspace_seq "
        "from told_days t join sessions s on s.seq = t.session_seq join projects p on p.seq = s.project_seq "
        "left join projects a on a.seq = t.workspace_seq and a.seq > 0 "
        "left join projects b on b.seq = p.workspace_seq and b.seq > 0 "
        "where t.due = :what and t.due <> '' order by t.seq limit :limit",
        what=what,
        limit=limit,
    )


def mark_again(rows: Rows, uuids: Iterable[str], sessions: Iterable[int]) -> None:
    """Marks what is told of the sessions of some turns, and of some sessions: it may hold what was forgotten."""
    for uuid in uuids:
        rows.run(
            "update told_days set due = 'again' where due = '' and session_seq in (select st.session_seq "
            "from session_turn st join turns t on t.seq = st.turn_seq where t.uuid = :uuid)",
            uuid=uuid,
        )
    for session in sessions:
        rows.run("update told_days set due = 'again' where due = '' and session_seq = :session", session=session)


def looked_through(rows: Rows, parts: Sequence[Told], changed: Collection[str], *, as_of: tuple[int, str]) -> None:
    """Notes that nothing forgotten stands in parts any more; of the days that were `changed` no journal has the files.

    What was forgotten while they were looked through may stand in them: then they are due still.
    """
    for part in parts if tombstones.forgettings(rows) == as_of else ():
        rows.run("update told_days set due = '' where seq = :seq and due = 'again'", seq=part.seq)
    for day in changed:
        _without_images(rows, day)


def is_out(rows: Rows, ident: str, *, key: bytes) -> Callable[[str], bool]:
    """Whether a sentence of a session was forgotten where any of it was said: as an assistant's, unless the user says it.

    Nothing tells when an assistant said it there, so it counts as its first.
    """
    began = str(rows.value("select started_at from sessions where id = :id", id=ident) or "")
    places = rows.column(
        "select project_seq from sessions where id = :id union select t.project_seq from sessions s "
        "join session_turn st on st.session_seq = s.seq join turns t on t.seq = st.turn_seq where s.id = :id",
        id=ident,
    ) or [0]
    own = rows.all(
        "select distinct m.text, m.project_seq, m.at from sessions s join session_turn st on st.session_seq = s.seq "
        "join statements m on m.turn_seq = st.turn_seq where s.id = :id and m.authority = 'user'",
        id=ident,
    )

    def is_out(said: str) -> bool:
        asked = partial(tombstones.is_out, rows, said, key=key)
        if not any(asked(authority="assistant", project=place, at=began) for place in places):
            return False
        return not any(
            similarity.says_the_same(words, said) and not asked(authority="user", project=project, at=at)
            for words, project, at in own
        )

    return cache(is_out)


def said(rows: Rows, ident: str) -> list[str]:
    """What a session's digests say in somebody's words, whatever version."""
    return rows.column(
        "select distinct i.text from sessions s join digests d on d.session_seq = s.seq join digest_items i on i.digest_seq = d.seq "
        "where s.id = :id and i.kind in ('goal', 'decision', 'correction', 'open')",
        id=ident,
    )


def stand(rows: Rows, parts: Sequence[Told]) -> None:
    """Notes that parts stand behind the walls now that their projects are behind; whatever was forgotten since may be in them."""
    for part in parts:
        rows.run(
            "update told_days set workspace_seq = :workspace, due = 'again' where seq = :seq",
            workspace=part.workspace_now,
            seq=part.seq,
        )


def gone(rows: Rows, parts: Sequence[Told]) -> None:
    """Notes that parts have left their files."""
    for part in parts:
        rows.run("delete from told_days where seq = :seq", seq=part.seq)


def take_back(rows: Rows, turn_seq: int) -> None:
    """Marks what was told of the sessions that list a turn, and drops what could bring it back into a file."""
    for session in rows.column("select session_seq from session_turn where turn_seq = :turn", turn=turn_seq):
        clear(rows, session)


def clear(rows: Rows, session_seq: int) -> None:
    """Marks what was told of one session."""
    for day in rows.column(
        "update told_days set due = 'leave' where session_seq = :session and due <> 'leave' returning day",
        session=session_seq,
    ):
        _without_images(rows, day)


def _without_images(rows: Rows, day: str) -> None:
    rows.run(
        "delete from dream_files where path like :markdown or path like :data",
        markdown=f"memory/%daily/{day}.md",
        data=f"memory/%daily/{day}.yaml",
    )


def move(rows: Rows, project: int) -> None:
    """Marks what was told of a project's sessions: it is behind another wall now, and looked through again there."""
    rows.run(
        "update told_days set due = 'move' where due in ('', 'again') and session_seq in "
        "(select s.seq from sessions s where s.project_seq = :project)",
        project=project,
    )


def gotchas(rows: Rows, session_seq: int, *, limit: int) -> list[str]:
    """What was found out to be a trap in a session, the surest first."""
    return rows.column(
        "select m.text from session_turn st join statements m on m.turn_seq = st.turn_seq "
        "where st.session_seq = :session and m.category = 'gotcha' order by m.confidence desc, st.ordinal, m.seq limit :limit",
        session=session_seq,
        limit=limit,
    )


def times(rows: Rows, session_seq: int) -> list[str]:
    """When something was said or done in a session, in order."""
    return rows.column(
        "select t.at from session_turn st join turns t on t.seq = st.turn_seq where st.session_seq = :session "
        "order by st.ordinal",
        session=session_seq,
    )


def agents(rows: Rows, ident: str) -> list[Agent]:
    """The sub-agents of a session, in the order in which they began."""
    found = rows.read(
        Agent,
        "select s.id, s.turns, coalesce((select t.kind from session_turn st join turns t on t.seq = st.turn_seq "
        "where st.session_seq = s.seq order by st.ordinal desc limit 1), '') = 'assistant' from sessions s "
        "where s.parent = :id order by s.started_at, s.id",
        id=ident,
    )
    return [agent._replace(id=agent.id.rpartition("/")[2]) for agent in found]
