"""The scene of a memory: the file at hand or the question asked when it was said, and the turns that show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from csmd.conversation import SessionPrompt, StatedInTurn
from csmd.hosts.tool_calls import TEXT_WRITERS, WRITE
from csmd.store.sqlite import Rows, in_keys

_WRITERS = ", ".join(f"'{name}'" for name in sorted(TEXT_WRITERS))


class FileChange(NamedTuple):
    """A tool call that wrote to a file: `anew` if all of it, `input_start` is the beginning of the call's input."""

    uuid: str
    at: str
    ordinal: int
    anew: bool
    input_start: str


def list_stated_by_session(rows: Rows, session_seq: int, session_id: str, *, until: int) -> list[StatedInTurn]:
    """Returns the memories that a session stated first, except counted ones, each with its first stating turn."""
    sql = """select m.seq, m.text, m.authority, p.uuid, st.ordinal, t.text, m.gate
        from memories m join provenance p on p.memory_seq = m.seq and p.role = 'states' and p.session_id = m.session_id
        join turns t on t.uuid = p.uuid join session_turn st on st.session_seq = :session and st.turn_seq = t.seq
        where m.session_id = :id and m.twin_of = 0 and m.origin = 'stated'
        and m.gate <> 'relational' and m.scope = 'project' and st.ordinal <= :until order by st.ordinal desc, m.seq"""
    statements = rows.read(StatedInTurn, sql, session=session_seq, id=session_id, until=until)
    return list({stated.memory_seq: stated for stated in statements}.values())


def list_file_changes(
    rows: Rows, session_seq: int, *, after: int = 0, until: int, limit: int, characters: int = 2**31
) -> list[FileChange]:
    """Returns the last calls of a session that wrote to a file, past an ordinal up to another ordinal, in order."""
    sql = f"""select t.uuid, t.at, st.ordinal, t.tool_name = :creates, substr(t.text, 1, :characters)
        from session_turn st join turns t on t.seq = st.turn_seq
        where st.session_seq = :session and st.ordinal > :after and st.ordinal <= :until and t.kind = 'tool_call'
        and t.tool_name in ({_WRITERS}) and t.source = 'transcript' order by st.ordinal desc limit :limit"""  # noqa: S608
    limits = {"after": after, "until": until, "limit": limit, "characters": characters}
    changes = rows.read(FileChange, sql, session=session_seq, creates=WRITE, **limits)
    return changes[::-1]


def list_prompts(rows: Rows, session_seq: int, *, until: int) -> list[SessionPrompt]:
    """Returns everything that an assistant answers to in a session, in order."""
    sql = """select t.uuid, st.ordinal, case when t.kind = 'user' then t.text else '' end from session_turn st
        join turns t on t.seq = st.turn_seq where st.session_seq = :session and st.rewound = 0 and st.ordinal <= :until
        and t.kind in ('user', 'relayed', 'command', 'notification') and t.source = 'transcript' order by st.ordinal"""
    return rows.read(SessionPrompt, sql, session=session_seq, until=until)


def find_scene_directories(rows: Rows, session_seq: int) -> tuple[int, tuple[str, ...]]:
    """Returns the project of a session, and the directories whose files belong to it."""
    sql = """select s.project_seq, p.root, s.cwd
        from sessions s join projects p on p.seq = s.project_seq where s.seq = :session"""
    row = rows.first(sql, session=session_seq)
    return (row[0], row[1:]) if row else (0, ())


def list_memories_with_scene(rows: Rows, ending: str, *, projects: Sequence[int]) -> list[int]:
    """Returns the memories of these projects whose scene ends with a text, latest first."""
    sql = f"""select s.memory_seq from scenes s join memories m on m.seq = s.memory_seq
        where substr(s.text, length(s.text) - length(:ending) + 1) = :ending
        and {in_keys("m.project_seq", projects)} order by m.confirmed_at desc, m.seq desc"""  # noqa: S608
    return rows.column(sql, ending=ending)


def set_scene(rows: Rows, memory_seq: int, *, uuid: str, text: str) -> None:
    """Sets the scene of a memory; "" removes it."""
    if text:
        rows.upsert("scenes", "memory_seq", memory_seq=memory_seq, uuid=uuid, text=text)
    else:
        rows.delete("scenes", memory_seq=memory_seq)


def map_scenes_of_session(rows: Rows, session_id: str) -> dict[int, str]:
    """Returns the scenes of the memories that a session stated first, by memory."""
    sql = "select s.memory_seq, s.text from scenes s join memories m on m.seq = s.memory_seq where m.session_id = :id"
    return dict(rows.all(sql, id=session_id))


def forget_scenes(rows: Rows, uuid: str) -> None:
    """Deletes the scenes that a turn shows."""
    rows.delete("scenes", uuid=uuid)
