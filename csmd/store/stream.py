"""What happens, in the order in which it was stored: rows past a position of each kind, for who looks on.

A position is a row key; no key is used twice, so that what comes after it is news. What was put aside by a purge in
between is not missed: it is gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from csmd.store.sqlite import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """One row: its kind and key, when, in which project (its root; "" when nobody knows) and session, what it is.

    `word` is of a fixed vocabulary (an event's name, a turn's kind, a gate), `text` as stored, `amounts` (tokens, memories).
    """

    kind: str
    seq: int
    at: str
    project: str
    session: str
    word: str
    text: str = ""
    amounts: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """A kind's rows: where they stand, which column is their key and which their project's, what is told of each."""

    key: str
    project: str
    source: str
    columns: str
    """time, project's root, session, word, text, tokens, memories"""


_SOURCES: Mapping[str, _Source] = {
    "event": _Source(
        key="e.seq",
        project="s.project_seq",
        source="events e left join sessions s on s.id = e.session_id left join projects p on p.seq = s.project_seq",
        columns="e.at, coalesce(p.root, ''), e.session_id, e.name, e.source, 0, 0",
    ),
    "turn": _Source(
        key="t.seq",
        project="t.project_seq",
        # Not a marker of `csmd doctor`, which is nobody's.
        source="turns t join projects p on p.seq = t.project_seq "
        "join sessions s on s.seq = t.session_seq and s.host <> 'probe'",
        columns="t.at, p.root, s.id, t.kind, "
        "case when t.tool_name = '' then t.text else t.tool_name || ' ' || t.text end, 0, 0",
    ),
    "statement": _Source(
        key="t.seq",
        project="t.project_seq",
        source="statements t join projects p on p.seq = t.project_seq join sessions s on s.seq = t.session_seq",
        columns="t.at, p.root, s.id, t.gate, t.text, 0, 0",
    ),
    "memory": _Source(
        key="m.seq",
        project="m.project_seq",
        source="memories m join projects p on p.seq = m.project_seq",
        columns="m.created_at, p.root, m.session_id, m.gate, m.text, 0, 0",
    ),
    "injection": _Source(
        key="n.seq",
        project="n.project_seq",
        source="injections n join projects p on p.seq = n.project_seq",
        columns="n.at, p.root, n.session_id, n.event, '', n.tokens, "
        "(select count(*) from injection_items i where i.injection_seq = n.seq)",
    ),
}
KINDS: tuple[str, ...] = tuple(_SOURCES)
_LAST: Mapping[str, str] = {
    "event": "select max(seq) from events",
    "turn": "select max(seq) from turns",
    "statement": "select max(seq) from statements",
    "memory": "select max(seq) from memories",
    "injection": "select max(seq) from injections",
}


def positions(rows: Rows) -> dict[str, int]:
    """The last row key of each kind; 0 for none."""
    return {kind: int(rows.value(_LAST[kind]) or 0) for kind in KINDS}


def after(rows: Rows, kind: str, position: int, *, projects: Sequence[int] | None, limit: int) -> list[Happening]:
    """The rows of a kind past a position that are of these projects (None: of any), the first first."""
    return _read(rows, kind, position, projects, limit, "asc")


def latest(rows: Rows, kind: str, *, after: int = 0, projects: Sequence[int] | None, limit: int) -> list[Happening]:
    """The last rows of a kind, as far as they are past a position, the first first."""
    return _read(rows, kind, after, projects, limit, "desc")[::-1]


def _read(
    rows: Rows, kind: str, position: int, projects: Sequence[int] | None, limit: int, order: str
) -> list[Happening]:
    of = _SOURCES[kind]
    key, source, columns = of.key, of.source, of.columns
    among = "" if projects is None else f"and {of.project} in ({', '.join(str(int(p)) for p in projects)})"
    found = rows.all(
        f"select {key}, {columns} from {source} where {key} > :after {among} order by {key} {order} limit :limit",  # noqa: S608
        after=position,
        limit=limit,
    )
    return [
        Happening(kind=kind, seq=a, at=b, project=c, session=d, word=e, text=f, amounts=(g, h))
        for a, b, c, d, e, f, g, h in found
    ]
