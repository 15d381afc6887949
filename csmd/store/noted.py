"""What was composed and what was looked for, as numbers: no text, the latest only; asked words by a keyed hash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from csmd.store import tombstones
from csmd.store.sqlite import Rows

#: Rows of each of the two that are kept at most.
MOST = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """What was composed for an event: how many notes were chosen, how many did not fit, whether a part was missing."""

    at: str
    session_id: str
    event: str
    chosen: int
    cut: int
    tokens: int
    degraded: int
    ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """What was looked for: through which door (search, recall, prompt), how much was found and how well the best fits."""

    at: str
    kind: str
    query_hash: str
    results: int
    top: float
    ms: int


def add(rows: Rows, composed: Sequence[Composed], recalled: Sequence[Recalled], *, before: str, key: bytes) -> None:
    """Writes down a batch, and lets go of what is from before a time or beyond the most that are kept.

    Not of a session that was purged since it was noted.
    """
    gone = tombstones.purged_names(rows, "session", list({one.session_id for one in composed}), key=key)
    for one in composed:
        if one.session_id in gone:
            continue
        rows.run(
            "insert into context_log (at, session_id, event, chosen, cut, tokens, degraded, ms) values "
            "(:at, :session, :event, :chosen, :cut, :tokens, :degraded, :ms)",
            at=one.at, session=one.session_id, event=one.event, chosen=one.chosen, cut=one.cut, tokens=one.tokens,
            degraded=one.degraded, ms=one.ms,
        )  # fmt: skip
    for asked in recalled:
        rows.run(
            "insert into memory_recall_events (at, kind, query_hash, results, top, ms) values "
            "(:at, :kind, :hash, :results, :top, :ms)",
            at=asked.at, kind=asked.kind, hash=asked.query_hash, results=asked.results, top=asked.top, ms=asked.ms,
        )  # fmt: skip
    for table in ("context_log", "memory_recall_events"):
        rows.run(f"delete from {table} where at < :before", before=before)  # noqa: S608
        rows.run(
            f"delete from {table} where seq <= (select max(l.seq) from {table} l) - :most",  # noqa: S608
            most=MOST,
        )


def composed_since(rows: Rows, since: str, *, limit: int = MOST) -> list[Composed]:
    """What was composed at or after a time, the latest first."""
    found = rows.all(
        "select at, session_id, event, chosen, cut, tokens, degraded, ms from context_log where at >= :since "
        "order by at desc, seq desc limit :limit",
        since=since,
        limit=limit,
    )
    return [
        Composed(at=a, session_id=b, event=c, chosen=d, cut=e, tokens=f, degraded=g, ms=h)
        for a, b, c, d, e, f, g, h in found
    ]


def recalled_since(rows: Rows, since: str, *, limit: int = MOST) -> list[Recalled]:
    """What was looked for at or after a time, the latest first."""
    found = rows.all(
        "select at, kind, query_hash, results, top, ms from memory_recall_events where at >= :since "
        "order by at desc, seq desc limit :limit",
        since=since,
        limit=limit,
    )
    return [Recalled(at=a, kind=b, query_hash=c, results=d, top=e, ms=f) for a, b, c, d, e, f in found]
