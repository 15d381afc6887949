"""Provisional turns: reported by a hook, not yet in their transcript."""

from __future__ import annotations

from collections.abc import Sequence

from csmd.conversation import Turn
from csmd.store import projects, turns
from csmd.store.sqlite import Rows, in_keys
from csmd.text import tokens
from csmd.vocabulary import TurnKind

#: Prefix of an event's id in the uuid of the turn it reported.
HOOK_UUID = "hook:"
#: Event -> kinds of its turn in a transcript: a prompt that no person wrote is a notification there.
_KINDS: dict[str, tuple[TurnKind, ...]] = {"prompt": turns.SUBMITTED_KINDS}
#: The position at which reading waiting turns begins.
START = ("", 0)
#: Latest turns of the assistant in which a message of several lines is searched.
LATEST_TURNS = 300
_ANSWER_KINDS: tuple[TurnKind, ...] = ("assistant", "notification")


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
    room: int = turns.UNLIMITED_BYTES,
    waited: bool = False,
) -> bool:
    """Stores a hook's turn unless the transcript has it: its k-th event matches the k-th row of that text.

    A turn that `waited` in the spool is put in order by its time.
    """
    session = turns.ensure_session(rows, turn, host=host, project=project, path=path, directory=directory)
    sql = "select count(*) from events where stream = :stream and text_hash = :hash and name = :event"
    reported = rows.value(sql, stream=turn.stream, hash=text_hash, event=event)
    sql = """select count(*) from turns t cross join session_turn st where t.text_hash = :hash and (t.kind = :kind
        or (:kind = 'user' and t.kind = 'relayed')) and st.turn_seq = t.seq and st.session_seq = :session"""
    stored = rows.value(sql, session=session.seq, hash=text_hash, kind=turn.kind)
    if reported <= stored:
        return False
    turn, size = turns.fit_to_room(rows, turn, session.bytes, room)
    seq = turns.insert_turn(
        rows, turn, session.seq, text_hash=text_hash, project=project, source="hook", directory=directory
    )
    turns.list_turn(rows, session.seq, seq, turn, grown=size)
    if waited:
        turns.place_by_time(rows, session.seq, seq)
    projects.record_active_day(rows, project, turn.at)
    return True


def list_expired_provisional(
    rows: Rows, *, before: str, after: tuple[str, int], limit: int
) -> tuple[list[int], tuple[str, int]]:
    """Returns (the expired turns among the next `limit`, the next position, START after the last).

    Reads provisional turns older than `before`. A turn is a double if the transcript has as many of its text as hooks
    reported: one that is there only once may have been said twice. A turn without a double is kept once its session has
    ended or lists later transcript turns, which may be stored under its fork.
    """
    sql = """select seq, uuid, session_seq, text_hash, at from turns where source = 'hook'
        and provisional = 1 and at < :before and (at > :reported_at or (at = :reported_at and seq > :seq)) order by at, seq limit :limit"""
    waiting = rows.all(sql, before=before, reported_at=after[0], seq=after[1], limit=limit)
    expired: list[int] = []
    silent: set[int] = set()  # nothing is later than one turn, so nothing is later than a later one
    for seq, uuid, session, text_hash, reported_at in waiting:
        if _find_double(rows, uuid, session, text_hash) is not None or (
            session not in silent and _has_continued(rows, session, after=reported_at)
        ):
            expired.append(seq)
        else:
            silent.add(session)
    return expired, (waiting[-1][4], waiting[-1][0]) if len(waiting) == limit else START


def close_provisional(rows: Rows, seqs: Sequence[int]) -> tuple[int, int]:
    """Settles turns that are `list_expired_provisional`; returns (dropped as doubles, kept as hook-only)."""
    dropped = kept = 0
    for seq, uuid, session, text_hash in rows.all(
        f"""select seq, uuid, session_seq, text_hash
            from turns where {in_keys("seq", seqs)} and provisional = 1 order by at, seq"""  # noqa: S608
    ):
        double = _find_double(rows, uuid, session, text_hash)
        if double is None:
            kept += rows.update("turns", seq, provisional=0)
        else:
            turns.merge_double(rows, seq, uuid, into=double[0], uuid=double[1])
            dropped += 1
    return dropped, kept


def _has_continued(rows: Rows, session: int, *, after: str) -> bool:
    """Whether a session has a transcript turn after a time, or has ended since."""
    sql = """select n.seq from session_turn st join turns n on n.seq = st.turn_seq
        where st.session_seq = :session and n.source = 'transcript' and n.at > :after order by st.ordinal desc limit 1"""
    later = rows.value(sql, session=session, after=after)
    sql = """select e.seq from sessions s join events e on e.session_id = case when s.parent = '' then s.id
        else s.parent end and e.name = 'session_end' and e.at > :after where s.seq = :session limit 1"""
    ended = later or rows.value(sql, session=session, after=after)
    return ended is not None


def _find_double(rows: Rows, uuid: str, session: int, text_hash: str) -> tuple[int, str] | None:
    """Returns (row key, uuid) of the transcript's turn that a hook's turn is a double of; None if none is left."""
    sql = """select e.name, count(*) from events own join events e on e.stream = own.stream
        and e.text_hash = own.text_hash and e.name = own.name where own.id = :event group by e.name"""
    reported = rows.first(sql, event=uuid.removeprefix(HOOK_UUID))
    if reported is None:
        return None
    kinds = _KINDS.get(reported[0], _ANSWER_KINDS)
    sql = """select t.seq, t.uuid, t.kind from turns t cross join session_turn st where t.text_hash = :hash
        and t.source = 'transcript' and st.turn_seq = t.seq and st.session_seq = :session order by st.ordinal"""
    stored = [
        (seq, turn_uuid) for seq, turn_uuid, kind in rows.all(sql, hash=text_hash, session=session) if kind in kinds
    ]
    if not stored and kinds is _ANSWER_KINDS:
        stored = _find_split_message(rows, uuid, session)
    return stored[reported[1] - 1] if len(stored) >= reported[1] else None


def _find_split_message(rows: Rows, uuid: str, session: int) -> list[tuple[int, str]]:
    """Returns the first turns of messages that say in several lines what a hook's turn says in one."""
    whole = _strip_spaces(rows.find("turns", "text", uuid=uuid))
    messages: dict[str, list[tuple[int, str, str]]] = {}
    sql = """select t.seq, t.uuid, t.message_id, t.text from session_turn st join turns t on t.seq = st.turn_seq
        where st.session_seq = :session and t.kind = 'assistant' and t.source = 'transcript' and t.message_id <> ''
        order by st.ordinal desc limit :most"""
    for seq, turn_uuid, message, text in rows.all(sql, session=session, most=LATEST_TURNS):
        messages.setdefault(message, []).insert(0, (seq, turn_uuid, text))
    return [
        parts[0][:2]
        for parts in reversed(messages.values())
        if len(parts) > 1 and _strip_spaces("".join(text for *_, text in parts)) == whole
    ]


def _strip_spaces(text: str) -> str:
    return "".join(tokens.normalise(text).split())


def record_settled(rows: Rows, session_id: str, *, at: str) -> None:
    """Records that the assistant finished its turn, or the session ended, at this time."""
    sql = "update sessions set settled_at = :at where (id = :id or parent = :id) and settled_at < :at"
    rows.run(sql, at=at, id=session_id)
