"""Which row a place counts to: by its key, its place, its fingerprint, and by what the user said of it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from csmd.model import Project
from csmd.store import disk, projects, workspaces
from csmd.store.core import Store
from csmd.store.sqlite import Rows

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
    [shown] = store.read(workspaces.listing)
    assert (shown.root, shown.name, shown.other_places) == (str(new), "new", ((str(old), "moved"),))
    assert store.read(lambda rows: projects.seq_of(rows, place(old))) == first
    new.rename(old)
    assert store.write(lambda rows: projects.ensure(rows, place(old, mark="m"), now=NOW)) == first
    [shown] = store.read(workspaces.listing)
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
        for seq in (client, *workspaces.open_below(rows, "/w/acme")):
            workspaces.join(rows, wall, seq)
        newer, beside = (projects.ensure(rows, place(root), now=NOW) for root in ("/w/acme/newer", "/w/acmes"))
        assert projects.wall_around(rows, "/w/acme/never/seen") == wall
        return [projects.everywhere(rows, seq) // wall for seq in (client, older, newer, beside, wall, 0)]

    assert store.write(story) == [1, 1, 1, 0, 1, 0]


@pytest.mark.parametrize(
    ("word", "found"),
    [("shop", "/w/shop"), ("key/", ""), ("abcd", "/w/one"), ("abcdef", "/w/one"), ("abc", ""), ("", "")],
)
def test_a_project_is_named_by_its_name_or_the_beginning_of_its_id(store: Store, word: str, found: str) -> None:
    def story(rows: Rows) -> list[str]:
        for root, key in (("/w/shop", "1234aaaa"), ("/w/one", "abcdefgh"), ("/w/two", "abc12345")):
            projects.ensure(rows, place(root, key=key), now=NOW)
        return [root for _, root in workspaces.matching(rows, word)]

    assert store.write(story) == [found] * bool(found)


def test_what_the_disk_says_of_odd_paths_is_an_answer(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in ("", "\0", "\ud800", "/x" * 5000, str(tmp_path / "file" / "sub"), str(tmp_path)):
        assert isinstance(disk.real(path)[1], bool)
        assert isinstance(disk.same(path, path), bool)
        assert isinstance(disk.names(path), list)
        assert isinstance(disk.stamp(path), str)
        assert isinstance(disk.is_gone(path), bool)
    assert [disk.is_gone(str(tmp_path / name)) for name in ("file", "file/sub", "x")] == [False, True, True]
