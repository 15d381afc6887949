"""The scene of a memory, as one phrase, by the turn that shows it; to note the same again changes nothing."""

from __future__ import annotations

from typing import NamedTuple

from csmd.store.sqlite import Rows


class Stated(NamedTuple):
    """A memory of a project as the first turn of its own session states it; `turn` is what that turn says."""

    memory_seq: int
    text: str
    authority: str
    uuid: str
    ordinal: int
    turn: str
    gate: str


class Changed(NamedTuple):
    """A call that wrote to a file: `anew` wrote the whole of it, `given` is the beginning of its input."""

    uuid: str
    at: str
    ordinal: int
    anew: bool
    given: str


def stated_in(rows: Rows, session_seq: int, session_id: str, *, upto: int) -> list[Stated]:
    """The memories that a session was the first to state, each by the first turn that does, of all that was said and not counted."""
    found = rows.all(
        "select m.seq, m.text, m.authority, p.uuid, st.ordinal, t.text, m.gate from memories m "
        "join provenance p on p.memory_seq = m.seq and p.role = 'states' and p.session_id = m.session_id "
        "join turns t on t.uuid = p.uuid "
        "join session_turn st on st.session_seq = :session and st.turn_seq = t.seq "
        "where m.session_id = :id and m.twin_of = 0 and m.origin = 'stated' and m.gate <> 'relational' and m.scope = 'project' "
        "and st.ordinal <= :upto order by st.ordinal desc, m.seq",
        session=session_seq,
        id=session_id,
        upto=upto,
    )
    return list({int(row[0]): Stated(*row) for row in found}.values())


def changes(rows: Rows, session_seq: int, *, upto: int, most: int, characters: int) -> list[Changed]:
    """The last calls of a session that wrote to a file, in order."""
    found = rows.all(
        "select t.uuid, t.at, st.ordinal, t.tool_name, substr(t.text, 1, :characters) from session_turn st "
        "join turns t on t.seq = st.turn_seq where st.session_seq = :session and st.ordinal <= :upto and t.kind = 'tool_call' "
        "and t.tool_name in ('Edit', 'MultiEdit', 'Write') and t.source = 'transcript' order by st.ordinal desc limit :most",
        session=session_seq,
        upto=upto,
        most=most,
        characters=characters,
    )
    return [
        Changed(str(uuid), str(at), int(ordinal), tool == "Write", str(given))
        for uuid, at, ordinal, tool, given in reversed(found)
    ]


def prompts(rows: Rows, session_seq: int, *, upto: int) -> list[tuple[str, int, str]]:
    """(uuid, ordinal, text) of all that an assistant answers to, in order; "" for the text of what no user typed."""
    found = rows.all(
        "select t.uuid, st.ordinal, case when t.kind = 'user' then t.text else '' end from session_turn st "
        "join turns t on t.seq = st.turn_seq where st.session_seq = :session and st.ordinal <= :upto "
        "and t.kind in ('user', 'relayed', 'command', 'notification') and t.source = 'transcript' order by st.ordinal",
        session=session_seq,
        upto=upto,
    )
    return [(str(uuid), int(ordinal), str(said)) for uuid, ordinal, said in found]


def personal(rows: Rows, session_seq: int) -> frozenset[str]:
    """The turns of a session that say something of people."""
    found = rows.all(
        "select distinct t.uuid from session_turn st join statements x on x.turn_seq = st.turn_seq "
        "join turns t on t.seq = st.turn_seq where st.session_seq = :session and x.gate = 'relational'",
        session=session_seq,
    )
    return frozenset(str(uuid) for (uuid,) in found)


def places(rows: Rows, session_seq: int) -> tuple[int, tuple[str, ...]]:
    """The project of a session, and the directories whose files are its own."""
    found = rows.one(
        "select s.project_seq, p.root, s.cwd from sessions s join projects p on p.seq = s.project_seq where s.seq = :session",
        session=session_seq,
    )
    return (int(found[0]), (str(found[1]), str(found[2]))) if found else (0, ())


def note(rows: Rows, memory_seq: int, *, uuid: str, text: str) -> None:
    """Notes the scene of a memory; "" for none."""
    if not text:
        rows.run("delete from scenes where memory_seq = :memory", memory=memory_seq)
        return
    rows.run(
        "insert into scenes (memory_seq, uuid, text) values (:memory, :uuid, :text) "
        "on conflict (memory_seq) do update set uuid = excluded.uuid, text = excluded.text",
        memory=memory_seq,
        uuid=uuid,
        text=text,
    )


def known(rows: Rows, session_id: str) -> dict[int, str]:
    """The scenes of the memories that a session was the first to state, by memory."""
    found = rows.all(
        "select s.memory_seq, s.text from scenes s join memories m on m.seq = s.memory_seq where m.session_id = :id",
        id=session_id,
    )
    return {int(seq): str(text) for seq, text in found}


def forget_turn(rows: Rows, uuid: str) -> None:
    """Takes out what a turn showed."""
    rows.run("delete from scenes where uuid = :uuid", uuid=uuid)
