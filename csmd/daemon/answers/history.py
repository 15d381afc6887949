"""What became of a belief: what superseded it, when, why and by whose word, and how else it changed."""

from __future__ import annotations

from typing import Any

from csmd.model import Memory
from csmd.recall import stage as recall
from csmd.store import beliefs, memories
from csmd.store.sqlite import Rows


def of(rows: Rows, memory: Memory, *, asking: str) -> dict[str, Any]:
    """`superseded`: by what, when and why, empty where it holds; `changes`: all that happened to it, in order."""
    standing, new = beliefs.standing(rows, memory.id), memories.by_id(rows, memory.superseded_by)
    superseded: dict[str, Any] = {}
    if new is not None and recall.is_seen(rows, new.project_seq, asking=asking):
        superseded = {"id": new.id, "text": new.text, "at": "", "reason": "", "decided_by": ""}
        if standing is not None:
            superseded |= {"at": standing.at, "reason": standing.reason, "decided_by": standing.by}
    return {
        "superseded": superseded,
        "changes": [
            {"change": row.change, "reason": row.reason, "by": row.by, "at": row.at, "undone_at": row.undone_at}
            for row in beliefs.changes_of(rows, memory.id)
        ],
    }
