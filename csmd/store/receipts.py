"""Receipts of injections: what, when, why, tokens, and whether it was used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from csmd import wire
from csmd.briefs import BriefItem
from csmd.store.sqlite import IS_LISTED, Rows, as_value, columns, in_keys

#: Sources of a session's start after which the assistant no longer has earlier injections.
_CONTEXT_STARTS = "('startup', 'clear', 'compact')"
#: Sources after which it no longer has what was said in the session; before "startup" nothing was.
_CONVERSATION_STARTS = "('clear', 'compact')"


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
    """Records an injection with its items, without its text."""
    receipt = {"id": receipt_id, "session_id": session_id, "event": event, "project_seq": project, "at": at}
    seq = rows.insert_keyed("injections", "on conflict do nothing", **receipt, tokens=tokens, text_hash=text_hash)
    for item in items if seq else ():
        values = {"memory_id": item.id, "score": item.score, "reason": item.reason}
        rows.insert("injection_items", "on conflict do nothing", injection_seq=seq, **values)


def delete_receipt(rows: Rows, receipt_id: str) -> None:
    """Deletes the receipt of an injection that did not reach the session."""
    sql = "delete from injection_items where injection_seq in (select seq from injections where id = :id)"
    rows.run(sql, id=receipt_id)
    rows.delete("injections", id=receipt_id)


def context_since(rows: Rows, session_id: str) -> str:
    """Since when a session has its present context: its last start, clear or compaction; "" if unknown."""
    return _last_start(rows, session_id, _CONTEXT_STARTS)


def conversation_since(rows: Rows, session_id: str) -> str:
    """Since when a session has what was said in it: its last clear or compaction; "" from its beginning.

    A transcript may date a turn before the hook of the session's startup, because these are two clocks.
    """
    return _last_start(rows, session_id, _CONVERSATION_STARTS)


def _last_start(rows: Rows, session_id: str, sources: str) -> str:
    sql = f"select max(at) from events where session_id = :session and name = 'session_start' and source in {sources}"  # noqa: S608
    return rows.text(sql, session=session_id)


def context_size(rows: Rows, session_id: str) -> tuple[str, int]:
    """(model, input tokens of its latest message) of a session; 0 if unknown since its context began."""
    session = rows.first("select seq, model, context from sessions where id = :id", id=session_id)
    if session is None:
        return "", 0
    seq, model, used = int(session[0]), str(session[1]), int(session[2])
    since = context_since(rows, session_id) if used else ""
    answered = since and rows.value(
        "select t.at from session_turn st join turns t on t.seq = st.turn_seq where st.session_seq = :session "
        "and t.kind = 'assistant' order by st.ordinal desc limit 1",
        session=seq,
    )
    return model, 0 if since and str(answered or "") < since else used


def previous_context_size(rows: Rows, session_id: str) -> tuple[str, int]:
    """(model, input tokens) of the last context of a session, compacted or not."""
    return rows.first("select model, context from sessions where id = :id", id=session_id) or ("", 0)


def ids_in_context(rows: Rows, session_id: str) -> frozenset[str]:
    """The ids of the memories in a session's context: injected or said since it began; none without a session."""
    if not session_id:
        return frozenset()
    return rows.distinct(
        "select i.memory_id from injection_items i join injections n on n.seq = i.injection_seq "
        "where n.session_id = :session and n.at >= :since union select m.id from provenance p "
        "join memories m on m.seq = p.memory_seq where p.session_id = :session and p.at >= :said_since",
        session=session_id,
        since=context_since(rows, session_id),
        said_since=conversation_since(rows, session_id),
    )


def conversations_in_context(rows: Rows, session_id: str) -> frozenset[str]:
    """The ids in a session's context, and those of the conversations that injected memories and turns come from."""
    ids = ids_in_context(rows, session_id)
    if not ids:
        return ids
    values = {f"uuid{place}": ident.partition("#")[0] for place, ident in enumerate(sorted(ids))}
    uuid_names = ", ".join(f":{name}" for name in values)
    return ids | rows.distinct(
        f"select s.id from turns t join sessions s on s.seq = t.session_seq where t.uuid in ({uuid_names}) union "  # noqa: S608
        f"select p.session_id from provenance p join memories m on m.seq = p.memory_seq where m.id in ({uuid_names})",
        **values,
    )


def turns_in_context(rows: Rows, session_id: str) -> dict[int, str | None]:
    """The turns (row keys) of what a session has in its context, each with the memories of it that are there.

    The memories are joined by line breaks; None for a turn that was injected itself.
    """
    ids = ids_in_context(rows, session_id)
    listed_ids = wire.dumps(sorted({ident.partition("#")[0] for ident in ids}))
    stated = rows.all(
        "select t.seq, m.text from memories m join provenance p on p.memory_seq = m.seq "  # noqa: S608
        f"join turns t on t.uuid = p.uuid where m.id {IS_LISTED}",
        listed=listed_ids,
    )
    texts: dict[int, str | None] = {}
    for turn, text in stated:
        texts[turn] = f"{texts.get(turn) or ''}{text}\n"
    return texts | dict.fromkeys(rows.column(f"select seq from turns where uuid {IS_LISTED}", listed=listed_ids))  # noqa: S608


def is_briefed(rows: Rows, session_id: str) -> bool:
    """Whether a session was injected something at the start of its present context."""
    values = "select count(*) from injections where session_id = :session and event = 'session_start' and at >= :since"
    return bool(rows.value(values, session=session_id, since=context_since(rows, session_id)))


def recent_sessions(rows: Rows, places: Sequence[int], session_id: str) -> frozenset[str]:
    """A session and the last one before it in each of these projects, whose injections are offered again."""
    sql = (
        "select id from sessions where project_seq = :place and parent = '' and host <> 'probe' and id <> :own "
        "order by last_at desc limit 1"
    )
    last = [rows.value(sql, place=place, own=session_id) for place in places if place]
    return frozenset(str(ident) for ident in (session_id, *last) if ident)


def injection_totals(rows: Rows, session_id: str) -> tuple[int, int]:
    """(memories, tokens) injected into a session's present context."""
    present = "n.session_id = :session and n.at >= :since"
    sql = (
        "select (select count(distinct i.memory_id) from injections n "  # noqa: S608
        f"join injection_items i on i.injection_seq = n.seq join memories m on m.id = i.memory_id where {present}), "
        f"(select coalesce(sum(n.tokens), 0) from injections n where {present})"
    )
    (totals,) = rows.all(sql, session=session_id, since=context_since(rows, session_id))
    return totals


def is_injected(rows: Rows, session_id: str, memory_id: str) -> bool:
    """Whether a memory was ever injected into a session."""
    sql = (
        "select count(*) from injection_items i join injections n on n.seq = i.injection_seq "
        "where n.session_id = :session and i.memory_id = :memory"
    )
    values = rows.value(sql, session=session_id, memory=memory_id)
    return bool(values)


class Receipt(NamedTuple):
    """An injection; `project_seq` is the row of its project."""

    seq: int
    id: str
    session_id: str
    event: str
    project_seq: int
    at: str
    tokens: int


_COLUMNS = columns(Receipt, "n")


class ReceiptSummary(NamedTuple):
    """An injection with the number of its items, of those whose use is known, and of used ones."""

    receipt: Receipt
    items: int
    judged: int
    used: int


def list_receipts(
    rows: Rows, *, projects: Sequence[int] | None, session_id: str = "", limit: int, offset: int = 0
) -> list[ReceiptSummary]:
    """The latest injections in these projects (None: all) or into `session_id`, without the first `offset`."""
    of_session = "n.session_id = :session" if session_id else ":session = ''"
    sql = (
        f"select {_COLUMNS}, (select count(*) from injection_items i where i.injection_seq = n.seq), "  # noqa: S608
        "(select count(i.used) from injection_items i where i.injection_seq = n.seq), "
        "(select coalesce(sum(i.used), 0) from injection_items i where i.injection_seq = n.seq) from injections n "
        f"where {in_keys('n.project_seq', projects)} and {of_session} order by n.seq desc limit :limit offset :offset"
    )
    receipts = rows.all(sql, limit=limit, offset=offset, session=session_id)
    return [ReceiptSummary(as_value(Receipt, row), *row[7:]) for row in receipts]


class Item(NamedTuple):
    """An item of an injection; `used` is None while unknown, `used_by` the kind of evidence."""

    id: str
    score: float
    reason: str
    used: bool | None
    used_by: str


def _where(rows: Rows, condition: str, **values: Any) -> list[Receipt]:
    """The injections `n` that fulfil a condition, which may end with an order."""
    return rows.read(Receipt, f"select {_COLUMNS} from injections n where {condition}", **values)  # noqa: S608


def of_session(rows: Rows, session_id: str, *, limit: int) -> list[Receipt]:
    """The latest injections of a session, the latest first."""
    latest = "n.session_id = :session order by n.at desc, n.seq desc limit :limit"
    return _where(rows, latest, session=session_id, limit=limit)


def by_prefix(rows: Rows, prefix: str) -> list[Receipt]:
    """The injections whose id begins with a prefix, at most 5."""
    return _where(rows, "n.id >= :prefix and n.id < :prefix || '~' order by n.id limit 5", prefix=prefix)


def last_session(rows: Rows, projects: Sequence[int] | None) -> str:
    """The session of the last injection in these projects (None: all); "" if there is none."""
    among_places = in_keys("n.project_seq", projects)
    latest = f"select n.session_id from injections n where {among_places} order by n.at desc, n.seq desc limit 1"  # noqa: S608
    return rows.text(latest)


def sessions_like(rows: Rows, prefix: str) -> list[str]:
    """The sessions with injections whose id begins with a prefix, at most 5."""
    return rows.column(
        "select distinct session_id from injections where session_id >= :prefix and session_id < :prefix || '~' "
        "order by session_id limit 5",
        prefix=prefix,
    )


def list_items(rows: Rows, receipt: Receipt) -> list[Item]:
    """The items of an injection, the best first."""
    sql = (
        "select memory_id, score, reason, used, used_by from injection_items where injection_seq = :seq "
        "order by score desc, memory_id"
    )
    return rows.read(Item, sql, seq=receipt.seq)


def injections_of(rows: Rows, memory_id: str, *, limit: int) -> tuple[list[Receipt], int]:
    """Returns (the latest injections of a memory, how many there are in all)."""
    telling = "n.seq in (select injection_seq from injection_items where memory_id = :memory)"
    latest = _where(rows, f"{telling} order by n.at desc, n.seq desc limit :limit", memory=memory_id, limit=limit)
    return latest, rows.number("select count(*) from injection_items where memory_id = :memory", memory=memory_id)


def answered_prompt(rows: Rows, receipt: Receipt) -> tuple[str, int] | None:
    """(text, project) of the prompt that an injection answered; None if there is none or it is gone."""
    return rows.first(
        "select t.text, t.project_seq from events e join turns t on t.text_hash = e.text_hash "
        "join session_turn st on st.turn_seq = t.seq join sessions s on s.seq = st.session_seq "
        "where e.id = :event and e.text_hash <> '' and s.id = e.stream order by t.at desc limit 1",
        event=receipt.id.removeprefix("r"),
    )


#: In the order of Waiting's fields.
_WAITING_COLUMNS = (
    "n.seq, n.session_id, coalesce(s.seq, 0), n.event, n.at, coalesce((select max(t.seq) from events e "
    "join turns t on t.text_hash = e.text_hash and t.session_seq = s.seq "
    "where n.event = 'prompt' and 'r' || e.id = n.id and e.session_id = n.session_id and e.text_hash <> ''), 0) "
    "from injections n left join sessions s on s.id = n.session_id"
)


class WaitingReceipt(NamedTuple):
    """A receipt whose use can be determined; `prompt_seq` is the row of the prompt it answered, 0 if not stored."""

    seq: int
    session_id: str
    session_seq: int
    event: str
    at: str
    prompt_seq: int


@dataclass(frozen=True, slots=True)
class UseTotals:
    """Receipts since a time: how many, their tokens and items, the items of known use and the used ones."""

    injections: int
    tokens: int
    items: int
    judged: int
    used: int


def list_waiting(rows: Rows, *, answered: str, still: str, over: str, limit: int) -> list[WaitingReceipt]:
    """Receipts whose use can be determined, by session.

    A prompt's receipt can be with the next prompt; a start's with the session's end or its next fresh context, if that
    was before `answered`; and either after nothing was said in the session since `still`, for a start since `over`.
    """
    sql = (
        f"select {_WAITING_COLUMNS} where n.judged = 0 and (s.seq is null and n.at < :over "  # noqa: S608
        "or s.last_at < case when n.event = 'session_start' then :over else :still end and n.at < :still or exists "
        "(select 1 from events e where e.session_id = n.session_id and e.at > n.at and e.at < :answered "
        f"and (e.name = 'session_end' or (e.name = 'session_start' and e.source in {_CONTEXT_STARTS}) "
        "or (e.name = 'prompt' and n.event <> 'session_start')))) order by n.session_id, n.at limit :limit"
    )
    return rows.read(WaitingReceipt, sql, answered=answered, still=still, over=over, limit=limit)


def find_waiting(rows: Rows, seq: int) -> WaitingReceipt | None:
    """One receipt for determining its use, even if it is not due."""
    return rows.read_one(WaitingReceipt, f"select {_WAITING_COLUMNS} where n.seq = :seq", seq=seq)


def item_texts(rows: Rows, seq: int) -> list[tuple[str, str]]:
    """(id, present text) of a receipt's items; "" for one that is neither a memory nor part of a turn, or is gone.

    A passage's id is its turn's id, "#" and its offset.
    """
    texts = rows.all(
        "select i.memory_id, m.text from injection_items i left join memories m on m.id = i.memory_id "
        "where i.injection_seq = :seq order by i.memory_id",
        seq=seq,
    )
    return [(ident, _quoted(rows, ident) if text is None else text) for ident, text in texts]


def _quoted(rows: Rows, ident: str) -> str:
    """The quoted text of a turn: one passage, or all of it; "" if it is gone."""
    uuid, _, start = ident.partition("#")
    sql = (
        "select t.text, p.text, p.start_at, p.end_at from turns t left join passages p on p.turn_seq = t.seq "
        "and p.start_at = :start where t.uuid = :uuid"
    )
    turn = rows.first(sql, uuid=uuid, start=int(start) if start.isdecimal() else -1)
    if turn is None:
        return ""
    whole, words, begin, end = turn
    return str(words or (whole if begin is None else whole[begin:end]))


def ordinal_at(rows: Rows, session_seq: int, at: str) -> int:
    """The ordinal of the last turn of a session at or before a time; 0 for none."""
    sql = (
        "select max(st.ordinal) from session_turn st join turns t on t.seq = st.turn_seq "
        "where st.session_seq = :session and t.at <= :at"
    )
    return rows.number(sql, session=session_seq, at=at)


def record_use(rows: Rows, seq: int, verdicts: Mapping[str, tuple[bool, str]]) -> None:
    """Records (used, kind of evidence) for each item whose use is known."""
    judged = "update injection_items set used = :used, used_by = :by where injection_seq = :seq and memory_id = :id"
    for ident, (used, by) in verdicts.items():
        rows.run(judged, used=int(used), by=by, seq=seq, id=ident)
    rows.update("injections", seq, judged=1)


def usage_since(rows: Rows, since: str, *, projects: Sequence[int] | None = None) -> UseTotals:
    """Totals of the injections since a time in these projects (None: all), and of the used items."""
    of = f"n.at >= :since and {in_keys('n.project_seq', projects)}"
    (receipts,) = rows.all(f"select count(*), coalesce(sum(n.tokens), 0) from injections n where {of}", since=since)  # noqa: S608
    (items,) = rows.all(
        "select count(*), count(i.used), coalesce(sum(i.used), 0) from injections n "  # noqa: S608
        f"join injection_items i on i.injection_seq = n.seq where {of}",
        since=since,
    )
    return UseTotals(*receipts, *items)
