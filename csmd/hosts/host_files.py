"""An assistant's own files: csmd's entries in them, and the query whether the assistant runs csmd's hooks.

Each assistant's `registration.py` defines `FILES`, listed in `csmd/hosts/registrations.py`; the installer and `csmd
doctor` use nothing else of an assistant. Pure, except that `directory` reads the environment.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from csmd import config
from csmd.errors import ConfigError
from csmd.hook_events import EVENTS, EventName
from csmd.text import json_edits

#: csmd's script that handles every event, the one that starts the memory server, and the server's name in settings.
HOOK_SCRIPT = "csmd_hook.py"
SERVER_SCRIPT = "mcp"
SERVER_NAME = "csmd"
#: The state of csmd's hooks by the settings; Codex runs none that its user has not trusted.
HooksState = Literal["there", "gone", "off", "untrusted", "unknown"]


def hook_timeouts(*names: EventName) -> dict[str, int]:
    """Returns the timeouts of hooks in seconds by event, as it is named on their command lines."""
    return {EVENTS[name].hook_name: EVENTS[name].timeout_s for name in names}


#: Events whose hooks `csmd doctor` runs with a marker -> csmd's name of the event, and the field with the words.
PROBED_EVENTS: dict[str, tuple[str, str]] = {
    EVENTS[name].hook_name: (name, EVENTS[name].text_field) for name in ("prompt", "stop")
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """The values in csmd's entries.

    `interpreter` outlives csmd's environment; every client in use knows the `events`; the user chose the
    `server_arguments` of `csmd mcp`.
    """

    home: Path
    interpreter: str
    events: tuple[str, ...] = ()
    status_line: bool = False
    server_arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsEntry:
    """An entry of csmd's in a settings file: `name` is its name in the record, `what` its name for people.

    `file` gives the file by one of the assistant's configuration directories. `merge(text, wanted, where)` gives the
    text with the entry, `remove(text, home, where)` the text without it; `where` is the file's name in errors. Merging
    twice equals merging once, and removing an entry that is not there changes nothing. `decode` gives the text of a
    file, `begin` the text that an empty file starts with.
    """

    name: str
    what: str
    file: Callable[[Path], Path]
    merge: Callable[[str, Registration, str], str]
    remove: Callable[[str, Path, str], str]
    is_wanted: Callable[[Registration], bool] = lambda _: True
    obstacle: Callable[[str, Registration, str], str] = lambda *_: ""
    """Returns the message that another entry has the name of csmd's; "" if csmd's is in the file."""
    decode: Callable[[bytes | None, str], str] = json_edits.decode
    begin: Callable[[str], str] = json_edits.ensure_object
    shared: bool = False
    """Whether the assistant writes the file often: then it is written under its lock, and shown without context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The query whether an assistant's program runs csmd's hooks.

    `requests` returns the messages for its standard input, one line of JSON each, for a session in a directory.
    `read(line, home)` returns event -> state for a line of the answer, None for any other line; in the states `runs` a
    hook runs.
    """

    arguments: tuple[str, ...]
    requests: Callable[[Path], list[dict[str, Any]]] = lambda _: []
    read: Callable[[str, Path], dict[str, str] | None]
    runs: frozenset[str]
    ends: bool = False
    """Whether the program ends by itself: if no line was an answer, it runs none of the hooks."""
    in_empty_directory: bool = False
    """Whether to ask in an empty directory, because the program would run the current project's code."""
    patience_s: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFiles:
    """An assistant on a user's machine: `host` is its name in the store and on the wire, `title` its name for
    people."""

    host: str
    title: str

    folder: str
    """Its configuration directory in the user's home."""
    variable: str = ""
    """The variable that names another directory; "" if there is none."""
    inside: str = ""
    """Its directory in the one that `folder` and `variable` name, if it shares that with other programs."""
    program: str
    """Its command."""
    program_folders: tuple[str, ...] = ()
    """Directories, relative to the user's home or absolute, where its installers put the command; PATH may lack
    them."""

    kinds: tuple[SettingsEntry, ...]
    """The entries that csmd writes, in this order; the first are its hooks, without which it reports nothing."""
    events: Mapping[str, int]
    """Event -> timeout of its hook in seconds."""
    newer: Mapping[str, str] = field(default_factory=dict)
    """Event -> the first version that knows it, for newer events: registered if every client in use knows them."""
    without_events: Callable[[str, Path, str, Collection[str]], str] = lambda text, *_: text
    """The settings without csmd's hooks for these events; by the settings, csmd's home, the file, and the events."""
    tolerant_since: str = ""
    """The first version that ignores an unknown event in the settings."""
    hook_command: Callable[[str, Path, str], str]
    """The command line of a hook, by interpreter, csmd's home and event."""
    launcher: str = ""
    """The name of the script in csmd's home that its hooks run: a copy of `hooks/assistant`, which knows the host by
    that name."""

    managed: Mapping[str, str] = field(default_factory=dict)
    """Platform -> the file of an organisation's settings, which users cannot change; other platforms are like
    `linux`."""
    transcript_days: int = 0
    """Days after which it deletes a transcript by default; 0 for never."""

    markers: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """As PROBED_EVENTS, if `csmd doctor` can run its hooks."""
    state: Callable[[Path, Path, Callable[[str], str | None]], str] | None = None
    """Whether the hooks of a csmd home are `there`, `off`, `gone` or `unknown`, by the settings in a configuration
    directory, which the function reads."""
    switched_off: str = "switch hooks on there"
    """Advice to its user if they are `off`."""
    question: Question | None = None
    setup_step: str = ""
    """Advice to its user before hooks run; "" if there is nothing to do."""
    warning: Callable[[], str] = lambda: ""
    """Returns a warning about csmd's hooks on this machine, "" if there is none."""
    extra_scripts: tuple[str, ...] = ()
    """Other files from `hooks` that its hooks need."""

    @property
    def stable_events(self) -> tuple[str, ...]:
        """The events that every version knows."""
        return tuple(event for event in self.events if event not in self.newer)

    def managed_file(self, platform: str) -> str:
        """Returns the file of an organisation's settings on a platform."""
        return self.managed.get(platform, self.managed["linux"])

    def directory(self) -> Path:
        """Its configuration directory in this environment."""
        return config.folder_of(self.variable, self.folder) / self.inside

    def environment(self, directory: Path) -> dict[str, str]:
        """Returns the variable that makes it use this directory."""
        return {self.variable: str(directory.parent if self.inside else directory)} if self.variable else {}


def parse_days(value: Any) -> int | None:
    """Returns the number of days that a setting states; None if it is missing or not a valid number."""
    is_valid = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**31
    return int(value) if is_valid else None


# --- csmd's scripts in an entry


def script_path(home: Path, name: str) -> Path:
    """Returns the installed copy of one of the files in `hooks`."""
    if not str(home).isprintable():
        raise ConfigError(f"{str(home)!r} cannot be written into a settings file", hint="choose another CSMD_HOME")
    return home / "hook" / name


def split_entry(entry: Any) -> list[str]:
    """Returns every word of an entry's command and arguments, including those of a command line within a word."""
    if not isinstance(entry, dict):
        return []
    arguments = entry.get("args")
    words = [entry.get("command"), *(arguments if isinstance(arguments, list) else [])]
    return expand_words([word for word in words if isinstance(word, str)])


def expand_words(words: Iterable[str]) -> list[str]:
    """Returns words with the words of the command lines in them, two levels deep, as in sh -c '...'."""
    expanded = list(words)
    for _ in range(2):
        expanded += [part for word in expanded for part in split_command(word)]
    return expanded


def split_command(command: str) -> list[str]:
    """Returns the words of a command line; [] if a quote is not closed."""
    try:
        return shlex.split(command)
    except ValueError:
        return []


def runs_script(entry: Any, home: Path, script: str) -> bool:
    """Whether an entry runs this script of this home, however it is quoted or wrapped."""
    pattern = re.compile(rf"(?<![\w./~-]){re.escape(str(home / 'hook' / script))}(?![\w./-])")
    return any(pattern.search(word) for word in split_entry(entry))
