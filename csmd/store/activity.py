"""Counters, sizes, telemetry in numbers, the feed of tail and top."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from csmd.store import tombstones
from csmd.store.sqlite import Rows, as_value, column_values, in_keys, live_bytes


def count(rows: Rows, names: Iterable[tuple[str, int]]) -> None:
    """Adds to named counters (bad lines, redactions by kind, ...)."""
    for name, amount in names:
        rows.insert(
            "counters",
            "on conflict (name) do update set value = counters.value + excluded.value",
            name=name,
            value=amount,
        )


def counters(rows: Rows) -> dict[str, int]:
    """Every counter and its value."""
    return dict(rows.all("select name, value from counters order by name"))


#: What `csmd status` counts; every table is a word of the glossary.
COUNTED: Sequence[tuple[str, str]] = (
    ("projects", "select count(*) from projects where seq > 0 and kind <> 'workspace' and merged_into = 0"),
    ("sessions", "select count(*) from sessions where parent = '' and host <> 'probe'"),
    ("agents", "select count(*) from sessions where parent <> ''"),
    ("turns", "select count(*) - (select coalesce(sum(s.turns), 0) from sessions s where s.host = 'probe') from turns"),
    ("provisional", "select count(*) from turns where source = 'hook' and provisional = 1"),
    ("hook_only", "select count(*) from turns where source = 'hook' and provisional = 0"),
    ("events", "select count(*) from events"),
    ("statements", "select count(*) from statements"),
    ("memories", "select count(*) from memories"),
    ("vectors", "select count(*) from vectors"),
    ("injections", "select count(*) from injections"),
)


def counts(rows: Rows) -> dict[str, int]:
    """How many rows of each kind there are."""
    return {name: rows.number(sql) for name, sql in COUNTED}


#: What triggers count as rows come and go.
TALLIED = frozenset({"turns", "events", "statements", "injections", "vectors"})


def tallied_counts(rows: Rows) -> dict[str, int]:
    """The same as `counts`, the long tables by their tally: as quick with a million rows as with one."""
    tallies: dict[str, int] = dict(rows.all("select name, value from tallies order by name"))
    return {name: tallies.get(name, 0) if name in TALLIED else rows.number(sql) for name, sql in COUNTED}


def memories_by(rows: Rows) -> list[tuple[str, str, int]]:
    """(gate, tier, memories) of each pair that has some."""
    return rows.all("select gate, tier, count(*) from memories group by gate, tier order by gate, tier")


def last_event(rows: Rows) -> dict[str, str]:
    """When each kind of hook event was last seen; found kind by kind, so that no event but the last is looked at."""
    last: dict[str, str] = {}
    name = rows.value("select min(name) from events")
    while name is not None:
        last[str(name)] = str(rows.value("select max(at) from events where name = :name", name=name))
        name = rows.value("select min(name) from events where name > :name", name=name)
    return last


def by_host(rows: Rows) -> list[tuple[str, int, int, str, str]]:
    """(host, sessions, turns, last turn, last event or "") of each assistant; turns and the last one are sub-agents', too."""
    hosts = rows.all(
        "select s.host, sum(case when s.parent = '' then 1 else 0 end), "
        "sum((select count(*) from session_turn st where st.session_seq = s.seq)), max(s.last_at) "
        "from sessions s where s.host <> 'probe' group by s.host order by s.host"
    )
    events = {str(host): str(at) for host, at in rows.all("select host, max(at) from events group by host")}
    return [(host, sessions, turns, last, events.get(host, "")) for host, sessions, turns, last in hosts]


def last_read(rows: Rows) -> str:
    """When a transcript last brought something; "" for never."""
    return rows.text("select max(read_at) from files")


def project_counts(rows: Rows) -> list[tuple[int, str, str, int, int, str]]:
    """(seq, root, name, sessions, memories, last activity) of every project, the latest first."""
    return rows.all(
        "select p.seq, p.root, p.name, (select count(*) from sessions s where s.project_seq = p.seq and "
        "s.parent = ''), (select count(*) from memories m where m.project_seq = p.seq), "
        "coalesce((select max(s.last_at) from sessions s where s.project_seq = p.seq), '') as last_at "
        "from projects p where p.seq > 0 and p.kind <> 'workspace' and p.merged_into = 0 order by last_at desc, p.seq"
    )


def created_at(rows: Rows) -> str:
    """When this database was made; "" when that is not recorded."""
    return rows.text("select min(applied_at) from migrations")


#: Days that are kept.
MOST_DAYS = 60


def note_size(rows: Rows, day: str) -> bool:
    """Notes the size of a day (`2026-05-04`) unless it is noted already, and drops the oldest days; whether it was new."""
    sql = "insert into sizes (day, bytes) values (:day, :bytes) on conflict (day) do nothing returning bytes"
    added = rows.value(sql, day=day, bytes=live_bytes(rows))
    if added is None:
        return False
    rows.keep_newest("sizes", "day", "day", most=MOST_DAYS)
    return True


def size_list(rows: Rows) -> list[tuple[str, int]]:
    """(day, bytes) of every day that was noted, the first first."""
    return rows.all("select day, bytes from sizes order by day")


#: Rows of each of the two that are kept at most.
MOST_NOTED = 50_000


class Composition(NamedTuple):
    """What was composed for an event: how many notes were chosen, how many did not fit, whether a part was missing."""

    at: str
    session_id: str
    event: str
    chosen: int
    cut: int
    tokens: int
    degraded: int
    ms: int


class Lookup(NamedTuple):
    """What was looked for: through which door (search, recall, prompt), how much was found and how well the best fits."""

    at: str
    kind: str
    query_hash: str
    results: int
    top: float
    ms: int


def add_lookups(
    rows: Rows, composed: Sequence[Composition], recalled: Sequence[Lookup], *, before: str, key: bytes
) -> None:
    """Writes down a batch, and lets go of what is from before a time or beyond the most that are kept.

    Not of a session that was purged since it was noted.
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
        rows.run(
            f"delete from {table} where seq <= (select max(l.seq) from {table} l) - :most",  # noqa: S608
            most=MOST_NOTED,
        )


def compositions_since(rows: Rows, since: str, *, limit: int = MOST_NOTED) -> list[Composition]:
    """What was composed at or after a time, the latest first."""
    sql = (
        "select at, session_id, event, chosen, cut, tokens, degraded, ms from context_log where at >= :since "
        "order by at desc, seq desc limit :limit"
    )
    return rows.read(Composition, sql, since=since, limit=limit)


def lookups_since(rows: Rows, since: str, *, limit: int = MOST_NOTED) -> list[Lookup]:
    """What was looked for at or after a time, the latest first."""
    sql = (
        "select at, kind, query_hash, results, top, ms from memory_recall_events where at >= :since "
        "order by at desc, seq desc limit :limit"
    )
    return rows.read(Lookup, sql, since=since, limit=limit)


class FeedRow(NamedTuple):
    """One row of the feed: its kind, key and time, the root of its project ("" when unknown), its session and content.

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
    """Where the rows of a kind are: the columns of their key, project, session and time, and what is read of them.

    `content` selects the project's root, the word, the text, the tokens and the memories.
    """

    key: str
    project: str
    session: str
    at: str
    content: str
    rows: str


_SOURCES: Mapping[str, _Source] = {
    "event": _Source(
        "e.seq",
        "s.project_seq",
        "e.session_id",
        "e.at",
        "coalesce(p.root, ''), e.name, e.source, 0, 0",
        "events e left join sessions s on s.id = e.session_id left join projects p on p.seq = s.project_seq",
    ),
    "turn": _Source(
        "t.seq",
        "t.project_seq",
        "s.id",
        "t.at",
        "p.root, t.kind, case when t.tool_name = '' then t.text else t.tool_name || ' ' || t.text end, 0, 0",
        # Not a marker of `csmd doctor`, which is nobody's.
        "turns t join projects p on p.seq = t.project_seq join sessions s on s.seq = t.session_seq and s.host <> 'probe'",
    ),
    "statement": _Source(
        "t.seq",
        "t.project_seq",
        "s.id",
        "t.at",
        "p.root, t.gate, t.text, 0, 0",
        "statements t join projects p on p.seq = t.project_seq join sessions s on s.seq = t.session_seq",
    ),
    "memory": _Source(
        "m.seq",
        "m.project_seq",
        "m.session_id",
        "m.created_at",
        "p.root, m.gate, m.text, 0, 0",
        "memories m join projects p on p.seq = m.project_seq",
    ),
    "injection": _Source(
        "n.seq",
        "n.project_seq",
        "n.session_id",
        "n.at",
        "p.root, n.event, '', n.tokens, (select count(*) from injection_items i where i.injection_seq = n.seq)",
        "injections n join projects p on p.seq = n.project_seq",
    ),
    # What was done to memories: merged, edited, undone, forgotten; the words of one that is left.
    "act": _Source(
        "a.seq",
        "coalesce(m.project_seq, a.project_seq)",
        "coalesce(m.session_id, '')",
        "a.at",
        "coalesce(p.root, ''), a.act, a.memory_id || case when a.about = '' then '' else ', ' || a.about end || "
        "case when m.text is null then '' else ': ' || m.text end, 0, 0",
        "memory_events a left join memories m on m.id = a.memory_id "
        "left join projects p on p.seq = coalesce(m.project_seq, a.project_seq)",
    ),
    # Of a search nobody keeps where it was made or what was asked: behind a wall none is told.
    "search": _Source(
        "r.seq",
        "cast(null as integer)",
        "''",
        "r.at",
        "'', r.kind, '', 0, r.results",
        # What is recalled for a prompt is told as an injection.
        "memory_recall_events r join projects p on p.seq = 0 and r.kind <> 'prompt'",
    ),
}
KINDS: tuple[str, ...] = tuple(_SOURCES)


def feed_positions(rows: Rows) -> dict[str, int]:
    """The last row key of each kind; 0 for none."""
    tables = {kind: source.rows.partition(" ")[0] for kind, source in _SOURCES.items()}
    return {kind: rows.number(f"select max(seq) from {table}") for kind, table in tables.items()}  # noqa: S608


def feed_after(
    rows: Rows, kind: str, position: int, *, projects: Sequence[int] | None, limit: int, session: str = "", since: str = ""
) -> list[FeedRow]:  # fmt: skip
    """The rows of a kind past a position that are of these projects (None: of any), the first first.

    Of one session ("": of any), at or after a time.
    """
    return _read(rows, kind, position, projects, limit, "asc", session=session, since=since)


def latest_feed(
    rows: Rows, kind: str, *, after: int = 0, projects: Sequence[int] | None, limit: int, session: str = "", since: str = ""
) -> list[FeedRow]:  # fmt: skip
    """The last rows of a kind as in `feed_after`, as far as they are past a position, the first first."""
    return _read(rows, kind, after, projects, limit, "desc", session=session, since=since)[::-1]


def _read(
    rows: Rows, kind: str, position: int, projects: Sequence[int] | None, limit: int, order: str, *, session: str,
    since: str,
) -> list[FeedRow]:  # fmt: skip
    source = _SOURCES[kind]
    sql = (
        f"select {source.key}, {source.at}, {source.session}, {source.content} from {source.rows} "  # noqa: S608
        f"where {source.key} > :after and {in_keys(source.project, projects)} "
        f"and (:session = '' or {source.session} = :session) and {source.at} >= :since "
        f"order by {source.key} {order} limit :limit"
    )
    events = rows.all(sql, after=position, limit=limit, session=session, since=since)
    return [
        as_value(FeedRow, (kind, key, at, root, ident, word, text, amounts))
        for key, at, ident, root, word, text, *amounts in events
    ]
