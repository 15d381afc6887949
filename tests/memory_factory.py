"""The smallest memory of a project, with everything filled in but what a test is about; and one as it is stored."""

from __future__ import annotations

from csmd.knowledge import Memory, Provenance
from csmd.store import memories
from csmd.store.core import Store
from csmd.store.sqlite import Rows

NOW = "2026-03-01T10:00:00.000Z"


def memory(ident: str, said: str, **changes: object) -> Memory:
    """A memory that the user stated in session s1."""
    values: dict[str, object] = {
        "gate": "epistemic", "category": "decision", "type": "concept", "tier": "durable", "decay": "durable",
        "authority": "user", "origin": "stated", "confidence": 0.8, "scope": "project", "project_seq": 1,
        "session_id": "s1", "created_at": NOW, "confirmed_at": NOW, "hot_until": 9, "warm_until": 30, "archive_at": 90,
        "provenance": (Provenance(uuid=f"u-{ident}", session_id="s1", at=NOW),), **changes,
    }  # fmt: skip
    return Memory(id=ident, text=said, **values)  # type: ignore[arg-type]


def memory_in(rows: Rows, ident: str) -> Memory:
    """The memory of this id as it is stored."""
    stored = memories.by_id(rows, ident)
    assert stored is not None
    return stored


def memory_of(store: Store, ident: str) -> Memory:
    """The memory of this id as it is stored now."""
    return store.read(lambda rows: memory_in(rows, ident))
