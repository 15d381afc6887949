"""A store on a real file for each test, and the smallest values to put into it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from csmd.conversation import Event, Project, StoredTurn, Turn
from csmd.knowledge import Memory, Provenance, Statement
from csmd.store.core import Store
from csmd.text import tokens

NOW = "2026-01-01T00:00:00.000Z"
KEY = b"k" * 32


class Given:
    """Values with everything filled in but what a test is about; `at` counts seconds of one day."""

    now = NOW

    def at(self, second: float) -> str:
        return f"2026-01-01T{int(second) // 3600:02}:{int(second) // 60 % 60:02}:{second % 60:06.3f}Z"

    def hash(self, said: str) -> str:
        return tokens.keyed_hash(said, KEY)

    def turn(self, uuid: str, said: str, *, session: str = "s1", second: float = 0, **more: Any) -> Turn:
        values = {"kind": "user", "at": self.at(second), **more}
        return Turn(uuid=uuid, session_id=session, text=said, **values)

    def event(self, ident: str, said: str = "", *, session: str = "s1", second: float = 0, **more: Any) -> Event:
        values = {"name": "prompt", "payload": ident, **more}
        return Event(id=ident, host="claude", session_id=session, text=said, at=self.at(second), **values)

    def project(self, name: str = "shop") -> Project:
        return Project(key=f"key-{name}", root=f"/home/me/{name}", name=name, kind="path")

    def statement(self, said: str, **more: Any) -> Statement:
        values = {"gate": "behavioral", "category": "preference", "confidence": 0.8, "authority": "user", **more}
        return Statement(text=said, **values)

    def stored(self, seq: int, project: int, *, uuid: str = "u", second: float = 0) -> StoredTurn:
        return StoredTurn(
            seq=seq,
            uuid=uuid,
            session_id="s1",
            project_seq=project,
            kind="user",
            text="",
            at=self.at(second),
            ordinal=1,
        )

    def memory(
        self, ident: str, said: str, *, uuids: tuple[str, ...] = ("u1",), project: int = 0, **more: Any
    ) -> Memory:
        values: dict[str, Any] = {
            "gate": "behavioral", "category": "preference", "type": "preference", "tier": "daily", "decay": "durable",
            "authority": "user", "origin": "stated", "confidence": 0.8, "scope": "user", "session_id": "s1",
            "created_at": NOW, "confirmed_at": NOW, "hot_until": 3, "warm_until": 30, "archive_at": 90,
            "provenance": tuple(Provenance(uuid=uuid, session_id="s1", at=NOW) for uuid in uuids),
            **more,
        }  # fmt: skip
        return Memory(id=ident, text=said, project_seq=project, **values)


@pytest.fixture(scope="session")
def given() -> Given:
    return Given()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "csmd.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    made = Store(path, now=NOW)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        if thread.name == "csmd-deadline":
            thread.join(5)
    left = {thread.name for thread in set(threading.enumerate()) - before if thread.name.startswith("csmd-")}
    assert not left, f"threads of the store are left: {left}"
