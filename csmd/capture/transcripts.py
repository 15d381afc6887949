"""Reads transcripts from their cursor and stores each turn exactly once."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import BinaryIO, Literal

from csmd import wire
from csmd.capture import project_identity
from csmd.capture.ingest import (
    BEGINNING_BYTES,
    SESSION_BYTES,
    permitted_place,
    permitted_turn,
    purged_since,
    redaction_counts,
)
from csmd.capture.project_identity import Places
from csmd.errors import BadInput, TooLarge
from csmd.exclusions import Excludes, Pauses, Withheld
from csmd.hosts import adapters
from csmd.hosts.adapter import Adapter, Left, Opened, Reading, ReadLine, times_in
from csmd.hosts.json_fields import EPOCH, moment_of
from csmd.paths import is_directory, is_file
from csmd.privacy.fingerprints import PURGED, Marks, clean
from csmd.privacy.redaction import KNOWN_AGAIN, redact, storable_path
from csmd.store import (
    activity,
    client_versions,
    cursors,
    files,
    projects,
    rewinds,
    sessions,
    tampered_transcripts,
    token_usage,
    tombstones,
    turns,
)
from csmd.store.core import Store
from csmd.store.cursors import FileState
from csmd.store.files import Notes
from csmd.store.opencode_database import Listed, Message, SessionDatabase, SessionRow
from csmd.store.purge import keep_secrets_out
from csmd.store.sqlite import Rows
from csmd.text import tokens
from csmd.values import Project, Turn

READ_BYTES = 4 * 1024 * 1024

#: Lines of a transcript with their offsets; None stands for one beyond the limit.
Lines = list[tuple[int, bytes | None]]
#: A longer line is not a conversation's: it is skipped and noted, never held in memory as a whole.
MAX_LINE_BYTES = 32 * 1024 * 1024


def pieces(file: BinaryIO, position: int, stop: Callable[[], bool]) -> Iterator[tuple[Lines, int]]:
    """Complete lines of a file in pieces of about READ_BYTES, each with the offset after it.

    A line beyond the limit is skipped without being held, as None; until its end is there, the offset stays before it.
    A last line without a newline counts when it is whole in itself.
    """
    file.seek(position)
    while not stop():
        lines, begin = Lines(), position
        while position - begin < READ_BYTES and (line := file.readline(MAX_LINE_BYTES + 1)):
            length = len(line)
            if length > MAX_LINE_BYTES and not line.endswith(b"\n"):
                while (line := file.readline(READ_BYTES)) and not line.endswith(b"\n"):
                    length += len(line)
                if not line:
                    break
                lines.append((position, None))
                length += len(line)
            elif not line.endswith(b"\n") and not is_complete(line):
                break
            elif line.strip():
                lines.append((position, line.removesuffix(b"\n")))
            position += length
        if position == begin:
            return
        yield lines, position


#: Counters: lines that cannot be read, turns during a pause.
BAD_LINES, PAUSED_TURNS = "bad lines", "paused turns"


@dataclass(slots=True, kw_only=True)
class LeaveOut:
    """What one reading of a transcript leaves out; each directory is looked at once."""

    excludes: Excludes
    place_of: Callable[[str], Project]
    off: bool = False
    """Whether the session began in a directory that is marked: then nothing of it stays."""
    began: str = EPOCH
    """The first time in the transcript."""
    latest: str = EPOCH
    """The time of the turn that was read last."""
    written_at: str
    """When the file was: the time of what has no other."""
    _paused: int = 0
    _is_last_out: bool | None = None
    _is_out: dict[str, bool] = field(default_factory=dict)

    def take_paused(self) -> int:
        """How many turns of a pause were left out since the last call."""
        paused, self._paused = self._paused, 0
        return paused

    def titles(self, titles: dict[str, str]) -> dict[str, str]:
        """What stays of the titles among a transcript's first bytes."""
        first = self.began if self.began != EPOCH else self.written_at
        return {} if self.off or self.excludes.pauses().touches(first, max(first, self.written_at)) else titles

    def split(self, reading: Reading) -> tuple[Reading, list[Turn]]:
        """What stays of the next piece, each turn with a time, and the turns that are left out."""
        pauses = self.excludes.pauses()
        self.latest = self.latest if self.latest != EPOCH else self.written_at
        spans = spans_of(reading.turns, self.latest) if pauses.spans else []
        in_pause = [pauses.touches(*span) for span in spans] or [False] * len(reading.turns)
        self._paused += sum(in_pause)
        out = [
            self.off or is_paused or self._is_left_out(turn.cwd)
            for turn, is_paused in zip(reading.turns, in_pause, strict=True)
        ]  # fmt: skip
        is_silent = self.off or (self.began != EPOCH and pauses.covers(self.began))
        reading = replace(
            reading,
            turns=with_times(reading.turns, self.latest),
            titles={
                session: title
                for session, title in reading.titles.items()
                if not is_silent and not self._is_title_out(reading.title_at.get(session, 0), out, pauses)
            },
            worktrees=[] if any(out) or is_silent else reading.worktrees,
        )
        if out:
            self._is_last_out, self.latest = out[-1], reading.turns[-1].at
        left_out = list(itertools.compress(reading.turns, out))
        flags = iter(out)
        return reading.only(lambda _: not next(flags)) if left_out else reading, left_out

    def _is_title_out(self, place: int, out: list[bool], pauses: Pauses) -> bool:
        """Whether a title goes with the turn before it, `place` turns into the piece."""
        if place:
            return out[place - 1]
        if self._is_last_out is not None:
            return self._is_last_out
        return (bool(out) and out[0]) or pauses.covers(self.latest)

    def _is_left_out(self, cwd: str) -> bool:
        if not self.excludes.ask_the_disk or not cwd:
            return False
        if cwd not in self._is_out:
            place = self.place_of(cwd)
            roots = project_identity.roots(place)
            self._is_out[cwd] = self.excludes.place(cwd, *roots) or self.excludes.off(cwd, place.place, *roots)
        return self._is_out[cwd]


def spans_of(turns: list[Turn], latest: str) -> list[tuple[str, str]]:
    """The earliest and latest time of each turn: its own time twice, or those of its neighbours.

    `latest` is used if both neighbours are missing.
    """
    after: list[str] = []
    following = EPOCH
    for turn in reversed(turns):
        following = turn.at if turn.at != EPOCH else following
        after.append(following)
    spans: list[tuple[str, str]] = []
    before = EPOCH
    for turn, then in zip(turns, reversed(after), strict=True):
        before = turn.at if turn.at != EPOCH else before
        ends = [at for at in (before, then) if at != EPOCH] or [latest]
        spans.append((min(ends), max(ends)))
    return spans


#: Enough of a file's beginning to distinguish it from another one.
HEAD_BYTES = 1024
#: How far back the time of the last line is looked for.
BEFORE_BYTES = 64 * 1024
#: Enough of what was read last to notice that it was rewritten.
FOOT_BYTES = 256

Reason = Literal["new", "unchanged", "grown", "shrunk", "replaced", "rewritten"]


def head_of(data: bytes) -> str:
    """A hash of a file's first bytes and how many they are, for telling whether it is still the same file."""
    first = data[:HEAD_BYTES]
    return f"{hashlib.sha256(first).hexdigest()[:16]}:{len(first)}" if first else ""


def is_head_of(head: str, data: bytes) -> bool:
    """Whether a file that begins with `data` can be the one of which `head` was taken; "" cannot contradict."""
    digits = head.partition(":")[2]
    return not head or head_of(data[: int(digits)] if digits.isdecimal() else data) == head


def where_to_start(
    state: FileState | None, *, size: int, beginning: bytes, foot: str = "", inode: int = 0, mtime_ns: int = 0
) -> tuple[int, Reason]:
    """Where to read on in a file of `size` bytes, and why; `foot` is of the bytes before the known position now.

    The beginning of a file says whether it is the same; another inode, or a file that was written to and has not
    grown, may differ anywhere. An edit far before the end of a file that grew meanwhile goes unnoticed.
    """
    if state is None:
        return 0, "new"
    if size < state.position:
        return 0, "shrunk"
    if not is_head_of(state.head, beginning) or (state.inode and inode and state.inode != inode):
        return 0, "replaced"
    if state.foot and foot != state.foot:
        return 0, "rewritten"
    if size > state.position:
        return state.position, "grown"
    if state.mtime_ns and mtime_ns != state.mtime_ns:
        return 0, "rewritten"
    return state.position, "unchanged"


def with_times(turns: list[Turn], otherwise: str) -> list[Turn]:
    """The turns, with the time of the turn before (else the next one's) for those without a readable time."""
    if all(turn.at != EPOCH for turn in turns):
        return turns
    before = next((turn.at for turn in turns if turn.at != EPOCH), otherwise)
    timed: list[Turn] = []
    for turn in turns:
        timed.append(turn if turn.at != EPOCH else replace(turn, at=before))
        before = timed[-1].at
    return timed


def is_complete(line: bytes) -> bool:
    """Whether a line that has no end yet is an object already: no beginning of an object is one itself."""
    if not line.rstrip().endswith(b"}"):
        return False
    try:
        return isinstance(wire.loads(line), dict)
    except BadInput:
        return False


class TranscriptFile:
    """Owns an open transcript in a file of its own: a position is an offset in it."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self._info = os.fstat(file.fileno())
        self.end, self.mtime_ns = self._info.st_size, self._info.st_mtime_ns
        self.beginning = file.read(BEGINNING_BYTES)

    def where_to_start(self, state: FileState | None) -> tuple[int, Reason]:
        """Where to read on, and why."""
        if b"\n" not in self.beginning and len(self.beginning) < BEGINNING_BYTES and not is_complete(self.beginning):
            return 0, "unchanged"  # what it is stands in its first line, which is still to come
        return where_to_start(
            state,
            size=self.end,
            beginning=self.beginning,
            foot=_foot(self.file, state.position) if state else "",
            inode=self._info.st_ino,
            mtime_ns=self.mtime_ns,
        )

    def pieces(self, position: int, stop: Callable[[], bool]) -> Iterator[tuple[Lines, int]]:
        """The lines from a position on in pieces, each with the position behind it."""
        return pieces(self.file, position, stop)

    def bytes_read(self, begin: int, position: int) -> int:
        """How many bytes lie between two positions."""
        return position - begin

    def state(self, name: str, position: int, bad_lines: int) -> FileState:
        """How far the transcript has been read."""
        return FileState(
            path=name,
            device=self._info.st_dev,
            inode=self._info.st_ino,
            position=position,
            head=head_of(self.beginning),
            foot=_foot(self.file, position),
            mtime_ns=self.mtime_ns,
            bad_lines=bad_lines,
        )


#: A message that nobody wrote to for so long is what a killed client left: it is read as it stands.
ABANDONED_MS = 3_600_000


class DatabaseSession:
    """Owns a session in an assistant's database as a transcript: a position is the time of the last message that was read.

    Beside it is kept how many messages there were up to then: where a clock was set back, more come before it.

    A message becomes a line once it is whole, so what is still being written is read when it is finished. The first
    bytes are an object with what the line of the session says.
    """

    @classmethod
    @contextlib.contextmanager
    def open(cls, path: Path, *, now: str) -> Iterator[DatabaseSession]:
        """Opens a session, named by its database's path and its id; OSError where there is none, or no reading now."""
        with SessionDatabase.open(path.parent) as database:
            session = database.session(path.name)
            if session is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
            yield cls(database, path.parent, session, now=now)

    def __init__(self, database: SessionDatabase, path: Path, session: SessionRow, *, now: str) -> None:
        self._database = database
        self._session = session
        self._path = path
        now_ms = datetime.fromisoformat(now).timestamp() * 1000
        self._abandoned = int(now_ms) - ABANDONED_MS
        listed = database.listed(session.id)
        self.end = listed.end if listed else 0
        self.mtime_ns = _written_ns(self.end, listed.messages if listed else 0)
        head = {
            "database": path.name, "timestamp": moment_of(session.created / 1000), "cwd": session.directory,
            "id": session.id, "root": session.root, "version": session.version, "permission": session.permission,
            "title": session.title,
        }  # fmt: skip
        self.beginning = wire.dumps(head).encode("utf-8", "replace")
        self.file: BinaryIO = io.BytesIO(self.beginning)
        self._bytes_read = 0

    def where_to_start(self, state: FileState | None) -> tuple[int, Reason]:
        """Behind the last message that was read; at the beginning where there are more before it than were read."""
        if state is None:
            return 0, "new"
        if self._database.count(self._session.id, upto=state.position) > state.mtime_ns % MS_NS:
            return 0, "rewritten"
        return state.position, "grown" if self.end > state.position else "unchanged"

    def pieces(self, position: int, stop: Callable[[], bool]) -> Iterator[tuple[Lines, int]]:
        """The whole messages behind a position as lines in pieces, each with the position behind it."""
        lines, size = Lines(), 0
        finished = self._database.finished(self._session.id, after=position, abandoned=self._abandoned)
        before = self._database.messages_before(self._session.id)
        for place, (ident, at) in enumerate(finished):
            if stop():
                return
            for line in self._lines_of(ident, at, before.get(ident)):
                lines.append((at, line))
                size += len(line or b"")
                self._bytes_read += len(line or b"")
            # The cursor stands between messages of two times.
            is_last = place + 1 == len(finished)
            if is_last or (size >= READ_BYTES and finished[place + 1][1] > at):
                yield lines, at
                lines, size = Lines(), 0

    def _lines_of(self, ident: str, at: int, before: tuple[str, int] | None) -> list[bytes | None]:
        """A message as a line, and what of it cannot be read as others; none where it was taken back just now."""
        try:
            message = self._database.message(ident, at=at, before=before, most=MAX_LINE_BYTES)
        except TooLarge:
            return [None]
        if message is None:
            return []
        bad = [None if part is None else part.encode("utf-8", "replace") for part in message.bad]
        return [_message_line(message), *bad]

    def bytes_read(self, _begin: int, _position: int) -> int:
        """How many bytes the lines have that were read."""
        return self._bytes_read

    def state(self, name: str, position: int, bad_lines: int) -> FileState:
        """How far the session has been read."""
        info = self._path.stat()
        return FileState(
            path=name, device=info.st_dev, inode=info.st_ino, position=position, head="",
            mtime_ns=_written_ns(position, self._database.count(self._session.id, upto=position)), bad_lines=bad_lines,
        )  # fmt: skip


#: Nanoseconds in a millisecond.
MS_NS = 1_000_000


def _written_ns(end: int, messages: int) -> int:
    """When a session was written to, in nanoseconds; those below a millisecond tell how many messages it has by then."""
    return end * MS_NS + min(messages, MS_NS - 1)


def _message_line(message: Message) -> bytes:
    """A message as a line: its time, its name, that of the one before, its data and those of its parts as they stand."""
    parts = ",".join(message.parts)
    line = (
        f'{{"timestamp":"{moment_of(message.at / 1000)}",'
        f'"name":{wire.dumps(message.name)},"before":{wire.dumps(message.before)},'
        f'"message":{message.data},"parts":[{parts}]}}'
    )
    return line.encode("utf-8", "replace")


#: A write holds the writer for about 5 ms of the processor: a hook's event may be waiting behind it.
BATCH_TURNS = 25


@dataclass(slots=True)
class Tail:
    """What reading one transcript brought."""

    turns_new: int = 0
    turns_known: int = 0
    bad_lines: int = 0
    redactions: int = 0
    bytes_read: int = 0
    excluded: bool = False
    more: bool = False
    """Whether it was left before its end."""


class Sink:
    """Stores what is read of one transcript: `path` is its name in the store, `room` the bytes that a session may take,
    `is_hosts_own` whether the assistant wrote it and not csmd."""

    def __init__(
        self, store: Store, path: str, places: Places, *, adapter: Adapter, room: int, is_hosts_own: bool
    ) -> None:
        self._store = store
        self._path = path
        self._places = places
        self._adapter = adapter
        self._room = room
        self._is_hosts_own = is_hosts_own

    def write(
        self, reading: Reading, early: dict[str, str], news: list[tuple[str, int]], state: FileState, now: str
    ) -> tuple[int, int]:
        """Writes a piece in batches; how many turns were new, how many secrets were taken out of them.

        Only the last batch moves the cursor, so a crash reads the piece again. `early` are the titles of the file's
        beginning, which came when its session was not known yet; `news` are counts that are not stored yet.
        """
        for turn in reading.turns:
            self._places.of(turn.cwd)  # what is looked up on the disk now does not hold up the writer
        worktrees, key = project_identity.lost_worktrees_of(reading.worktrees), self._store.hash_key
        left_at: dict[int, list[Left]] = {}
        for left in reading.left:
            left_at.setdefault(left.place, []).append(left)

        def write(rows: Rows, begin: int) -> tuple[int, int]:
            end = min(begin + BATCH_TURNS, len(reading.turns))
            is_last = end == len(reading.turns)
            new, redacted, marks = 0, Counter[str](), tombstones.marks(rows, key)
            for reverted in reading.reverted if begin == 0 else ():
                rewinds.revert(rows, reverted.stream, reverted.is_left)
            for place in range(begin, end + is_last):
                for left in left_at.get(place, ()):
                    text_hash = tokens.keyed_hash(left.text, key) if left.text else ""
                    turns.unqueue(
                        rows, left.session_id, at=left.at, text_hash=text_hash, absorbed=left.absorbed, nth=left.nth
                    )
                if place < end and self._write_turn(rows, reading.turns[place], marks, now):
                    new += 1
                    redacted.update(reading.redactions.get(_line_of(reading.turns[place]), {}))
            spent = [took for took in reading.spent if begin <= max(took.place, 0) and (is_last or took.place < end)]
            token_usage.note_usage(
                rows, [token_usage.Spent(took.stream, took.message_id, *took.amounts) for took in spent]
            )
            if self._is_hosts_own:
                client_versions.note_versions(rows, self._adapter.client_versions(reading.turns[begin:end]))
            if is_last:
                for session, title in reading.titles.items():
                    if turns.set_title(rows, session, title):
                        redacted.update(reading.redactions.get("", {}))
                for session, title in early.items():
                    turns.set_title(rows, session, title, first=True)
                for uuid in reading.withdrawn:
                    sessions.withdraw(rows, self._path, uuid)
                trees = [(permitted_place(tree, marks), permitted_place(main, marks)) for tree, main in worktrees]
                project_identity.merge_worktrees(rows, trees, now=now)
                activity.count(rows, news)
                cursors.save_file(rows, state, now=now)
            activity.count(rows, redaction_counts(redacted))
            return new, redacted.total()

        batches = range(0, max(len(reading.turns), 1), BATCH_TURNS)
        counts = [self._store.write(partial(write, begin=begin)) for begin in batches]
        return sum(new for new, _ in counts), sum(redactions for _, redactions in counts)

    def _write_turn(self, rows: Rows, turn: Turn, marks: Marks, now: str) -> bool:
        key = self._store.hash_key
        if turn.answers:
            tools = sessions.tools_called(rows, turn.answers)
            if not self._adapter.may_answer(tools, turn.is_pick):
                return False
        _note_tampered(rows, turn, key)
        turn, place, listed = permitted_turn(turn, self._places.of(turn.cwd), self._path, marks)
        home = projects.ensure_with_directory(rows, place, now=now)
        return turns.add_turn(
            rows,
            turn,
            text_hash=tokens.keyed_hash(turn.text, key),
            host=self._adapter.host,
            project=home.seq,
            directory=home.directory,
            path=listed,
            room=self._room,
            file=self._path,
        )


def _note_writes(store: Store, left_out: list[Turn]) -> None:
    """Notes which transcripts the calls left out have written: a pause must not be where lines can be forged."""
    writing = [turn for turn in left_out if turn.writes]

    def note_tampered(rows: Rows) -> None:
        for turn in writing:
            _note_tampered(rows, turn, store.hash_key)

    if writing:
        store.write(note_tampered)


def _note_tampered(rows: Rows, turn: Turn, key: bytes) -> None:
    tampered_transcripts.note_tampered(rows, turn.writes, at=turn.at, hashed=lambda name: tokens.keyed_hash(name, key))


def _line_of(turn: Turn) -> str:
    """The name under which a reading knows a turn's line."""
    return turn.uuid.rpartition(":")[0] if turn.form == "queued" else turn.uuid


#: Directories of the assistant's in which no transcripts are.
LEFT_OUT = ("memory", "tool-results")


@dataclass(frozen=True, slots=True)
class OnDisk:
    """A transcript as a listing finds it; `end` is the position behind its last line, -1 for its size."""

    path: str
    size: int
    mtime_ns: int
    end: int = -1


def transcripts(root: Path) -> list[Path]:
    """Every transcript below a projects directory or in it, the latest written first; a file is itself."""
    listed = sorted(list_transcripts(root), key=lambda file: (-file.mtime_ns, file.path))
    return [Path(file.path) for file in listed]


def list_transcripts(root: Path) -> Iterator[OnDisk]:
    """Every transcript below a projects directory or in it, in no order; a file is itself.

    A project's directory may be a link: it is followed where it leads out of all that is walked, so that no file has two
    names and no circle is walked. There may be twenty thousand files, and this looks at them four times an hour: names
    as the system gives them, and one question for each.
    """
    if is_file(root):
        if (listed := SessionDatabase.list_sessions(root)) is not None:
            yield from (_in_database(root, session) for session in listed)
            return
        info = root.stat()
        yield OnDisk(str(root), info.st_size, info.st_mtime_ns)
        return
    folders, links, walked = [str(root)], list[str](), {os.path.realpath(root)}
    while folders or links:
        if not folders:
            folder = links.pop()
            real = os.path.realpath(folder)
            if any(os.path.commonpath((real, tree)) in (real, tree) for tree in walked):
                continue
            walked.add(real)
        else:
            folder = folders.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name in LEFT_OUT:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif folder == str(root) and entry.is_symlink() and is_directory(entry.path):
                        links.append(entry.path)
                    elif entry.name.endswith(".jsonl"):
                        with suppress(OSError):  # gone between listing and looking: there is nothing to read
                            info = entry.stat()
                            yield OnDisk(entry.path, info.st_size, info.st_mtime_ns)
        except OSError:
            continue  # a directory that is gone, or that we may not read
        links.sort(reverse=True)


def list_latest(root: Path, positions: Mapping[str, tuple[int, int]]) -> list[OnDisk]:
    """The transcripts in a database that may just have grown; OSError where it cannot be read now."""
    with SessionDatabase.open(root) as database:
        listed = [_in_database(root, session) for session in database.latest_sessions()]
    return [file for file in listed if has_grown(file, positions)]


#: About what a message takes, in bytes: how far a backlog is.
MESSAGE_BYTES = 4000


def _in_database(root: Path, session: Listed) -> OnDisk:
    return OnDisk(
        f"{root}/{session.id}",
        session.messages * MESSAGE_BYTES,
        _written_ns(session.end, session.messages),
        session.end,
    )


def stat_transcript(path: str) -> OnDisk | None:
    """A transcript as it is now; None when there is none."""
    database, _, session = path.rpartition("/")
    if is_file(database):
        with suppress(OSError), SessionDatabase.open(Path(database)) as opened:
            return _in_database(Path(database), listed) if (listed := opened.listed(session)) else None
        return None
    try:
        info = os.stat(path)  # noqa: PTH116 - thousands of names, of which few become a Path
    except OSError:
        return None
    return OnDisk(path, info.st_size, info.st_mtime_ns)


def has_grown(file: OnDisk, positions: Mapping[str, tuple[int, int]]) -> bool:
    """Whether a transcript may hold something that was not read yet, by its size and when it was written."""
    state = (file.size if file.end < 0 else file.end, file.mtime_ns)
    # Nearly every name is stored as it is: what is stored under another is asked for only where that fails.
    return state != positions.get(file.path) and state != positions.get(storable_path(file.path))


def tail(
    store: Store,
    path: Path,
    *,
    now: Callable[[], str],
    tool_limit: int,
    quarantine: Path,
    session_limit: int = SESSION_BYTES,
    most_pieces: int | None = None,
    stop: Callable[[], bool] = lambda: False,
    excludes: Excludes = Excludes(),  # noqa: B008 - frozen
    read_line: ReadLine | None = None,
    owner: Adapter | None = None,
) -> Tail:
    """Reads a transcript from its cursor to its last whole line; turns and cursor move together.

    The first bytes show which assistant wrote it; nothing is read if that is not the `owner`, the assistant in whose
    directory it is. `read_line` reads csmd's own session files.
    With `most_pieces` at most that many, so that others are served between two calls. Raises OSError when the
    file cannot be read, StoreError when the store refuses: the cursor then stays where it was and the next call
    reads on.
    """
    report = Tail()

    def read_state(rows: Rows) -> tuple[str, FileState | None, str]:
        name = tombstones.listed_path(rows, storable_path(str(path)), key=store.hash_key)
        source = clean(redact(wire.clean(str(path)), Counter()), tombstones.marks(rows, store.hash_key))[0]
        return name, cursors.file_state(rows, name), source

    name, previous, source = store.read(read_state)
    with contextlib.ExitStack() as held:
        transcript: TranscriptFile | DatabaseSession
        if is_file(path.parent):
            transcript = held.enter_context(DatabaseSession.open(path, now=now()))
        else:
            transcript = TranscriptFile(held.enter_context(files.open_regular(path)))
        notes = held.enter_context(contextlib.closing(Notes(quarantine, source=source)))
        beginning = transcript.beginning
        begin, reason = transcript.where_to_start(previous)
        if reason == "unchanged":
            return report
        adapter = adapters.of_transcript(beginning)
        if owner and beginning and adapter is not owner:
            return report
        started = adapters.started_in(beginning)
        places = Places(started)
        home = places.of("")
        roots = project_identity.roots(home)
        report.excluded = excludes.place(started, *roots)
        if report.excluded:
            return report
        # What is marked is read and left out, so that it stays out when the mark is taken away.
        report.excluded = excludes.off(started, home.place, *roots)
        is_dropped = adapter.drops(beginning)
        sink = Sink(store, name, places, adapter=adapter, room=session_limit, is_hosts_own=read_line is None)
        withheld = Withheld(excludes=excludes)
        opened = Opened(path=path, file=transcript.file, beginning=beginning, position=begin, withheld=withheld)
        read_line = read_line or adapter.read_from(opened)
        leave_out = LeaveOut(
            excludes=excludes, place_of=places.of, off=report.excluded, began=times_in(beginning)[0],
            latest=times_in(opened.before(BEFORE_BYTES))[1],
            written_at=moment_of(transcript.mtime_ns / 1e9),
        )  # fmt: skip
        early = leave_out.titles(dict(adapter.titles_in(beginning)))
        # The bad lines before `begin`, and those behind it that were counted by an earlier reading of the file.
        bad_before, counted = (
            (previous.bad_lines, 0) if previous and begin else (0, previous.bad_lines if previous else 0)
        )
        for number, (lines, position) in enumerate(transcript.pieces(begin, stop)):
            kept = store.hook_priority.giving_way(lines)
            reading = Reading(withheld=withheld)
            bad = _parse(kept, reading, tool_limit, notes, now(), read_line)
            if is_dropped is not None:
                reading = reading.only(lambda turn: not is_dropped(turn))
            reading, left_out = leave_out.split(reading)
            _note_writes(store, left_out)
            reading.turns = [_named(turn, store.hash_key) for turn in reading.turns]
            reading, titles = _without_purged(store, places, reading, early)
            reading = _without_known_secrets(store, reading, now())
            state = transcript.state(name, position, bad_before + report.bad_lines + bad)
            bad_news = max(0, report.bad_lines + bad - counted) - max(0, report.bad_lines - counted)
            paused = leave_out.take_paused() if reason in ("new", "grown") else 0  # not where lines are read again
            news = [(BAD_LINES, bad_news), *([(PAUSED_TURNS, paused)] if paused else [])]
            new, redactions = sink.write(reading, titles, news, state, now())
            report.turns_new += new
            report.turns_known += len(reading.turns) - new
            report.redactions += redactions
            report.bad_lines += bad
            report.bytes_read = transcript.bytes_read(begin, position)
            if most_pieces is not None and number + 1 >= most_pieces:
                report.more = position < transcript.end
                break
    return report


def _without_purged(
    store: Store, places: Places, reading: Reading, early: dict[str, str]
) -> tuple[Reading, dict[str, str]]:
    """What was read, and the titles of the file's beginning, as they may be stored.

    On the thread that also purges: no tombstone can be written between this and the writing of what it permits.
    """
    if not store.read(tombstones.has_purged):
        return reading, early
    projects_of = {turn.cwd: places.of(turn.cwd) for turn in reading.turns}
    return store.read(lambda rows: _permitted(rows, reading, early, projects_of, store.hash_key))


def _without_known_secrets(store: Store, reading: Reading, now: str) -> Reading:
    """What was read without the secrets that its sessions hold elsewhere; those of this piece are noted first."""
    key, sessions = store.hash_key, dict.fromkeys(turn.session_id for turn in reading.turns)
    if new := {session: reading.secrets[session] for session in sessions if session in reading.secrets}:

        def note(rows: Rows) -> None:
            for session, secrets in new.items():
                keep_secrets_out(rows, session, secrets, key=key, now=now)

        store.write(note)
    marks = store.read(lambda rows: {session: tombstones.secrets_of(rows, [session], key) for session in sessions})
    if not any(marks.values()):
        return reading

    def cleaned(session: str, text: str) -> str:
        return clean(text, marks[session], hole=KNOWN_AGAIN)[0] if session in marks else text

    return replace(
        reading,
        turns=[replace(turn, text=cleaned(turn.session_id, turn.text)) for turn in reading.turns],
        left=[replace(left, text=cleaned(left.session_id, left.text)) for left in reading.left],
        titles={session: cleaned(session, title) for session, title in reading.titles.items()},
    )


def _permitted(
    rows: Rows, reading: Reading, early: dict[str, str], places: dict[str, Project], key: bytes
) -> tuple[Reading, dict[str, str]]:
    marks = tombstones.marks(rows, key)
    names = {name for turn in reading.turns for name in (turn.session_id, turn.stream)} | {*reading.titles, *early}
    purged = tombstones.purged_names(rows, "session", list(names), key=key)
    since = purged_since(rows, places.values(), key)

    def is_permitted(turn: Turn) -> bool:
        until = since.get(places[turn.cwd].key, "")
        return turn.session_id not in purged and turn.stream not in purged and turn.at > until

    def permit_titles(titles: dict[str, str]) -> dict[str, str]:
        return {session: clean(title, marks)[0] for session, title in titles.items() if session not in purged}

    reading = reading.only(is_permitted)
    emptied = _purged_turns(rows, reading.turns, key)
    texts = [PURGED if turn.uuid in emptied else clean(turn.text, marks)[0] for turn in reading.turns]
    permitted = [
        turn if text == turn.text else replace(turn, text=text) for turn, text in zip(reading.turns, texts, strict=True)
    ]
    return replace(reading, turns=permitted, titles=permit_titles(reading.titles)), permit_titles(early)


def _purged_turns(rows: Rows, turns: list[Turn], key: bytes) -> set[str]:
    """The uuids of turns that were purged one by one."""
    if not tombstones.has(rows, "turn"):
        return set()
    names = {
        turn.uuid: tombstones.turn_names(turn.uuid, turn.stream, tokens.keyed_hash(turn.text, key)) for turn in turns
    }
    purged = tombstones.purged_names(rows, "turn", [name for some in names.values() for name in some], key=key)
    return {uuid for uuid, some in names.items() if not purged.keys().isdisjoint(some)}


def _named(turn: Turn, key: bytes) -> Turn:
    """The turn with a unique uuid: a queue's line has none, and shares its time with others, so its text is hashed."""
    if turn.form != "queued":
        return turn
    return replace(turn, uuid=f"{turn.uuid}:{tokens.keyed_hash(turn.text, key)[:12]}")


def _foot(file: BinaryIO, position: int) -> str:
    """A hash of the bytes before a position of a file."""
    begin = max(0, position - FOOT_BYTES)
    return head_of(os.pread(file.fileno(), position - begin, begin))


def _parse(
    lines: Iterable[tuple[int, bytes | None]],
    into: Reading,
    tool_limit: int,
    notes: Notes,
    now: str,
    read_line: ReadLine,
) -> int:
    """Reads lines into a reading; how many of them are bad."""
    bad = 0
    for offset, line in lines:
        try:
            if line is None:
                raise TooLarge(f"a line beyond {MAX_LINE_BYTES} bytes")
            read_line(line, into, tool_limit=tool_limit)
        except BadInput as error:
            bad += 1
            notes.add(line, offset, reason=error.what[:120], now=now)
    return bad
