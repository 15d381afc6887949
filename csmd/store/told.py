"""What tools were given and what they gave back, of the few tools that say something in words."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from csmd.model import StoredTurn
from csmd.store.sqlite import Row, Rows

#: Ids in one statement.
BATCH = 500
_TURNS = (
    "select t.seq, t.uuid, s.id, t.project_seq, t.kind, t.text, t.at, st.ordinal, t.tool_name, t.tool_id "
    "from session_turn st join turns t on t.seq = st.turn_seq join sessions s on s.seq = st.session_seq "
    "where st.session_seq = :session and st.ordinal > :after and t.source = 'transcript' "
)


class Call(NamedTuple):
    """A call of a tool, and its result where there is one."""

    turn: StoredTurn
    tool: str
    result: StoredTurn | None


def calls(
    rows: Rows, session_seq: int, *, after: int, tools: Collection[str], holding: Mapping[str, str]
) -> list[Call]:
    """The calls of `tools` in a session past the ordinal `after` that stand in its transcript, in order.

    Of a tool in `holding` only those whose input has its words, `%` for anything between.
    """
    values: dict[str, str] = {f"tool{place}": tool for place, tool in enumerate(sorted(tools))}
    tool_names = ", ".join(f":{name}" for name in values)
    only_holding = ""
    for place, (tool, words) in enumerate(sorted(holding.items())):
        values |= {f"held{place}": tool, f"words{place}": f"%{words}%"}
        only_holding += f"and (t.tool_name <> :held{place} or t.text like :words{place}) "
    found = rows.all(
        f"{_TURNS} and t.kind = 'tool_call' and t.tool_name in ({tool_names}) {only_holding} order by st.ordinal",
        session=session_seq,
        after=after,
        **values,
    )
    results: dict[str, StoredTurn] = {}
    for start in range(0, len(found), BATCH):
        ids = {f"id{place}": str(row[9]) for place, row in enumerate(found[start : start + BATCH]) if row[9]}
        tool_ids = ", ".join(f":{name}" for name in ids)
        results |= {
            str(row[9]): _turn(row)
            for row in rows.all(
                f"{_TURNS} and t.kind = 'tool_result' and t.tool_id in ({tool_ids})",
                session=session_seq,
                after=after,
                **ids,
            )
        }
    return [Call(_turn(row), str(row[8]), results.get(str(row[9]))) for row in found]


def _turn(row: Row) -> StoredTurn:
    seq, uuid, session, project, kind, text, at, ordinal = row[:8]
    return StoredTurn(
        seq=seq, uuid=uuid, session_id=session, project_seq=project, kind=kind, text=text, at=at, ordinal=ordinal
    )
