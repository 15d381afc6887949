"""The turns that `csmd doctor` sends: stored and indexed like any turn, counted nowhere, and gone without a trace.

They stand in sessions of a host of their own, by which everything that counts or distils knows them. What is removed
here says nothing of anybody's, so it needs neither tombstone nor a rewritten file.
"""

from __future__ import annotations

from csmd.model import Turn
from csmd.store import journal, vectors
from csmd.store.sqlite import Rows

HOST = "probe"
#: The scope "everywhere": a marker belongs to no project and makes none.
NO_PROJECT = 0


def add(rows: Rows, turn: Turn, *, text_hash: str) -> bool:
    """Stores a marker's turn; False when it is known."""
    if rows.value("select 1 from turns where uuid = :uuid", uuid=turn.uuid) is not None:
        return False
    session = journal.ensure_session(rows, turn, host=HOST, project=NO_PROJECT, path="")
    seq = journal.insert_turn(rows, turn, session.seq, text_hash=text_hash, project=NO_PROJECT, source=HOST)
    journal.list_turn(rows, session.seq, seq, turn)
    return True


def is_there(rows: Rows, session_id: str) -> bool:
    """Whether a marker's session is stored."""
    return rows.value("select 1 from sessions where id = :id and host = :host", id=session_id, host=HOST) is not None


def remove(rows: Rows, *, session_id: str = "", before: str = "") -> int:
    """Takes away one marker's session, or those that began before a time; how many turns went."""
    gone = 0
    for (session,) in rows.all(
        "select seq from sessions where host = 'probe' and (id = :id or started_at < :before)",
        id=session_id,
        before=before,
    ):
        for (turn,) in rows.all("select seq from turns where session_seq = :session", session=session):
            vectors.delete_for(rows, "turn", turn)
            rows.run("delete from turns where seq = :seq", seq=turn)
            gone += 1
        rows.run("delete from sessions where seq = :session", session=session)
    return gone
