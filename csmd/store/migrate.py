"""Forward-only migrations, each with its record in one transaction."""

from __future__ import annotations

import os
from pathlib import Path

from csmd.errors import Damaged, SchemaTooNew
from csmd.store import files
from csmd.store.sqlite import REPAIR_HINT, Rows

FOLDER = Path(__file__).parent / "migrations"
#: Added to the name of a copy that is not whole yet.
UNFINISHED = ".unfinished"


def available() -> list[tuple[str, str]]:
    """(name, SQL) of every migration, in order."""
    return [(path.stem, path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.sql"))]


def applied(rows: Rows) -> list[str]:
    """The names of the migrations that this database has had."""
    has_table = rows.value("select count(*) from sqlite_schema where type = 'table' and name = 'migrations'")
    return rows.column("select name from migrations order by name") if has_table else []


def is_of_csmd(rows: Rows) -> bool:
    """Whether a database is csmd's: blank, or with the first migration."""
    if not rows.value("select count(*) from sqlite_schema"):
        return True
    columns = {row[1] for row in rows.all("pragma table_info(migrations)")}
    return columns >= {"name", "applied_at"} and available()[0][0] in applied(rows)


def pending(rows: Rows) -> list[tuple[str, str]]:
    """What is still to be applied; SchemaTooNew when a newer csmd has been here, Damaged for another's database."""
    if not is_of_csmd(rows):
        raise Damaged("the file in the database's place is of another program", hint=REPAIR_HINT)
    done = applied(rows)
    names = [name for name, _ in available()]
    foreign = sorted(set(done) - set(names))
    if foreign:
        raise SchemaTooNew(
            f"the database has had the migration {foreign[-1]}, which this csmd does not know",
            hint="upgrade csmd, or restore the backup made before the upgrade",
        )
    return [(name, sql) for name, sql in available() if name not in done]


def _copy_to(rows: Rows, backup: Path) -> None:
    """Copies the database into one private file, whole on the disk before it takes the place of the previous copy."""
    unfinished = backup.with_name(f"{backup.name}{UNFINISHED}")
    unfinished.unlink(missing_ok=True)  # of a start that was killed
    # SQLite writes into an empty file that is there: so it is nobody else's to read at any time.
    os.close(os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    rows.run("vacuum into :path", path=str(unfinished))
    files.to_disk(unfinished)
    unfinished.replace(backup)
    files.to_disk(backup.parent)


def migrate(rows: Rows, *, now: str, backup: Path | None = None) -> list[str]:
    """Applies what is pending and returns its names; a database with data is copied to `backup` first."""
    todo = pending(rows)
    if todo and backup is not None and applied(rows):
        _copy_to(rows, backup)
    for name, sql in todo:
        with rows.transaction(write=True):
            rows.run("create table if not exists migrations (name text primary key, applied_at text not null)")
            rows.run(sql)
            rows.run("insert into migrations (name, applied_at) values (:name, :now)", name=name, now=now)
    return [name for name, _ in todo]
