"""The database's pages: how many hold something, and how what was deleted leaves them."""

from __future__ import annotations

from pathlib import Path

import apsw

from csmd.store.sqlite import Rows


def live_bytes(rows: Rows) -> int:
    """Bytes of the database that hold something: what was freed inside the file is used again and does not count."""
    pages = rows.value("pragma page_count") - rows.value("pragma freelist_count")
    return int(pages * rows.value("pragma page_size"))


def full_text_tables(rows: Rows) -> list[str]:
    """The full-text indexes that the database has: that of turns goes once passages have taken its place."""
    found = rows.all("select name from sqlite_schema where type = 'table' and sql like '%using fts5%' order by name")
    return [str(name) for (name,) in found]


def secure_delete(rows: Rows) -> None:
    """Has what this connection deletes from now on overwritten with zeros, until the database is opened again."""
    rows.run("pragma secure_delete = on")


def cleanse(connection: apsw.Connection, folder: Path, *, patience_ms: int) -> bool:
    """Rewrites the whole database without what was deleted from it, and empties the write-ahead log.

    Full-text indexes are merged until no deleted word is left in them. The copy that SQLite makes meanwhile has no
    name and lies in `folder`. False when a reader kept the log from being emptied: ask again.
    """
    connection.set_busy_timeout(patience_ms)
    for table in full_text_tables(Rows(connection)):
        connection.execute(f"insert into {table} ({table}) values ('optimize')")  # noqa: S608
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
