"""The other form of instructions: four scopes, and `@include PATH` lines that the file's text takes the place of; pure.

Four files or folders, the most binding first; an include is at most ten deep and 40 KB long, comes from where
its file lies, and never holds itself. What is left out is told.
"""

from __future__ import annotations

import posixpath
import re

from csmd.capture import matter
from csmd.capture.instructions import MAX_FILES, MAX_TOTAL_CHARACTERS, Disk, Place

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
        data = self._disk.read(path)
        if data is None:
            return None
        _, body = matter.split(data.decode("utf-8", "replace").removeprefix("\ufeff"))
        chain = (*chain, self._disk.real(path))
        return "".join(self._line(line, path, chain) for line in body.splitlines(keepends=True)).strip()

    def _line(self, line: str, path: str, chain: tuple[str, ...]) -> str:
        found = _INCLUDE.fullmatch(line)
        if found is None:
            return line
        written = found.group(1).strip("\"'<>")
        if written.startswith("~/"):
            goal = posixpath.normpath(posixpath.join(self._place.home, written[2:]))
        else:
            goal = posixpath.normpath(posixpath.join(posixpath.dirname(chain[-1]), written))
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


def merged(place: Place, disk: Disk) -> tuple[list[tuple[str, str, str]], list[str]]:
    """((scope, path, text) of each file, the most binding first; what was left out and why)."""
    reading = Merged(place, disk)
    paths: list[tuple[str, str]] = []
    for config in place.configs:
        names = sorted(entry.name for entry in disk.names(f"{config}/rules") if not entry.folder)
        paths += [("managed", f"{config}/rules/{name}") for name in names if name.endswith(".md")]
    paths += [("user", f"{config}/CLAUDE.md") for config in place.configs]
    paths += [("project", f"{place.start}/CLAUDE.md"), ("local", f"{place.start}/.claude/CLAUDE.md")]
    found = [(scope, path, reading.text(path)) for scope, path in paths[:MAX_FILES]]
    return [(scope, path, body) for scope, path, body in found if body], reading.problems
