"""What the user leaves out: pauses, projects, files, and the content withheld from tool calls."""

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
#: Later than every time that can be written.
FOREVER = "~"
LONGEST_S = 366 * 86_400


@dataclass(frozen=True, slots=True)
class Pauses:
    """Pauses as (begin, end), in order; the last one's end is "" until it is resumed."""

    spans: tuple[tuple[str, str], ...] = ()
    by: str = ""
    """Who began the last one, for people."""

    def covers(self, at: str) -> bool:
        """Whether a moment is in a pause; a pause excludes its end."""
        return self.touches(at, at)

    def touches(self, first: str, last: str) -> bool:
        """Whether any moment from `first` to `last` is in a pause."""
        # A pause that ends before it begins does not count: the clock was set back.
        spans = ((begin, end or FOREVER) for begin, end in self.spans)
        return any(begin <= last and first < end and begin < end for begin, end in spans)

    def current(self, now: str) -> tuple[str, str] | None:
        """(begin, end) of the current pause, its end "" until it is resumed; None for none."""
        if self.spans and (not self.spans[-1][1] or self.spans[-1][0] <= now < self.spans[-1][1]):
            return self.spans[-1]
        return None

    def begun(self, now: str, *, end: str = "", by: str = "") -> Pauses:
        """Returns the pauses with one from now on; a current one continues to the new end."""
        on = self.current(now)
        earlier = self.spans[:-1] if on else self.spans
        return Pauses((*earlier, (on[0] if on else now, end)), by)

    def ended(self, now: str) -> Pauses:
        """Returns the pauses with the current one ended now; one that began later than now ends where it began."""
        on = self.current(now)
        return Pauses((*self.spans[:-1], (on[0], max(on[0], now)))) if on else self


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
        hint = f"correct it; without it those times are captured: mv {where} {where}.bad"
        what = f"{where} cannot be read: it says from when to when nothing was to be captured"
        raise ConfigError(what, hint=hint) from error


def written_pauses(pauses: Pauses) -> bytes:
    """The file's bytes."""
    rows = [{"from": begin, "to": end} for begin, end in pauses.spans]
    return f"{wire.pretty({'pauses': rows, 'by': pauses.by})}\n".encode()


def pause_seconds(typed: str) -> int:
    """Parses a length of time (`2h`, `30m`, `1d`, `1h30m`) to seconds; BadInput if malformed or above a year."""
    match = _LENGTH.fullmatch(typed.strip().lower())
    total = 0
    if match and any(match.groups()):
        days, hours, minutes, rest = (int((part or "0")[:9]) for part in match.groups())
        total = days * 86_400 + hours * 3_600 + minutes * 60 + rest
    if not 0 < total <= LONGEST_S:
        raise BadInput(f"{typed!r} is no length of time", hint="write e.g. 30m, 2h, 1h30m or 1d; at most a year")
    return total


class PauseFile:
    """Owns the pauses as last read; calling it returns them, from any thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, ...] = ()
        self._known = Pauses()
        self.reload()

    def __call__(self) -> Pauses:
        return self._known

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
        self._known, changed, self._stamp = pauses, stamp != self._stamp, stamp
        return changed


#: Keys of a call's input that are kept if it names an excluded file.
KEPT_KEYS = ("file_path", "notebook_path", "path", "description", "offset", "limit")
_PATH_KEY = re.compile(r"path|file|uri|source|destination|target", re.IGNORECASE)
#: Separators of words in a command line; a colon also comes before a path (`git show HEAD:.env`).
_BETWEEN = re.compile(r"[\s\"'`;|&<>()=,]+")


def nowhere(_: str) -> bool:
    """The default check for marks: no directory is marked."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Excludes:
    """What is left out now: by globs of the configuration, by `.csmd-off`, by pauses."""

    projects: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    is_off: Callable[[str], bool] = nowhere
    """Whether a directory or one above it is marked (`.csmd-off`); asks the disk."""
    pauses: Callable[[], Pauses] = Pauses

    def off(self, *folders: str) -> bool:
        """Whether one of these directories is marked by `.csmd-off`; reads the disk."""
        return any(self.is_off(folder) for folder in dict.fromkeys(folders) if folder)

    @property
    def ask_the_disk(self) -> bool:
        """Whether finding what is left out reads the disk."""
        return bool(self.projects) or self.is_off is not nowhere

    def place(self, *folders: str) -> bool:
        """Whether one of these directories, or a parent, is excluded."""
        above = [place for folder in folders if folder and self.projects for place in _parents(folder)]
        return any(_glob(glob).fullmatch(place) for place in above for glob in self.projects)

    def file(self, path: str) -> bool:
        """Whether a file's content must not be stored; a relative path may be below any folder."""
        path = path.replace("\\", "/")
        shown = path if path.startswith("/") else f"/{path}"
        return bool(path) and any(_glob(pattern).fullmatch(shown) for pattern in self.files)

    def command(self, line: str) -> bool:
        """Whether the words of a command line name an excluded file."""
        words = _BETWEEN.split(line[:20_000]) if self.files else []
        return any(self.file(word) or (":" in word and self.file(word.rpartition(":")[2])) for word in words)

    def may_print(self, line: str) -> bool:
        """Whether a command may print an excluded file without naming it, as through a pattern or a list of files."""
        arguments = _PRINTED.findall(line[:20_000]) if self.files else []
        if not arguments:
            return False
        words = " ".join([*arguments, *_LOOPED.findall(line[:20_000])]).split()
        patterns = [word.strip("\"'") for word in words if _WILDCARD.search(word)]
        if not patterns and "*" not in line:
            return _prints_listed_files(line[:20_000])
        names = [_last_name(glob, filling) for glob in self.files for filling in ("", "x")]
        return any(_may_expand_to(pattern, name) for pattern in patterns for name in names)

    def without_files(self, text: str, *, only_diffs: bool = False) -> str:
        """`text` without the lines that it attributes to excluded files."""
        return file_lines.without_files(text, self.file, hints=_hints(self.files), only_diffs=only_diffs)


#: Programs that print files, loops over files, and programs that list files for others to print.
_PRINTED = re.compile(
    r"(?<![\w./-])(?:cat|tac|head|tail|less|more|bat|nl|xxd|hexdump|od|strings|base64|sort|cut|paste)\b([^|;&\n<>]*)"
)
_LOOPED = re.compile(r"\bfor\s+\w+\s+in\s([^;\n]*)")
_LISTS = re.compile(r"(?<![\w./-])(?:find|fd|ls|git ls-files)\s")
_HANDED_ON = re.compile(r"xargs|-exec")
_HANDED_BACK = re.compile(r"(?:\$\(|`|<\()\s*(?:find|fd|ls|git ls-files)\b|\|\s*while\s+read\b")
#: A line's end inside a command.
_CONTINUED = re.compile(r"\\\n|(?<=[|&])\n")
_WILDCARD = re.compile(r"[*?\[]")


def _prints_listed_files(line: str) -> bool:
    """Whether a command line lists files and passes their names on."""
    line = _CONTINUED.sub(" ", line)
    commands = ((command, _LISTS.search(command)) for command in re.split(r"[;\n]", line))
    return _HANDED_BACK.search(line) is not None or any(
        listing is not None and _HANDED_ON.search(command, listing.end()) is not None for command, listing in commands
    )


@cached(16)
def _hints(globs: tuple[str, ...]) -> tuple[str, ...]:
    """For each glob the text that every matching path contains."""
    return tuple(dict.fromkeys(max(re.split(r"[*?]", glob.strip("*/")), key=len) for glob in globs))


def _last_name(glob: str, filling: str) -> str:
    """A file name that matches a glob."""
    return glob.rpartition("/")[2].replace("*", filling).replace("?", "x")


def _may_expand_to(pattern: str, name: str) -> bool:
    """Whether a shell pattern may match a file of this name; a leading dot must be written."""
    last = pattern.rpartition("/")[2]
    return name.startswith(".") <= last.startswith(".") and fnmatch.fnmatchcase(name, last)


@dataclass(slots=True, kw_only=True)
class Withheld:
    """Withholds the input and output of tool calls that named an excluded file."""

    excludes: Excludes = field(default_factory=Excludes)
    calls: set[str] = field(default_factory=set)
    unsure: set[str] = field(default_factory=set)
    """Calls that may have printed such a file without naming it."""

    def keep_input(self, ident: str, value: Any) -> Any:
        """The input of a call, without its content if it names an excluded file; the call is then noted."""
        if not isinstance(value, Mapping) or not self.excludes.files:
            return value
        command = value.get("command")
        command = command if isinstance(command, str) else ""
        if not any(map(self.excludes.file, _paths_in(value))) and not self.excludes.command(command):
            if self.excludes.may_print(command):
                self.unsure.add(ident)
            return self._without_diffs(value)
        self.calls.add(ident)
        kept = {key: value[key] for key in KEPT_KEYS if key in value}
        if command and "\n" not in command:  # a command of several lines may write the file
            kept["command"] = command
        return {**kept, "content": NOT_KEPT}

    def _without_diffs(self, value: Any) -> Any:
        """An input without the lines of excluded files in its diffs."""
        if isinstance(value, str):
            return self.excludes.without_files(value, only_diffs=True)
        if isinstance(value, Mapping):
            return {key: self._without_diffs(item) for key, item in value.items()}
        return [self._without_diffs(item) for item in value] if isinstance(value, list) else value

    def shown(self, ident: str, content: str, result: Any) -> str:
        """The output of a call without excluded content; `result` is the assistant's record, which may name the file.

        If the output attributes lines to files, only the excluded files' lines are removed.
        """
        if not self.excludes.files:
            return content
        if ident in self.calls or any(map(self.excludes.file, _paths_in(result))):
            return NOT_KEPT
        if ident in self.unsure and not file_lines.names_its_files(content):
            return NOT_KEPT
        return self.excludes.without_files(content)

    def typed(self, text: str) -> str:
        """A prompt without excluded content, if it is the person's shell line (`!`) or its output."""
        shell = _SHELL_LINE.match(text) if self.excludes.files else None
        if shell is None:
            return text
        if shell[1] == "input":
            self.calls.discard("!")
            self.unsure.discard("!")
            self.keep_input("!", {"command": shell[2]})
            return text
        shown = self.shown("!", shell[2], None)
        return text if shown == shell[2] else f"<bash-stdout>{shown}</bash-stdout>"


_SHELL_LINE = re.compile(r"\s*<bash-(input|stdout)>(.*)</bash-\1>", re.DOTALL)


def _paths_in(value: Any) -> list[str]:
    """The strings in an input or a result that name files."""
    paths: list[str] = []
    for key, item in value.items() if isinstance(value, Mapping) else ():
        if key == "file":
            paths += _paths_in(item)
        if _PATH_KEY.search(str(key)):
            paths += [
                path.removeprefix("file://")
                for path in (item if isinstance(item, list) else [item])
                if isinstance(path, str)
            ]
    return paths


def _parents(folder: str) -> list[str]:
    parts = folder.rstrip("/").split("/")
    return ["/".join(parts[:count]) for count in range(len(parts), 0, -1)]


@cached(256)
def _glob(pattern: str) -> re.Pattern[str]:
    spelt = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern.rstrip("/") if len(pattern) > 1 else pattern)
    return re.compile("".join(spelt.get(part) or re.escape(part) for part in parts), re.DOTALL)
