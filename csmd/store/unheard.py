"""Sessions that ran where hooks are registered and that no hook reported; an event of a later session takes them back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from csmd.store.sqlite import Rows

#: Events that are looked at; whoever looks again before so many others came misses none.
LATEST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session that was answered and has no event; `path` is its transcript's."""

    id: str
    path: str
    started_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unheard:
    """One that is noted: since when, and the row key of the latest event then; `path` is "" when it was purged."""

    id: str
    path: str
    at: str
    after_event: int


def live(rows: Rows, *, began: str, lively: str, answered: str, now: str) -> list[Session]:
    """The sessions of people that began after `began`, went on since `lively`, and that no hook reported.

    An assistant has answered in them before `answered`; what is told of a time after `now` is not gone by.
    """
    found = rows.all(
        "select s.id, s.path, s.started_at from sessions s where s.parent = '' and s.path <> '' "
        "and s.started_at >= :began and s.last_at >= :lively and s.last_at <= :now "
        "and not exists (select 1 from events e where e.session_id = s.id) "
        "and not exists (select 1 from unheard u where u.session_id = s.id) "
        "and exists (select 1 from session_turn p join turns t on t.seq = p.turn_seq "
        "join session_turn q on q.session_seq = p.session_seq and q.ordinal > p.ordinal "
        "join turns a on a.seq = q.turn_seq where p.session_seq = s.seq and t.kind in ('user', 'relayed') "
        "and a.kind = 'assistant' and a.at <= :answered) order by s.started_at, s.seq",
        began=began,
        lively=lively,
        answered=answered,
        now=now,
    )
    return [Session(id=a, path=b, started_at=c) for a, b, c in found]


def noted(rows: Rows) -> list[Unheard]:
    """Those that are noted, the first first."""
    found = rows.all(
        "select u.session_id, coalesce(s.path, ''), u.at, u.after_event from unheard u "
        "left join sessions s on s.id = u.session_id order by u.at, u.session_id"
    )
    return [Unheard(id=a, path=b, at=c, after_event=d) for a, b, c, d in found]


def latest_events(rows: Rows) -> list[tuple[int, str, str]]:
    """(row key, time, its session's transcript or "") of the latest events: those of a few sessions."""
    found = rows.all(
        "select e.seq, e.at, coalesce(s.path, '') from events e left join sessions s on s.id = e.session_id "
        "where e.seq > :after",
        after=int(rows.value("select coalesce(max(seq), 0) from events")) - LATEST,
    )
    return [(int(key), str(at), str(path)) for key, at, path in found]


def note(rows: Rows, sessions: Sequence[str], *, at: str) -> None:
    """Notes sessions that nobody reported until now."""
    for session in sessions:
        rows.run(
            "insert into unheard (session_id, at, after_event) "
            "select :session, :at, coalesce(max(seq), 0) from events where true on conflict (session_id) do nothing",
            session=session,
            at=at,
        )


def drop(rows: Rows, sessions: Sequence[str]) -> None:
    """Takes the notes on these sessions away."""
    for session in sessions:
        rows.run("delete from unheard where session_id = :session", session=session)
