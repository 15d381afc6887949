"""Receipts: what was put before the assistant, when, why, and how many tokens it took."""

from __future__ import annotations

from collections.abc import Sequence

from csmd.model import BriefItem
from csmd.store.sqlite import Rows

#: Sources of a session's start after which the assistant no longer has what it was told before (facts: claude-code 1.9).
FRESH_CONTEXT = ("startup", "clear", "compact")


def add_receipt(
    rows: Rows,
    *,
    receipt_id: str,
    session_id: str,
    event: str,
    project: int,
    at: str,
    tokens: int,
    text_hash: str,
    items: Sequence[BriefItem],
) -> None:
    """Notes one injection with its items; the text itself is not kept, its memories are."""
    seq = rows.value(
        "insert into injections (id, session_id, event, project_seq, at, tokens, text_hash) values "
        "(:id, :session, :event, :project, :at, :tokens, :hash) on conflict (id) do nothing returning seq",
        id=receipt_id,
        session=session_id,
        event=event,
        project=project,
        at=at,
        tokens=tokens,
        hash=text_hash,
    )
    if seq is None:
        return
    for item in items:
        rows.run(
            "insert into injection_items (injection_seq, memory_id, score, reason) values "
            "(:seq, :memory, :score, :reason) on conflict do nothing",
            seq=seq,
            memory=item.id,
            score=item.score,
            reason=item.reason,
        )


def delete_receipt(rows: Rows, receipt_id: str) -> None:
    """Takes back a receipt with its items: what it notes was never told."""
    rows.run(
        "delete from injection_items where injection_seq in (select seq from injections where id = :id)", id=receipt_id
    )
    rows.run("delete from injections where id = :id", id=receipt_id)


def fresh_since(rows: Rows, session_id: str) -> str:
    """Since when a session has had its present context: its last start, clear or compaction; "" when unknown."""
    marks = ", ".join(f"'{source}'" for source in FRESH_CONTEXT)
    since = rows.value(
        "select max(at) from events where session_id = :session and name = 'session_start' "  # noqa: S608
        f"and source in ({marks})",
        session=session_id,
    )
    return str(since or "")


def filled(rows: Rows, session_id: str) -> tuple[str, int]:
    """(model, tokens that its latest message was made from) of a session; 0 where none is known since its context began."""
    found = rows.one("select seq, model, context from sessions where id = :id", id=session_id)
    if found is None:
        return "", 0
    seq, model, used = int(found[0]), str(found[1]), int(found[2])
    since = fresh_since(rows, session_id) if used else ""
    answered = since and rows.value(
        "select t.at from session_turn st join turns t on t.seq = st.turn_seq where st.session_seq = :session "
        "and t.kind = 'assistant' order by st.ordinal desc limit 1",
        session=seq,
    )
    return model, 0 if since and str(answered or "") < since else used


def before(rows: Rows, session_id: str) -> tuple[str, int]:
    """As `filled`, of the context that a session had last, whether it was compacted since or not."""
    found = rows.one("select model, context from sessions where id = :id", id=session_id)
    return ("", 0) if found is None else (str(found[0]), int(found[1]))


def told(rows: Rows, session_id: str) -> frozenset[str]:
    """The ids of the memories that a session has in its context: told to it, or said in it, since that began."""
    since = fresh_since(rows, session_id)
    injected = rows.all(
        "select i.memory_id from injection_items i join injections n on n.seq = i.injection_seq "
        "where n.session_id = :session and n.at >= :since",
        session=session_id,
        since=since,
    )
    said = rows.all(
        "select m.id from provenance p join memories m on m.seq = p.memory_seq "
        "where p.session_id = :session and p.at >= :since",
        session=session_id,
        since=since,
    )
    return frozenset(str(memory) for (memory,) in (*injected, *said))


def was_briefed(rows: Rows, session_id: str) -> bool:
    """Whether a session was told something as its start's since its present context began."""
    return bool(
        rows.value(
            "select count(*) from injections where session_id = :session and event = 'session_start' and at >= :since",
            session=session_id,
            since=fresh_since(rows, session_id),
        )
    )


def asked(rows: Rows, memory_id: str, reason: str, *, session_id: str) -> str:
    """When a memory was last told for a reason to another session than this one; "" when it never was."""
    at = rows.value(
        "select max(n.at) from injection_items i join injections n on n.seq = i.injection_seq "
        "where i.memory_id = :memory and i.reason = :reason and n.session_id <> :session",
        memory=memory_id,
        reason=reason,
        session=session_id,
    )
    return str(at or "")


def near(rows: Rows, places: Sequence[int], session_id: str) -> frozenset[str]:
    """A session and the last one before it in each of these places: what was told there is offered once more."""
    last = [
        rows.value(
            "select id from sessions where project_seq = :place and parent = '' and host <> 'probe' and id <> :own "
            "order by last_at desc limit 1",
            place=place,
            own=session_id,
        )
        for place in places
        if place
    ]
    return frozenset(str(one) for one in (session_id, *last) if one)


def injected(rows: Rows, session_id: str) -> tuple[int, int]:
    """(memories, tokens) that were put into a session's present context."""
    since = fresh_since(rows, session_id)
    items = rows.value(
        "select count(distinct i.memory_id) from injections n join injection_items i on i.injection_seq = n.seq "
        "join memories m on m.id = i.memory_id where n.session_id = :session and n.at >= :since",
        session=session_id,
        since=since,
    )
    tokens = rows.value(
        "select sum(tokens) from injections where session_id = :session and at >= :since",
        session=session_id,
        since=since,
    )
    return int(items or 0), int(tokens or 0)


def was_told(rows: Rows, session_id: str, memory_id: str) -> bool:
    """Whether a session was ever told a memory."""
    return bool(
        rows.value(
            "select count(*) from injection_items i join injections n on n.seq = i.injection_seq "
            "where n.session_id = :session and i.memory_id = :memory",
            session=session_id,
            memory=memory_id,
        )
    )
