"""Receipts read back: which injections a session had, which memories each told and why; context.py writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from csmd.store.sqlite import Rows

_COLUMNS = "n.seq, n.id, n.session_id, n.event, n.project_seq, n.at, n.tokens"


@dataclass(frozen=True, slots=True)
class Receipt:
    """One injection; `project_seq` is the row of the place where it was."""

    seq: int
    id: str
    session_id: str
    event: str
    project_seq: int
    at: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Listed:
    """An injection with how many things it told, of how many use could be judged, and how many were used."""

    receipt: Receipt
    items: int
    judged: int
    used: int


def listing(rows: Rows, *, projects: Sequence[int] | None, session_id: str = "", limit: int) -> list[Listed]:
    """The latest injections in these places (None: anywhere), with `session_id` only that one's, the latest first."""
    wanted = "" if projects is None else f"and n.project_seq in ({', '.join(str(int(seq)) for seq in projects)})"
    wanted += " and n.session_id = :session" if session_id else ""
    found = rows.all(
        f"select {_COLUMNS}, (select count(*) from injection_items i where i.injection_seq = n.seq), "  # noqa: S608
        "(select count(i.used) from injection_items i where i.injection_seq = n.seq), "
        "(select coalesce(sum(i.used), 0) from injection_items i where i.injection_seq = n.seq) "
        f"from injections n where n.seq > 0 {wanted} order by n.seq desc limit :limit",
        limit=limit,
        **({"session": session_id} if session_id else {}),
    )
    return [Listed(Receipt(*row[:7]), int(row[7]), int(row[8]), int(row[9])) for row in found]


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that an injection told: `used` is None while nobody can say, `used_by` the kind of mark that told it."""

    id: str
    score: float
    reason: str
    used: bool | None
    used_by: str


def of_session(rows: Rows, session_id: str, *, limit: int) -> list[Receipt]:
    """The latest injections of a session, the latest first."""
    found = rows.all(
        f"select {_COLUMNS} from injections n where n.session_id = :session order by n.at desc, n.seq desc limit :limit",  # noqa: S608
        session=session_id,
        limit=limit,
    )
    return [Receipt(*row) for row in found]


def like(rows: Rows, prefix: str) -> list[Receipt]:
    """The injections whose id begins so, at most 5."""
    found = rows.all(
        f"select {_COLUMNS} from injections n where n.id >= :prefix and n.id < :prefix || '~' order by n.id limit 5",  # noqa: S608
        prefix=prefix,
    )
    return [Receipt(*row) for row in found]


def last_session(rows: Rows, projects: Sequence[int] | None) -> str:
    """The session that was told something last in these places (None: anywhere); "" when none was."""
    wanted = "" if projects is None else f"and n.project_seq in ({', '.join(str(int(seq)) for seq in projects)})"
    sql = f"select n.session_id from injections n where n.seq > 0 {wanted} order by n.at desc, n.seq desc limit 1"  # noqa: S608
    return str(rows.value(sql) or "")


def sessions_like(rows: Rows, prefix: str) -> list[str]:
    """The sessions that were told something and whose id begins so, at most 5."""
    found = rows.all(
        "select distinct session_id from injections where session_id >= :prefix and session_id < :prefix || '~' "
        "order by session_id limit 5",
        prefix=prefix,
    )
    return [str(ident) for (ident,) in found]


def items(rows: Rows, receipt: Receipt) -> list[Item]:
    """What an injection told, the best first."""
    found = rows.all(
        "select memory_id, score, reason, used, used_by from injection_items where injection_seq = :seq "
        "order by score desc, memory_id",
        seq=receipt.seq,
    )
    return [Item(str(a), float(b), str(c), None if d is None else bool(d), str(e)) for a, b, c, d, e in found]


def telling(rows: Rows, memory_id: str, *, limit: int) -> tuple[list[Receipt], int]:
    """(the latest injections that told a memory, how many did in all)."""
    found = rows.all(
        f"select {_COLUMNS} from injections n join injection_items i on i.injection_seq = n.seq "  # noqa: S608
        "where i.memory_id = :memory order by n.at desc, n.seq desc limit :limit",
        memory=memory_id,
        limit=limit,
    )
    total = rows.value("select count(*) from injection_items where memory_id = :memory", memory=memory_id)
    return [Receipt(*row) for row in found], int(total)


def prompt(rows: Rows, receipt: Receipt) -> tuple[str, int] | None:
    """(text, row of its project) of the prompt that an injection answered; None for none, or one that is gone."""
    found = rows.one(
        "select t.text, t.project_seq from events e join turns t on t.text_hash = e.text_hash "
        "join session_turn st on st.turn_seq = t.seq join sessions s on s.seq = st.session_seq "
        "where e.id = :event and e.text_hash <> '' and s.id = e.stream order by t.at desc limit 1",
        event=receipt.id.removeprefix("r"),
    )
    return None if found is None else (str(found[0]), int(found[1]))
