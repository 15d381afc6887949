"""In whose words a memory was asked for and what was refuted, each by the turn that says it; and how far this stage is.

Every write may come twice and changes nothing then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from csmd.store import failures, scenes
from csmd.store.cursors import Behind
from csmd.store.sqlite import Rows

STAGE = "gotchas"
#: By session: the last memory that there was when its memories were related.
RELATED = "gotchas related"
#: A tool's answer stands at most so many turns behind its call.
CALL_BEFORE = 200


class Row(NamedTuple):
    """A turn as this stage reads it."""

    seq: int
    uuid: str
    kind: str
    text: str
    at: str
    ordinal: int
    tool_name: str
    tool_id: str


class Said(NamedTuple):
    """A memory as a turn of a session states it."""

    memory_seq: int
    memory_id: str
    text: str
    category: str
    authority: str
    uuid: str
    ordinal: int


# --- what the stage goes through


def behind(rows: Rows, *, after: str) -> list[Behind]:
    """The sessions that the stage `after` has come further with than this one, the oldest first; `turns` is how far."""
    found = rows.all(
        "select s.seq, s.id, coalesce(c.position, 0), d.position, s.last_at, s.settled_at, s.started_at, s.path "
        "from cursors d join sessions s on s.seq = cast(d.subject as integer) "
        "left join cursors c on c.stage = :stage and c.subject = d.subject "
        "where d.stage = :after and d.position > coalesce(c.position, 0) order by s.started_at, s.seq",
        stage=STAGE,
        after=after,
    )
    return [
        Behind(session_seq=a, session_id=b, position=c, turns=d, last_at=e, settled_at=f, started_at=g, path=h)
        for a, b, c, d, e, f, g, h in found
    ]


def turns(rows: Rows, session_seq: int, *, after: int, upto: int, spoken: bool = False) -> list[Row]:
    """A session's turns past an ordinal up to another one, those that its transcript holds; `spoken`: no tool traffic."""
    kinds = "('user', 'relayed', 'assistant', 'summary')"
    wanted = f"and t.kind in {kinds}" if spoken else ""
    return [
        Row(*row)
        for row in rows.all(
            "select t.seq, t.uuid, t.kind, t.text, t.at, st.ordinal, t.tool_name, t.tool_id from session_turn st "  # noqa: S608
            "join turns t on t.seq = st.turn_seq where st.session_seq = :session and st.ordinal > :after "
            f"and st.ordinal <= :upto and t.source = 'transcript' {wanted} order by st.ordinal",
            session=session_seq,
            after=after,
            upto=upto,
        )
    ]


def edits(rows: Rows, session_seq: int, *, after: int, upto: int, most: int) -> list[tuple[str, str, int, str]]:
    """(uuid, time, ordinal, input) of the last calls that wrote to a file, past an ordinal up to another one."""
    found = rows.all(
        "select t.uuid, t.at, st.ordinal, t.text from session_turn st join turns t on t.seq = st.turn_seq "
        "where st.session_seq = :session and st.ordinal > :after and st.ordinal <= :upto and t.kind = 'tool_call' "
        "and t.tool_name in ('Edit', 'MultiEdit', 'Write') and t.source = 'transcript' order by st.ordinal desc limit :most",
        session=session_seq,
        after=after,
        upto=upto,
        most=most,
    )
    return [(str(uuid), str(at), int(ordinal), str(given)) for uuid, at, ordinal, given in reversed(found)]


def said_in(rows: Rows, session_seq: int, session_id: str) -> list[Said]:
    """The memories that turns of a session state or confirm, in the order of the turns."""
    return [
        Said(*row)
        for row in rows.all(
            "select m.seq, m.id, m.text, m.category, m.authority, p.uuid, st.ordinal from provenance p "
            "join memories m on m.seq = p.memory_seq join turns t on t.uuid = p.uuid "
            "join session_turn st on st.session_seq = :session and st.turn_seq = t.seq "
            "where p.session_id = :id and m.twin_of = 0 order by st.ordinal, m.seq",
            session=session_seq,
            id=session_id,
        )
    ]


def beside(rows: Rows, session_seq: int) -> frozenset[tuple[int, str]]:
    """(memory, turn's uuid) where a turn of a session is a memory's question or answer only and does not state it."""
    found = rows.all(
        "select p.memory_seq, p.uuid from provenance p join sessions s on s.id = p.session_id "
        "where s.seq = :session and p.role = 'beside'",
        session=session_seq,
    )
    return frozenset((int(memory), str(uuid)) for memory, uuid in found)


def memories_after(rows: Rows, seq: int, *, limit: int) -> list[tuple[int, str]]:
    """(memory, session id) past a memory's row key: which sessions have to be looked at again."""
    found = rows.all("select seq from memories where seq > :seq order by seq limit :limit", seq=seq, limit=limit)
    return [
        (int(memory), str(session))
        for (memory,) in found
        for (session,) in rows.all(
            "select distinct session_id from provenance where memory_seq = :memory order by 1", memory=memory
        )
    ]


def last_memory(rows: Rows) -> int:
    """The row key of the newest memory, 0 for none."""
    return int(rows.value("select max(seq) from memories") or 0)


def session_of(rows: Rows, ident: str) -> tuple[int, int, int] | None:
    """(row key, how far the stage has come with it, the last memory it was related with) of a session."""
    found = rows.one(
        "select s.seq, coalesce(c.position, 0), coalesce(m.position, 0) from sessions s "
        "left join cursors c on c.stage = :stage and c.subject = cast(s.seq as text) "
        "left join cursors m on m.stage = :related and m.subject = cast(s.seq as text) where s.id = :id",
        stage=STAGE,
        related=RELATED,
        id=ident,
    )
    return None if found is None else (int(found[0]), int(found[1]), int(found[2]))


def path_of(rows: Rows, session_seq: int) -> str:
    """The transcript that a session was read from, "" for none."""
    return str(rows.value("select path from sessions where seq = :seq", seq=session_seq) or "")


def path_of_turn(rows: Rows, turn_seq: int) -> str:
    """The transcript that a turn was read from, "" for none."""
    return path_of(rows, int(rows.value("select session_seq from turns where seq = :seq", seq=turn_seq) or 0))


# --- symptoms and refutations


def projects_of(rows: Rows, session_seq: int) -> list[int]:
    """The projects that a session's memories may stand in: its own."""
    return [
        int(seq) for (seq,) in rows.all("select project_seq from sessions where seq = :session", session=session_seq)
    ]


def says_in(rows: Rows, memory_seq: int, session_seq: int) -> bool:
    """Whether a session states or confirms a memory."""
    found = rows.value(
        "select 1 from provenance p join sessions s on s.id = p.session_id "
        "where p.memory_seq = :memory and s.seq = :session limit 1",
        memory=memory_seq,
        session=session_seq,
    )
    return found is not None


def is_listed(rows: Rows, turn_seq: int, session_seq: int) -> bool:
    """Whether a turn is one of a session's."""
    found = rows.value(
        "select 1 from session_turn where session_seq = :session and turn_seq = :turn",
        session=session_seq,
        turn=turn_seq,
    )
    return found is not None


def lowered(rows: Rows, memory_seq: int) -> float:
    """By how much what speaks against a memory has lowered it."""
    return float(
        rows.value("select max(lowered) from refutations where memory_seq = :memory", memory=memory_seq) or 0.0
    )


def add_symptom(rows: Rows, memory: int, *, uuid: str, at: str, text: str, fingerprint: str) -> bool:
    """Notes in which words somebody reported what a memory explains; False when that is known."""
    new = rows.all(
        "insert into symptoms (memory_seq, uuid, at, text, fingerprint) values (:memory, :uuid, :at, :text, :print) "
        "on conflict (memory_seq, uuid) do nothing returning seq",
        memory=memory,
        uuid=uuid,
        at=at,
        text=text,
        print=fingerprint,
    )
    return bool(new)


def symptoms_of(rows: Rows, memory_seqs: Sequence[int]) -> dict[int, list[tuple[str, str, str]]]:
    """(turn's uuid, time, words) of what was reported, by memory."""
    found: dict[int, list[tuple[str, str, str]]] = {}
    keys = ", ".join(str(int(seq)) for seq in memory_seqs)
    for memory, uuid, at, said in rows.all(
        f"select memory_seq, uuid, at, text from symptoms where memory_seq in ({keys}) order by memory_seq, at, uuid"  # noqa: S608
    ):
        found.setdefault(int(memory), []).append((str(uuid), str(at), str(said)))
    return found


def add_refutation(rows: Rows, memory: int, *, uuid: str, at: str, reason: str, lowered: float) -> bool:
    """Notes what speaks against a memory; False when that is known."""
    new = rows.all(
        "insert into refutations (memory_seq, uuid, at, reason, lowered) values (:memory, :uuid, :at, :reason, :lowered) "
        "on conflict (memory_seq, uuid) do nothing returning memory_seq",
        memory=memory,
        uuid=uuid,
        at=at,
        reason=reason,
        lowered=lowered,
    )
    return bool(new)


def refutations_of(rows: Rows, memory_seq: int) -> list[tuple[str, str, str]]:
    """(turn's uuid, time, reason) of what speaks against a memory."""
    found = rows.all(
        "select uuid, at, reason from refutations where memory_seq = :memory order by at, uuid", memory=memory_seq
    )
    return [(str(uuid), str(at), str(reason)) for uuid, at, reason in found]


def forget_turn(rows: Rows, seq: int, uuid: str) -> None:
    """Takes out what was made of a turn."""
    failures.forget_turn(rows, seq, uuid)
    rows.run("delete from symptoms where uuid = :uuid", uuid=uuid)
    rows.run("delete from refutations where uuid = :uuid", uuid=uuid)
    scenes.forget_turn(rows, uuid)


def forget_session(rows: Rows, session_seq: int) -> None:
    """Takes out what was made of a session's turns."""
    for seq, uuid in rows.all(
        "select t.seq, t.uuid from session_turn st join turns t on t.seq = st.turn_seq where st.session_seq = :session",
        session=session_seq,
    ):
        forget_turn(rows, int(seq), str(uuid))
