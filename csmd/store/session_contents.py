"""The contents of a stored session: turns, statements, tool calls, sub-agents and receipts of injections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, get_args

from csmd.conversation import ExportedTurn
from csmd.store.row_values import columns
from csmd.store.sqlite import Rows, in_keys
from csmd.vocabulary import TurnKind

_TURNS = "from session_turn st join turns t on t.seq = st.turn_seq where st.session_seq = :session"
_STATEMENTS = """from session_turn st
    join statements m on m.turn_seq = st.turn_seq where st.session_seq = :session and st.rewound = 0"""


class Agent(NamedTuple):
    """A sub-agent of a session; `answered` if the last turn of its transcript is its answer."""

    id: str
    turns: int
    answered: bool


def read_conversation(
    rows: Rows,
    session_seq: int,
    *,
    projects: Sequence[int] | None,
    limit: int = 2**31,
    offset: int = 0,
    among: Sequence[TurnKind] = get_args(TurnKind),
) -> list[ExportedTurn]:
    """Returns a session's turns in order, of these projects (None: all) and kinds, from the `offset`th on."""
    kinds_named = ", ".join(f"'{kind}'" for kind in among)
    turn = columns(
        ExportedTurn, "t", dropped="coalesce(t.dropped, 0)", rewound="st.rewound", counted="coalesce(t.counted, 0)"
    )
    sql = f"""select {turn} {_TURNS} and {in_keys("t.project_seq", projects)} and t.kind in ({kinds_named})
        order by st.ordinal limit :limit offset :offset"""
    return rows.read(ExportedTurn, sql, session=session_seq, limit=limit, offset=offset)


def count_kinds(rows: Rows, session_seq: int, *, projects: Sequence[int] | None) -> dict[str, int]:
    """Returns the number of turns of each kind of a session in these projects (None: all)."""
    sql = f"select t.kind, count(*) {_TURNS} and {in_keys('t.project_seq', projects)} group by t.kind order by t.kind"
    return dict(rows.all(sql, session=session_seq))


def read_first_prompts(rows: Rows, session_seq: int, *, limit: int, characters: int) -> list[str]:
    """Returns the first `characters` of a session's first prompts in order, without rewound ones."""
    sql = f"""select substr(t.text, 1, :characters) {_TURNS} and st.rewound = 0 and t.kind in ('user', 'relayed')
        order by st.ordinal limit :limit"""
    return rows.column(sql, session=session_seq, limit=limit, characters=characters)


def count_prompts(rows: Rows, session_id: str, *, since: str, limit: int) -> int:
    """Counts the prompts of a session since a time, up to `limit`."""
    sql = """select count(*) from (select 1
        from sessions s join session_turn st on st.session_seq = s.seq join turns t on t.seq = st.turn_seq
        where s.id = :session_id and t.kind = 'user' and t.at >= :since order by st.ordinal limit :limit)"""
    return rows.number(sql, session_id=session_id, since=since, limit=limit)


def list_turn_times(rows: Rows, session_seq: int) -> list[str]:
    """Returns the times of a session's turns in order."""
    return rows.column(f"select t.at {_TURNS} order by st.ordinal", session=session_seq)


def list_rewound_prompts(rows: Rows, session_seq: int) -> list[str]:
    """Returns the times of the prompts that a rewind left behind."""
    sql = f"select t.at {_TURNS} and st.rewound = 1 and t.kind in ('user', 'relayed') order by st.ordinal"
    return rows.column(sql, session=session_seq)


def list_prompt_modes(rows: Rows, session_seq: int) -> list[tuple[str, str]]:
    """Returns (time, mode) of the prompts with a known mode, in order."""
    sql = f"select t.at, t.mode {_TURNS} and st.rewound = 0 and t.mode <> '' order by st.ordinal"
    return rows.all(sql, session=session_seq)


def list_tool_traffic(rows: Rows, session_seq: int, *, characters: int) -> list[tuple[str, str, str, str, str]]:
    """Returns (kind, tool, call id, first `characters`, time) of tool calls and results; a result names no tool."""
    sql = f"""select t.kind, t.tool_name, t.tool_id, substr(t.text, 1, :characters), t.at {_TURNS}
        and t.kind in ('tool_call', 'tool_result') order by st.ordinal"""
    return rows.all(sql, session=session_seq, characters=characters)


def read_statements(rows: Rows, session_seq: int, *, projects: Sequence[int] | None) -> list[tuple[str, str, str, str]]:
    """Returns (text, gate, authority, time) of a session's statements of these projects (None: all), in order."""
    sql = f"""select m.text, m.gate, m.authority, m.at {_STATEMENTS} and {in_keys("m.project_seq", projects)}
        order by st.ordinal, m.seq"""
    return rows.all(sql, session=session_seq)


def list_gotchas(rows: Rows, session_seq: int, *, limit: int) -> list[str]:
    """Returns the traps that a session's statements name, the surest first."""
    sql = f"""select m.text {_STATEMENTS} and m.category = 'gotcha'
        order by m.confidence desc, st.ordinal, m.seq limit :limit"""
    return rows.column(sql, session=session_seq, limit=limit)


def list_corrections(rows: Rows, session_seq: int) -> list[tuple[str, str]]:
    """Returns (statement, time) of the user's corrections in a session, in order."""
    sql = f"""select m.text, m.at {_STATEMENTS} and m.gate = 'correction' and m.authority = 'user'
        order by st.ordinal, m.seq"""
    return rows.all(sql, session=session_seq)


def list_session_memories(rows: Rows, session_id: str, *, projects: Sequence[int] | None) -> list[tuple[str, str, str]]:
    """Returns (id, text, role) of memories of these projects (None: all) with a source in a session, by its time."""
    sql = f"""select m.id, m.text, max(p.role) from provenance p join memories m on m.seq = p.memory_seq
        where p.session_id = :session and {in_keys("m.project_seq", projects)}
        group by m.id, m.text order by min(p.at), m.id"""  # noqa: S608
    return rows.all(sql, session=session_id)


def list_injections_into(rows: Rows, session_id: str) -> list[tuple[str, str, str, int, int]]:
    """Returns (receipt, event, time, tokens, memories) of the injections into a session, in order."""
    sql = """select n.id, n.event, n.at, n.tokens, (select count(*) from injection_items i where i.injection_seq = n.seq)
        from injections n where n.session_id = :session order by n.seq"""
    return rows.all(sql, session=session_id)


def list_agents(rows: Rows, session_id: str) -> list[Agent]:
    """Returns the sub-agents of a session, the earliest first."""
    sql = """select s.id, s.turns, coalesce((select t.kind from session_turn st join turns t on t.seq = st.turn_seq
        where st.session_seq = s.seq order by st.ordinal desc limit 1), '') = 'assistant'
        from sessions s where s.parent = :id order by s.started_at, s.id"""
    agents = rows.read(Agent, sql, id=session_id)
    return [agent._replace(id=agent.id.rpartition("/")[2]) for agent in agents]
