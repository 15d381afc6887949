"""Workspaces are walls: whatever was said where, a brief, a recall and a search show nothing from behind one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from memory_factory import add_turn

from csmd.capture import project_identity
from csmd.conversation import Turn
from csmd.errors import BadInput
from csmd.knowledge import Provenance, Statement
from csmd.memory import remember
from csmd.recall import brief, prompt, results, visibility
from csmd.store import memories, projects, vectors, workspaces
from csmd.store.core import Store
from csmd.store.sqlite import Rows

NOW = "2026-03-01T10:00:00.000Z"
#: Two directories of each client, and two of nobody's.
ROOTS = ("/clients/acme/shop", "/clients/acme/site", "/clients/bolt/app", "/clients/bolt/api", "/own/tool", "/own/blog")
CLIENT = {root: root.split("/")[2] if root.startswith("/clients") else "" for root in ROOTS}
SAYINGS = (
    "I prefer short answers, always.",  # holds everywhere
    "I prefer pathlib over os paths, always and everywhere.",
    "Use Postgres for the job queue because of LISTEN and NOTIFY.",
    "The staging cluster lives behind the VPN.",
)


class _Undone(Exception):
    pass


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    made = Store(tmp_path_factory.mktemp("walls") / "csmd.db", now=NOW)
    yield made
    made.close()


def say(rows: Rows, number: int, root: str, saying: int) -> str:
    """A turn with its memory; their words name where they were said, but for those that hold everywhere."""
    text = SAYINGS[saying] if saying < 2 else f"In {root}: {SAYINGS[saying]}"
    turn = Turn(uuid=f"u{number}", session_id=f"s{root}", kind="user", text=text, at=NOW, cwd=root)
    home = projects.ensure_with_directory(
        rows, project_identity.add_marks_if_new(rows, project_identity.identify_directory(root)), now=NOW
    )
    add_turn(rows, turn, project=home.seq, directory=home.directory)
    general = saying < 2
    statement = Statement(
        text=text, gate="behavioral" if general else "epistemic", category="preference" if general else "fact",
        confidence=0.9, authority="user",
    )  # fmt: skip
    ident, new = remember.remember(
        rows, statement, Provenance(uuid=turn.uuid, session_id=turn.session_id, at=NOW), project=home.seq,
        origin="stated", key=b"k",
    )  # fmt: skip
    model = vectors.ensure_model(rows, "m", 4, now="")
    vectors.add_vectors(rows, "passage", model, [(journal_seq(rows, turn.uuid), home.seq, 0, 9, b"abcd")], reached=0)
    memory = memories.by_id(rows, ident)
    assert memory is not None
    if new:
        vectors.add_vectors(rows, "memory", model, [(memory.seq, memory.project_seq, 0, 9, b"abcd")], reached=0)
    return turn.uuid


def journal_seq(rows: Rows, uuid: str) -> int:
    return int(rows.value("select seq from turns where uuid = :uuid", uuid=uuid))


def build_walls(rows: Rows) -> None:
    for name in ("acme", "bolt"):
        wall = workspaces.ensure(rows, name, now=NOW)
        for root in (root for root in ROOTS if CLIENT[root] == name):
            seq = projects.ensure_with_directory(
                rows, project_identity.add_marks_if_new(rows, project_identity.identify_directory(root)), now=NOW
            ).seq
            if not projects.everywhere_of(rows, seq):
                workspaces.join(rows, wall, seq)


def seen_from(rows: Rows, root: str) -> set[str]:
    """The uuids of what is told, recalled, found and listed in a directory, with --all-projects too."""

    def embed(_: str) -> tuple[bytes, str]:
        return b"abcd", "m"

    seen: set[str] = set()
    ids: set[str] = set()
    for places in (
        visibility.find_searchable_places(rows, root, asking=root),
        visibility.find_searchable_places(rows, "", asking=root),
    ):
        for query in SAYINGS:
            hits, degraded = results.find(rows, query, projects=places, kind="all", limit=50, embed=embed)
            assert degraded == []
            seen |= {uuid for hit in hits for uuid in hit.source_uuids}
            ids |= {hit.id for hit in hits if hit.kind == "memory"}
        seen |= {s.uuid for memory in memories.list_memories(rows, projects=places) for s in memory.provenance}
    places = visibility.scopes(rows, root)
    made = [brief.session_brief(rows, places=places, session_id="", max_tokens=2000, key=b"k")]
    made += [
        prompt.recall(
            rows,
            places=places,
            session_id="",
            prompt=query,
            floor=0.0,
            max_tokens=2000,
            max_items=50,
            embed=embed,
            key=b"k",
        )
        for query in SAYINGS
    ]
    ids |= {item.id for brief in made for item in brief.items}
    for ident in ids:
        memory = memories.by_id(rows, ident)
        seen |= {source.uuid for source in memory.provenance} if memory else {ident}
    return seen


def check(rows: Rows, places: dict[str, str]) -> None:
    for root in ROOTS:
        for uuid in seen_from(rows, root):
            assert CLIENT[places[uuid]] in ("", CLIENT[root]), f"{uuid}, said in {places[uuid]}, is seen in {root}"


places_and_sayings = st.lists(
    st.tuples(st.sampled_from(ROOTS), st.integers(0, len(SAYINGS) - 1)), min_size=1, max_size=10
)


@pytest.mark.invariant("A workspace is a wall, and only a person changes what is seen where")
@settings(max_examples=8, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(before=places_and_sayings, after=places_and_sayings)
def test_nothing_is_seen_from_behind_a_wall(
    shelf: Store, before: list[tuple[str, int]], after: list[tuple[str, int]]
) -> None:
    """Said before the wall stood or after; what was said outside of it too is not the client's alone."""

    def story(rows: Rows) -> None:
        places = {say(rows, number, *act): act[0] for number, act in enumerate(before)}
        build_walls(rows)
        mixed = {source.uuid for memory in memories.list_memories(rows, projects=[0]) for source in memory.provenance}
        places |= {say(rows, number, *act): act[0] for number, act in enumerate(after, 100)}
        check(rows, {uuid: ("/own/tool" if uuid in mixed else root) for uuid, root in places.items()})
        raise _Undone

    with pytest.raises(_Undone):
        shelf.write(story)


@pytest.mark.invariant("A workspace is a wall, and only a person changes what is seen where")
def test_without_the_wall_the_same_check_fails(shelf: Store) -> None:
    """A check that cannot fail is none."""

    def story(rows: Rows) -> None:
        places = {say(rows, number, root, 0): root for number, root in enumerate(ROOTS[:1])}
        with pytest.raises(AssertionError, match="is seen in /clients/bolt"):
            check(rows, places)
        raise _Undone

    with pytest.raises(_Undone):
        shelf.write(story)


def test_what_was_said_outside_of_every_wall_is_seen_inside(shelf: Store) -> None:
    def story(rows: Rows) -> None:
        build_walls(rows)
        outside = say(rows, 1, "/own/tool", 0)
        inside = say(rows, 2, "/clients/acme/shop", 1)
        assert outside in seen_from(rows, "/clients/bolt/app")
        assert {outside, inside} <= seen_from(rows, "/clients/acme/site")
        raise _Undone

    with pytest.raises(_Undone):
        shelf.write(story)


def test_a_question_about_a_walled_project_is_refused_from_elsewhere(shelf: Store) -> None:
    def story(rows: Rows) -> None:
        build_walls(rows)
        acme = visibility.scopes(rows, "/clients/acme/shop")
        assert visibility.find_searchable_places(rows, "/clients/acme/shop", asking="/clients/acme/site") == acme
        assert visibility.find_searchable_places(rows, "/clients/acme/shop", asking="") == acme
        for asking in ("/clients/bolt/app", "/own/tool", "/nowhere"):
            with pytest.raises(BadInput, match="in the workspace acme"):
                visibility.find_searchable_places(rows, "/clients/acme/shop", asking=asking)
        assert visibility.find_searchable_places(rows, "/own/tool", asking="/clients/bolt/app") == visibility.scopes(
            rows, "/own/tool"
        )
        raise _Undone

    with pytest.raises(_Undone):
        shelf.write(story)


def test_a_directory_behind_a_wall_in_which_nothing_was_said_yet_is_behind_it(shelf: Store, tmp_path: Path) -> None:
    def story(rows: Rows) -> None:
        build_walls(rows)
        inside = say(rows, 1, "/clients/acme/shop", 0)
        new = "/clients/acme/shop/new"
        assert inside in seen_from(rows, new)
        assert project_identity.find_wall(rows, new) == project_identity.find_wall(rows, "/clients/acme/site") != 0
        raise _Undone

    with pytest.raises(_Undone):
        shelf.write(story)
