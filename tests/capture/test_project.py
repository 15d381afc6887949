"""Which project a directory belongs to: told from git's own files, as git itself made them; nothing else is run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.capture import project
from csmd.model import Project
from csmd.store import files


def git(where: Path, *arguments: str) -> None:
    """The real git, without the settings of whoever runs the tests."""
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(where), "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b",
    }  # fmt: skip
    settings = ("-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *settings, *arguments], cwd=where, env=environment, check=True, capture_output=True)


def repository(where: Path) -> Path:
    where.mkdir(parents=True)
    git(where, "init")
    git(where, "commit", "--allow-empty", "-m", "first")
    return where


def identify(place: Path | str, *, start: Path | str = "") -> Project:
    return project.identify(str(place), read=files.read_small, start=str(start))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path.resolve()


@pytest.fixture
def main(root: Path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("no git on this machine")
    return repository(root / "main")


def test_a_repository_is_one_project_from_every_directory_in_it(main: Path) -> None:
    found = identify(main)
    assert (found.kind, found.root, found.name) == ("git", str(main), "main")
    (main / "a" / "b").mkdir(parents=True)
    for place in (main / "a" / "b", main / "not" / "there", main / ".git" / "hooks", f"{main}/", f"{main}/a/./b/..//"):
        assert identify(place) == found


def test_a_worktree_belongs_to_its_repository_wherever_it_stands(main: Path, root: Path) -> None:
    git(main, "worktree", "add", str(root / "elsewhere" / "tree"), "-b", "one")
    git(main, "worktree", "add", str(main / ".worktrees" / "two"), "-b", "two")
    (root / "elsewhere" / "tree" / "deep").mkdir()
    for place in (root / "elsewhere" / "tree", root / "elsewhere" / "tree" / "deep", main / ".worktrees" / "two"):
        assert identify(place) == identify(main)


def test_a_worktree_that_was_moved_with_its_link_in_relative_form_is_still_found(main: Path, root: Path) -> None:
    tree = root / "tree"
    git(main, "worktree", "add", str(tree), "-b", "one")
    (tree / ".git").write_text("gitdir: ../main/.git/worktrees/tree\n")
    assert identify(tree) == identify(main)


def test_a_worktree_of_a_bare_repository_belongs_to_it(main: Path, root: Path) -> None:
    git(root, "clone", "--bare", str(main), "store.git")
    git(root / "store.git", "worktree", "add", str(root / "one"), "main")
    git(root / "store.git", "worktree", "add", str(root / "two"), "-b", "two")
    assert identify(root / "one").key == identify(root / "two").key != identify(main).key


def test_a_submodule_is_a_project_of_its_own(main: Path, root: Path) -> None:
    other = repository(root / "library")
    git(main, "submodule", "add", str(other), "vendor/library")
    inside = identify(main / "vendor" / "library" / "src")
    assert (inside.kind, inside.root) == ("git", str(main / "vendor" / "library"))
    assert len({inside.key, identify(main).key, identify(other).key}) == 3


def test_a_repository_inside_another_is_its_own(main: Path) -> None:
    inner = repository(main / "inner")
    assert identify(inner).key != identify(main).key
    assert identify(main / "other").key == identify(main).key


def test_a_repository_with_its_data_elsewhere_is_told_by_its_data(root: Path, main: Path) -> None:
    place = root / "apart"
    place.mkdir()
    git(place, "init", "--separate-git-dir", str(root / "data"))
    found = identify(place / "sub")
    assert (found.kind, found.root) == ("git", str(place))


@pytest.mark.parametrize("marker", ["a directory without HEAD", "an empty file", "another file", "a broken link"])
def test_something_called_dot_git_that_is_none_is_passed_over(root: Path, main: Path, marker: str) -> None:
    for outer, kind in ((main, "git"), (root / "plain", "path")):
        place = outer / "x"
        place.mkdir(parents=True)
        match marker:
            case "a directory without HEAD":
                (place / ".git").mkdir()
            case "an empty file":
                (place / ".git").touch()
            case "another file":
                (place / ".git").write_bytes(b"\xff\x00 not git")
            case _:
                (place / ".git").symlink_to("nowhere")
        assert identify(place).kind == kind
        assert identify(place).root == str(main if kind == "git" else place)


def test_a_link_to_git_data_that_is_gone_is_a_project_still(root: Path) -> None:
    (root / "tree").mkdir()
    (root / "tree" / ".git").write_text("gitdir: /nowhere/main/.git/worktrees/tree\n")
    found = identify(root / "tree" / "sub")
    assert (found.kind, found.root) == ("git", str(root / "tree"))


def test_a_symbolic_link_is_a_place_of_its_own_because_nothing_is_looked_up(main: Path, root: Path) -> None:
    (root / "link").symlink_to(main)
    assert identify(root / "link").kind == "git"
    assert identify((root / "link").resolve()) == identify(
        main
    )  # the client reports real paths, csmd's own verbs resolve


def test_without_git_the_path_is_the_project(root: Path) -> None:
    found = identify(root / "notes")
    assert (found.kind, found.root, found.name) == ("path", str(root / "notes"), "notes")
    assert identify(root / "notes" / "sub").key != found.key
    assert identify(f"{root}/x/../notes/./") == found
    assert project._key("git", "/p") != project._key("path", "/p")


@pytest.mark.parametrize(
    ("cwd", "start", "place"),
    [
        ("/w/p", "/w/p", "/w/p"),
        ("/w/p/sub/deep", "/w/p", "/w/p"),
        ("/w/p/sub", "/w/p/", "/w/p"),
        ("/w/pq", "/w/p", "/w/pq"),
        ("/w", "/w/p", "/w"),
        ("/w/other", "/w/p", "/w/other"),
        ("/w/p/../q", "/w/p", "/w/q"),
        ("/w/p/sub", "", "/w/p/sub"),
        ("", "/w/p", "/w/p"),
        ("", "", "/"),
        ("/w/p", "/", "/"),
        ("/../..", "", "/"),
        ("relative/path", "", "/relative/path"),
        ("/gone/for/good", "", "/gone/for/good"),
        ("/Users/alex/it's ours", "/Users/alex/it's ours", "/Users/alex/it's ours"),
        ("/a\0b", "", "/a\0b"),
    ],
)
def test_a_directory_below_the_sessions_start_belongs_to_the_start(cwd: str, start: str, place: str) -> None:
    found = project.identify(cwd, read=lambda path: None, start=start)
    assert (found.kind, found.root, found.name) == ("path", place, place.rpartition("/")[2] or "/")


def test_a_repository_counts_more_than_the_sessions_start(main: Path, root: Path) -> None:
    assert identify(main / "a", start=root) == identify(main)
    assert identify(root / "b", start=root).root == str(root)


@given(st.text(max_size=60), st.text(max_size=20))
def test_any_path_has_a_project(cwd: str, start: str) -> None:
    found = project.identify(cwd, read=files.read_small, start=start)
    assert len(found.key) == 16 and found.root.startswith("/") and found.name


@given(st.binary(max_size=80))
def test_any_content_of_a_dot_git_file_is_survived(content: bytes) -> None:
    held = content.decode("utf-8", "replace")
    assert project.identify("/a/b", read=lambda path: held if path == "/a/b/.git" else None).key
    assert project.identify(
        "/a/b", read=lambda path: {"/a/b/.git": "gitdir: d", "/a/b/d/commondir": held}.get(path)
    ).key


def test_a_path_deeper_than_anyones_ends() -> None:
    asked: list[str] = []

    def read(path: str) -> str | None:
        asked.append(path)
        return None

    project.identify("/x" * 1000, read=read)
    assert len(asked) == project.MAX_DEPTH
