"""Files of other programs, opened only for reading: text, folders of Markdown, SQLite databases.

A reader gets a ForeignFile, which identifies its content, so that a renamed file is recognized.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from csmd.errors import BadInput, StoreError, TooLarge
from csmd.store.files import open_regular
from csmd.store.sqlite import Rows, close_quietly, connect
from csmd.text.display import amount

#: Most bytes of a file, and of all notes of a folder.
MAX_BYTES = 200_000_000
#: Most bytes of a note.
MAX_NOTE_BYTES = 1_000_000
#: Most bytes of a line.
MAX_LINE_BYTES = 4_000_000
#: Most notes of a folder.
MAX_NOTES = 10_000
#: Bytes by which a file is recognized.
BEGINNING_BYTES = 65_536
#: Rows of a database that are read at once.
ROWS_AT_ONCE = 200
SQLITE_MAGIC = b"SQLite format 3\0"
#: Bytes of a SQLite database's header.
_HEAD_BYTES = 100
#: (offset, bytes) of its page size, change counter, page count, and the change counter at that count.
_HEAD_FIELDS = ((16, 2), (24, 4), (28, 4), (92, 4))
SMALLER_HINT = "export less from the program that wrote it, or split it"
_REPAIR_HINT = "import a backup of it, or repair it first: sqlite3 FILE .recover"


@dataclass(frozen=True, slots=True)
class MarkdownNote:
    """A Markdown file: its path below the folder, its first MAX_NOTE_BYTES, whether it is longer, and its time."""

    name: str
    data: bytes
    is_cut: bool
    modified: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignFile:
    """The content at a path: the beginning of a file, the Markdown files of a folder, or a database's tables."""

    path: Path
    beginning: bytes = b""
    note_paths: tuple[Path, ...] = ()
    tables: Mapping[str, frozenset[str]] = field(default_factory=dict)
    rows: Rows | None = None

    def read_lines(self) -> Iterator[tuple[int, bytes]]:
        """Yields the lines that are not empty, with their numbers; raises TooLarge for a long line or file."""
        check_size(self.path)
        with open_regular(self.path) as file:
            for number, line in enumerate(iter(partial(file.readline, MAX_LINE_BYTES + 1), b""), start=1):
                if len(line) > MAX_LINE_BYTES:
                    raise TooLarge(
                        f"{self.path}: line {number} is longer than {MAX_LINE_BYTES // 1_000_000} MB", hint=SMALLER_HINT
                    )
                if line.strip():
                    yield number, line

    def read_whole(self, limit: int) -> bytes:
        """Returns the bytes of a file; raises TooLarge beyond `limit`."""
        with open_regular(self.path) as file:
            data = file.read(limit + 1)
        if len(data) > limit:
            raise TooLarge(f"{self.path} is larger than {limit // 1_000_000} MB", hint=SMALLER_HINT)
        return data

    def read_notes(self) -> Iterator[MarkdownNote]:
        """Yields the Markdown files of a folder, or the one at the path."""
        for path in self.note_paths:
            with open_regular(path) as file:
                data, info = file.read(MAX_NOTE_BYTES + 1), os.fstat(file.fileno())
            name = path.name if path == self.path else path.relative_to(self.path).as_posix()
            yield MarkdownNote(name, data[:MAX_NOTE_BYTES], len(data) > MAX_NOTE_BYTES, info.st_mtime)

    def read_table(self, table: str, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yields the rows of a table by `id`; a column that this version of the file lacks is None."""
        assert self.rows is not None
        present = [name for name in columns if name in self.tables[table]]
        sql = f"select {', '.join(('id', *present))} from {table} where id > :after order by id limit {ROWS_AT_ONCE}"  # noqa: S608
        after = -1
        while True:
            try:
                part = self.rows.all(sql, after=after)
            except StoreError as error:
                raise BadInput(f"{self.path} is damaged: {table} cannot be read", hint=_REPAIR_HINT) from error
            for row in part:
                yield {**dict.fromkeys(columns), **dict(zip(("id", *present), row, strict=True))}
            if len(part) < ROWS_AT_ONCE:
                return
            after = part[-1][0]


@contextlib.contextmanager
def open_import(path: Path) -> Iterator[ForeignFile]:
    """Opens the file or folder at a path; raises BadInput or TooLarge if it cannot be read whole."""
    if path.is_dir():
        yield ForeignFile(path=path, note_paths=_list_notes(path))
        return
    try:
        with open_regular(path) as file:
            beginning = file.read(BEGINNING_BYTES)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}", hint="name a file that you can read") from error
    if not beginning.startswith(SQLITE_MAGIC):
        is_note = path.suffix == ".md" and not path.name.startswith(".")
        yield ForeignFile(path=path, beginning=beginning, note_paths=(path,) if is_note else ())
        return
    check_size(path)
    if (whole := _parse_database_size(beginning)) > (size := path.stat().st_size):
        raise BadInput(
            f"{path} is a SQLite database that was cut: it has {size:,} of "
            f"{'at least ' * (size < _HEAD_BYTES)}{whole:,} bytes",
            hint="import a whole copy or a backup of it",
        )
    # Changes in the log would be missed, and the file may change while it is read.
    log = Path(f"{path}-wal")
    with contextlib.suppress(FileNotFoundError):
        if log.stat().st_size:
            raise BadInput(
                f"{path} is in use: changes are waiting in {log.name}",
                hint=f"import a copy: sqlite3 {path.name} '.backup copy.db'; or end the program that writes it",
            )
    try:
        connection = connect(path, readonly=True, immutable=True)
    except StoreError as error:
        raise BadInput(f"{path} is damaged, or no SQLite database", hint=_REPAIR_HINT) from error
    try:
        rows = Rows(connection)
        yield ForeignFile(path=path, beginning=beginning, tables=_list_tables(rows, path), rows=rows)
    finally:
        close_quietly(connection)


def _parse_database_size(head: bytes) -> int:
    """Returns a SQLite database's size in bytes by its header; 0 if the header does not tell."""
    if len(head) < _HEAD_BYTES:
        return _HEAD_BYTES
    page, changes, pages, counted_at = (int.from_bytes(head[offset : offset + size]) for offset, size in _HEAD_FIELDS)
    # The page count is valid only if written with the last change (https://sqlite.org/fileformat.html, 1.3.7).
    return (65_536 if page == 1 else page) * pages if changes == counted_at else 0


def check_size(path: Path) -> None:
    """Raises TooLarge for a file of more than MAX_BYTES."""
    if (size := path.stat().st_size) > MAX_BYTES:
        raise TooLarge(
            f"{path} has {size // 1_000_000} MB; csmd imports files of at most {MAX_BYTES // 1_000_000} MB",
            hint=SMALLER_HINT,
        )


def _list_tables(rows: Rows, path: Path) -> dict[str, frozenset[str]]:
    """Returns ordinary tables and their columns: a foreign view or virtual table would run its author's code."""
    try:
        names = rows.column(
            "select name from sqlite_schema where type = 'table' and lower(sql) not like 'create virtual%'"
        )
        return {
            name: frozenset(rows.column("select name from pragma_table_info(:table)", table=name)) for name in names
        }
    except StoreError as error:
        raise BadInput(f"{path} is damaged, or no SQLite database", hint=_REPAIR_HINT) from error


def _list_notes(folder: Path) -> tuple[Path, ...]:
    """Returns the Markdown files in a folder and below, without hidden ones; none if transcripts are next to them."""
    if any(folder.glob("*.jsonl")):
        return ()
    notes = [
        (path, info.st_size)
        for path in islice(_walk_notes(folder), MAX_NOTES + 1)
        if stat.S_ISREG((info := path.stat()).st_mode)
    ]
    if len(notes) > MAX_NOTES:
        raise TooLarge(f"{folder} has more than {amount(MAX_NOTES, 'note')}", hint="import its folders one by one")
    if sum(size for _, size in notes) > MAX_BYTES:
        raise TooLarge(
            f"the notes in {folder} are larger than {MAX_BYTES // 1_000_000} MB", hint="import its folders one by one"
        )
    return tuple(path for path, _ in notes)


def _walk_notes(folder: Path) -> Iterator[Path]:
    for directory, names, files in os.walk(folder):
        names[:] = sorted(name for name in names if not name.startswith("."))
        yield from (Path(directory, name) for name in sorted(files) if name.endswith(".md") and name[0] != ".")
