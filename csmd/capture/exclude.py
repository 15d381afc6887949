"""What the user wants left out altogether: projects, times of a pause, files whose content is not kept.

Globs: `**/` is any number of folders, `*` and `?` stay inside one. A project's glob holds for what is
below it, too. A tool that names an excluded file is kept without what it was given or has shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from csmd.cache import cached
from csmd.pauses import Pauses

NOT_KEPT = "[not kept: excluded file]"
#: Where a tool's input says which file it is about, and what else of it is kept then.
PATH_KEYS = ("file_path", "notebook_path", "path")
KEPT_KEYS = (*PATH_KEYS, "description", "offset", "limit")
#: What ends a word of a command line.
_BETWEEN = re.compile(r"[\s\"'`;|&<>()=,]+")


def nowhere(folder: str) -> bool:
    """Where no directory is marked."""
    del folder
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Excludes:
    """What is in force: the globs of the configuration, marks in directories, pauses."""

    projects: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    is_off: Callable[[str], bool] = nowhere
    """Whether a directory or one above it is marked (`.csmd-off`); asks the disk."""
    pauses: Callable[[], Pauses] = Pauses

    def off(self, *folders: str) -> bool:
        """Whether one of these directories is marked; asks the disk."""
        return any(self.is_off(folder) for folder in dict.fromkeys(folders) if folder)

    @property
    def ask_the_disk(self) -> bool:
        """Whether what is left out depends on what a disk says."""
        return bool(self.projects) or self.is_off is not nowhere

    def place(self, *folders: str) -> bool:
        """Whether one of these directories, or one above it, is excluded."""
        return bool(self.projects) and any(
            _glob(one).fullmatch(above)
            for folder in folders
            if folder
            for above in _above(folder)
            for one in self.projects
        )

    def file(self, path: str) -> bool:
        """Whether a file's content is not to be kept; a relative path is one below any folder."""
        shown = path if path.startswith("/") else f"/{path}"
        return bool(path) and any(_glob(one).fullmatch(shown) for one in self.files)

    def command(self, line: str) -> bool:
        """Whether a command line names such a file; as far as its words show."""
        return bool(self.files) and any(self.file(word) for word in _BETWEEN.split(line[:20_000]))


@dataclass(slots=True, kw_only=True)
class Withheld:
    """The calls of tools that named an excluded file: what they were given and what they showed is not kept."""

    excludes: Excludes = field(default_factory=Excludes)
    calls: set[str] = field(default_factory=set)

    def given(self, ident: str, value: Any) -> Any:
        """The input of a call, without its content when it names an excluded file; the call is then remembered."""
        if not isinstance(value, Mapping) or not self.excludes.files:
            return value
        command = value.get("command")
        command = command if isinstance(command, str) else ""
        named = [path for key in PATH_KEYS if isinstance(path := value.get(key), str)]
        if not any(map(self.excludes.file, named)) and not self.excludes.command(command):
            return value
        self.calls.add(ident)
        kept = {key: value[key] for key in KEPT_KEYS if key in value}
        if command and "\n" not in command:  # on more lines it may write the file
            kept["command"] = command
        return {**kept, "content": NOT_KEPT}

    def shown(self, ident: str, content: Any, result: Any) -> Any:
        """What a call has shown, or the mark; `result` is the host's own account of it, which may name the file."""
        named = []
        if isinstance(result, Mapping):
            inner = result.get("file")
            named = [result.get("filePath"), inner.get("filePath") if isinstance(inner, Mapping) else None]
        if ident in self.calls or any(isinstance(path, str) and self.excludes.file(path) for path in named):
            return NOT_KEPT
        return content


def _above(folder: str) -> list[str]:
    parts = folder.rstrip("/").split("/")
    return ["/".join(parts[:count]) for count in range(len(parts), 0, -1)]


@cached(256)
def _glob(pattern: str) -> re.Pattern[str]:
    spelt = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern.rstrip("/") if len(pattern) > 1 else pattern)
    return re.compile("".join(spelt.get(part) or re.escape(part) for part in parts), re.DOTALL)
