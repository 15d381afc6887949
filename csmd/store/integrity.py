"""What must hold between the rows of a sound database, looked at by its owner's hand: nothing is mended here."""

from __future__ import annotations

from csmd.errors import StoreError
from csmd.store import vectors
from csmd.store.sqlite import Rows

FULL_TEXT = ("turns_fts", "memories_fts")
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
        found = [str(text) for (text,) in rows.all("pragma quick_check(20)") if text != "ok"]
        # Indexes are asked below, each by itself.
        problems += [text for text in found if not any(name in text for name in (*FULL_TEXT, "vec_"))][:5]
        problems += [f"{table}: row {row} refers to nothing" for table, row, *_ in rows.all("pragma foreign_key_check")]
    except StoreError as error:
        problems.append(error.what)
    return problems


def content(rows: Rows) -> list[str]:
    """What is wrong between rows that can all be read."""
    found = [(text, int(rows.value(sql))) for text, sql in _COUNTED.items()]
    return [text.format(count) for text, count in found if count]


def indexes(rows: Rows) -> list[str]:
    """What is wrong with what derives from rows: full text and vectors."""
    problems: list[str] = []
    for table in FULL_TEXT:
        try:
            rows.run(f"insert into {table} ({table}, rank) values ('integrity-check', 1)")  # noqa: S608
        except StoreError as error:
            problems.append(f"{table}: {error.what}")
    try:
        return problems + vectors.problems(rows)
    except StoreError as error:
        return [*problems, f"vectors: {error.what}"]
