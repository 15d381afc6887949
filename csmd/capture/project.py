"""Which project a directory belongs to, told from its path and git's own files; no child process.

Worktrees share their repository's common directory and so are one project. Without git, and
for directories of another machine, the path itself is the project.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import PurePosixPath

from csmd.model import Project

#: Text of a file, "" for a directory, None for nothing there.
Read = Callable[[str], str | None]
MAX_DEPTH = 64


def identify(cwd: str, *, read: Read, start: str = "") -> Project:
    """The project of `cwd`; inside no repository, a directory below the session's `start` belongs to `start`."""
    place = _clean(cwd or start or "/")
    found = _repository(place, read)
    if found is not None:
        common, root = found
        return Project(key=_key("git", common), root=root, name=PurePosixPath(root).name or root, kind="git")
    begin = _clean(start) if start else place
    if place == begin or place.startswith(begin.rstrip("/") + "/"):
        place = begin
    return Project(key=_key("path", place), root=place, name=PurePosixPath(place).name or place, kind="path")


def _repository(place: str, read: Read) -> tuple[str, str] | None:
    """(git common directory, work tree to show) of the repository around `place`."""
    folder = PurePosixPath(place)
    for candidate in (folder, *folder.parents)[:MAX_DEPTH]:
        marker = str(candidate / ".git")
        text = read(marker)
        if text is None:
            continue
        if text == "":
            if read(str(candidate / ".git" / "HEAD")) is None:
                continue
            return marker, str(candidate)
        if not text.startswith("gitdir:"):
            continue
        git_dir = _join(str(candidate), text.removeprefix("gitdir:").strip())
        common_file = read(f"{git_dir}/commondir")
        if common_file is None or not common_file.strip():
            return git_dir, str(candidate)
        common = _join(git_dir, common_file.strip())
        main = PurePosixPath(common)
        return common, str(main.parent) if main.name == ".git" else str(candidate)
    return None


def _key(kind: str, place: str) -> str:
    return hashlib.sha256(f"{kind}:{place}".encode()).hexdigest()[:16]


def _join(base: str, path: str) -> str:
    return _clean(path if path.startswith("/") else f"{base}/{path}")


def _clean(path: str) -> str:
    """`path` without `.`, `..`, doubled and trailing slashes; nothing is looked up."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)
