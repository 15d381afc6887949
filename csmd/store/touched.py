"""Which tools a session called last, and with what: what is at hand there."""

from __future__ import annotations

from collections.abc import Collection

from csmd.store.sqlite import Rows


def given(rows: Rows, session_id: str, tools: Collection[str], *, back: int, limit: int) -> list[str]:
    """What these tools were given in a session's last `back` turns, the latest call first, at most `limit`."""
    last = rows.value(
        "select max(st.ordinal) from session_turn st join sessions s on s.seq = st.session_seq where s.id = :session",
        session=session_id,
    )
    if last is None:
        return []
    marks = ", ".join(f"'{tool}'" for tool in sorted(tools) if tool.isalnum())
    found = rows.all(
        "select t.text from session_turn st join sessions s on s.seq = st.session_seq "  # noqa: S608
        "join turns t on t.seq = st.turn_seq where s.id = :session and st.ordinal > :after "
        f"and t.kind = 'tool_call' and t.tool_name in ({marks}) order by st.ordinal desc limit :limit",
        session=session_id,
        after=int(last) - back,
        limit=limit,
    )
    return [str(text) for (text,) in found]
