"""Probes: markers that csmd doctor sends through the hooks."""

from __future__ import annotations

from csmd.conversation import Turn
from csmd.store import turns
from csmd.store.sqlite import Rows

PROBE_HOST = "probe"
#: The scope "everywhere": a probe belongs to no project and creates none.
NO_PROJECT = 0


def add_probe(rows: Rows, turn: Turn, *, text_hash: str) -> bool:
    """Stores a probe's turn; False if it is known."""
    if rows.has("turns", uuid=turn.uuid):
        return False
    session = turns.ensure_session(rows, turn, host=PROBE_HOST, project=NO_PROJECT, path="")
    seq = turns.insert_turn(rows, turn, session.seq, text_hash=text_hash, project=NO_PROJECT, source=PROBE_HOST)
    turns.list_turn(rows, session.seq, seq, turn)
    return True


def has_probe(rows: Rows, session_id: str) -> bool:
    """Whether a probe's session is stored."""
    return rows.exists("select 1 from sessions where id = :id and host = 'probe'", id=session_id)


def remove_probe(rows: Rows, *, session_id: str = "", before: str = "") -> int:
    """Deletes a probe's session, or those that began before a time; returns how many turns were deleted."""
    deleted = 0
    sql = "select seq from sessions where host = 'probe' and (id = :id or started_at < :before)"
    for session in rows.column(sql, id=session_id, before=before):
        for turn in rows.column("select seq from turns where session_seq = :session", session=session):
            rows.delete("turns", seq=turn)
            deleted += 1
        rows.delete("sessions", seq=session)
    return deleted
