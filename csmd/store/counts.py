"""What is counted: rows by kind, counters of what happened, the latest of each; for status and results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from csmd.store.sqlite import Rows


def count(rows: Rows, names: Iterable[tuple[str, int]]) -> None:
    """Adds to named counters (bad lines, redactions by kind, ...)."""
    for name, amount in names:
        rows.run(
            "insert into counters (name, value) values (:name, :amount) "
            "on conflict (name) do update set value = counters.value + excluded.value",
            name=name,
            amount=amount,
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


def projects(rows: Rows) -> list[tuple[int, str, str, int, int, str]]:
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
