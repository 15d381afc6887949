"""Counters, row counts and sizes of the database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from csmd.store.sqlite import Rows, count_live_bytes

#: Name -> query of what `csmd status` counts.
COUNT_QUERIES: Sequence[tuple[str, str]] = (
    ("projects", "select count(*) from projects where seq > 0 and kind <> 'workspace' and merged_into = 0"),
    ("sessions", "select count(*) from sessions where parent = '' and host <> 'probe'"),
    ("agents", "select count(*) from sessions where parent <> ''"),
    ("turns", "select count(*) - (select coalesce(sum(s.turns), 0) from sessions s where s.host = 'probe') from turns"),
    ("provisional", "select count(*) from turns where source = 'hook' and provisional = 1"),
    ("hook_only", "select count(*) from turns where source = 'hook' and provisional = 0"),
    ("events", "select count(*) from events"),
    ("statements", "select count(*) from statements"),
    ("memories", "select count(*) from memories where superseded_by = ''"),
    ("superseded", "select count(*) from memories where superseded_by <> ''"),
    ("vectors", "select count(*) from vectors"),
    ("injections", "select count(*) from injections"),
)
#: Counts that triggers keep.
TALLIED_COUNTS = frozenset({"turns", "events", "statements", "injections", "vectors"})
#: Days of sizes that are kept.
MAX_SIZE_DAYS = 60


def increment_counters(rows: Rows, names: Iterable[tuple[str, int]]) -> None:
    """Adds to named counters (bad lines, redactions by kind, ...)."""
    for name, amount in names:
        rows.insert(
            "counters",
            "on conflict (name) do update set value = counters.value + excluded.value",
            name=name,
            value=amount,
        )


def read_counters(rows: Rows) -> dict[str, int]:
    """Returns every counter and its value."""
    return dict(rows.all("select name, value from counters order by name"))


def counts(rows: Rows) -> dict[str, int]:
    """Returns the number of rows of each kind."""
    return {name: rows.number(sql) for name, sql in COUNT_QUERIES}


def read_tallies(rows: Rows) -> dict[str, int]:
    """Returns the counts of `counts` in constant time: those of long tables are kept by triggers."""
    tallies: dict[str, int] = dict(rows.all("select name, value from tallies order by name"))
    return {name: tallies.get(name, 0) if name in TALLIED_COUNTS else rows.number(sql) for name, sql in COUNT_QUERIES}


def count_by_gate_and_tier(rows: Rows) -> list[tuple[str, str, int]]:
    """Returns (gate, tier, memories) of each pair that has some; superseded ones are not counted."""
    current = (
        "select gate, tier, count(*) from memories where superseded_by = '' group by gate, tier order by gate, tier"
    )
    return rows.all(current)


def list_last_event_times(rows: Rows) -> dict[str, str]:
    """Returns the time of the last hook event of each name; one index lookup for each, so no other event is read."""
    last: dict[str, str] = {}
    name = rows.value("select min(name) from events")
    while name is not None:
        last[str(name)] = str(rows.value("select max(at) from events where name = :name", name=name))
        name = rows.value("select min(name) from events where name > :name", name=name)
    return last


def list_totals_by_host(rows: Rows) -> list[tuple[str, int, int, str, str]]:
    """Returns (host, sessions, turns, last turn, last event or "") of each assistant; turns include sub-agents'."""
    sql = """select s.host, sum(case when s.parent = '' then 1 else 0 end),
        sum((select count(*) from session_turn st where st.session_seq = s.seq)), max(s.last_at)
        from sessions s where s.host <> 'probe' group by s.host order by s.host"""
    hosts = rows.all(sql)
    events = {str(host): str(at) for host, at in rows.all("select host, max(at) from events group by host")}
    return [(host, sessions, turns, last, events.get(host, "")) for host, sessions, turns, last in hosts]


def find_last_read_time(rows: Rows) -> str:
    """Returns when a transcript last had new lines; "" if there is none."""
    return rows.text("select max(read_at) from files")


def project_counts(rows: Rows) -> list[tuple[int, str, str, int, int, str]]:
    """Returns (seq, root, name, sessions, current memories, last activity) of every project, the latest first."""
    sql = """select p.seq, p.root, p.name, (select count(*) from sessions s where s.project_seq = p.seq
        and s.parent = ''), (select count(*) from memories m where m.project_seq = p.seq
        and m.superseded_by = ''), coalesce((select
        max(s.last_at) from sessions s where s.project_seq = p.seq), '') as last_at from projects p
        where p.seq > 0 and p.kind <> 'workspace' and p.merged_into = 0 order by last_at desc, p.seq"""
    return rows.all(sql)


def find_creation_time(rows: Rows) -> str:
    """Returns when this database was created; "" if unknown."""
    return rows.text("select min(applied_at) from migrations")


def record_size(rows: Rows, day: str) -> bool:
    """Records the size of a day (`2026-05-04`) and drops the oldest days; False if the day has a size."""
    sql = "insert into sizes (day, bytes) values (:day, :bytes) on conflict (day) do nothing returning bytes"
    added = rows.value(sql, day=day, bytes=count_live_bytes(rows))
    if added is None:
        return False
    rows.keep_newest("sizes", "day", "day", limit=MAX_SIZE_DAYS)
    return True


def list_sizes(rows: Rows) -> list[tuple[str, int]]:
    """Returns (day, bytes) of every recorded day, in order."""
    return rows.all("select day, bytes from sizes order by day")
