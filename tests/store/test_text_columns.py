"""Every place that can hold what people said is named, so that forgetting and scanning miss none."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from csmd.cli import main
from csmd.paths import Paths
from csmd.store import cursors, files, text_columns, vector_tables, vectors
from csmd.store.core import Store
from csmd.store.sqlite import Rows


@dataclass(frozen=True)
class Shape:
    """The columns of a database by table, with their declared types; derived and internal tables apart."""

    columns: dict[str, dict[str, str]]
    derived: frozenset[str]


def shape(rows: Rows) -> Shape:
    tables = [name for (name,) in rows.all("select name from sqlite_schema where type in ('table', 'view')")]
    derived = {
        name for name in tables if name in text_columns.DERIVED_TABLES or name.startswith(text_columns.DERIVED_PREFIXES)
    }
    return Shape(
        columns={
            table: {row[1]: row[2].lower() for row in rows.all(f"pragma table_info({table})")}
            for table in tables
            if table not in derived and not table.startswith("sqlite_")
        },
        derived=frozenset(derived),
    )


def unnamed(found: Shape) -> set[tuple[str, str]]:
    """Columns that could hold text and are in neither table of holds.py."""
    could = {
        (table, name)
        for table, columns in found.columns.items()
        for name, kind in columns.items()
        if kind not in ("integer", "real")
    }
    return (
        could
        - text_columns.TEXT_COLUMNS
        - {(table, name) for table, names in text_columns.STRUCTURE.items() for name in names}
    )


@pytest.mark.invariant("Every column and file that holds text is named; log and quarantine hold nobody's words")
def test_every_column_that_could_hold_text_is_named(store: Store) -> None:
    store.write(lambda rows: vectors.ensure_model(rows, "m", 4, now=""))
    assert unnamed(store.read(shape)) == set()


def test_every_name_stands_for_a_column_that_exists(store: Store) -> None:
    store.write(lambda rows: vectors.ensure_model(rows, "m", 4, now=""))
    # As in a store of before passages.
    store.write(lambda rows: vector_tables.create_vector_tables(rows, 1, 4, kinds=vector_tables.OLD_KINDS))
    found = store.read(shape)
    named = text_columns.TEXT_COLUMNS | {
        (table, name) for table, names in text_columns.STRUCTURE.items() for name in names
    }
    assert {pair for pair in named if pair[1] not in found.columns.get(pair[0], {})} == set()
    assert found.derived >= text_columns.DERIVED_TABLES
    assert all(any(name.startswith(prefix) for name in found.derived) for prefix in text_columns.DERIVED_PREFIXES)
    assert not text_columns.TEXT_COLUMNS & {
        (table, name) for table, names in text_columns.STRUCTURE.items() for name in names
    }


def test_a_column_that_nobody_named_is_caught(store: Store) -> None:
    def plant(rows: Rows) -> set[tuple[str, str]]:
        rows.run("create table diary (seq integer primary key, entry text, note, rank real)")
        rows.run("alter table sessions add column mood text")
        return unnamed(shape(rows))

    assert store.write(plant) == {("diary", "entry"), ("diary", "note"), ("sessions", "mood")}


def matches(path: str, patterns: tuple[str, ...]) -> bool:
    for pattern in patterns:
        folder, deep, _ = pattern.partition("**")
        if path.startswith(folder) if deep else PurePosixPath(path).match(pattern):
            return True
    return False


@pytest.mark.invariant("Every column and file that holds text is named; log and quarantine hold nobody's words")
def test_every_file_of_the_home_is_named(tmp_path: Path) -> None:
    home = tmp_path / "home"
    paths = Paths(home=home, config_file=home / "config.yaml", log_dir=home / "log")
    for folder in (home, paths.run_dir, paths.spool, paths.quarantine, paths.hook_dir, paths.models, paths.log_dir):
        files.make_private(folder)
    store = Store(paths.database, now="")
    store.write(lambda rows: cursors.move_cursor(rows, "a", "b", 1))
    for path in (paths.endpoint, paths.lock, paths.instance, paths.stopped_mark, paths.hung_mark, paths.hook_script,
                 paths.install_record, paths.log_file, paths.config_file, paths.spool / "a.event", paths.spool / ".tmp-a",
                 paths.log_dir / "csmd.log.1", paths.models / "name" / "model.onnx"):  # fmt: skip
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_atomic(path, b"")
    files.quarantine(paths.quarantine, source="x", reason="y", data=b"z", now="")
    paths.database.with_suffix(".before-migration.db").touch()
    found = {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()}
    assert {
        name for name in found if not matches(name, text_columns.TEXT_FILES + text_columns.STRUCTURE_FILES)
    } == set()
    text = {name for name in found if matches(name, text_columns.TEXT_FILES)}
    assert {
        "csmd.db",
        "csmd.db-wal",
        "csmd.before-migration.db",
        "spool/a.event",
        "spool/.tmp-a",
        "install.json",
    } <= text
    assert not {name for name in text if matches(name, text_columns.STRUCTURE_FILES)}
    store.close()
    assert not matches("diary.txt", text_columns.TEXT_FILES + text_columns.STRUCTURE_FILES)


def test_every_file_of_a_home_that_was_really_used_is_named_once(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CSMD_HOME", str(machine.home))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(machine.assistant))
    machine.csmd("start")
    path = machine.conversation()
    machine.transcript("not JSON\n")
    machine.csmd("import", str(path))
    machine.event("UserPromptSubmit", prompt="hello", transcript_path=str(path))
    machine.csmd("session", "write-user", "mine", "kept in a file")
    machine.csmd("stop")
    machine.hook("UserPromptSubmit", prompt="while nobody listens")
    main._crash_report(ValueError("a bug"))
    found = {str(path.relative_to(machine.home)) for path in machine.home.rglob("*") if path.is_file()}
    text = {name for name in found if matches(name, text_columns.TEXT_FILES)}
    structure = {name for name in found if matches(name, text_columns.STRUCTURE_FILES)}
    assert found - text - structure == set()
    assert text & structure == set()
    assert {"csmd.db", "log/csmd.log", "log/crash.txt", "run/start.stderr"} <= text
    assert any(name.startswith("sessions/") for name in text)
    assert any(name.startswith("spool/") for name in text) and any(name.startswith("quarantine/") for name in text)
