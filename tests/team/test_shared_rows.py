"""What is sent is there once however often it is sent, and what is received misses nothing of concurrent senders."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
from team_server import MEMBERS, TeamServer

from csmd.store import memories, memory_links, topics
from csmd.team import postgres, shared_rows
from csmd.team.postgres import ServerRows

NOW = "2026-01-01T00:00:00.000Z"
SHARE = {"name": "example.org/shop", "workspace": "", "readers": None}


@pytest.fixture
def rows(team: TeamServer) -> Iterator[dict[str, ServerRows]]:
    with ExitStack() as open_ones:
        found = {role: open_ones.enter_context(postgres.open_connection(team.url(role))) for role in MEMBERS}
        postgres.prepare(found["ann"])
        yield found


def record(ident: str, text: str, **more: Any) -> dict[str, Any]:
    return {
        "id": ident, "text": text, "share": SHARE["name"], "gate": "epistemic", "category": "decision", "type": "concept",
        "tier": "durable", "decay": "durable", "authority": "user", "origin": "stated", "confidence": 0.9, "scope": "project",
        "session_id": "s1", "created_at": NOW, "confirmed_at": NOW, "used_at": "", "pinned": 0, "superseded_by": "",
        "days_left": {"hot_until": 5, "warm_until": None, "archive_at": 90},
        "sources": [("u1", "s1", NOW, "states"), ("u2", "s2", NOW, "confirms")], "tags": [("deploy", "person", 1.0)],
        "symptoms": [], "refutations": [], "scene": [("u1", "at main.py")], "edges": [], "vectors": [("m", 0, 9, "01ff")],
        "changes": [{"change": "pinned", "before": "", "after": "", "reason": "told", "by": "person", "at": NOW, "undone_at": ""}],
        **more,
    }  # fmt: skip


def send(rows: ServerRows, *records: dict[str, Any]) -> None:
    with rows.transaction(write=True):
        shared_rows.put_memories(rows, records, shared_rows.put_projects(rows, [SHARE], []))


def receive(
    rows: ServerRows, project: int, cursor: tuple[int, int], limit: int = 200
) -> tuple[list[Any], tuple[int, int]]:
    with rows.transaction(write=False):
        found = shared_rows.list_changes_since(rows, project, xid=cursor[0], item=cursor[1], limit=limit)
    return found, (found[-1]["xid"], found[-1]["item"]) if found else cursor


def test_what_is_sent_twice_is_there_once_and_as_it_was_sent_last(rows: dict[str, ServerRows]) -> None:
    edge = ("m2", "m1", "refines", 0.5, NOW)
    first, second = record("m1", "The port is 8080", edges=[edge]), record("m2", "Never on Fridays", edges=[edge])
    for _ in range(3):
        send(rows["ann"], first)
        send(rows["ann"], second)
    send(rows["ann"], {**first, "text": "The port is 8443", "sources": first["sources"][:1]})
    kept = memories.by_id(rows["ann"], "m1")
    assert kept is not None and (kept.text, kept.times, kept.version) == ("The port is 8443", 1, 4)
    assert [tag.name for tag in topics.topics_of_memories(rows["ann"], [kept.seq])[kept.seq]] == ["deploy"]
    assert len(memory_links.list_links(rows["ann"], "m1")) == 1, "an edge comes with either end and is one"
    counted = {
        table: rows["ann"].number(f"select count(*) from {table}")
        for table in ("memories", "belief_changes", "vectors", "scenes")
    }
    assert counted == {"memories": 2, "belief_changes": 2, "vectors": 2, "scenes": 2}
    (project,) = shared_rows.list_visible_projects(rows["bob"])
    found, _ = receive(rows["bob"], project["seq"], (0, 0))
    assert {change["id"]: change["record"]["text"] for change in found} == {
        "m1": "The port is 8443",
        "m2": "Never on Fridays",
    }
    assert found[0]["record"]["sources"] == [("u1", "s1", NOW, "states"), ("u2", "s2", NOW, "confirms")]
    assert found[0]["record"]["days_left"] == {"hot_until": 5, "warm_until": None, "archive_at": 90}


def test_a_text_that_postgresql_keeps_in_none_is_sent_without_what_stands_in_the_way(
    rows: dict[str, ServerRows],
) -> None:
    send(rows["ann"], record("m1", "a\0b \ud800 c"))
    assert rows["ann"].column("select text from memories") == ["a\ufffdb ? c"]


def test_what_a_colleague_no_longer_holds_comes_without_its_words(rows: dict[str, ServerRows]) -> None:
    send(
        rows["ann"],
        record("m1", "replaced soon"),
        record("m2", "deleted soon"),
        record("m3", "an assistant's", authority="assistant"),
    )
    (project,) = shared_rows.list_visible_projects(rows["bob"])
    found, cursor = receive(rows["bob"], project["seq"], (0, 0))
    assert [(change["id"], change["record"] is None) for change in found] == [
        ("m1", False),
        ("m2", False),
        ("m3", True),
    ]
    send(rows["ann"], record("m1", "replaced soon", superseded_by="m4"))
    with rows["ann"].transaction(write=True):
        assert postgres.delete_memory(rows["ann"], "m2")
    found, _ = receive(rows["bob"], project["seq"], cursor)
    assert [(change["id"], change["record"]) for change in found] == [("m1", None), ("m2", None)]


def test_a_memory_that_moves_to_another_project_leaves_the_first(rows: dict[str, ServerRows]) -> None:
    send(rows["ann"], record("m1", "moves"))
    (project,) = shared_rows.list_visible_projects(rows["bob"])
    _, cursor = receive(rows["bob"], project["seq"], (0, 0))
    with rows["ann"].transaction(write=True):
        made = shared_rows.put_projects(rows["ann"], [SHARE, {**SHARE, "name": "other"}], [])
        shared_rows.put_memories(rows["ann"], [record("m1", "moves", share="other")], made)
    found, _ = receive(rows["bob"], project["seq"], cursor)
    assert [(change["id"], change["record"]) for change in found] == [("m1", None)]
    moved, _ = receive(rows["bob"], made["other"], (0, 0))
    assert [change["id"] for change in moved] == ["m1"]


@pytest.mark.invariant("What colleagues send at the same time is received, all of it")
def test_what_commits_late_is_not_passed_by(rows: dict[str, ServerRows], team: TeamServer) -> None:
    send(rows["ann"], record("m0", "the first"))
    (project,) = shared_rows.list_visible_projects(rows["bob"])
    _, cursor = receive(rows["bob"], project["seq"], (0, 0))
    with postgres.open_connection(team.url("ann")) as slow:
        with slow.transaction(write=True):
            shared_rows.put_memories(slow, [record("m1", "slow")], {SHARE["name"]: project["seq"]})
            send(rows["ann"], record("m2", "quick"))
            found, cursor = receive(rows["bob"], project["seq"], cursor)
            assert found == [], "what is older than what is under way is not given out yet"
        found, cursor = receive(rows["bob"], project["seq"], cursor)
    assert [change["id"] for change in found] == ["m1", "m2"]
    assert receive(rows["bob"], project["seq"], cursor)[0] == []


@pytest.mark.invariant("What colleagues send at the same time is received, all of it")
def test_a_reader_among_many_writers_has_everything_in_the_end(rows: dict[str, ServerRows], team: TeamServer) -> None:
    send(rows["ann"], record("m", "the first"))
    (project,) = shared_rows.list_visible_projects(rows["bob"])
    seen: dict[str, str] = {}
    cursor = (0, 0)

    def write(number: int) -> None:
        chance = random.Random(number)
        with postgres.open_connection(team.url("ann")) as own:
            for at in range(12):
                with own.transaction(write=True):
                    for each in range(chance.randrange(1, 4)):
                        ident = f"m{number}-{chance.randrange(6)}"
                        shared_rows.put_memories(
                            own, [record(ident, f"{ident} {at} {each}")], {SHARE["name"]: project["seq"]}
                        )

    with ThreadPoolExecutor(4) as pool:
        writing = [pool.submit(write, number) for number in range(4)]
        while not all(one.done() for one in writing):
            found, cursor = receive(rows["bob"], project["seq"], cursor, limit=3)
            seen |= {change["id"]: change["record"]["text"] for change in found}
        for one in writing:
            one.result()
    while found := receive(rows["bob"], project["seq"], cursor)[0]:
        cursor = (found[-1]["xid"], found[-1]["item"])
        seen |= {change["id"]: change["record"]["text"] for change in found}
    assert seen == dict(rows["ann"].all("select id, text from memories"))


def test_a_search_adds_ranks_of_words_and_meaning_and_heeds_walls(rows: dict[str, ServerRows]) -> None:
    send(
        rows["ann"], record("m1", "The deploy is on Mondays", vectors=[("m", 0, 9, "0a00")]), record("m2", "Releases go out early", vectors=[("m", 0, 9, "0900")]),
        record("m3", "Tabs in Makefiles", vectors=[("m", 0, 9, "00f6")]), record("m4", "The deploy was on Fridays", superseded_by="m1"),
    )  # fmt: skip
    with rows["ann"].transaction(write=True):
        made = shared_rows.put_projects(rows["ann"], [{"name": "acme", "workspace": "acme", "readers": None}], [])
        shared_rows.put_memories(rows["ann"], [record("m5", "A deploy behind a wall", share="acme")], made)
        version = {"version": 1, "why": "end", "upto": 3, "at": NOW, "text": "goal: deploy", "outcome": "done", "prompts": 1, "calls": 2,
                   "tokens": 3, "items": [("goal", "deploy", "u1", "", 1)]}  # fmt: skip
        digest = {"id": "s1", "parent": "", "host": "claude", "last_at": NOW, "share": "acme", "versions": [version]}
        shared_rows.put_digest(rows["ann"], digest, made)

    def search(wall: str, vector: bytes = b"") -> list[tuple[str, str]]:
        with rows["bob"].transaction(write=True):
            found = shared_rows.search(rows["bob"], ["deploy"], workspace=wall, model="m", vector=vector, limit=10)
        assert all(hit["author"] == "ann" for hit in found)
        return [(hit["kind"], hit["id"]) for hit in found]

    assert search("") == [("memory", "m1")]
    assert search("", bytes([10, 0]))[:2] == [("memory", "m1"), ("memory", "m2")]
    assert sorted(search("acme")) == [("memory", "m1"), ("memory", "m5"), ("session", "s1")]
