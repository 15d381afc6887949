"""Removing all that csmd holds: its own known files by name, never a foreign one, never through a link.

What is csmd's is a table of globs, held against the store's own list by a test. Whatever else lies in its directories
stays, and so does then the directory; the program itself is its installer's.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from csmd.cli.install import HOOK_FILES, HOOK_SCRIPTS, SERVER_SCRIPT, is_own_readme
from csmd.errors import CsmdError
from csmd.paths import Paths

_DAY = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
#: What it is for people -> globs below the home.
HOME_FILES: dict[str, tuple[str, ...]] = {
    "memories and conversations": (
        "csmd.db", "csmd.db-wal", "csmd.db-shm", "csmd.before-migration.db", "csmd.db.before-restore",
        "csmd.db.before-restore-*", "damaged-[0-9]*T[0-9]*Z/*", "repairing/**/*",
    ),
    "backups of them": ("backups/csmd-*", "backups/.csmd-*"),
    "session files of csmd's own": ("sessions/*/*.jsonl",),
    "notes as markdown and data": (
        "memory/user.md", "memory/MEMORY.md", "memory/projects/*-??????.md", "memory/topics/*.md", "memory/.dream.lock", "memory/archive/projects/*.md", "memory/archive/topics/*.md",
        *(f"memory/{place}{name}" for place in ("", "workspaces/*/") for name in (
            f"daily/{_DAY}.md", f"daily/{_DAY}.yaml", f"archive/daily/{_DAY}.md", f"archive/daily/{_DAY}.yaml", "sessions/*.yaml",
        )),
    ),
    "events that wait": ("spool/*.event", "spool/.tmp-*"),
    "notes on bad input": ("quarantine/*.json",),
    "embedding models": (
        *(f"models/{folder}/**/*" for folder in ("tiktoken", ".fetched", ".add-*")), "models/*/csmd-model.txt",
    ),
    "hook scripts": (
        *(f"hook/{name}" for name in (*HOOK_FILES, *HOOK_SCRIPTS, SERVER_SCRIPT, "interpreter", "python")), "hook/__pycache__/csmd_*.pyc",
    ),
    "log": ("log/csmd.log", "log/csmd.log.[0-9]", "log/crash.txt", "log/report.txt"),
    "configuration": ("config.yaml",),
    "state": (
        "endpoint", "install.json", "pauses.json", "README.txt", "run/*.lock", "run/daemon.json", "run/stopped-by-user", "run/hung",
        "run/*.sock", "run/*.stderr", "run/told-*", "run/noticed-*", "run/passed-by",
    ),
}  # fmt: skip
#: What lies beside it is a model that csmd copied.
MODEL_MARK = "csmd-model.txt"
#: What a write that was killed can leave anywhere in the home.
UNFINISHED = (".*.csmd", "*/.*.csmd", ".*.tmp", "*/.*.tmp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One row of what goes: how many files, how many bytes."""

    what: str
    files: tuple[Path, ...]
    bytes: int


@dataclass(slots=True, kw_only=True)
class Left:
    """What a purge left: files that are not csmd's, and what could not be removed with the reason."""

    foreign: list[Path] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def parts(paths: Paths) -> list[Part]:
    """What a purge would remove, without what there is none of."""
    rows = [(what, paths.home, globs) for what, globs in HOME_FILES.items()]
    rows += [
        *(("embedding models", mark.parent, ("**/*",)) for mark in paths.models.glob(f"*/{MODEL_MARK}")),
        ("log", paths.log_dir, ("csmd.log", "csmd.log.[0-9]", "crash.txt", "report.txt")),
        ("configuration", paths.config_file.parent, (paths.config_file.name,)),
        ("state", paths.home, UNFINISHED),
        *(("events that wait", place, ("*.event", ".tmp-*")) for place in _second_spool(paths)),
        *(("state", place, (_short_socket(paths),)) for place in _temporary()),
    ]
    found: dict[str, dict[Path, int]] = {}
    for what, root, globs in rows:
        for path, size in _files(root, globs):
            found.setdefault(what, {})[path] = size
    known: set[Path] = set()
    made = []
    for what in HOME_FILES:
        sizes = {path: size for path, size in found.get(what, {}).items() if path not in known}
        known.update(sizes)
        if sizes:
            made.append(Part(what=what, files=tuple(sizes), bytes=sum(sizes.values())))
    return made


def purge(paths: Paths, going: Sequence[Part]) -> Left:
    """Removes these files, then the directories that hold nothing any more; what is left."""
    left = Left()
    folders: set[Path] = set()
    for path in (path for part in going for path in part.files):
        folders.add(path.parent)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            left.refused.append(f"{path}: {error.strerror or error}")
    own = [paths.home, paths.log_dir, paths.config_file.parent, *_second_spool(paths), *_temporary()]
    for root in own:
        below = _directories(root) if root == paths.home else ()
        for folder in sorted({*below, root}, key=lambda one: -len(one.parts)):
            with contextlib.suppress(OSError):  # it holds something of somebody's
                folder.rmdir()
    with contextlib.suppress(OSError):  # <state>/csmd/log has <state>/csmd around it
        if paths.log_dir.parent.name == "csmd":
            paths.log_dir.parent.rmdir()
    refused = {line.partition(": ")[0] for line in left.refused}
    for root in (root for root in dict.fromkeys(own[:3]) if paths.home not in root.parents):
        left.foreign += [path for path in _everything(root) if str(path) not in refused]
    return left


def programs(paths: Paths) -> list[Path]:
    """The virtual environments in the home: the program, which whoever put it there removes."""
    with contextlib.suppress(OSError):
        return sorted(path.parent for path in paths.home.glob("*/pyvenv.cfg"))
    return []


def must_be_own(paths: Paths) -> None:
    """CsmdError where the home is a link or somebody else's: then nothing in it is csmd's to remove."""
    with contextlib.suppress(FileNotFoundError):
        info = paths.home.lstat()
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
            raise CsmdError(f"{paths.home} is not a directory of yours", hint="remove it by hand if it is csmd's")


def _files(root: Path, globs: Sequence[str]) -> Iterator[tuple[Path, int]]:
    """Files and links below a directory with these names and their sizes; nothing that lies behind a link."""
    if not _is_own(root):
        return
    for glob in globs:
        for path in root.glob(glob):
            inside = path.relative_to(root).parents
            with contextlib.suppress(OSError):
                info = path.lstat()
                foreign = path.name == "README.txt" and path.parent == root and not is_own_readme(path)
                if (
                    not stat.S_ISDIR(info.st_mode)
                    and not foreign
                    and not any((root / folder).is_symlink() for folder in inside)
                ):
                    yield path, info.st_size


def _is_own(folder: Path) -> bool:
    try:
        info = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(info.st_mode) and info.st_uid == os.getuid()


def _directories(root: Path) -> Iterator[Path]:
    """The directories of csmd's below one of its own: those that the table names, as deep as they go."""
    if not _is_own(root):
        return
    named = {glob.partition("/")[0] for globs in HOME_FILES.values() for glob in globs if "/" in glob}
    for name in named:
        for top in root.glob(name):
            for folder, below, _ in os.walk(top):
                if not Path(folder).is_symlink():
                    yield Path(folder)
                    yield from (Path(folder) / one for one in below if not (Path(folder) / one).is_symlink())


def _everything(root: Path) -> list[Path]:
    """What is left directly in a directory of csmd's; [] when that is gone."""
    try:
        return sorted(root.iterdir())
    except OSError:
        return []


def _temporary() -> list[Path]:
    return [Path(f"/tmp/csmd-{os.getuid()}")]  # noqa: S108 - of the user's own, checked before it is looked into


def _second_spool(paths: Paths) -> list[Path]:
    """Where hooks spool when the home takes no file; hooks/csmd_spool.py makes the same name."""
    name = os.path.realpath(paths.home).replace("%", "%25").replace("/", "%2F")
    return [place / f"spool-{name}" for place in _temporary() if _is_own(place)]


def _short_socket(paths: Paths) -> str:
    """The name of the socket whose place in the home would be too long a path; as the daemon names it."""
    return f"{hashlib.sha256(os.fsencode(paths.home)).hexdigest()[:12]}.sock"
