"""Finds the instruction files that assistants load for a directory: CLAUDE.md with rules and imports, others' by their names."""

from __future__ import annotations

import fnmatch
import os
import posixpath
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from csmd import config, wire
from csmd.capture import markdown_imports, project_identity
from csmd.errors import BadInput
from csmd.hosts.adapter import InstructionNames, Memo
from csmd.hosts.adapters import ADAPTERS, CLAUDE, CLAUDE_MEMORY
from csmd.hosts.json_fields import json_object, moment_of
from csmd.paths import is_directory
from csmd.privacy.fingerprints import clean
from csmd.privacy.redaction import redact
from csmd.store import files, instruction_rows, projects, tombstones
from csmd.store.core import Store
from csmd.text import display, markdown, tokens
from csmd.text.markdown import SPACE
from csmd.vocabulary import INDEX

Kind = Literal["Managed", "User", "Project", "Local", "AutoMem"]

#: What the model is told each kind is.
LABELS: dict[Kind, str] = {
    "Managed": "organization-managed policy instructions",
    "User": "user's private global instructions for all projects",
    "Project": "project instructions, checked into the codebase",
    "Local": "user's private project instructions, not checked in",
    "AutoMem": "user's auto-memory, persists across conversations",
}
#: A longer file is not loaded, nor one deeper in a chain of imports (the first file counts).
MAX_BYTES = 4 * 1024 * 1024
MAX_HOPS = 5
#: More files, directories or characters are no instructions any more: the rest is left out.
MAX_FILES = 1000
MAX_FOLDERS = 500
MAX_TOTAL_CHARACTERS = 16 * 1024 * 1024

#: What can be imported, by its ending; a name without one can.
IMPORTED = frozenset(
    """adoc asciidoc astro bash bat c cc cfg cjs clj cljc cljs cmake cmd conf cpp cs css csv cts cxx dart diff edn ejs
    elm env erb erl ex exs f f90 f95 fish for go gql gradle graphql h hbs hpp hrl hs htm html hxx ini jade java js json
    jsx kt kts latex less lhs lock log lua make makefile md mjs ml mli mts org patch php pl pm proto ps1 pug
    py pyi pyw r rake rb rs rst sass sbt scala scss sh sql svelte swift tex text toml ts tsx txt vue xml yaml yml
    zsh""".split()
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """A name in a directory."""

    name: str
    folder: bool


def _read_start(path: str | Path, limit: int) -> bytes | None:
    """The first bytes of a file, never waiting for the other end of a pipe; None when it cannot be read."""
    try:
        with files.open_regular(Path(path)) as file:
            return file.read(limit)
    except (OSError, ValueError):
        return None


def _read_whole(path: str) -> bytes | None:
    data = _read_start(path, MAX_BYTES + 1)
    return data if data is not None and len(data) <= MAX_BYTES else None


def _entries(path: str) -> list[Entry]:
    entries: list[Entry] = []
    with suppress(OSError, ValueError), os.scandir(path) as listing:
        for entry in islice(listing, MOST_NAMES):
            with suppress(OSError):  # a link that leads round in a circle
                entries.append(Entry(entry.name, entry.is_dir()))
    return entries


@dataclass(frozen=True, slots=True)
class Disk:
    """The disk: `read` a file's bytes, None for what is no file or too long; `entries` of a directory in its own order;
    `real` a path without links."""

    read: Callable[[str], bytes | None] = _read_whole
    entries: Callable[[str], list[Entry]] = _entries
    real: Callable[[str], str] = os.path.realpath


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Whose files are read; every path absolute."""

    home: str
    configs: tuple[str, ...]
    """The assistant's configuration directories."""
    managed: str = ""
    """Where an organisation's files lie."""
    others: tuple[tuple[str, str], ...] = ()
    """(host, configuration directory) of the other assistants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a session starts and what its user has chosen; every path absolute, `start` without links."""

    start: str
    user: User
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
    """One file that the host loads: `content` as the model reads it, `root` the directory it was found for."""

    path: str
    kind: Kind
    content: str
    root: str
    is_conditional: bool = False
    """Whether it is a rule for some files, loaded only when one of them is read."""


def loaded(place: Place, disk: Disk = Disk()) -> list[Instruction]:
    """What the host has loaded when a session starts, in its order; the memory's index last."""
    own = {f"{folder}/{name}" for folder in _ancestors(place.start) for name in (*MAIN_FILES, "CLAUDE.local.md")}
    loader = _Loader(place, disk)
    loader.load_start(MAIN_FILES)
    if not any(file.path in own for file in loader.found):
        loader = _Loader(place, disk)
        loader.load_start(AGENTS_FILES)
    indexes = (_memory_index(folder, disk) for folder in place.memories)
    unconditional = [file for file in loader.found if not file.is_conditional]
    return [*unconditional, *(index for index in indexes if index is not None)]


def loaded_by(names: InstructionNames, folder: str, root: str, disk: Disk = Disk()) -> list[Instruction]:
    """What another assistant has loaded when a session starts in a project's root, in its order."""
    places: tuple[tuple[Kind, str, tuple[tuple[str, ...], ...]], ...] = (
        ("User", folder, names.user),
        ("Project", root, names.project),
    )
    instructions: list[Instruction] = []
    for kind, place, rows in places:
        for row in rows:
            for name in row:
                texts = {
                    path: _parts(disk, path)[1].strip(SPACE)
                    for path in _named(os.path.normpath(f"{place}/{name}"), disk)
                }
                there = [
                    Instruction(path=path, kind=kind, content=text, root=place) for path, text in texts.items() if text
                ]
                if there:
                    instructions += there
                    break
    return instructions[:MAX_FILES]


def _named(path: str, disk: Disk) -> list[str]:
    """The files of a name whose last part may be a pattern."""
    folder, _, name = path.rpartition("/")
    if "*" not in name:
        return [path]
    names = sorted(entry.name for entry in disk.entries(folder) if not entry.folder)
    return [f"{folder}/{entry}" for entry in names if fnmatch.fnmatchcase(entry, name)]


def build(instructions: list[Instruction]) -> str:
    """The loaded instructions as the model reads them, one after the other."""
    return "\n\n".join(f"Contents of {file.path} ({LABELS[file.kind]}):\n\n{file.content}" for file in instructions)


#: A project's own files; where none of them is, the host looks for the others.
MAIN_FILES = ("CLAUDE.md", ".claude/CLAUDE.md")
AGENTS_FILES = ("AGENTS.md", ".claude/AGENTS.md")


class _Loader:
    """Collects instruction files with what they import, each once."""

    def __init__(self, place: Place, disk: Disk) -> None:
        self.found: list[Instruction] = []
        self._place = place
        self._disk = disk
        self._seen: set[str] = set()
        self._folders: set[str] = set()
        self._size = 0

    def load_start(self, names: tuple[str, ...]) -> None:
        """Loads what holds at the start of a session; `names` are the files of a project's directories."""
        place, managed = self._place, self._place.user.managed
        if managed:
            self._load(f"{managed}/CLAUDE.md", "Managed", managed)
            self._load_rules(f"{managed}/.claude/rules", "Managed", managed)
        for folder in place.user.configs:
            self._load(f"{folder}/CLAUDE.md", "User", folder)
            self._load_rules(f"{folder}/rules", "User", folder)
        for folder in _ancestors(place.start):
            is_own, has_agents = not _is_of_main(place, folder), names == AGENTS_FILES
            if is_own and has_agents:
                self._load_rules(f"{folder}/.claude/rules", "Project", folder)
            for name in names if is_own else ():
                self._load(f"{folder}/{name}", "Project", folder)
            if is_own and not has_agents:
                self._load_rules(f"{folder}/.claude/rules", "Project", folder)
            if not has_agents:
                self._load(f"{folder}/CLAUDE.local.md", "Local", folder)

    def _load(self, path: str, kind: Kind, root: str, *, is_rule: bool = False, hops: int = 0) -> None:
        """Takes in a file and what it imports, depth first."""
        if path in self._seen or hops >= MAX_HOPS or len(self.found) >= MAX_FILES or "\0" in path:
            return
        if kind != "Managed" and markdown_imports.is_excluded(path, self._place.excludes):
            return
        real = self._disk.real(path)
        if real in self._seen:
            return
        head, body = _parts(self._disk, path)
        content, targets = markdown_imports.read(body)
        content = content.strip(SPACE)
        fits = self._size + len(content) <= MAX_TOTAL_CHARACTERS
        if not content or not fits or any("\0" in target for target in targets):
            return
        self._seen |= {path, real}
        self._size += len(content)
        has_paths = is_rule and "paths" in head
        is_conditional = has_paths and markdown_imports.is_conditional(markdown.parse_head(head)[0].get("paths"))
        self.found.append(Instruction(path=path, kind=kind, content=content, root=root, is_conditional=is_conditional))
        for target in targets:
            goal = _import_path(target, posixpath.dirname(real), self._place.user.home)
            if goal and (kind == "User" or self._place.outside or self._is_of_project(goal)):
                self._load(goal, kind, root, is_rule=is_rule, hops=hops + 1)

    def _is_of_project(self, path: str) -> bool:
        return _inside(path, self._place.start) and _inside(self._disk.real(path), self._place.start)

    def _load_rules(self, folder: str, kind: Kind, root: str) -> None:
        """Takes in the rules in a directory and below, in the directory's own order; links count where they lead."""
        real = self._disk.real(folder)
        if real in self._folders or len(self._folders) >= MAX_FOLDERS:
            return
        self._folders.add(real)
        for entry in self._disk.entries(folder):
            path = f"{folder}/{entry.name}"
            if entry.folder:
                self._load_rules(path, kind, root)
            elif entry.name.endswith(".md"):
                goal = self._disk.real(path)
                if goal == path or kind != "Project" or _inside(goal, self._place.start):
                    self._load(goal, kind, root, is_rule=True)


def _is_of_main(place: Place, folder: str) -> bool:
    """Whether a directory belongs to the main work tree and the session to one inside it, which has its own copy."""
    if not place.worktree or place.worktree == place.main or not _inside(place.worktree, place.main):
        return False
    return _inside(folder or "/", place.main) and not _inside(folder or "/", place.worktree)


def _ancestors(folder: str) -> list[str]:
    """The directories from the root, which is "", down to `folder`."""
    parts = folder.rstrip("/").split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _import_path(target: str, base: str, home: str) -> str:
    """The path an import means, "" for one that is never loaded."""
    path = _joined(target, base, home)
    stem, dot, ending = posixpath.basename(path).rpartition(".")
    return path if not dot or not stem or ending.lower() in IMPORTED else ""


def _joined(written: str, base: str, home: str) -> str:
    """A path as written in a file of the directory `base`; `~/` means `home`."""
    path = posixpath.join(home, written[2:]) if written.startswith("~/") else posixpath.join(base, written)
    return posixpath.normpath(path)


def _parts(disk: Disk, path: str) -> tuple[str, str]:
    """A file's YAML head and its text; both "" when there is no such file."""
    return markdown.split_head((disk.read(path) or b"").decode("utf-8", "replace").removeprefix("\ufeff"))


def _memory_index(folder: str, disk: Disk) -> Instruction | None:
    """The index of the assistant's own memory, cut as the host cuts it."""
    path = f"{folder}/{INDEX}"
    content = markdown_imports.read(_parts(disk, path)[1])[0].strip(SPACE)
    if not content:
        return None
    return Instruction(path=path, kind="AutoMem", content=CLAUDE_MEMORY.cut_index(content), root=folder)


MAX_DEPTH = 10
MAX_INCLUDE_BYTES = 40 * 1024

_INCLUDE = re.compile(r"[ \t]*@include[ \t]+(\S.*?)[ \t]*\r?\n?")


class Merged:
    """The text that was put together so far, and what was left out and why."""

    def __init__(self, place: Place, disk: Disk) -> None:
        self._place = place
        self._disk = disk
        self.problems: list[str] = []
        self._files = self._size = 0

    def text(self, path: str, chain: tuple[str, ...] = ()) -> str | None:
        """A file with its includes in place; None when there is none."""
        if self._disk.read(path) is None:
            return None
        _, body = _parts(self._disk, path)
        chain = (*chain, self._disk.real(path))
        return "".join(self._line(line, path, chain) for line in body.splitlines(keepends=True)).strip()

    def _line(self, line: str, path: str, chain: tuple[str, ...]) -> str:
        include = _INCLUDE.fullmatch(line)
        if include is None:
            return line
        written = include.group(1).strip("\"'<>")
        goal = _joined(written, posixpath.dirname(chain[-1]), self._place.user.home)
        reason = self._refusal(goal, chain)
        inside = None if reason else self.text(goal, chain)
        if inside is None:
            self.problems.append(f"{path}: {written} was not included: {reason or 'there is no such file'}")
            return ""
        return inside + "\n"

    def _refusal(self, goal: str, chain: tuple[str, ...]) -> str:
        self._files += 1
        if "\0" in goal:
            return "that is no path"
        if self._disk.real(goal) in chain:
            return "it would include itself"
        if len(chain) > MAX_DEPTH:
            return f"more than {MAX_DEPTH} deep"
        size = len(self._disk.read(goal) or b"")
        self._size += size
        if size > MAX_INCLUDE_BYTES:
            return f"{size} bytes long; the limit is {MAX_INCLUDE_BYTES}"
        if self._files > MAX_FILES or self._size > MAX_TOTAL_CHARACTERS:
            return "too much was included already"
        return ""


def merged(place: Place, disk: Disk = Disk()) -> tuple[list[tuple[str, str, str]], list[str]]:
    """((scope, path, text) of each file, the most binding first; what was left out and why)."""
    reading = Merged(place, disk)
    paths: list[tuple[str, str]] = []
    for folder in place.user.configs:
        names = sorted(entry.name for entry in disk.entries(f"{folder}/rules") if not entry.folder)
        paths += [("managed", f"{folder}/rules/{name}") for name in names if name.endswith(".md")]
    paths += [("user", f"{folder}/CLAUDE.md") for folder in place.user.configs]
    paths += [("project", f"{place.start}/CLAUDE.md"), ("local", f"{place.start}/.claude/CLAUDE.md")]
    texts = [(scope, path, reading.text(path)) for scope, path in paths[:MAX_FILES]]
    return [(scope, path, body) for scope, path, body in texts if body], reading.problems


#: Most bytes of a settings file and of the host's state that are read, and most names of a directory.
SETTINGS_BYTES = 1024 * 1024
STATE_BYTES = 16 * 1024 * 1024
MOST_NAMES = 5000
MANAGED = {"darwin": "/Library/Application Support/ClaudeCode"}
MANAGED_ELSEWHERE = "/etc/claude-code"


#: (path, modified, size, inode) of files and directories.
Stamp = tuple[tuple[str, int, int, int], ...]


def user_of(settings: config.Config) -> User:
    """Whose files a daemon with this configuration reads."""
    managed = MANAGED.get(sys.platform, MANAGED_ELSEWHERE)
    configs = tuple(str(path) for path in settings.assistant_dirs)
    others = tuple((host, str(folder)) for host, folder in settings.host_dirs)
    return User(home=str(config.user_home()), configs=configs, managed=managed, others=others)


def place_of(directory: str, user: User) -> Place:
    """What bears on a session that starts in `directory`."""
    start = os.path.realpath(directory)
    settings = _settings(start, user)
    excludes = [each.get("claudeMdExcludes") for each in settings]
    patterns = [pattern for listed in excludes if isinstance(listed, list) for pattern in listed]
    worktree, main = _work_trees(start)
    return Place(
        start=start,
        user=user,
        memories=_memories(start, user, settings),
        excludes=tuple([pattern for pattern in patterns if isinstance(pattern, str)][:1000]),
        worktree=worktree,
        main=main,
        outside=any(_approved(config, user, {start, main}) for config in user.configs),
    )


def _memories(start: str, user: User, chosen: list[dict[str, Any]]) -> tuple[str, ...]:
    """The assistant's memory directories for a project: every work tree's are those of the main one."""
    if any(each.get("autoMemoryEnabled") is False for each in chosen):
        return ()
    for each in chosen:
        named = each.get("autoMemoryDirectory")
        if isinstance(named, str) and named.startswith(("/", "~/")):
            return (posixpath.normpath(posixpath.join(user.home, named[2:]) if named[0] == "~" else named),)
    main = os.path.realpath(project_identity.identified(start).root)
    return tuple(CLAUDE_MEMORY.folder(config, main) for config in user.configs)


def _settings(start: str, user: User) -> list[dict[str, Any]]:
    paths = [
        f"{user.managed}/managed-settings.json",
        f"{start}/.claude/settings.local.json",
        f"{start}/.claude/settings.json",
        *(f"{config}/settings.json" for config in user.configs),
    ]
    return [_read_object(path, SETTINGS_BYTES) for path in paths]


def _read_object(path: str, limit: int) -> dict[str, Any]:
    """The JSON object in a file of the host's; {} for none that can be read."""
    return json_object((files.read_small(path, limit) or "").removeprefix("\ufeff")) or {}


def _approved(config: str, user: User, roots: set[str]) -> bool:
    """Whether the user allowed one of these directories imports from outside."""
    for path in (f"{config}/.claude.json", f"{user.home}/.claude.json"):
        states = _read_object(path, STATE_BYTES).get("projects")
        entries = [states.get(root) for root in roots] if isinstance(states, dict) else []
        if any(
            isinstance(entry, dict) and entry.get("hasClaudeMdExternalIncludesApproved") is True for entry in entries
        ):
            return True
    return False


def _work_trees(start: str) -> tuple[str, str]:
    """(the work tree around a directory when it is a linked one, the main one), each "" when there is none."""
    for folder in (Path(start), *Path(start).parents)[: project_identity.MAX_DEPTH]:
        marker = files.read_small(str(folder / ".git"))
        if marker is None:
            continue
        main = os.path.realpath(project_identity.identified(str(folder)).root)
        return (str(folder) if marker.startswith("gitdir:") else ""), main
    return "", ""


def load(directory: str, user: User) -> list[Instruction]:
    """What the host loads for a session that starts in `directory` now."""
    return loaded(place_of(directory, user))


def stamp(paths: Iterable[str]) -> Stamp:
    """The times, sizes and inodes by which a change of these files and directories shows, without reading one."""
    stamps: list[tuple[str, int, int, int]] = []
    for path in sorted(paths):
        try:
            info = os.stat(path)  # noqa: PTH116
            stamps.append((path, info.st_mtime_ns, info.st_size, info.st_ino))
        except (OSError, ValueError):
            stamps.append((path, 0, 0, 0))
    return tuple(stamps)


def refresh(store: Store, seq: int, root: str, user: User, *, now: str) -> tuple[int, set[str], set[str]]:
    """Reads a project's instructions and stores what changed.

    Gives how many files did, the directories to watch, and every path whose stamp tells that it is time again.
    """
    place = place_of(root, user)
    by_host = {CLAUDE.host: loaded(place)}
    for host, folder in user.others:
        adapter = ADAPTERS.get(host)
        if adapter is not None and adapter.instructions is not None:
            by_host.setdefault(host, []).extend(loaded_by(adapter.instructions, folder, place.start))
    instructions = [file for files_of_host in by_host.values() for file in files_of_host]
    purged = store.read(lambda reading: tombstones.marks(reading, store.hash_key))

    def storable(text: str) -> str:
        return clean(redact(wire.clean(text), Counter()), purged)[0]

    by_path: dict[str, instruction_rows.Instruction] = {}
    for host, files_of_host in by_host.items():
        for file in files_of_host:
            path = storable(file.path)
            if earlier := by_path.get(path):  # loaded by more than one
                by_path[path] = earlier._replace(hosts=" ".join(dict.fromkeys((*earlier.hosts.split(), host))))
                continue
            text = storable(display.strip_fenced(file.content))
            text_hash = tokens.keyed_hash(text, store.hash_key)
            by_path[path] = instruction_rows.Instruction(path, file.kind, storable(file.root), text, text_hash, host)
    rows = list(by_path.values())
    marks = {file.path for file in instructions} | {f"{folder}/settings.json" for folder in user.configs}
    marks |= {f"{place.start}/.claude/{name}" for name in ("settings.json", "settings.local.json")}
    watched = {posixpath.dirname(file.path) for file in instructions} | {*place.user.configs, *place.memories}
    watched |= {f"{place.start}{below}" for below in ("", "/.claude", "/.claude/rules")}
    watched |= {f"{config}/rules" for config in place.user.configs} | {folder for _, folder in user.others}
    changed = 0
    if store.read(lambda reading: instruction_rows.instruction_hashes(reading, seq)) != [
        (row.path, row.text_hash, row.hosts) for row in rows
    ]:
        changed = store.write(lambda writing: instruction_rows.replace_instructions(writing, seq, rows, now=now))
    return changed, watched, marks | watched


def project_of(store: Store, directory: str) -> tuple[int, str] | None:
    """(row key, root) of the project that a directory was identified as; None for one that had no turn yet.

    Not of what that was merged into: each of two merged directories has instruction files of its own.
    """
    place = project_identity.identified(directory)
    seq = store.read(lambda rows: projects.identified(rows, place))
    return None if seq is None else (seq, place.root)


def memory_folder(directory: str, user: User) -> Path:
    """The assistant's memory directory for a project: the first that is there, else where it would be."""
    places = [Path(folder) for folder in place_of(directory, user).memories]
    if not places:
        raise BadInput("the assistant's own memory is switched off here", hint="set autoMemoryEnabled in its settings")
    return next((folder for folder in places if is_directory(folder)), places[0])


def scan(folder: Path) -> list[Memo]:
    """The files of a memory directory but its index, the newest first, at most MOST_FILES."""
    stats: list[tuple[float, str, int]] = []
    for entry in _entries(str(folder)):
        if not entry.folder and entry.name.endswith(".md") and entry.name != INDEX:
            with suppress(OSError, BadInput):
                info = _inside_folder(folder, entry.name).stat()
                stats.append((info.st_mtime, entry.name, info.st_size))
    memos: list[Memo] = []
    for at, name, size in sorted(stats, key=lambda row: (-row[0], row[1]))[: CLAUDE_MEMORY.most_files]:
        data = _read_start(folder / name, CLAUDE_MEMORY.read_bytes)
        if data is not None:
            memos.append(CLAUDE_MEMORY.read_memo(name, data, modified=moment_of(at), size=size))
    return memos


def load_memo(folder: Path, name: str) -> str:
    """The text of one file of a memory directory without its head; BadInput for one outside it."""
    path = _inside_folder(folder, name)
    data = _read_start(path, MAX_BYTES)
    if data is None:
        raise BadInput(f"{name}: there is no such file in {folder}", hint="`csmd instructions memory` lists them")
    return CLAUDE_MEMORY.body(data)


def _inside_folder(folder: Path, name: str) -> Path:
    """The file of that name; no `..`, no link and no absolute path leads out of the folder."""
    try:
        path = Path(os.path.realpath(folder / name))
    except ValueError:
        raise BadInput(f"{name!r} is no file name") from None
    if not path.is_relative_to(os.path.realpath(folder)):
        raise BadInput(f"{name} is not inside {folder}", hint="`csmd instructions memory` lists what is")
    return path
