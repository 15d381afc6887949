"""Identifies the project of a directory by git's files, its remote, its fingerprint and its worktrees."""

from __future__ import annotations

import hashlib
import ntpath
import posixpath
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import PurePosixPath
from typing import Literal, Protocol

from csmd import wire
from csmd.conversation import Project
from csmd.exclusions import Excludes
from csmd.privacy.redaction import redact
from csmd.store import files, project_merges, projects, workspaces
from csmd.store.sqlite import Rows

#: Most directories above a path that are searched for a repository.
MAX_DEPTH = 64
MAX_PATH_CHARACTERS = 4096
#: The first line of a reflog fits.
MAX_REFLOG_BYTES = 4096
#: Files that identify a directory without git.
MARKER_FILES = (
    "pyproject.toml", "package.json", "go.mod", "Cargo.toml", "pom.xml", "build.gradle", "composer.json", "Gemfile",
    "mix.exs", "CMakeLists.txt", "Makefile", "CLAUDE.md", "AGENTS.md", "README.md",
)  # fmt: skip
#: A file that `git init` writes into a repository's data and that does not change.
_INIT_FILE = "description"
#: Where assistants put a repository's worktrees; for a deleted one only the path shows its repository.
_WORKTREES = re.compile(r"^(.+?)/(?:\.claude/worktrees|\.worktrees)(?:/|$)")
#: The folder next to a repository, named after it, where people and tools put its worktrees: `shop-worktrees/shop-12`.
_NEIGHBOUR = re.compile(r"^(/(?:[^/]+/)*([^/]+))[-._]worktrees/([^/]+)")
#: A directory on a drive or a server of Windows.
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\[^\\]")
_MODULES = re.compile(r"/\.git/(?:worktrees/[^/]+/)?modules/")
#: A home that is in git (dotfiles) does not own every deleted directory that was in it.
_HOMES = re.compile(r"/(?:root|(?:home|Users)(?:/[^/]+)?)?")
_SECTION = re.compile(r'\s*\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_SCP = re.compile(r"(?:[^@/\s]+@)?(?P<host>\[[^\]]+\]|[^:/\s]+):(?P<path>(?!//).+)")
_URL = re.compile(r"(?P<scheme>[\w+.-]+)://(?:[^@/]*@)*(?P<host>[^/?#]*)(?P<path>[^?#]*)")
_PORTS = {"ssh": ":22", "https": ":443", "http": ":80", "git": ":9418"}


class Disk(Protocol):
    """Questions about a disk, which never raise; `csmd.store.files` answers them for the real one."""

    def read_small(self, path: str, limit: int = ...) -> str | None:
        """Returns the beginning of a file's text, "" for a directory, None if there is nothing to read."""

    def resolve(self, path: str) -> tuple[str, bool]:
        """Returns the path with every link resolved, and whether it exists."""

    def is_link(self, path: str) -> bool:
        """Whether a name is a symbolic link."""

    def is_missing(self, path: str) -> bool:
        """Whether nothing exists at a path; False for a directory that may not be read."""

    def is_same_file(self, path: str, other: str) -> bool:
        """Whether both paths name one existing file or directory (device and inode)."""

    def list_names(self, folder: str) -> list[str]:
        """Returns the names in a directory; [] if there is none."""

    def file_stamp(self, path: str) -> str:
        """Returns a file's inode and time of change; "" if the file is missing.

        They stay the same when its directory is moved and differ for a copy.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class _Repository:
    common: str
    root: str
    kind: Literal["git", "submodule"] = "git"


def identify(cwd: str, *, disk: Disk, start: str = "") -> Project:
    """Returns the project of `cwd`.

    Outside of repositories, a directory in the session's `start` belongs to `start`.
    """
    if is_windows_path(cwd or start):
        return _identify_on_windows(cwd or start, start)
    place, exists = _resolve_place(cwd or start or "/", disk)
    repository = _find_repository(place, disk)
    if repository is not None and not exists and is_home(repository.root):
        repository = None
    if repository is not None:
        common = repository.common
        return _make_project(repository.kind, "git", common, root=repository.root, place=place, data=common)
    begin = _resolve_place(start, disk)[0] if start else place
    owner = begin if _is_below(place, begin) else place
    worktree = None if exists else _WORKTREES.match(owner)
    if worktree:
        owner = worktree[1]
        main = _find_repository(owner, disk)
        if main is not None and main.root == owner:
            return _make_project(main.kind, "git", main.common, root=owner, place=place, data=main.common)
    path = make_path_project(owner, place=place)
    if disk.is_missing(owner):
        return replace(path, gone=True, worktree_of=_find_neighbour_repository(owner, disk))
    return path


def is_windows_path(path: str) -> bool:
    """Whether a path is on a drive or a server of Windows."""
    return _WINDOWS.match(path) is not None


def _identify_on_windows(cwd: str, start: str) -> Project:
    """Returns the project of a Windows directory by its path alone; ignores case.

    This machine cannot read the directory.
    """
    paths = (ntpath.normpath(path[:MAX_PATH_CHARACTERS]) for path in (cwd, start or cwd))
    place, begin = (unicodedata.normalize("NFC", path) for path in paths)
    place_key, begin_key = (path.replace("\\", "/").casefold() for path in (place, begin))
    owner = begin if _is_below(place_key, begin_key) else place
    worktree = _WORKTREES.match(owner.replace("\\", "/").casefold())
    root = owner[: len(worktree[1])] if worktree else owner
    name, key = ntpath.basename(root) or root, _digest(f"path:{root.casefold()}")
    return Project(key=key, root=root, name=name, kind="path", place=place, data=root)


def find_checkout(cwd: str, *, disk: Disk) -> str:
    """Returns the root of the working tree, main or linked, of a directory; outside of git the directory itself."""
    if is_windows_path(cwd):
        return ntpath.normpath(cwd)
    path, _ = _resolve_place(cwd, disk)
    above = ((folder, disk.read_small(f"{folder.rstrip('/')}/.git")) for folder in _list_ancestors(path))
    return next((folder for folder, marker in above if marker is not None), path)


def make_path_project(root: str, *, place: str = "") -> Project:
    """Returns the project of a directory by its path alone."""
    return _make_project("path", "path", root, root=root, place=place or root, data=root)


def list_roots(project: Project) -> tuple[str, ...]:
    """Returns a project's root and, for a worktree, the root of its repository, whose exclusions apply to it."""
    return (project.root,) if project.worktree_of is None else (project.root, *list_roots(project.worktree_of))


def is_excluded(excludes: Excludes, project: Project, *directories: str) -> bool:
    """Whether directories of a project are left out, by their paths or by a mark on the disk."""
    above = list_roots(project)
    return excludes.covers_directory(*directories, *above) or excludes.has_off_mark(*directories, project.place, *above)


def may_have_worktrees(project: Project) -> bool:
    """Whether a project can be the repository of a worktree: it is in git, or it no longer exists."""
    return project.kind != "path" or project.gone


def is_home(root: str) -> bool:
    """Whether a directory is a user's home, or contains homes: too large to be one project's worktree."""
    return _HOMES.fullmatch(root) is not None


def _find_neighbour_repository(deleted: str, disk: Disk) -> Project | None:
    """Returns the repository next to the folder of worktrees that contained a deleted directory, by their names.

    If the repository does not exist either, the worktree must be named after it, because the folder may hold worktrees
    of several repositories.
    """
    match = _NEIGHBOUR.match(deleted)
    if match is None or is_home(match[1]):
        return None
    main = identify(match[1], disk=disk)
    if main.kind != "path":
        return main if main.root == match[1] else None
    is_named_after = re.fullmatch(rf"{re.escape(match[2])}(?:[-._].*)?", match[3], re.DOTALL)
    return main if main.gone and is_named_after else None


def add_fingerprint(project: Project, *, disk: Disk) -> Project:
    """Returns the project with its remote and the fingerprint that identifies it after a move, each "" if unknown.

    A repository is identified by the first line of its reflog: who created or cloned it and when, to the second. One
    without a commit has no reflog, and is identified by a file that `git init` writes into its data and no one edits. A
    directory without git is identified by its marker files: by their content, which templates share, their inodes,
    which are reused, and their times of change, which no program sets.
    """
    if is_windows_path(project.root):
        return project
    if project.kind == "path":
        markers = [f"{project.root}/{name}" for name in MARKER_FILES]
        markers_found = [(disk.file_stamp(file), text) for file in markers if (text := disk.read_small(file))]
        return replace(project, fingerprint=_digest(f"path:{markers_found}") if markers_found else "")
    first = (disk.read_small(f"{project.data}/logs/HEAD", MAX_REFLOG_BYTES) or "").partition("\n")[0]
    remote = parse_remote(disk.read_small(f"{project.data}/config") or "")
    init_stamp = "" if first else disk.file_stamp(f"{project.data}/{_INIT_FILE}")
    mark = f"git:{first}" if first else f"init:{init_stamp}" if init_stamp else ""
    return replace(project, fingerprint=_digest(mark) if mark else "", remote=remote)


def parse_remote(config: str) -> str:
    """Returns the address of a repository's remote in a git configuration, normalised: origin's, else the first."""
    remotes: dict[str, str] = {}
    section = ""
    for line in config.splitlines():
        head = _SECTION.match(line)
        if head:
            section = (head[2] or "") if head[1].lower() == "remote" else ""
            line = line[head.end() :]
        name, equals, value = line.partition("=")
        if section and equals and name.strip().lower() == "url":
            remotes.setdefault(section, value.strip().strip('"'))
    return normalise_remote(remotes.get("origin") or next(iter(remotes.values()), ""))


def normalise_remote(url: str) -> str:
    """Returns `host/path` of an address: equal for ssh and https, without user, password, query and `.git`."""
    url = wire.clean(url).strip()[:MAX_PATH_CHARACTERS]
    match = _URL.match(url)
    if match and match["scheme"].lower() == "file":
        host, path = "", match["path"]
    elif match:
        host, path = match["host"].lower().removesuffix(_PORTS.get(match["scheme"].lower(), ":none")), match["path"]
    elif not url.startswith(("/", ".")) and (scp := _SCP.fullmatch(url)):
        host, path = scp["host"].lower(), "/" + scp["path"].partition("?")[0].lstrip("/")
    else:
        return url.rpartition("@")[2] if "://" in url else url
    path = path.rstrip("/").removesuffix(".git")
    return f"{host}{path}" if host else path


def _resolve_place(path: str, disk: Disk) -> tuple[str, bool]:
    """Returns the canonical path of a directory, and whether it exists; if not, the path is only normalised."""
    resolved, exists = disk.resolve(_clean(path[:MAX_PATH_CHARACTERS]))
    resolved = wire.clean(resolved)
    return (_spell_as_on_disk(resolved, disk) if exists else unicodedata.normalize("NFC", resolved)), exists


def _spell_as_on_disk(path: str, disk: Disk) -> str:
    """Returns an existing path as the disk spells it, if the disk ignores case or Unicode forms (macOS, WSL)."""
    parts = path.split("/")
    for depth in range(len(parts) - 1, 0, -1):
        name = parts[depth]
        folder = "/".join(parts[:depth]) or "/"
        forms = (name.swapcase(), unicodedata.normalize("NFC", name), unicodedata.normalize("NFD", name))
        others = [form for form in dict.fromkeys(forms) if form != name]
        if not others:
            continue
        if not any(
            disk.is_same_file(f"{folder.rstrip('/')}/{name}", f"{folder.rstrip('/')}/{other}") for other in others
        ):
            break  # this directory distinguishes names, and so do those above it
        folded = _fold(name)
        parts[depth] = next((entry for entry in disk.list_names(folder) if _fold(entry) == folded), name)
        parts[depth] = unicodedata.normalize("NFC", wire.clean(parts[depth]))
    return "/".join(parts)


def _fold(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _find_repository(path: str, disk: Disk) -> _Repository | None:
    """Returns the repository that contains a path, or None."""
    for candidate in _list_ancestors(path):
        inside = candidate.rstrip("/")
        marker = f"{inside}/.git"
        text = disk.read_small(marker)
        if text is None:
            if bare := _find_bare(candidate, disk):
                return bare
        elif text == "":
            if disk.read_small(f"{marker}/HEAD") is not None:
                return _Repository(common=_resolve(marker, disk) if disk.is_link(marker) else marker, root=candidate)
        elif text.startswith("gitdir:"):
            return _find_linked(candidate, text.removeprefix("gitdir:").partition("\n")[0].strip(), disk)
    return None


def _list_ancestors(path: str) -> Iterator[str]:
    folder = PurePosixPath(path)
    return map(str, (folder, *folder.parents)[:MAX_DEPTH])


def _find_linked(candidate: str, target: str, disk: Disk) -> _Repository:
    """Returns the repository that a `.git` file names.

    Worktrees, submodules and repositories with a separate git directory have such a file.
    """
    git_dir = _resolve(posixpath.join(candidate, target), disk)
    shared = (disk.read_small(f"{git_dir}/commondir") or "").strip()
    common = _resolve(posixpath.join(git_dir, shared), disk) if shared else git_dir
    name = PurePosixPath(common).name
    if _MODULES.search(common):
        return _Repository(common=common, root=candidate, kind="submodule")
    if shared and name == ".git":
        return _Repository(common=common, root=str(PurePosixPath(common).parent))
    return _find_bare(common, disk) or _Repository(common=common, root=candidate)


def _find_bare(folder: str, disk: Disk) -> _Repository | None:
    """Returns the repository without a work tree in a directory, or None; looked up only if its name suggests it.

    Its root is the directory itself, or the one that contains it as `.bare`.
    """
    if not folder.endswith((".git", "/.bare")) or folder.endswith("/.git"):
        return None
    if disk.read_small(f"{folder}/HEAD") is None or disk.read_small(f"{folder}/objects") != "":
        return None
    return _Repository(common=folder, root=folder.removesuffix("/.bare") or "/")


def _resolve(path: str, disk: Disk) -> str:
    return wire.clean(disk.resolve(_clean(path))[0])


def _make_project(
    kind: Literal["git", "submodule", "path"], keyed: str, identity: str, *, root: str, place: str, data: str
) -> Project:
    return Project(
        key=_digest(f"{keyed}:{identity}"), root=root, name=PurePosixPath(root).name or root, kind=kind, place=place,
        data=data,
    )  # fmt: skip


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _clean(path: str) -> str:
    """Returns `path` as an absolute path without `.`, `..`, doubled and trailing slashes, by its text alone."""
    return "/" + posixpath.normpath(f"/{path}").lstrip("/")


@dataclass(slots=True)
class Places:
    """The projects of one transcript's directories, each looked up once; `_start` is where its session began."""

    _start: str
    _projects: dict[str, Project] = field(default_factory=dict)

    def of(self, cwd: str) -> Project:
        """Returns the project of a directory, with its fingerprint; for "" that of the session's start."""
        if cwd not in self._projects:
            self._projects[cwd] = add_marks(identify_directory(cwd, start=self._start or cwd))
        return self._projects[cwd]


def identify_directory(cwd: str, *, start: str = "") -> Project:
    """Returns the project of a directory, without its fingerprint, which only a new project needs."""
    return identify(cwd, disk=files, start=start)


def add_marks(project: Project) -> Project:
    """Returns a project with its fingerprint and remote."""
    with_mark = add_fingerprint(project, disk=files)
    if with_mark.worktree_of is not None:
        with_mark = replace(with_mark, worktree_of=add_marks(with_mark.worktree_of))
    return replace(with_mark, remote=redact(with_mark.remote, Counter())) if with_mark.remote else with_mark


def add_marks_if_new(rows: Rows, project: Project) -> Project:
    """Returns a project as `projects.ensure_with_directory` needs it: with its fingerprint if it is new.

    Reads the disk, so it must run before the write.
    """
    return project if projects.seq_of(rows, project) is not None else add_marks(project)


def find_row(rows: Rows, cwd: str, *, start: str = "") -> int | None:
    """Returns the row of the project of a directory; None for one without turns. Writes nothing."""
    return _find_row(rows, identify_directory(cwd, start=start))


def _find_row(rows: Rows, project: Project) -> int | None:
    seq = projects.seq_of(rows, project)
    if seq is not None:
        return seq
    recognised = projects.recognise(rows, add_marks(project))
    if recognised is None:
        return None
    return projects.seq_of(rows, replace(project, key=projects.read_key(rows, recognised[0])))


def find_scopes(rows: Rows, cwd: str, *, start: str = "") -> list[int]:
    """Returns the rows of the projects visible from a directory: its own, its workspace's, and 0 for everywhere."""
    seq, workspace = _find_home(rows, cwd, start)
    return list(dict.fromkeys([*([] if seq is None else [seq]), workspace, 0]))


def find_wall(rows: Rows, cwd: str) -> int:
    """Returns the workspace that a directory is in; 0 for none, and for ""."""
    return _find_home(rows, cwd, "")[1] if cwd else 0


def find_lens(rows: Rows, cwd: str) -> int:
    """Returns the lens of a directory; 0 if it has none.

    It is the lens of its workspace, else of the nearest directory above it that has one.
    """
    seq, workspace = _find_home(rows, cwd, "")
    path = identify_directory(cwd).place if seq is None else workspaces.root_of(rows, seq)
    return workspace or projects.find_lens_around(rows, path)


def _find_home(rows: Rows, cwd: str, start: str) -> tuple[int | None, int]:
    project = identify_directory(cwd, start=start)
    seq = _find_row(rows, project)
    around = projects.find_workspace_around(rows, project.place) if seq is None else projects.everywhere_of(rows, seq)
    return seq, around


def find_lost_worktrees(pairs: Iterable[tuple[str, str]]) -> list[tuple[Project, Project]]:
    """Returns (deleted worktree, repository) of the pairs of paths that the disk does not contradict.

    Reads the disk.
    """
    lost = []
    for tree, main in dict.fromkeys(pairs):
        worktree, repository = identify_directory(tree), add_marks(identify_directory(main))
        if worktree.gone and not is_home(worktree.root) and may_have_worktrees(repository):
            inside = f"{repository.root}/".startswith(f"{worktree.root}/")
            if not inside and worktree.key != repository.key:
                lost.append((worktree, repository))
    return lost


def merge_worktrees(rows: Rows, worktrees: Iterable[tuple[Project, Project]], *, now: str) -> int:
    """Merges worktrees into their repositories; returns how many projects were merged."""
    merge = partial(project_merges.assign_worktree, rows, is_gone=files.is_missing, now=now)
    return sum(merge(worktree, repository) for worktree, repository in worktrees)
