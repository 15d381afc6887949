"""Worktrees that are gone count to their repository: by what their paths and transcripts say, never through a wall."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import Any

import pytest

from csmd.exclusions import Excludes
from tests.tools.test_projects import done, listed, purged, repository, told, turns

MAIN, TREE, ODD = "/w/shop", "/w/shop-worktrees/shop-12", "/w/trees/fix"


def entered(parts: Any, tree: str | Path, main: str | Path, *, session: str = "m") -> None:
    """A session that was begun in a repository goes on in a worktree."""
    state = {"originalCwd": str(main), "worktreePath": str(tree)}
    parts.machine.transcript(
        {"type": "worktree-state", "sessionId": session, "worktreeSession": state}, session=f"{session}{tree}".replace("/", "-")
    )  # fmt: skip
    done(parts, "csm_sync", vectors=False)


def roots(parts: Any) -> set[str]:
    return {row["root"] for row in parts.call("csm_project_list")["projects"]}


@pytest.mark.invariant(
    "One resolver tells a directory's project, without a child process; a moved folder is its project, and nothing weak is merged"
)
@pytest.mark.parametrize("order", list(itertools.permutations([MAIN, TREE, f"{TREE}/web"])))
def test_a_worktree_named_after_its_repository_counts_to_it_whichever_is_read_first(
    parts: Any, order: tuple[str, ...]
) -> None:
    for number, place in enumerate(order):
        told(parts, (place, f"said in {place}"), session=f"s{number}")
    assert turns(parts) == {"shop": [f"said in {place}" for place in order]}
    assert {alias["why"] for alias in listed(parts)["shop"]["aliases"]} == {"worktree"}
    done(parts, "csm_sync", vectors=False)
    assert roots(parts) == {MAIN}


def test_a_worktree_counts_to_its_repository_before_anything_was_said_there(parts: Any) -> None:
    told(parts, (TREE, "We deploy on Fridays, always."))
    assert roots(parts) == {MAIN}
    assert parts.call("csm_memory_list", project=MAIN)["memories"]


@pytest.mark.parametrize("first", ["worktree", "repository"])
def test_a_session_that_entered_a_worktree_tells_whose_it_was(parts: Any, first: str) -> None:
    def work() -> None:
        told(parts, (ODD, "said in the worktree"), (f"{ODD}/web", "below"), session="tree")

    told(parts, (MAIN, "main"))
    if first == "worktree":
        work()
        assert roots(parts) == {MAIN, ODD}
    entered(parts, ODD, MAIN)
    if first == "repository":
        work()
    told(parts, (ODD, "later"), (f"{ODD}/web", "later below"), session="again")
    assert turns(parts) == {"shop": ["main", "said in the worktree", "below", "later", "later below"]}


def test_the_host_tells_from_where_a_worktree_was_entered(parts: Any) -> None:
    entered = {
        "type": "worktree-state", "sessionId": "s1", "worktreeSession": {"originalCwd": MAIN, "worktreePath": ODD},
    }  # fmt: skip
    left = {"type": "worktree-state", "sessionId": "s1", "worktreeSession": None}
    parts.machine.transcript(parts.machine.line("user", "first", cwd=MAIN), entered, left)
    told(parts, (ODD, "in the worktree"))
    assert turns(parts) == {"shop": ["first", "in the worktree"]}


@pytest.mark.invariant(
    "One resolver tells a directory's project, without a child process; a moved folder is its project, and nothing weak is merged"
)
def test_neighbours_stay_apart(parts: Any, tmp_path: Path) -> None:
    here = tmp_path / "shop-worktrees" / "shop-2"
    repository(here)
    for place in (MAIN, "/w/shop-12", "/w/shopping", "/w/trees/fix", str(here), "/w/x-worktrees/other"):
        told(parts, (place, "hello"), session=place.replace("/", "-"))
    entered(parts, here, MAIN)
    assert roots(parts) == {MAIN, "/w/shop-12", "/w/shopping", "/w/trees/fix", str(here), "/w/x-worktrees/other"}


def test_a_known_repository_that_is_gone_is_nobodys_worktree(parts: Any, tmp_path: Path) -> None:
    blog = repository(tmp_path / "blog")
    told(parts, (blog, "blog"), (MAIN, "main"))
    shutil.rmtree(blog)
    entered(parts, blog, MAIN)
    told(parts, (blog, "later"), session="s2")
    assert turns(parts) == {"blog": ["blog", "later"], "shop": ["main"]}


def test_two_that_were_entered_from_each_other_are_one_project(parts: Any) -> None:
    told(parts, (MAIN, "main"), (ODD, "odd"))
    entered(parts, ODD, MAIN)
    entered(parts, MAIN, ODD)
    assert turns(parts) == {"shop": ["main", "odd"]}


def test_a_worktree_that_never_was_a_project_can_be_split_off_and_stays_so(parts: Any) -> None:
    told(parts, (MAIN, "main"), (TREE, "tree"))
    parts.call("csm_project_split", whole="shop", place=TREE, by_person=True)
    told(parts, (TREE, "later"), session="s2")
    assert turns(parts) == {"shop": ["main"], "shop-12": ["tree", "later"]}


def test_a_repository_that_is_made_where_a_worktree_was_is_its_own(parts: Any, tmp_path: Path) -> None:
    first, second = (tmp_path / "shop-worktrees" / name for name in ("shop-1", "shop-2"))
    told(parts, (first, "old"), (second, "other"), session="b")
    assert turns(parts) == {"shop": ["old", "other"]}
    repository(first)
    second.mkdir()
    told(parts, (first, "new"), (second, "newer"), session="c")
    assert turns(parts) == {"shop": ["old", "other"], "shop-1": ["new"], "shop-2": ["newer"]}


@pytest.mark.invariant(
    "One resolver tells a directory's project, without a child process; a moved folder is its project, and nothing weak is merged"
)
def test_nothing_goes_through_a_wall_but_what_is_new_goes_behind_its_repositorys(parts: Any) -> None:
    told(parts, (TREE, "We deploy on Fridays, always."), (ODD, "odd"), (MAIN, "main"))
    parts.call("csm_project_lens", name="acme", places=ODD, wall=True, by_person=True)
    entered(parts, ODD, MAIN)
    told(parts, (ODD, "behind the wall"), session="s2")
    assert turns(parts)["fix"] == ["odd", "behind the wall"]
    parts.call("csm_project_lens", name="bolt", places=MAIN, wall=True, by_person=True)
    told(parts, ("/w/shop-worktrees/shop-99", "new"), session="s3")
    assert turns(parts)["shop"][-1] == "new" and listed(parts)["shop"]["workspace"] == "bolt"
    parts.call("csm_project_lens", name="acme", places="/w/shop-worktrees", wall=True, by_person=True)
    told(parts, ("/w/shop-worktrees/shop-7", "acme's"), session="s4")
    assert turns(parts)["shop-7"] == ["acme's"] and listed(parts)["shop-7"]["workspace"] == "acme"


def test_a_purged_project_does_not_come_back_by_its_worktrees(parts: Any) -> None:
    told(parts, (MAIN, "main"), (TREE, "tree"))
    purged(parts, Path(MAIN))
    told(parts, ("/w/shop-worktrees/shop-50", "another tree"), (TREE, "tree"), session="s2")
    texts_left = {text for texts in turns(parts).values() for text in texts}
    assert not texts_left & {"another tree", "tree", "main"}


def test_what_is_excluded_in_a_repository_is_excluded_in_its_worktrees(parts: Any) -> None:
    parts.background.context.excludes = Excludes(projects=(MAIN,))
    told(parts, (TREE, "left out"), session="s1")
    told(parts, ("/w/other", "kept"), (TREE, "left out"), session="s2")
    assert turns(parts) == {"other": ["kept"]}
