"""The present context of a session: when it began, its size, and the memories and turns in it."""

from __future__ import annotations

from collections.abc import Sequence

from csmd import wire
from csmd.store.sqlite import IS_LISTED, Rows

#: Sources of a session's start after which the assistant no longer has earlier injections.
CONTEXT_STARTS = "('startup', 'clear', 'compact')"
#: Sources after which it no longer has what was said in the session; before "startup" nothing was.
_CONVERSATION_STARTS = "('clear', 'compact')"


def find_context_start(rows: Rows, session_id: str) -> str:
    """Returns when the present context began: the last start, clear or compaction; "" if unknown."""
    return _find_last_start(rows, session_id, CONTEXT_STARTS)


def find_conversation_start(rows: Rows, session_id: str) -> str:
    """Returns when the present conversation began: the last clear or compaction; "" if there was none.

    A transcript may date a turn before the hook of the session's startup, because these are two clocks.
    """
    return _find_last_start(rows, session_id, _CONVERSATION_STARTS)


def _find_last_start(rows: Rows, session_id: str, sources: str) -> str:
    sql = f"select max(at) from events where session_id = :session and name = 'session_start' and source in {sources}"  # noqa: S608
    return rows.text(sql, session=session_id)


def read_context_size(rows: Rows, session_id: str) -> tuple[str, int]:
    """Returns (model, input tokens of its latest message) of a session; 0 if unknown since its context began."""
    session = rows.first("select seq, model, context from sessions where id = :id", id=session_id)
    if session is None:
        return "", 0
    seq, model, tokens = session
    since = find_context_start(rows, session_id) if tokens else ""
    sql = """select t.at from session_turn st join turns t on t.seq = st.turn_seq
        where st.session_seq = :session and t.kind = 'assistant' order by st.ordinal desc limit 1"""
    answered_at = rows.text(sql, session=seq) if since else ""
    return model, 0 if answered_at < since else tokens


def read_last_context_size(rows: Rows, session_id: str) -> tuple[str, int]:
    """Returns (model, input tokens) of the last context of a session, compacted or not."""
    return rows.first("select model, context from sessions where id = :id", id=session_id) or ("", 0)


def ids_in_context(rows: Rows, session_id: str) -> frozenset[str]:
    """Returns the ids of the memories that were injected or stated since a session's context began."""
    if not session_id:
        return frozenset()
    return rows.distinct(
        """select i.memory_id from injection_items i join injections n on n.seq = i.injection_seq
            where n.session_id = :session and n.at >= :since union select m.id from provenance p
            join memories m on m.seq = p.memory_seq where p.session_id = :session and p.at >= :said_since""",
        session=session_id,
        since=find_context_start(rows, session_id),
        said_since=find_conversation_start(rows, session_id),
    )


def list_conversations_in_context(rows: Rows, session_id: str) -> frozenset[str]:
    """Returns the ids in a session's context, and the conversations that its injected memories and turns come from."""
    ids = ids_in_context(rows, session_id)
    if not ids:
        return ids
    values = {f"uuid{number}": item_id.partition("#")[0] for number, item_id in enumerate(sorted(ids))}
    uuid_names = ", ".join(f":{name}" for name in values)
    return ids | rows.distinct(
        f"""select s.id from turns t
            join sessions s on s.seq = t.session_seq where t.uuid in ({uuid_names}) union select p.session_id
            from provenance p join memories m on m.seq = p.memory_seq where m.id in ({uuid_names})""",  # noqa: S608
        **values,
    )


def map_turns_in_context(rows: Rows, session_id: str) -> dict[int, str | None]:
    """Maps turn keys in the session's context to the text of the memories stated in them.

    The memories are joined by line breaks; None for a turn that was injected itself.
    """
    ids = ids_in_context(rows, session_id)
    listed_ids = wire.dumps(sorted({item_id.partition("#")[0] for item_id in ids}))
    sql = f"""select t.seq, m.text from memories m
        join provenance p on p.memory_seq = m.seq join turns t on t.uuid = p.uuid where m.id {IS_LISTED}"""  # noqa: S608
    stated = rows.all(sql, listed=listed_ids)
    texts: dict[int, str | None] = {}
    for turn, text in stated:
        texts[turn] = f"{texts.get(turn) or ''}{text}\n"
    return texts | dict.fromkeys(rows.column(f"select seq from turns where uuid {IS_LISTED}", listed=listed_ids))  # noqa: S608


def is_briefed(rows: Rows, session_id: str) -> bool:
    """Whether a session was injected something at the start of its present context."""
    sql = "select 1 from injections where session_id = :session and event = 'session_start' and at >= :since limit 1"
    return rows.exists(sql, session=session_id, since=find_context_start(rows, session_id))


def recent_sessions(rows: Rows, projects: Sequence[int], session_id: str) -> frozenset[str]:
    """Returns a session and the last one before it in each of these projects, whose injections are offered again."""
    sql = """select id from sessions where project_seq = :project and parent = '' and host <> 'probe' and id <> :own
        order by last_at desc limit 1"""
    previous = [rows.text(sql, project=project, own=session_id) for project in projects if project]
    return frozenset((session_id, *previous)) - {""}


def sum_injections(rows: Rows, session_id: str) -> tuple[int, int]:
    """Returns (memories, tokens) injected into a session's present context."""
    values = {"session": session_id, "since": find_context_start(rows, session_id)}
    sql = """select count(distinct i.memory_id) from injections n join injection_items i on i.injection_seq = n.seq
        join memories m on m.id = i.memory_id where n.session_id = :session and n.at >= :since"""
    memories = rows.number(sql, **values)
    tokens = "select sum(tokens) from injections where session_id = :session and at >= :since"
    return memories, rows.number(tokens, **values)


def is_injected(rows: Rows, session_id: str, memory_id: str) -> bool:
    """Whether a memory was ever injected into a session."""
    sql = """select 1 from injection_items i
        join injections n on n.seq = i.injection_seq where n.session_id = :session and i.memory_id = :memory limit 1"""
    return rows.exists(sql, session=session_id, memory=memory_id)
