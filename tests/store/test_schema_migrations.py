"""Migrations go forward, whole or not at all; data is copied before, and a newer file is not touched."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from csmd.errors import SchemaTooNew, SchemaTooOld, StoreError
from csmd.store import (
    activity,
    backup,
    events,
    journal,
    memories,
    recovery,
    schema_migrations,
    speaker_reviews,
    sqlite,
    tampered_transcripts,
    topics,
    turns,
)
from csmd.store.core import Store
from csmd.store.integrity import check_database, inspect
from csmd.store.sqlite import Rows

ADD_MOOD = "alter table memories add column mood text not null default 'calm';\ncreate index memories_by_mood on memories (mood);"


@pytest.fixture(autouse=True)
def nothing_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has every database migrated here, the new ones too."""
    monkeypatch.setattr(schema_migrations, "migrate", schema_migrations.migrate.__wrapped__)  # type: ignore[attr-defined]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the shipped migrations to which a test adds its own."""
    copied = tmp_path / "migrations"
    shutil.copytree(schema_migrations.FOLDER, copied)
    monkeypatch.setattr(schema_migrations, "FOLDER", copied)
    return copied


def names(store: Store) -> list[str]:
    return store.read(schema_migrations.list_applied)


def with_a_memory(path: Path, given: Any) -> None:
    store = Store(path, now=given.now)
    store.write(lambda rows: memories.insert(rows, given.memory("m1", "use tabs"), text_hash="h"))
    store.close()


def test_a_blank_file_gets_everything_once_and_no_backup(path: Path) -> None:
    first = Store(path, now="2026")
    assert first.migrated == [name for name, _ in schema_migrations.list_migrations()]
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
    assert store.write(check_database) == []
    store.close()
    backup = path.with_name("csmd.before-migration.db")
    assert backup.stat().st_mode & 0o777 == 0o600
    kept = Rows(sqlite.connect(backup, readonly=True))
    assert "9001_mood" not in schema_migrations.list_applied(kept)
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
    assert store.write(check_database) == []
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
    backup.make_backup(path, newer)
    (folder / "9001_mood.sql").unlink()
    before = path.read_bytes()
    for there, hint in (
        (copy, f"csmd restore {copy}"),
        (daily, f"csmd restore {daily}"),
        (None, "it has no backup"),
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
    monkeypatch.setattr(schema_migrations, "FOLDER", folder)
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
    assert schema_migrations.list_applied(left)[-1] == "9001_fine"
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
    shipped = [name for name, _ in schema_migrations.list_migrations()]
    assert shipped == sorted(shipped)
    first = int(shipped[0].split("_")[0])
    assert [int(name.split("_")[0]) for name in shipped] == list(range(first, first + len(shipped)))


def renamed_migrations(path: Path, *names: str) -> None:
    """Records the migrations of an earlier csmd in a database."""
    connection = sqlite.connect(path, readonly=False)
    connection.execute("delete from migrations")
    connection.executemany("insert into migrations values (?, '2026')", [(name,) for name in names])
    connection.close()


#: Takes the schema back to the migration 0022, with a row in each table that went since.
BEFORE_SCHEMA = """
drop trigger graph_topic_insert;
drop index turns_of_speakers_due;
alter table turns drop column speaker_due;
create table speakers_due (turn_seq integer not null primary key references turns (seq) on delete cascade) without rowid;
insert into speakers_due select min(seq) from turns;
drop index sessions_unreported;
alter table sessions drop column unreported_at;
alter table sessions drop column unreported_after;
create table unheard (session_id text primary key, at text not null, after_event integer not null);
insert into unheard values ('s1', '2026', 7);
drop trigger topics_due_insert;
drop trigger topics_due_delete;
drop trigger topics_due_update;
alter table projects drop column topics_due;
create table topics_due (project_seq integer primary key, changes integer not null);
create trigger topics_due_insert after insert on memories begin
  insert into topics_due (project_seq, changes) values (new.project_seq, 1) on conflict do nothing;
end;
create trigger topics_due_delete after delete on memories begin delete from topics_due; end;
create trigger topics_due_update after update of text on memories begin delete from topics_due; end;
insert into topics_due values (0, 3);
alter table session_links drop column evidence;
create table session_link_evidence (
  link_seq integer not null references session_links (seq) on delete cascade, uuid text not null, primary key (link_seq, uuid)
) without rowid;
insert into session_links values (1, 0, (select min(seq) from sessions), 'continues', 'rule', 'about', 1.0);
insert into session_link_evidence values (1, 'u2'), (1, 'u1');
create table self_continuity (session_seq integer primary key references sessions (seq), host text not null);
create table tampered (name_hash text primary key, at text not null);
insert into tampered values ('hash of a name', '2026');
drop table changed_files;
drop table changed_rows;
drop table change_sets;
create table answers (
  seq integer primary key autoincrement, id text not null unique, item text not null, answer text not null, made text not null,
  was text not null, project_seq integer not null references projects (seq), at text not null, undone_at text not null default ''
);
create table answer_befores (
  seq integer primary key, answer_seq integer not null references answers (seq) on delete cascade, memory_id text not null,
  text text not null, state text not null, more text not null, version_after integer not null
);
create table dream_changes (
  seq integer primary key autoincrement, dream_seq integer not null references dreams (seq) on delete cascade,
  kind text not null, project_seq integer not null, reason text not null, evidence text not null, at text not null,
  undone_at text not null default ''
);
create table dream_rows (
  seq integer primary key autoincrement, change_seq integer not null references dream_changes (seq) on delete cascade,
  item text not null, text text not null, state text not null, more text not null, text_after text not null,
  state_after text not null, more_after text not null, kept text not null default ''
);
create table dream_files (
  seq integer primary key autoincrement, change_seq integer not null references dream_changes (seq) on delete cascade,
  path text not null, before text not null, after text not null, was_there integer not null, is_there integer not null,
  kept text not null default ''
);
insert into answers (id, item, answer, made, was, project_seq, at) values
  ('a1', 'm1', 'keep', 'm1', '', 0, '2026'), ('a2', 'm1', 'keep', 'm1', 'rule', 0, '2026'),
  ('a3', 'm1', 'keep', 'm1', 'open', 0, '2026');
insert into answer_befores (answer_seq, memory_id, text, state, more, version_after) values (3, 'm1', 'use tabs', '{}', '{}', 4);
insert into dreams (id, why, state, begun_at) values ('d1', 'asked', 'done', '2026');
insert into dream_changes (dream_seq, kind, project_seq, reason, evidence, at) values
  (1, 'merge', 0, 'same', 'u1 u2', '2026'), (1, 'page', 0, 'same', 'u1 u2', '2026');
insert into dream_rows (change_seq, item, text, state, more, text_after, state_after, more_after)
  values (1, 'm2', 'a', '{}', '{}', 'b', '{}', '{}');
insert into dream_files (change_seq, path, before, after, was_there, is_there) values (2, 'memory/user.md', '', 'x', 0, 1);
"""


def schema_of(rows: Rows) -> set[tuple[str, ...]]:
    """(kind, name, its columns) of every table, index and trigger."""
    return {
        (kind, name, *sorted(rows.column("select name from pragma_table_info(:name)", name=name)))
        for kind, name in rows.all("select type, name from sqlite_schema")
    }


def answers_and_dreams_are_in_the_journal(store: Store) -> None:
    """Checks the rows that BEFORE_SCHEMA put into tables that the journal replaced."""
    last = store.read(lambda rows: journal.find_last_answer(rows, projects=None))
    assert last is not None
    assert (last.id, last.by, last.kind, last.item, last.made) == ("a3", "person", "keep", "m1", "m1")
    rule = store.read(lambda rows: journal.find_last_answer(rows, projects=None, item_id="a2"))
    assert rule is not None and rule.by == "rule"
    kept = store.read(lambda rows: rows.all("select set_seq, item, text, state_after from changed_rows order by seq"))
    assert kept == [(3, "m1", "use tabs", '{"version": 4}'), (4, "m2", "a", "{}")]
    assert store.read(lambda rows: journal.count_actions(rows, 1)) == {"merge": 1, "page": 1}
    page = store.read(lambda rows: journal.list_file_history(rows, [1], "memory/user.md"))
    assert [(file.before, file.after) for file in page] == [(None, "x")]
    merge, _ = store.read(lambda rows: [journal.read_change_set(rows, seq) for seq in journal.list_actions(rows, 1)])
    assert (merge.by, merge.reason, merge.evidence, merge.id) == ("dream", "same", "u1 u2", "")


def take_back(path: Path, given: Any) -> set[tuple[str, ...]]:
    """Makes a database of the last migration before the schema; returns the schema that it had."""
    with_a_memory(path, given)
    connection = sqlite.connect(path, readonly=False)
    rows = Rows(connection)
    session = turns.ensure_session(rows, given.turn("u1", "hello"), host="claude", project=0, path="/s1.jsonl")
    turn = turns.insert_turn(rows, given.turn("u1", "hello"), session.seq, text_hash="h", project=0, source="hook")
    turns.list_turn(rows, session.seq, turn, given.turn("u1", "hello"))
    new = schema_of(rows)
    connection.execute(BEFORE_SCHEMA)
    connection.close()
    renamed_migrations(path, "0001_initial", schema_migrations.LAST_LEGACY_MIGRATION)
    return new


def test_a_database_at_the_last_migration_before_the_schema_goes_on_with_its_data(
    path: Path, tmp_path: Path, given: Any
) -> None:
    new = take_back(path, given)
    store = Store(path, now="2027")
    assert store.migrated == ["0023_schema", "0024_topic_projects"]
    assert store.read(activity.counts)["memories"] == 1
    assert store.read(schema_of) == new
    assert [prompt.uuid for prompt in store.read(lambda rows: speaker_reviews.list_speakers_due(rows, limit=9))] == [
        "u1"
    ]
    assert [(row.at, row.after_event) for row in store.read(events.list_unreported_sessions)] == [("2026", 7)]
    assert [due.changes for due in store.read(topics.list_due_projects)] == [3]
    assert store.read(lambda rows: rows.text("select evidence from session_links")) == "u1 u2"
    assert store.read(lambda rows: tampered_transcripts.is_tampered(rows, "hash of a name"))
    answers_and_dreams_are_in_the_journal(store)
    assert store.write(check_database) == []
    store.close()
    again = Store(path, now="2027")
    assert again.migrated == []
    again.close()


def test_a_repair_of_a_database_from_before_the_schema_keeps_its_answers(
    path: Path, tmp_path: Path, given: Any
) -> None:
    take_back(path, given)
    assert schema_migrations.migrate_copy(path, now="2027")
    readable = recovery.open_damaged(path, sound=None)
    assert readable is not None
    damaged, store = Rows(readable), Store(tmp_path / "new.db", now="2027")
    key = recovery.read_hash_key(damaged)
    store.write(lambda rows: recovery.rebuild(rows, damaged=damaged, copy=None, key=key, new_key=store.hash_key))
    readable.close()
    answers_and_dreams_are_in_the_journal(store)
    store.close()


def test_a_copy_that_is_too_damaged_to_be_brought_up_to_date_is_left_as_it_is(path: Path, given: Any) -> None:
    take_back(path, given)
    with sqlite.open_rows(path, readonly=False) as rows:
        rows.run("drop table answers")
    assert not schema_migrations.migrate_copy(path, now="2027")
    with sqlite.open_rows(path, readonly=True) as rows:
        assert schema_migrations.is_at_last_legacy_migration(rows)
        assert rows.number("select count(*) from dream_changes") > 0


@pytest.mark.invariant("A migration happens whole or not at all; a newer database is left alone")
def test_a_database_of_an_earlier_version_is_refused_and_left_as_it_is(path: Path, given: Any) -> None:
    with_a_memory(path, given)
    renamed_migrations(path, "0001_initial", "0021_passages_alone")
    before = path.read_bytes()
    with pytest.raises(SchemaTooOld, match="0021_passages_alone") as error:
        Store(path, now="")
    assert str(path) in error.value.what and "1975a6a7" in error.value.hint
    with pytest.raises(SchemaTooOld):
        inspect(path)
    assert path.read_bytes() == before
