"""Checks of a database: its file, rows, hashes and indexes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from csmd.errors import SchemaTooNew, SchemaTooOld, StoreError
from csmd.store import passages, recovery, schema_migrations, vectors
from csmd.store.sqlite import Rows, list_full_text_tables, open_rows
from csmd.text.display import amount

#: SQLite's settings of the file and of the connection.
_PRAGMAS = ("application_id", "user_version", "journal_mode", "synchronous", "page_size", "page_count", "freelist_count",
            "auto_vacuum", "secure_delete", "foreign_keys")  # fmt: skip


def _make_difference_query(counted: str, kept: str) -> str:
    """Returns the number of rows that differ between two counts; a row of zeros counts as missing."""
    numbers = {"graph_counts": "memories + topics + sessions + tagged + produced", "link_counts": "number"}[kept]
    rows = f"select * from {kept} where {numbers} <> 0"  # noqa: S608
    return f"""select (select count(*)
        from (select * from {counted} except {rows})) + (select count(*) from ({rows} except select * from {counted}))"""  # noqa: S608


#: Problem -> the query that counts its rows.
_PROBLEM_COUNTS = {
    "turns: {} in no session's order": (
        "select count(*) from turns t where not exists (select 1 from session_turn st where st.turn_seq = t.seq)"
    ),
    "session_turn: {} with a turn past the last of its session": """select count(*)
        from sessions s where exists (select 1
        from session_turn st where st.session_seq = s.seq and (st.ordinal > s.turns or st.ordinal < 1))""",
    "sessions: {} with an end before the beginning": "select count(*) from sessions where last_at < started_at",
    "memories: {} without a source turn": (
        "select count(*) from memories m where not exists (select 1 from provenance p where p.memory_seq = m.seq)"
    ),
    "counters: {} below zero": "select count(*) from counters where value < 0",
    "cursors: {} below zero": "select count(*) from cursors where position < 0",
    "files: {} with a position below zero": "select count(*) from files where position < 0",
    "graph_counts: {} projects with a wrong count": _make_difference_query("graph_counted", "graph_counts"),
    "link_counts: {} relationships with a wrong count": _make_difference_query("links_counted", "link_counts"),
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
    counts = {text: rows.number(sql) for text, sql in _PROBLEM_COUNTS.items()}
    return [text.format(count) for text, count in counts.items() if count]


def check_hashes(rows: Rows) -> list[str]:
    """Lists the tables whose texts no longer match their keyed hashes; reads all texts."""
    key = recovery.read_hash_key(rows)
    problems = []
    for table in recovery.list_tables(rows):
        is_valid = recovery.make_row_check(table, key)
        try:
            altered = sum(not is_valid(row[1:]) for row in recovery.read_span(rows, table))
        except UnicodeDecodeError:
            problems.append(f"{table.name}: a row is not valid UTF-8")
            continue
        if altered:
            problems.append(f"{table.name}: {amount(altered, 'row')} altered since stored")
    return problems


def check_indexes(rows: Rows) -> list[str]:
    """Lists the problems of the full-text indexes and vectors."""
    problems: list[str] = []
    for table in list_full_text_tables(rows):
        try:
            rows.run(f"insert into {table} ({table}, rank) values ('integrity-check', 1)")  # noqa: S608
        except StoreError as error:
            problems.append(f"{table}: {error.what}")
        except UnicodeDecodeError:
            problems.append(f"{table}: a row is not valid UTF-8")
    try:
        return problems + passages.find_index_problems(rows) + vectors.find_problems(rows)
    except StoreError as error:
        return [*problems, f"vectors: {error.what}"]


def describe_database(rows: Rows) -> dict[str, dict[str, Any]]:
    """Returns the database without content: columns and row counts of each table, migrations, SQLite's settings."""
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
        return Inspection(["the database path is a directory"])
    if not path.exists() or not path.stat().st_size:
        return Inspection([f"the database {'is empty' if path.exists() else 'is gone'}"])
    try:
        with open_rows(path, readonly=False) as rows:
            if not schema_migrations.is_csmd_database(rows):
                return Inspection(["the file is a database of another program"])
            is_behind = bool(schema_migrations.find_pending(rows))
            structure = check_structure(rows)
            if not structure and not rows.has("meta", key="hash_key"):
                structure = ["the key of the hashes is missing"]
            # An older schema is checked only by its pages: the other checks are for the present one.
            indexes = [] if is_behind else check_indexes(rows)
            content = [] if is_behind or structure else check_content(rows) + check_hashes(rows)
            return Inspection([*structure, *content, *indexes], only_indexes=not structure and not content)
    except (SchemaTooNew, SchemaTooOld):
        raise
    except StoreError as error:
        return Inspection([error.what.removeprefix(f"{path} ")])


def mend_indexes(path: Path) -> bool:
    """Rebuilds full text and vectors from the rows of a file, a scratch copy; returns whether that was enough."""
    try:
        with open_rows(path, readonly=False) as rows:
            with rows.transaction(write=True):
                for table in list_full_text_tables(rows):
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
