"""Everything that is SQLite's own: opening, extensions, pragmas, full text and vectors.

Portable SQL lives beside the functions that run it; only this module, the migrations and
`text_hits` / `vector_hits` here would have a twin for another backend (design section 6).
"""

from __future__ import annotations

import importlib.util
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw

from csmd.errors import Damaged, DeadlineExceeded, IndexDamaged, StoreError

BUSY_TIMEOUT_MS = 5000
#: vec0 allocates a whole chunk for each partition: 64 keeps a hundred projects at 10 MB, not 158 (facts: dependencies).
VECTOR_CHUNK_ROWS = 64
VECTOR_KINDS = ("turn", "memory")
#: What words are looked for in, and whose row it is: a symptom's is the memory that explains it.
FULL_TEXT = {
    "turn": ("turns_fts", "turns b on b.seq = turns_fts.rowid"),
    "memory": ("memories_fts", "memories b on b.seq = memories_fts.rowid"),
    "symptom": ("symptoms_fts", "symptoms y on y.seq = symptoms_fts.rowid join memories b on b.seq = y.memory_seq"),
}
#: An interrupt between two statements stops neither: after a deadline it is repeated this often.
INTERRUPT_AGAIN_S = 0.01
Row = tuple[Any, ...]


def vector_extension() -> str:
    """The path of sqlite-vec's loadable library, found without importing it: that would import numpy."""
    spec = importlib.util.find_spec("sqlite_vec")
    if spec is None or spec.origin is None:
        raise StoreError("sqlite-vec is not installed", hint="install csmd again: pip install --force-reinstall csmd")
    return str(Path(spec.origin).parent / "vec0")


def connect(
    path: Path, *, readonly: bool, still: bool = False, vfs: str = "", looking: bool = False
) -> apsw.Connection:
    """A connection with csmd's pragmas; readers cannot write by construction. `still`: nobody has the file open.

    `vfs` names how SQLite reaches the disk; "" is the platform's own. One that is `looking` can end what a crash
    interrupted, which no reader can, and changes nothing else: not even the kind of journal.
    """
    flags = apsw.SQLITE_OPEN_READONLY if readonly else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    extension = vector_extension()
    try:  # Else SQLite would put a log and its index beside it.
        place = f"{path.absolute().as_uri()}?immutable=1" if still else str(path)
        connection = apsw.Connection(place, flags=flags | (apsw.SQLITE_OPEN_URI if still else 0), vfs=vfs or None)
    except apsw.Error as error:
        raise explained(error, path) from error
    try:
        connection.enable_load_extension(True)
        connection.load_extension(extension)
        connection.enable_load_extension(False)
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        # Small caches and no mapping: the daemon's memory must not grow with the database (design section 1, 6).
        pragmas = ["foreign_keys = on", "temp_store = memory", "mmap_size = 0", "cache_size = -4096"]
        if not readonly and not looking:
            # The steward checkpoints: an automatic one would put its fsync into some hook's ack.
            pragmas += ["journal_mode = wal", "synchronous = full", "fullfsync = on", "wal_autocheckpoint = 0"]
        for pragma in pragmas:
            connection.execute(f"pragma {pragma}").fetchall()
    except apsw.Error as error:
        shut(connection)
        raise explained(error, path) from error
    return connection


def shut(connection: apsw.Connection) -> None:
    """Closes a connection; that the disk does not take the log's pages then is no harm: they stay in the log."""
    with suppress(apsw.Error):
        connection.close()


@contextmanager
def opened(path: Path, *, readonly: bool, vfs: str = "", looking: bool = False) -> Iterator[Rows]:
    """The rows of a database for as long as the block runs."""
    connection = connect(path, readonly=readonly, vfs=vfs, looking=looking)
    try:
        yield Rows(connection)
    finally:
        shut(connection)


#: What there is to do about a damaged database.
REPAIR_HINT = "csmd repair brings it back from what can be read, backups and transcripts"
#: What SQLite says -> what the user can do about it.
HINTS: tuple[tuple[type[Exception], str], ...] = (
    (apsw.FullError, "free some space on that disk; nothing captured meanwhile is lost, it waits in the spool"),
    (apsw.ReadOnlyError, "make that directory writable; nothing captured meanwhile is lost, it waits in the spool"),
    (apsw.CantOpenError, "check that the directory exists and belongs to you"),
    (apsw.BusyError, "another program holds the database; only the csmd daemon should open it"),
    (apsw.IOError, "look at the disk's health and space; nothing captured meanwhile is lost, it waits in the spool"),
)


def explained(error: apsw.Error, path: Path | str = "the database") -> StoreError:
    """`error` as a StoreError that says what to do."""
    if isinstance(error, apsw.InterruptError):
        return DeadlineExceeded("a read was stopped at its deadline")
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        derived = getattr(error, "extendedresult", 0) == apsw.SQLITE_CORRUPT_VTAB
        return (IndexDamaged if derived else Damaged)(f"{path} is damaged: {error}", hint=REPAIR_HINT)
    hint = next((hint for kind, hint in HINTS if isinstance(error, kind)), "")
    return StoreError(f"{path}: {error}", hint=hint)


class Rows:
    """One connection as stages see it: run portable SQL with named parameters, get tuples."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self._until: float | None = None

    def all(self, sql: str, **values: Any) -> list[Row]:
        """Every row of the result."""
        if self._until is not None and time.monotonic() >= self._until:
            raise DeadlineExceeded("a read was stopped at its deadline")
        try:
            return list(self.connection.execute(sql, values))
        except apsw.Error as error:
            raise explained(error) from error

    def one(self, sql: str, **values: Any) -> Row | None:
        """The first row, or None."""
        rows = self.all(sql, **values)
        return rows[0] if rows else None

    def value(self, sql: str, **values: Any) -> Any:
        """The first column of the first row, or None."""
        row = self.one(sql, **values)
        return row[0] if row else None

    def run(self, sql: str, **values: Any) -> int:
        """Performs a statement; the number of rows it changed."""
        self.all(sql, **values)
        return int(self.connection.changes())

    def many(self, sql: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Performs a statement once for each mapping."""
        try:
            self.connection.executemany(sql, rows)
        except apsw.Error as error:
            raise explained(error) from error

    @contextmanager
    def within(self, seconds: float | None) -> Iterator[None]:
        """Stops what runs here after `seconds` with DeadlineExceeded; blocks nest, the nearest deadline counts.

        By a thread that interrupts: a progress handler does not stop a vector scan. When the block is
        left the thread can interrupt no more, so that what runs next is not stopped for it.
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
                patience = INTERRUPT_AGAIN_S

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
        """One transaction; rolled back when anything is raised."""
        try:
            self.connection.execute("begin immediate" if write else "begin")
        except apsw.Error as error:
            raise explained(error) from error
        try:
            yield
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("rollback")
            raise
        try:
            self.connection.execute("commit")
        except apsw.Error as error:
            if self.connection.in_transaction:
                self.connection.execute("rollback")
            raise explained(error) from error


def match_expression(terms: Sequence[str]) -> str:
    """An FTS5 query that any of `terms` satisfies; each is a quoted phrase, so no input is syntax."""
    # FTS5 reads an expression up to its first NUL: a phrase would never end.
    plain = (term.replace("\0", " ") for term in terms)
    return " OR ".join('"' + term.replace('"', '""') + '"' for term in plain if term.strip())


def text_hits(rows: Rows, kind: str, terms: Sequence[str], *, projects: Sequence[int] | None, limit: int) -> list[Row]:
    """(row seq, bm25 score with higher better) of the rows that hold any of `terms`; `projects` None is all."""
    expression = match_expression(terms)
    if not expression:
        return []
    table, base = FULL_TEXT[kind]
    scope = "" if projects is None else f"and b.project_seq in ({', '.join(str(int(p)) for p in projects)})"
    sql = f"select b.seq, -bm25({table}) as score from {table} join {base} where {table} match :expression {scope} "  # noqa: S608
    return rows.all(f"{sql} order by score desc, b.seq limit :limit", expression=expression, limit=limit)


def memories_with(rows: Rows, term: str) -> int:
    """How many memories hold a term (stemmed)."""
    return int(
        rows.value("select count(*) from memories_fts where memories_fts match :term", term=match_expression([term]))
    )


def held(rows: Rows, kind: str, term: str, *, projects: Sequence[int] | None, most: int) -> int:
    """How many rows of these projects hold a term (stemmed), counted up to `most`."""
    expression = match_expression([term])
    if not expression:
        return 0
    table, base = FULL_TEXT[kind]
    scope = "" if projects is None else f"and b.project_seq in ({', '.join(str(int(p)) for p in projects)})"
    one = f"select 1 from {table} join {base} where {table} match :expression {scope} limit :most"  # noqa: S608
    return int(rows.value(f"select count(*) from ({one})", expression=expression, most=most))  # noqa: S608


def vector_table(kind: str, model_seq: int) -> str:
    """The vec0 table of one model's vectors for turns or memories."""
    if kind not in VECTOR_KINDS:
        raise StoreError(f"no vectors are kept for {kind!r}")
    return f"vec_{kind}_{int(model_seq)}"


def create_vector_tables(rows: Rows, model_seq: int, dim: int) -> None:
    """Makes the tables for a model's vectors; int8, partitioned by project."""
    for kind in VECTOR_KINDS:
        rows.run(
            f"create virtual table if not exists {vector_table(kind, model_seq)} using vec0("
            f"project_seq integer partition key, embedding int8[{int(dim)}], chunk_size={VECTOR_CHUNK_ROWS})"
        )


def insert_vector(rows: Rows, kind: str, model_seq: int, seq: int, project_seq: int, vector: bytes) -> None:
    """Stores one vector under its row in `vectors`."""
    rows.run(
        f"insert into {vector_table(kind, model_seq)} (rowid, project_seq, embedding) "  # noqa: S608
        "values (:seq, :project, vec_int8(:vector))",
        seq=seq,
        project=project_seq,
        vector=vector,
    )


def delete_vectors(rows: Rows, kind: str, model_seq: int, seqs: Sequence[int]) -> None:
    """Removes vectors by their rows in `vectors`."""
    for seq in seqs:
        rows.run(f"delete from {vector_table(kind, model_seq)} where rowid = :seq", seq=seq)  # noqa: S608


def stored_vectors(rows: Rows, kind: str, model_seq: int) -> dict[int, int]:
    """The rows in `vectors` that have a vector here, each with the project in whose partition it stands."""
    table = vector_table(kind, model_seq)
    return {int(seq): int(project) for seq, project in rows.all(f"select rowid, project_seq from {table}")}  # noqa: S608


def drop_vector_tables(rows: Rows, model_seq: int) -> None:
    """Removes the tables of a model's vectors."""
    for kind in VECTOR_KINDS:
        rows.run(f"drop table if exists {vector_table(kind, model_seq)}")


def move_vector(rows: Rows, kind: str, model_seq: int, seq: int, project_seq: int) -> None:
    """Puts one vector into another project's partition."""
    table = vector_table(kind, model_seq)
    vector = rows.value(f"select embedding from {table} where rowid = :seq", seq=seq)  # noqa: S608
    delete_vectors(rows, kind, model_seq, [seq])
    insert_vector(rows, kind, model_seq, seq, project_seq, vector)


def vector_hits(
    rows: Rows, kind: str, model_seq: int, vector: bytes, *, projects: Sequence[int] | None, limit: int
) -> list[Row]:
    """(row seq, start, end, squared distance) of the passages nearest to `vector`; `projects` None is all."""
    found: list[Row] = []
    for project in [None] if projects is None else projects:
        scope = "" if project is None else "and project_seq = :project"
        values = {"vector": vector, "limit": limit} | ({} if project is None else {"project": project})
        found += rows.all(
            f"select v.row_seq, v.start_at, v.end_at, near.distance * near.distance from ("  # noqa: S608
            f"select rowid, distance from {vector_table(kind, model_seq)} "
            f"where embedding match vec_int8(:vector) and k = :limit {scope}) near "
            "join vectors v on v.seq = near.rowid",
            **values,
        )
    return sorted(found, key=lambda row: (row[3], row[0]))[:limit]
