"""Memories as recall's pure modules take them. Not a test: found through tests/conftest.py."""

from __future__ import annotations

from csmd.model import Memory, Provenance


def memory(body: str, number: int = 1, **changes: object) -> Memory:
    """A durable decision that the user stated on a day of January, with what the test wants otherwise."""
    at = f"2026-01-{number % 28 + 1:02d}T00:00:00.000Z"
    values: dict[str, object] = {
        "id": f"m{number:09d}", "text": body, "gate": "epistemic", "category": "decision", "type": "concept",
        "tier": "durable", "decay": "durable", "authority": "user", "origin": "stated", "confidence": 0.85,
        "scope": "project", "project_seq": 1, "session_id": "s", "created_at": at, "confirmed_at": at, "hot_until": 9,
        "warm_until": 9, "archive_at": 9, "provenance": (Provenance(uuid="u", session_id="s", at=""),), **changes,
    }  # fmt: skip
    return Memory(**values)  # type: ignore[arg-type]
