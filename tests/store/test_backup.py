"""A backup is the database of one moment, whole, private and looked at, or it is not there."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from csmd.errors import BadInput, Damaged, SchemaTooNew, StoreError
from csmd.store import activity, backup, sqlite
from csmd.store.core import Store
from csmd.store.integrity import check_database


def grow(store: Store, pages: int = 1) -> None:
    """Two counters that are equal at every moment, and something large."""

    def write(rows: Any) -> None:
        activity.increment_counters(rows, [("one", 1), ("other", 1)])
        rows.run("insert into meta (key, value) values (lower(hex(randomblob(8))), zeroblob(:size))", size=pages * 4096)

    store.write(write)


def counters(path: Path) -> dict[str, int]:
    with sqlite.open_rows(path, readonly=True) as rows:
        return activity.read_counters(rows)


@pytest.mark.invariant("A backup is of one moment; a restore keeps forgotten what is forgotten")
def test_a_copy_made_while_others_write_is_of_one_moment(store: Store, path: Path, tmp_path: Path) -> None:
    grow(store, pages=3000)
    stop = threading.Event()

    def keep_writing() -> None:
        while not stop.is_set():
            grow(store)
            store.checkpoint()

    writing = threading.Thread(target=keep_writing)
    writing.start()
    try:
        made = [backup.make_backup(path, tmp_path / f"{number}.db") for number in range(3)]
    finally:
        stop.set()
        writing.join(30)
    for copy in made:
        found = counters(copy.path)
        assert found["one"] == found["other"] > 0
        assert copy.path.stat().st_mode & 0o777 == 0o600 and copy.bytes == copy.path.stat().st_size
        Store(copy.path, now="").close()
    assert store.write(check_database) == []


def test_a_copy_is_one_file_and_nothing_unfinished_is_left(store: Store, path: Path) -> None:
    folder = backup.get_backup_directory(path)
    made = backup.make_backup(path, backup.make_backup_path(path, now="2026-05-04T03:02:01.000Z"))
    assert [file.name for file in folder.iterdir()] == [
        "csmd-20260504T030201Z.db"
    ] and folder.stat().st_mode & 0o777 == 0o700
    assert backup.parse_time_in_name(made.path).isoformat() == "2026-05-04T03:02:01+00:00"  # type: ignore[union-attr]
    (folder / f"{backup.UNFINISHED}of-one-that-was-killed").write_bytes(b"half")
    (folder / "mine.txt").write_text("not csmd's")
    with pytest.raises(StoreError, match="stopping"):
        backup.make_backup(path, backup.make_backup_path(path, now="2027"), stop=lambda: True)
    with pytest.raises(StoreError, match="nowhere"):
        backup.make_backup(path, path.parent / "nowhere" / "a.db")
    assert sorted(file.name for file in folder.iterdir()) == ["csmd-20260504T030201Z.db", "mine.txt"]


def test_the_oldest_go_and_nothing_else_does(path: Path) -> None:
    folder = backup.get_backup_directory(path)
    folder.mkdir()
    for day in range(1, 8):
        (folder / f"csmd-2026010{day}T000000Z.db").touch()
    others = ["csmd-2026.db", "csmd.db", "notes.txt", "csmd-20260101T000000Z.db.old"]
    for name in others:
        (folder / name).touch()
    assert backup.delete_old_backups(path, keep=3) == 4
    assert backup.delete_old_backups(path, keep=0) == 2, "the newest stays whatever is chosen"
    assert sorted(file.name for file in folder.iterdir()) == sorted([*others, "csmd-20260107T000000Z.db"])


def test_of_several_the_newest_sound_one_is_taken(store: Store, path: Path) -> None:
    grow(store)
    for year in ("2026", "2027", "2028"):
        backup.make_backup(path, backup.make_backup_path(path, now=f"{year}-01-01T00:00:00.000Z"))
    newest, middle, _ = backup.list_backups(path)
    newest.write_bytes(newest.read_bytes()[:9000])
    assert backup.find_newest_sound(path) == middle
    shutil.rmtree(backup.get_backup_directory(path))
    assert backup.find_newest_sound(path) is None


@pytest.mark.parametrize(
    ("content", "error"),
    [(b"", BadInput), (b"a letter, not a database" * 400, Damaged), (None, BadInput)],
    ids=["empty", "a letter", "missing"],
)
def test_what_is_no_copy_is_told_apart(path: Path, content: bytes | None, error: type[Exception]) -> None:
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(error):
        backup.examine(path)


def test_a_copy_of_a_newer_csmd_is_told_apart(store: Store, path: Path, tmp_path: Path) -> None:
    store.write(lambda rows: rows.run("insert into migrations (name, applied_at) values ('9999_later', '')"))
    with pytest.raises(SchemaTooNew):
        backup.make_backup(path, tmp_path / "copy.db")
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith((backup.UNFINISHED, "copy"))] == []


def test_where_a_database_was_none_is_begun(store: Store, path: Path) -> None:
    backup.make_backup(path, backup.make_backup_path(path, now="2026-01-01T00:00:00.000Z"))
    store.close()
    path.unlink()
    with pytest.raises(Damaged, match="is gone"):
        Store(path, now="")
    path.touch()
    with pytest.raises(Damaged, match="is empty"):
        Store(path, now="")
    shutil.rmtree(backup.get_backup_directory(path))
    Store(path, now="").close()
