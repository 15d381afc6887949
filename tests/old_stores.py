"""Stores as earlier versions left them: with their schema, filled by what this version still has in common with them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from csmd.store import migrate, projects, turns, vectors
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import tokens
from csmd.values import Project, Turn

NOW = "2026-01-01T00:00:00.000Z"


@contextmanager
def store_of(path: Path, folder: Path, migrations: int) -> Iterator[Store]:
    """A store with only the first migrations, which are copied to `folder`."""
    folder.mkdir()
    for file in sorted(migrate.FOLDER.glob("*.sql"))[:migrations]:
        shutil.copy(file, folder)
    present, migrate.FOLDER = migrate.FOLDER, folder
    try:
        store = Store(path, now=NOW)
        # This version writes it with every turn.
        store.write(lambda rows: rows.run("alter table turns add column mode text not null default ''"))
        yield store
        store.write(lambda rows: rows.run("alter table turns drop column mode"))
        store.close()
    finally:
        migrate.FOLDER = present


def before_passages(path: Path, folder: Path, said: str) -> Path:
    """A database without the migration of passages: six turns in each of two projects, with vectors, and a tool's call."""
    with store_of(path, folder, 4) as store:
        store.write(lambda rows: _fill(rows, said, store.hash_key))
    return path


def _fill(rows: Rows, said: str, key: bytes) -> None:
    model = vectors.ensure_model(rows, "m", 4, now=NOW)
    vectors.create_vector_tables(rows, model, 4, kinds=vectors.OLD_KINDS)
    for number in range(13):
        name = "shop" if number < 6 else "bank"
        project = projects.ensure(
            rows, Project(key=f"key-{name}", root=f"/home/me/{name}", name=name, kind="path"), now=NOW
        )
        turn = Turn(
            uuid=f"u{number}" if number < 12 else "t1",
            session_id=f"s-{name}",
            text=f"{said}\n\nNumber {number}." if number < 12 else "ls",
            kind="user" if number < 12 else "tool_call",
            at=f"2026-01-01T00:00:{number:02}.000Z",
        )
        text_hash = tokens.keyed_hash(turn.text, key)
        turns.add_turn(rows, turn, text_hash=text_hash, host="claude", project=project, path=f"/{turn.session_id}")
        if number < 12:
            seq = int(rows.value("select max(seq) from turns"))
            vectors.add(rows, "turn", model, [(seq, project, 0, 9, bytes([number, 1, 1, 1]))], reached=seq)
    # What this version makes for a new model, one of that time had not.
    rows.run("drop trigger vec_passage_1_delete")
    rows.run("drop table vec_passage_1")
