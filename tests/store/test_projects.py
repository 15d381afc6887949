"""Which row a place counts to, what merges and splits move, and what is kept of instruction files."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from csmd.conversation import Project, Turn
from csmd.knowledge import Provenance, Statement
from csmd.memory import remember
from csmd.store import (
    files,
    instruction_rows,
    memories,
    project_merges,
    projects,
    statement_rows,
    turns,
    vectors,
    workspaces,
)
from csmd.store.core import Store
from csmd.store.instruction_rows import Instruction
from csmd.store.integrity import check_database
from csmd.store.sqlite import Rows
from csmd.text import tokens

NOW = "2026-01-01T00:00:00.000Z"


def place(root: str | Path, *, key: str = "", mark: str = "", at: str | Path = "", kind: Any = "git") -> Project:
    root = str(root)
    return Project(
        key=key or f"key{root}",
        root=root,
        name=root.rpartition("/")[2],
        kind=kind,
        place=str(at or root),
        fingerprint=mark,
    )


def test_a_place_counts_to_one_row_however_often_it_is_asked(store: Store) -> None:
    def twice(rows: Rows) -> set[int | None]:
        return {projects.ensure(rows, place("/w/a"), now=NOW) for _ in range(2)} | {
            projects.seq_of(rows, place("/w/a"))
        }

    assert len(store.write(twice)) == 1
    assert store.read(lambda rows: projects.seq_of(rows, place("/w/b"))) is None


def test_a_repository_made_where_something_was_said_is_that_project(store: Store) -> None:
    def story(rows: Rows) -> list[int]:
        first = projects.ensure(rows, place("/w/a", key="path", kind="path"), now=NOW)
        return [
            first,
            projects.ensure(rows, place("/w/a", key="git"), now=NOW),
            projects.ensure(rows, place("/w/a", key="path"), now=NOW),
        ]

    assert len(set(store.write(story))) == 1


def test_a_moved_directory_is_its_project_and_goes_back_the_same_way(store: Store, tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    first = store.write(lambda rows: projects.ensure(rows, place(old, mark="m"), now=NOW))
    old.rename(new)
    assert store.write(lambda rows: projects.ensure(rows, place(new, mark="m"), now=NOW)) == first
    [shown] = store.read(workspaces.list_projects)
    assert (shown.root, shown.name, shown.other_places) == (str(new), "new", ((str(old), "moved"),))
    assert store.read(lambda rows: projects.seq_of(rows, place(old))) == first
    new.rename(old)
    assert store.write(lambda rows: projects.ensure(rows, place(old, mark="m"), now=NOW)) == first
    [shown] = store.read(workspaces.list_projects)
    assert (shown.root, shown.other_places) == (str(old), ((str(new), "moved"),))


def test_nothing_is_taken_for_moved_that_could_be_another(store: Store, tmp_path: Path) -> None:
    for name in ("here", "one", "two"):
        (tmp_path / name).mkdir()

    def ensure(name: str, mark: str) -> int:
        return store.write(lambda rows: projects.ensure(rows, place(tmp_path / name, mark=mark), now=NOW))

    here, one, two, weak = ensure("here", "a"), ensure("one", "b"), ensure("two", "b"), ensure("gone", "")
    assert len({here, one, two, weak}) == 4
    assert ensure("copy of here", "a") not in (here, one, two, weak)  # here is there still
    shutil.rmtree(tmp_path / "one")
    shutil.rmtree(tmp_path / "two")
    assert ensure("of which", "b") not in (here, one, two, weak)  # it could be either
    assert ensure("nothing to tell it by", "") not in (here, one, two, weak)


def test_a_fingerprint_that_changed_is_noted(store: Store, tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.mkdir()
    first = store.write(lambda rows: projects.ensure(rows, place(old), now=NOW))
    store.write(lambda rows: projects.ensure(rows, place(old, mark="later"), now=NOW))
    old.rename(tmp_path / "new")
    assert store.write(lambda rows: projects.ensure(rows, place(tmp_path / "new", mark="later"), now=NOW)) == first


def test_an_alias_counts_until_it_is_taken_back(store: Store) -> None:
    def story(rows: Rows) -> list[Any]:
        target = projects.ensure(rows, place("/w/a"), now=NOW)
        projects.add_alias(rows, "key/Users/x/a", target, path="/Users/x/a", why="named", now=NOW)
        before = (
            projects.seq_of(rows, place("/Users/x/a")) == target == projects.ensure(rows, place("/Users/x/a"), now=NOW)
        )
        taken = [projects.remove_alias(rows, "key/Users/x/a") for _ in range(2)]
        return [before, taken, projects.seq_of(rows, place("/Users/x/a"))]

    assert store.write(story) == [True, [True, False], None]


def test_a_part_takes_what_is_said_below_its_directory_and_a_part_of_it_what_is_deeper(store: Store) -> None:
    def story(rows: Rows) -> list[str]:
        whole = projects.ensure(rows, place("/w"), now=NOW)
        part = workspaces.add_part(rows, key="p1", root="/w/shop", name="shop", whole=whole, now=NOW)
        workspaces.add_part(rows, key="p2", root="/w/shop/cart", name="cart", whole=part, now=NOW)
        asked = ("/w", "/w/shop", "/w/shop/x", "/w/shopping", "/w/shop/cart/x")
        return [projects.name_of(rows, projects.ensure(rows, place("/w", at=at), now=NOW)) for at in asked]

    assert store.write(story) == ["w", "shop", "shop", "w", "cart"]


def test_a_ring_of_merges_ends(store: Store) -> None:
    def story(rows: Rows) -> int:
        one, two = (projects.ensure(rows, place(root), now=NOW) for root in ("/w/a", "/w/b"))
        rows.run("update projects set merged_into = :to where seq = :seq", to=two, seq=one)
        rows.run("update projects set merged_into = :to where seq = :seq", to=one, seq=two)
        return projects.ensure(rows, place("/w/a"), now=NOW)

    assert store.write(story) > 0


def test_what_is_new_below_a_walled_directory_is_behind_its_wall(store: Store) -> None:
    def story(rows: Rows) -> list[int]:
        client = projects.ensure(rows, place("/w/acme", kind="path"), now=NOW)
        older = projects.ensure(rows, place("/w/acme/older"), now=NOW)
        wall = workspaces.ensure(rows, "acme", now=NOW)
        for seq in (client, *workspaces.list_projects_below(rows, "/w/acme")):
            workspaces.join(rows, wall, seq)
        newer, beside = (projects.ensure(rows, place(root), now=NOW) for root in ("/w/acme/newer", "/w/acmes"))
        assert projects.find_workspace_around(rows, "/w/acme/never/seen") == wall
        return [projects.everywhere_of(rows, seq) // wall for seq in (client, older, newer, beside, wall, 0)]

    assert store.write(story) == [1, 1, 1, 0, 1, 0]


@pytest.mark.parametrize(
    ("word", "found"),
    [("shop", "/w/shop"), ("key/", ""), ("abcd", "/w/one"), ("abcdef", "/w/one"), ("abc", ""), ("", "")],
)
def test_a_project_is_named_by_its_name_or_the_beginning_of_its_id(store: Store, word: str, found: str) -> None:
    def story(rows: Rows) -> list[str]:
        for root, key in (("/w/shop", "1234aaaa"), ("/w/one", "abcdefgh"), ("/w/two", "abc12345")):
            projects.ensure(rows, place(root, key=key), now=NOW)
        return [root for _, root in workspaces.find_projects(rows, word)]

    assert store.write(story) == [found] * bool(found)


def test_what_the_disk_says_of_odd_paths_is_an_answer(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in ("", "\0", "\ud800", "/x" * 5000, str(tmp_path / "file" / "sub"), str(tmp_path)):
        assert isinstance(files.resolve(path)[1], bool)
        assert isinstance(files.is_same_file(path, path), bool)
        assert isinstance(files.list_names(path), list)
        assert isinstance(files.file_stamp(path), str)
        assert isinstance(files.is_missing(path), bool)
    assert [files.is_missing(str(tmp_path / name)) for name in ("file", "file/sub", "x")] == [False, True, True]


# --- A merge brings all of a project, a split gives all of it back: rows, sources, vectors, ages.


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


def numbered(number: int, folder: int = 0) -> Project:
    root = ROOTS[number]
    return Project(key=f"key{number}xxx", root=root, name=root[3:], kind="git", place=f"{root}/sub" if folder else root)


def say(rows: Rows, number: int, one: Said, *, key: bytes = b"k" * 32) -> None:
    """What a turn leaves in the store: itself, its session, a statement, a memory, a vector of both."""
    project, folder, saying, day, who = one
    at = f"2026-01-{day:02d}T10:{number // 60:02d}:{number % 60:02d}.000Z"
    turn = Turn(uuid=f"u{number}", session_id=f"s{project}{folder}", kind="user", text=SAYINGS[saying], at=at)
    home = projects.ensure_with_directory(rows, numbered(project, folder), now=NOW)
    turns.add_turn(
        rows, turn, text_hash=tokens.keyed_hash(turn.text, key), host="claude", project=home.seq, path="",
        directory=home.directory,
    )  # fmt: skip
    statement = Statement(
        text=turn.text, gate="behavioral" if saying == 2 else "epistemic",
        category="preference" if saying == 2 else "fact", confidence=0.8, authority=who,  # type: ignore[arg-type]
    )  # fmt: skip
    stored = turns.read_stream_turns(
        rows, rows.value("select seq from sessions where id = :id", id=turn.session_id), after=0
    )
    last = next(row for row in stored if row.uuid == turn.uuid)
    statement_rows.add_statement(rows, statement, last, session_seq=1, text_hash=tokens.keyed_hash(turn.text, key))
    ident, new = remember.remember(
        rows, statement, Provenance(uuid=turn.uuid, session_id=turn.session_id, at=at), project=home.seq,
        origin="stated", key=key,
    )  # fmt: skip
    model = vectors.ensure_model(rows, "m", 4, now="")
    vectors.add_vectors(rows, "passage", model, [(last.seq, home.seq, 0, 1, b"abcd")], reached=0)
    if new:
        memory = memories.by_id(rows, ident)
        assert memory is not None
        vectors.add_vectors(rows, "memory", model, [(memory.seq, memory.project_seq, 0, 1, b"abcd")], reached=0)


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
    for kind in vectors.VECTOR_KINDS:
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
        assert check_database(rows) == []
        raise _Undone

    with pytest.raises(_Undone):
        store.write(story)


def told(rows: Rows, sayings: Sequence[Said]) -> list[int]:
    for number, one in enumerate(sayings):
        say(rows, number, one)
    return [projects.ensure(rows, numbered(number), now=NOW) for number in range(len(ROOTS))]


@pytest.mark.invariant("A split gives back what a merge brought")
@settings(max_examples=30, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(sayings=st.lists(said, max_size=14))
@example(sayings=[(0, 0, 0, 1, "user"), (1, 0, 0, 3, "assistant"), (1, 0, 1, 2, "user"), (0, 0, 1, 5, "user")])
def test_what_was_merged_and_split_is_as_it_was(shelf: Store, sayings: list[Said]) -> None:
    def story(rows: Rows) -> None:
        one, other, _ = told(rows, sayings)
        before = everything(rows)
        brought = project_merges.merge_projects(rows, one, other)
        assert vectors.find_problems(rows) == []
        given_back = project_merges.split_projects(rows, other, one)
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
        project_merges.merge_projects(rows, one, two)
        project_merges.merge_projects(rows, two, three)
        for number, saying in enumerate(later, 100):
            say(rows, number, saying)
        assert {seq for (seq,) in rows.all("select distinct project_seq from turns")} <= {three}
        project_merges.split_projects(rows, three, two)
        project_merges.split_projects(rows, two, one)
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
        for memory in memories.list_memories(rows, projects=[one, two, three]):
            assert memory.provenance
            sources = {(one, two, three)[homes[source.uuid]] for source in memory.provenance}
            assert memory.project_seq in sources, memory

    told_and_undone(shelf, story)


@settings(max_examples=20, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(sayings=st.lists(said, max_size=14))
def test_after_a_merge_all_is_in_one_project_and_each_text_once(shelf: Store, sayings: list[Said]) -> None:
    def story(rows: Rows) -> None:
        one, other, _ = told(rows, sayings)
        before = memories.list_memories(rows, projects=[one, other])
        project_merges.merge_projects(rows, one, other)
        assert rows.all("select seq from turns where project_seq = :one", one=one) == []
        after = memories.list_memories(rows, projects=[other])
        assert sorted(memory.text for memory in after) == sorted({memory.text for memory in before})
        for memory in after:
            said_by = {s.uuid for old in before if old.text == memory.text for s in old.provenance}
            assert {source.uuid for source in memory.provenance} == said_by
            best = max((m.authority == "user", m.confidence) for m in before if m.text == memory.text)
            assert (memory.authority == "user", memory.confidence) == best
        seen = projects.list_visible_projects(rows, inside=0)
        assert seen is not None and one not in seen and other in seen

    told_and_undone(shelf, story)


@settings(max_examples=20, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(sayings=st.lists(said, min_size=1, max_size=14))
def test_a_part_takes_what_was_said_in_its_directory_and_only_there(shelf: Store, sayings: list[Said]) -> None:
    def story(rows: Rows) -> None:
        one, *_ = told(rows, sayings)
        part = workspaces.add_part(rows, key="part", root="/w/a/sub", name="sub", whole=one, now=NOW)
        moved = project_merges.split_projects(rows, one, part)
        below = {f"u{number}" for number, (project, folder, *_) in enumerate(sayings) if (project, folder) == (0, 1)}
        assert {uuid for (uuid,) in rows.all("select uuid from turns where project_seq = :p", p=part)} == below
        assert moved.turns == len(below)
        for memory in memories.list_memories(rows, projects=[part]):
            assert {source.uuid for source in memory.provenance} <= below
        for memory in memories.list_memories(rows, projects=[one]):
            assert not {source.uuid for source in memory.provenance} <= below
        say(rows, 500, (0, 1, 0, 6, "user"))
        assert rows.value("select project_seq from turns where uuid = 'u500'") == part
        project_merges.merge_projects(rows, part, one)
        say(rows, 501, (0, 1, 0, 6, "user"))
        assert rows.value("select project_seq from turns where uuid = 'u501'") == one

    told_and_undone(shelf, story)


def test_what_is_forgotten_after_a_merge_is_forgotten_on_both_sides(store: Store) -> None:

    def story(rows: Rows) -> list[Any]:
        one, other, _ = told(rows, [(0, 0, 0, 1, "user"), (1, 0, 0, 2, "user")])
        project_merges.merge_projects(rows, one, other)
        [memory] = memories.list_memories(rows, projects=[other])
        remember.forget(rows, memory, key=b"k" * 32, now=NOW, by_person=True)
        project_merges.split_projects(rows, other, one)
        return [rows.all("select seq from memories"), rows.all("select seq from vectors where kind = 'memory'")]

    assert store.write(story) == [[], []]


def test_the_same_said_again_after_a_split_is_a_memory_of_its_own(store: Store) -> None:
    """The memory that went away has the id that a new one of that scope would have."""

    def story(rows: Rows) -> list[int]:
        one, *_ = told(rows, [(0, 1, 0, 1, "user")])
        part = workspaces.add_part(rows, key="part", root="/w/a/sub", name="sub", whole=one, now=NOW)
        project_merges.split_projects(rows, one, part)
        say(rows, 7, (0, 0, 0, 2, "user"))
        return [len(memories.list_memories(rows, projects=[seq])) for seq in (one, part)]

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
        assert vectors.find_problems(rows) == []
        return [moved, len(memories.list_memories(rows, projects=[wall]))]

    assert store.write(story) == [inside, inside]


# --- What instruction files say is kept as it stands now: one row for each file, gone without its text.


Given = Any


def one(path: str, text: str, kind: str = "Project") -> Instruction:
    return Instruction(path=path, kind=kind, root="/p", text=text, text_hash=f"h:{text}")


def test_the_latest_of_each_file_is_kept_in_its_order(store: Store, given: Given) -> None:
    def story(rows: Rows) -> None:
        here, there = (projects.ensure(rows, given.project(name), now=given.now) for name in ("a", "b"))
        assert (
            instruction_rows.replace_instructions(
                rows, here, [one("/p/B.md", "b"), one("/p/A.md", "a")], now=given.at(1)
            )
            == 2
        )
        assert instruction_rows.replace_instructions(rows, there, [one("/p/B.md", "other")], now=given.at(1)) == 1
        assert instruction_rows.list_instruction_texts(rows, [here], "claude") == ["b", "a"]
        assert (
            instruction_rows.replace_instructions(
                rows, here, [one("/p/A.md", "a"), one("/p/B.md", "b2")], now=given.at(2)
            )
            == 1
        )
        assert instruction_rows.list_instruction_texts(rows, [here, there], "claude") == ["a", "b2", "other"]
        assert instruction_rows.list_instruction_hashes(rows, here) == [
            ("/p/A.md", "h:a", "claude"),
            ("/p/B.md", "h:b2", "claude"),
        ]
        assert instruction_rows.replace_instructions(rows, here, [one("/p/A.md", "a")], now=given.at(3)) == 1
        assert instruction_rows.list_instruction_texts(rows, [here], "claude") == ["a"]
        gone = rows.all("select path, text, text_hash from instructions where gone = 1")
        assert gone == [("/p/B.md", "", "h:b2")]
        assert (
            instruction_rows.replace_instructions(
                rows, here, [one("/p/A.md", "a"), one("/p/B.md", "b2")], now=given.at(4)
            )
            == 1
        )
        assert instruction_rows.list_instruction_texts(rows, [here], "claude") == ["a", "b2"], "it came back"

    store.write(story)


def test_only_projects_with_a_late_session_are_looked_at(store: Store, given: Given) -> None:
    from csmd.store import turns

    def story(rows: Rows) -> list[tuple[int, str]]:
        for number, name in enumerate(("old", "young", "none")):
            place = projects.ensure(rows, given.project(name), now=given.now)
            turn = given.turn(f"u{number}", "hello", session=name, second=100 * number)
            if name != "none":
                turns.add_turn(rows, turn, text_hash="h", host="claude", project=place, path="")
        return projects.list_projects_since(rows, given.at(50))

    assert [root for _, root in store.write(story)] == ["/home/me/young"]
