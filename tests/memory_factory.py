"""Memories, statements and turns with everything filled in but what a test is about, and how they are stored."""

from __future__ import annotations

from typing import Any

from csmd.conversation import Project, Turn
from csmd.knowledge import Memory, Provenance, Statement
from csmd.memory import remember
from csmd.store import memories, projects, turns
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import tokens

NOW = "2026-03-01T10:00:00.000Z"


def memory(ident: str, text: str, **changes: object) -> Memory:
    """A memory that the user stated in session s1."""
    values: dict[str, object] = {
        "gate": "epistemic", "category": "decision", "type": "concept", "tier": "durable", "decay": "durable",
        "authority": "user", "origin": "stated", "confidence": 0.8, "scope": "project", "project_seq": 1,
        "session_id": "s1", "created_at": NOW, "confirmed_at": NOW, "hot_until": 9, "warm_until": 30, "archive_at": 90,
        "provenance": (Provenance(uuid=f"u-{ident}", session_id="s1", at=NOW),), **changes,
    }  # fmt: skip
    return Memory(id=ident, text=text, **values)  # type: ignore[arg-type]


def memory_in(rows: Rows, ident: str) -> Memory:
    """The memory of this id as it is stored."""
    stored = memories.by_id(rows, ident)
    assert stored is not None
    return stored


def memory_of(store: Store, ident: str) -> Memory:
    """The memory of this id as it is stored now."""
    return store.read(lambda rows: memory_in(rows, ident))


def key_of(rows: Rows) -> bytes:
    """The key of the store's hashes."""
    return bytes(rows.value("select value from meta where key = 'hash_key'"))


def project_in(rows: Rows, name: str = "alpha") -> int:
    """The row of a project of this name, below /p."""
    return projects.ensure(rows, Project(key=name, root=f"/p/{name}", name=name, kind="path"), now=NOW)


def state(
    rows: Rows, text: str, uuid: str, *, session: str = "s1", at: str = NOW, name: str = "alpha", origin: str = "stated",
    pinned: bool = False, **changes: Any,
) -> str:  # fmt: skip
    """Has somebody, the user if not told otherwise, state something in a project; the memory's id, "" for none."""
    values = {"gate": "epistemic", "category": "decision", "confidence": 0.8, "authority": "user", **changes}
    source = Provenance(uuid=uuid, session_id=session, at=at)
    statement, project = Statement(text=text, **values), project_in(rows, name)
    return remember.remember(rows, statement, source, project=project, origin=origin, key=key_of(rows), pinned=pinned)[
        0
    ]


def add_turn(rows: Rows, turn: Turn, *, project: int, path: str = "", directory: int = 0) -> None:
    """Stores a turn as a transcript of Claude Code brings it."""
    hashed = tokens.keyed_hash(turn.text, key_of(rows))
    turns.add_turn(rows, turn, text_hash=hashed, host="claude", project=project, directory=directory, path=path)
