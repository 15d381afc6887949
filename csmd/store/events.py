"""Hook events as hashes, provisional turns, probes, reporting clients."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from csmd.store import projects, turns
from csmd.store.sqlite import Rows, in_keys
from csmd.text import tokens
from csmd.values import Event, Turn
from csmd.vocabulary import TurnKind

#: Two reports of one event come at most so many seconds apart.
TWICE_S = 2.0


def record(rows: Rows, event: Event, *, text_hash: str, payload_hash: str) -> bool:
    """Notes a hook's event; False when it is known: by its id, or as the same report from a second command.

    A second command (a plugin's beside the settings') reports the same payload within 2 s, and
    nothing else happens in the session between the two.
    """
    if _reported_twice(rows, event, payload_hash):
        return False
    reported = {name: getattr(event, name) for name in ("id", "host", "name", "session_id", "source", "at")}
    stream = f"{event.session_id}/{event.agent_id}" if event.agent_id else event.session_id
    hashes = {"text_hash": text_hash, "payload_hash": payload_hash}
    return rows.insert("events", "on conflict (id) do nothing", stream=stream, **hashes, **reported)


def _reported_twice(rows: Rows, event: Event, payload_hash: str) -> bool:
    sql = (
        "select at from events where session_id = :session and name = :name and payload_hash = :payload "
        "order by seq desc limit 5"
    )
    for at in rows.column(sql, session=event.session_id, name=event.name, payload=payload_hash):
        first, last = sorted((at, event.at))
        sql = "select count(*) from events where session_id = :session and name <> :name and at > :first and at < :last"
        between = rows.value(sql, session=event.session_id, name=event.name, first=first, last=last)
        if not between and (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds() <= TWICE_S:
            return True
    return False


def session_events_after(
    rows: Rows, names: Collection[str], *, after: int, limit: int
) -> tuple[int, int, list[tuple[int, str]]]:
    """(the last event past `after` that was looked at, how many were, (session, time) of those of known sessions with
    these names).
    """
    sql = (
        "select e.seq, coalesce(s.seq, 0), e.name, e.at from events e left join sessions s on s.id = e.session_id "
        "where e.seq > :after order by e.seq limit :limit"
    )
    found = rows.all(sql, after=after, limit=limit)
    named = [(session, at) for _, session, name, at in found if name in names and session]
    return (found[-1][0] if found else after), len(found), named


#: What stands before an event's id in the uuid of the turn it reported.
HOOK_UUID = "hook:"
#: Event -> what the transcript may call what it reported: a prompt that no person wrote is a notification there.
_KINDS: dict[str, tuple[TurnKind, ...]] = {"prompt": turns.SUBMITTED}
#: Where looking at those that wait begins.
FIRST = ("", 0)
#: Among so many turns of the assistant's a message is looked for that stands in several lines.
LATEST_TURNS = 300
_KINDS_OF_ANSWERS: tuple[TurnKind, ...] = ("assistant", "notification")


def add_provisional(
    rows: Rows,
    turn: Turn,
    *,
    event: str,
    text_hash: str,
    host: str,
    project: int,
    path: str,
    directory: int = 0,
    room: int = turns.EVERYTHING,
    waited: bool = False,
) -> bool:
    """Stores a hook's turn, one that has `waited` where it happened, unless the transcript has it already: its k-th event matches the k-th row of that text."""
    session = turns.ensure_session(rows, turn, host=host, project=project, path=path, directory=directory)
    sql = "select count(*) from events where stream = :stream and text_hash = :hash and name = :event"
    reported = rows.value(sql, stream=turn.stream, hash=text_hash, event=event)
    sql = (
        "select count(*) from turns t cross join session_turn st "
        "where t.text_hash = :hash and (t.kind = :kind or (:kind = 'user' and t.kind = 'relayed')) and st.turn_seq = t.seq and st.session_seq = :session"
    )
    stored = rows.value(sql, session=session.seq, hash=text_hash, kind=turn.kind)
    if reported <= stored:
        return False
    turn, size = turns.fit_to_room(rows, turn, session.bytes, room)
    seq = turns.insert_turn(
        rows, turn, session.seq, text_hash=text_hash, project=project, source="hook", directory=directory
    )
    turns.list_turn(rows, session.seq, seq, turn, grown=size)
    if waited:
        turns.put_in_time(rows, session.seq, seq)
    projects.touch(rows, project, turn.at)
    return True


def expired_provisional(
    rows: Rows, *, before: str, after: tuple[str, int], most: int
) -> tuple[list[int], tuple[str, int]]:
    """The turns that the transcript has passed by, among the next `most` behind a place, and the place to go on from.

    Looks at provisional turns older than `before`; the place is FIRST again behind the last. A turn is a double when the
    transcript has as many of its text as hooks reported: what was said twice and is there once was said twice. One
    without a double is kept when its session has ended since or lists later transcript turns; those may be stored under
    another session, its fork.
    """
    sql = (
        "select seq, uuid, session_seq, text_hash, at from turns where source = 'hook' and provisional = 1 "
        "and at < :before and (at > :at or (at = :at and seq > :seq)) order by at, seq limit :most"
    )
    waiting = rows.all(sql, before=before, at=after[0], seq=after[1], most=most)
    found: list[int] = []
    silent: set[int] = set()  # nothing is later than a turn: then nothing is later than a later one
    for seq, uuid, session, text_hash, at in waiting:
        if _double(rows, uuid, session, text_hash) is not None or (
            session not in silent and _went_on(rows, session, after=at)
        ):
            found.append(seq)
        else:
            silent.add(session)
    return found, (waiting[-1][4], waiting[-1][0]) if len(waiting) == most else FIRST


def close_provisional(rows: Rows, seqs: Sequence[int]) -> tuple[int, int]:
    """Ends the wait of turns that are `expired_provisional`; (dropped as doubles, kept as hook-only)."""
    dropped = kept = 0
    for seq, uuid, session, text_hash in rows.all(
        "select seq, uuid, session_seq, text_hash from turns "  # noqa: S608
        f"where {in_keys('seq', seqs)} and provisional = 1 order by at, seq"
    ):
        double = _double(rows, uuid, session, text_hash)
        if double is None:
            kept += rows.update("turns", seq, provisional=0)
        else:
            turns.merge(rows, seq, uuid, into=double[0], uuid=double[1])
            dropped += 1
    return dropped, kept


def _went_on(rows: Rows, session: int, *, after: str) -> bool:
    """Whether a session has a turn of its transcript later than a time, asked from its end, or has ended since."""
    sql = (
        "select n.seq from session_turn st join turns n on n.seq = st.turn_seq where st.session_seq = :session "
        "and n.source = 'transcript' and n.at > :after order by st.ordinal desc limit 1"
    )
    later = rows.value(sql, session=session, after=after)
    sql = (
        "select e.seq from sessions s join events e on e.session_id = case when s.parent = '' then s.id else s.parent "
        "end and e.name = 'session_end' and e.at > :after where s.seq = :session limit 1"
    )
    ended = later or rows.value(sql, session=session, after=after)
    return ended is not None


def _double(rows: Rows, uuid: str, session: int, text_hash: str) -> tuple[int, str] | None:
    """(row key, uuid) of the transcript's turn that a hook's turn is the double of; None when it has none left."""
    reported = rows.one(
        "select e.name, count(*) from events own join events e on e.stream = own.stream "
        "and e.text_hash = own.text_hash and e.name = own.name where own.id = :event group by e.name",
        event=uuid.removeprefix(HOOK_UUID),
    )
    if reported is None:
        return None
    kinds = _KINDS.get(reported[0], _KINDS_OF_ANSWERS)
    stored = [
        (seq, of)
        for seq, of, kind in rows.all(
            "select t.seq, t.uuid, t.kind from turns t cross join session_turn st where t.text_hash = :hash "
            "and t.source = 'transcript' and st.turn_seq = t.seq and st.session_seq = :session order by st.ordinal",
            hash=text_hash,
            session=session,
        )
        if kind in kinds
    ]
    if not stored and kinds is _KINDS_OF_ANSWERS:
        stored = _in_parts(rows, uuid, session)
    return stored[reported[1] - 1] if len(stored) >= reported[1] else None


def _in_parts(rows: Rows, uuid: str, session: int) -> list[tuple[int, str]]:
    """The first turns of the messages that say in several lines what a hook's turn says in one."""
    whole = _words(rows.value("select text from turns where uuid = :uuid", uuid=uuid))
    messages: dict[str, list[tuple[int, str, str]]] = {}
    sql = (
        "select t.seq, t.uuid, t.message_id, t.text from session_turn st join turns t on t.seq = st.turn_seq "
        "where st.session_seq = :session and t.kind = 'assistant' and t.source = 'transcript' and t.message_id <> '' "
        "order by st.ordinal desc limit :most"
    )
    for seq, of, message, text in rows.all(sql, session=session, most=LATEST_TURNS):
        messages.setdefault(message, []).insert(0, (seq, of, text))
    return [
        parts[0][:2]
        for parts in reversed(messages.values())
        if len(parts) > 1 and _words("".join(text for *_, text in parts)) == whole
    ]


def _words(text: str) -> str:
    return "".join(tokens.normalise(text).split())


def settle_provisional(rows: Rows, session_id: str, *, at: str) -> None:
    """Notes that the assistant has finished its turn, or the session its life, at this time."""
    sql = "update sessions set settled_at = :at where (id = :id or parent = :id) and settled_at < :at"
    rows.run(sql, at=at, id=session_id)


PROBE_HOST = "probe"
#: The scope "everywhere": a marker belongs to no project and makes none.
NO_PROJECT = 0


def add_probe(rows: Rows, turn: Turn, *, text_hash: str) -> bool:
    """Stores a marker's turn; False when it is known."""
    if rows.exists("select 1 from turns where uuid = :uuid", uuid=turn.uuid):
        return False
    session = turns.ensure_session(rows, turn, host=PROBE_HOST, project=NO_PROJECT, path="")
    seq = turns.insert_turn(rows, turn, session.seq, text_hash=text_hash, project=NO_PROJECT, source=PROBE_HOST)
    turns.list_turn(rows, session.seq, seq, turn)
    return True


def has_probe(rows: Rows, session_id: str) -> bool:
    """Whether a marker's session is stored."""
    return rows.exists("select 1 from sessions where id = :id and host = 'probe'", id=session_id)


def remove_probe(rows: Rows, *, session_id: str = "", before: str = "") -> int:
    """Takes away one marker's session, or those that began before a time; how many turns went."""
    gone = 0
    sql = "select seq from sessions where host = 'probe' and (id = :id or started_at < :before)"
    for session in rows.column(sql, id=session_id, before=before):
        for turn in rows.column("select seq from turns where session_seq = :session", session=session):
            rows.delete("turns", seq=turn)
            gone += 1
        rows.delete("sessions", seq=session)
    return gone


#: Events that are looked at; whoever looks again before so many others came misses none.
LATEST = 200


class HookedSession(NamedTuple):
    """A session that was answered and has no event; `path` is its transcript's."""

    id: str
    path: str
    started_at: str


class UnreportedSession(NamedTuple):
    """One that is noted: since when, and the row key of the latest event then; `path` is "" when it was purged."""

    id: str
    path: str
    at: str
    after_event: int


def live_sessions(rows: Rows, *, began: str, lively: str, answered: str, now: str) -> list[HookedSession]:
    """The sessions of people that began after `began`, went on since `lively`, and that no hook reported.

    An assistant has answered in them before `answered`. Sessions whose last turn is after `now` are left out.
    """
    sql = (
        "select s.id, s.path, s.started_at from sessions s where s.parent = '' and s.path <> '' "
        "and s.started_at >= :began and s.last_at >= :lively and s.last_at <= :now "
        "and not exists (select 1 from events e where e.session_id = s.id) "
        "and s.unreported_at = '' "
        "and exists (select 1 from session_turn p join turns t on t.seq = p.turn_seq "
        "join session_turn q on q.session_seq = p.session_seq and q.ordinal > p.ordinal "
        "join turns a on a.seq = q.turn_seq where p.session_seq = s.seq and t.kind in ('user', 'relayed') "
        "and a.kind = 'assistant' and a.at <= :answered) order by s.started_at, s.seq"
    )
    return rows.read(HookedSession, sql, began=began, lively=lively, answered=answered, now=now)


def unreported_sessions(rows: Rows) -> list[UnreportedSession]:
    """The sessions marked as unreported, the earliest first."""
    return rows.read(
        UnreportedSession,
        "select id, path, unreported_at, unreported_after from sessions where unreported_at > '' "
        "order by unreported_at, id",
    )


def latest_events(rows: Rows, host: str) -> list[tuple[int, str, str]]:
    """(row key, time, its session's transcript or "") of an assistant's latest events: those of a few sessions."""
    return rows.all(
        "select e.seq, e.at, coalesce(s.path, '') from events e left join sessions s on s.id = e.session_id "
        "where e.host = :host and e.seq > (select coalesce(max(seq), 0) from events) - :latest",
        host=host,
        latest=LATEST,
    )


def note_unreported(rows: Rows, sessions: Sequence[str], *, at: str) -> None:
    """Marks sessions that no hook has reported until now."""
    sql = (
        "update sessions set unreported_at = :at, unreported_after = (select coalesce(max(seq), 0) from events) "
        "where id = :session and unreported_at = ''"
    )
    for session in sessions:
        rows.run(sql, session=session, at=at)


def drop_unreported(rows: Rows, sessions: Sequence[str]) -> None:
    """Removes these sessions' marks."""
    for session in sessions:
        rows.run("update sessions set unreported_at = '', unreported_after = 0 where id = :session", session=session)


MOST_VERSIONS = 40
MOST_DIRECTORIES = 8


def note_versions(rows: Rows, latest: Mapping[str, str]) -> None:
    """Remembers of each version the time of its latest line."""
    conflict = (
        "on conflict (version) do update set last_at = case when clients.last_at < excluded.last_at then excluded.last_at "
        "else clients.last_at end"
    )
    for version, at in latest.items():
        rows.insert("clients", conflict, version=version, last_at=at)
    rows.keep_newest("clients", "version", "last_at", most=MOST_VERSIONS)


def versions_since(rows: Rows, at: str) -> dict[str, str]:
    """The versions that wrote a line since a time, and when they last did, the latest first."""
    return dict(
        rows.all("select version, last_at from clients where last_at >= :at order by last_at desc, version", at=at)
    )


def note_elsewhere(rows: Rows, path: str, *, at: str) -> None:
    """Remembers a configuration directory that a hook named and that is not read."""
    rows.upsert("elsewhere", "path", path=path, last_at=at)
    rows.keep_newest("elsewhere", "path", "last_at", most=MOST_DIRECTORIES)


def elsewhere(rows: Rows) -> dict[str, str]:
    """The directories that hooks named and that were not read then, and when they last did, the latest first."""
    return dict(rows.all("select path, last_at from elsewhere order by last_at desc, path"))
