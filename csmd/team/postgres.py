"""The team's server: a connection as `Rows`, its schema, and statements that differ from SQLite's.

Everything else runs the statements of csmd.store, which both databases understand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg.adapt import Dumper

from csmd.cache import cached
from csmd.errors import StoreError
from csmd.store.sqlite import IS_LISTED, Row, Rows, in_keys

SCHEMA = Path(__file__).with_name("server.sql")
#: The version of the schema that this csmd knows.
VERSION = 1
#: The least version of pgvector: it continues a search if row-level security leaves too few of the nearest.
MIN_VECTOR = (0, 8)
#: Seconds to connect.
CONNECT_S = 10
#: Milliseconds that a statement may take.
STATEMENT_MS = 60_000
#: A quoted text, a parameter, or a sign that psycopg would take for one.
_PARAMETER = re.compile(r"'(?:[^']|'')*'|(?<![:\w]):([a-z_]\w*)|%")
_IS_LISTED = "in (select cast(value as bigint) from json_array_elements_text(cast(:listed as json)))"


class _BoolAsNumber(Dumper):
    """Writes True and False as 1 and 0: the columns are numbers, as in SQLite."""

    def dump(self, obj: Any) -> bytes:
        return b"1" if obj else b"0"

    def quote(self, obj: Any) -> bytes:
        return self.dump(obj)


@contextmanager
def store_errors() -> Iterator[None]:
    """Raises the server's errors within the block as StoreError."""
    try:
        yield
    except psycopg.Error as error:
        raise as_store_error(error) from error


class ServerRows(Rows):
    """A connection to the server with the interface of a store's: portable SQL with named parameters."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.server = connection
        self.read_cache = None
        self._until = None
        self._changed = 0

    def all(self, sql: str, **values: Any) -> list[Row]:
        """Returns every row of the result."""
        with store_errors(), psycopg.ClientCursor(self.server) as cursor:
            cursor.execute(_translate(sql), _storable(values))
            self._changed = max(0, cursor.rowcount)
            return cursor.fetchall() if cursor.description else []

    def run(self, sql: str, **values: Any) -> int:
        """Runs a statement and returns the number of changed rows."""
        self.all(sql, **values)
        return self._changed

    def many(self, sql: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Runs a statement once for each mapping, in one batch."""
        with store_errors(), psycopg.ClientCursor(self.server) as cursor:
            statement = _translate(sql)
            if text := ";".join(cursor.mogrify(statement, _storable(values)) for values in rows):
                cursor.execute(text)

    def with_table(self, sql: str, names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
        """Runs a statement in which TABLE means these rows, as `v` with columns of these names."""
        if not rows:
            return
        row = f"({', '.join(f'%({name})s' for name in names)})"
        with store_errors(), psycopg.ClientCursor(self.server) as cursor:
            literals = ", ".join(cursor.mogrify(row, _storable(values)) for values in rows)
            cursor.execute(sql.replace("TABLE", f"(values {literals}) as v ({', '.join(names)})").encode())

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[None]:
        """Runs the block in one transaction, rolled back on an error; a read sees one snapshot."""
        with store_errors(), self.server.transaction():
            if not write:
                self.run("set transaction isolation level repeatable read, read only")
            yield

    def narrow(self, author: str) -> None:
        """Shows only one author's visible rows until the transaction ends; "" shows all."""
        self.all("select set_config('csmd.of', :author, true)", author=author)


def as_store_error(error: psycopg.Error) -> StoreError:
    """Returns the server's or the network's error on one line, without values of rows."""
    primary = error.diag.message_primary or str(error).strip().splitlines()[0] if str(error).strip() else ""
    return StoreError(f"the team's server: {primary or type(error).__name__}")


def _storable(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values without what PostgreSQL cannot store in text: NUL, and lone surrogates."""
    return {
        name: value.replace("\0", "\ufffd").encode("utf-8", "replace").decode() if isinstance(value, str) else value
        for name, value in values.items()
    }


@cached(500)
def _translate(sql: str) -> str:
    """Returns a statement with psycopg's parameters, and lists of keys for PostgreSQL; quoted text is unchanged."""

    def replace(match: re.Match[str]) -> str:
        return f"%({match[1]})s" if match[1] else match[0].replace("%", "%%")

    return _PARAMETER.sub(replace, sql.replace(IS_LISTED, _IS_LISTED))


# --- connecting


@contextmanager
def open_connection(url: str, *, password: str = "") -> Iterator[ServerRows]:
    """Opens a connection for the block; raises StoreError if the server cannot be reached."""
    password_option: dict[str, Any] = {"password": password} if password else {}
    with store_errors():
        connection = psycopg.connect(
            url, connect_timeout=CONNECT_S, autocommit=True, application_name="csmd",
            options=f"-c search_path=csmd,public -c statement_timeout={STATEMENT_MS}", **password_option,
        )  # fmt: skip
    connection.adapters.register_dumper(bool, _BoolAsNumber)
    try:
        yield ServerRows(connection)
    finally:
        connection.close()


def prepare(rows: ServerRows) -> bool:
    """Creates the schema if it is missing and returns whether it did; raises StoreError if it cannot."""
    is_new = False
    with rows.transaction(write=True):
        rows.all("select pg_advisory_xact_lock(2026112900)")  # two may join at once
        _check_extension(rows.text("select extversion from pg_extension where extname = 'vector'"))
        if not rows.value("select 1 from pg_namespace where nspname = 'csmd'"):
            if not rows.value("select has_database_privilege(current_database(), 'create')"):
                hint = "ask the owner of the database to join first"
                raise StoreError("the team's server has no tables of csmd yet", hint=hint)
            rows.server.execute(SCHEMA.read_text(encoding="utf-8"))
            is_new = True
    if rows.number("select version from server") > VERSION:
        raise StoreError("the team's server was set up by a newer csmd", hint="csmd upgrade")
    return is_new


def _check_extension(version: str) -> None:
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < MIN_VECTOR:
        hint = "install 0.8 or later there, and run in this database as its administrator: create extension vector"
        raise StoreError(f"the team's server has {f'pgvector {version}' if version else 'no pgvector'}", hint=hint)


def read_author(rows: Rows) -> str:
    """Returns the connection's role, by which its rows are known."""
    return rows.text("select session_user")


def read_epoch(rows: Rows) -> str:
    """Returns an id that differs for another server and after a backup was restored."""
    sql = (
        "select (select epoch from server) || ' ' || (select system_identifier from pg_control_system()) || ' ' || "
        "(select timeline_id from pg_control_checkpoint())"
    )
    return rows.text(sql)


# --- statements that differ from SQLite's


def delete_memory(rows: Rows, memory_id: str) -> bool:
    """Deletes a memory of this role and records the deletion; returns whether it existed."""
    delete = "delete from memories where id = :id and author = session_user returning project_seq"
    project = rows.key(delete, id=memory_id)
    if project is not None:
        conflict = "on conflict (author, project_seq, id) do update set changed = pg_current_xact_id()"
        rows.insert("gone", conflict, project_seq=project, id=memory_id)
    return project is not None


def delete_session(rows: Rows, session_id: str) -> None:
    """Deletes a session of this role with its digests."""
    rows.run("delete from sessions where id = :id and author = session_user", id=session_id)


def delete_all(rows: Rows) -> int:
    """Deletes every project of this role; returns their number."""
    return rows.run("delete from projects where author = session_user")


def ensure_model(rows: Rows, model: str, size: int) -> int:
    """Returns the row key of an embedding model by its name and length, created with an index if it is new."""
    return rows.number("select ensure_model(:model, :size)", model=model, size=size)


def format_vector(vector: bytes) -> str:
    """Formats a vector as pgvector reads it."""
    return f"[{','.join(str(number - 256 if number > 127 else number) for number in vector)}]"


def text_hits(
    rows: Rows, kind: str, terms: Sequence[str], *, projects: Sequence[int] | None, limit: int
) -> list[tuple[int, float]]:
    """Returns (row key, score, higher is better) of the memories, or digests (`kind` session), with any of `terms`."""
    if not terms:
        return []
    names = {f"term{number}": term for number, term in enumerate(terms)}
    query = " || ".join(f"plainto_tsquery('english', :{name})" for name in names)
    table = {
        "memory": "memories b",
        "session": "(select d.seq, d.words, s.project_seq from digests d join sessions s on s.seq = d.session_seq) b",
    }[kind]
    return rows.all(
        f"select b.seq, ts_rank_cd(b.words, {query}) as score from {table} where b.words @@ ({query}) "  # noqa: S608
        f"and {in_keys('b.project_seq', projects)} order by score desc, b.seq limit :limit",
        limit=limit, **names,
    )  # fmt: skip


def vector_hits(
    rows: Rows, model: str, vector: bytes, *, projects: Sequence[int] | None, limit: int
) -> list[tuple[int, int, int, float]]:
    """Returns (memory's row key, start, end, squared distance) of the memories nearest to `vector`, by their nearest
    part."""
    find_model = "select seq, dim from vector_models where name = :model and dim = :size"
    stored = rows.first(find_model, model=model, size=len(vector))
    if stored is None:
        return []
    seq, size = stored
    rows.all("select set_config('hnsw.iterative_scan', 'relaxed_order', true)")
    visible = f"memory_seq in (select seq from memories where {in_keys('project_seq', projects)})"  # noqa: S608
    hits = rows.all(
        f"select (embedding::halfvec({size})) <-> cast(:vector as halfvec({size})) as far, memory_seq, start_at, end_at "  # noqa: S608
        f"from vectors where model_seq = {seq} {'' if projects is None else f'and {visible}'} order by far limit :limit",
        vector=format_vector(vector), limit=4 * limit,
    )  # fmt: skip
    nearest: dict[int, Row] = {}
    for distance, memory, start, end in sorted(hits):
        nearest.setdefault(memory, (memory, start, end, distance * distance))
    return list(nearest.values())[:limit]
