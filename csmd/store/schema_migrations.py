"""Forward-only migrations, each with its record in one transaction."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import apsw

from csmd.errors import Damaged, SchemaTooNew, SchemaTooOld, StoreError
from csmd.store import files
from csmd.store.sqlite import REPAIR_HINT, Rows, open_rows

FOLDER = Path(__file__).parent / "migrations"
#: Upgrades a database whose latest migration is LAST_LEGACY_MIGRATION to the schema that the first file creates.
UPGRADE_FILE = "upgrade_0022.sql"
FIRST_LEGACY_MIGRATION = "0001_initial"
LAST_LEGACY_MIGRATION = "0022_graph_counts"
#: Suffix of an incomplete copy.
UNFINISHED_SUFFIX = ".unfinished"


class Migration(NamedTuple):
    """A step of the schema; `name` sorts by its number."""

    name: str
    sql: str


def list_migrations() -> list[Migration]:
    """Returns every migration, in order; the first creates the whole schema."""
    return [Migration(path.stem, path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("[0-9]*.sql"))]


def list_applied(rows: Rows) -> list[str]:
    """Returns the names of the migrations that were applied to this database."""
    has_table = rows.value("select count(*) from sqlite_schema where type = 'table' and name = 'migrations'")
    return rows.column("select name from migrations order by name") if has_table else []


def is_csmd_database(rows: Rows) -> bool:
    """Whether a database is csmd's: blank, or with the migrations table and the first migration of any version."""
    if not rows.value("select count(*) from sqlite_schema"):
        return True
    columns = {row[1] for row in rows.all("pragma table_info(migrations)")}
    if not columns >= {"name", "applied_at"}:
        return False
    return not {list_migrations()[0].name, FIRST_LEGACY_MIGRATION}.isdisjoint(list_applied(rows))


def find_pending(rows: Rows) -> list[Migration]:
    """Returns the migrations that are not yet applied.

    Raises SchemaTooNew for the database of a newer csmd, SchemaTooOld for one that this version cannot upgrade, and
    Damaged if the file belongs to another program.
    """
    if not is_csmd_database(rows):
        raise Damaged("the database file belongs to another program", hint=REPAIR_HINT)
    applied = list_applied(rows)
    migrations = list_migrations()
    names = [migration.name for migration in migrations]
    unknown = sorted(name for name in set(applied).difference(names) if name > names[0])
    if unknown:
        raise SchemaTooNew(
            f"the database was migrated by a newer csmd ({unknown[-1]})",
            hint="upgrade csmd, or restore the backup made before the upgrade",
        )
    if applied and names[0] not in applied:
        if LAST_LEGACY_MIGRATION not in applied:
            raise SchemaTooOld(
                f"{rows.connection.filename}: its latest migration is {applied[-1]}, which is too old for this csmd",
                hint="run csmd at commit 1975a6a7 on it once, then this version",
            )
        migrations[0] = Migration(names[0], (FOLDER / UPGRADE_FILE).read_text(encoding="utf-8"))
    return [migration for migration in migrations if migration.name not in applied]


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
    return [migration.name for migration in migrations]


def is_at_last_legacy_migration(rows: Rows) -> bool:
    """Whether the last applied migration is LAST_LEGACY_MIGRATION; False if it cannot be read."""
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
