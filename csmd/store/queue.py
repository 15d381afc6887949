"""The host's queue of prompts: what was put in is a turn at once, and the line that says it again takes its place.

A queue's line has no uuid: it is known by its key (session, time and words), also after its turn got the uuid of the
line that said it again. A turn that still has its key for a uuid was not said again yet. What left the queue into a
turn under way is said again as such a prompt or, by older versions, not at all: never by a prompt's own line.
"""

from __future__ import annotations

from csmd.store.sqlite import Rows


def is_known(rows: Rows, key: str) -> bool:
    """Whether this line of the queue has been stored."""
    return rows.value("select 1 from queued where key = :key", key=key) is not None


def add(rows: Rows, key: str, *, session: int, turn: int, at: str) -> None:
    """Notes a prompt that was put into the queue."""
    rows.run(
        "insert into queued (key, session_seq, turn_seq, at) values (:key, :session, :turn, :at)",
        key=key,
        session=session,
        turn=turn,
        at=at,
    )


def leave(rows: Rows, session_id: str, *, at: str, text_hash: str, absorbed: bool, nth: int) -> None:
    """Notes that the oldest prompt left the queue, or the oldest of these words, as the `nth` (from 0) at that moment."""
    session = rows.value("select seq from sessions where id = :id", id=session_id)
    done = rows.value(
        "select count(*) from queued where session_seq = :session and left_at = :at", session=session, at=at
    )
    if session is None or done > nth:
        return
    found = rows.one(
        "select q.key from queued q join turns t on t.seq = q.turn_seq where q.session_seq = :session "
        "and q.left_at = '' and q.at <= :at "
        "order by case when t.text_hash = :hash then 0 else 1 end, q.at, q.key limit 1",
        session=session,
        at=at,
        hash=text_hash,
    )
    if found is not None:
        rows.run(
            "update queued set left_at = :at, absorbed = :absorbed where key = :key",
            at=at,
            absorbed=int(absorbed),
            key=found[0],
        )


def waiting(rows: Rows, *, session: int, text_hash: str, absorbed: bool) -> tuple[int, str] | None:
    """(row key, uuid) of the queued turn that a line of these words says again, or None: what left last, else first in.

    A line follows what it left the queue for at once; what left long before is not said again.
    """
    found = rows.one(
        "select t.seq, t.uuid from queued q join turns t on t.seq = q.turn_seq where q.session_seq = :session "
        "and t.uuid = q.key and t.text_hash = :hash and (q.left_at = '' or q.absorbed = :absorbed) "
        "order by q.left_at desc, q.at, q.key limit 1",
        session=session,
        hash=text_hash,
        absorbed=int(absorbed),
    )
    return None if found is None else (int(found[0]), str(found[1]))
