"""The one door to memory: new, confirmed, forgotten; authority as the path gave it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from csmd.believe import stage
from csmd.model import BriefItem, Project, Provenance, Statement
from csmd.store import context, journal, memories
from csmd.store.core import Store
from csmd.store.sqlite import Rows

NOW = "2026-03-01T10:00:00.000Z"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "csmd.db", now=NOW)
    yield opened
    opened.close()


def statement(text: str, **changes: object) -> Statement:
    values: dict[str, object] = {
        "text": text, "gate": "epistemic", "category": "decision", "confidence": 0.85, "authority": "user", **changes
    }  # fmt: skip
    return Statement(**values)  # type: ignore[arg-type]


def remember(store: Store, said: Statement, uuid: str, *, session: str = "s1", name: str = "alpha") -> tuple[str, bool]:
    def write(rows: Rows) -> tuple[str, bool]:
        project = journal.ensure_project(rows, Project(key=name, root=f"/p/{name}", name=name, kind="path"), now=NOW)
        source = Provenance(uuid=uuid, session_id=session, at=NOW)
        return stage.remember(rows, said, source, project=project, origin="stated", key=store.hash_key)

    return store.write(write)


def read(store: Store, ident: str):
    return store.read(lambda rows: memories.by_id(rows, ident))


def test_the_same_statement_from_another_turn_confirms_instead_of_doubling(store: Store) -> None:
    ident, new = remember(store, statement("Use Postgres for the job queue because of LISTEN/NOTIFY"), "u1")
    again, second = remember(
        store, statement("use postgres for the job queue, because of LISTEN/NOTIFY."), "u2", session="s2"
    )
    memory = read(store, ident)
    assert (new, second, again) == (True, False, ident)
    assert memory.confidence == pytest.approx(0.90)
    assert [(p.uuid, p.role) for p in memory.provenance] == [("u1", "states"), ("u2", "confirms")]


def test_the_same_turn_heard_twice_is_no_confirmation(store: Store) -> None:
    ident, _ = remember(store, statement("Use Postgres for the job queue"), "u1")
    remember(store, statement("Use Postgres for the job queue"), "u1")
    assert read(store, ident).confidence == pytest.approx(0.85)
    assert len(read(store, ident).provenance) == 1


def test_an_assistant_that_repeats_what_it_was_told_confirms_nothing(store: Store) -> None:
    ident, _ = remember(store, statement("Use Postgres for the job queue"), "u1")
    store.write(
        lambda rows: context.add_receipt(
            rows, receipt_id="r1", session_id="s2", event="session_start", project=1, at=NOW, tokens=9, text_hash="",
            items=[BriefItem(id=ident, score=1.0, reason="")],
        )
    )  # fmt: skip
    remember(store, statement("Use Postgres for the job queue", authority="assistant"), "u2", session="s2")
    assert read(store, ident).confidence == pytest.approx(0.85)
    remember(store, statement("Use Postgres for the job queue", authority="assistant"), "u3", session="s3")
    assert read(store, ident).confidence == pytest.approx(0.90)


def test_authority_rises_only_by_the_turn_that_has_it(store: Store) -> None:
    ident, _ = remember(store, statement("The staging host is only reachable over VPN", authority="assistant"), "u1")
    remember(store, statement("The staging host is only reachable over VPN", authority="assistant"), "u2")
    assert read(store, ident).authority == "assistant"
    remember(store, statement("The staging host is only reachable over VPN"), "u3")
    assert read(store, ident).authority == "user"


def test_what_the_user_made_csmd_forget_does_not_come_back(store: Store) -> None:
    said = statement("The admin password rotates on Mondays")
    ident, _ = remember(store, said, "u1")
    store.write(lambda rows: stage.forget(rows, memories.by_id(rows, ident), key=store.hash_key, now=NOW))
    assert read(store, ident) is None
    assert remember(store, said, "u2", session="s9") == ("", False)
    assert store.read(lambda rows: memories.listing(rows, projects=None)) == []


def test_projects_do_not_share_what_is_tied_to_one(store: Store) -> None:
    said = statement("we use `uv` here, not pip", gate="correction", category="convention")
    first, _ = remember(store, said, "u1", name="alpha")
    second, new = remember(store, said, "u2", name="beta")
    assert new
    assert first != second


def test_a_general_preference_is_one_memory_in_every_project(store: Store) -> None:
    said = statement("I prefer small commits", gate="behavioral", category="preference", confidence=0.9)
    first, _ = remember(store, said, "u1", name="alpha")
    again, new = remember(store, said, "u2", name="beta", session="s2")
    assert (again, new) == (first, False)
    assert (read(store, first).scope, read(store, first).project_seq) == ("user", 0)
