"""Opens SQLite connections and runs SQL with deadlines.

Portable SQL is in the functions that run it; another backend would replace only this module, fulltext.py, passages.py,
vectors.py and the migrations.
"""

from __future__ import annotations

import hashlib
import importlib.util
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import apsw

from csmd import wire
from csmd.cache import cached
from csmd.errors import Damaged, DeadlineExceeded, IndexDamaged, StoreError
from csmd.store.cipher import apply_key
from csmd.store.row_values import row_reader
from csmd.text import prose, search_terms

BUSY_TIMEOUT_MS = 5000
#: Hexadecimal digits of a record's id.
ID_DIGITS = 10
#: Records that are read for the typed beginning of an id: enough to show that it is ambiguous.
MAX_PREFIX_MATCHES = 10
#: An interrupt between two statements stops neither, so after a deadline it is repeated at this interval.
INTERRUPT_RETRY_S = 0.01
#: A trigger asks twice for the passages of a turn; the answer is cached up to this length.
MAX_CACHED_CHARACTERS = 100_000
#: What the user can do about a damaged database.
REPAIR_HINT = "run `csmd repair`, which rebuilds the database from readable pages, backups and transcripts"
_DEADLINE = "a read was stopped at its deadline"
_SPOOLED = "; new captures wait in the spool"
Row = tuple[Any, ...]
T = TypeVar("T")
#: The condition that a column holds one of the keys in `:listed`. Its text does not depend on their number, so it is
#: prepared only once, which takes longer than reading a few rows.
IS_LISTED = "in (select value from json_each(:listed))"


class ErrorHint(NamedTuple):
    """A class of SQLite's errors, what follows from it, and what the user can do."""

    kind: type[Exception]
    consequence: str
    hint: str


ERROR_HINTS: tuple[ErrorHint, ...] = (
    ErrorHint(apsw.FullError, _SPOOLED, "free some space on that disk"),
    ErrorHint(apsw.ReadOnlyError, _SPOOLED, "make that directory writable"),
    ErrorHint(apsw.CantOpenError, "", "check that the directory exists and belongs to you"),
    ErrorHint(
        apsw.BusyError,
        "; another program has it open",
        "close that program; only the csmd daemon may open the database",
    ),
    ErrorHint(apsw.IOError, _SPOOLED, "check the disk's health and space"),
)


def _build_index_text(*values: Any) -> str:
    text, written_at = values  # a damaged row may hold something else than text
    return search_terms.build_index_text(text, str(written_at)) if isinstance(text, str) else ""


def _find_passages(*values: Any) -> str:
    (text,) = values
    if not isinstance(text, str):
        return "[]"
    return _dump_cached(text) if len(text) <= MAX_CACHED_CHARACTERS else _dump_passages(text)


def _dump_passages(text: str) -> str:
    # SQLite's JSON ends a text at its first NUL; the full-text index treats a NUL as a space.
    return wire.dumps([[start, end, text[start:end].replace("\0", " ")] for start, end in prose.find_passages(text)])


_dump_cached = cached(1)(_dump_passages)


def _slice_text(*values: Any) -> str:
    text, start, end = values
    return text[start:end] if isinstance(text, str) else ""


#: (name, function, arguments): csmd_indexed(text, time) returns the indexed terms of a text, csmd_passages(text) its
#: passages as JSON, csmd_slice(text, start, end) one of them.
SQL_FUNCTIONS = (
    ("csmd_indexed", _build_index_text, 2),
    ("csmd_passages", _find_passages, 1),
    ("csmd_slice", _slice_text, 3),
)


def find_vector_extension() -> str:
    """Returns the path of sqlite-vec's loadable library without importing the package, which would import numpy."""
    spec = importlib.util.find_spec("sqlite_vec")
    if spec is None or spec.origin is None:
        raise StoreError("sqlite-vec is not installed", hint="install csmd again: pip install --force-reinstall csmd")
    return str(Path(spec.origin).parent / "vec0")


def connect(
    path: Path, *, readonly: bool, immutable: bool = False, vfs: str = "", inspect_only: bool = False
) -> apsw.Connection:
    """Opens a connection with csmd's pragmas; a read-only one cannot write.

    `immutable`: no other process has the file open, and it is read without a lock or a log. `inspect_only`: the
    connection may recover what a crash interrupted, which a read-only one cannot, but changes nothing else, not even
    the journal mode. `vfs`: the name of an SQLite VFS; "" is the platform's own.
    """
    flags = apsw.SQLITE_OPEN_READONLY if readonly else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    flags |= apsw.SQLITE_OPEN_URI  # an absolute path is not parsed as a URI
    # Without `immutable` SQLite would create a log and its index next to the file.
    uri = f"{path.absolute().as_uri()}?immutable=1" if immutable else str(path)
    with store_errors(path):
        connection = apsw.Connection(uri, flags=flags, vfs=vfs or None)
    try:
        with store_errors(path):
            _configure(connection, has_log=not readonly and not inspect_only)
    except StoreError:
        close_quietly(connection)
        raise
    return connection


def _configure(connection: apsw.Connection, *, has_log: bool) -> None:
    """Gives a connection its key, extension, SQL functions and pragmas; `has_log`: it writes to a write-ahead log."""
    apply_key(connection)
    connection.enable_load_extension(True)
    connection.load_extension(find_vector_extension())
    connection.enable_load_extension(False)
    # The views and triggers of the full-text indexes call these: derived terms are stored only in the indexes.
    for name, function, arguments in SQL_FUNCTIONS:
        connection.create_scalar_function(name, function, arguments, deterministic=True, flags=apsw.SQLITE_INNOCUOUS)
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    # Small caches and no memory mapping: the daemon's memory must not grow with the database.
    pragmas = ["foreign_keys = on", "temp_store = memory", "mmap_size = 0", "cache_size = -4096"]
    if has_log:
        # The background thread checkpoints: an automatic checkpoint would add its fsync to a hook's acknowledgement.
        pragmas += ["journal_mode = wal", "synchronous = full", "fullfsync = on", "wal_autocheckpoint = 0"]
    for pragma in pragmas:
        connection.execute(f"pragma {pragma}").fetchall()


def close_quietly(connection: apsw.Connection) -> None:
    """Closes a connection and ignores errors: pages that cannot be written stay in the write-ahead log."""
    with suppress(apsw.Error):
        connection.close()


@contextmanager
def open_rows(path: Path, *, readonly: bool, vfs: str = "", inspect_only: bool = False) -> Iterator[Rows]:
    """Opens the rows of a database for the duration of the block."""
    connection = connect(path, readonly=readonly, vfs=vfs, inspect_only=inspect_only)
    try:
        yield Rows(connection)
    finally:
        close_quietly(connection)


def as_store_error(error: apsw.Error, path: Path | str = "the database") -> StoreError:
    """Translates an error of SQLite into a StoreError with a hint."""
    if isinstance(error, apsw.InterruptError):
        return DeadlineExceeded(_DEADLINE)
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        is_index = getattr(error, "extendedresult", 0) == apsw.SQLITE_CORRUPT_VTAB
        return (IndexDamaged if is_index else Damaged)(f"{path} is damaged: {error}", hint=REPAIR_HINT)
    for kind, consequence, hint in ERROR_HINTS:
        if isinstance(error, kind):
            return StoreError(f"{path}: {error}{consequence}", hint=hint)
    return StoreError(f"{path}: {error}")


@contextmanager
def store_errors(path: Path | str = "the database") -> Iterator[None]:
    """Raises the errors of SQLite in the block as StoreErrors."""
    try:
        yield
    except apsw.Error as error:
        raise as_store_error(error, path) from error


def in_keys(column: str, keys: Iterable[int] | None) -> str:
    """Returns the SQL condition that a column holds one of some row keys: always true for None, never for no keys."""
    return "true" if keys is None else f"{column} in ({', '.join(str(int(key)) for key in keys) or 'null'})"


def listed(keys: Iterable[int]) -> str:
    """Returns row keys as the value of `:listed` in IS_LISTED."""
    return f"[{','.join(map(str, keys))}]"


class Rows:
    """One connection: runs portable SQL with named parameters and returns rows as tuples or values."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self._until: float | None = None
        #: Results that a read may need again, since it sees one snapshot; None in a write.
        self.read_cache: dict[Any, Any] | None = None

    def all(self, sql: str, **values: Any) -> list[Row]:
        """Returns every row of the result."""
        if self._is_over():
            raise DeadlineExceeded(_DEADLINE)
        try:
            return list(self.connection.execute(sql, values))
        except apsw.Error as error:
            # A vector table interrupted between two of its own reads reports only that one failed.
            if isinstance(error, apsw.SQLError) and self._is_over():
                raise DeadlineExceeded(_DEADLINE) from error
            raise as_store_error(error) from error

    def _is_over(self) -> bool:
        return self._until is not None and time.monotonic() >= self._until

    def limit_seconds(self, limit_s: float, *, part: float = 0.5) -> float:
        """Returns the seconds for one of several reads: `limit_s`, or `part` of the time left if that is less."""
        return limit_s if self._until is None else min(limit_s, (self._until - time.monotonic()) * part)

    def first(self, sql: str, **values: Any) -> Row | None:
        """Returns the first row, or None."""
        rows = self.all(sql, **values)
        return rows[0] if rows else None

    def value(self, sql: str, **values: Any) -> Any:
        """Returns the first column of the first row, or None."""
        row = self.first(sql, **values)
        return row[0] if row else None

    def key(self, sql: str, /, **values: Any) -> int | None:
        """Returns the first column of the first row as a row key, or None."""
        key = self.value(sql, **values)
        return None if key is None else int(key)

    def text(self, sql: str, /, **values: Any) -> str:
        """Returns the first column of the first row as text; "" for no row and for null."""
        return str(self.value(sql, **values) or "")

    def number(self, sql: str, /, **values: Any) -> int:
        """Returns the first column of the first row as an integer; 0 for no row and for null."""
        return int(self.value(sql, **values) or 0)

    def exists(self, sql: str, /, **values: Any) -> bool:
        """Whether the result has a row."""
        return self.first(sql, **values) is not None

    def find(self, table: str, column: str, /, **values: Any) -> Any:
        """Returns a column of the first row whose columns have these values, or None."""
        return self.value(_select_sql(table, column, tuple(values)), **values)

    def has(self, table: str, /, **values: Any) -> bool:
        """Whether a table has a row whose columns have these values."""
        return self.first(_select_sql(table, "1", tuple(values)), **values) is not None

    def column(self, sql: str, /, **values: Any) -> list[Any]:
        """Returns the first column of every row."""
        return [row[0] for row in self.all(sql, **values)]

    def distinct(self, sql: str, /, **values: Any) -> frozenset[Any]:
        """Returns the distinct values of the first column."""
        return frozenset(self.column(sql, **values))

    def grouped(self, sql: str, /, **values: Any) -> dict[Any, list[Row]]:
        """Returns the rows, without their first column, by that column, in order; [] for an unknown key."""
        groups: dict[Any, list[Row]] = defaultdict(list)
        for key, *row in self.all(sql, **values):
            groups[key].append(tuple(row))
        return groups

    def read(self, kind: type[T], sql: str, /, **values: Any) -> list[T]:
        """Returns every row as a value of a class whose fields are the columns, in order."""
        return [row_reader(kind)(row) for row in self.all(sql, **values)]

    def read_one(self, kind: type[T], sql: str, /, **values: Any) -> T | None:
        """Returns the first row as a value of a class, or None."""
        return next(iter(self.read(kind, sql, **values)), None)

    def insert(self, table: str, conflict: str = "", /, **values: Any) -> bool:
        """Inserts a row and returns whether it was written, which `conflict` ("on conflict ...") decides."""
        return bool(self.run(_insert_sql(table, conflict, tuple(values)), **values))

    def insert_keyed(self, table: str, conflict: str = "", /, **values: Any) -> int:
        """Inserts a row as `insert` does and returns its key, 0 if it was not written."""
        return int(self.value(f"{_insert_sql(table, conflict, tuple(values))} returning seq", **values) or 0)

    def upsert(self, table: str, key: str, /, **values: Any) -> None:
        """Inserts a row, or updates the row with the same `key` (column names separated by commas)."""
        changed = ", ".join(f"{name} = excluded.{name}" for name in values if name not in key.split(", "))
        self.insert(table, f"on conflict ({key}) do update set {changed}", **values)

    def update(self, table: str, key: int, /, **values: Any) -> int:
        """Updates the row with this key and returns how many rows there were, 1 or 0."""
        changed = ", ".join(f"{name} = :{name}" for name in values)
        return self.run(f"update {table} set {changed} where seq = :seq", seq=key, **values)  # noqa: S608

    def revise(self, table: str, key: int, /, **values: Any) -> None:
        """Updates a row as `update` does and increments its version."""
        changed = "".join(f"{name} = :{name}, " for name in values)
        self.run(f"update {table} set {changed}version = version + 1 where seq = :seq", seq=key, **values)  # noqa: S608

    def delete(self, table: str, /, **values: Any) -> int:
        """Deletes the rows whose columns have these values and returns how many there were."""
        return self.run(f"delete from {table} where {_match_sql(tuple(values))}", **values)  # noqa: S608

    def keep_newest(self, table: str, key: str, by: str, *, limit: int) -> int:
        """Deletes all but the `limit` newest rows of a table by a column and returns how many were deleted."""
        newest = f"select {key} from {table} order by {by} desc, {key} limit :limit"  # noqa: S608
        return self.run(f"delete from {table} where {key} not in ({newest})", limit=limit)  # noqa: S608

    def run(self, sql: str, **values: Any) -> int:
        """Runs a statement and returns how many rows it changed."""
        self.all(sql, **values)
        return int(self.connection.changes())

    def many(self, sql: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Runs a statement once for each mapping."""
        with store_errors():
            self.connection.executemany(sql, rows)

    @contextmanager
    def deadline(self, seconds: float | None) -> Iterator[None]:
        """Stops the block after `seconds` with DeadlineExceeded; blocks nest, and the earliest deadline applies.

        A thread interrupts the connection, because a progress handler does not stop a vector scan. It cannot interrupt
        what runs after the block.
        """
        if seconds is None:
            yield
            return
        if seconds <= 0:
            raise DeadlineExceeded("no time was left for this read")
        outer_until = self._until
        own_until = time.monotonic() + seconds
        is_over = threading.Event()
        gate = threading.Lock()

        def watch() -> None:
            patience = seconds
            while not is_over.wait(patience):
                with gate:
                    if not is_over.is_set():
                        self.connection.interrupt()
                patience = INTERRUPT_RETRY_S

        self._until = own_until if outer_until is None else min(outer_until, own_until)
        threading.Thread(target=watch, name="csmd-deadline", daemon=True).start()
        try:
            yield
        finally:
            with gate:
                is_over.set()
            self._until = outer_until

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[None]:
        """Runs the block in one transaction, which is rolled back on an error and after a read."""
        with store_errors():
            self.connection.execute("begin immediate" if write else "begin")
        self.read_cache = None if write else {}
        try:
            yield
            with store_errors():
                self.connection.execute("commit" if write else "rollback")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("rollback")
            raise
        finally:
            self.read_cache = None


@cached(200)
def _select_sql(table: str, column: str, names: tuple[str, ...]) -> str:
    return f"select {column} from {table} where {_match_sql(names)} limit 1"  # noqa: S608


def _match_sql(names: tuple[str, ...]) -> str:
    return " and ".join(f"{name} = :{name}" for name in names)


@cached(200)
def _insert_sql(table: str, conflict: str, names: tuple[str, ...]) -> str:
    marks = ", ".join(f":{name}" for name in names)
    return f"insert into {table} ({', '.join(names)}) values ({marks}) {conflict}"  # noqa: S608


def make_id(letter: str, *parts: object) -> str:
    """Returns the id of a record: a letter for its kind and ten hex digits of the hash of its parts."""
    return letter + hashlib.sha256(":".join(map(str, parts)).encode()).hexdigest()[:ID_DIGITS]


def starts_with(column: str) -> str:
    """Returns the SQL condition that a column of ids begins with `:prefix`, in a form that uses an index."""
    return f"{column} >= :prefix and {column} < :prefix || '~'"


def ids_like(rows: Rows, table: str, prefix: str) -> list[str]:
    """Returns the ids of a table that begin with `prefix`, at most MAX_PREFIX_MATCHES; none for ""."""
    sql = f"select id from {table} where substr(id, 1, :size) = :prefix order by id limit :limit"  # noqa: S608
    return rows.column(sql, size=len(prefix), prefix=prefix, limit=MAX_PREFIX_MATCHES) if prefix else []


def count_live_bytes(rows: Rows) -> int:
    """Returns bytes of the database in use; free pages inside the file do not count."""
    pages = rows.value("pragma page_count") - rows.value("pragma freelist_count")
    return int(pages * rows.value("pragma page_size"))


def list_full_text_tables(rows: Rows) -> list[str]:
    """Returns the full-text indexes of the database."""
    return rows.column("select name from sqlite_schema where type = 'table' and sql like '%using fts5%' order by name")


def count_rows_by_table(rows: Rows) -> dict[str, int]:
    """Returns the number of rows of each table, including the tables behind indexes."""
    tables = rows.column("select name from sqlite_schema where type = 'table' and rootpage > 0")
    return {str(table): rows.number(f'select count(*) from "{table}"') for table in tables}  # noqa: S608


def enable_secure_delete(rows: Rows) -> None:
    """Overwrites what this connection deletes from now on with zeros, until the database is opened again."""
    rows.run("pragma secure_delete = on")


def cleanse(connection: apsw.Connection, folder: Path, *, patience_ms: int) -> bool:
    """Rewrites the whole database without what was deleted from it, and empties the write-ahead log.

    Merges the full-text indexes until they hold no deleted word. SQLite's temporary copy is an unnamed file in
    `folder`. Returns False if a reader kept the log from being emptied: try again.
    """
    connection.set_busy_timeout(patience_ms)
    for table in list_full_text_tables(Rows(connection)):
        connection.execute(f"insert into {table} ({table}) values ('optimize')")  # noqa: S608
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)  # so that the log does not hold both states
    directory = str(folder).replace("'", "''")
    connection.execute(f"pragma temp_store_directory = '{directory}'")
    connection.execute("pragma temp_store = file")
    try:
        connection.execute("vacuum")
    finally:
        connection.execute("pragma temp_store = memory")
        connection.execute("pragma temp_store_directory = ''")
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.BusyError:
        return False
    return True
