"""A merge brings all of a project, a split gives all of it back: rows, sources, vectors, ages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from csmd.memory import remember as believe
from csmd.model import Project, Provenance, Statement, Turn
from csmd.store import memories, projects, turns, vectors, workspaces
from csmd.store.core import Store
from csmd.store.integrity import integrity
from csmd.store.sqlite import Rows
from csmd.text import tokens

NOW = "2026-01-01T00:00:00.000Z"
SAYINGS = (
    "Use Postgres for the job queue.",
    "The staging cluster lives behind the VPN.",
    "I prefer short answers, always.",
    "Deploys happen with make ship on Fridays.",
)
ROOTS = ("/w/a", "/w/b", "/w/c")
#: (which project, in which directory of it, which saying, on which day, who says it)
Said = tuple[int, int, int, int, str]
said = st.tuples(
    st.integers(0, 2), st.integers(0, 1), st.integers(0, len(SAYINGS) - 1), st.integers(1, 6),
    st.sampled_from(["user", "assistant"]),
)  # fmt: skip


def place(number: int, folder: int = 0) -> Project:
    root = ROOTS[number]
    return Project(key=f"key{number}xxx", root=root, name=root[3:], kind="git", place=f"{root}/sub" if folder else root)


def say(rows: Rows, number: int, one: Said, *, key: bytes = b"k" * 32) -> None:
    """What a turn leaves in the store: itself, its session, a statement, a memory, a vector of both."""
    project, folder, saying, day, who = one
    at = f"2026-01-{day:02d}T10:{number // 60:02d}:{number % 60:02d}.000Z"
    turn = Turn(uuid=f"u{number}", session_id=f"s{project}{folder}", kind="user", text=SAYINGS[saying], at=at)
    home = projects.settle(rows, place(project, folder), now=NOW)
    turns.add_turn(
        rows, turn, text_hash=tokens.keyed_hash(turn.text, key), host="claude", project=home.seq, path="",
        directory=home.directory,
    )  # fmt: skip
    statement = Statement(
        text=turn.text, gate="behavioral" if saying == 2 else "epistemic",
        category="preference" if saying == 2 else "fact", confidence=0.8, authority=who,  # type: ignore[arg-type]
    )  # fmt: skip
    stored = turns.stream_turns(
        rows, rows.value("select seq from sessions where id = :id", id=turn.session_id), after=0
    )
    last = next(row for row in stored if row.uuid == turn.uuid)
    memories.add_statement(rows, statement, last, session_seq=1, text_hash=tokens.keyed_hash(turn.text, key))
    ident, new = believe.remember(
        rows, statement, Provenance(uuid=turn.uuid, session_id=turn.session_id, at=at), project=home.seq,
        origin="stated", key=key,
    )  # fmt: skip
    model = vectors.ensure_model(rows, "m", 4, now="")
    vectors.add(rows, "passage", model, [(last.seq, home.seq, 0, 1, b"abcd")], reached=0)
    if new:
        memory = memories.by_id(rows, ident)
        assert memory is not None
        vectors.add(rows, "memory", model, [(memory.seq, memory.project_seq, 0, 1, b"abcd")], reached=0)


def everything(rows: Rows) -> dict[str, list[Any]]:
    """Every row that a merge may touch, and the partition of every vector."""
    tables = {
        "sessions": "select id, project_seq, directory_seq from sessions order by 1",
        "turns": "select uuid, project_seq, directory_seq from turns order by 1",
        "statements": "select seq, turn_seq, project_seq from statements order by 1",
        "memories": "select * from memories order by seq",
        "provenance": "select * from provenance order by memory_seq, uuid",
        "activity": "select * from activity order by project_seq, day",
        "merged": "select seq, merged_into, workspace_seq from projects where merged_into > 0 order by 1",
    }
    for kind in vectors.KINDS:
        if rows.value("select count(*) from vector_models"):
            tables[kind] = (
                f"select v.row_seq, x.project_seq from vectors v join vec_{kind}_1 x on x.rowid = v.seq where v.kind = '{kind}' order by 1"
            )
    return {name: rows.all(sql) for name, sql in tables.items()}


class _Undone(Exception):
    pass


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store in which each example is told and undone."""
    made = Store(tmp_path_factory.mktemp("shelf") / "csmd.db", now=NOW)
    yield made
    made.close()


def told_and_undone(store: Store, run: Callable[[Rows], None]) -> None:
    def story(rows: Rows) -> None:
        run(rows)
        assert integrity(rows) == []
        raise _Undone

    with pytest.raises(_Undone):
        store.write(story)


def told(rows: Rows, sayings: Sequence[Said]) -> list[int]:
    for number, one in enumerate(sayings):
        say(rows, number, one)
    return [projects.ensure(rows, place(number), now=NOW) for number in range(len(ROOTS))]


@pytest.mark.invariant("A split gives back what a merge brought")
@settings(max_examples=30, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(sayings=st.lists(said, max_size=14))
@example(sayings=[(0, 0, 0, 1, "user"), (1, 0, 0, 3, "assistant"), (1, 0, 1, 2, "user"), (0, 0, 1, 5, "user")])
def test_what_was_merged_and_split_is_as_it_was(shelf: Store, sayings: list[Said]) -> None:
    def story(rows: Rows) -> None:
        one, other, _ = told(rows, sayings)
        before = everything(rows)
        brought = projects.merge_projects(rows, one, other)
        assert vectors.problems(rows) == []
        given_back = projects.split_projects(rows, other, one)
        assert everything(rows) == before
        assert (brought.turns, brought.sessions) == (given_back.turns, given_back.sessions)

    told_and_undone(shelf, story)


@pytest.mark.invariant("A split gives back what a merge brought")
@settings(max_examples=20, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(first=st.lists(said, max_size=12), later=st.lists(said, max_size=6))
def test_a_chain_of_merges_with_talk_between_is_taken_apart_the_other_way(
    shelf: Store, first: list[Said], later: list[Said]
) -> None:
    """What was said after a merge goes to the project whose directory it was said in."""

    def story(rows: Rows) -> None:
        one, two, three = told(rows, first)
        projects.merge_projects(rows, one, two)
        projects.merge_projects(rows, two, three)
        for number, saying in enumerate(later, 100):
            say(rows, number, saying)
        assert {seq for (seq,) in rows.all("select distinct project_seq from turns")} <= {three}
        projects.split_projects(rows, three, two)
        projects.split_projects(rows, two, one)
        homes = {f"u{number}": saying[0] for number, saying in [*enumerate(first), *enumerate(later, 100)]}
        assert dict(rows.all("select uuid, project_seq from turns")) == {
            u: (one, two, three)[n] for u, n in homes.items()
        }
        assert (
            rows.all(
                "select seq from statements s where project_seq <> (select t.project_seq from turns t where t.seq = s.turn_seq)"
            )
            == []
        )
        # a memory is where something that says it was said, and none stands for two any more
        assert rows.all("select seq from memories where twin_of > 0") == []
        for memory in memories.listing(rows, projects=[one, two, three]):
            assert memory.provenance
            sources = {(one, two, three)[homes[source.uuid]] for source in memory.provenance}
            assert memory.project_seq in sources, memory

    told_and_undone(shelf, story)


@settings(max_examples=20, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(sayings=st.lists(said, max_size=14))
def test_after_a_merge_all_is_in_one_project_and_each_text_once(shelf: Store, sayings: list[Said]) -> None:
    def story(rows: Rows) -> None:
        one, other, _ = told(rows, sayings)
        before = memories.listing(rows, projects=[one, other])
        projects.merge_projects(rows, one, other)
        assert rows.all("select seq from turns where project_seq = :one", one=one) == []
        after = memories.listing(rows, projects=[other])
        assert sorted(memory.text for memory in after) == sorted({memory.text for memory in before})
        for memory in after:
            said_by = {s.uuid for old in before if old.text == memory.text for s in old.provenance}
            assert {source.uuid for source in memory.provenance} == said_by
            best = max((m.authority == "user", m.confidence) for m in before if m.text == memory.text)
            assert (memory.authority == "user", memory.confidence) == best
        seen = projects.visible(rows, inside=0)
        assert seen is not None and one not in seen and other in seen

    told_and_undone(shelf, story)


@settings(max_examples=20, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(sayings=st.lists(said, min_size=1, max_size=14))
def test_a_part_takes_what_was_said_in_its_directory_and_only_there(shelf: Store, sayings: list[Said]) -> None:
    def story(rows: Rows) -> None:
        one, *_ = told(rows, sayings)
        part = workspaces.add_part(rows, key="part", root="/w/a/sub", name="sub", whole=one, now=NOW)
        moved = projects.split_projects(rows, one, part)
        below = {f"u{number}" for number, (project, folder, *_) in enumerate(sayings) if (project, folder) == (0, 1)}
        assert {uuid for (uuid,) in rows.all("select uuid from turns where project_seq = :p", p=part)} == below
        assert moved.turns == len(below)
        for memory in memories.listing(rows, projects=[part]):
            assert {source.uuid for source in memory.provenance} <= below
        for memory in memories.listing(rows, projects=[one]):
            assert not {source.uuid for source in memory.provenance} <= below
        say(rows, 500, (0, 1, 0, 6, "user"))
        assert rows.value("select project_seq from turns where uuid = 'u500'") == part
        projects.merge_projects(rows, part, one)
        say(rows, 501, (0, 1, 0, 6, "user"))
        assert rows.value("select project_seq from turns where uuid = 'u501'") == one

    told_and_undone(shelf, story)


def test_what_is_forgotten_after_a_merge_is_forgotten_on_both_sides(store: Store) -> None:

    def story(rows: Rows) -> list[Any]:
        one, other, _ = told(rows, [(0, 0, 0, 1, "user"), (1, 0, 0, 2, "user")])
        projects.merge_projects(rows, one, other)
        [memory] = memories.listing(rows, projects=[other])
        believe.forget(rows, memory, key=b"k" * 32, now=NOW, by_person=True)
        projects.split_projects(rows, other, one)
        return [rows.all("select seq from memories"), rows.all("select seq from vectors where kind = 'memory'")]

    assert store.write(story) == [[], []]


def test_the_same_said_again_after_a_split_is_a_memory_of_its_own(store: Store) -> None:
    """The memory that went away has the id that a new one of that scope would have."""

    def story(rows: Rows) -> list[int]:
        one, *_ = told(rows, [(0, 1, 0, 1, "user")])
        part = workspaces.add_part(rows, key="part", root="/w/a/sub", name="sub", whole=one, now=NOW)
        projects.split_projects(rows, one, part)
        say(rows, 7, (0, 0, 0, 2, "user"))
        return [len(memories.listing(rows, projects=[seq])) for seq in (one, part)]

    assert store.write(story) == [1, 1]


@pytest.mark.parametrize(
    ("sayings", "inside"),
    [
        ([(0, 0, 2, 1, "user")], 1),
        ([(0, 0, 2, 1, "user"), (1, 0, 2, 2, "user")], 1),  # both are clients
        ([(0, 0, 2, 1, "user"), (2, 0, 2, 2, "user")], 0),  # said outside too
        ([(2, 0, 2, 2, "user")], 0),
        ([(0, 0, 0, 2, "user")], 0),  # of its project alone
    ],
)
def test_what_held_everywhere_and_came_from_inside_only_goes_behind_the_wall(
    store: Store, sayings: list[Said], inside: int
) -> None:

    def story(rows: Rows) -> list[int]:
        one, two, _ = told(rows, sayings)
        wall = workspaces.ensure(rows, "acme", now=NOW)
        moved = sum(workspaces.join(rows, wall, seq) for seq in (one, two))
        assert vectors.problems(rows) == []
        return [moved, len(memories.listing(rows, projects=[wall]))]

    assert store.write(story) == [inside, inside]
