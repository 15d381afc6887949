"""Figures of composed injections and of lookups, without their words, for 90 days."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from csmd.store import tombstones
from csmd.store.row_values import column_values
from csmd.store.sqlite import Rows

#: Rows of each table that are kept at most.
MAX_ROWS = 50_000


class Composition(NamedTuple):
    """A composed injection: how many notes were chosen, how many did not fit, whether a part was missing."""

    at: str
    session_id: str
    event: str
    chosen: int
    cut: int
    tokens: int
    degraded: int
    ms: int


class Lookup(NamedTuple):
    """A lookup: by what (search, recall, prompt), how many results it had and the best score."""

    at: str
    kind: str
    query_hash: str
    results: int
    top: float
    ms: int


def add_lookups(
    rows: Rows, composed: Sequence[Composition], recalled: Sequence[Lookup], *, before: str, key: bytes
) -> None:
    """Stores a batch and deletes rows from before a time or beyond MAX_ROWS.

    Compositions of sessions that were purged meanwhile are left out.
    """
    gone = tombstones.purged_names(rows, "session", list({lookup.session_id for lookup in composed}), key=key)
    noted = {
        "context_log": [lookup for lookup in composed if lookup.session_id not in gone],
        "memory_recall_events": recalled,
    }
    for table, values in noted.items():
        for value in values:
            rows.insert(table, **column_values(value))
        rows.run(f"delete from {table} where at < :before", before=before)  # noqa: S608
        sql = f"delete from {table} where seq <= (select max(l.seq) from {table} l) - :most"  # noqa: S608
        rows.run(sql, most=MAX_ROWS)


def compositions_since(rows: Rows, since: str, *, limit: int = MAX_ROWS) -> list[Composition]:
    """Returns the compositions at or after a time, the latest first."""
    sql = """select at, session_id, event, chosen, cut, tokens, degraded, ms
        from context_log where at >= :since order by at desc, seq desc limit :limit"""
    return rows.read(Composition, sql, since=since, limit=limit)


def lookups_since(rows: Rows, since: str, *, limit: int = MAX_ROWS) -> list[Lookup]:
    """Returns the lookups at or after a time, the latest first."""
    sql = """select at, kind, query_hash, results, top, ms
        from memory_recall_events where at >= :since order by at desc, seq desc limit :limit"""
    return rows.read(Lookup, sql, since=since, limit=limit)
