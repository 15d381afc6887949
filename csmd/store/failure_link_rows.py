"""Reads for linking failures with the memories that explain them."""

from __future__ import annotations

from typing import NamedTuple

from csmd.conversation import StatedMemory, TranscriptTurn
from csmd.store.sqlite import Rows

GOTCHA_STAGE = "gotchas"
#: The stage whose cursor is, by session, the newest memory when its memories were related.
RELATED_STAGE = "gotchas related"
#: Most turns between a tool's call and its result.
MAX_CALL_DISTANCE = 200


def read_turns(rows: Rows, session_seq: int, *, after: int, until: int, spoken: bool = False) -> list[TranscriptTurn]:
    """Returns the transcript turns with `after` < ordinal <= `until`; `spoken` excludes tool calls and results."""
    sql = """select t.seq, t.uuid, t.kind, t.text, t.at, st.ordinal, t.tool_name, t.tool_id
        from session_turn st join turns t on t.seq = st.turn_seq
        where st.session_seq = :session and st.ordinal > :after and st.ordinal <= :until and t.source = 'transcript'
        and (:spoken = 0 or t.kind in ('user', 'relayed', 'assistant', 'summary')) order by st.ordinal"""
    return rows.read(TranscriptTurn, sql, session=session_seq, after=after, until=until, spoken=int(spoken))


def list_stated_memories(rows: Rows, session_seq: int, session_id: str) -> list[StatedMemory]:
    """Returns the memories that a session's turns state or confirm, in the order of the turns."""
    sql = """select m.seq, m.id, m.text, m.category, m.authority, p.uuid, st.ordinal from provenance p join memories m
        on m.seq = p.memory_seq join turns t on t.uuid = p.uuid join session_turn st on st.session_seq = :session
        and st.turn_seq = t.seq where p.session_id = :id and m.twin_of = 0 order by st.ordinal, m.seq"""
    return rows.read(StatedMemory, sql, session=session_seq, id=session_id)


def list_context_citations(rows: Rows, session_seq: int) -> frozenset[tuple[int, str]]:
    """Returns (memory, uuid) of a session's turns that are only a memory's question or answer."""
    sql = """select p.memory_seq, p.uuid
        from provenance p join sessions s on s.id = p.session_id where s.seq = :session and p.role = 'beside'"""
    citations = rows.all(sql, session=session_seq)
    return frozenset(citations)


def list_memories_after(rows: Rows, seq: int, *, limit: int) -> list[tuple[int, str]]:
    """Returns (memory, session id) past a memory's row key: the sessions to read again."""
    sql = """select distinct memory_seq, session_id from provenance where memory_seq in (select seq
        from memories where seq > :seq order by seq limit :limit) order by 1, 2"""
    return rows.all(sql, seq=seq, limit=limit)


def find_last_memory(rows: Rows) -> int:
    """Returns the row key of the newest memory; 0 for none."""
    return rows.number("select max(seq) from memories")


class SessionProgress(NamedTuple):
    """How far a session was read: in turns, and to the last memory that it was related with."""

    session_seq: int
    turns: int
    related_memory: int


def find_progress(rows: Rows, session_id: str) -> SessionProgress | None:
    """Returns how far a session was read; None if it is not stored."""
    sql = """select s.seq, coalesce(c.position, 0), coalesce(m.position, 0)
        from sessions s left join cursors c on c.stage = 'gotchas' and c.subject = cast(s.seq as text)
        left join cursors m on m.stage = :related and m.subject = cast(s.seq as text) where s.id = :id"""
    return rows.read_one(SessionProgress, sql, related=RELATED_STAGE, id=session_id)


def find_transcript(rows: Rows, session_seq: int) -> str:
    """Returns the transcript of a session; "" if there is none."""
    return rows.text("select path from sessions where seq = :seq", seq=session_seq)


def find_transcript_of_turn(rows: Rows, turn_seq: int) -> str:
    """Returns the transcript of the session that stored a turn first; "" if there is none."""
    sql = "select s.path from turns t join sessions s on s.seq = t.session_seq where t.seq = :seq"
    return rows.text(sql, seq=turn_seq)


def read_project(rows: Rows, session_seq: int) -> int:
    """Returns the project of a session."""
    return rows.number("select project_seq from sessions where seq = :seq", seq=session_seq)


def is_stated_in(rows: Rows, memory_seq: int, session_seq: int) -> bool:
    """Whether a session states or confirms a memory."""
    sql = """select 1 from provenance p
        join sessions s on s.id = p.session_id where p.memory_seq = :memory and s.seq = :session limit 1"""
    return rows.exists(sql, memory=memory_seq, session=session_seq)


def is_listed(rows: Rows, turn_seq: int, session_seq: int) -> bool:
    """Whether a session lists a turn."""
    return rows.has("session_turn", session_seq=session_seq, turn_seq=turn_seq)
