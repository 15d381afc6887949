"""Reading a transcript line by line: the open file, its lines as JSON objects, and the turns found in them; pure."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from csmd import wire
from csmd.conversation import Turn
from csmd.errors import BadInput
from csmd.hosts.labels import decode_path, read_tokens
from csmd.hosts.stored_text import clean_text
from csmd.hosts.tool_calls import Call, find_written_transcripts
from csmd.json_fields import parse_line_object, read_time
from csmd.privacy.redaction import RedactionCounts, redact, redact_tree
from csmd.text import display
from csmd.vocabulary import TurnKind
from csmd.withheld_calls import WithheldCalls

#: Bytes before the position that are searched for lines that later lines depend on; the larger number if the first
#: finds none.
LOOK_BACK_BYTES = (256 * 1024, 8 * 1024 * 1024)


@dataclass(frozen=True, slots=True)
class TokenUse:
    """The tokens that a line records for its message: the fields of `token_usage.MessageTokens` in its order.

    `turn` is the index of the line's turn in the reading, or of the last turn before it; -1 if there was none.
    """

    stream: str
    message_id: str
    amounts: tuple[int, int, int, int]
    turn: int = -1


@dataclass(frozen=True, slots=True)
class QueueExit:
    """A prompt that left the queue, either into a running turn (`absorbed`) or as the next prompt; its text may be "".

    `nth` counts the prompts that left at the same moment; `turn` is the index of the turn that follows it.
    """

    session_id: str
    at: str
    absorbed: bool
    text: str
    nth: int
    turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Revert:
    """A conversation continues from an earlier line; `is_abandoned` tests the uuid of a stored turn."""

    stream: str
    is_abandoned: Callable[[str], bool]


@dataclass(slots=True)
class Reading:
    """The content of a batch of lines: turns in order, prompts that left the queue, titles, and how many lines had
    none.

    `redactions` counts what was removed from a line by kind, under the uuid of its first turn ("" if it has none).
    `worktrees` are (worktree, directory from which it was entered).
    """

    tool_limit: int = 0
    """Most bytes of a tool's input or output that are stored."""
    withheld: WithheldCalls = field(default_factory=WithheldCalls)
    agent: str = ""
    """The sub-agent whose file is read; "" in a session's file."""
    turns: list[Turn] = field(default_factory=list)
    queue_exits: list[QueueExit] = field(default_factory=list)
    titles: dict[str, str] = field(default_factory=dict)
    title_at: dict[str, int] = field(default_factory=dict)
    """Session -> number of turns before its title."""
    redactions: dict[str, Counter[str]] = field(default_factory=dict)
    secrets: dict[str, set[str]] = field(default_factory=dict)
    """Session -> its secrets that are recognised wherever else they appear in it."""
    skipped: int = 0
    token_uses: list[TokenUse] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    """The uuids of turns that one of csmd's own session files withdraws."""
    reverts: list[Revert] = field(default_factory=list)
    worktrees: list[tuple[str, str]] = field(default_factory=list)

    def record_redactions(self, turns: Sequence[Turn], counts: RedactionCounts) -> None:
        """Counts what was removed from a line with these turns."""
        if counts:
            self.redactions.setdefault(turns[0].uuid if turns else "", Counter()).update(counts)
        if turns and counts.secrets:
            self.secrets.setdefault(turns[0].session_id, set()).update(counts.secrets)

    def record_title(self, session: str, text: str, counts: Counter[str]) -> None:
        """Sets the title of a session, unless the text is empty."""
        title = redact(display.squeeze(wire.clean(text)), counts)[:200]
        if title:
            self.titles[session], self.title_at[session] = title, len(self.turns)

    def filter_turns(self, keep: Callable[[Turn], bool]) -> Reading:
        """Returns the reading with the turns that pass a test; queue exits keep their place among them."""
        is_kept = [keep(turn) for turn in self.turns]
        before = [0, *itertools.accumulate(map(int, is_kept))]
        return replace(
            self, turns=list(itertools.compress(self.turns, is_kept)),
            queue_exits=[replace(queue_exit, turn=before[queue_exit.turn]) for queue_exit in self.queue_exits],
            token_uses=[
                replace(use, turn=before[use.turn]) for use in self.token_uses if use.turn >= 0 and is_kept[use.turn]
            ],
        )  # fmt: skip


#: Adds the content of one line to a reading; BadInput when the line is malformed.
ReadLine = Callable[[bytes, Reading], None]


@dataclass(slots=True, kw_only=True)
class Conversation:
    """The session, or the sub-agent of it (`agent`), whose lines are read, and its directory at the current line."""

    session: str
    agent: str = ""
    version: str = ""
    cwd: str = ""

    @property
    def stream(self) -> str:
        """The name of the conversation in the store."""
        return f"{self.session}/{self.agent}" if self.agent else self.session

    def new_turn(self, uuid: str, value: dict[str, Any], kind: TurnKind, text: str, **fields: Any) -> Turn:
        """Returns a turn of a line of this conversation; `fields` replace or add to the others."""
        fields = {"agent_id": self.agent, "cwd": self.cwd, "version": self.version, **fields}
        return Turn(uuid=uuid, session_id=self.session, kind=kind, text=text, at=read_time(value), **fields)


@dataclass(slots=True)
class Line:
    """A line of a transcript as a JSON object, the reading that it is added to, and what was redacted in it."""

    value: dict[str, Any]
    reading: Reading
    redactions: RedactionCounts = field(default_factory=RedactionCounts)

    def clean(self, text: str) -> str:
        """Returns a text of the line as it is stored."""
        return clean_text(text, self.redactions)

    def make_call_turns(self, bare: Turn, call_id: str, calls: Iterable[Call]) -> list[Turn]:
        """Returns the turns of a tool call with this id; `bare` is a turn of the line without text.

        The first turn has the uuid of `bare`, the others append their number to it.
        """
        turns = []
        for number, (tool, arguments) in enumerate(calls):
            uuid = f"{bare.uuid}/{number}" if number else bare.uuid
            body = wire.dumps(redact_tree(self.reading.withheld.filter_input(call_id, arguments), self.redactions))
            call = replace(bare, uuid=uuid, kind="tool_call", tool_name=tool)
            turn = self._make_tool_turn(call, call_id, wire.clean(body))
            # From the original input: what is cut, redacted or withheld may be the path that is written.
            turns.append(replace(turn, writes=find_written_transcripts(tool, arguments)))
        return turns

    def make_result_turn(self, bare: Turn, call_id: str, text: str, outcome: Any = None) -> Turn:
        """Returns the turn of a tool call's result; `outcome` is the result as an object, if the host records one."""
        output = display.strip_fenced(self.reading.withheld.filter_output(call_id, text, outcome))
        text = redact(wire.clean(output), self.redactions)
        return self._make_tool_turn(replace(bare, kind="tool_result"), call_id, text)

    def _make_tool_turn(self, turn: Turn, call_id: str, text: str) -> Turn:
        text = display.cut_middle(text, limit=self.reading.tool_limit, of=f"turn {turn.uuid}")
        return replace(turn, text=text, tool_id=call_id)

    def record_tokens(
        self, stream: str, message_id: str, usage: object, fields: tuple[str, str, str, str], new_turns: int = 0
    ) -> None:  # fmt: skip
        """Records the tokens of one response; `new_turns` are the line's own turns so far.

        `fields` name the input, the output, and the parts of the input read from the cache and written to it; the
        numbers under several names (separated by blanks) are added.
        """
        sums = (sum(read_tokens(usage, name) for name in names.split()) for names in fields)
        input_tokens, output_tokens, cache_read, cache_write = sums
        if message_id and (input_tokens or output_tokens):
            amounts = (max(0, input_tokens - cache_read - cache_write), output_tokens, cache_read, cache_write)
            turn = len(self.reading.turns) + new_turns - 1
            self.reading.token_uses.append(TokenUse(stream, message_id, amounts, turn))

    def record_redactions(self, turns: Sequence[Turn]) -> None:
        """Counts what was removed from the line so far under its turns."""
        self.reading.record_redactions(turns, self.redactions)
        self.redactions = RedactionCounts()

    def skip(self) -> list[Turn]:
        """Counts the line as one without turns; returns none."""
        self.reading.skipped += 1
        return []


def read_objects(turns_in: Callable[[Line], list[Turn]]) -> ReadLine:
    """Returns the reader of lines that are JSON objects, by the function that returns the turns of a line."""

    def read_line(data: bytes, into: Reading) -> None:
        line = Line(parse_line_object(data), into)
        turns = turns_in(line)
        line.record_redactions(turns)
        into.turns += [turn for turn in turns if turn.uuid]

    return read_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A transcript that is read from a position on, with its first bytes and the content withheld from its turns."""

    path: Path
    file: BinaryIO
    beginning: bytes
    position: int
    withheld: WithheldCalls

    def read_sibling(self, suffix: str, limit: int) -> bytes:
        """Returns at most `limit` bytes of the file with the same name and another suffix; b"" if it cannot be read."""
        try:
            with self.path.with_suffix(suffix).open("rb") as file:
                return file.read(limit)
        except OSError:
            return b""

    def read_before(self, size: int) -> bytes:
        """Returns at most `size` bytes before the position."""
        begin = max(0, self.position - size)
        self.file.seek(begin)
        return self.file.read(self.position - begin)

    def find_before(self, find: Callable[[bytes], list[bytes]]) -> list[bytes]:
        """Returns the lines that `find` finds in the bytes before the position: first in a few bytes, then in more."""
        for size in LOOK_BACK_BYTES if self.position else ():
            before = self.read_before(size)
            lines = find(before)
            if lines or len(before) < size:
                return lines
        return []

    def read_first_line(self, limit: int) -> bytes:
        """Returns the first line, cut at `limit` bytes."""
        self.file.seek(0)
        return self.file.readline(limit)

    def reread(self, lines: Iterable[bytes], read: ReadLine) -> None:
        """Reads earlier lines again, on which later lines depend; malformed ones were reported before."""
        discarded = Reading(withheld=self.withheld)
        for line in lines:
            with contextlib.suppress(BadInput):
                read(line, discarded)


def refuse_line(*_: object) -> None:
    """Refuses the lines of a transcript whose first line names no session, with BadInput."""
    raise BadInput("a line of a transcript whose first line names no session")


_START = re.compile(rb'"cwd":\s?("(?:[^"\\]|\\.)*+")')


def find_start_directory(beginning: bytes) -> str:
    """Returns the directory in which a session was started, redacted, by its transcript's first bytes; "" if there is
    none."""
    match = _START.search(beginning)
    return decode_path(match[1]) if match else ""


_TIME = re.compile(rb'"timestamp":\s?"([0-9T:.+Z-]+)"')


def find_times(part: bytes) -> tuple[str, str]:
    """Returns the first and the last time in a part of a transcript; the epoch if there is none."""
    times = [time.decode("ascii", "replace") for time in _TIME.findall(part)] or [""]
    return read_time({"timestamp": times[0]}), read_time({"timestamp": times[-1]})
