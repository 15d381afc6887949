"""A store of before passages is brought over in the background, and whoever syncs waits for it."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import old_stores
import pytest
from machine import Machine

from csmd.daemon.context import Task
from csmd.store import fulltext, passages, vectors

SAID = "The heron keeps its eggs in nest 7.\n\n## Wrens\nThey never sing at noon."


@pytest.fixture
def old_parts(machine: Machine, tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    machine.paths.database.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    old_stores.before_passages(machine.paths.database, tmp_path / "migrations", SAID)
    return request.getfixturevalue("parts")


def old_tables(parts: Any) -> list[str]:
    named = "select name from sqlite_schema where name like 'turns_fts%' or name like 'vec_turn%'"
    return [name for (name,) in parts.store.read(lambda rows: rows.all(named))]


def hits(parts: Any, kind: str) -> int:
    return len(parts.store.read(lambda rows: fulltext.text_hits(rows, kind, ["heron"], projects=None, limit=99)))


def settle(parts: Any) -> None:
    for number in range(500):
        if not parts.background.step(1000.0 + number):
            return
    raise AssertionError("the background thread finds no end")


def test_an_old_store_is_brought_over_by_the_background(old_parts: Any) -> None:
    assert old_tables(old_parts) and hits(old_parts, "turn") == 12 and hits(old_parts, "passage") == 0
    settle(old_parts)
    assert old_tables(old_parts) == [] and hits(old_parts, "turn") == 0 and hits(old_parts, "passage") == 12
    assert "passages" not in old_parts.background.context.trouble


@pytest.mark.invariant(
    "An older store gets its passages in small writes that a kill does not undo, when the disk has room; until then its turns are searched"
)
def test_without_room_nothing_begins_and_status_says_so_until_there_is(
    old_parts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(total=10**12, free=99_000_000))
    settle(old_parts)
    assert "free on the disk" in old_parts.background.context.trouble["passages"]
    assert old_parts.store.read(passages.progress)[0] == 0 and hits(old_parts, "turn") == 12
    monkeypatch.undo()
    old_parts.background.step(5000.0)
    settle(old_parts)
    assert "passages" not in old_parts.background.context.trouble and hits(old_parts, "passage") == 12


@pytest.mark.invariant(
    "An older store gets its passages in small writes that a kill does not undo, when the disk has room; until then its turns are searched"
)
def test_with_a_model_the_old_index_stays_until_every_passage_has_a_vector_and_sync_waits_for_both(
    old_parts: Any, tiny_model: Path
) -> None:
    job = old_parts.background.context.submit(Task(id="m", kind="model", path=str(tiny_model)))
    while job.state not in ("done", "failed"):
        old_parts.background.step(1.0)
    sync = old_parts.background.context.submit(Task(id="s", kind="sync"))
    while sync.state not in ("done", "failed"):
        if old_parts.store.read(lambda rows: vectors.count_waiting(rows, 2)):
            assert hits(old_parts, "turn") == 12
        old_parts.background.step(1.0)
    assert sync.state == "done" and sync.result["degraded"] == []
    assert hits(old_parts, "passage") == 12
    name = old_parts.background.context.model_name()
    model = old_parts.store.read(lambda rows: vectors.model_seq(rows, name))
    assert old_parts.store.read(lambda rows: passages.is_complete(rows, [1, 2], model=model))
    assert old_parts.store.read(lambda rows: vectors.count_waiting(rows, model)) == 0
    settle(old_parts)
    assert old_parts.store.read(fulltext.is_turn_index_dropped) and old_tables(old_parts) == []
