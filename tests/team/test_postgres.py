"""The server's rows: who sees and who writes what, and what a server must have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from team_server import MEMBERS, TeamServer, add_vector

from csmd.errors import StoreError
from csmd.team import postgres
from csmd.team.postgres import ServerRows

Rows = dict[str, ServerRows]
READABLE = "select name from projects order by name"


@pytest.fixture
def rows(team: TeamServer) -> Iterator[Rows]:
    """A connection of each member; ann has made the tables."""
    with ExitStack() as open_ones:
        found = {role: open_ones.enter_context(postgres.open_connection(team.url(role))) for role in MEMBERS}
        for role in MEMBERS:
            assert postgres.prepare(found[role]) == (role == "ann")
        yield found


def put(rows: ServerRows, project: int, ident: str, text: str = "The port is 8443") -> int:
    about = dict.fromkeys(
        ("gate", "category", "type", "tier", "decay", "authority", "origin", "scope", "session_id", "created_at", "confirmed_at"), ""
    )  # fmt: skip
    return rows.insert_keyed("memories", id=ident, project_seq=project, text=text, confidence=0.5, **about)


@pytest.mark.invariant(
    "Nobody reads a colleague's project on a team's server but its readers, or writes as somebody else"
)
def test_a_project_is_read_by_its_readers_alone_with_all_that_hangs_on_it(rows: Rows) -> None:
    made = {}
    for name, readers in (("open", None), ("private", []), ("with bob", ["bob"])):
        made[name] = rows["ann"].insert_keyed("projects", name=name, readers=readers)
        seq = put(rows["ann"], made[name], f"m-{name}")
        for table, values in {
            "provenance": {"uuid": "u", "session_id": "s", "at": "", "role": "states"}, "scenes": {"uuid": "u", "text": "at main.py"},
            "symptoms": {"uuid": "u", "at": "", "text": "it hangs"}, "links": None,
        }.items():  # fmt: skip
            if values is None:
                other = put(rows["ann"], made[name], f"n-{name}")
                rows["ann"].insert("links", from_seq=seq, to_seq=other, relationship="r", weight=1.0, created_at="")
            else:
                rows["ann"].insert(table, memory_seq=seq, **values)
        add_vector(rows["ann"], "m", seq, 0, 9, b"\x01\x02")
        postgres.delete_memory(rows["ann"], f"n-{name}") or pytest.fail("it was there")
        session = rows["ann"].insert_keyed("sessions", id=f"s-{name}", project_seq=made[name])
        digest = {
            "version": 1,
            "why": "",
            "upto": 1,
            "at": "",
            "text": "port",
            "outcome": "",
            "prompts": 1,
            "calls": 1,
            "tokens": 1,
        }
        rows["ann"].insert("digests", session_seq=session, **digest)
    seen = {"ann": ["open", "private", "with bob"], "bob": ["open", "with bob"], "cyd": ["open"]}
    for role, names in seen.items():
        assert rows[role].column(READABLE) == names
        for table in ("memories", "provenance", "scenes", "symptoms", "vectors", "gone", "sessions", "digests"):
            assert rows[role].number(f"select count(*) from {table}") == len(names), (role, table)
        assert len(postgres.text_hits(rows[role], "memory", ["port"], projects=None, limit=9)) == len(names)
        assert len(postgres.text_hits(rows[role], "session", ["port"], projects=None, limit=9)) == len(names)
        with rows[role].transaction(write=True):
            assert len(postgres.vector_hits(rows[role], "m", b"\x01\x02", projects=None, limit=9)) == len(names)


@pytest.mark.invariant(
    "Nobody reads a colleague's project on a team's server but its readers, or writes as somebody else"
)
def test_nobody_writes_into_a_colleagues_project_or_as_a_colleague(rows: Rows) -> None:
    project = rows["ann"].insert_keyed("projects", name="open")
    seq = put(rows["ann"], project, "m1")
    with pytest.raises(StoreError, match="row-level security"):
        put(rows["bob"], project, "m2")
    with pytest.raises(StoreError, match="row-level security"):
        rows["bob"].insert("projects", name="forged", author="ann")
    with pytest.raises(StoreError, match="row-level security"):
        rows["bob"].insert("scenes", memory_seq=seq, uuid="u", text="forged")
    assert rows["bob"].run("update memories set text = 'forged'") == 0
    assert rows["bob"].run("delete from memories") == 0 and rows["bob"].run("delete from projects") == 0
    assert not postgres.delete_memory(rows["bob"], "m1")
    own = rows["bob"].insert_keyed("projects", name="open")
    with pytest.raises(StoreError, match="row-level security"):
        rows["bob"].run("update projects set author = 'ann' where seq = :seq", seq=own)
    for sql in ("drop table memories", "alter table memories disable row level security", "set session authorization ann",
                "create table csmd.more (a int)", "update server set version = 9"):  # fmt: skip
        with pytest.raises(StoreError, match=r"must be owner|permission denied"):
            rows["bob"].run(sql)
    assert rows["ann"].column("select text from memories") == ["The port is 8443"]


def test_one_authors_rows_are_seen_alone_where_that_is_asked_for(rows: Rows) -> None:
    for role in ("ann", "bob"):
        put(rows[role], rows[role].insert_keyed("projects", name="shop"), "m1", f"said by {role}")
    with rows["cyd"].transaction(write=False):
        rows["cyd"].narrow("bob")
        assert rows["cyd"].column("select text from memories where id = 'm1'") == ["said by bob"]
    assert rows["cyd"].number("select count(*) from memories where id = 'm1'") == 2


def test_a_server_without_pgvector_and_one_of_a_newer_csmd_are_refused(team: TeamServer) -> None:
    with team.connected("postgres") as connection:
        connection.execute("drop extension vector")
    with postgres.open_connection(team.url("ann")) as rows:
        with pytest.raises(StoreError, match="no pgvector") as refused:
            postgres.prepare(rows)
        assert "create extension vector" in refused.value.hint
        with team.connected("postgres") as connection:
            connection.execute("create extension vector")
        assert postgres.prepare(rows)
        rows.run("update server set version = 99")
        with pytest.raises(StoreError, match="newer csmd"):
            postgres.prepare(rows)


def test_what_fails_says_nothing_of_the_values(rows: Rows) -> None:
    project = rows["ann"].insert_keyed("projects", name="shop")
    put(rows["ann"], project, "m1", "a secret thing")
    with pytest.raises(StoreError) as failed:
        put(rows["ann"], project, "m1", "a secret thing")
    assert "duplicate key" in failed.value.what and "secret" not in failed.value.what
    with (
        pytest.raises(StoreError, match="the team's server"),
        postgres.open_connection("postgresql://ann@/none?host=/nowhere"),
    ):
        pass


def test_the_places_for_embedding_models_are_few(rows: Rows) -> None:
    seq = put(rows["ann"], rows["ann"].insert_keyed("projects", name="shop"), "m1")
    for number in range(32):
        add_vector(rows["ann"], f"model {number}", seq, 0, 9, bytes([1, 255]))
    with pytest.raises(StoreError, match="no room"):
        add_vector(rows["ann"], "one more", seq, 0, 9, bytes([1, 2]))
    with rows["ann"].transaction(write=True):
        assert postgres.vector_hits(rows["ann"], "model 3", bytes([1, 254]), projects=None, limit=1) == [
            (seq, 0, 9, 1.0)
        ]
