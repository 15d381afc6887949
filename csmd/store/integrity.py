"""What must hold in a sound database: its pages, between its rows, and of what derives from them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from csmd.errors import SchemaTooNew, StoreError
from csmd.store import migrate, passage_index, recovery, vectors
from csmd.store.sqlite import Rows, full_text_tables, opened

#: What is wrong -> how many rows it is wrong of.
_COUNTED = {
    "turns: {} stand in no session's order": (
        "select count(*) from turns t where not exists (select 1 from session_turn st where st.turn_seq = t.seq)"
    ),
    "session_turn: {} sessions list a turn past their last": (
        "select count(*) from sessions s where exists "
        "(select 1 from session_turn st where st.session_seq = s.seq and (st.ordinal > s.turns or st.ordinal < 1))"
    ),
    "sessions: {} end before they begin": "select count(*) from sessions where last_at < started_at",
    "memories: {} rest on no turn": (
        "select count(*) from memories m where not exists (select 1 from provenance p where p.memory_seq = m.seq)"
    ),
    "counters: {} are below zero": "select count(*) from counters where value < 0",
    "cursors: {} stand below zero": "select count(*) from cursors where position < 0",
    "files: {} were read to a place before their beginning": "select count(*) from files where position < 0",
}


def integrity(rows: Rows) -> list[str]:
    """What is wrong with the database's structure, its rows, full-text indexes and vectors; empty when sound."""
    problems = structure(rows)
    # Rows that cannot be read cannot be counted.
    return problems + ([] if problems else content(rows)) + indexes(rows)


def structure(rows: Rows) -> list[str]:
    """What is wrong with the file's pages and references, its full-text indexes left out."""
    problems: list[str] = []
    try:
        # Table by table: what is virtual is asked below, each by itself.
        for (table,) in rows.all("select name from sqlite_schema where type = 'table' and rootpage > 0"):
            found = [str(text) for (text,) in rows.all(f"pragma quick_check('{table}')") if text != "ok"]
            problems += [f"{table}: {found[0].splitlines()[-1]}"] if found else []
        problems += [f"{table}: row {row} refers to nothing" for table, row, *_ in rows.all("pragma foreign_key_check")]
    except StoreError as error:
        problems.append(error.what)
    return problems


def content(rows: Rows) -> list[str]:
    """What is wrong between rows that can all be read."""
    found = [(text, int(rows.value(sql))) for text, sql in _COUNTED.items()]
    return [text.format(count) for text, count in found if count]


def altered(rows: Rows) -> list[str]:
    """Which texts are no longer those that were stored: their keyed hashes tell; reads all of them."""
    key = recovery.key_of(rows)
    found = []
    for table in recovery.tables(rows):
        sound = recovery.checked_by(table, key)
        try:
            wrong = sum(not sound(row[1:]) for row in recovery.span(rows, table, recovery.LEAST, recovery.MOST))
        except UnicodeDecodeError:
            found.append(f"{table.name}: a row holds what is no text")
            continue
        if wrong:
            found.append(f"{table.name}: {wrong} rows are not what was stored")
    return found


def indexes(rows: Rows) -> list[str]:
    """What is wrong with what derives from rows: full text and vectors."""
    problems: list[str] = []
    for table in full_text_tables(rows):
        try:
            rows.run(f"insert into {table} ({table}, rank) values ('integrity-check', 1)")  # noqa: S608
        except StoreError as error:
            problems.append(f"{table}: {error.what}")
        except UnicodeDecodeError:
            problems.append(f"{table}: a row holds what is no text")
    try:
        return problems + passage_index.index_problems(rows) + vectors.problems(rows)
    except StoreError as error:
        return [*problems, f"vectors: {error.what}"]


#: What SQLite says of the file and of how it is used.
_PRAGMAS = ("application_id", "user_version", "journal_mode", "synchronous", "page_size", "page_count", "freelist_count",
            "auto_vacuum", "secure_delete", "foreign_keys")  # fmt: skip


def shape(rows: Rows) -> dict[str, dict[str, Any]]:
    """The database without a word of what is in it: columns and rows of each table, migrations, SQLite's own settings."""
    tables: dict[str, Any] = {}
    for (table,) in rows.all("select name from sqlite_schema where type = 'table' and rootpage > 0 order by name"):
        columns = [str(name) for (name,) in rows.all("select name from pragma_table_info(:table)", table=table)]
        tables[str(table)] = {"columns": columns, "rows": int(rows.value(f"select count(*) from '{table}'"))}  # noqa: S608
    return {
        "tables": tables,
        "migrations": {str(name): str(at) for name, at in rows.all("select name, applied_at from migrations")},
        "pragmas": {name: rows.value(f"pragma {name}") for name in _PRAGMAS},
        "sqlite": {"version": rows.value("select sqlite_version()")},
    }


@dataclass(frozen=True, slots=True)
class Looked:
    """What is wrong with a file; `only_indexes` when the rows are whole and what derives from them is not."""

    problems: list[str]
    only_indexes: bool = False


def look(path: Path) -> Looked:
    """What is wrong with the database in a file, a scratch copy; SchemaTooNew for one that is only newer."""
    if path.is_dir():
        return Looked(["a directory stands where the database belongs"])
    if not path.exists() or not path.stat().st_size:
        return Looked([f"the database {'is empty' if path.exists() else 'is gone'}"])
    try:
        with opened(path, readonly=False) as rows:
            if not migrate.is_of_csmd(rows):
                return Looked(["the file is a database of another program"])
            behind = bool(migrate.pending(rows))
            wrong = structure(rows)
            if not wrong and not rows.value("select count(*) from meta where key = 'hash_key'"):
                wrong = ["the key of the hashes is missing"]
            # Of a schema that is behind only the pages can be judged: the rest is the present one's.
            derived = [] if behind else indexes(rows)
            between = [] if behind or wrong else content(rows) + altered(rows)
            return Looked([*wrong, *between, *derived], only_indexes=not wrong and not between)
    except SchemaTooNew:
        raise
    except StoreError as error:
        return Looked([error.what.removeprefix(f"{path} ")])


def mend_indexes(path: Path) -> bool:
    """Makes full text and vectors anew from the rows of a file, a scratch copy; whether that was enough."""
    try:
        with opened(path, readonly=False) as rows:
            with rows.transaction(write=True):
                for table in full_text_tables(rows):
                    if table != passage_index.INDEX:
                        rows.run(f"insert into {table} ({table}) values ('rebuild')")  # noqa: S608
                passage_index.index_anew(rows)
                if vectors.problems(rows):
                    vectors.begin_anew(rows)
            sound = not integrity(rows)
            rows.run("pragma wal_checkpoint(truncate)")
            return sound
    except StoreError:
        return False
