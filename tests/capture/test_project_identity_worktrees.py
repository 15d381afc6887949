"""What a transcript says of worktrees: only what git itself printed for a command that asked it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.capture import project_identity

PREPARED = "Preparing worktree (new branch 'fix')\nHEAD is now at 1a2b3c4 first"
LIST = "/w/shop      1a2b3c4 [main]\n/w/trees/fix  5d6e7f8 [fix/it] locked\n/w/old one   9a8b7c6 (detached HEAD) prunable\n"
PORCELAIN = "worktree /w/shop\nHEAD 1a2b3c4\nbranch refs/heads/main\n\nworktree /w/trees/fix\nHEAD 5d6e7f8\ndetached\n"
BARE = "/w/shop/.bare (bare)\n/w/shop/main  1a2b3c4 [main]\n"


@pytest.mark.parametrize(
    ("line", "printed", "found"),
    [
        ("git worktree add ../fix -b fix", PREPARED, [("/w/shop/../fix", "/w/shop")]),
        ("git worktree add -b fix /w/fix origin/main 2>&1", PREPARED, [("/w/fix", "/w/shop")]),
        ("cd /w/other && git worktree add --detach '../my fix' | tail", PREPARED, [("/w/other/../my fix", "/w/other")]),
        ("git -C /w/other -c a=b worktree add x", PREPARED, [("/w/other/x", "/w/other")]),
        ("git fetch; git worktree add ../fix", "fatal: '../fix' already exists", []),
        ("git worktree add ../fix && git worktree add ../two", PREPARED, []),
        ("git worktree add $DIR", PREPARED, []),
        ("cd $(mktemp -d) && git worktree add fix", PREPARED, []),
        ("echo git worktree add ../fix", PREPARED, []),
        ("cat notes-on-worktrees.txt", LIST, []),
        ("git worktree list", LIST, [("/w/trees/fix", "/w/shop"), ("/w/old one", "/w/shop")]),
        ("git worktree list --porcelain", PORCELAIN, [("/w/trees/fix", "/w/shop")]),
        ("git -C /w/elsewhere worktree list", LIST, []),
        ("git worktree list", "fatal: not a git repository", []),
        ("git worktree add 'unclosed", PREPARED, []),
    ],
)
def test_a_worktree_is_what_git_says_that_it_made_or_lists(
    line: str, printed: str, found: list[tuple[str, str]]
) -> None:
    assert project_identity.claims(line, printed, "/w/shop") == found


def test_worktrees_of_a_hidden_bare_repository_are_its_folders() -> None:
    assert project_identity.claims("git worktree list", BARE, "/w/shop/main") == [("/w/shop/main", "/w/shop")]


def test_a_listing_of_many_spaces_is_read_in_time_that_grows_with_it() -> None:
    begun = time.process_time()
    assert project_identity.claims("git worktree list", "/w/shop" + " " * 8_000, "/w/shop") == []
    assert time.process_time() - begun < 0.3


@given(st.text(max_size=200), st.text(max_size=200), st.text(max_size=20))
def test_any_command_and_output_are_survived(line: str, printed: str, cwd: str) -> None:
    assert isinstance(project_identity.claims(f"git worktree {line}", printed, cwd), list)
