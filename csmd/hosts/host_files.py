"""What csmd writes into an assistant's own files, and how it is asked whether it runs csmd's hooks; pure but for where a
directory is.

Each assistant's `registration.py` has a `FILES`, listed in `csmd/hosts/registrations.py`; the installer and `csmd doctor` know
an assistant by it alone.
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

#: csmd's own script that handles every event, and the one that starts the memory server, which assistants know by NAME.
HOOK_SCRIPT = "csmd_hook.py"
SERVER_SCRIPT = "mcp"
NAME = "csmd"
#: What settings say of csmd's hooks; Codex runs none that its user has not trusted.
HooksState = Literal["there", "gone", "off", "untrusted", "unknown"]


def granted(*names: EventName) -> dict[str, int]:
    """These events by their names on a hook's command line -> seconds that the hook is granted."""
    return {EVENTS[name].hook: EVENTS[name].seconds for name in names}


#: Events whose hooks `csmd doctor` runs with a marker -> what csmd calls the event, and the field that holds the words.
MARKERS: dict[str, tuple[str, str]] = {EVENTS[name].hook: (name, EVENTS[name].words) for name in ("prompt", "stop")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """What the entries are made of.

    `interpreter` outlives csmd's environment; `events` are those that every client in use knows; `server_arguments`
    those of `csmd mcp`, where some were chosen.
    """

    home: Path
    interpreter: str
    events: tuple[str, ...] = ()
    status_line: bool = False
    server_arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of entry: its `name` in the record, and `what` it is for people.

    `file` tells the file in one of the assistant's configuration directories. `merge(text, wanted, where)` gives the
    text with the entry, `remove(text, home, where)` without it; `where` is the file's name in errors. Merging what was
    merged, and removing where nothing of this home stands, changes nothing. `decode` gives the text of a file, `begin`
    what an empty one begins with.
    """

    name: str
    what: str
    file: Callable[[Path], Path]
    merge: Callable[[str, Registration, str], str]
    remove: Callable[[str, Path, str], str]
    is_wanted: Callable[[Registration], bool] = lambda _: True
    obstacle: Callable[[str, Registration, str], str] = lambda *_: ""
    """Why our entry is not in the file, for the user: another one has its place; "" when it is."""
    decode: Callable[[bytes | None, str], str] = json_edits.decode
    begin: Callable[[str], str] = json_edits.with_object
    shared: bool = False
    """Whether the assistant writes the file all the time: written under its lock, and shown without context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """How an assistant's program is asked whether it runs csmd's hooks.

    `asked` are messages for its standard input, a line of JSON each, for a session in a directory. `read(line, home)` gives
    event -> state by one line of the answer, None where that line is not it; `runs` are the states in which a hook runs.
    """

    arguments: tuple[str, ...]
    asked: Callable[[Path], list[dict[str, Any]]] = lambda _: []
    read: Callable[[str, Path], dict[str, str] | None]
    runs: frozenset[str]
    ends: bool = False
    """Whether the program ends by itself: without a line that is an answer it then runs none of the hooks."""
    is_apart: bool = False
    """Whether it is asked in an empty directory, as it would run what the current one's project has for it."""
    patience_s: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFiles:
    """One assistant on a user's machine: `host` is its name in the store and on the wire, `title` its name for people."""

    host: str
    title: str

    folder: str
    """Its configuration directory in the user's home."""
    variable: str = ""
    """The variable that names another one; "" for none."""
    inside: str = ""
    """Its name below the directory that `folder` and `variable` name, where it shares that with other programs."""
    program: str
    """Its command."""
    program_folders: tuple[str, ...] = ()
    """Directories, below the user's home or absolute, into which its installers put the command; PATH may lack them."""

    kinds: tuple[Kind, ...]
    """What csmd puts in, in this order; the first are its hooks, without which it reports nothing."""
    events: Mapping[str, int]
    """Event -> seconds that its hook is granted."""
    newer: Mapping[str, str] = field(default_factory=dict)
    """Event -> the first version that knows it, where not every version does: registered where every client in use knows it."""
    without_events: Callable[[str, Path, str, Collection[str]], str] = lambda text, *_: text
    """The settings in which csmd's hooks of these events are missing; by the settings, csmd's home, the file, and the events."""
    forgiving: str = ""
    """The first version that an unknown event in the settings does not hurt."""
    hook_command: Callable[[str, Path, str], str]
    """The command line of an event's hook, by interpreter, csmd's home and event."""
    launcher: str = ""
    """The script that its hooks run, by its name in csmd's home: a copy of `hooks/assistant`, which tells the host by it."""

    managed: Mapping[str, str] = field(default_factory=dict)
    """Platform -> where an organisation puts settings that nobody can change; any other platform is like `linux`."""
    transcript_days: int = 0
    """Days after which it deletes a transcript where nobody chose another number; 0 for never."""

    markers: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """As MARKERS, where its hooks are run so."""
    state: Callable[[Path, Path, Callable[[str], str | None]], str] | None = None
    """Whether its hooks are `there`, `off`, `gone` or `unknown`, by the settings in a configuration directory: of a csmd home,
    read by the function."""
    switched_off: str = "switch hooks on there"
    """What its user has to do where they are `off`."""
    question: Question | None = None
    to_do: str = ""
    """What its user has to do before hooks run; "" for nothing."""
    warning: Callable[[], str] = lambda: ""
    """What its user should know of csmd's hooks on this machine; "" for nothing."""
    further: tuple[str, ...] = ()
    """More files of csmd's own that its hooks need, as shipped in `hooks`."""

    @property
    def always(self) -> tuple[str, ...]:
        """The events that every version knows."""
        return tuple(event for event in self.events if event not in self.newer)

    def managed_file(self, platform: str) -> str:
        """Where an organisation puts settings that nobody can change, on a platform."""
        return self.managed.get(platform, self.managed["linux"])

    def directory(self) -> Path:
        """Its configuration directory in force in this environment."""
        return config.folder_of(self.variable, self.folder) / self.inside

    def environment(self, directory: Path) -> dict[str, str]:
        """The variable with which it takes this directory for its own."""
        return {self.variable: str(directory.parent if self.inside else directory)} if self.variable else {}


# --- csmd's scripts in an entry


def script_in(home: Path, name: str) -> Path:
    """The installed copy of one of the hook's files."""
    if not str(home).isprintable():
        raise ConfigError(f"{str(home)!r} cannot be written into a settings file", hint="choose another CSMD_HOME")
    return home / "hook" / name


def words_of(entry: Any) -> list[str]:
    """Every word of the command and arguments that an entry runs, those of a command line within a word included."""
    if not isinstance(entry, dict):
        return []
    arguments = entry.get("args")
    words = [entry.get("command"), *(arguments if isinstance(arguments, list) else [])]
    return in_shell([word for word in words if isinstance(word, str)])


def in_shell(words: Iterable[str]) -> list[str]:
    """These words and what a shell makes of them: a command line, and one in a word of it, as in sh -c '...'."""
    found = list(words)
    for _ in range(2):
        found += [part for word in found for part in split(word)]
    return found


def split(command: str) -> list[str]:
    """The words of a command line; [] where a quote is never closed."""
    try:
        return shlex.split(command)
    except ValueError:
        return []


def runs(entry: Any, home: Path, script: str) -> bool:
    """Whether an entry runs this script of this home, however it is quoted or wrapped; another home's is foreign."""
    pattern = re.compile(rf"(?<![\w./~-]){re.escape(str(home / 'hook' / script))}(?![\w./-])")
    return any(pattern.search(word) for word in words_of(entry))
