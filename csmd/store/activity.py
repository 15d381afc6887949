"""What is counted and how the database grows; what was composed and looked for, in numbers; what happens, for who looks on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from csmd.store import tombstones
from csmd.store.sqlite import Rows, live_bytes


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
    return {str(name): int(value) for name, value in rows.all("select name, value from counters order by name")}


#: What `csmd status` counts; every table is a word of the glossary.
COUNTED: Sequence[tuple[str, str]] = (
    ("projects", "select count(*) from projects where seq > 0 and kind <> 'workspace' and merged_into = 0"),
    ("sessions", "select count(*) from sessions where parent = '' and host <> 'probe'"),
    ("agents", "select count(*) from sessions where parent <> ''"),
    (
        "turns",
        "select count(*) - (select coalesce(sum(s.turns), 0) from sessions s where s.host = 'probe') from turns",
    ),
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
    return {name: int(rows.value(sql)) for name, sql in COUNTED}


#: What triggers count as rows come and go.
TALLIED = frozenset({"turns", "events", "statements", "injections", "vectors"})


def known(rows: Rows) -> dict[str, int]:
    """The same as `counts`, the long tables by their tally: as quick with a million rows as with one."""
    tallies = {str(name): int(value) for name, value in rows.all("select name, value from tallies order by name")}
    return {name: tallies.get(name, 0) if name in TALLIED else int(rows.value(sql)) for name, sql in COUNTED}


def memories_by(rows: Rows) -> list[tuple[str, str, int]]:
    """(gate, tier, memories) of each pair that has some."""
    found = rows.all("select gate, tier, count(*) from memories group by gate, tier order by gate, tier")
    return [(str(gate), str(tier), int(amount)) for gate, tier, amount in found]


def last_event(rows: Rows) -> dict[str, str]:
    """When each kind of hook event was last seen; found kind by kind, so that no event but the last is looked at."""
    found: dict[str, str] = {}
    name = rows.value("select min(name) from events")
    while name is not None:
        found[str(name)] = str(rows.value("select max(at) from events where name = :name", name=name))
        name = rows.value("select min(name) from events where name > :name", name=name)
    return found


def last_read(rows: Rows) -> str:
    """When a transcript last brought something; "" for never."""
    return str(rows.value("select max(read_at) from files") or "")


def project_counts(rows: Rows) -> list[tuple[int, str, str, int, int, str]]:
    """(seq, root, name, sessions, memories, last activity) of every project, the latest first."""
    return [
        (int(a), str(b), str(c), int(d), int(e), str(f))
        for a, b, c, d, e, f in rows.all(
            "select p.seq, p.root, p.name, (select count(*) from sessions s where s.project_seq = p.seq and "
            "s.parent = ''), (select count(*) from memories m where m.project_seq = p.seq), "
            "coalesce((select max(s.last_at) from sessions s where s.project_seq = p.seq), '') as last_at "
            "from projects p where p.seq > 0 and p.kind <> 'workspace' and p.merged_into = 0 order by last_at desc, p.seq"
        )
    ]


def born(rows: Rows) -> str:
    """When this database was made; "" when nobody noted it."""
    return str(rows.value("select min(applied_at) from migrations") or "")


#: Days that are kept.
MOST_DAYS = 60


def note_size(rows: Rows, day: str) -> bool:
    """Notes the size of a day (`2026-05-04`) unless it is noted already, and drops the oldest days; whether it was new."""
    added = rows.value(
        "insert into sizes (day, bytes) values (:day, :bytes) on conflict (day) do nothing returning bytes",
        day=day,
        bytes=live_bytes(rows),
    )
    if added is None:
        return False
    rows.run("delete from sizes where day not in (select day from sizes order by day desc limit :most)", most=MOST_DAYS)
    return True


def size_list(rows: Rows) -> list[tuple[str, int]]:
    """(day, bytes) of every day that was noted, the first first."""
    return [(str(day), int(size)) for day, size in rows.all("select day, bytes from sizes order by day")]


#: Rows of each of the two that are kept at most.
MOST_NOTED = 50_000


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


def add_lookups(
    rows: Rows, composed: Sequence[Composed], recalled: Sequence[Recalled], *, before: str, key: bytes
) -> None:
    """Writes down a batch, and lets go of what is from before a time or beyond the most that are kept.

    Not of a session that was purged since it was noted.
    """
    gone = tombstones.purged_names(rows, "session", list({one.session_id for one in composed}), key=key)
    for one in composed:
        if one.session_id in gone:
            continue
        rows.insert("context_log", at=one.at, session_id=one.session_id, event=one.event, chosen=one.chosen, cut=one.cut, tokens=one.tokens, degraded=one.degraded, ms=one.ms)  # fmt: skip
    for asked in recalled:
        rows.insert("memory_recall_events", at=asked.at, kind=asked.kind, query_hash=asked.query_hash, results=asked.results, top=asked.top, ms=asked.ms)  # fmt: skip
    for table in ("context_log", "memory_recall_events"):
        rows.run(f"delete from {table} where at < :before", before=before)  # noqa: S608
        rows.run(
            f"delete from {table} where seq <= (select max(l.seq) from {table} l) - :most",  # noqa: S608
            most=MOST_NOTED,
        )


def composed_since(rows: Rows, since: str, *, limit: int = MOST_NOTED) -> list[Composed]:
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


def recalled_since(rows: Rows, since: str, *, limit: int = MOST_NOTED) -> list[Recalled]:
    """What was looked for at or after a time, the latest first."""
    found = rows.all(
        "select at, kind, query_hash, results, top, ms from memory_recall_events where at >= :since "
        "order by at desc, seq desc limit :limit",
        since=since,
        limit=limit,
    )
    return [Recalled(at=a, kind=b, query_hash=c, results=d, top=e, ms=f) for a, b, c, d, e, f in found]


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


def happened_after(
    rows: Rows, kind: str, position: int, *, projects: Sequence[int] | None, limit: int
) -> list[Happening]:
    """The rows of a kind past a position that are of these projects (None: of any), the first first."""
    return _read(rows, kind, position, projects, limit, "asc")


def latest_positions(
    rows: Rows, kind: str, *, after: int = 0, projects: Sequence[int] | None, limit: int
) -> list[Happening]:
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
