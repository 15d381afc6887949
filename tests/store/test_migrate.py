"""Migrations go forward, whole or not at all; data is copied before, and a newer file is not touched."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from csmd.errors import SchemaTooNew, StoreError
from csmd.store import activity, backup, journal, memories, migrate, sqlite
from csmd.store.core import Store
from csmd.store.integrity import integrity
from csmd.store.sqlite import Rows

ADD_MOOD = "alter table memories add column mood text not null default 'calm';\ncreate index memories_by_mood on memories (mood);"


@pytest.fixture(autouse=True)
def nothing_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has every database migrated here, the new ones too."""
    monkeypatch.setattr(migrate, "migrate", migrate.migrate.__wrapped__)  # type: ignore[attr-defined]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the shipped migrations to which a test adds its own."""
    copied = tmp_path / "migrations"
    shutil.copytree(migrate.FOLDER, copied)
    monkeypatch.setattr(migrate, "FOLDER", copied)
    return copied


def names(store: Store) -> list[str]:
    return store.read(migrate.applied)


def with_a_memory(path: Path, given: Any) -> None:
    store = Store(path, now=given.now)
    store.write(lambda rows: memories.insert(rows, given.memory("m1", "use tabs"), text_hash="h"))
    store.close()


def test_a_blank_file_gets_everything_once_and_no_backup(path: Path) -> None:
    first = Store(path, now="2026")
    assert first.migrated == [name for name, _ in migrate.available()]
    first.close()
    again = Store(path, now="2027")
    assert again.migrated == []
    assert again.read(lambda rows: rows.all("select distinct applied_at from migrations")) == [("2026",)]
    again.close()
    assert [file.name for file in path.parent.iterdir()] == ["csmd.db"]


def test_an_older_file_with_data_is_copied_and_then_brought_forward(path: Path, folder: Path, given: Any) -> None:
    with_a_memory(path, given)
    (folder / "9001_mood.sql").write_text(ADD_MOOD)
    store = Store(path, now="2027")
    assert store.migrated == ["9001_mood"]
    assert store.read(lambda rows: rows.all("select id, mood from memories")) == [("m1", "calm")]
    assert store.write(integrity) == []
    store.close()
    backup = path.with_name("csmd.before-migration.db")
    assert backup.stat().st_mode & 0o777 == 0o600
    kept = Rows(sqlite.connect(backup, readonly=True))
    assert "9001_mood" not in migrate.applied(kept)
    assert [memory.text for memory in memories.list_memories(kept, projects=None)] == ["use tabs"]
    kept.connection.close()


def test_the_backup_can_be_put_back_and_used(path: Path, folder: Path, given: Any) -> None:
    with_a_memory(path, given)
    (folder / "9001_mood.sql").write_text(ADD_MOOD)
    Store(path, now="").close()
    (folder / "9001_mood.sql").unlink()
    path.with_name("csmd.before-migration.db").replace(path)
    store = Store(path, now="")
    assert store.migrated == []
    assert store.read(activity.counts)["memories"] == 1
    assert store.write(integrity) == []
    store.close()


@pytest.mark.invariant("A downgrade is refused with the name of the newest backup that fits")
def test_a_downgrade_is_refused_with_the_name_of_the_newest_copy_that_fits(
    path: Path, folder: Path, given: Any
) -> None:
    with_a_memory(path, given)
    daily = path.parent / "backups" / "csmd-20260101T000000Z.db"
    (folder / "9001_mood.sql").write_text(ADD_MOOD)
    Store(path, now="").close()
    copy = path.with_name("csmd.before-migration.db")
    newer = path.parent / "backups" / "csmd-20260102T000000Z.db"
    backup.make(path, newer)
    (folder / "9001_mood.sql").unlink()
    before = path.read_bytes()
    for there, hint in (
        (copy, f"csmd restore {copy}"),
        (daily, f"csmd restore {daily}"),
        (None, "no backup beside it"),
    ):
        if there == daily:
            copy.replace(daily)
        elif there is None:
            daily.unlink()
        with pytest.raises(SchemaTooNew, match="9001_mood") as refused:
            Store(path, now="")
        assert hint in f"{refused.value.what} {refused.value.hint}" and newer.name not in refused.value.hint
    assert path.read_bytes() == before


def test_an_older_backup_gives_way_to_the_newer(path: Path, folder: Path, given: Any) -> None:
    with_a_memory(path, given)
    path.with_name("csmd.before-migration.db").write_bytes(b"of an earlier upgrade")
    (folder / "9001_mood.sql").write_text(ADD_MOOD)
    Store(path, now="").close()
    assert path.with_name("csmd.before-migration.db").read_bytes().startswith(b"SQLite format 3")


def test_the_previous_copy_stays_until_the_new_one_is_whole(
    path: Path, folder: Path, given: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_a_memory(path, given)
    copy = path.with_name("csmd.before-migration.db")
    copy.write_bytes(b"of an earlier upgrade")
    (folder / "9001_mood.sql").write_text(ADD_MOOD)
    run = Rows.run

    def fail(rows: Rows, sql: str, **values: Any) -> int:
        if sql.startswith("vacuum into"):
            Path(values["path"]).write_bytes(b"half a copy")
            raise StoreError("the disk is full")
        return run(rows, sql, **values)

    monkeypatch.setattr(Rows, "run", fail)
    with pytest.raises(StoreError, match="full"):
        Store(path, now="")
    assert copy.read_bytes() == b"of an earlier upgrade"
    monkeypatch.undo()
    monkeypatch.setattr(migrate, "FOLDER", folder)
    Store(path, now="").close()
    assert copy.read_bytes().startswith(b"SQLite format 3")
    assert [file.name for file in path.parent.glob("csmd.before*")] == [copy.name]


@pytest.mark.invariant("A migration happens whole or not at all; a newer database is left alone")
def test_a_migration_that_fails_changes_nothing_and_is_done_at_the_next_start(
    path: Path, folder: Path, given: Any
) -> None:
    with_a_memory(path, given)
    (folder / "9001_fine.sql").write_text("create table fine (a text);")
    (folder / "9002_mood.sql").write_text(ADD_MOOD + "\ninsert into nowhere values (1);")
    before = threading.active_count()
    with pytest.raises(StoreError, match="nowhere"):
        Store(path, now="")
    assert threading.active_count() == before
    left = Rows(sqlite.connect(path, readonly=True))
    assert migrate.applied(left)[-1] == "9001_fine"
    assert "mood" not in [row[1] for row in left.all("pragma table_info(memories)")]
    left.connection.close()
    (folder / "9002_mood.sql").write_text(ADD_MOOD)
    store = Store(path, now="")
    assert store.migrated == ["9002_mood"]
    assert store.read(activity.counts)["memories"] == 1
    store.close()


@pytest.mark.invariant("A migration happens whole or not at all; a newer database is left alone")
def test_a_file_of_a_newer_csmd_is_refused_and_left_as_it_is(path: Path, folder: Path, given: Any) -> None:
    (folder / "9001_mood.sql").write_text(ADD_MOOD)
    with_a_memory(path, given)
    (folder / "9001_mood.sql").unlink()
    before = path.read_bytes()
    with pytest.raises(SchemaTooNew, match="9001_mood") as error:
        Store(path, now="")
    assert "upgrade csmd" in error.value.hint
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.glob("csmd*")] == ["csmd.db"]


def test_migrations_have_numbers_that_order_them() -> None:
    shipped = [name for name, _ in migrate.available()]
    assert shipped == sorted(shipped)
    assert [int(name.split("_")[0]) for name in shipped] == list(range(1, len(shipped) + 1))


def test_answers_and_dreams_from_before_the_journal_are_carried_over(path: Path, folder: Path, given: Any) -> None:
    (migration,) = folder.glob("*_journal.sql")
    sql = migration.read_text()
    migration.unlink()
    store = Store(path, now=given.now)

    def write(rows: Rows) -> None:
        for ident, was in (("a1", ""), ("a2", "rule"), ("a3", "open")):
            rows.insert("answers", id=ident, item="m1", answer="keep", made="m1", was=was, project_seq=0, at=given.now)
        rows.insert(
            "answer_befores", answer_seq=3, memory_id="m1", text="use tabs", state="{}", more="{}", version_after=4
        )
        rows.insert("dreams", id="d1", why="asked", state="done", begun_at=given.now)
        for kind in ("merge", "page"):
            rows.insert(
                "dream_changes", dream_seq=1, kind=kind, project_seq=0, reason="same", evidence="u1 u2", at=given.now
            )
        images = {"text": "a", "state": "{}", "more": "{}", "text_after": "b", "state_after": "{}", "more_after": "{}"}
        rows.insert("dream_rows", change_seq=1, item="m2", **images)
        rows.insert("dream_files", change_seq=2, path="memory/user.md", before="", after="x", was_there=0, is_there=1)

    store.write(write)
    store.close()
    migration.write_text(sql)
    store = Store(path, now="2027")
    last = store.read(lambda rows: journal.last_answer(rows, projects=None))
    assert last is not None and (last.id, last.by, last.kind, last.item, last.made) == (
        "a3",
        "person",
        "keep",
        "m1",
        "m1",
    )
    rule = store.read(lambda rows: journal.last_answer(rows, projects=None, ident="a2"))
    assert rule is not None and rule.by == "rule"
    kept = store.read(lambda rows: rows.all("select set_seq, item, text, state_after from changed_rows order by seq"))
    assert kept == [(3, "m1", "use tabs", '{"version": 4}'), (4, "m2", "a", "{}")]
    assert store.read(lambda rows: journal.action_counts(rows, 1)) == {"merge": 1, "page": 1}
    page = store.read(lambda rows: journal.file_history(rows, [1], "memory/user.md"))
    assert [(file.before, file.after) for file in page] == [(None, "x")]
    merge, _ = store.read(lambda rows: [journal.change_set(rows, seq) for seq in journal.actions(rows, 1)])
    assert (merge.by, merge.reason, merge.evidence, merge.id) == ("dream", "same", "u1 u2", "")
    store.close()
