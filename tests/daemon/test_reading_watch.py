"""Hints about transcripts from real file events: new, grown, moved, in new directories, in one that was made anew."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from machine import eventually

from csmd.daemon.transcript_watch import Watch

# watchdog registers a directory twice when it is made while its parent is walked, says so, and goes on.
pytestmark = pytest.mark.filterwarnings("ignore:Callback with id:RuntimeWarning")


@pytest.fixture
def hints() -> list[str]:
    return []


@pytest.fixture
def watch(hints: list[str]) -> Iterator[Watch]:
    made = Watch(hints.append, lambda path: None)
    yield made
    made.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "csmd-watch"]


def test_what_is_written_moved_or_new_is_hinted_at(watch: Watch, hints: list[str], tmp_path: Path) -> None:
    root = tmp_path / "projects"
    (root / "-p").mkdir(parents=True)
    old = root / "-p" / "old.jsonl"
    old.write_text("{}\n")
    watch.follow([root])
    assert (watch.roots, watch.trouble) == ([root], "")
    with old.open("a") as file:
        file.write("{}\n")
    eventually(lambda: str(old) in hints)
    (root / "-p" / "new.jsonl").write_text("{}\n")
    eventually(lambda: str(root / "-p" / "new.jsonl") in hints)
    outside = tmp_path / "outside.jsonl"
    outside.write_text("{}\n")
    outside.rename(root / "-p" / "moved.jsonl")
    eventually(lambda: str(root / "-p" / "moved.jsonl") in hints)
    (root / "-q" / "deep").mkdir(parents=True)
    deep = root / "-q" / "deep" / "agent.jsonl"

    def written() -> bool:
        with deep.open("a") as file:
            file.write("{}\n")
        return str(deep) in hints

    eventually(written)


def test_directories_that_are_missing_are_followed_once_they_are_there(
    watch: Watch, hints: list[str], tmp_path: Path
) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    first.mkdir()
    assert watch.follow([first, second]), "one is new"
    assert watch.roots == [first]
    second.mkdir()
    assert watch.follow([first, second])
    assert not watch.follow([first, second]), "none is new"
    assert watch.roots == [first, second]
    (second / "a.jsonl").write_text("{}\n")
    eventually(lambda: str(second / "a.jsonl") in hints)


def test_a_directory_that_was_removed_and_made_anew_is_watched_again(
    watch: Watch, hints: list[str], tmp_path: Path
) -> None:
    root = tmp_path / "projects"
    root.mkdir()
    watch.follow([root])
    root.rename(tmp_path / "away")
    watch.follow([])
    assert watch.roots == []
    root.mkdir()
    watch.follow([root])
    (root / "a.jsonl").write_text("{}\n")
    eventually(lambda: str(root / "a.jsonl") in hints)


def test_nothing_to_watch_needs_no_thread(watch: Watch, tmp_path: Path) -> None:
    before = threading.active_count()
    watch.follow([tmp_path / "missing"])
    assert (watch.roots, threading.active_count()) == ([], before)
