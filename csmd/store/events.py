"""Hook events as hashes, and the sessions that no hook reported."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from csmd.conversation import Event
from csmd.store.sqlite import Rows

#: Seconds between two reports of one event at most.
MAX_REPEAT_S = 2.0
#: How many of the latest events are read: who reads again before so many new ones misses none.
MAX_LATEST_EVENTS = 200


def record_event(rows: Rows, event: Event, *, text_hash: str, payload_hash: str) -> bool:
    """Records a hook's event; False if it is known: by its id, or as the same report of a second command.

    A second command (a plugin's next to the settings') reports the same payload within 2 s, and nothing else happens in
    the session between the two.
    """
    if _is_repeated(rows, event, payload_hash):
        return False
    reported = {name: getattr(event, name) for name in ("id", "host", "name", "session_id", "source", "at")}
    stream = f"{event.session_id}/{event.agent_id}" if event.agent_id else event.session_id
    hashes = {"text_hash": text_hash, "payload_hash": payload_hash}
    return rows.insert("events", "on conflict (id) do nothing", stream=stream, **hashes, **reported)


def _is_repeated(rows: Rows, event: Event, payload_hash: str) -> bool:
    sql = """select at
        from events where session_id = :session and name = :name and payload_hash = :payload order by seq desc limit 5"""
    for at in rows.column(sql, session=event.session_id, name=event.name, payload=payload_hash):
        first, last = sorted((at, event.at))
        sql = "select count(*) from events where session_id = :session and name <> :name and at > :first and at < :last"
        between = rows.value(sql, session=event.session_id, name=event.name, first=first, last=last)
        if (
            not between
            and (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds() <= MAX_REPEAT_S
        ):
            return True
    return False


def read_session_events(
    rows: Rows, names: Collection[str], *, after: int, limit: int
) -> tuple[int, int, list[tuple[int, str]]]:
    """Returns (last event read past `after`, how many were read, (session, time) of those with `names`).

    Events of unknown sessions are counted but left out.
    """
    sql = """select e.seq, coalesce(s.seq, 0), e.name, e.at
        from events e left join sessions s on s.id = e.session_id where e.seq > :after order by e.seq limit :limit"""
    events = rows.all(sql, after=after, limit=limit)
    named = [(session, at) for _, session, name, at in events if name in names and session]
    return (events[-1][0] if events else after), len(events), named


class SessionWithoutEvents(NamedTuple):
    """A session with an answer and without an event; `path` is its transcript."""

    id: str
    path: str
    started_at: str


class UnreportedSession(NamedTuple):
    """A session marked as unreported, and the latest event then; `path` is "" if it was purged."""

    id: str
    path: str
    at: str
    after_event: int


def list_sessions_without_events(
    rows: Rows, *, began: str, lively: str, answered: str, now: str
) -> list[SessionWithoutEvents]:
    """Returns people's sessions without an event that began after `began` and have a turn since `lively`.

    An assistant answered in them before `answered`. Sessions with a last turn after `now` are left out.
    """
    sql = """select s.id, s.path, s.started_at from sessions s
        where s.parent = '' and s.path <> '' and s.started_at >= :began and s.last_at >= :lively and s.last_at <= :now
        and not exists (select 1 from events e where e.session_id = s.id) and s.unreported_at = '' and exists (select 1
        from session_turn p join turns t on t.seq = p.turn_seq join session_turn q on q.session_seq = p.session_seq
        and q.ordinal > p.ordinal join turns a on a.seq = q.turn_seq where p.session_seq = s.seq
        and t.kind in ('user', 'relayed') and a.kind = 'assistant' and a.at <= :answered) order by s.started_at, s.seq"""
    return rows.read(SessionWithoutEvents, sql, began=began, lively=lively, answered=answered, now=now)


def list_unreported_sessions(rows: Rows) -> list[UnreportedSession]:
    """Returns the sessions marked as unreported, the earliest first."""
    sql = """select id, path, unreported_at, unreported_after
        from sessions where unreported_at > '' order by unreported_at, id"""
    return rows.read(UnreportedSession, sql)


def list_latest_events(rows: Rows, host: str) -> list[tuple[int, str, str]]:
    """Returns (row key, time, transcript or "") of an assistant's latest events."""
    sql = """select e.seq, e.at, coalesce(s.path, '') from events e left join sessions s on s.id = e.session_id
        where e.host = :host and e.seq > (select coalesce(max(seq), 0) from events) - :latest"""
    return rows.all(sql, host=host, latest=MAX_LATEST_EVENTS)


def mark_unreported(rows: Rows, sessions: Sequence[str], *, at: str) -> None:
    """Marks sessions that no hook has reported until now."""
    sql = """update sessions set unreported_at = :at, unreported_after = (select coalesce(max(seq), 0) from events)
        where id = :session and unreported_at = ''"""
    for session in sessions:
        rows.run(sql, session=session, at=at)


def drop_unreported(rows: Rows, sessions: Sequence[str]) -> None:
    """Removes these sessions' marks."""
    for session in sessions:
        rows.run("update sessions set unreported_at = '', unreported_after = 0 where id = :session", session=session)
