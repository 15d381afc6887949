"""Invariants of beliefs as queries, and the soundness of the file.

A row of INVARIANTS is a rule, the query for what breaks it (one column of ids), and the remedy. Forgotten statements
are known only by keyed hashes, so `_find_forgotten` checks that rule in Python.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from csmd.errors import SchemaTooNew, SchemaTooOld, StoreError
from csmd.store import migrate, passages, recovery, tombstones, vectors
from csmd.store.sqlite import Rows, full_text_tables, open_rows
from csmd.text.display import amount
from csmd.vocabulary import CATEGORIES

#: How many violations of a rule are named.
MAX_SHOWN = 20
#: The least confidence of a new correction in any category (memory/confidence.py).
MIN_CORRECTION_CONFIDENCE = 0.6
#: The least confidence that the candidate of an inferred memory reached.
MIN_INFERRED_CONFIDENCE = 0.7
#: How often it was seen at least.
MIN_REINFORCEMENT = 3
#: How many turns support it at least.
MIN_EVIDENCE = 2


class Invariant(NamedTuple):
    """A rule without exceptions, the query for its violations, and the remedy."""

    name: str
    rule: str
    sql: str
    remedy: str


def _bound_by_category(bound: str) -> str:
    parts = " ".join(f"when '{name}' then {getattr(rule, bound)}" for name, rule in CATEGORIES.items())
    return f"case m.category {parts} else 0 end"


_FORGET = "`csmd show ID` tells where it comes from, `csmd forget ID` removes it"
_REPAIR = "`csmd repair --dry-run` says what is wrong with the database"
_REVIEW = "`csmd review` shows it"
_OUTSIDE = (
    "select m.id from memories m where m.confidence < 0 or m.confidence > 1 "  # noqa: S608 - of a table of ours
    # Above the range only if said again or pinned, below only if contradicted since.
    f"or (m.confidence > {_bound_by_category('high')} + 0.0001 and m.pinned = 0 and m.origin <> 'inferred' "
    "and (select count(*) from provenance p where p.memory_seq = m.seq and p.role <> 'beside') < 2) "
    f"or (m.confidence < {_bound_by_category('low')} - 0.0001 and m.pinned = 0 and m.superseded_by = '' "
    "and m.origin <> 'inferred' and not (m.gate = 'correction' and m.confidence >= :correction) "
    "and not exists (select 1 from links l where l.from_seq = m.seq or l.to_seq = m.seq) "
    "and not exists (select 1 from belief_changes b where b.memory_id = m.id)) order by m.id limit :shown"
)

INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "provenance", "every memory was said somewhere",
        "select m.id from memories m where not exists (select 1 from provenance p where p.memory_seq = m.seq) "
        "order by m.id limit :shown",
        _FORGET,
    ),
    Invariant(
        "evidence", "what was inferred rests on evidence above the thresholds",
        "select c.id from candidates c where c.status = 'promoted' and c.source not like '%relaxed%' "
        "and c.kind not in ('duplicate', 'near_duplicate', 'stale', 'missing_embedding', 'orphan') "
        "and (c.confidence < :confidence or c.reinforcement < :seen or c.contradicted > 0 or (select count(*) "
        "from candidate_evidence e where e.candidate_seq = c.seq and e.against = 0) < :evidence) "
        "order by c.id limit :shown",
        _REVIEW,
    ),
    Invariant(
        "inferred", "every inferred memory has the candidate it came from",
        "select m.id from memories m where m.origin = 'inferred' and not exists (select 1 from candidates c "
        "where c.status = 'promoted' and ' ' || c.memory_ids || ' ' like '% ' || m.id || ' %') "
        "order by m.id limit :shown",
        _FORGET,
    ),
    Invariant(
        "external", "what comes from outside is evidence, never a statement",
        "select m.id from memories m where m.authority = 'external' and m.origin = 'stated' order by m.id limit :shown",
        _FORGET,
    ),
    Invariant(
        "external-statements", "no sentence from outside is chosen as a statement",
        "select cast(x.seq as text) from statements x where x.authority = 'external' order by 1 limit :shown",
        _REPAIR,
    ),
    Invariant(
        "model-saved", "what an assistant saved by itself does not count as the user's",
        "select m.id from memories m where m.origin = 'model_saved' and m.authority = 'user' "
        "order by m.id limit :shown",
        _FORGET,
    ),
    Invariant(
        "superseded", "what supersedes a memory is there, is another one, and holds where that does",
        "select m.id from memories m where m.superseded_by <> '' and not exists (select 1 from memories n "
        "join projects p on p.seq = m.project_seq where n.id = m.superseded_by and n.seq <> m.seq "
        "and (n.project_seq in (m.project_seq, p.workspace_seq, 0) or p.merged_into > 0)) order by m.id limit :shown",
        "`csmd supersede --undo ID` takes it back",
    ),
    Invariant(
        "merged", "what was merged is archived and names what it was merged into",
        "select m.id from links l join memories m on m.seq = l.from_seq join memories n on n.seq = l.to_seq "
        "where l.relationship = 'merged_into' and (m.tier <> 'archive' or m.superseded_by <> n.id) "
        "order by m.id limit :shown",
        "`csmd pipeline merge --undo ID` takes the merge back",
    ),
    Invariant(
        "confidence", "a confidence is within its category's range, or something explains it",
        _OUTSIDE,
        "`csmd show ID` tells how it came about; `csmd edit ID` sets it right",
    ),
    Invariant(
        "forgotten", "nothing is remembered that was forgotten",
        "",
        "`csmd forget ID` removes it again",
    ),
    Invariant(
        "links", "every link leads from a memory to another one",
        "select cast(l.from_seq as text) from links l where l.from_seq = l.to_seq "
        "or not exists (select 1 from memories m where m.seq = l.from_seq) "
        "or not exists (select 1 from memories m where m.seq = l.to_seq) order by 1 limit :shown",
        _REPAIR,
    ),
    Invariant(
        "statements", "every statement was said in a turn of a session",
        "select cast(x.seq as text) from statements x where not exists "
        "(select 1 from sessions s where s.seq = x.session_seq) or not exists "
        "(select 1 from turns t where t.seq = x.turn_seq) order by 1 limit :shown",
        _REPAIR,
    ),
    Invariant(
        "pinned", "what is pinned does not fade",
        "select m.id from memories m where m.pinned = 1 and (m.decay <> 'permanent' or m.tier in ('session', 'daily')) "
        "order by m.id limit :shown",
        "`csmd remember --pin` with the same words pins it again",
    ),
    Invariant(
        "thresholds", "a memory cools before it is cold, and is cold before it is archived",
        "select m.id from memories m where m.hot_until > m.warm_until or m.warm_until > m.archive_at "
        "order by m.id limit :shown",
        "`csmd remember` with the same words counts its age anew",
    ),
    Invariant(
        "scope", "only a project's own memories stand in it, and only what holds everywhere elsewhere",
        "select m.id from memories m join projects p on p.seq = m.project_seq "
        "where m.scope <> 'project' and p.seq <> 0 and p.kind <> 'workspace' order by m.id limit :shown",
        _FORGET,
    ),
    Invariant(
        "candidates", "every candidate rests on turns that are there",
        "select c.id from candidates c where c.status in ('open', 'needs_review') and exists "
        "(select 1 from candidate_evidence e where e.candidate_seq = c.seq) and not exists (select 1 "
        "from candidate_evidence e where e.candidate_seq = c.seq and (substr(e.uuid, 1, 4) = 'cli:' or exists "
        "(select 1 from turns t where t.uuid = e.uuid) or exists (select 1 from provenance p where p.uuid = e.uuid))) "
        "order by c.id limit :shown",
        f"{_REVIEW}: drop it",
    ),
)  # fmt: skip


def find_violations(rows: Rows, key: bytes) -> dict[str, list[str]]:
    """Rule -> up to MAX_SHOWN ids that break it; rules that hold are left out."""
    values = {
        "shown": MAX_SHOWN,
        "confidence": MIN_INFERRED_CONFIDENCE,
        "seen": MIN_REINFORCEMENT,
        "evidence": MIN_EVIDENCE,
        "correction": MIN_CORRECTION_CONFIDENCE,
    }
    broken = {}
    for invariant in INVARIANTS:
        wanted = {name: value for name, value in values.items() if f":{name}" in invariant.sql}
        ids = rows.column(invariant.sql, **wanted) if invariant.sql else _find_forgotten(rows, key)
        if ids:
            broken[invariant.name] = ids
    return broken


def _find_forgotten(rows: Rows, key: bytes) -> list[str]:
    """The memories that the user had forgotten, or that an assistant had and an assistant said."""
    gone = tombstones.forgotten_hashes(rows)
    idents = []
    if gone:
        for ident, text, gate, authority, project, at in rows.all(
            "select id, text, gate, authority, project_seq, created_at from memories order by id"
        ):
            if tombstones.statement_hash(str(text), key) in gone and tombstones.is_statement_forgotten(
                rows, str(text), correction=gate == "correction", authority=authority, project=project, at=at, key=key
            ):
                idents.append(str(ident))
    return idents[:MAX_SHOWN]


def _difference_query(counted: str, kept: str) -> str:
    """The number of rows that differ between two counts; a row of zeros counts as missing."""
    numbers = {"graph_counts": "memories + topics + sessions + tagged + produced", "link_counts": "number"}[kept]
    rows = f"select * from {kept} where {numbers} <> 0"  # noqa: S608
    return (
        f"select (select count(*) from (select * from {counted} except {rows})) + "  # noqa: S608
        f"(select count(*) from ({rows} except select * from {counted}))"
    )


#: Problem -> the query that counts its rows.
_PROBLEM_COUNTS = {
    "turns: {} in no session's order": (
        "select count(*) from turns t where not exists (select 1 from session_turn st where st.turn_seq = t.seq)"
    ),
    "session_turn: {} with a turn past the last of its session": (
        "select count(*) from sessions s where exists "
        "(select 1 from session_turn st where st.session_seq = s.seq and (st.ordinal > s.turns or st.ordinal < 1))"
    ),
    "sessions: {} with an end before the beginning": "select count(*) from sessions where last_at < started_at",
    "memories: {} without a turn to rest on": (
        "select count(*) from memories m where not exists (select 1 from provenance p where p.memory_seq = m.seq)"
    ),
    "counters: {} below zero": "select count(*) from counters where value < 0",
    "cursors: {} below zero": "select count(*) from cursors where position < 0",
    "files: {} read to a place before the beginning": "select count(*) from files where position < 0",
    "graph_counts: {} projects are counted otherwise": _difference_query("graph_counted", "graph_counts"),
    "link_counts: {} relationships are counted otherwise": _difference_query("links_counted", "link_counts"),
}


def check_database(rows: Rows) -> list[str]:
    """Lists the problems of the structure, rows, full-text indexes and vectors; empty if sound."""
    problems = check_structure(rows)
    # Unreadable rows cannot be counted.
    return problems + ([] if problems else check_content(rows)) + check_indexes(rows)


def check_structure(rows: Rows) -> list[str]:
    """Lists the problems of the file's pages and references, without the full-text indexes."""
    problems: list[str] = []
    try:
        # Table by table, because virtual tables are checked below.
        for (table,) in rows.all("select name from sqlite_schema where type = 'table' and rootpage > 0"):
            wrong = [str(text) for (text,) in rows.all(f"pragma quick_check('{table}')") if text != "ok"]
            problems += [f"{table}: {wrong[0].splitlines()[-1]}"] if wrong else []
        problems += [f"{table}: row {row} refers to nothing" for table, row, *_ in rows.all("pragma foreign_key_check")]
    except StoreError as error:
        problems.append(error.what)
    return problems


def check_content(rows: Rows) -> list[str]:
    """Lists the contradictions between readable rows."""
    counted = [(text, rows.number(sql)) for text, sql in _PROBLEM_COUNTS.items()]
    return [text.format(count) for text, count in counted if count]


def check_hashes(rows: Rows) -> list[str]:
    """Lists the tables whose texts no longer match their keyed hashes; reads all texts."""
    key = recovery.read_hash_key(rows)
    problems = []
    for table in recovery.list_tables(rows):
        sound = recovery.make_row_check(table, key)
        try:
            wrong = sum(
                not sound(row[1:]) for row in recovery.read_span(rows, table, recovery.MIN_ROWID, recovery.MAX_ROWID)
            )
        except UnicodeDecodeError:
            problems.append(f"{table.name}: a row holds what is no text")
            continue
        if wrong:
            problems.append(f"{table.name}: {amount(wrong, 'row')} altered since stored")
    return problems


def check_indexes(rows: Rows) -> list[str]:
    """Lists the problems of the full-text indexes and vectors."""
    problems: list[str] = []
    for table in full_text_tables(rows):
        try:
            rows.run(f"insert into {table} ({table}, rank) values ('integrity-check', 1)")  # noqa: S608
        except StoreError as error:
            problems.append(f"{table}: {error.what}")
        except UnicodeDecodeError:
            problems.append(f"{table}: a row holds what is no text")
    try:
        return problems + passages.find_index_problems(rows) + vectors.find_problems(rows)
    except StoreError as error:
        return [*problems, f"vectors: {error.what}"]


#: SQLite's settings of the file and of the connection.
_PRAGMAS = ("application_id", "user_version", "journal_mode", "synchronous", "page_size", "page_count", "freelist_count",
            "auto_vacuum", "secure_delete", "foreign_keys")  # fmt: skip


def describe_database(rows: Rows) -> dict[str, dict[str, Any]]:
    """The database without content: columns and row counts of each table, migrations, SQLite's settings."""
    tables: dict[str, Any] = {}
    for (table,) in rows.all("select name from sqlite_schema where type = 'table' and rootpage > 0 order by name"):
        columns = rows.column("select name from pragma_table_info(:table)", table=table)
        tables[str(table)] = {"columns": columns, "rows": rows.number(f"select count(*) from '{table}'")}  # noqa: S608
    return {
        "tables": tables,
        "migrations": dict(rows.all("select name, applied_at from migrations")),
        "pragmas": {name: rows.value(f"pragma {name}") for name in _PRAGMAS},
        "sqlite": {"version": rows.value("select sqlite_version()")},
    }


class Inspection(NamedTuple):
    """The problems of a file; `only_indexes` if its rows are sound and only derived data is not."""

    problems: list[str]
    only_indexes: bool = False


def inspect(path: Path) -> Inspection:
    """Checks the database in a file, a scratch copy; raises SchemaTooNew or SchemaTooOld for another version's."""
    if path.is_dir():
        return Inspection(["a directory is where the database belongs"])
    if not path.exists() or not path.stat().st_size:
        return Inspection([f"the database {'is empty' if path.exists() else 'is gone'}"])
    try:
        with open_rows(path, readonly=False) as rows:
            if not migrate.is_csmd_database(rows):
                return Inspection(["the file is a database of another program"])
            behind = bool(migrate.find_pending(rows))
            wrong = check_structure(rows)
            if not wrong and not rows.value("select count(*) from meta where key = 'hash_key'"):
                wrong = ["the key of the hashes is missing"]
            # An older schema is checked only by its pages: the other checks are for the present one.
            derived = [] if behind else check_indexes(rows)
            between = [] if behind or wrong else check_content(rows) + check_hashes(rows)
            return Inspection([*wrong, *between, *derived], only_indexes=not wrong and not between)
    except (SchemaTooNew, SchemaTooOld):
        raise
    except StoreError as error:
        return Inspection([error.what.removeprefix(f"{path} ")])


def mend_indexes(path: Path) -> bool:
    """Rebuilds full text and vectors from the rows of a file, a scratch copy; returns whether that was enough."""
    try:
        with open_rows(path, readonly=False) as rows:
            with rows.transaction(write=True):
                for table in full_text_tables(rows):
                    if table != passages.INDEX:
                        rows.run(f"insert into {table} ({table}) values ('rebuild')")  # noqa: S608
                passages.rebuild_index(rows)
                if vectors.find_problems(rows):
                    vectors.reset_vectors(rows)
            sound = not check_database(rows)
            rows.run("pragma wal_checkpoint(truncate)")
            return sound
    except StoreError:
        return False
