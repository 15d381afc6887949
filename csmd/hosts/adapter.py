"""The contract between csmd and an assistant; pure.

Each assistant has a folder in `csmd/hosts` and a row in `csmd/hosts/adapters.py`. Its adapter turns transcript lines
into Turns, hook payloads into Events, and text into the answer of a hook. What is stored looks the same for all
assistants: tool calls use the names and fields of `csmd/hosts/tool_calls.py`, and a session's id begins with its host's
name, except Claude Code's. The settings that csmd is registered in are described by `registration.py` of the folder,
which the installer imports.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from csmd.conversation import Turn
from csmd.hosts.hook_payloads import Hooks
from csmd.hosts.host_files import HooksState
from csmd.hosts.transcript_reading import ReadLine, Transcript, find_start_directory

#: The longest answer to a hook in UTF-16 units: assistants cut it at 10,000.
ANSWER_LIMIT_UNITS = 9_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Memo:
    """A file of an assistant's own memory; `modified` is UTC, `size` in bytes."""

    filename: str
    name: str
    description: str
    type: str
    modified: str
    size: int
    problems: tuple[str, ...] = ()


class ReadMemo(Protocol):
    """Reads the head of a memory file; `data` are its first bytes, `modified` is UTC, `size` in bytes."""

    def __call__(self, filename: str, data: bytes, *, modified: str, size: int) -> Memo: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnMemory:
    """An assistant's own memory: a directory of notes for each project, with an index that sessions load."""

    folder: Callable[[str, str], str]
    """The directory of a project, by a configuration directory and the project's root."""
    read_memo: ReadMemo
    body: Callable[[bytes], str]
    """A file's text without its head."""
    cut_index: Callable[[str], str]
    """The part of the index that a session loads."""
    most_files: int
    """The largest number of files that is listed, newest first."""
    read_bytes: int
    """How many bytes of each file are read for the list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionNames:
    """The files that an assistant loads when a session starts, as paths relative to a directory, in its order.

    Of the names in a row only the first that exists is loaded. The last part of a name may be a pattern
    (`.github/instructions/*.md`), which means all files that match.
    """

    user: tuple[tuple[str, ...], ...] = ()
    """In the assistant's configuration directory."""
    project: tuple[tuple[str, ...], ...] = ()
    """In the project's root."""

    def __iter__(self) -> Iterator[str]:
        return (name for rows in (self.user, self.project) for row in rows for name in row)


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A transcript that an assistant can resume: its lines, their session id, and the number of omitted turns of
    abandoned branches; `place` is its path in the configuration directory, `command` resumes it."""

    session_id: str
    lines: tuple[str, ...]
    left_out: int
    place: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """One assistant: `host` is its name in the store and on the wire, `title` its name for people."""

    host: str
    title: str

    transcripts: str
    """The directory of transcripts, or the database that holds them, in the assistant's directory."""
    is_transcript: Callable[[bytes], bool]
    """Whether a file with these first bytes is a transcript of this assistant."""
    make_reader: Callable[[Transcript], ReadLine]
    """Returns the function that reads the lines from a position on.

    If the assistant records who submitted a prompt and that record cannot be read, the prompt is `relayed`: a prompt of
    unknown origin is never attributed to the user."""
    place_of: Callable[[str, str], tuple[str, str] | None]
    """(project directory, session) of a transcript by a root and the path relative to it; None if no transcript is
    there."""
    places: Callable[[Path], list[Path]]
    """The files and directories in a configuration directory that hold text of conversations."""
    hooks: Hooks
    """The reader of its hooks' payloads, and the writer of their output."""
    hooks_state: Callable[[Path, Path, Callable[[str], str | None]], HooksState]
    """Whether the hooks of a csmd home run, by the settings in a configuration directory, which the function reads."""
    window: Callable[[str, int], int]
    """The context window of a model, given how many tokens are in use."""

    drops: Callable[[bytes], Callable[[Turn], bool] | None] = lambda _: None
    """Returns the test for turns that are not part of a conversation, by a transcript's first bytes; None if all are."""
    read_titles: Callable[[bytes], Mapping[str, str]] = lambda _: {}
    """The titles by session in a transcript's first bytes."""
    may_answer: Callable[[list[str], bool], bool] = lambda *_: False
    """Whether a result of these tools can hold the user's words or, with True, the answers that the user picked."""
    client_versions: Callable[[Iterable[Turn]], dict[str, str]] = lambda _: {}
    """Version -> the time of its last turn among these, for assistants whose registered hooks depend on it."""
    written_for_user: re.Pattern[str] | None = None
    """Matches the beginning of a stored prompt that the assistant wrote in the user's name: it states nothing."""
    expects_hooks: Callable[[bytes], bool] = lambda _: False
    """Whether csmd's hooks should have run in a session and did not, by its transcript's first bytes."""

    days_kept: Callable[[str, str, Callable[[str], str | None]], int] = lambda *_: 0
    """After how many days transcripts are deleted, 0 for never; by a configuration directory, a project's directory (""
    for any) and the function that reads settings."""
    instructions: InstructionNames | None = None
    """The instruction files that it loads; None for Claude Code, whose rules and imports
    `csmd/capture/claude_instructions.py` follows."""
    memory: OwnMemory | None = None
    """Its own memory, if csmd reads it."""

    started_in: Callable[[bytes], str] = find_start_directory
    """The directory in which a session was started, redacted, by its transcript's first bytes; "" if there is none."""
