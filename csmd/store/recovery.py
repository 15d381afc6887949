"""Reads a damaged database and rebuilds a sound one.

Independent of the schema: a table is read by its keys, from both ends, then its middle in halves.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from csmd.conversation import Project
from csmd.errors import StoreError
from csmd.store import checkpoints, digests, packet_rows, purge, text_columns
from csmd.store.cipher import is_encrypted_file
from csmd.store.sqlite import Row, Rows, connect
from csmd.text import tokens

#: Tables that triggers or stages rebuild, so that these read everything again.
REBUILT_TABLES = frozenset(
    {"migrations", "cursors", "files", "vector_models", "vectors", "vector_codes", "embed_again", "tallies",
     "passage_threads", "dreamt_scopes", "graph_counts", "link_counts"}
)  # fmt: skip
#: Condition on the rows taken from a table, under new keys: passages are rebuilt from turns, except the words of tool
#: calls, which outlive the calls' input.
ROW_CONDITIONS = {"passages": "text <> ''"}
#: Tables with a keyed hash that proves that a text is unchanged.
HASHED_TABLES = frozenset({"statements", "memories"})
PAGE_BYTES = 4096
#: The least size of a page in SQLite.
MIN_PAGE_BYTES = 512
#: The header of the file, on its first page.
HEADER_BYTES = 100
#: The first byte of a page of a table's tree that names other pages.
INTERIOR_PAGE = 5
#: Offsets in the header of such a page: the number of cells (2 bytes), the last child's number (4), and the pointers to
#: the cells (2 each), which begin with a child's number (4).
CELL_COUNT_OFFSET = 3
LAST_CHILD_OFFSET = 8
CELL_POINTERS_OFFSET = 12
MAX_SCHEMA_PAGES = 200
BATCH_ROWS = 500
MIN_ROWID = -(2**63)
MAX_ROWID = 2**63 - 1
#: The number of keys that are tried past the last readable one if the end of the table is unknown.
MAX_KEYS_TRIED = 1000
PYTHON_TYPES: dict[str, type | tuple[type, ...]] = {"integer": int, "text": str, "real": (float, int)}
DAMAGE_ERRORS = (apsw.Error, StoreError, UnicodeDecodeError, ValueError)
#: The header of csmd's page size and journal mode; SQLite derives the number of pages from the file's size.
_HEADER = (
    b"SQLite format 3\0"
    + bytes.fromhex("1000 02 02 00 40 20 20 00000001")
    + bytes(12)
    + b"\0\0\0\1\0\0\0\4"
    + bytes(8)
    + b"\0\0\0\1"
).ljust(HEADER_BYTES, b"\0")
#: The placeholder of a lost project or session: its contents stay, under a name that says so.
_STUB_PROJECTS = """insert into projects (seq, key, root, name, kind, created_at) select distinct x.project_seq,
    'recovered-' || cast(x.project_seq as text), '', 'recovered', 'path', ''
    from {} x where x.project_seq not in (select seq from projects)"""
#: The placeholder of a lost workspace: without it its contents would be visible from everywhere.
_STUB_WORKSPACES = """insert into projects (seq, key, root, name, kind, created_at) select distinct p.workspace_seq,
    'workspace:recovered-' || cast(p.workspace_seq as text), '', 'recovered-' || cast(p.workspace_seq as text),
    'workspace', '' from projects p where p.workspace_seq > 0 and p.workspace_seq not in (select seq from projects)"""
#: References without a foreign key: one that leads nowhere is cleared.
_DANGLING_REFERENCES = (
    "update projects set merged_into = 0 where merged_into not in (select seq from projects)",
    "update projects set part_of = 0 where part_of not in (select seq from projects)",
    # The memory that represents it is gone, so it moves to the merged project itself.
    (
        """update memories set project_seq = (select p.merged_into from projects p where p.seq = memories.project_seq)
            where twin_of > 0 and twin_of not in (select seq from memories)
            and project_seq in (select seq from projects where merged_into > 0)"""
    ),
    "update memories set twin_of = 0 where twin_of not in (select seq from memories)",
)
_STUB_SESSIONS = """insert into sessions (seq, id, host, project_seq, started_at, last_at) select t.session_seq,
    'recovered-' || cast(t.session_seq as text), 'claude', min(t.project_seq), min(t.at), max(t.at)
    from turns t where t.session_seq not in (select seq from sessions) group by t.session_seq"""


class Table(NamedTuple):
    name: str
    columns: tuple[str, ...]
    types: tuple[tuple[str, bool], ...]
    #: The column that its rows are read by; None for a table that is read as a whole, or up to the damage.
    key: str | None
    #: Whether no two rows share a key.
    unique: bool


def open_damaged(path: Path, *, sound: Path | None) -> apsw.Connection | None:
    """Returns a connection to a damaged file whose table names can be read; None if nothing helps.

    `path` is a scratch copy and is changed: its first page is replaced by one with a standard header, then by that of
    `sound`, and the other pages of its schema by those of `sound`.
    """
    for first, schema in _make_candidates(path, sound):
        with path.open("r+b") as file:
            file.write(first)
            for number, page in schema.items():
                file.seek((number - 1) * len(page))
                file.write(page)
        if connection := _try_open(path):
            return connection
    return None


def _make_candidates(path: Path, sound: Path | None) -> Iterator[tuple[bytes, dict[int, bytes]]]:
    """Yields first pages to try in a damaged file, each with other pages of the schema."""
    original = _read_page(path)
    firsts = [original]
    schema = dict[int, bytes]()
    if not is_encrypted_file(path):  # no page of an encrypted file can be made without the key
        firsts.append(_HEADER + original[len(_HEADER) :])
        if sound is not None:
            page = bytearray(_read_page(sound))
            page[18:20] = b"\2\2"  # a copy has no write-ahead log, this one may
            page[24:40] = b"\0\0\0\1" + bytes(12)
            page[92:96] = bytes(4)  # its size in pages is the file's
            firsts.append(bytes(page))
            schema = read_schema_pages(sound)
    # The schema may take more than one page; a backup has them at the same place.
    for others in ({}, schema) if schema else ({},):
        yield from ((first, others) for first in firsts if len(first) >= MIN_PAGE_BYTES)


def _read_page(path: Path, number: int = 1) -> bytes:
    with path.open("rb") as file:
        file.seek((number - 1) * PAGE_BYTES)
        return file.read(PAGE_BYTES)


def _try_open(path: Path) -> apsw.Connection | None:
    """Returns a connection to a file whose table names can be read, or None."""
    connection: apsw.Connection | None = None
    with contextlib.suppress(*DAMAGE_ERRORS):
        connection = connect(path, readonly=True)
        connection.execute("pragma cell_size_check = on").fetchall()
        names = {name for (name,) in connection.execute("select name from sqlite_schema")}
        if {"meta", "projects", "turns", "statements"} <= names:
            return connection
    if connection is not None:
        connection.close()
    return None


def read_schema_pages(sound: Path) -> dict[int, bytes]:
    """Returns the pages below the first with a sound database's schema, by number; empty if the first holds it all."""
    pages: dict[int, bytes] = {}
    pending = _find_children(_read_page(sound), HEADER_BYTES)
    while pending and len(pages) < MAX_SCHEMA_PAGES:
        number = pending.pop()
        pages[number] = _read_page(sound, number)
        pending += _find_children(pages[number], 0)
    return pages


def _find_children(page: bytes, start: int) -> list[int]:
    """Returns the numbers of the pages that a page of a table's tree names; `start` is the offset of its header."""

    def read_number(offset: int, size: int) -> int:
        return int.from_bytes(page[offset : offset + size], "big")

    if page[start] != INTERIOR_PAGE:
        return []
    pointers = range(
        start + CELL_POINTERS_OFFSET, start + CELL_POINTERS_OFFSET + 2 * read_number(start + CELL_COUNT_OFFSET, 2), 2
    )
    return [
        *(read_number(read_number(pointer, 2), 4) for pointer in pointers),
        read_number(start + LAST_CHILD_OFFSET, 4),
    ]


def list_tables(rows: Rows) -> list[Table]:
    """Returns the tables that no stage can rebuild."""
    tables = []
    for name, sql in rows.all("select name, sql from sqlite_schema where type = 'table' order by rowid"):
        if name in REBUILT_TABLES or name.startswith((*text_columns.DERIVED_PREFIXES, "sqlite_")):
            continue
        columns = [
            (column, kind.lower(), bool(required or place), place)
            for _, column, kind, required, _, place in rows.all(f"pragma table_info({name})")
            if name not in ROW_CONDITIONS or column != "seq"
        ]
        key: str | None = "rowid"
        has_rowid = re.search(r"without\s+rowid\s*$", str(sql), re.IGNORECASE) is None
        if not has_rowid:
            _, column, kind = min((place, column, kind) for column, kind, _, place in columns if place)
            key = column if kind == "integer" else None
        names = tuple(column for column, *_ in columns)
        types = tuple((kind, required) for _, kind, required, _ in columns)
        tables.append(Table(name=name, columns=names, types=types, key=key, unique=has_rowid))
    return tables


def _choose_columns(rows: Rows, table: Table) -> str:
    """Returns the columns to read in order, "" if the table is missing; a database before a migration lacks some."""
    try:
        stored = set(rows.column("select name from pragma_table_info(:table)", table=table.name))
    except DAMAGE_ERRORS:
        stored = set(table.columns)  # the schema is damaged: unreadable columns become a gap
    columns = ", ".join(column if column in stored else f"null as {column}" for column in table.columns)
    return columns if stored else ""


def read_span(
    rows: Rows, table: Table, low: int = MIN_ROWID, high: int = MAX_ROWID, *, columns: str = "", backwards: bool = False
) -> Iterator[Row]:
    """Yields (key, *columns) of the rows in a range of keys; nothing if the table is missing."""
    columns = columns or _choose_columns(rows, table)
    if not columns:
        return
    sql = f"select {table.key or 'null'}, {columns} from {table.name}"  # noqa: S608
    if table.key is None:
        yield from rows.connection.execute(sql)
        return
    sql += f" where {table.key} between :low and :high and {ROW_CONDITIONS.get(table.name, '1')} order by {table.key}"
    yield from rows.connection.execute(sql + " desc" * backwards, {"low": low, "high": high})


def read_readable(rows: Rows, table: Table, gaps: list[tuple[int, int]]) -> Iterator[Row]:
    """Yields every readable row, each range of keys from both ends, then its middle in halves; adds gaps to `gaps`."""
    columns = _choose_columns(rows, table)
    spans = [(MIN_ROWID, MAX_ROWID)]
    while spans:
        low, high = spans.pop()
        first, last = low - 1, high + 1
        try:
            for row in read_span(rows, table, low, high, columns=columns):
                yield row
                first = row[0] if table.key else first
            continue
        except DAMAGE_ERRORS:
            pass
        if table.key is None:
            gaps.append((MIN_ROWID, MAX_ROWID))
            continue
        with contextlib.suppress(*DAMAGE_ERRORS):
            for row in read_span(rows, table, low, high, columns=columns, backwards=True) if high > low else ():
                yield row
                last = row[0]
        # Of rows with the same key some may be past the damage.
        low, high = (first + 1, last - 1) if table.unique else (max(low, first), min(high, last))
        if low <= MIN_ROWID:
            low = min(0, high)
        if high >= MAX_ROWID:
            high = max(low, _find_last_key(rows, table, low))
            gaps.append((high + 1, MAX_ROWID))
            if low == 0 and _is_lost(rows, table, high, columns):
                gaps.append((low, high))
                continue
        if low >= high:
            if low == high:
                gaps.append((low, high))
        else:
            middle = (low + high) // 2
            spans += [(middle + 1, high), (low, middle)]


def _is_lost(rows: Rows, table: Table, high: int, columns: str) -> bool:
    """Whether no key of a table can be looked up, at its beginning or elsewhere: its root is damaged."""
    tried = {2**power for power in range(high.bit_length())} | set(range(0, high, max(1, high // 64)))
    for key in tried:
        with contextlib.suppress(*DAMAGE_ERRORS):
            list(read_span(rows, table, key, key, columns=columns))
            return False
    return True


def _find_last_key(rows: Rows, table: Table, low: int) -> int:
    """Returns the last key of a table whose end cannot be read, from the sequence or an index."""
    questions = [f"select seq from sqlite_sequence where name = '{table.name}'"]  # noqa: S608
    with contextlib.suppress(*DAMAGE_ERRORS):
        questions += [
            f"select max({table.key}) from {table.name} indexed by {name}"  # noqa: S608
            for _, name, *_ in rows.connection.execute(f"pragma index_list({table.name})").fetchall()
            if not str(name).startswith("sqlite_autoindex")
        ]
    best = low + MAX_KEYS_TRIED
    for question in questions:
        with contextlib.suppress(*DAMAGE_ERRORS):
            best = max([best, *(int(value or 0) for (value,) in rows.connection.execute(question))])
    return best


def merge_gaps(gaps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merges adjacent gaps, so that each range is read from the copy once."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(gaps):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def make_row_check(table: Table, key: bytes | None) -> Callable[[Row], bool]:
    """Returns a predicate: whether csmd could have stored a row. Foreign bytes in a page can look like rows."""
    positions = {name: position for position, name in enumerate(table.columns)}

    def is_valid(row: Row) -> bool:
        for value, (kind, is_required) in zip(row, table.types, strict=True):
            if value is None and is_required:
                return False
            if value is not None and not isinstance(value, PYTHON_TYPES.get(kind, object)):
                return False
        if key is None or not (
            table.name in HASHED_TABLES or (table.name == "turns" and row[positions["searchable"]] == 1)
        ):
            return True
        return bool(tokens.keyed_hash(row[positions["text"]], key) == row[positions["text_hash"]])

    return is_valid


def fill_defaults(table: Table, values: Row) -> Row:
    """Fills in the empty value for columns that a later migration added."""
    empty: dict[str, Any] = {"integer": 0, "real": 0.0, "text": ""}
    return tuple(
        empty.get(kind, value) if value is None and required else value
        for value, (kind, required) in zip(values, table.types, strict=True)
    )


def read_hash_key(rows: Rows | None) -> bytes | None:
    """Returns the key of a database's keyed hashes; None if it cannot be read."""
    with contextlib.suppress(*DAMAGE_ERRORS):
        key = rows.value("select value from meta where key = 'hash_key'") if rows else None
        return bytes(key) if isinstance(key, bytes) and len(key) == 32 else None
    return None


def list_transcripts(rows: Rows) -> list[str]:
    """Returns the transcripts that a database knows, as far as they can be read."""
    paths: list[str] = []
    for sql in ("select path from files", "select path from sessions where path <> ''"):
        with contextlib.suppress(*DAMAGE_ERRORS):
            paths.extend(str(path) for (path,) in rows.connection.execute(sql))  # damage may leave any type
    return paths


def read_tombstones(rows: Rows) -> list[dict[str, Any]]:
    """Returns the tombstones by column, as far as they can be read."""
    with contextlib.suppress(*DAMAGE_ERRORS):
        return [
            dict(zip(table.columns, columns, strict=True))
            for table in list_tables(rows)
            if table.name == "tombstones"
            for _, *columns in read_readable(rows, table, [])
        ]
    return []


@dataclass(slots=True)
class SalvageCounts:
    """The number of rows of each table by source, and the losses."""

    #: Read from the damaged file.
    rows: dict[str, int] = field(default_factory=dict)
    #: Taken from the copy.
    filled: dict[str, int] = field(default_factory=dict)
    #: Ranges of keys without any readable, unaltered row that are missing in the copy, too.
    unfilled: dict[str, int] = field(default_factory=dict)
    #: Sessions to which turns were appended out of order.
    disordered_sessions: set[int] = field(default_factory=set)
    #: Tombstones that cannot be compared with anything any more.
    tombstones_lost: int = 0
    #: Placeholders for projects and sessions whose own row is lost.
    stubs: int = 0


def rebuild(into: Rows, *, damaged: Rows | None, copy: Rows | None, key: bytes | None, new_key: bytes) -> SalvageCounts:
    """Fills a new, migrated and empty database inside the caller's write.

    `key` is that of both sources; if it is lost (None), texts are hashed with `new_key`, and tombstones become useless.
    """
    salvaged = SalvageCounts()
    into.run("pragma defer_foreign_keys = on")
    into.run("delete from projects")
    for table in list_tables(into):
        gaps: list[tuple[int, int]] = [(MIN_ROWID, MAX_ROWID)]
        if damaged is not None:
            gaps = []
            salvaged.rows[table.name] = _insert_rows(into, table, read_readable(damaged, table, gaps), key, gaps)
        from_copy = [
            _insert_rows(into, table, read_span(copy, table, low, high), key, []) if copy is not None else 0
            for low, high in merge_gaps(gaps)
        ]
        salvaged.filled[table.name] = sum(from_copy)
        if damaged is not None:
            salvaged.unfilled[table.name] = from_copy.count(0)
    into.delete("meta", key="hash_key")
    into.insert("meta", key="hash_key", value=key or new_key)
    if key is None:
        salvaged.tombstones_lost = into.run("delete from tombstones")
        _rehash(into, new_key)
    salvaged.stubs, salvaged.disordered_sessions = _close_references(into)
    return salvaged


def _insert_rows(
    into: Rows, table: Table, source: Iterator[Row], key: bytes | None, gaps: list[tuple[int, int]]
) -> int:
    """Stores the missing rows of a source and returns how many; adds invalid rows to `gaps`."""
    marks = ", ".join(f":c{number}" for number in range(len(table.columns)))
    sql = f"insert into {table.name} ({', '.join(table.columns)}) values ({marks}) on conflict do nothing"  # noqa: S608
    is_valid = make_row_check(table, key)
    stored = 0
    for row_key, *columns in source:
        values = fill_defaults(table, tuple(columns))
        is_accepted = is_valid(values)
        if is_accepted:
            try:
                into.connection.execute(sql, {f"c{number}": value for number, value in enumerate(values)})
                stored += into.connection.changes()
            except apsw.ConstraintError:
                is_accepted = False  # a value that the present schema rejects
        if not is_accepted and isinstance(row_key, int):
            gaps.append((row_key, row_key))
    return stored


def _rehash(into: Rows, key: bytes) -> None:
    """Hashes every text that is looked up by its hash with the new key."""
    for table in ("turns", "statements", "memories"):
        last = 0
        sql = f"select seq, text from {table} where seq > :last order by seq limit {BATCH_ROWS}"  # noqa: S608
        while batch := into.all(sql, last=last):
            last = batch[-1][0]
            for seq, text in batch:
                into.update(table, seq, text_hash=tokens.keyed_hash(text, key))


def _close_references(into: Rows) -> tuple[int, set[int]]:
    """Adds placeholders for lost projects and sessions, deletes dangling rows, lists turns that no session lists.

    Returns how many placeholders, and the sessions to which turns were appended.
    """
    into.run(
        "insert into projects (seq, key, root, name, kind, created_at) "
        "values (0, 'everywhere', '', 'everywhere', 'path', '') on conflict do nothing"
    )
    stubs = into.run(_STUB_SESSIONS) + into.run(_STUB_WORKSPACES)
    for table in ("sessions", "turns", "memories", "injections"):
        stubs += into.run(_STUB_PROJECTS.format(table))
    for sql in _DANGLING_REFERENCES:
        into.run(sql)
    dangling = [
        f"delete from {table.name} where {column} not in (select {to} from {parent})"  # noqa: S608
        for table in list_tables(into)
        for _, _, parent, column, to, *_ in into.all(f"pragma foreign_key_list({table.name})")
    ]
    while sum(into.run(sql) for sql in dangling):  # a deleted row may be referred to by another
        pass
    disordered_sessions = _list_all_turns(into)
    into.run("update sessions set last_at = started_at where last_at < started_at")
    into.run("update counters set value = 0 where value < 0")
    sql = """insert into provenance (memory_seq, uuid, session_id, at, role) select m.seq,
        'recovered:' || m.id, m.session_id, m.created_at, 'states'
        from memories m where not exists (select 1 from provenance p where p.memory_seq = m.seq)"""
    into.run(sql)
    return stubs, disordered_sessions


def _list_all_turns(into: Rows) -> set[int]:
    """Appends turns that no session lists to their session; returns the sessions."""
    to_the_last = """update sessions set turns = coalesce((select max(st.ordinal)
        from session_turn st where st.session_seq = sessions.seq and st.ordinal > sessions.turns), turns)"""
    into.run(to_the_last)
    sql = """insert into session_turn (session_seq, ordinal, turn_seq) select t.session_seq,
        s.turns + row_number() over (partition by t.session_seq order by t.at, t.seq), t.seq
        from turns t join sessions s on s.seq = t.session_seq
        where not exists (select 1 from session_turn st where st.turn_seq = t.seq) returning session_seq"""
    session_seqs = into.column(sql)
    into.run(to_the_last)
    return set(session_seqs)


def sort_turns(rows: Rows, *, new_after: int, disordered_sessions: set[int]) -> int:
    """Sorts by time the turns of `disordered_sessions` sessions and of those with recovered turns; returns how many."""
    sql = """select distinct st.session_seq from session_turn st join turns t on t.seq = st.turn_seq
        where t.seq > :new and exists (select 1 from session_turn o join turns e on e.seq = o.turn_seq
        where o.session_seq = st.session_seq and o.ordinal < st.ordinal and e.at > t.at)"""
    disordered_sessions = disordered_sessions | set(rows.column(sql, new=new_after))
    for session in sorted(disordered_sessions):
        sql = """select st.turn_seq, st.rewound from session_turn st
            join turns t on t.seq = st.turn_seq where st.session_seq = :session order by t.at, st.ordinal"""
        session_turns = rows.all(sql, session=session)
        rows.delete("session_turn", session_seq=session)
        for ordinal, (turn, rewound) in enumerate(session_turns, 1):
            rows.insert("session_turn", session_seq=session, ordinal=ordinal, turn_seq=turn, rewound=rewound)
        rows.update("sessions", session, turns=len(session_turns))
    return len(disordered_sessions)


def merge_tombstones(rows: Rows, tombstones: list[dict[str, Any]], *, key: bytes) -> int:
    """Adds tombstones of another state of this database and applies them; returns how many rows changed."""
    names = (
        "kind", "hash", "part_of", "words", "anchor", "anchor_at", "authority", "created_at", "place", "again_at",
    )  # fmt: skip
    for tombstone in tombstones:
        rows.insert(
            "tombstones",
            """on conflict (kind, hash, part_of) do
                update set authority = case when excluded.authority = 'user' then 'user' else tombstones.authority end,
                again_at = case when excluded.created_at >= tombstones.created_at then excluded.again_at
                else tombstones.again_at end, created_at = case when excluded.created_at > tombstones.created_at
                then excluded.created_at else tombstones.created_at end""",
            **{name: tombstone.get(name, "") for name in names},
        )
    return purge.apply_tombstones(rows, key)


def empty_stub_sessions(rows: Rows) -> int:
    """Moves turns of placeholder sessions to sessions that list them; returns how many placeholders were deleted."""
    stub = "select seq from sessions where id like 'recovered-%'"
    elsewhere = (
        f"select min(st.session_seq) from session_turn st where st.turn_seq = {{}} and st.session_seq not in ({stub})"  # noqa: S608
    )
    for table, turn in (("turns", "seq"), ("statements", "turn_seq"), ("queued", "turn_seq")):
        session = elsewhere.format(f"{table}.{turn}")
        rows.run(
            f"update {table} set session_seq = ({session}) where session_seq in ({stub}) and ({session}) is not null"  # noqa: S608
        )
    for (seq,) in rows.all(stub):  # everything made of a session is made again from those that list its turns
        digests.clear(rows, int(seq))
        checkpoints.delete_of_session(rows, int(seq))
        packet_rows.take_back_session_packets(rows, int(seq))
        for table in ("error_seen", "error_fixes"):
            rows.run(f"delete from {table} where session_seq = :session", session=seq)  # noqa: S608
    sql = f"""delete from session_turn where session_seq in ({stub}) and exists (select 1
        from turns t where t.seq = session_turn.turn_seq and t.session_seq <> session_turn.session_seq)"""  # noqa: S608
    rows.run(sql)
    sql = f"""delete from sessions where seq in ({stub})
        and not exists (select 1 from session_turn st where st.session_seq = sessions.seq)
        and not exists (select 1 from turns t where t.session_seq = sessions.seq)
        and not exists (select 1 from statements s where s.session_seq = sessions.seq)
        and not exists (select 1 from queued q where q.session_seq = sessions.seq)"""  # noqa: S608
    return rows.run(sql)


def list_nameless_projects(rows: Rows) -> list[tuple[int, str]]:
    """Returns (row key, a directory of one of its sessions) of the projects whose own row was lost."""
    sql = """select p.seq, max(s.cwd) from projects p join sessions s on s.project_seq = p.seq
        where p.key = 'recovered-' || cast(p.seq as text) and s.cwd <> '' group by p.seq"""
    return rows.all(sql)


def name_project(rows: Rows, seq: int, project: Project) -> None:
    """Gives a lost project the identity of its directory, unless another row has it."""
    sql = """update projects set key = :key, root = :root, name = :name, kind = :kind
        where seq = :seq and not exists (select 1 from projects p where p.key = :key)"""
    rows.run(sql, key=project.key, root=project.root, name=project.name, kind=project.kind, seq=seq)


def count_without_turn(rows: Rows) -> int:
    """Counts the memories without a stored source turn, which no transcript would bring back."""
    sql = """select count(*) from memories m
        where not exists (select 1 from provenance p join turns t on t.uuid = p.uuid where p.memory_seq = m.seq)"""
    return rows.number(sql)
