"""What a transcript says of worktrees: which directory was made one of which repository; pure.

Told by shell calls and what they printed: `git worktree add` that says it prepared one, and `git worktree list`
where the directory it was run in is among those listed. Anything else is no evidence: a text may speak of worktrees.
"""

from __future__ import annotations

import re
import shlex

#: Longer shell lines are programs of their own.
MOST_CHARACTERS = 8_000
_AND_THEN = re.compile(r"&&|\|\||;|\n")
#: A path ends where its last letter stands: tried behind each of many spaces the pattern would take a second for 8 KB.
_LISTED = re.compile(
    r"^(/.*?)(?<! ) +(?:[0-9a-f]{7,64} +(?:\[[^\]\n]{1,300}\]|\(detached HEAD\))|\(bare\))(?: .*)?$", re.MULTILINE
)
_PORCELAIN = re.compile(r"^worktree (/.+)$", re.MULTILINE)
_PREPARED = re.compile(r"^Preparing worktree \(", re.MULTILINE)
#: Options of `git` and of `git worktree add` that are followed by a value.
_WITH_VALUE = frozenset({"-c", "--git-dir", "--work-tree", "--namespace", "-b", "-B", "--reason"})
#: What only the shell knows.
_UNKNOWN = re.compile(r"[$`*?~]")


def claims(line: str, printed: str, cwd: str) -> list[tuple[str, str]]:
    """(worktree, a directory of its repository) as far as a shell line, run in `cwd`, and its output tell."""
    if "worktree" not in line or not cwd or len(line) > MOST_CHARACTERS:
        return []
    folder, added, found = cwd, [], []
    for part in _AND_THEN.split(line):
        words = _words(part)
        if words[:1] == ["cd"]:
            folder = _below(folder, words[1]) if len(words) == 2 else ""
        elif words[:1] == ["git"]:
            where, rest = _git(words[1:], folder)
            if rest[:2] == ["worktree", "add"] and (plain := _plain(rest[2:])):
                added.append((_below(where, plain[0]), where))
            elif rest[:2] == ["worktree", "list"]:
                found += _listed(printed, where)
    if len(_PREPARED.findall(printed)) == len(added):
        found += added
    return [(tree, main) for tree, main in found if tree and main]


def _words(part: str) -> list[str]:
    try:
        return shlex.split(part.partition("|")[0], comments=True)
    except ValueError:  # a quote that is not closed: it goes on in what was split off
        return []


def _git(words: list[str], folder: str) -> tuple[str, list[str]]:
    """Where git works, and its words from the subcommand on."""
    rest = list(words)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        value = rest.pop(0) if option in _WITH_VALUE | {"-C"} and rest else ""
        if option == "-C":
            folder = _below(folder, value)
    return folder, rest


def _plain(words: list[str]) -> list[str]:
    """The arguments that are no options and no values of options; redirections end them."""
    found: list[str] = []
    rest = iter(words)
    for word in rest:
        if re.match(r"\d?[<>]|&>", word):
            break
        if word in _WITH_VALUE:
            next(rest, None)
        elif not word.startswith("-"):
            found.append(word)
    return found


def _listed(printed: str, folder: str) -> list[tuple[str, str]]:
    """The worktrees in a listing, which names the repository first, when `folder` is in one of them."""
    trees = [tree.rstrip() for tree in _PORCELAIN.findall(printed) or _LISTED.findall(printed)]
    if not any(folder == tree or folder.startswith(f"{tree}/") for tree in trees):
        return []
    return [(tree, trees[0].removesuffix("/.bare")) for tree in trees[1:]]


def _below(folder: str, path: str) -> str:
    """A path as the shell takes it in a directory, "" for one that only the shell knows."""
    if _UNKNOWN.search(path) or not path:
        return ""
    if path.startswith("/"):
        return path
    return f"{folder}/{path}" if folder else ""
