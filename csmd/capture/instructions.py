"""Which instruction files the host loads for a directory, in its order and with its content; pure.

The measure is what Claude Code 2.1.329 writes into its own transcripts (`attachment: instructions`): the
tables and turns below were measured on it and are compared with it in tests/capture/test_instructions.py and
tests/e2e/test_instructions.py. The disk comes as a value: what cannot be read is not there.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from csmd.capture import globs, imports, matter, memdir
from csmd.capture.inline import JS_SPACE

Kind = Literal["Managed", "User", "Project", "Local", "AutoMem"]

#: As each stands in what the model reads.
LABELS: dict[Kind, str] = {
    "Managed": "organization-managed policy instructions",
    "User": "user's private global instructions for all projects",
    "Project": "project instructions, checked into the codebase",
    "Local": "user's private project instructions, not checked in",
    "AutoMem": "user's auto-memory, persists across conversations",
}
#: A longer file is not loaded, nor is what stands deeper in a chain of imports (the first file is one of them).
MAX_BYTES = 4 * 1024 * 1024
MAX_HOPS = 5
#: Beyond this a tree is not instructions any more: the rest is left out, and told.
MAX_FILES = 1000
MAX_FOLDERS = 500
MAX_TOTAL_CHARACTERS = 16 * 1024 * 1024

#: What can be imported, by its ending; a name without one can.
IMPORTED = frozenset(
    """adoc asciidoc astro bash bat c cc cfg cjs clj cljc cljs cmake cmd conf cpp cs css csv cts cxx dart diff edn ejs
    elm env erb erl ex exs f f90 f95 fish for go gql gradle graphql h hbs hpp hrl hs htm html hxx ini jade java js json
    jsx kt kts latex less lhs lock log lua make makefile md mjs ml mli mts org patch php pl pm properties proto ps1 pug
    py pyi pyw r rake rb rs rst sass sbt scala scss sh sql svelte swift tex text toml ts tsx txt vue xml yaml yml
    zsh""".split()
) - {"properties"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """A name in a directory."""

    name: str
    folder: bool


@dataclass(frozen=True, slots=True)
class Disk:
    """The disk: `read` a file's bytes, None for what is no file or too long; `names` in the directory's own order;
    `real` a path without links."""

    read: Callable[[str], bytes | None]
    names: Callable[[str], list[Entry]]
    real: Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a session starts and what its user has chosen; every path absolute, `start` without links."""

    start: str
    home: str
    configs: tuple[str, ...]
    """The assistant's configuration directories."""
    managed: str = ""
    memories: tuple[str, ...] = ()
    """The assistant's memory directories for this project."""
    excludes: tuple[str, ...] = ()
    worktree: str = ""
    """The root of the git work tree around `start` when it is one of several, else ""."""
    main: str = ""
    """The root of that repository's main work tree."""
    outside: bool = False
    """Whether the user allowed this project imports from outside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One file the host loads: `content` as it tells it, `root` the directory it was found for."""

    path: str
    kind: Kind
    content: str
    root: str
    parent: str = ""
    globs: tuple[str, ...] = ()
    rule: bool = False
    raw: str = ""
    """The text without its head, as nested files are told."""


@dataclass(slots=True)
class _Reading:
    """What was found so far, and what was looked at."""

    place: Place
    disk: Disk
    found: list[Instruction] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    size: int = 0


def loaded(place: Place, disk: Disk) -> list[Instruction]:
    """What the host has loaded when a session starts, in its order; the memory's index last."""
    found = _start(place, disk, agents=False).found
    names = ("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md")
    own = {f"{folder}/{name}" for folder in _between("", place.start) for name in names}
    if not any(one.path in own for one in found):
        found = _start(place, disk, agents=True).found
    found = [one for one in found if not one.globs]
    indexes = (_index(folder, disk) for folder in place.memories)
    return [*found, *(one for one in indexes if one is not None)]


def nested(place: Place, disk: Disk, target: str) -> list[Instruction]:
    """What the host adds when the file `target` is read: the directories below the start, and rules whose `paths` match."""
    reading = _start(place, disk, agents=False)
    known = {one.path for one in reading.found if not one.globs}
    waiting = [one for one in reading.found if one.globs]
    user = [one for one in waiting if one.kind == "User" and globs.applies(one.globs, _below(place.start, target))]
    before = len(reading.found)
    for folder in _between(place.start, posixpath.dirname(target)):
        _main_files(reading, folder)
        _file(reading, f"{folder}/CLAUDE.local.md", "Local", folder)
        _rules(reading, f"{folder}/.claude/rules", "Project", folder)
    inside = [
        one for one in reading.found[before:] if not one.globs or globs.applies(one.globs, _below(one.root, target))
    ]
    above = [one for one in waiting if one.kind == "Project" and globs.applies(one.globs, _below(one.root, target))]
    found = [*user, *inside, *above]
    return [replace(one, content=one.raw) for one in found if one.path not in known]


def build(found: list[Instruction]) -> str:
    """The loaded files as the model reads them, one after the other."""
    return "\n\n".join(f"Contents of {one.path} ({LABELS[one.kind]}):\n\n{one.content}" for one in found)


def _start(place: Place, disk: Disk, *, agents: bool) -> _Reading:
    reading = _Reading(place, disk)
    if place.managed:
        _file(reading, f"{place.managed}/CLAUDE.md", "Managed", place.managed)
        _rules(reading, f"{place.managed}/.claude/rules", "Managed", place.managed)
    for config in place.configs:
        _file(reading, f"{config}/CLAUDE.md", "User", config)
        _rules(reading, f"{config}/rules", "User", config)
    for folder in _between("", place.start):
        theirs = _is_of_main(place, folder)
        if not agents and not theirs:
            _main_files(reading, folder)
        if not theirs:
            _rules(reading, f"{folder}/.claude/rules", "Project", folder)
        if agents and not theirs:
            _file(reading, f"{folder}/AGENTS.md", "Project", folder)
            _file(reading, f"{folder}/.claude/AGENTS.md", "Project", folder)
        if not agents:
            _file(reading, f"{folder}/CLAUDE.local.md", "Local", folder)
    return reading


def _main_files(reading: _Reading, folder: str) -> None:
    _file(reading, f"{folder}/CLAUDE.md", "Project", folder)
    _file(reading, f"{folder}/.claude/CLAUDE.md", "Project", folder)


def _is_of_main(place: Place, folder: str) -> bool:
    """Whether a directory belongs to the main work tree and the session to one inside it, which has its own copy."""
    if not place.worktree or place.worktree == place.main or not _inside(place.worktree, place.main):
        return False
    return _inside(folder or "/", place.main) and not _inside(folder or "/", place.worktree)


def _between(above: str, below: str) -> list[str]:
    """The directories under `above` down to `below`, the root as ""."""
    found: list[str] = []
    folder = below.rstrip("/")
    while _inside(folder or "/", above or "/") and folder != above:
        found.append(folder)
        if not folder:
            break
        folder = posixpath.dirname(folder).rstrip("/")
    return ([""] if not above and "" not in found else []) + found[::-1]


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _below(root: str, target: str) -> str:
    return target[len(root.rstrip("/")) + 1 :] if _inside(target, root or "/") else ""


def _file(
    reading: _Reading, path: str, kind: Kind, root: str, *, parent: str = "", rule: bool = False, hops: int = 0
) -> None:
    """Takes in a file and what it imports, depth first, each once."""
    place, disk = reading.place, reading.disk
    if path in reading.seen or hops >= MAX_HOPS or len(reading.found) >= MAX_FILES or "\0" in path:
        return
    if kind != "Managed" and globs.excluded(path, place.excludes):
        return
    real = disk.real(path)
    if real in reading.seen:
        return
    one = _read(disk, path, kind, root, rule=rule)
    if one is None or reading.size + len(one[0].content) > MAX_TOTAL_CHARACTERS:
        return
    reading.seen |= {path, real}
    reading.size += len(one[0].content)
    reading.found.append(replace(one[0], parent=parent, rule=rule))
    for target in one[1]:
        goal = _resolved(target, posixpath.dirname(real), place.home)
        if goal and (kind == "User" or place.outside or _both_inside(goal, disk, place.start)):
            _file(reading, goal, kind, root, parent=path, rule=rule, hops=hops + 1)


def _both_inside(path: str, disk: Disk, start: str) -> bool:
    return _inside(path, start) and _inside(disk.real(path), start)


def _resolved(target: str, base: str, home: str) -> str:
    """The path an import means, "" for one that is never loaded."""
    if target.startswith("~/"):
        path = posixpath.join(home, target[2:])
    else:
        path = posixpath.join(base, target)
    path = posixpath.normpath(path)
    stem, dot, ending = posixpath.basename(path).rpartition(".")
    return path if not dot or not stem or ending.lower() in IMPORTED else ""


def _read(disk: Disk, path: str, kind: Kind, root: str, *, rule: bool) -> tuple[Instruction, list[str]] | None:
    """One file and its imports; None for one that is not there or says nothing."""
    data = disk.read(path)
    if data is None:
        return None
    head, body = matter.split(data.decode("utf-8", "replace").removeprefix("\ufeff"))
    content, targets = imports.read(body)
    content = content.strip("".join(JS_SPACE))
    if not content or any("\0" in target for target in targets):
        return None
    patterns = globs.of_rule(matter.mapping(head)[0].get("paths")) if rule and "paths" in head else ()
    return Instruction(path=path, kind=kind, content=content, root=root, globs=patterns, raw=body), targets


def _rules(reading: _Reading, folder: str, kind: Kind, root: str) -> None:
    """Takes in the rules in a directory and below, in the directory's own order; links count where they lead."""
    real = reading.disk.real(folder)
    if real in reading.folders or len(reading.folders) >= MAX_FOLDERS:
        return
    reading.folders.add(real)
    for entry in reading.disk.names(folder):
        path = f"{folder}/{entry.name}"
        if entry.folder:
            _rules(reading, path, kind, root)
        elif entry.name.endswith(".md"):
            goal = reading.disk.real(path)
            if goal == path or kind != "Project" or _inside(goal, reading.place.start):
                _file(reading, goal, kind, root, rule=True)


def _index(folder: str, disk: Disk) -> Instruction | None:
    """The index of the assistant's own memory, cut as the host cuts it."""
    path = f"{folder}/{memdir.INDEX}"
    data = disk.read(path)
    if data is None:
        return None
    _, body = matter.split(data.decode("utf-8", "replace").removeprefix("\ufeff"))
    content = imports.without_comments(body).strip("".join(JS_SPACE))
    return Instruction(path=path, kind="AutoMem", content=memdir.cut_index(content), root=folder) if content else None
