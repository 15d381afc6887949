"""The user's exclusions: projects and files by globs, directories by marks, and pauses."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from dataclasses import dataclass

from csmd import file_lines
from csmd.cache import cached
from csmd.pauses import Pauses

#: Characters of a command line that are examined.
MAX_LINE_CHARS = 20_000
#: Separators of words in a command line; a colon also comes before a path (`git show HEAD:.env`).
_SEPARATORS = re.compile(r"[\s\"'`;|&<>()=,]+")


def never_marked(_: str) -> bool:
    """No directory is marked; the default of `Excludes.is_marked`."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Excludes:
    """The exclusions in force: globs of the configuration, `.csmd-off` marks, pauses."""

    projects: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    is_marked: Callable[[str], bool] = never_marked
    """Whether a directory or a parent is marked (`.csmd-off`); reads the disk."""
    pauses: Callable[[], Pauses] = Pauses

    def has_off_mark(self, *folders: str) -> bool:
        """Whether one of these directories is marked by `.csmd-off`; reads the disk."""
        return any(self.is_marked(folder) for folder in dict.fromkeys(folders) if folder)

    @property
    def reads_disk(self) -> bool:
        """Whether finding an exclusion reads the disk."""
        return bool(self.projects) or self.is_marked is not never_marked

    def covers_directory(self, *folders: str) -> bool:
        """Whether one of these directories, or a parent, is excluded."""
        parents = [parent for folder in folders if folder and self.projects for parent in _list_parents(folder)]
        return any(_glob_pattern(glob).fullmatch(parent) for parent in parents for glob in self.projects)

    def covers_file(self, path: str) -> bool:
        """Whether a file's content must not be stored.

        A relative path is taken as if it were absolute, because its directory is unknown.
        """
        path = path.replace("\\", "/")
        absolute = path if path.startswith("/") else f"/{path}"
        return bool(path) and any(_glob_pattern(glob).fullmatch(absolute) for glob in self.files)

    def names_excluded_file(self, line: str) -> bool:
        """Whether the words of a command line name an excluded file."""
        words = _SEPARATORS.split(line[:MAX_LINE_CHARS]) if self.files else []
        return any(self.covers_file(part) for word in words for part in {word, word.rpartition(":")[2]})

    def may_print_excluded(self, line: str) -> bool:
        """Whether a command may print an excluded file without naming it, for example by a glob or through `xargs`."""
        line = line[:MAX_LINE_CHARS]
        arguments = _PRINT_COMMAND.findall(line) if self.files else []
        if not arguments:
            return False
        words = " ".join([*arguments, *_FOR_LOOP.findall(line)]).split()
        patterns = [word.strip("\"'") for word in words if re.search(r"[*?\[]", word)]
        if not patterns and "*" not in line:
            return _prints_listed_files(line)
        names = [_last_name(glob, star) for glob in self.files for star in ("", "x")]
        return any(_may_expand_to(pattern, name) for pattern in patterns for name in names)

    def without_files(self, text: str, *, only_diffs: bool = False) -> str:
        """`text` without the lines that it attributes to excluded files."""
        hints = _list_hints(self.files)
        return file_lines.without_files(text, self.covers_file, hints=hints, only_diffs=only_diffs)


#: A program that prints files, with its arguments.
_PRINT_COMMAND = re.compile(
    r"(?<![\w./-])(?:cat|tac|head|tail|less|more|bat|nl|xxd|hexdump|od|strings|base64|sort|cut|paste)\b([^|;&\n<>]*)"
)
#: The words that a shell loop runs over.
_FOR_LOOP = re.compile(r"\bfor\s+\w+\s+in\s([^;\n]*)")
#: A program that lists files.
_LIST_COMMAND = re.compile(r"(?<![\w./-])(?:find|fd|ls|git ls-files)\s")
#: The names of listed files as arguments of another program.
_LISTED_ARGUMENTS = re.compile(r"(?:\$\(|`|<\()\s*(?:find|fd|ls|git ls-files)\b|\|\s*while\s+read\b")


def _prints_listed_files(line: str) -> bool:
    """Whether a command line lists files and passes their names on."""
    line = re.sub(r"\\\n|(?<=[|&])\n", " ", line)  # the line breaks inside a command
    if _LISTED_ARGUMENTS.search(line):
        return True
    lists = ((command, _LIST_COMMAND.search(command)) for command in re.split(r"[;\n]", line))
    return any(match and re.search(r"xargs|-exec", command[match.end() :]) for command, match in lists)


@cached(16)
def _list_hints(globs: tuple[str, ...]) -> tuple[str, ...]:
    """For each glob the text that every matching path contains."""
    return tuple(dict.fromkeys(max(re.split(r"[*?]", glob.strip("*/")), key=len) for glob in globs))


def _last_name(glob: str, star: str) -> str:
    """Returns a file name that matches a glob."""
    return glob.rpartition("/")[2].replace("*", star).replace("?", "x")


def _may_expand_to(pattern: str, name: str) -> bool:
    """Whether a shell pattern may match a file of this name; a leading dot must be written."""
    last = pattern.rpartition("/")[2]
    may_start = not name.startswith(".") or last.startswith(".")
    return may_start and fnmatch.fnmatchcase(name, last)


def _list_parents(folder: str) -> list[str]:
    parts = folder.rstrip("/").split("/")
    return ["/".join(parts[:count]) for count in range(len(parts), 0, -1)]


@cached(256)
def _glob_pattern(glob: str) -> re.Pattern[str]:
    regexes = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", glob.rstrip("/") if len(glob) > 1 else glob)
    return re.compile("".join(regexes.get(part) or re.escape(part) for part in parts), re.DOTALL)
