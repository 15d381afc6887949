"""What hooks report before the transcript tells it: provisional turns, and how the wait for their lines ends."""

from __future__ import annotations

from collections.abc import Sequence

from csmd import text
from csmd.model import Turn, TurnKind
from csmd.store import journal, projects
from csmd.store import room as room_of
from csmd.store.sqlite import Rows

#: What stands before an event's id in the uuid of the turn it reported.
HOOK_UUID = "hook:"
#: Event -> what the transcript may call what it reported: a prompt that no person wrote is a notification there.
_KINDS: dict[str, tuple[TurnKind, ...]] = {"prompt": journal.SUBMITTED}
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
    room: int = room_of.EVERYTHING,
) -> bool:
    """Stores a hook's turn unless the transcript has it already: its k-th event matches the k-th row of that text."""
    session = journal.ensure_session(rows, turn, host=host, project=project, path=path, directory=directory)
    reported = rows.value(
        "select count(*) from events where stream = :stream and text_hash = :hash and name = :event",
        stream=turn.stream,
        hash=text_hash,
        event=event,
    )
    stored = rows.value(
        # In this order: few turns say the same, a session has thousands.
        "select count(*) from turns t cross join session_turn st "
        "where t.text_hash = :hash and (t.kind = :kind or (:kind = 'user' and t.kind = 'relayed')) and st.turn_seq = t.seq and st.session_seq = :session",
        session=session.seq,
        hash=text_hash,
        kind=turn.kind,
    )
    if reported <= stored:
        return False
    turn, size = room_of.fitting(rows, turn, session.bytes, room)
    seq = journal.insert_turn(
        rows, turn, session.seq, text_hash=text_hash, project=project, source="hook", directory=directory
    )
    journal.list_turn(rows, session.seq, seq, turn, grown=size)
    projects.touch(rows, project, turn.at)
    return True


def over(rows: Rows, *, before: str, after: tuple[str, int], most: int) -> tuple[list[int], tuple[str, int]]:
    """The turns that the transcript has passed by, among the next `most` behind a place, and the place to go on from.

    Looks at provisional turns older than `before`; the place is FIRST again behind the last. A turn is a double when the
    transcript has as many of its text as hooks reported: what was said twice and is there once was said twice. One
    without a double is kept when its session has ended since or lists later transcript turns; those may be stored under
    another session, its fork.
    """
    waiting = rows.all(
        "select seq, uuid, session_seq, text_hash, at from turns where source = 'hook' and provisional = 1 "
        "and at < :before and (at > :at or (at = :at and seq > :seq)) order by at, seq limit :most",
        before=before,
        at=after[0],
        seq=after[1],
        most=most,
    )
    found: list[int] = []
    silent: set[int] = set()  # nothing is later than a turn: then nothing is later than a later one
    for seq, uuid, session, text_hash, at in waiting:
        if _double(rows, str(uuid), session, text_hash) is not None or (
            session not in silent and _went_on(rows, session, after=at)
        ):
            found.append(int(seq))
        else:
            silent.add(session)
    return found, (str(waiting[-1][4]), int(waiting[-1][0])) if len(waiting) == most else FIRST


def close_provisional(rows: Rows, seqs: Sequence[int]) -> tuple[int, int]:
    """Ends the wait of turns that are `over`; (dropped as doubles, kept as hook-only)."""
    keys = ", ".join(str(int(seq)) for seq in seqs) or "0"
    dropped = kept = 0
    for seq, uuid, session, text_hash in rows.all(
        f"select seq, uuid, session_seq, text_hash from turns where seq in ({keys}) and provisional = 1 order by at, seq"  # noqa: S608
    ):
        double = _double(rows, str(uuid), session, text_hash)
        if double is None:
            rows.run("update turns set provisional = 0 where seq = :seq", seq=seq)
            kept += 1
        else:
            journal.merge(rows, int(seq), str(uuid), into=double[0], uuid=double[1])
            dropped += 1
    return dropped, kept


def _went_on(rows: Rows, session: int, *, after: str) -> bool:
    """Whether a session has a turn of its transcript later than a time, asked from its end, or has ended since."""
    later = rows.value(
        "select n.seq from session_turn st join turns n on n.seq = st.turn_seq where st.session_seq = :session "
        "and n.source = 'transcript' and n.at > :after order by st.ordinal desc limit 1",
        session=session,
        after=after,
    )
    ended = later or rows.value(
        "select e.seq from sessions s join events e on e.session_id = case when s.parent = '' then s.id else s.parent "
        "end and e.name = 'session_end' and e.at > :after where s.seq = :session limit 1",
        session=session,
        after=after,
    )
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
        (int(seq), str(of))
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
    for seq, of, message, said in rows.all(
        "select t.seq, t.uuid, t.message_id, t.text from session_turn st join turns t on t.seq = st.turn_seq "
        "where st.session_seq = :session and t.kind = 'assistant' and t.source = 'transcript' and t.message_id <> '' "
        "order by st.ordinal desc limit :most",
        session=session,
        most=LATEST_TURNS,
    ):
        messages.setdefault(str(message), []).insert(0, (int(seq), str(of), str(said)))
    return [
        parts[0][:2]
        for parts in reversed(messages.values())
        if len(parts) > 1 and _words("".join(said for *_, said in parts)) == whole
    ]


def _words(said: str) -> str:
    return "".join(text.normalise(said).split())


def settle(rows: Rows, session_id: str, *, at: str) -> None:
    """Notes that the assistant has finished its turn, or the session its life, at this time."""
    rows.run(
        "update sessions set settled_at = :at where (id = :id or parent = :id) and settled_at < :at",
        at=at,
        id=session_id,
    )
