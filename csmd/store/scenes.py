"""The scene of a memory, as one phrase, by the turn that shows it; to note the same again changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from csmd.store.sqlite import Rows


class Stated(NamedTuple):
    """A memory as the first turn of its own session states it; `turn` is what that turn says."""

    memory_seq: int
    text: str
    authority: str
    uuid: str
    ordinal: int
    turn: str
    gate: str


def stated_in(rows: Rows, session_seq: int, session_id: str, *, upto: int) -> list[Stated]:
    """The memories that a session was the first to state, each by the first turn that does, of all that was said and not counted."""
    found = rows.all(
        "select m.seq, m.text, m.authority, p.uuid, st.ordinal, t.text, m.gate from memories m "
        "join provenance p on p.memory_seq = m.seq and p.role = 'states' and p.session_id = m.session_id "
        "join turns t on t.uuid = p.uuid "
        "join session_turn st on st.session_seq = :session and st.turn_seq = t.seq "
        "where m.session_id = :id and m.twin_of = 0 and m.origin = 'stated' and m.gate <> 'relational' "
        "and st.ordinal <= :upto order by st.ordinal desc, m.seq",
        session=session_seq,
        id=session_id,
        upto=upto,
    )
    return list({int(row[0]): Stated(*row) for row in found}.values())


def changes(
    rows: Rows, session_seq: int, *, upto: int, most: int, characters: int
) -> list[tuple[str, str, int, bool, str]]:
    """(uuid, time, ordinal, whether it wrote the whole file, the input's beginning) of a session's last changes to files, in order."""
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
        (str(uuid), str(at), int(ordinal), tool == "Write", str(given))
        for uuid, at, ordinal, tool, given in reversed(found)
    ]


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


def known(rows: Rows, memory_seqs: Sequence[int]) -> dict[int, str]:
    """The scenes that are noted, by memory."""
    keys = ", ".join(str(int(seq)) for seq in memory_seqs)
    found = rows.all(f"select memory_seq, text from scenes where memory_seq in ({keys})") if keys else []  # noqa: S608
    return {int(seq): str(text) for seq, text in found}


def forget_turn(rows: Rows, uuid: str) -> None:
    """Takes out what a turn showed."""
    rows.run("delete from scenes where uuid = :uuid", uuid=uuid)
