"""The statements chosen from turns, before they become memories."""

from __future__ import annotations

from typing import NamedTuple

from csmd.conversation import StoredTurn
from csmd.knowledge import Provenance, Statement
from csmd.store import memories
from csmd.store.row_values import as_value, column_values
from csmd.store.sqlite import Rows
from csmd.vocabulary import Authority


def add_statement(rows: Rows, statement: Statement, turn: StoredTurn, *, session_seq: int, text_hash: str) -> bool:
    """Stores a statement under its turn; False if it is stored already."""
    of_turn = {"turn_seq": turn.seq, "session_seq": session_seq, "project_seq": turn.project_seq, "at": turn.at}
    return rows.insert(
        "statements", "on conflict do nothing", text_hash=text_hash, **of_turn, **column_values(statement)
    )


def list_statements_before(rows: Rows, session_seq: int, ordinal: int) -> list[tuple[str, Authority]]:
    """Returns the statements of a session's turns before an ordinal, with their authority, in order."""
    sql = """select x.text, x.authority from session_turn st join statements x on x.turn_seq = st.turn_seq
        where st.session_seq = :session and st.rewound = 0 and st.ordinal < :ordinal order by st.ordinal, x.seq"""
    return rows.all(sql, session=session_seq, ordinal=ordinal)


class StoredStatement(NamedTuple):
    """A statement with its row key and its turn."""

    seq: int
    statement: Statement
    uuid: str
    session_id: str
    at: str
    project_seq: int


def list_statements_after(rows: Rows, seq: int, *, limit: int) -> list[StoredStatement]:
    """Returns the statements past a row key, in order."""
    sql = """select x.seq, t.uuid, s.id, x.at, x.project_seq, x.text, x.gate,
        x.category, x.confidence, x.authority, x.reasons, x.also from statements x join turns t on t.seq = x.turn_seq
        join sessions s on s.seq = x.session_seq where x.seq > :seq order by x.seq limit :limit"""
    return [
        StoredStatement(seq, as_value(Statement, columns), uuid, session_id, at, project_seq)
        for seq, uuid, session_id, at, project_seq, *columns in rows.all(sql, seq=seq, limit=limit)
    ]


def cite_context_turn(rows: Rows, turn: StoredTurn, context: StoredTurn, *, text_hash: str) -> None:
    """Records that the turn `context` is the other half of a stored statement and of its memory."""
    sql = "update statements set also = :uuid where turn_seq = :turn and text_hash = :hash and also = ''"
    rows.run(sql, uuid=context.uuid, turn=turn.seq, hash=text_hash)
    source = Provenance(uuid=context.uuid, session_id=context.session_id, at=context.at, role="beside")
    sql = """select m.seq
        from provenance p join memories m on m.seq = p.memory_seq where p.uuid = :uuid and m.text_hash = :hash"""
    for seq in rows.column(sql, uuid=turn.uuid, hash=text_hash):
        memories.add_provenance(rows, seq, source)


def list_personal_turns(rows: Rows, session_seq: int) -> frozenset[str]:
    """Returns the turns of a session with statements about people."""
    sql = """select distinct t.uuid from session_turn st join statements x on x.turn_seq = st.turn_seq
        join turns t on t.seq = st.turn_seq where st.session_seq = :session and x.gate = 'relational'"""
    return rows.distinct(sql, session=session_seq)
