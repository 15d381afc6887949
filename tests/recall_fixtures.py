"""Memories, passages and ordinary talk as recall takes them. Not a test: found through tests/conftest.py."""

from __future__ import annotations

import json
from pathlib import Path

from csmd.capture import project_identity
from csmd.conversation import Project, Turn
from csmd.knowledge import Memory, Provenance
from csmd.recall.hybrid_search import ScoredStatement
from csmd.store import projects, turns
from csmd.store.core import Store
from csmd.store.passages import Passage
from csmd.store.sqlite import Rows
from csmd.text import tokens
from csmd.vocabulary import TurnKind

ORDINARY = Path(__file__).resolve().parent / "data" / "ordinary_sessions.jsonl"


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


def passage(body: str, number: int = 1, kind: TurnKind = "user", **changes: object) -> Passage:
    """What somebody said on a day of January, with what the test wants otherwise."""
    values: dict[str, object] = {
        "seq": number, "turn_seq": number, "session_seq": 1, "project_seq": 1, "uuid": f"{number:08d}-t", "kind": kind,
        "start": 0, "end": len(body), "text": body, "at": f"2026-01-{number % 28 + 1:02d}T00:00:00.000Z",
        "session_id": "s", "project": "/p/alpha", **changes,
    }  # fmt: skip
    return Passage(**values)  # type: ignore[arg-type]


def found(body: str, number: int = 1, *, score: float = 0.9, remembered: bool = False) -> ScoredStatement:
    """A statement that was found: a memory of these words, or what somebody said."""
    if remembered:
        return ScoredStatement(score=score, features={}, memory=memory(body, number))
    return ScoredStatement(score=score, features={}, passage=passage(body, number))


def ordinary(store: Store, root: str, *, sessions: int = 25, session: str = "o") -> None:
    """Ordinary talk of a project (tests/data/ordinary_sessions.jsonl): a word is rare or common only among others."""
    rows_of_talk = [json.loads(line) for line in ORDINARY.read_text(encoding="utf-8").splitlines()[:sessions]]

    def write(rows: Rows) -> None:
        place = project_identity.identify_directory(root)
        project = projects.ensure(rows, Project(key=place.key, root=root, name=place.name, kind="path"), now="")
        for number, talk in enumerate(rows_of_talk):
            for at, turn in enumerate(talk["turns"]):
                spoken = Turn(
                    uuid=f"{session}{number}-{at}", session_id=f"{session}{number}", kind=turn["role"], text=turn["text"],
                    at=f"2026-01-{number + 1:02d}T10:{at:02d}:00.000Z", cwd=root,
                )  # fmt: skip
                hashed = tokens.keyed_hash(f"{turn['text']} {spoken.uuid}", store.hash_key)
                turns.add_turn(rows, spoken, text_hash=hashed, host="claude", project=project, path="")

    store.write(write)
