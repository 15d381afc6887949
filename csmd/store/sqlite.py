"""SQLite connections, extensions, pragmas, rows as values, deadlines.

Portable SQL is in the functions that run it; another backend would replace only this module, fulltext.py, passages.py,
vectors.py and the migrations.
"""

from __future__ import annotations

import importlib.util
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import apsw

from csmd import wire
from csmd.cache import cached
from csmd.errors import ConfigError, Damaged, DeadlineExceeded, IndexDamaged, KeyMissing, StoreError
from csmd.text import prose, search_terms

BUSY_TIMEOUT_MS = 5000
#: An interrupt between two statements stops neither, so after a deadline it is repeated at this interval.
INTERRUPT_RETRY_S = 0.01
Row = tuple[Any, ...]
T = TypeVar("T")


def vector_extension() -> str:
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
    the journal mode. `vfs` names how SQLite reaches the disk; "" is the platform's own.
    """
    flags = apsw.SQLITE_OPEN_READONLY if readonly else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    flags |= apsw.SQLITE_OPEN_URI  # an absolute path is not parsed as a URI
    extension = vector_extension()
    try:  # Without `immutable` SQLite would create a log and its index next to the file.
        place = f"{path.absolute().as_uri()}?immutable=1" if immutable else str(path)
        connection = apsw.Connection(place, flags=flags, vfs=vfs or None)
    except apsw.Error as error:
        raise as_store_error(error, path) from error
    try:
        apply_key(connection)
        connection.enable_load_extension(True)
        connection.load_extension(extension)
        connection.enable_load_extension(False)
        # The views and triggers of the full-text indexes call these: derived terms are stored only in the indexes.
        for name, function, arguments in SQL_FUNCTIONS:
            connection.create_scalar_function(
                name, function, arguments, deterministic=True, flags=apsw.SQLITE_INNOCUOUS
            )
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        # Small caches and no memory mapping: the daemon's memory must not grow with the database.
        pragmas = ["foreign_keys = on", "temp_store = memory", "mmap_size = 0", "cache_size = -4096"]
        if not readonly and not inspect_only:
            # The background thread checkpoints: an automatic checkpoint would add its fsync to a hook's
            # acknowledgement.
            pragmas += ["journal_mode = wal", "synchronous = full", "fullfsync = on", "wal_autocheckpoint = 0"]
        for pragma in pragmas:
            connection.execute(f"pragma {pragma}").fetchall()
    except apsw.Error as error:
        close_quietly(connection)
        raise as_store_error(error, path) from error
    except StoreError:
        close_quietly(connection)
        raise
    return connection


class Cipher(NamedTuple):
    """The key of this process's home in SQLite's form, "" for none, and whether new databases are encrypted with it."""

    key: str = ""
    for_new: bool = False


_cipher = Cipher()
#: How a plain database file begins.
_PLAIN_HEAD = b"SQLite format 3\0"
#: Bytes 20 to 24 of an encrypted one: the cipher reserves 32 bytes of each page.
_RESERVED = b"\x20\x40\x20\x20"
#: How many bytes of a file tell whether it is encrypted.
_HEAD_BYTES = 24


def use_key(key: bytes | None, *, for_new: bool = True) -> None:
    """Sets the key for every connection that this process opens from now on to an encrypted or new database."""
    global _cipher
    _cipher = Cipher() if key is None else Cipher(f"raw:{key.hex()}", for_new)


def encrypts_new() -> bool:
    """Whether new databases of this process are encrypted."""
    return _cipher.for_new


def cipher_library() -> str:
    """Returns the cipher that apsw was built with; "" if none."""
    return str(getattr(apsw, "mc_version", ""))


def require_cipher() -> None:
    """Raises ConfigError if apsw was built without a cipher."""
    if not cipher_library():
        raise ConfigError(
            "encryption needs apsw-sqlite3mc in place of apsw",
            hint="run `pip uninstall apsw` and `pip install --force-reinstall apsw-sqlite3mc` where csmd is installed",
        )


def has_key(connection: apsw.Connection) -> bool:
    """Whether a connection was given a key."""
    return bool(connection.pragma("cipher_salt"))


def is_encrypted_file(path: Path) -> bool:
    """Whether a closed database is encrypted; opening one that this process has open would drop its locks."""
    try:
        with path.open("rb") as file:
            return _is_encrypted(file.read(_HEAD_BYTES))
    except OSError:
        return False


def _is_encrypted(head: bytes) -> bool:
    return not head.startswith(_PLAIN_HEAD) and head[-len(_RESERVED) :] == _RESERVED


def apply_key(connection: apsw.Connection, *, like: apsw.Connection | None = None) -> None:
    """Gives a new connection the key if its file is encrypted, or new and to be encrypted; `like` decides if given."""
    if not connection.filename:
        return  # in memory
    if like is None:
        head = bytes(connection.read("main", 0, 0, _HEAD_BYTES)[1])
        wanted = _is_encrypted(head) if any(head) else _cipher.for_new
    else:
        wanted = has_key(like)
    if wanted and not _cipher.key:
        raise KeyMissing("the database is encrypted, and its key is not known", hint="run `csmd encrypt status`")
    if wanted:
        connection.pragma("key", _cipher.key)


def copy_into(connection: apsw.Connection, target: Path, *, encrypted: bool) -> None:
    """Copies a database to an empty file, encrypted with this process's key or plain, whatever the source is."""
    key = f"cipher=chacha20&key={_cipher.key}" if encrypted else "key="
    try:
        connection.execute("vacuum into ?", (f"{target.absolute().as_uri()}?{key}",))
    except apsw.Error as error:  # the message may contain the key
        raise StoreError(
            f"{target}: the copy could not be made ({type(error).__name__})",
            hint="run `csmd repair`, or free some space",
        ) from None


def _indexed(*values: Any) -> str:
    text, at = values  # a damaged row may hold something else than text
    return search_terms.build_index_text(text, str(at)) if isinstance(text, str) else ""


def _passages(*values: Any) -> str:
    (text,) = values
    if not isinstance(text, str):
        return "[]"
    return _passages_of_short(text) if len(text) <= MAX_CACHED_CHARACTERS else _passages_as_json(text)


def _passages_as_json(text: str) -> str:
    # SQLite's JSON ends a text at its first NUL; the full-text index treats a NUL as a space.
    return wire.dumps([[start, end, text[start:end].replace("\0", " ")] for start, end in prose.find_passages(text)])


#: A trigger asks twice for the passages of a turn; the answer is cached up to this length.
MAX_CACHED_CHARACTERS = 100_000
_passages_of_short = cached(1)(_passages_as_json)


def _slice(*values: Any) -> str:
    text, start, end = values
    return text[start:end] if isinstance(text, str) else ""


#: (name, function, arguments) of what triggers, views and readers call in SQL: csmd_indexed(text, time) returns the
#: indexed terms of a text, csmd_passages(text) its passages as JSON, csmd_slice(text, start, end) one of them.
SQL_FUNCTIONS = (("csmd_indexed", _indexed, 2), ("csmd_passages", _passages, 1), ("csmd_slice", _slice, 3))


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


#: What the user can do about a damaged database.
REPAIR_HINT = "`csmd repair` brings it back from what can be read, backups and transcripts"
_SPOOLED = "; what is captured meanwhile waits in the spool"
#: SQLite's error -> what follows from it, and what the user can do.
ERROR_HINTS: tuple[tuple[type[Exception], str, str], ...] = (
    (apsw.FullError, _SPOOLED, "free some space on that disk"),
    (apsw.ReadOnlyError, _SPOOLED, "make that directory writable"),
    (apsw.CantOpenError, "", "check that the directory exists and belongs to you"),
    (apsw.BusyError, "; another program has it open", "close what has it open: only the csmd daemon should"),
    (apsw.IOError, _SPOOLED, "check the disk's health and space"),
)


def as_store_error(error: apsw.Error, path: Path | str = "the database") -> StoreError:
    """Translates an error of SQLite into a StoreError with a hint."""
    if isinstance(error, apsw.InterruptError):
        return DeadlineExceeded("a read was stopped at its deadline")
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        derived = getattr(error, "extendedresult", 0) == apsw.SQLITE_CORRUPT_VTAB
        return (IndexDamaged if derived else Damaged)(f"{path} is damaged: {error}", hint=REPAIR_HINT)
    fact, hint = next(((fact, hint) for kind, fact, hint in ERROR_HINTS if isinstance(error, kind)), ("", ""))
    return StoreError(f"{path}: {error}{fact}", hint=hint)


def in_keys(column: str, keys: Iterable[int] | None) -> str:
    """Returns the SQL condition that a column holds one of some row keys: always true for None, never for no keys."""
    return "true" if keys is None else f"{column} in ({', '.join(str(int(key)) for key in keys) or 'null'})"


#: The condition that a column holds one of the keys in `:listed`. Its text does not depend on their number, so it is
#: prepared only once, which takes longer than reading a few rows.
IS_LISTED = "in (select value from json_each(:listed))"


def listed(keys: Iterable[int]) -> str:
    """Returns row keys as the value of `:listed` in IS_LISTED."""
    return f"[{','.join(map(str, keys))}]"


def columns(kind: type[Any], alias: str, **instead: str) -> str:
    """Returns a class's fields as columns in order: `alias.name`, or what `instead` gives for a name."""
    return ", ".join(instead.get(name, f"{alias}.{name}") for name in _annotations(kind))


def _annotations(kind: type[Any]) -> dict[str, str]:
    # a named tuple's annotations are ForwardRefs
    return {name: str(getattr(text, "__forward_arg__", text)) for name, text in kind.__annotations__.items()}


#: Annotation of a field -> how a column's value becomes the field's.
_CONVERTED: Mapping[str, Callable[[Any], Any]] = {
    "bool": bool,
    "bool | None": lambda stored: None if stored is None else bool(stored),
    "tuple[str, ...]": lambda stored: tuple(stored.split()),
}


def column_values(value: Any, *without: str) -> dict[str, Any]:
    """Maps a value's fields, except those in `without`, to columns by name; tuples of words are joined by spaces."""
    names, joined = _column_names(type(value), without)
    values = {name: getattr(value, name) for name in names}
    for name in joined:
        values[name] = " ".join(values[name])
    return values


@cached(200)
def _column_names(kind: type[Any], without: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the names of a class's fields that are columns, and of those the ones that are tuples of words."""
    annotations = {name: text for name, text in _annotations(kind).items() if name not in without}
    return tuple(annotations), tuple(name for name, text in annotations.items() if text == "tuple[str, ...]")


@cached(200)
def _reader(kind: type[T]) -> Callable[[Sequence[Any]], T]:
    """Returns a function from a row, its columns a class's fields in order, to a value; last ones may be missing."""
    annotations = _annotations(kind)
    converted = [(place, _CONVERTED[text]) for place, text in enumerate(annotations.values()) if text in _CONVERTED]
    names = tuple(annotations)
    # A frozen class's __init__ takes three times as long as setting its slots, and a question reads hundreds of rows.
    has_slots = is_dataclass(kind) and "__slots__" in vars(kind)
    setters = [getattr(kind, name).__set__ for name in names] if has_slots else []

    def read(row: Sequence[Any]) -> T:
        values = list(row)
        for place, convert in converted:
            if place < len(values):
                values[place] = convert(values[place])
        if len(values) < len(setters) or not setters:
            return kind(**dict(zip(names, values, strict=False)))
        value = object.__new__(kind)
        for put, part in zip(setters, values, strict=True):
            put(value, part)
        return value

    return read


def as_value(kind: type[T], row: Sequence[Any]) -> T:
    """Returns a row as a value of a class whose fields are the row's columns, in order."""
    return _reader(kind)(row)


class Rows:
    """One connection: runs portable SQL with named parameters and returns rows as tuples or values."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self._until: float | None = None
        #: What a read has computed and may need again, since it sees one snapshot; None in a write.
        self.of_this_read: dict[Any, Any] | None = None

    def all(self, sql: str, **values: Any) -> list[Row]:
        """Returns every row of the result."""
        if self._until is not None and time.monotonic() >= self._until:
            raise DeadlineExceeded("a read was stopped at its deadline")
        try:
            return list(self.connection.execute(sql, values))
        except apsw.SQLError as error:
            # A vector table interrupted between two of its own reads reports only that one failed.
            if self._until is not None and time.monotonic() >= self._until:
                raise DeadlineExceeded("a read was stopped at its deadline") from error
            raise as_store_error(error) from error
        except apsw.Error as error:
            raise as_store_error(error) from error

    def share(self, most: float, *, part: float = 0.5) -> float:
        """Returns the seconds for one of several reads: `limit_s`, or `part` of the time left if that is less."""
        return most if self._until is None else min(most, (self._until - time.monotonic()) * part)

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
        return [_reader(kind)(row) for row in self.all(sql, **values)]

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
        where = " and ".join(f"{name} = :{name}" for name in values)
        return self.run(f"delete from {table} where {where}", **values)  # noqa: S608

    def keep_newest(self, table: str, key: str, by: str, *, most: int) -> int:
        """Deletes all but the `most` newest rows of a table by a column and returns how many were deleted."""
        newest = f"select {key} from {table} order by {by} desc, {key} limit :most"  # noqa: S608
        return self.run(f"delete from {table} where {key} not in ({newest})", most=most)  # noqa: S608

    def run(self, sql: str, **values: Any) -> int:
        """Runs a statement and returns how many rows it changed."""
        self.all(sql, **values)
        return int(self.connection.changes())

    def many(self, sql: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Runs a statement once for each mapping."""
        try:
            self.connection.executemany(sql, rows)
        except apsw.Error as error:
            raise as_store_error(error) from error

    @contextmanager
    def within(self, seconds: float | None) -> Iterator[None]:
        """Stops the block after `seconds` with DeadlineExceeded; blocks nest, and the nearest deadline counts.

        A thread interrupts the connection, because a progress handler does not stop a vector scan. It cannot interrupt
        what runs after the block.
        """
        if seconds is None:
            yield
            return
        if seconds <= 0:
            raise DeadlineExceeded("no time was left for this read")
        outer, own = self._until, time.monotonic() + seconds
        over, gate = threading.Event(), threading.Lock()

        def watch() -> None:
            patience = seconds
            while not over.wait(patience):
                with gate:
                    if not over.is_set():
                        self.connection.interrupt()
                patience = INTERRUPT_RETRY_S

        self._until = own if outer is None else min(outer, own)
        threading.Thread(target=watch, name="csmd-deadline", daemon=True).start()
        try:
            yield
        finally:
            with gate:
                over.set()
            self._until = outer

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[None]:
        """Runs the block in one transaction, which is rolled back on an error and after a read."""
        try:
            self.connection.execute("begin immediate" if write else "begin")
        except apsw.Error as error:
            raise as_store_error(error) from error
        self.of_this_read = None if write else {}
        try:
            yield
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("rollback")
            raise
        finally:
            self.of_this_read = None
        try:
            self.connection.execute("commit" if write else "rollback")
        except apsw.Error as error:
            if self.connection.in_transaction:
                self.connection.execute("rollback")
            raise as_store_error(error) from error


@cached(200)
def _select_sql(table: str, column: str, names: tuple[str, ...]) -> str:
    return f"select {column} from {table} where {' and '.join(f'{name} = :{name}' for name in names)} limit 1"  # noqa: S608


@cached(200)
def _insert_sql(table: str, conflict: str, names: tuple[str, ...]) -> str:
    marks = ", ".join(f":{name}" for name in names)
    return f"insert into {table} ({', '.join(names)}) values ({marks}) {conflict}"  # noqa: S608


def starts_with(column: str) -> str:
    """Returns the SQL condition that a column of ids begins with `:prefix`, in a form that uses an index."""
    return f"{column} >= :prefix and {column} < :prefix || '~'"


def ids_like(rows: Rows, table: str, prefix: str) -> list[str]:
    """Returns the ids of a table that begin with `prefix`, at most ten; none for ""."""
    sql = f"select id from {table} where substr(id, 1, :size) = :prefix order by id limit 10"  # noqa: S608
    return rows.column(sql, size=len(prefix), prefix=prefix) if prefix else []


def live_bytes(rows: Rows) -> int:
    """Returns bytes of the database in use; free pages inside the file do not count."""
    pages = rows.value("pragma page_count") - rows.value("pragma freelist_count")
    return int(pages * rows.value("pragma page_size"))


def full_text_tables(rows: Rows) -> list[str]:
    """Returns the full-text indexes of the database."""
    names = rows.all("select name from sqlite_schema where type = 'table' and sql like '%using fts5%' order by name")
    return [str(name) for (name,) in names]


def row_counts(rows: Rows) -> dict[str, int]:
    """Returns the number of rows of each table, including the tables behind indexes."""
    tables = rows.column("select name from sqlite_schema where type = 'table' and rootpage > 0")
    return {str(table): rows.number(f'select count(*) from "{table}"') for table in tables}  # noqa: S608


def secure_delete(rows: Rows) -> None:
    """Overwrites what this connection deletes from now on with zeros, until the database is opened again."""
    rows.run("pragma secure_delete = on")


def cleanse(connection: apsw.Connection, folder: Path, *, patience_ms: int) -> bool:
    """Rewrites the whole database without what was deleted from it, and empties the write-ahead log.

    Merges the full-text indexes until they hold no deleted word. SQLite's temporary copy is an unnamed file in
    `folder`. Returns False if a reader kept the log from being emptied: try again.
    """
    connection.set_busy_timeout(patience_ms)
    for table in full_text_tables(Rows(connection)):
        connection.execute(f"insert into {table} ({table}) values ('optimize')")  # noqa: S608
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)  # so that the log does not hold both states
    place = str(folder).replace("'", "''")
    connection.execute(f"pragma temp_store_directory = '{place}'")
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
