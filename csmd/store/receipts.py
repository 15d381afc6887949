"""Receipts of injections: what, when, why, tokens, and whether it was used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from csmd.briefs import BriefItem
from csmd.store.row_values import as_value, columns
from csmd.store.session_context import CONTEXT_STARTS
from csmd.store.sqlite import Rows, in_keys, starts_with

#: In the order of WaitingReceipt's fields.
_WAITING_COLUMNS = """n.seq, n.session_id, coalesce(s.seq, 0), n.event,
    n.at, coalesce((select max(t.seq) from events e join turns t on t.text_hash = e.text_hash and t.session_seq = s.seq
    where n.event = 'prompt' and 'r' || e.id = n.id and e.session_id = n.session_id and e.text_hash <> ''), 0)
    from injections n left join sessions s on s.id = n.session_id"""


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


class Receipt(NamedTuple):
    """An injection; `project_seq` is the row of its project."""

    seq: int
    id: str
    session_id: str
    event: str
    project_seq: int
    at: str
    tokens: int


#: The project of an injection `n`. One that was recorded for everywhere, because its project was not known yet, and one
#: of a merged project belong where their session belongs now.
_PROJECT = """(select case when p.seq = 0 or p.kind = 'workspace' or p.merged_into > 0
    then coalesce((select s.project_seq from sessions s where s.id = n.session_id), p.seq) else p.seq end
    from projects p where p.seq = n.project_seq)"""
_COLUMNS = columns(Receipt, "n", project_seq=_PROJECT)


def _is_in(rows: Rows, keys: Sequence[int] | None) -> str:
    """Returns the SQL condition that an injection `n` is in one of these projects (None: all); none is in everywhere."""
    if keys is None:
        return "true"
    projects = rows.column(f"select seq from projects where seq > 0 and kind <> 'workspace' and {in_keys('seq', keys)}")  # noqa: S608
    sessions = f"select id from sessions where {in_keys('project_seq', projects)}"  # noqa: S608
    candidates = f"({in_keys('n.project_seq', projects)} or n.session_id in ({sessions}))"
    return f"{candidates} and {in_keys(_PROJECT, projects)}"


class ReceiptSummary(NamedTuple):
    """An injection with the number of its items, of those whose use is known, and of used ones."""

    receipt: Receipt
    items: int
    judged: int
    used: int


def list_receipts(
    rows: Rows, *, projects: Sequence[int] | None, session_id: str = "", limit: int, offset: int = 0
) -> list[ReceiptSummary]:
    """Returns the latest injections in these projects (None: all) or into `session_id`, without the first `offset`."""
    of_session = "n.session_id = :session" if session_id else ":session = ''"
    sql = f"""select {_COLUMNS}, (select count(*) from injection_items i
        where i.injection_seq = n.seq), (select count(i.used) from injection_items i where i.injection_seq = n.seq),
        (select coalesce(sum(i.used), 0) from injection_items i where i.injection_seq = n.seq) from injections n
        where {_is_in(rows, projects)} and {of_session} order by n.seq desc limit :limit offset :offset"""  # noqa: S608
    receipts = rows.all(sql, limit=limit, offset=offset, session=session_id)
    return [ReceiptSummary(as_value(Receipt, row), items, judged, used) for *row, items, judged, used in receipts]


class Item(NamedTuple):
    """An item of an injection; `used` is None while unknown, `used_by` the kind of evidence."""

    id: str
    score: float
    reason: str
    used: bool | None
    used_by: str


def _read_where(rows: Rows, condition: str, **values: Any) -> list[Receipt]:
    """Returns the injections `n` that fulfil a condition, which may end with an order."""
    return rows.read(Receipt, f"select {_COLUMNS} from injections n where {condition}", **values)  # noqa: S608


def list_of_session(rows: Rows, session_id: str, *, limit: int) -> list[Receipt]:
    """Returns the latest injections of a session, the latest first."""
    latest = "n.session_id = :session order by n.at desc, n.seq desc limit :limit"
    return _read_where(rows, latest, session=session_id, limit=limit)


def find_by_prefix(rows: Rows, prefix: str) -> list[Receipt]:
    """Returns the injections whose id begins with a prefix, at most 5."""
    return _read_where(rows, f"{starts_with('n.id')} order by n.id limit 5", prefix=prefix)


def find_last_session(rows: Rows, projects: Sequence[int] | None) -> str:
    """Returns the session of the last injection in these projects (None: all); "" if there is none."""
    sql = f"""select n.session_id
        from injections n where {_is_in(rows, projects)} order by n.at desc, n.seq desc limit 1"""  # noqa: S608
    return rows.text(sql)


def find_sessions_by_prefix(rows: Rows, prefix: str) -> list[str]:
    """Returns the sessions with injections whose id begins with a prefix, at most 5."""
    sql = f"select distinct session_id from injections where {starts_with('session_id')} order by session_id limit 5"  # noqa: S608
    return rows.column(sql, prefix=prefix)


def list_items(rows: Rows, receipt: Receipt) -> list[Item]:
    """Returns the items of an injection, the best first."""
    sql = """select memory_id, score, reason, used, used_by
        from injection_items where injection_seq = :seq order by score desc, memory_id"""
    return rows.read(Item, sql, seq=receipt.seq)


def list_injections_of(rows: Rows, memory_id: str, *, limit: int) -> tuple[list[Receipt], int]:
    """Returns (the latest injections of a memory, the number of all)."""
    of_memory = "n.seq in (select injection_seq from injection_items where memory_id = :memory)"
    latest = _read_where(
        rows, f"{of_memory} order by n.at desc, n.seq desc limit :limit", memory=memory_id, limit=limit
    )
    return latest, rows.number("select count(*) from injection_items where memory_id = :memory", memory=memory_id)


def find_answered_prompt(rows: Rows, receipt: Receipt) -> tuple[str, int] | None:
    """Returns (text, project) of the prompt that an injection answered; None if there is none or it is gone."""
    sql = """select t.text, t.project_seq from events e join turns t on t.text_hash = e.text_hash
        join session_turn st on st.turn_seq = t.seq join sessions s on s.seq = st.session_seq
        where e.id = :event and e.text_hash <> '' and s.id = e.stream order by t.at desc limit 1"""
    return rows.first(sql, event=receipt.id.removeprefix("r"))


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


def list_waiting(
    rows: Rows, *, answered_before: str, idle_before: str, start_idle_before: str, limit: int
) -> list[WaitingReceipt]:
    """Receipts whose use can be determined, by session.

    A prompt's receipt is due after the next prompt; a start's after the session's end or next fresh context. Either
    event must be before `answered_before`. Without one, a receipt is due if the session was idle since `idle_before`,
    a start's if it was idle since `start_idle_before`.
    """
    sql = f"""select {_WAITING_COLUMNS} where n.judged = 0 and (s.seq is null and n.at < :start_idle_before
        or s.last_at < case when n.event = 'session_start' then :start_idle_before else :idle_before end
        and n.at < :idle_before or exists (select 1 from events e where e.session_id = n.session_id
        and e.at > n.at and e.at < :answered_before and (e.name = 'session_end' or (e.name = 'session_start'
        and e.source in {CONTEXT_STARTS}) or (e.name = 'prompt' and n.event <> 'session_start'))))
        order by n.session_id, n.at limit :limit"""  # noqa: S608
    return rows.read(
        WaitingReceipt, sql, limit=limit, answered_before=answered_before, idle_before=idle_before,
        start_idle_before=start_idle_before,
    )  # fmt: skip


def find_waiting(rows: Rows, seq: int) -> WaitingReceipt | None:
    """Returns one receipt for determining its use, even if it is not due."""
    return rows.read_one(WaitingReceipt, f"select {_WAITING_COLUMNS} where n.seq = :seq", seq=seq)


def read_item_texts(rows: Rows, seq: int) -> list[tuple[str, str]]:
    """Returns (id, present text) of a receipt's items; "" for one that is gone, or neither a memory nor part of a turn.

    A passage's id is its turn's id, "#" and its offset.
    """
    sql = """select i.memory_id, m.text from injection_items i
        left join memories m on m.id = i.memory_id where i.injection_seq = :seq order by i.memory_id"""
    texts = rows.all(sql, seq=seq)
    return [(item_id, _read_quoted_text(rows, item_id) if text is None else text) for item_id, text in texts]


def _read_quoted_text(rows: Rows, item_id: str) -> str:
    """Returns the quoted text of a turn: one passage, or all of it; "" if it is gone."""
    uuid, _, start = item_id.partition("#")
    sql = """select t.text, p.text, p.start_at, p.end_at
        from turns t left join passages p on p.turn_seq = t.seq and p.start_at = :start where t.uuid = :uuid"""
    turn = rows.first(sql, uuid=uuid, start=int(start) if start.isdecimal() else -1)
    if turn is None:
        return ""
    whole, words, begin, end = turn
    return str(words or (whole if begin is None else whole[begin:end]))


def find_ordinal_at(rows: Rows, session_seq: int, at: str) -> int:
    """Returns the ordinal of the last turn of a session at or before a time; 0 for none."""
    sql = """select max(st.ordinal)
        from session_turn st join turns t on t.seq = st.turn_seq where st.session_seq = :session and t.at <= :at"""
    return rows.number(sql, session=session_seq, at=at)


def record_use(rows: Rows, seq: int, verdicts: Mapping[str, tuple[bool, str]]) -> None:
    """Records (used, kind of evidence) for each item whose use is known."""
    sql = "update injection_items set used = :used, used_by = :by where injection_seq = :seq and memory_id = :id"
    for item_id, (used, by) in verdicts.items():
        rows.run(sql, used=int(used), by=by, seq=seq, id=item_id)
    rows.update("injections", seq, judged=1)


def sum_usage_since(rows: Rows, since: str, *, projects: Sequence[int] | None = None) -> UseTotals:
    """Returns totals of the injections since a time in these projects (None: all), and of the used items."""
    in_period = f"n.at >= :since and {_is_in(rows, projects)}"
    (receipts,) = rows.all(
        f"select count(*), coalesce(sum(n.tokens), 0) from injections n where {in_period}",  # noqa: S608
        since=since,
    )
    sql = f"""select count(*), count(i.used), coalesce(sum(i.used), 0)
        from injections n join injection_items i on i.injection_seq = n.seq where {in_period}"""  # noqa: S608
    (items,) = rows.all(
        sql,
        since=since,
    )
    return UseTotals(*receipts, *items)
