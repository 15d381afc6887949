"""The smallest memory of a project, with everything filled in but what a test is about."""

from __future__ import annotations

from csmd.values import Memory, Provenance

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
