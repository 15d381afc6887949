"""The feed of csmd tail and top: events, turns, statements, memories, injections, changes and searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from csmd.store.row_values import as_value
from csmd.store.sqlite import Rows, in_keys


class FeedRow(NamedTuple):
    """A row of the feed: its kind, key and time, its project's root ("" if unknown), its session and content.

    `word` is from a fixed vocabulary (an event's name, a turn's kind, a gate), `text` is as stored, `amounts` are
    (tokens, memories).
    """

    kind: str
    seq: int
    at: str
    project: str
    session: str
    word: str
    text: str = ""
    amounts: tuple[int, int] = (0, 0)


class _Source(NamedTuple):
    """How rows of a kind are read: the columns of their key, project, session and time, and the tables.

    `content` selects the project's root, the word, the text, the tokens and the memories.
    """

    key: str
    project: str
    session: str
    at: str
    content: str
    tables: str


_SOURCES: Mapping[str, _Source] = {
    "event": _Source(
        "e.seq", "s.project_seq", "e.session_id", "e.at",
        "coalesce(p.root, ''), e.name, e.source, 0, 0",
        "events e left join sessions s on s.id = e.session_id left join projects p on p.seq = s.project_seq",
    ),
    "turn": _Source(
        # Without the markers of `csmd doctor`.
        "t.seq", "t.project_seq", "s.id", "t.at",
        "p.root, t.kind, case when t.tool_name = '' then t.text else t.tool_name || ' ' || t.text end, 0, 0",
        "turns t join projects p on p.seq = t.project_seq join sessions s on s.seq = t.session_seq and s.host <> "
        "'probe'",
    ),
    "statement": _Source(
        "t.seq", "t.project_seq", "s.id", "t.at",
        "p.root, t.gate, t.text, 0, 0",
        "statements t join projects p on p.seq = t.project_seq join sessions s on s.seq = t.session_seq",
    ),
    "memory": _Source(
        "m.seq", "m.project_seq", "m.session_id", "m.created_at",
        "p.root, m.gate, m.text, 0, 0",
        "memories m join projects p on p.seq = m.project_seq",
    ),
    "injection": _Source(
        "n.seq", "n.project_seq", "n.session_id", "n.at",
        "p.root, n.event, '', n.tokens, (select count(*) from injection_items i where i.injection_seq = n.seq)",
        "injections n join projects p on p.seq = n.project_seq",
    ),
    # What happened to memories: merged, edited, undone, forgotten; with the text of those that are left.
    "act": _Source(
        "a.seq", "coalesce(m.project_seq, a.project_seq)", "coalesce(m.session_id, '')", "a.at",
        "coalesce(p.root, ''), a.act, a.memory_id || case when a.about = '' then '' else ', ' || a.about end || "
        "case when m.text is null then '' else ': ' || m.text end, 0, 0",
        "memory_events a left join memories m on m.id = a.memory_id "
        "left join projects p on p.seq = coalesce(m.project_seq, a.project_seq)",
    ),
    # A search is stored without its project and its words, so none is shown inside a workspace.
    "search": _Source(
        # The lookup for a prompt is shown as an injection.
        "r.seq", "cast(null as integer)", "''", "r.at",
        "'', r.kind, '', 0, r.results",
        "memory_recall_events r join projects p on p.seq = 0 and r.kind <> 'prompt'",
    ),
}  # fmt: skip


KINDS: tuple[str, ...] = tuple(_SOURCES)


def read_feed_positions(rows: Rows) -> dict[str, int]:
    """Returns the last row key of each kind; 0 for none."""
    tables = {kind: source.tables.partition(" ")[0] for kind, source in _SOURCES.items()}
    return {kind: rows.number(f"select max(seq) from {table}") for kind, table in tables.items()}  # noqa: S608


def read_feed(
    rows: Rows,
    kind: str,
    *,
    after: int = 0,
    projects: Sequence[int] | None,
    limit: int,
    session: str = "",
    since: str = "",
    is_latest: bool = False,
) -> list[FeedRow]:
    """Returns the first rows of a kind past a position, in order; the last ones if `is_latest`.

    Of one session ("": all), at or after a time.
    """
    source = _SOURCES[kind]
    order = "desc" if is_latest else "asc"
    sql = f"""select {source.key}, {source.at}, {source.session}, {source.content}
        from {source.tables} where {source.key} > :after and {in_keys(source.project, projects)} and (:session = ''
        or {source.session} = :session) and {source.at} >= :since order by {source.key} {order} limit :limit"""  # noqa: S608
    feed = [
        as_value(FeedRow, (kind, key, happened_at, root, session_id, word, text, amounts))
        for key, happened_at, session_id, root, word, text, *amounts in rows.all(
            sql, after=after, limit=limit, session=session, since=since
        )
    ]
    return feed[::-1] if is_latest else feed
