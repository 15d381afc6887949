"""What csmd asks of an assistant's adapter, and the values that it answers with; pure.

Each assistant has a folder below `csmd/hosts` and a row in `csmd/hosts/adapters.py`. A transcript's lines
become Turns, a hook's payload an Event, a text an answer. What is stored is the same for all: tool calls go by the
names and fields of `csmd/hosts/tool_calls.py`, and a session's id begins with its host's name, save Claude Code's. The
settings that an assistant is registered in stand in `registration.py` of its folder, which the installer imports.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Protocol

from csmd import wire
from csmd.errors import BadInput
from csmd.exclusions import Withheld
from csmd.hosts.hook_payloads import Hooks
from csmd.hosts.host_files import HooksState
from csmd.hosts.json_fields import moment
from csmd.privacy.redaction import Removed, redact, without_private
from csmd.text import display
from csmd.values import Turn
from csmd.vocabulary import TurnKind

#: Longest answer to a hook in UTF-16 units: the assistants cut at 10,000.
ANSWER_LIMIT_UNITS = 9_000
#: Of one message; what is longer is a file that somebody pasted, and stands in the transcript.
MOST_CHARACTERS = 500_000
#: How far back it is looked for what a line depends on.
BACK_BYTES = (256 * 1024, 8 * 1024 * 1024)


# --- what a transcript's lines hold


@dataclass(frozen=True, slots=True)
class Took:
    """The tokens that a line records for its message: the fields of the store's Spent in its order.

    `place` is the turn that the line is, or the last one before a line that is none; -1 where none stood before.
    """

    stream: str
    message_id: str
    amounts: tuple[int, int, int, int]
    place: int = -1


@dataclass(frozen=True, slots=True)
class Left:
    """A prompt that left the queue, into a turn under way (`absorbed`) or as the next one; with its text, or "".

    `nth` counts what left at the same moment; `place` is how many turns the reading held before.
    """

    session_id: str
    at: str
    absorbed: bool
    text: str
    nth: int
    place: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reverted:
    """That a conversation goes on from an earlier line: which of its stored turns, by uuid, it leaves behind."""

    stream: str
    is_left: Callable[[str], bool]


@dataclass(slots=True)
class Reading:
    """What a batch of lines held: turns in order, what left the queue, titles by session, lines skipped.

    `redactions` counts by kind what was taken out of a line, under the uuid of its first turn ("" for none). `worktrees`
    are (worktree, directory it was entered from).
    """

    turns: list[Turn] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    titles: dict[str, str] = field(default_factory=dict)
    title_at: dict[str, int] = field(default_factory=dict)
    """How many turns stood before a session's title."""
    redactions: dict[str, Counter[str]] = field(default_factory=dict)
    secrets: dict[str, set[str]] = field(default_factory=dict)
    """Session -> what was known as a secret in it and is one wherever it stands there."""
    skipped: int = 0
    withheld: Withheld = field(default_factory=Withheld)
    spent: list[Took] = field(default_factory=list)
    """The tokens that each line records, in order."""
    withdrawn: list[str] = field(default_factory=list)
    """The uuids of turns that a session file of csmd's own takes back."""
    reverted: list[Reverted] = field(default_factory=list)
    """What is left behind of what other files hold, or this one before these lines."""
    worktrees: list[tuple[str, str]] = field(default_factory=list)
    agent: str = ""
    """The sub-agent whose file is read; "" in a session's."""

    def note_removed(self, turns: Sequence[Turn], removed: Removed) -> None:
        """Adds what was taken out of a line that holds these turns."""
        self.redactions.setdefault(turns[0].uuid if turns else "", Counter()).update(removed)
        if turns and removed.secrets:
            self.secrets.setdefault(turns[0].session_id, set()).update(removed.secrets)

    def note_title(self, session: str, text: str, counts: Counter[str]) -> None:
        """Takes a title for a session, where there is one."""
        title = redact(display.squeeze(wire.clean(text)), counts)[:200]
        if title:
            self.titles[session], self.title_at[session] = title, len(self.turns)

    def only(self, keep: Callable[[Turn], bool]) -> Reading:
        """The reading without the other turns; what left the queue keeps its place among those that stay."""
        kept = [keep(turn) for turn in self.turns]
        before = [0, *itertools.accumulate(map(int, kept))]
        turns = [turn for turn, stays in zip(self.turns, kept, strict=True) if stays]
        spent = [replace(one, place=before[one.place]) for one in self.spent if one.place >= 0 and kept[one.place]]
        return replace(
            self, turns=turns, left=[replace(one, place=before[one.place]) for one in self.left], spent=spent
        )


class ReadLine(Protocol):
    """Adds what one line holds to a reading; BadInput when it is malformed.

    `tool_limit` is how many bytes of a tool's input or output are kept; `display.cut_middle` of `turn UUID` shortens it, so
    that what is left out is counted, and found again by that uuid.
    """

    def __call__(self, line: bytes, into: Reading, *, tool_limit: int) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A transcript that is read on from a position: its path, its first bytes, and what is left out of it."""

    path: Path
    file: BinaryIO
    beginning: bytes
    position: int
    withheld: Withheld

    @property
    def name(self) -> str:
        """Its name."""
        return self.path.name

    @property
    def folder(self) -> str:
        """Its directory's name."""
        return self.path.parent.name

    def beside(self, suffix: str, limit: int) -> bytes:
        """At most `limit` bytes of the file of its name with another suffix; b"" for none that can be read."""
        try:
            with self.path.with_suffix(suffix).open("rb") as file:
                return file.read(limit)
        except OSError:
            return b""

    def before(self, size: int) -> bytes:
        """At most `size` bytes before the position."""
        begin = max(0, self.position - size)
        self.file.seek(begin)
        return self.file.read(self.position - begin)

    def look_back(self, find: Callable[[bytes], list[bytes]]) -> list[bytes]:
        """What `find` finds in the bytes before the position: in a few, and where there is nothing, in more."""
        for size in BACK_BYTES if self.position else ():
            before = self.before(size)
            if (found := find(before)) or len(before) < size:
                return found
        return []

    def first_line(self, limit: int) -> bytes:
        """The first line, or so many bytes of it."""
        self.file.seek(0)
        return self.file.readline(limit)

    def go_through(self, lines: Iterable[bytes], read: ReadLine) -> None:
        """Reads lines before the position once more, for what later ones depend on: what is wrong with them is known."""
        past = Reading(withheld=self.withheld)
        for line in lines:
            with contextlib.suppress(BadInput):
                read(line, past, tool_limit=0)


def refuse(*_: object, **__: object) -> None:
    """How the lines of a transcript are read whose first line names no session."""
    raise BadInput("a line of a transcript whose first line names no session")


_START = re.compile(rb'"cwd":\s?("(?:[^"\\]|\\.)*+")')


def started_in(beginning: bytes) -> str:
    """The directory a session was started in, redacted, from a transcript's first bytes; "" for none."""
    found = _START.search(beginning)
    try:
        return redact(wire.clean(wire.loads(found[1].decode("utf-8", "replace"))), Counter()) if found else ""
    except BadInput:
        return ""


# --- the contract


@dataclass(frozen=True, slots=True, kw_only=True)
class Memo:
    """One file of an assistant's own memory; `modified` is UTC, `size` in bytes, `problems` what is odd in it."""

    filename: str
    name: str
    description: str
    type: str
    modified: str
    size: int
    problems: tuple[str, ...] = ()


class ReadMemo(Protocol):
    """The head of a memory file, by its name, its first bytes, when it was modified (UTC) and its size in bytes."""

    def __call__(self, filename: str, data: bytes, *, modified: str, size: int) -> Memo: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnMemory:
    """An assistant's own memory: a directory of notes for each project, with an index that a session is given."""

    folder: Callable[[str, str], str]
    """The directory, by a configuration directory and the project's root."""
    read_memo: ReadMemo
    body: Callable[[bytes], str]
    """A file's text without its head."""
    cut_index: Callable[[str], str]
    """The index as far as a session is given it."""
    most_files: int
    """How many files are listed, the newest first."""
    read_bytes: int
    """How many bytes of one are read for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionNames:
    """The files that an assistant tells a session at its start, by names below a directory, in its order.

    Each row is a choice: of its names the first that is there is loaded. The last part of a name may be a pattern
    (`.github/instructions/*.md`), which stands for all files that fit.
    """

    user: tuple[tuple[str, ...], ...] = ()
    """Below the assistant's configuration directory."""
    project: tuple[tuple[str, ...], ...] = ()
    """Below the project's root."""

    def __iter__(self) -> Iterator[str]:
        return (name for rows in (self.user, self.project) for row in rows for name in row)


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A transcript that an assistant resumes: its lines, the session id they carry, and how many turns of abandoned
    branches are not in it; `place` is where it has to lie below the configuration directory, `command` what resumes it."""

    session_id: str
    lines: tuple[str, ...]
    left_out: int
    place: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """One assistant: `host` is its name in the store and on the wire, `title` its name for people.

    What has a default is what most assistants have in common.
    """

    host: str
    title: str

    transcripts: str
    """The directory of transcripts below the assistant's directory, or the database in which they are."""
    is_transcript: Callable[[bytes], bool]
    """Whether a file's first bytes are those of a transcript of this assistant."""
    read_from: Callable[[Opened], ReadLine]
    """How the lines from a position on are read.

    Where the assistant records who handed a prompt in, and that record cannot be read, the prompt is `relayed`: what is
    unknown is never the user's."""
    place_of: Callable[[str, str], tuple[str, str] | None]
    """(project directory, session) of a transcript by a root and the path below it; None where the host keeps none."""
    places: Callable[[Path], list[Path]]
    """The files and directories of a configuration directory that hold text of conversations."""
    hooks: Hooks
    """How its hooks' payloads are read, and answered."""
    hooks_state: Callable[[Path, Path, Callable[[str], str | None]], HooksState]
    """Whether csmd's hooks run, by the settings in a configuration directory: of a csmd home, read by the function."""
    window: Callable[[str, int], int]
    """The context window of a model of which so many tokens are in use."""

    drops: Callable[[bytes], Callable[[Turn], bool] | None] = lambda _: None
    """By a transcript's first bytes, which turns are no conversation; None where all are."""
    titles_in: Callable[[bytes], Mapping[str, str]] = lambda _: {}
    """The titles by session among a transcript's first bytes."""
    may_answer: Callable[[list[str], bool], bool] = lambda *_: False
    """Whether a result of these tools can hold the user's words, or (True) the answers that they picked."""
    client_versions: Callable[[Iterable[Turn]], dict[str, str]] = lambda _: {}
    """Of each version in these turns the time of its last, where the registered hooks depend on it."""
    written_for_user: re.Pattern[str] | None = None
    """How a stored prompt begins that the assistant wrote in the user's name: it states nothing."""
    expects_hooks: Callable[[bytes], bool] = lambda _: False
    """Whether hooks should have run in a session and csmd's have not, by its transcript's first bytes."""

    days_kept: Callable[[str, str, Callable[[str], str | None]], int] = lambda *_: 0
    """The days after which transcripts are deleted, 0 for never: by a configuration directory, a project's directory ("" for
    any) and the function that reads settings."""
    instructions: InstructionNames | None = None
    """The instruction files that it loads; None for Claude Code, whose rules and imports csmd/capture/instruction_files.py
    follows."""
    memory: OwnMemory | None = None
    """Its own memory, where csmd reads it."""

    started_in: Callable[[bytes], str] = started_in
    """The directory a session was started in, redacted, from a transcript's first bytes; "" for none."""


# --- what several assistants have in common


def below(*names: str) -> Callable[[Path], list[Path]]:
    """These files and directories of a configuration directory."""
    return lambda folder: [folder / name for name in names]


def window_of(tokens: int) -> Callable[[str, int], int]:
    """The context window of every model: so many tokens, or as many as are in use."""
    return lambda _, used: max(tokens, used)


_TIME = re.compile(rb'"timestamp":\s?"([0-9T:.+Z-]+)"')


def times_in(part: bytes) -> tuple[str, str]:
    """The first and the last time in a part of a transcript; the epoch for none."""
    found = [one.decode("ascii", "replace") for one in _TIME.findall(part)]
    return moment({"timestamp": found[0] if found else ""}), moment({"timestamp": found[-1] if found else ""})


def cut_long(plain: str, counts: Counter[str]) -> str:
    """A clean text of which beginning and end are kept where it is very long."""
    if len(plain) <= MOST_CHARACTERS:
        return plain
    # A tag may stand in what is cut out, and its other half in what is kept.
    plain = without_private(display.strip_fenced(plain), counts)
    return display.cut_at_words(plain, limit=MOST_CHARACTERS)


def without_injections(plain: str, counts: Counter[str]) -> str:
    """A clean text without what csmd put into it and without what is private, redacted."""
    return redact(display.strip_fenced(plain), counts).strip()


def spoken(text: str, counts: Counter[str], *, around: tuple[str, str] | None = None) -> str:
    """A text without csmd's injections and what stands between these tags, redacted."""
    plain = wire.clean(text)
    plain = display.without_spans(plain, *around) if around else plain
    return without_injections(cut_long(plain, counts), counts)


_SLASH = re.compile(r"/[a-zA-Z][\w:.-]*(?:\s|$)")


def is_slash_command(said: str) -> bool:
    """Whether a prompt is a command of the host's."""
    return _SLASH.match(said) is not None


def prompt_kind(
    written_for_user: re.Pattern[str], said: str, *, by_person: bool, has_commands: bool = True
) -> TurnKind:  # fmt: skip
    """Whether a prompt is the user's own words, a command, a program's or, as it begins, the host's own."""
    if written_for_user.match(said):
        return "notification"
    if has_commands and is_slash_command(said):
        return "command"
    return "user" if by_person else "relayed"


def quoted_answers(pairs: Iterable[tuple[str, str]]) -> str:
    """Answers of the user's, each below its question, which is quoted: it is the assistant's."""
    return "\n\n".join(
        "\n".join([*(f"> {line}" for line in question.splitlines()), answer.strip()])
        for question, answer in pairs
        if answer.strip()
    )


def took(
    stream: str, message_id: str, place: int, *, given: int, made: int, read: int = 0, written: int = 0
) -> list[Took]:  # fmt: skip
    """The tokens of one response, whose input holds those `read` from the cache and `written` to it; [] for none."""
    amounts = (max(0, given - read - written), made, read, written)
    return [Took(stream, message_id, amounts, place)] if message_id and (given or made) else []


def tokens(usage: object, name: str) -> int:
    """An amount of tokens; 0 for what is none."""
    amount = usage.get(name) if isinstance(usage, dict) else 0
    return amount if type(amount) is int and 0 <= amount < 2**40 else 0


def place_below(root: str, inside: str) -> tuple[str, str]:
    """(project directory, session) of a transcript that lies in a directory of its project's."""
    project, _, rest = inside.partition("/")
    if not rest:  # a transcript in the root itself
        return root, project.removesuffix(".jsonl")
    return f"{root}/{project}", rest.partition("/")[0].removesuffix(".jsonl")
