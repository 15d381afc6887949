"""The user's exclusions: pauses, projects, files, and the content withheld from tool calls."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from csmd import file_lines, wire
from csmd.cache import cached
from csmd.errors import BadInput, ConfigError
from csmd.file_lines import NOT_KEPT as NOT_KEPT

#: A typed length of time: `2h`, `1h30m`, `1d`.
_LENGTH = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?:in)?)?(?:(\d+)s)?")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
#: Sorts after every stored time.
FOREVER = "~"
MAX_PAUSE_S = 366 * 86_400


@dataclass(frozen=True, slots=True)
class Pauses:
    """Pauses as (begin, end), in order; the end of the last is "" until it is resumed."""

    spans: tuple[tuple[str, str], ...] = ()
    by: str = ""
    """The caller who began the last pause, for people."""

    def covers(self, at: str) -> bool:
        """Whether a moment is in a pause; the end of a pause is not in it."""
        return self.touches(at, at)

    def touches(self, first: str, last: str) -> bool:
        """Whether any moment from `first` to `last` is in a pause."""
        # A pause that ends before it begins does not count: the clock was set back.
        spans = ((begin, end or FOREVER) for begin, end in self.spans)
        return any(begin <= last and first < end and begin < end for begin, end in spans)

    def find_current(self, now: str) -> tuple[str, str] | None:
        """Returns the current pause as (begin, end), its end "" until it is resumed; None if there is none."""
        if not self.spans:
            return None
        begin, end = self.spans[-1]
        return (begin, end) if not end or begin <= now < end else None

    def begin(self, now: str, *, end: str = "", by: str = "") -> Pauses:
        """Returns the pauses with a new one; a current pause gets the new end instead."""
        current = self.find_current(now)
        earlier, begin = (self.spans[:-1], current[0]) if current else (self.spans, now)
        return Pauses((*earlier, (begin, end)), by)

    def end(self, now: str) -> Pauses:
        """Returns the pauses with the current one ended; a pause that began after `now` ends when it began."""
        current = self.find_current(now)
        return Pauses((*self.spans[:-1], (current[0], max(current[0], now)))) if current else self


def parse_pauses(data: bytes, *, where: str) -> Pauses:
    """Parses the file of pauses; ConfigError if it is malformed, since ignoring it would capture too much."""
    try:
        value = wire.loads(data)
        rows = value["pauses"]
        spans, by = tuple((row["from"], row["to"]) for row in rows), str(value.get("by", ""))
        if not all(_TIME.fullmatch(begin) and (end == "" or _TIME.fullmatch(end)) for begin, end in spans):
            raise ValueError
        return Pauses(spans, by)
    except (BadInput, KeyError, TypeError, ValueError) as error:
        hint = f"correct it; without it the time of past pauses is captured: mv {where} {where}.bad"
        raise ConfigError(f"{where}: not a list of pauses", hint=hint) from error


def format_pauses(pauses: Pauses) -> bytes:
    """Returns the bytes of the file of pauses."""
    rows = [{"from": begin, "to": end} for begin, end in pauses.spans]
    return f"{wire.pretty({'pauses': rows, 'by': pauses.by})}\n".encode()


def parse_length(word: str) -> int:
    """Parses a length of time (`2h`, `30m`, `1d`, `1h30m`) to seconds; BadInput if malformed or above a year."""
    match = _LENGTH.fullmatch(word.strip().lower())
    days, hours, minutes, seconds = (int((part or "0")[:9]) for part in match.groups()) if match else (0,) * 4
    total = days * 86_400 + hours * 3_600 + minutes * 60 + seconds
    if not 0 < total <= MAX_PAUSE_S:
        raise BadInput(f"{word!r} is not a length of time", hint="write e.g. 30m, 2h, 1h30m or 1d; at most a year")
    return total


class PauseFile:
    """Owns the pauses as last read; calling the object returns them, from any thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, ...] = ()
        self._pauses = Pauses()
        self.reload()

    def __call__(self) -> Pauses:
        return self._pauses

    def reload(self) -> bool:
        """Reads the file if it has changed, and returns whether it had; after a ConfigError the old pauses apply."""
        stamp: tuple[int, ...] = ()
        try:
            info = self._path.stat()
            stamp = (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns)
            if stamp == self._stamp:
                return False
            pauses = parse_pauses(self._path.read_bytes(), where=str(self._path))
        except FileNotFoundError:
            stamp, pauses = (), Pauses()
        except OSError as error:
            raise ConfigError(f"{self._path}: {error.strerror}", hint="make it readable for its owner") from error
        self._pauses, is_changed, self._stamp = pauses, stamp != self._stamp, stamp
        return is_changed


#: Keys of a call's input that are kept if it names an excluded file.
KEPT_KEYS = ("file_path", "notebook_path", "path", "description", "offset", "limit")
#: Characters of a command line that are examined.
MAX_LINE_CHARS = 20_000
_PATH_KEY = re.compile(r"path|file|uri|source|destination|target", re.IGNORECASE)
#: Separators of words in a command line; a colon also comes before a path (`git show HEAD:.env`).
_SEPARATORS = re.compile(r"[\s\"'`;|&<>()=,]+")


def has_no_mark(_: str) -> bool:
    """Returns the default check for marks: no directory is marked."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Excludes:
    """The exclusions in force: globs of the configuration, `.csmd-off` marks, pauses."""

    projects: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    is_off: Callable[[str], bool] = has_no_mark
    """Whether a directory or a parent is marked (`.csmd-off`); reads the disk."""
    pauses: Callable[[], Pauses] = Pauses

    def has_off_mark(self, *folders: str) -> bool:
        """Whether one of these directories is marked by `.csmd-off`; reads the disk."""
        return any(self.is_off(folder) for folder in dict.fromkeys(folders) if folder)

    @property
    def reads_disk(self) -> bool:
        """Whether finding an exclusion reads the disk."""
        return bool(self.projects) or self.is_off is not has_no_mark

    def covers_directory(self, *folders: str) -> bool:
        """Whether one of these directories, or a parent, is excluded."""
        parents = [parent for folder in folders if folder and self.projects for parent in _list_parents(folder)]
        return any(_glob_pattern(glob).fullmatch(parent) for parent in parents for glob in self.projects)

    def covers_file(self, path: str) -> bool:
        """Whether a file's content must not be stored; a relative path may be below any folder."""
        path = path.replace("\\", "/")
        absolute = path if path.startswith("/") else f"/{path}"
        return bool(path) and any(_glob_pattern(glob).fullmatch(absolute) for glob in self.files)

    def names_excluded_file(self, line: str) -> bool:
        """Whether the words of a command line name an excluded file."""
        words = _SEPARATORS.split(line[:MAX_LINE_CHARS]) if self.files else []
        return any(self.covers_file(part) for word in words for part in {word, word.rpartition(":")[2]})

    def may_print_excluded(self, line: str) -> bool:
        """Whether a command may print an excluded file without naming it, as through a pattern or a list of files."""
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


#: Programs that print files, loops over files, and programs that list files for others to print.
_PRINT_COMMAND = re.compile(
    r"(?<![\w./-])(?:cat|tac|head|tail|less|more|bat|nl|xxd|hexdump|od|strings|base64|sort|cut|paste)\b([^|;&\n<>]*)"
)
_FOR_LOOP = re.compile(r"\bfor\s+\w+\s+in\s([^;\n]*)")
_LIST_COMMAND = re.compile(r"(?<![\w./-])(?:find|fd|ls|git ls-files)\s")
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
    return name.startswith(".") <= last.startswith(".") and fnmatch.fnmatchcase(name, last)


@dataclass(slots=True, kw_only=True)
class WithheldCalls:
    """Withholds the input and output of tool calls that named an excluded file."""

    excludes: Excludes = field(default_factory=Excludes)
    excluded_calls: set[str] = field(default_factory=set)
    """Calls that named an excluded file."""
    suspect_calls: set[str] = field(default_factory=set)
    """Calls that may have printed an excluded file without naming it."""

    def filter_input(self, call_id: str, value: Any) -> Any:
        """Returns the input of a call, without its content if it names an excluded file; the call is then recorded."""
        if not isinstance(value, Mapping) or not self.excludes.files:
            return value
        command = value.get("command")
        command = command if isinstance(command, str) else ""
        if not self._names_excluded_file(value) and not self.excludes.names_excluded_file(command):
            if self.excludes.may_print_excluded(command):
                self.suspect_calls.add(call_id)
            return self._without_diffs(value)
        self.excluded_calls.add(call_id)
        visible = {key: value[key] for key in KEPT_KEYS if key in value}
        if command and "\n" not in command:  # a command of several lines may write the file
            visible["command"] = command
        return {**visible, "content": NOT_KEPT}

    def _names_excluded_file(self, value: Any) -> bool:
        return any(map(self.excludes.covers_file, _find_paths(value)))

    def _without_diffs(self, value: Any) -> Any:
        """Returns an input without the lines of excluded files in its diffs."""
        if isinstance(value, str):
            return self.excludes.without_files(value, only_diffs=True)
        if isinstance(value, Mapping):
            return {key: self._without_diffs(item) for key, item in value.items()}
        return [self._without_diffs(item) for item in value] if isinstance(value, list) else value

    def filter_output(self, call_id: str, content: str, result: Any) -> str:
        """Returns the output of a call without excluded content; `result` is the assistant's record, which may name the
        file.

        If the output attributes lines to files, only the excluded files' lines are removed.
        """
        if not self.excludes.files:
            return content
        is_hidden = call_id in self.suspect_calls and not file_lines.names_its_files(content)
        if is_hidden or call_id in self.excluded_calls or self._names_excluded_file(result):
            return NOT_KEPT
        return self.excludes.without_files(content)

    def filter_prompt(self, text: str) -> str:
        """Returns a prompt without excluded content, if it is the person's shell line (`!`) or its output."""
        shell = _SHELL_LINE.match(text) if self.excludes.files else None
        if shell is None:
            return text
        kind, content = shell.groups()
        if kind == "input":
            self.excluded_calls.discard("!")
            self.suspect_calls.discard("!")
            self.filter_input("!", {"command": content})
            return text
        output = self.filter_output("!", content, None)
        return text if output == content else f"<bash-stdout>{output}</bash-stdout>"


_SHELL_LINE = re.compile(r"\s*<bash-(input|stdout)>(.*)</bash-\1>", re.DOTALL)


def _find_paths(value: Any) -> list[str]:
    """Returns the strings in an input or a result that name files."""
    paths: list[str] = []
    for key, item in value.items() if isinstance(value, Mapping) else ():
        if key == "file":
            paths += _find_paths(item)
        if _PATH_KEY.search(str(key)):
            strings = [path for path in (item if isinstance(item, list) else [item]) if isinstance(path, str)]
            paths += [path.removeprefix("file://") for path in strings]
    return paths


def _list_parents(folder: str) -> list[str]:
    parts = folder.rstrip("/").split("/")
    return ["/".join(parts[:count]) for count in range(len(parts), 0, -1)]


@cached(256)
def _glob_pattern(glob: str) -> re.Pattern[str]:
    regexes = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", glob.rstrip("/") if len(glob) > 1 else glob)
    return re.compile("".join(regexes.get(part) or re.escape(part) for part in parts), re.DOTALL)
