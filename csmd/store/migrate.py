"""Forward-only migrations, each with its record in one transaction."""

from __future__ import annotations

import os
from pathlib import Path

import apsw

from csmd.errors import Damaged, SchemaTooNew, SchemaTooOld, StoreError
from csmd.store import files
from csmd.store.sqlite import REPAIR_HINT, Rows, open_rows

FOLDER = Path(__file__).parent / "migrations"
#: Upgrades a database whose latest migration is LAST_LEGACY_MIGRATION to the schema that the first file creates.
UPGRADE_FILE = "upgrade_0022.sql"
LAST_LEGACY_MIGRATION = "0022_graph_counts"
#: Added to the name of a copy that is not complete yet.
UNFINISHED_SUFFIX = ".unfinished"


def list_migrations() -> list[tuple[str, str]]:
    """Returns (name, SQL) of every migration, in order; the first creates the whole schema."""
    return [(path.stem, path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("[0-9]*.sql"))]


def list_applied(rows: Rows) -> list[str]:
    """Returns the names of the migrations that were applied to this database."""
    has_table = rows.value("select count(*) from sqlite_schema where type = 'table' and name = 'migrations'")
    return rows.column("select name from migrations order by name") if has_table else []


def is_csmd_database(rows: Rows) -> bool:
    """Whether a database is csmd's: blank, or with the migrations table and the first migration of any version."""
    if not rows.value("select count(*) from sqlite_schema"):
        return True
    columns = {row[1] for row in rows.all("pragma table_info(migrations)")}
    return columns >= {"name", "applied_at"} and not {list_migrations()[0][0], "0001_initial"}.isdisjoint(
        list_applied(rows)
    )


def find_pending(rows: Rows) -> list[tuple[str, str]]:
    """Returns the (name, SQL) to apply.

    Raises SchemaTooNew for a database of a newer csmd, SchemaTooOld for one that this version cannot upgrade, and
    Damaged for another program's.
    """
    if not is_csmd_database(rows):
        raise Damaged("the database file belongs to another program", hint=REPAIR_HINT)
    done, migrations = list_applied(rows), list_migrations()
    names = [name for name, _ in migrations]
    unknown = sorted(name for name in set(done).difference(names) if name > names[0])
    if unknown:
        raise SchemaTooNew(
            f"the database was migrated by a newer csmd ({unknown[-1]})",
            hint="upgrade csmd, or restore the backup made before the upgrade",
        )
    if done and names[0] not in done:
        if LAST_LEGACY_MIGRATION not in done:
            raise SchemaTooOld(
                f"{rows.connection.filename}: its latest migration is {done[-1]}, which is too old for this csmd",
                hint="run the csmd of commit 1975a6a7 once, which upgrades the database, then this one again",
            )
        migrations[0] = names[0], (FOLDER / UPGRADE_FILE).read_text(encoding="utf-8")
    return [(name, sql) for name, sql in migrations if name not in done]


def _copy_to(rows: Rows, backup: Path) -> None:
    """Copies the database into one private file, which replaces the previous copy when it is complete on the disk."""
    unfinished = backup.with_name(f"{backup.name}{UNFINISHED_SUFFIX}")
    unfinished.unlink(missing_ok=True)  # left by a start that was killed
    # SQLite fills an existing empty file, so the copy is never readable by others.
    os.close(os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    rows.run("vacuum into :path", path=str(unfinished))
    files.flush_to_disk(unfinished)
    unfinished.replace(backup)
    files.flush_to_disk(backup.parent)


def migrate(rows: Rows, *, now: str, backup: Path | None = None) -> list[str]:
    """Applies the pending migrations and returns their names; copies a database with data to `backup` first."""
    migrations = find_pending(rows)
    if migrations and backup is not None and list_applied(rows):
        _copy_to(rows, backup)
    for name, sql in migrations:
        with rows.transaction(write=True):
            rows.run("create table if not exists migrations (name text primary key, applied_at text not null)")
            rows.run(sql)
            rows.run("insert into migrations (name, applied_at) values (:name, :now)", name=name, now=now)
    return [name for name, _ in migrations]


def is_at_last_legacy_migration(rows: Rows) -> bool:
    """Whether a database has the last migration before the schema; False if that cannot be read."""
    try:
        return list_applied(rows)[-1:] == [LAST_LEGACY_MIGRATION]
    except StoreError:
        return False


def migrate_copy(copy: Path, *, now: str) -> bool:
    """Applies the pending migrations to a scratch copy; returns False if the copy is too damaged to migrate.

    Raises StoreError on a full disk, which is not damage.
    """
    try:
        with open_rows(copy, readonly=False) as rows:
            migrate(rows, now=now)
    except (apsw.Error, StoreError) as error:
        if isinstance(error.__cause__, apsw.FullError):
            raise
        return False
    return True
