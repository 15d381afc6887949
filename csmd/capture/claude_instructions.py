"""The instruction files that Claude Code loads for a directory (CLAUDE.md, rules, imports), and its memory's notes."""

from __future__ import annotations

import os
import posixpath
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

from csmd import config
from csmd.capture import markdown_imports, project_identity
from csmd.errors import BadInput
from csmd.hosts.adapter import Memo
from csmd.hosts.adapters import CLAUDE_MEMORY
from csmd.json_fields import format_time, parse_object
from csmd.paths import is_directory
from csmd.store import files
from csmd.text import markdown
from csmd.text.markdown import JS_SPACES
from csmd.vocabulary import INDEX

Kind = Literal["Managed", "User", "Project", "Local", "AutoMem"]

#: Kind -> its description in the model's context.
KIND_LABELS: dict[Kind, str] = {
    "Managed": "organization-managed policy instructions",
    "User": "user's private global instructions for all projects",
    "Project": "project instructions, checked into the codebase",
    "Local": "user's private project instructions, not checked in",
    "AutoMem": "user's auto-memory, persists across conversations",
}
#: A project's own files.
MAIN_FILES = ("CLAUDE.md", ".claude/CLAUDE.md")
#: The files that the host loads if a project has no main file.
AGENTS_FILES = ("AGENTS.md", ".claude/AGENTS.md")
#: Platform -> the directory of an organisation's files.
MANAGED_FOLDERS = {"darwin": "/Library/Application Support/ClaudeCode"}
#: The directory of an organisation's files on other platforms.
DEFAULT_MANAGED_FOLDER = "/etc/claude-code"
#: A longer instruction file is not loaded.
MAX_BYTES = 4 * 1024 * 1024
#: A longer included file is omitted.
MAX_INCLUDE_BYTES = 40 * 1024
MAX_SETTINGS_BYTES = 1024 * 1024
MAX_STATE_BYTES = 16 * 1024 * 1024
#: A file deeper in a chain of imports (the first file counts) is not loaded.
MAX_IMPORT_DEPTH = 5
MAX_INCLUDE_DEPTH = 10
#: Bounds of all files, directories and characters that are loaded, and of the names in one directory.
MAX_FILES = 1000
MAX_FOLDERS = 500
MAX_TOTAL_CHARACTERS = 16 * 1024 * 1024
MAX_NAMES = 5000
MAX_EXCLUDE_PATTERNS = 1000

#: The endings of files that can be imported; a file without an ending can too.
IMPORTABLE_ENDINGS = frozenset(
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
    is_folder: bool


def read_start(path: str | Path, limit: int) -> bytes | None:
    """Returns the first bytes of a file, without waiting for the other end of a pipe; None if it cannot be read."""
    try:
        with files.open_regular(Path(path)) as file:
            return file.read(limit)
    except (OSError, ValueError):
        return None


def _read_whole(path: str) -> bytes | None:
    data = read_start(path, MAX_BYTES + 1)
    return data if data is not None and len(data) <= MAX_BYTES else None


def list_entries(path: str) -> list[Entry]:
    """Returns at most MAX_NAMES names in a directory; [] if it cannot be read."""
    entries: list[Entry] = []
    with suppress(OSError, ValueError), os.scandir(path) as listing:
        for entry in islice(listing, MAX_NAMES):
            with suppress(OSError):  # a circular link
                entries.append(Entry(entry.name, entry.is_dir()))
    return entries


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk: `read` returns a file's bytes (None if too long or not a file), `entries` a directory's names in its
    order, `real` a path without links."""

    read: Callable[[str], bytes | None] = _read_whole
    entries: Callable[[str], list[Entry]] = list_entries
    real: Callable[[str], str] = os.path.realpath


REAL_DISK = Disk()


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """The user whose files are read; every path is absolute."""

    home: str
    configs: tuple[str, ...]
    """The assistant's configuration directories."""
    managed: str = ""
    """The directory of an organisation's files."""
    others: tuple[tuple[str, str], ...] = ()
    """(host, configuration directory) of the other assistants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a session starts, and its user's settings; every path is absolute, and `start` has no links."""

    start: str
    user: User
    memories: tuple[str, ...] = ()
    """The assistant's memory directories for this project."""
    excludes: tuple[str, ...] = ()
    worktree: str = ""
    """The root of the git work tree of `start` if it is a linked one, else ""."""
    main: str = ""
    """The root of that repository's main work tree."""
    outside: bool = False
    """Whether the user allowed this project to import files from outside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """A file that the host loads: `content` as the model reads it, and the directory `root` that it applies to."""

    path: str
    kind: Kind
    content: str
    root: str
    is_conditional: bool = False
    """Whether it is a rule for some files, which is loaded only when one of them is read."""


def load_instructions(place: Place, disk: Disk = REAL_DISK) -> list[Instruction]:
    """Returns the files that the host loads when a session starts, in its order; the memory's index is last."""
    names = (*MAIN_FILES, "CLAUDE.local.md")
    own_paths = {f"{folder}/{name}" for folder in _list_ancestors(place.start) for name in names}
    loader = _Loader(place, disk)
    loader.load_start(MAIN_FILES)
    if not any(file.path in own_paths for file in loader.files):
        loader = _Loader(place, disk)
        loader.load_start(AGENTS_FILES)
    indexes = (_load_memory_index(folder, disk) for folder in place.memories)
    unconditional = [file for file in loader.files if not file.is_conditional]
    return [*unconditional, *(index for index in indexes if index is not None)]


def render_instructions(instructions: list[Instruction]) -> str:
    """Returns the loaded instructions as the model reads them."""
    parts = ((f"Contents of {file.path} ({KIND_LABELS[file.kind]}):", file.content) for file in instructions)
    return "\n\n".join(chain.from_iterable(parts))


class _Loader:
    """Collects instruction files and the files that they import, each once."""

    def __init__(self, place: Place, disk: Disk) -> None:
        self.files: list[Instruction] = []
        self._place = place
        self._disk = disk
        self._seen: set[str] = set()
        self._folders: set[str] = set()
        self._size = 0

    def load_start(self, names: tuple[str, ...]) -> None:
        """Loads the files for the start of a session; `names` are those of a project's directories."""
        place, managed = self._place, self._place.user.managed
        if managed:
            self._load(f"{managed}/CLAUDE.md", "Managed", managed)
            self._load_rules(f"{managed}/.claude/rules", "Managed", managed)
        for folder in place.user.configs:
            self._load(f"{folder}/CLAUDE.md", "User", folder)
            self._load_rules(f"{folder}/rules", "User", folder)
        for folder in _list_ancestors(place.start):
            is_own, has_agents = not _is_main_copy(place, folder), names == AGENTS_FILES
            if is_own and has_agents:
                self._load_rules(f"{folder}/.claude/rules", "Project", folder)
            for name in names if is_own else ():
                self._load(f"{folder}/{name}", "Project", folder)
            if is_own and not has_agents:
                self._load_rules(f"{folder}/.claude/rules", "Project", folder)
            if not has_agents:
                self._load(f"{folder}/CLAUDE.local.md", "Local", folder)

    def _load(self, path: str, kind: Kind, root: str, *, is_rule: bool = False, hops: int = 0) -> None:
        """Loads a file and the files that it imports, depth first."""
        if path in self._seen or hops >= MAX_IMPORT_DEPTH or len(self.files) >= MAX_FILES or "\0" in path:
            return
        if kind != "Managed" and markdown_imports.is_excluded(path, self._place.excludes):
            return
        real = self._disk.real(path)
        if real in self._seen:
            return
        head, body = split_file(self._disk, path)
        content, targets = markdown_imports.parse_imports(body)
        content = content.strip(JS_SPACES)
        fits = self._size + len(content) <= MAX_TOTAL_CHARACTERS
        if not content or not fits or any("\0" in target for target in targets):
            return
        start = self._place.start
        self._seen |= {path, real}
        self._size += len(content)
        has_paths = is_rule and "paths" in head
        is_conditional = has_paths and markdown_imports.is_conditional(markdown.parse_head(head)[0].get("paths"))
        self.files.append(Instruction(path=path, kind=kind, content=content, root=root, is_conditional=is_conditional))
        for target in targets:
            imported = _resolve_import(target, posixpath.dirname(real), self._place.user.home)
            is_allowed = kind == "User" or self._place.outside
            if imported and (is_allowed or all(_is_inside(p, start) for p in (imported, self._disk.real(imported)))):
                self._load(imported, kind, root, is_rule=is_rule, hops=hops + 1)

    def _load_rules(self, folder: str, kind: Kind, root: str) -> None:
        """Loads the rules in a directory and its subdirectories, in the directory's own order; links are resolved."""
        real = self._disk.real(folder)
        if real in self._folders or len(self._folders) >= MAX_FOLDERS:
            return
        self._folders.add(real)
        for entry in self._disk.entries(folder):
            path = f"{folder}/{entry.name}"
            if entry.is_folder:
                self._load_rules(path, kind, root)
            elif entry.name.endswith(".md"):
                target = self._disk.real(path)
                if target == path or kind != "Project" or _is_inside(target, self._place.start):
                    self._load(target, kind, root, is_rule=True)


def _is_main_copy(place: Place, folder: str) -> bool:
    """Whether a directory is the main work tree's, while the session's linked work tree has a copy of its own."""
    if not place.worktree or place.worktree == place.main or not _is_inside(place.worktree, place.main):
        return False
    return _is_inside(folder or "/", place.main) and not _is_inside(folder or "/", place.worktree)


def _list_ancestors(folder: str) -> list[str]:
    """Returns the directories from the root, which is "", down to `folder`."""
    parts = folder.rstrip("/").split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _resolve_import(target: str, base: str, home: str) -> str:
    """Returns the path of an import; "" for one that is never loaded."""
    path = join_path(target, base, home)
    stem, dot, ending = posixpath.basename(path).rpartition(".")
    return path if not dot or not stem or ending.lower() in IMPORTABLE_ENDINGS else ""


def join_path(written: str, base: str, home: str) -> str:
    """Returns a path as written in a file of the directory `base`; `~/` means `home`."""
    path = posixpath.join(home, written[2:]) if written.startswith("~/") else posixpath.join(base, written)
    return posixpath.normpath(path)


def split_file(disk: Disk, path: str) -> tuple[str, str]:
    """Returns a file's YAML head and its text; both "" if there is no such file."""
    return markdown.split_head((disk.read(path) or b"").decode("utf-8", "replace").removeprefix("\ufeff"))


def _load_memory_index(folder: str, disk: Disk) -> Instruction | None:
    """Returns the index of the assistant's own memory, cut as the host does."""
    path = f"{folder}/{INDEX}"
    content = markdown_imports.parse_imports(split_file(disk, path)[1])[0].strip(JS_SPACES)
    if not content:
        return None
    return Instruction(path=path, kind="AutoMem", content=CLAUDE_MEMORY.cut_index(content), root=folder)


def find_user(settings: config.Config) -> User:
    """Returns the user whose files a daemon with this configuration reads."""
    managed = MANAGED_FOLDERS.get(sys.platform, DEFAULT_MANAGED_FOLDER)
    configs = tuple(str(path) for path in settings.assistant_dirs)
    others = tuple((host, str(folder)) for host, folder in settings.host_dirs)
    return User(home=str(config.user_home()), configs=configs, managed=managed, others=others)


def find_place(directory: str, user: User) -> Place:
    """Returns the place of a session that starts in `directory`; reads the disk."""
    start = os.path.realpath(directory)
    settings = _read_settings(start, user)
    excludes = [setting.get("claudeMdExcludes") for setting in settings]
    patterns = [pattern for values in excludes if isinstance(values, list) for pattern in values]
    worktree, main = _find_work_trees(start)
    return Place(
        start=start, user=user, memories=_find_memory_folders(start, user, settings),
        excludes=tuple([pattern for pattern in patterns if isinstance(pattern, str)][:MAX_EXCLUDE_PATTERNS]), worktree=worktree,
        main=main, outside=any(_has_approval(config, user, {start, main}) for config in user.configs),
    )  # fmt: skip


def _find_memory_folders(start: str, user: User, settings: list[dict[str, Any]]) -> tuple[str, ...]:
    """Returns the assistant's memory directories for a project; all work trees use those of the main one."""
    if any(setting.get("autoMemoryEnabled") is False for setting in settings):
        return ()
    for setting in settings:
        folder = setting.get("autoMemoryDirectory")
        if isinstance(folder, str) and folder.startswith(("/", "~/")):
            return (posixpath.normpath(posixpath.join(user.home, folder[2:]) if folder[0] == "~" else folder),)
    main = os.path.realpath(project_identity.identify_directory(start).root)
    return tuple(CLAUDE_MEMORY.folder(config, main) for config in user.configs)


def _read_settings(start: str, user: User) -> list[dict[str, Any]]:
    own = (f"{start}/.claude/settings.local.json", f"{start}/.claude/settings.json")
    paths = [f"{user.managed}/managed-settings.json", *own, *(f"{config}/settings.json" for config in user.configs)]
    return [_read_object(path, MAX_SETTINGS_BYTES) for path in paths]


def _read_object(path: str, limit: int) -> dict[str, Any]:
    """Returns the JSON object in one of the host's files; {} if it cannot be read."""
    return parse_object((files.read_small(path, limit) or "").removeprefix("\ufeff")) or {}


def _has_approval(config: str, user: User, roots: set[str]) -> bool:
    """Whether the user allowed one of these directories to import files from outside."""
    for path in (f"{config}/.claude.json", f"{user.home}/.claude.json"):
        states = _read_object(path, MAX_STATE_BYTES).get("projects")
        entries = [states.get(root) for root in roots] if isinstance(states, dict) else []
        if any(
            isinstance(entry, dict) and entry.get("hasClaudeMdExternalIncludesApproved") is True for entry in entries
        ):
            return True
    return False


def _find_work_trees(start: str) -> tuple[str, str]:
    """Returns (the linked work tree of a directory, the main work tree), each "" if there is none."""
    for folder in (Path(start), *Path(start).parents)[: project_identity.MAX_DEPTH]:
        marker = files.read_small(str(folder / ".git"))
        if marker is None:
            continue
        main = os.path.realpath(project_identity.identify_directory(str(folder)).root)
        return (str(folder) if marker.startswith("gitdir:") else ""), main
    return "", ""


# --- the merged view, with `@include`

_INCLUDE = re.compile(r"[ \t]*@include[ \t]+(\S.*?)[ \t]*\r?\n?")


@dataclass(slots=True)
class Merger:
    """Merges files and collects the omitted includes, with the reasons."""

    place: Place
    disk: Disk
    problems: list[str] = field(default_factory=list)
    files: int = 0
    size: int = 0

    def merge(self, path: str, chain: tuple[str, ...] = ()) -> str | None:
        """Returns a file with its includes replaced by their text; None if there is no such file."""
        if self.disk.read(path) is None:
            return None
        _, body = split_file(self.disk, path)
        chain = (*chain, self.disk.real(path))
        return "".join(self._expand_line(line, path, chain) for line in body.splitlines(keepends=True)).strip()

    def _expand_line(self, line: str, path: str, chain: tuple[str, ...]) -> str:
        include = _INCLUDE.fullmatch(line)
        if include is None:
            return line
        written = include.group(1).strip("\"'<>")
        target = join_path(written, posixpath.dirname(chain[-1]), self.place.user.home)
        reason = self._find_refusal(target, chain)
        text = None if reason else self.merge(target, chain)
        if text is None:
            self.problems.append(f"{path}: {written} was not included: {reason or 'there is no such file'}")
            return ""
        return text + "\n"

    def _find_refusal(self, target: str, chain: tuple[str, ...]) -> str:
        self.files += 1
        if "\0" in target:
            return "that is not a path"
        if self.disk.real(target) in chain:
            return "it would include itself"
        if len(chain) > MAX_INCLUDE_DEPTH:
            return f"more than {MAX_INCLUDE_DEPTH} deep"
        size = len(self.disk.read(target) or b"")
        self.size += size
        if size > MAX_INCLUDE_BYTES:
            return f"{size} bytes long; the limit is {MAX_INCLUDE_BYTES}"
        if self.files > MAX_FILES or self.size > MAX_TOTAL_CHARACTERS:
            return "too much was included already"
        return ""


def merge_files(place: Place, disk: Disk = REAL_DISK) -> tuple[list[tuple[str, str, str]], list[str]]:
    """Returns (scope, path, text) of each file, the most binding first, and the omitted includes with the reasons."""
    merger = Merger(place, disk)
    paths: list[tuple[str, str]] = []
    for folder in place.user.configs:
        names = sorted(entry.name for entry in disk.entries(f"{folder}/rules") if not entry.is_folder)
        paths += [("managed", f"{folder}/rules/{name}") for name in names if name.endswith(".md")]
    paths += [("user", f"{folder}/CLAUDE.md") for folder in place.user.configs]
    paths += [("project", f"{place.start}/CLAUDE.md"), ("local", f"{place.start}/.claude/CLAUDE.md")]
    texts = [(scope, path, merger.merge(path)) for scope, path in paths[:MAX_FILES]]
    return [(scope, path, body) for scope, path, body in texts if body], merger.problems


# --- the notes of its own memory


def find_memory_folder(directory: str, user: User) -> Path:
    """Returns the memory directory for a project: the first that exists, else the first that is configured."""
    folders = [Path(folder) for folder in find_place(directory, user).memories]
    if not folders:
        raise BadInput("the assistant's own memory is switched off here", hint="set autoMemoryEnabled in its settings")
    return next((folder for folder in folders if is_directory(folder)), folders[0])


def scan_notes(folder: Path) -> list[Memo]:
    """Returns the files of a memory directory except its index, newest first, at most `CLAUDE_MEMORY.most_files`."""
    stats: list[tuple[float, str, int]] = []
    for entry in list_entries(str(folder)):
        if not entry.is_folder and entry.name.endswith(".md") and entry.name != INDEX:
            with suppress(OSError, BadInput):
                info = _resolve_inside(folder, entry.name).stat()
                stats.append((info.st_mtime, entry.name, info.st_size))
    memos: list[Memo] = []
    for at, name, size in sorted(stats, key=lambda row: (-row[0], row[1]))[: CLAUDE_MEMORY.most_files]:
        data = read_start(folder / name, CLAUDE_MEMORY.read_bytes)
        if data is not None:
            memos.append(CLAUDE_MEMORY.read_memo(name, data, modified=format_time(at), size=size))
    return memos


def read_note(folder: Path, name: str) -> str:
    """Returns the text of a file of a memory directory without its head; BadInput for a file outside of it."""
    path = _resolve_inside(folder, name)
    data = read_start(path, MAX_BYTES)
    if data is None:
        raise BadInput(f"{name}: there is no such file in {folder}", hint="`csmd instructions memory` lists them")
    return CLAUDE_MEMORY.body(data)


def _resolve_inside(folder: Path, name: str) -> Path:
    """Returns the file of this name; BadInput if a `..`, a link or an absolute path leads out of the folder."""
    try:
        path = Path(os.path.realpath(folder / name))
    except ValueError:
        raise BadInput(f"{name!r} is not a file name") from None
    if not path.is_relative_to(os.path.realpath(folder)):
        raise BadInput(f"{name} is not inside {folder}", hint="`csmd instructions memory` lists what is")
    return path
