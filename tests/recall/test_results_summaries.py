"""A session's summary is found by what was done in it, once for each session, and does not stand before what was said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from csmd.capture import project_identity
from csmd.model import Hit, Turn
from csmd.recall import results
from csmd.store import digests, projects, turns
from csmd.store.core import Store
from csmd.store.search import Narrow
from csmd.store.sqlite import Rows

NOW = "2026-03-01T10:00:00.000Z"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "csmd.db", now=NOW)
    yield opened
    opened.close()


def digested(store: Store, session: str, said: str, *told: tuple[str, tuple[tuple[str, str], ...]]) -> None:
    """A session of one turn with a digest for each of `told`: its text and (text, uuid) of what it was made of."""

    def write(rows: Rows) -> None:
        project = projects.ensure(rows, project_identity.identified("/p/shop"), now=NOW)
        turn = Turn(uuid=f"{session}-1", session_id=session, kind="user", text=said, at=NOW)
        turns.add_turn(rows, turn, text_hash=turn.uuid, host="claude", project=project, path="")
        seq = rows.value("select seq from sessions where id = :id", id=session)
        made = [
            SimpleNamespace(
                why="end", upto=1, at=NOW, text=text, outcome="", prompts=1, calls=0, tokens=0,
                items=[digests.ItemRow("goal", part, uuid, "", 1) for part, uuid in items],
            )
            for text, items in told
        ]  # fmt: skip
        digests.replace(rows, int(seq), made, turns=1)

    store.write(write)


def find(store: Store, query: str, kind: str, **narrow: str) -> list[Hit]:
    return store.read(
        lambda rows: results.find(
            rows, query, projects=[1, 0], kind=kind, limit=10, embed=None, within=Narrow(**narrow)
        )[0]
    )


def test_a_session_is_found_once_by_its_summary_with_the_turns_that_say_it(store: Store) -> None:
    first = ("Goal: mend the exporter\nChanged exporter.py", (("mend the exporter", "u1"),))
    last = ("Goal: mend the exporter\nAsked about kangaroos", (("mend it", "u1"), ("asked about kangaroos", "u2")))
    digested(store, "one", "hello", first, last)
    digested(store, "two", "hello again", ("Goal: paint the fence", (("paint the fence", "u3"),)))
    (hit,) = find(store, "exporter kangaroos", "session")
    assert (hit.id, hit.kind, hit.session_id, hit.project) == ("one", "session", "one", "/p/shop")
    assert "kangaroos" in hit.text and hit.source_uuids == ("u2", "u1")
    assert find(store, "giraffe", "session") == []
    for limits, found in (
        ({"since": NOW}, 1), ({"until": NOW}, 0), ({"session": "one"}, 1), ({"session": "two"}, 0), ({"gate": "epistemic"}, 0),
    ):  # fmt: skip
        assert len(find(store, "exporter kangaroos", "session", **limits)) == found, limits
    assert store.read(
        lambda rows: results.find(rows, "exporter", projects=[0], kind="session", limit=10, embed=None)[0]
    ) == []  # fmt: skip


def test_what_was_said_stands_before_the_summary_that_says_it_too(store: Store) -> None:
    digested(store, "one", "mend the exporter today", ("Goal: mend the exporter", (("mend the exporter", "one-1"),)))
    assert [hit.kind for hit in find(store, "mend exporter", "all")] == ["turn", "session"]
    assert [hit.kind for hit in find(store, "mend exporter", "turn")] == ["turn"]


def test_sessions_are_put_among_hits_whose_order_stays() -> None:
    def hit(ident: str, score: float, kind: str = "turn") -> Hit:
        return Hit(
            id=ident, kind=kind, text="", score=score, project="", session_id="", source_uuids=(), at=""  # type: ignore[arg-type]
        )  # fmt: skip

    hits = [hit("a", 0.5), hit("b", 0.9), hit("c", 0.1)]
    sessions = [hit("s", 0.7, "session"), hit("t", 0.3, "session"), hit("u", 0.05, "session")]
    assert [one.id for one in results._among(hits, sessions)] == ["s", "a", "b", "t", "c", "u"]
