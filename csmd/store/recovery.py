"""What can still be read of a damaged database: its tables' rows, around the pages that are gone.

Nothing here is of one schema: a table is read by its keys, from both ends, then its middle in halves.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from csmd import text
from csmd.errors import SchemaTooNew, StoreError
from csmd.store import migrate, text_columns
from csmd.store.sqlite import Row, Rows, connect

#: Made again by triggers, or by the stages that own them, so that they read everything once more.
NOT_TAKEN = frozenset(
    {"migrations", "cursors", "files", "vector_models", "vectors", "vector_codes", "embed_again", "tallies",
     "passage_threads"}
)  # fmt: skip
#: Which rows of a table are taken, by new keys: passages are made of their turns again but for the words of tool calls,
#: which outlive the calls' input.
ONLY = {"passages": "text <> ''"}
#: Tables in which a keyed hash says whether a text is still what was stored.
HASHED = frozenset({"statements", "memories"})
#: The first byte of a page of a table's tree that names other pages; a schema takes no more pages than these.
INTERIOR, SCHEMA_PAGES = 5, 200
LEAST, MOST = -(2**63), 2**63 - 1
#: Where the end of a table cannot be read and nothing says how far it went, this many keys are tried past the last.
TRIED_PAST_THE_LAST = 1000
TYPES: dict[str, type | tuple[type, ...]] = {"integer": int, "text": str, "real": (float, int)}
DAMAGE = (apsw.Error, StoreError, UnicodeDecodeError, ValueError, MemoryError)
#: A header of the pages and journal that csmd uses; SQLite takes the number of pages from the file's size.
_HEADER = (
    b"SQLite format 3\0"
    + bytes.fromhex("1000 02 02 00 40 20 20 00000001")
    + bytes(12)
    + b"\0\0\0\1\0\0\0\4"
    + bytes(8)
    + b"\0\0\0\1"
).ljust(100, b"\0")


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    columns: tuple[str, ...]
    types: tuple[tuple[str, bool], ...]
    key: str
    """What its rows are ordered by; `unique` when no two rows share it."""
    unique: bool


def open_damaged(path: Path, *, sound: Path | None) -> apsw.Connection | None:
    """A connection to a damaged file of which at least the tables' names can be read; None when nothing helps.

    `path` is a scratch copy and is changed: its first page is mended by a made header, else by that of
    `sound`, and the other pages of its schema by those of `sound`.
    """
    original = path.read_bytes()[:4096] if path.is_file() else b""
    firsts = [original, _HEADER + original[len(_HEADER) :]]
    if sound is not None:
        with sound.open("rb") as file:
            page = bytearray(file.read(4096))
        page[18:20] = b"\2\2"  # a copy has no write-ahead log, this one may
        page[24:40], page[92:96] = b"\0\0\0\1" + bytes(12), bytes(4)  # its size in pages is the file's
        firsts.append(bytes(page))
        schema = schema_pages(sound)
    else:
        schema = {}
    # The schema may take more pages than the first: a backup has them where this file had them.
    for first, others in [*((first, {}) for first in firsts), *((first, schema) for first in firsts if schema)]:
        if len(first) < 512:
            continue
        with path.open("r+b") as file:
            file.write(first)
            for number, content in others.items():
                file.seek((number - 1) * len(content))
                file.write(content)
        connection: apsw.Connection | None = None
        try:
            connection = connect(path, readonly=True)
            connection.execute("pragma cell_size_check = on").fetchall()
            if {"meta", "projects", "turns", "statements"} <= {
                name for (name,) in connection.execute("select name from sqlite_schema")
            }:
                return connection
        except DAMAGE:
            pass
        if connection is not None:
            connection.close()
    return None


def schema_pages(sound: Path) -> dict[int, bytes]:
    """The pages below the first that hold a sound database's schema, by number; empty when the first holds it all."""
    size = 4096
    found: dict[int, bytes] = {}
    with sound.open("rb") as file:
        waiting = [1]
        while waiting and len(found) < SCHEMA_PAGES:
            number = waiting.pop()
            file.seek((number - 1) * size)
            page = file.read(size)
            begin = 100 if number == 1 else 0
            if number > 1:
                found[number] = page
            if page[begin] == INTERIOR:
                cells = int.from_bytes(page[begin + 3 : begin + 5], "big")
                spots = [int.from_bytes(page[begin + 12 + 2 * at : begin + 14 + 2 * at], "big") for at in range(cells)]
                waiting += [int.from_bytes(page[spot : spot + 4], "big") for spot in spots]
                waiting.append(int.from_bytes(page[begin + 8 : begin + 12], "big"))
    return found


def tables(rows: Rows) -> list[Table]:
    """The tables that hold what no stage can make again."""
    found = []
    for name, sql in rows.all("select name, sql from sqlite_schema where type = 'table' order by rowid"):
        if (
            name in NOT_TAKEN
            or name in text_columns.DERIVED_TABLES
            or name.startswith((*text_columns.DERIVED_PREFIXES, "sqlite_"))
        ):
            continue
        info = [row for row in rows.all(f"pragma table_info({name})") if name not in ONLY or row[1] != "seq"]
        primary = [(column, kind.lower()) for _, column, kind, _, _, at in sorted(info, key=lambda row: row[5]) if at]
        bare = re.search(r"without\s+rowid\s*$", str(sql), re.IGNORECASE) is not None
        key = primary[0][0] if bare else "rowid"
        if bare and primary[0][1] != "integer":
            key = "''"  # read as a whole, or up to the damage
        found.append(
            Table(
                name=str(name),
                columns=tuple(str(row[1]) for row in info),
                types=tuple((str(row[2]).lower(), bool(row[3] or row[5])) for row in info),
                key=key,
                unique=not bare,
            )
        )
    return found


def _columns_of(rows: Rows, table: Table) -> str:
    """The columns to read, in order, "" for a table that is not there; of before a migration some are missing."""
    try:
        there = {str(row[1]) for row in rows.all(f"pragma table_info({table.name})")}
    except DAMAGE:
        there = set(table.columns)  # the schema is hurt: where these cannot be asked for, the rows are a gap
    return (
        "" if not there else ", ".join(column if column in there else f"null as {column}" for column in table.columns)
    )


def span(
    rows: Rows, table: Table, low: int, high: int, *, columns: str | None = None, backwards: bool = False
) -> Iterator[Row]:
    """(key, *columns) of the rows with keys of a range; nothing of a table that is not there."""
    columns = _columns_of(rows, table) if columns is None else columns
    if not columns:
        return
    where = "" if table.key == "''" else f"where {table.key} between :low and :high and {ONLY.get(table.name, '1')}"
    order = "" if table.key == "''" else f"order by {table.key} {'desc' if backwards else ''}"
    values = {"low": low, "high": high} if where else {}
    sql = f"select {table.key}, {columns} from {table.name} {where} {order}"  # noqa: S608
    yield from rows.connection.execute(sql, values)


def readable(rows: Rows, table: Table, gaps: list[tuple[int, int]]) -> Iterator[Row]:
    """Every row that can be read, each range of keys from both its ends, then its middle in halves; `gaps` grows."""
    columns = _columns_of(rows, table)
    spans = [(LEAST, MOST)]
    while spans:
        low, high = spans.pop()
        first, last = low - 1, high + 1
        try:
            for row in span(rows, table, low, high, columns=columns):
                yield row
                first = row[0] if table.key != "''" else first
            continue
        except DAMAGE:
            pass
        if table.key == "''":
            gaps.append((LEAST, MOST))
            continue
        with contextlib.suppress(*DAMAGE):
            for row in span(rows, table, low, high, columns=columns, backwards=True) if high > low else ():
                yield row
                last = row[0]
        # Of a key that several rows share some may be behind the damage.
        low, high = (first + 1, last - 1) if table.unique else (max(low, first), min(high, last))
        if low <= LEAST:
            low = min(0, high)
        if high >= MOST:
            high = max(low, _last_key(rows, table, low))
            gaps.append((high + 1, MOST))
            if low == 0 and _is_lost(rows, table, high, columns):
                gaps.append((low, high))
                continue
        if low >= high:
            gaps.append((low, high)) if low == high else None
        else:
            middle = (low + high) // 2
            spans += [(middle + 1, high), (low, middle)]


def _is_lost(rows: Rows, table: Table, high: int, columns: str) -> bool:
    """Whether no key of a table can be looked up, neither near its beginning nor anywhere: its root is damaged."""
    tried = {2**power for power in range(high.bit_length())} | set(range(0, high, max(1, high // 64)))
    for key in tried:
        with contextlib.suppress(*DAMAGE):
            list(span(rows, table, key, key, columns=columns))
            return False
    return True


def _last_key(rows: Rows, table: Table, low: int) -> int:
    """How far a table goes whose end cannot be read: as the sequence or an index of it tells."""
    best = low + TRIED_PAST_THE_LAST
    questions = [f"select seq from sqlite_sequence where name = '{table.name}'"]  # noqa: S608
    with contextlib.suppress(*DAMAGE):
        questions += [
            f"select max({table.key}) from {table.name} indexed by {name}"  # noqa: S608
            for _, name, *_ in rows.connection.execute(f"pragma index_list({table.name})").fetchall()
            if not str(name).startswith("sqlite_autoindex")
        ]
    for question in questions:
        with contextlib.suppress(*DAMAGE):
            for (value,) in rows.connection.execute(question):
                best = max(best, int(value or 0))
    return best


def merged(gaps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Gaps that touch as one, so that a copy is asked once for each."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(gaps):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def checked_by(table: Table, key: bytes | None) -> Callable[[Row], bool]:
    """Whether a row is one that csmd could have stored: a page with foreign bytes still looks like rows."""
    at = {name: number for number, name in enumerate(table.columns)}

    def sound(row: Row) -> bool:
        for value, (kind, required) in zip(row, table.types, strict=True):
            if value is None:
                if required:
                    return False
            elif kind in TYPES and not isinstance(value, TYPES[kind]):
                return False
        hashed = table.name in HASHED or (table.name == "turns" and row[at["searchable"]] == 1)
        return not hashed or key is None or text.keyed_hash(row[at["text"]], key) == row[at["text_hash"]]

    return sound


def with_defaults(table: Table, values: Row) -> Row:
    """Columns that a later migration added are empty where the source had none."""
    empty: dict[str, Any] = {"integer": 0, "real": 0.0, "text": ""}
    return tuple(
        empty.get(kind, value) if value is None and required else value
        for value, (kind, required) in zip(values, table.types, strict=True)
    )


def key_of(rows: Rows | None) -> bytes | None:
    """The key of a database's keyed hashes; None where it cannot be read."""
    with contextlib.suppress(*DAMAGE):
        found = rows.value("select value from meta where key = 'hash_key'") if rows else None
        return bytes(found) if isinstance(found, bytes) and len(found) == 32 else None
    return None


def refuse_newer(rows: Rows) -> None:
    """SchemaTooNew when a newer csmd has been here: it is not damaged, and this one would lose what it added."""
    try:
        migrate.pending(rows)
    except SchemaTooNew:
        raise
    except StoreError:
        return


def paths_read(rows: Rows) -> list[str]:
    """The transcripts that a database knows, as far as they can be read."""
    found: list[str] = []
    for sql in ("select path from files", "select path from sessions where path <> ''"):
        with contextlib.suppress(*DAMAGE):
            for (path,) in rows.connection.execute(sql):
                found.append(str(path))
    return found


def tombstones(rows: Rows) -> list[dict[str, Any]]:
    """The tombstones by column, as far as they can be read."""
    with contextlib.suppress(*DAMAGE):
        found = [table for table in tables(rows) if table.name == "tombstones"]
        return [dict(zip(table.columns, row[1:], strict=True)) for table in found for row in readable(rows, table, [])]
    return []
