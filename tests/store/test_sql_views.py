"""Questions in SQL: what they are told of each view, what they are refused, and that no statement gets around either."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd import vocabulary
from csmd.conversation import Project
from csmd.errors import BadInput, TooLarge
from csmd.extraction import digest
from csmd.store import projects, sql_views, topics, workspaces
from csmd.store.core import Store
from csmd.store.sql_views import Answer
from csmd.store.sqlite import Rows

NOW, LATER = "2026-03-01T10:00:00.000Z", "2026-03-02T10:00:00.000Z"
#: What is never left out of an answer by mistake and never in one by right: each row says where it was said.
OPEN, ACME, BOLT = "open", "acme", "bolt"
REFUSED = [
    line
    for line in (Path(__file__).parent.parent / "data" / "questions" / "refused.txt").read_text().splitlines()
    if line and not line.startswith("--")
]
#: A question that has an answer, and what that is to somebody in the open project.
ANSWERED: dict[str, list[tuple[Any, ...]]] = {
    "select id from memories order by id": [("m-open",), ("m-open-2",)],
    "select text from memories where category = 'decision' and superseded_by = ''": [("open: Redis holds the cache",)],
    "select category, count(*) from memories group by category order by 2 desc, 1": [("decision", 1), ("fact", 1)],
    "select m.text, t.text from memories m join sources s on s.memory = m.id join turns t on t.id = s.turn order by m.id": [
        ("open: Redis holds the cache", "open: use Redis"), ("open: the port is 1", "open: use Redis"),
    ],
    "select path, name, kind from projects": [("/w/open", "open", "git")],
    "select s.id, s.turns, s.input_tokens, s.output_tokens from sessions s where s.model like 'big%'": [("s-open", 2, 60, 5)],
    "select project, max(last_at) from sessions group by project": [("/w/open", NOW)],
    "select kind, count(*), sum(tokens) from turns group by kind order by kind": [("assistant", 1, 7), ("user", 1, 7)],
    "select text from turns where text glob '*Redis*' limit 1": [("open: use Redis",)],
    "select o.topic, count(*) from topics o group by o.topic": [("cache", 1)],
    "select from_memory, relationship, to_memory from links": [("m-open", "relates_to", "m-open-2")],
    "select session, outcome from digests where version = (select max(version) from digests)": [("s-open", "committed")],
    "select command, count(*) as seen, max(mended_at) from errors group by fingerprint": [("open make", 1, LATER)],
    "select event, memory, used from receipts order by memory": [("prompt", None, None), ("prompt", "m-open", 1)],
    "with recent as (select * from memories order by confirmed_at desc limit 1) select count(*) from recent": [(1,)],
    "with recursive n (i) as (select 1 union all select i + 1 from n where i < 4) select group_concat(i, '-') from n": [("1-2-3-4",)],
    "select id, rank() over (order by confidence desc) from memories order by 1": [("m-open", 1), ("m-open-2", 1)],
    "select date(created_at), round(avg(confidence), 1) from memories group by 1": [("2026-03-01", 0.8)],
    "select upper(substr(text, 1, 4)) from memories where id = 'm-open' -- a remark": [("OPEN",)],
    "select exists (select 1 from memories where pinned) as any_pinned;": [(0,)],
    "values (1), (2)": [(1,), (2,)],
    "select m.id from memories m left join receipts r on r.memory = m.id where r.memory is null": [("m-open-2",)],
    "select case when count(*) > 1 then 'several' else 'one' end from memories": [("several",)],
    "select 'a' intersect select 'a'": [("a",)],
}  # fmt: skip


@dataclass(frozen=True)
class Shelf:
    """A store's file, and what each asker sees of it."""

    path: Path
    places: dict[str, list[int] | None]

    def ask(self, statement: str, *, by: str = OPEN, limit: int = 50, seconds: float = 10.0) -> Answer:
        return sql_views.answer(self.path, statement, projects=self.places[by], limit=limit, seconds=seconds)


def fill(rows: Rows, name: str, *, other: str = "") -> None:
    """A project with a row or two in every table that the views read; what of it points to the project `other`."""
    seq = projects.ensure(rows, Project(key=f"k-{name}", root=f"/w/{name}", name=name, kind="git"), now=NOW)
    session = rows.insert_keyed(
        "sessions", id=f"s-{name}", parent=other and f"s-{other}", host="claude", project_seq=seq, cwd=f"/w/{name}", title=f"{name} title",
        model="big-1", started_at=NOW, last_at=NOW, turns=2,
    )  # fmt: skip
    rows.insert("usage", session_seq=session, message_id="a", input=10, output=5, cache_read=20, cache_write=30)
    said = []
    for ordinal, (kind, text) in enumerate((("user", "use Redis"), ("assistant", "done")), 1):
        said.append(
            rows.insert_keyed(
                "turns", uuid=f"u-{name}-{ordinal}", session_seq=session, project_seq=seq, kind=kind, text=f"{name}: {text}",
                text_hash="", at=NOW, tokens=7, source="transcript", searchable=1,
            )
        )  # fmt: skip
        rows.insert("session_turn", session_seq=session, ordinal=ordinal, turn_seq=said[-1])
    about: dict[str, Any] = {
        "text_hash": "", "gate": "epistemic", "type": "concept", "tier": "daily", "decay": "durable", "authority": "user",
        "origin": "stated", "confidence": 0.8, "scope": "project", "project_seq": seq, "created_at": NOW, "confirmed_at": NOW,
        "hot_until": 9, "warm_until": 30, "archive_at": 90,
    }  # fmt: skip
    first = rows.insert_keyed(
        "memories", id=f"m-{name}", text=f"{name}: Redis holds the cache", category="decision", session_id=f"s-{name}",
        superseded_by=other and f"m-{other}", **about,
    )  # fmt: skip
    second = rows.insert_keyed(
        "memories", id=f"m-{name}-2", text=f"{name}: the port is 1", category="fact", session_id=f"s-{other or name}", **about
    )  # fmt: skip
    for memory in (first, second):
        rows.insert("provenance", memory_seq=memory, uuid=f"u-{name}-1", session_id=f"s-{name}", at=NOW, role="states")
    rows.insert("links", from_seq=first, to_seq=second, relationship="relates_to", weight=0.5, created_at=NOW)
    topic = topics.ensure_topic(rows, seq, "cache")
    rows.insert("memory_topics", memory_seq=first, topic_seq=topic, by_whom="rule", weight=1.0)
    rows.insert("memory_topics", memory_seq=second, topic_seq=topic, by_whom="person", weight=0.0)
    rows.insert(
        "digests", session_seq=session, version=1, why="end", upto=2, at=NOW, text=f"{name}: the cache was built",
        outcome="committed", prompts=1, calls=0, tokens=14,
    )  # fmt: skip
    error = rows.insert_keyed(
        "errors", fingerprint=f"f-{name}", command=f"{name} make", exit_code=2, message=f"{name}: no rule"
    )
    rows.insert("error_seen", error_seq=error, turn_seq=said[1], session_seq=session, at=NOW)
    rows.insert(
        "error_fixes",
        error_seq=error,
        turn_seq=said[1],
        session_seq=session,
        uuid="x",
        at=LATER,
        files=f"{name}.py",
        text="",
    )
    told = rows.insert_keyed(
        "injections",
        id=f"r-{name}",
        session_id=f"s-{name}",
        event="prompt",
        project_seq=seq,
        at=NOW,
        tokens=9,
        text_hash="",
    )
    for memory_id, used in ((f"m-{name}", 1), (f"m-{other}" if other else "-", None)):
        rows.insert("injection_items", injection_seq=told, memory_id=memory_id, score=1.0, reason="bears", used=used)


def entangle(rows: Rows) -> None:
    """What stands beside what is behind the wall of bolt: rows of the open project that lead to it."""
    key = {name: rows.number("select seq from memories where id = :id", id=f"m-{name}") for name in (OPEN, BOLT)}
    for way in ((OPEN, BOLT), (BOLT, OPEN)):
        rows.insert(
            "links", from_seq=key[way[0]], to_seq=key[way[1]], relationship="caused", weight=1.0, created_at=NOW
        )
    rows.insert("provenance", memory_seq=key[OPEN], uuid="u-bolt-1", session_id="s-bolt", at=LATER, role="confirms")
    turn = rows.number("select seq from turns where uuid = 'u-bolt-2'")
    opened = rows.number("select seq from sessions where id = 's-open'")
    rows.insert("session_turn", session_seq=opened, ordinal=9, turn_seq=turn)
    error = rows.number("select seq from errors where fingerprint = 'f-open'")
    rows.insert("error_seen", error_seq=error, turn_seq=turn, session_seq=opened, at=LATER)
    rows.insert(
        "error_fixes", error_seq=error, turn_seq=turn, session_seq=opened, uuid="y", at=NOW, files="bolt.py", text=""
    )


def make_shelf(folder: Path, *, hidden: bool) -> Shelf:
    """Three projects, two behind walls; without the one that nobody here may see where not `hidden`."""
    folder.mkdir()
    store = Store(folder / "csmd.db", now=NOW)

    def write(rows: Rows) -> dict[str, list[int] | None]:
        walls = {name: workspaces.ensure(rows, name, now=NOW) for name in (ACME, BOLT)[: 2 if hidden else 1]}
        fill(rows, OPEN)
        fill(rows, ACME)
        if hidden:
            fill(rows, BOLT, other=ACME)
        for name, wall in walls.items():
            workspaces.join(rows, wall, rows.number("select seq from projects where root = :root", root=f"/w/{name}"))
        if hidden:
            entangle(rows)
        return {OPEN: projects.list_visible_projects(rows, inside=0)} | {
            name: projects.list_visible_projects(rows, inside=wall) for name, wall in walls.items()
        }

    places = store.write(write)
    store.close()
    return Shelf(path=store.path, places=places | {"owner": None})


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    return make_shelf(tmp_path_factory.mktemp("questions") / "all", hidden=True)


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    """The same without all that is behind the wall of bolt."""
    return make_shelf(tmp_path_factory.mktemp("questions") / "without", hidden=False)


@pytest.fixture(autouse=True)
def _is_left_alone(shelf: Shelf) -> Iterator[None]:
    """After every test the database is what it was, byte by byte."""
    before = content(shelf.path)
    yield
    assert content(shelf.path) == before


def content(path: Path) -> dict[str, str]:
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in path.parent.iterdir()
        if file.stat().st_size and not file.name.endswith("-shm")
    }


@pytest.mark.parametrize("statement", ANSWERED)
def test_a_question_is_answered(shelf: Shelf, statement: str) -> None:
    assert shelf.ask(statement).rows == ANSWERED[statement]


@pytest.mark.invariant("A question in SQL reads ten views and nothing else, within its walls and limits")
@pytest.mark.parametrize("statement", REFUSED)
def test_whatever_is_no_question_to_the_views_is_refused(shelf: Shelf, statement: str) -> None:
    with pytest.raises(BadInput) as refused:
        shelf.ask(statement, seconds=0.2)
    assert refused.value.what and refused.value.hint


def test_what_takes_too_long_or_too_much_says_so(shelf: Shelf) -> None:
    endless = "with recursive r (n) as (select 1 union all select n + 1 from r) select max(n) from r"
    with pytest.raises(TooLarge, match=r"longer than 0\.1 s"):
        shelf.ask(endless, seconds=0.1)
    with pytest.raises(TooLarge, match="more than 64 MB"):
        shelf.ask(endless.replace("max(n)", "count(distinct printf('%9999d', n))"), seconds=60.0)
    with pytest.raises(TooLarge, match="more than 1,000,000 bytes"):
        shelf.ask("select printf('%9999999d', 1)")
    with pytest.raises(TooLarge, match="at most 8,000 characters"):
        shelf.ask(f"select '{'a' * 8_000}'")


def test_of_a_long_answer_the_first_rows_and_the_beginning_of_each_value_are_given(shelf: Shelf) -> None:
    numbers = "with recursive n (i) as (select 1 union all select i + 1 from n where i < 900) "
    answer = shelf.ask(f"{numbers} select i from n", limit=100)
    assert answer.is_cut and [row[0] for row in answer.rows] == list(range(1, 101))
    assert not shelf.ask(f"{numbers} select i from n limit 100", limit=100).is_cut
    answer = shelf.ask(f"{numbers} select printf('%.*c', 9000, 'x') as x from n", limit=200)
    assert answer.is_cut and answer.columns == ("x",)
    assert {len(row[0]) for row in answer.rows} == {sql_views.MAX_VALUE_CHARACTERS}
    assert len(answer.rows) == sql_views.MAX_ANSWER_CHARACTERS // sql_views.MAX_VALUE_CHARACTERS


def test_an_answer_holds_nothing_that_json_does_not(shelf: Shelf) -> None:
    answer = shelf.ask("select cast('a' as blob), 9e999, null, 1.5, char(97, 0, 98)")
    assert answer.rows == [("x'61'", "inf", None, 1.5, "ab")]
    assert shelf.ask("select id, text from memories where 1 = 0").columns == ("id", "text")


def test_the_views_read_the_tables_that_are_named_and_no_other(shelf: Shelf) -> None:
    """So that the list of what a question may read is never longer than what it needs."""
    seen: set[str] = set()

    def note(operation: int, name: str | None, *_: Any) -> int:
        if operation == apsw.SQLITE_READ and name:
            seen.add(name)
        return int(apsw.SQLITE_OK)

    with sql_views._open(shelf.path, [0, 1]) as connection:
        connection.authorizer = note
        for view in sql_views.VIEWS:
            connection.execute(f"select * from {view.name}").fetchall()
    assert seen - sql_views.VIEW_NAMES == sql_views.VIEW_TABLES - sql_views.VIEW_NAMES


@pytest.mark.parametrize("view", sql_views.VIEWS, ids=lambda view: view.name)
def test_every_column_has_a_meaning_and_every_join_leads_somewhere(shelf: Shelf, view: sql_views.View) -> None:
    answer = shelf.ask(f"select * from {view.name}", by="owner")
    assert answer.columns == tuple(view.columns) and answer.rows, "a sample that says nothing"
    assert all(view.columns.values())
    of = {other.name: other for other in sql_views.VIEWS}
    for join in view.joins:
        (left, own), (right, key) = (side.split(".") for side in join.split(" = "))
        assert left == view.name and own in view.columns and key in of[right].columns
        shelf.ask(f"select count(*) from {left} a join {right} b on a.{own} = b.{key}")


def test_a_join_by_id_is_served_by_an_index_with_walls_and_without(shelf: Shelf) -> None:
    question = "select m.text from memories m where not exists (select 1 from receipts r where r.memory = m.id)"
    for places in shelf.places.values():
        with sql_views._open(shelf.path, places) as connection:
            plan = " ".join(str(row) for row in connection.execute(f"explain query plan {question}"))
        assert "injection_items_by_memory" in plan and "SCAN x" not in plan, plan


def test_the_meaning_of_a_column_names_every_word_that_may_stand_in_it() -> None:
    meaning = {(view.name, column): about for view in sql_views.VIEWS for column, about in view.columns.items()}
    words = {
        ("turns", "kind"): vocabulary.TurnKind, ("memories", "gate"): vocabulary.Gate, ("memories", "tier"): vocabulary.Tier,
        ("memories", "authority"): vocabulary.Authority, ("digests", "outcome"): digest.Outcome,
    }  # fmt: skip
    for column, kind in words.items():
        assert set(get_args(kind)) <= set(re.findall(r"\w+", meaning[column])), column


# --- walls

FRAGMENTS = st.sampled_from([
    "select", "*", "from", "where", "and", "union all", "(", ")", ",", "as", "with", "join", "on", "=", "not", "exists",
    "group by", "order by", "limit", "1", "text", "id", "session", "memory", "x", "main.", "temp.", ";", "--", "/*", "*/",
    "count(*)", "max(text)", "group_concat(text)", "'%bolt%'", "like", "in", "recursive", "values", "delete", "main.turns",
    "sqlite_schema", "rowid", "seq", "project_seq", *sorted(sql_views.VIEW_NAMES | sql_views.VIEW_TABLES),
])  # fmt: skip
SOURCES = st.sampled_from(
    [
        *sorted(sql_views.VIEW_NAMES | sql_views.VIEW_TABLES | {"tombstones"}),
        "main.turns",
        "temp.memories",
        "(select * from turns)",
        "x",
    ]
)
COLUMNS = st.sampled_from(
    ["*", "id", "text", "session", "count(*)", "max(text)", "group_concat(id)", "superseded_by", "parent", "turns", "memory",
     "mended_at", "a.*", "length(text)", "(select max(text) from turns)", "(select text from main.turns)", "rowid", "seq"]
)  # fmt: skip
WHERE = st.sampled_from(
    ["", "where 1 or 1", "where text like '%bolt%'", "where id in (select memory from sources)", "group by 1",
     "where exists (select 1 from links)", "order by 1 desc", "where session = '' or 1 = 1", "where project_seq > 0"]
)  # fmt: skip
OPENINGS = st.sampled_from(["", "with x as (select * from turns) ", "with turns as (select * from main.turns) ",
                          "with memories as (select * from memories) ", "with recursive x (id) as (select 1) "])  # fmt: skip


@st.composite
def statements(draw: st.DrawFn) -> str:
    """Statements that look like questions, with the names of what is hidden among them; and whatever their words make."""
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return " ".join(draw(st.lists(FRAGMENTS, min_size=1, max_size=14)))
    if kind == 1:
        words = draw(st.sampled_from([*ANSWERED, *REFUSED])).split(" ")
        for _ in range(draw(st.integers(1, 3))):
            words[draw(st.integers(0, len(words) - 1))] = draw(FRAGMENTS)
        return " ".join(words)
    first = f"{draw(OPENINGS)}select {draw(COLUMNS)} from {draw(SOURCES)} a {draw(WHERE)}"
    if kind == 2:
        return first
    return f"{first} {draw(st.sampled_from(['union', 'union all', 'except', ';']))} select {draw(COLUMNS)} from {draw(SOURCES)} b"


def outcome(shelf: Shelf, statement: str, by: str) -> list[str] | str:
    """The rows that a question gives, in no order, or the kind of the refusal."""
    try:
        return sorted(map(repr, shelf.ask(statement, by=by, limit=200, seconds=2.0).rows))
    except BadInput as refused:
        return type(refused).__name__


@pytest.mark.invariant("A question in SQL reads ten views and nothing else, within its walls and limits")
@given(statement=statements(), by=st.sampled_from([OPEN, ACME]))
def test_no_statement_changes_anything_or_tells_what_is_behind_another_wall(
    shelf: Shelf, without: Shelf, statement: str, by: str
) -> None:
    """An answer is the same whether anything is behind that wall or not; so nothing of it can be in the answer."""
    before = content(shelf.path)
    told = outcome(shelf, statement, by)
    assert content(shelf.path) == before
    assert told == outcome(without, statement, by)
    assert not any("bolt" in row for row in told) or "'%bolt%'" in statement.split("from")[0]


@pytest.mark.invariant("A question in SQL reads ten views and nothing else, within its walls and limits")
@pytest.mark.parametrize("view", sorted(sql_views.VIEW_NAMES))
def test_what_leads_behind_a_wall_is_not_told(shelf: Shelf, without: Shelf, view: str) -> None:
    everything = f"select * from {view}"
    for by in (OPEN, ACME):
        assert outcome(shelf, everything, by) == outcome(without, everything, by) != []
    assert any("bolt" in row for row in outcome(shelf, everything, BOLT)), "inside it is"
    assert any("bolt" in row for row in outcome(shelf, everything, "owner"))
    assert not any("acme" in row for row in outcome(shelf, everything, BOLT))
