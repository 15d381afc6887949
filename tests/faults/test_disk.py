"""A disk that is full or fails at any one of the things asked of it: what was acknowledged is there, who was not knows.

The short form takes a sample of the places; CSMD_TEST_FAULTS=all takes every one of each story.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from broken_disk import BrokenDisk, broken_disk

from csmd.conversation import Project, Turn
from csmd.errors import CsmdError, StoreError
from csmd.store import backup, projects, sqlite, turns, vectors
from csmd.store.core import Store
from csmd.store.integrity import check_database
from csmd.store.sqlite import Rows

NOW = "2026-01-01T00:00:00.000Z"
EVERY = os.environ.get("CSMD_TEST_FAULTS") == "all"
SAMPLE = 6


def say(number: int) -> Callable[[Rows], None]:
    """A write as capture and embedding make them: a turn, its place, its words and its vector."""

    def write(rows: Rows) -> None:
        project = projects.ensure(rows, Project(key="k", root="/p", name="p", kind="path"), now=NOW)
        model = vectors.ensure_model(rows, "m", 4, now=NOW)
        turn = Turn(uuid=f"u{number}", session_id="s", kind="user", text=f"word{number} " + "and more " * 300, at=NOW)
        turns.add_turn(rows, turn, text_hash=str(number), host="claude", project=project, path="")
        seq = int(rows.value("select max(seq) from turns"))
        vectors.add_vectors(rows, "passage", model, [(seq, project, 0, 5, b"abcd")], reached=seq)

    return write


class Story:
    """What a store is asked to do, and what it said it had done."""

    def __init__(self, path: Path, disk: BrokenDisk) -> None:
        self.path, self.disk = path, disk
        self.acknowledged: set[int] = set()
        self.copies: dict[Path, int] = {}
        self.refused = 0

    def attempt(self, work: Callable[[], Any]) -> bool:
        """Whether it was done; the only other answer is a StoreError."""
        try:
            work()
        except StoreError:
            self.refused += 1
            return False
        return True

    def write(self, store: Store, *numbers: int) -> None:
        """Writes that wait together."""
        futures = {number: store.submit(say(number)) for number in numbers}
        for number, future in futures.items():
            if self.attempt(lambda future=future: future.result(30)):  # type: ignore[misc]
                self.acknowledged.add(number)

    def tell(self) -> None:
        try:
            store = Store(self.path, now=NOW, vfs=self.disk.name)
        except StoreError:
            self.refused += 1
            return
        try:
            self.write(store, 1, 2, 3)
            self.attempt(lambda: store.checkpoint(truncate=True))
            self.write(store, 4)
            self.copy("one")
            self.write(store, 5, 6)
            self.attempt(store.checkpoint)
            # A write that frees pages, and the one that gives them back.
            self.attempt(lambda: store.write(lambda rows: rows.run("delete from counters")))
            self.write(store, 7)
        finally:
            store.close()
        self.attempt(self.vacuum)

    def vacuum(self) -> None:
        with sqlite.open_rows(self.path, readonly=False, vfs=self.disk.name) as rows:
            rows.run("vacuum")

    def copy(self, name: str) -> None:
        target, before = self.path.with_name(f"{name}.db"), len(self.acknowledged)
        if self.attempt(lambda: backup.make_backup(self.path, target, vfs=self.disk.name)):
            self.copies[target] = before


def check(story: Story) -> None:
    """What must hold when the disk is well again: sound, nothing acknowledged lost, copies whole, and it goes on."""
    if story.path.exists():
        store = Store(story.path, now=NOW)
        try:
            assert store.write(check_database) == []
            stored = {int(uuid[1:]) for (uuid,) in store.read(lambda rows: rows.all("select uuid from turns"))}
            assert story.acknowledged <= stored, "an acknowledged write is lost"
            store.write(say(99))
            assert store.write(check_database) == []
        finally:
            store.close()
    for copy, least in story.copies.items():
        assert backup.examine(copy)["turns"] >= least
    left = [path.name for path in story.path.parent.iterdir() if path.name.startswith(backup.UNFINISHED)]
    assert not left, left


@pytest.fixture(scope="module")
def total(tmp_path_factory: pytest.TempPathFactory) -> int:
    """At how many places the story can fail."""
    tmp_path = tmp_path_factory.mktemp("whole")
    with broken_disk() as disk:
        story = Story(tmp_path / "count" / "csmd.db", disk)
        story.path.parent.mkdir()
        story.tell()
        assert not story.refused and len(story.acknowledged) == 7 and story.copies
        check(story)
        assert {"open", "write", "sync", "truncate"} <= set(disk.by_name)
        return disk.asked


@pytest.mark.invariant("Wherever the disk fails, nothing acknowledged is lost and the database is sound")
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "lasting"])
@pytest.mark.parametrize("kind", ["full", "broken"])
def test_wherever_the_disk_fails_nothing_acknowledged_is_lost_and_the_database_is_sound(
    tmp_path: Path, total: int, kind: Any, lasting: bool
) -> None:
    chosen = (
        range(1, total + 1) if EVERY else sorted(random.Random(f"{kind}{lasting}").sample(range(1, total + 1), SAMPLE))
    )
    told = 0
    for at in chosen:
        with broken_disk() as disk:
            story = Story(tmp_path / f"{kind}{at}" / "csmd.db", disk)
            story.path.parent.mkdir()
            disk.fail(at, kind=kind, lasting=lasting)
            story.tell()
            disk.heal()
            told += story.refused
            try:
                check(story)
            except (AssertionError, CsmdError) as error:
                raise AssertionError(f"place {at} of {total}, {disk.by_name}: {error}") from error
    assert told, "the disk failed and nobody was told"
