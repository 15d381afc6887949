"""Statistics of composed injections and of lookups, without their text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from csmd.store import tombstones
from csmd.store.row_values import column_values, columns
from csmd.store.sqlite import Rows

#: Rows that each table keeps.
MAX_ROWS = 50_000


class Composition(NamedTuple):
    """A composed injection: notes chosen, notes cut for lack of room, and the number of sources that failed."""

    at: str
    session_id: str
    event: str
    chosen: int
    cut: int
    tokens: int
    degraded: int
    ms: int


class Lookup(NamedTuple):
    """A lookup: its kind (search, recall, prompt), its number of results and their best score."""

    at: str
    kind: str
    query_hash: str
    results: int
    top: float
    ms: int


_Record = TypeVar("_Record", Composition, Lookup)
_TABLES: dict[type, str] = {Composition: "context_log", Lookup: "memory_recall_events"}


def add_records(rows: Rows, records: Sequence[Composition | Lookup], *, before: str, key: bytes) -> None:
    """Stores records, except those of purged sessions, and deletes rows from before a time or beyond MAX_ROWS."""
    sessions = {record.session_id for record in records if isinstance(record, Composition)}
    purged = tombstones.purged_names(rows, "session", list(sessions), key=key)
    for record in records:
        if isinstance(record, Lookup) or record.session_id not in purged:
            rows.insert(_TABLES[type(record)], **column_values(record))
    for table in _TABLES.values():
        rows.run(f"delete from {table} where at < :before", before=before)  # noqa: S608
        sql = f"delete from {table} where seq <= (select max(l.seq) from {table} l) - :limit"  # noqa: S608
        rows.run(sql, limit=MAX_ROWS)


def read_since(rows: Rows, kind: type[_Record], since: str, *, limit: int = MAX_ROWS) -> list[_Record]:
    """Returns the compositions or lookups at or after a time, the latest first."""
    sql = f"""select {columns(kind, "r")} from {_TABLES[kind]} r
        where r.at >= :since order by r.at desc, r.seq desc limit :limit"""  # noqa: S608
    return rows.read(kind, sql, since=since, limit=limit)
