"""Reads transcripts from their cursor and stores each turn exactly once."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from csmd import wire
from csmd.capture import project_identity
from csmd.capture.ingest import MAX_SESSION_BYTES, count_redactions, permit_project, permit_turn
from csmd.capture.project_identity import Places
from csmd.capture.transcript_source import MAX_LINE_BYTES, DatabaseSession, FileChange, TranscriptFile
from csmd.capture.turn_filter import TurnFilter, filter_purged, remove_known_secrets
from csmd.conversation import Turn
from csmd.errors import BadInput, TooLarge
from csmd.exclusions import Excludes
from csmd.hosts import adapters
from csmd.hosts.adapter import Adapter
from csmd.hosts.transcript_reading import QueueExit, Reading, ReadLine, Transcript, find_times
from csmd.json_fields import format_time
from csmd.paths import is_file
from csmd.privacy.fingerprints import Marks, remove_purged
from csmd.privacy.redaction import redact, storable_path
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
from csmd.store.files import QuarantineNotes
from csmd.store.sqlite import Rows
from csmd.text import tokens
from csmd.withheld_calls import WithheldCalls

#: The counter of unreadable lines.
BAD_LINES = "bad lines"
#: The counter of turns that were not stored because of a pause.
PAUSED_TURNS = "paused turns"
#: The time of the last line is searched for in this many bytes.
LOOKBACK_BYTES = 64 * 1024
#: A hook's event may be waiting: a write of this many turns takes about 5 ms.
BATCH_TURNS = 25
#: Most characters of a reason that is noted with a malformed line.
MAX_REASON_CHARACTERS = 120


@dataclass(slots=True)
class ReadReport:
    """The result of reading a transcript."""

    turns_new: int = 0
    turns_known: int = 0
    bad_lines: int = 0
    redactions: int = 0
    bytes_read: int = 0
    excluded: bool = False
    more: bool = False
    """Whether it was not read to its end."""


class Sink:
    """Stores the turns of one transcript.

    `path` is its name in the store, `room` the bytes that a session may take; `is_hosts_own` says that the assistant
    wrote it, not csmd.
    """

    def __init__(
        self, store: Store, path: str, places: Places, *, adapter: Adapter, room: int, is_hosts_own: bool
    ) -> None:
        self.store, self.path, self.places = store, path, places
        self.adapter, self.room, self.is_hosts_own = adapter, room, is_hosts_own

    def write(
        self, reading: Reading, early: dict[str, str], news: list[tuple[str, int]], state: FileState, now: str
    ) -> tuple[int, int]:
        """Writes a piece in batches; returns the number of new turns, and of secrets removed from them.

        Only the last batch moves the cursor, so after a crash the piece is read again. `early` are the titles of the
        file's beginning, read before its session was known; `news` are counts that are not stored yet.
        """
        for turn in reading.turns:
            self.places.of(turn.cwd)  # looked up now, so that the writer does not wait for the disk
        worktrees, key = project_identity.find_lost_worktrees(reading.worktrees), self.store.hash_key
        exits_at: dict[int, list[QueueExit]] = {}
        for queue_exit in reading.queue_exits:
            exits_at.setdefault(queue_exit.turn, []).append(queue_exit)

        def write(rows: Rows, begin: int) -> tuple[int, int]:
            end = min(begin + BATCH_TURNS, len(reading.turns))
            is_last = end == len(reading.turns)
            new, redacted, marks = 0, Counter[str](), tombstones.purged_marks(rows, key)
            for revert in reading.reverts if begin == 0 else ():
                rewinds.mark_abandoned(rows, revert.stream, revert.is_abandoned)
            for index in range(begin, end + is_last):
                for queue_exit in exits_at.get(index, ()):
                    _mark_unqueued(rows, queue_exit, key)
                if index < end and self._write_turn(rows, reading.turns[index], marks, now):
                    new += 1
                    redacted.update(reading.redactions.get(_redaction_key(reading.turns[index]), {}))
            uses = [use for use in reading.token_uses if begin <= max(use.turn, 0) and (is_last or use.turn < end)]
            tallies = [token_usage.MessageTokens(use.stream, use.message_id, *use.amounts) for use in uses]
            token_usage.record_usage(rows, tallies)
            if self.is_hosts_own:
                client_versions.record_versions(rows, self.adapter.client_versions(reading.turns[begin:end]))
            if is_last:
                for session, title in reading.titles.items():
                    if turns.set_title(rows, session, title):
                        redacted.update(reading.redactions.get("", {}))
                for session, title in early.items():
                    turns.set_title(rows, session, title, first=True)
                for uuid in reading.withdrawn:
                    sessions.withdraw_turn(rows, self.path, uuid)
                trees = [(permit_project(tree, marks), permit_project(main, marks)) for tree, main in worktrees]
                project_identity.merge_worktrees(rows, trees, now=now)
                activity.increment_counters(rows, news)
                cursors.save_file(rows, state, now=now)
            activity.increment_counters(rows, count_redactions(redacted))
            return new, redacted.total()

        batches = range(0, max(len(reading.turns), 1), BATCH_TURNS)
        counts = [self.store.write(partial(write, begin=begin)) for begin in batches]
        return sum(new for new, _ in counts), sum(redactions for _, redactions in counts)

    def _write_turn(self, rows: Rows, turn: Turn, marks: Marks, now: str) -> bool:
        key = self.store.hash_key
        if turn.answers:
            tools = sessions.list_tools_called(rows, turn.answers)
            if not self.adapter.may_answer(tools, turn.is_pick):
                return False
        _note_tampered(rows, turn, key)
        turn, project, transcript = permit_turn(turn, self.places.of(turn.cwd), self.path, marks)
        home = projects.ensure_with_directory(rows, project, now=now)
        return turns.add_turn(
            rows, turn, text_hash=tokens.keyed_hash(turn.text, key), host=self.adapter.host, project=home.seq,
            directory=home.directory, path=transcript, room=self.room, file=self.path,
        )  # fmt: skip


def _note_writes(store: Store, left_out: list[Turn]) -> None:
    """Notes which transcripts the left-out calls have written: lines must not be forged in a pause."""
    for turn in left_out:
        if turn.writes:
            store.write(partial(_note_tampered, turn=turn, key=store.hash_key))


def _mark_unqueued(rows: Rows, prompt: QueueExit, key: bytes) -> None:
    hashed = tokens.keyed_hash(prompt.text, key) if prompt.text else ""
    absorbed, nth = prompt.absorbed, prompt.nth
    turns.mark_unqueued(rows, prompt.session_id, at=prompt.at, text_hash=hashed, absorbed=absorbed, nth=nth)


def _note_tampered(rows: Rows, turn: Turn, key: bytes) -> None:
    hash_name = partial(tokens.keyed_hash, key=key)
    tampered_transcripts.record_tampered(rows, turn.writes, at=turn.at, hashed=hash_name)


def _redaction_key(turn: Turn) -> str:
    """Returns the key of a turn's line in `Reading.redactions`."""
    return turn.uuid.rpartition(":")[0] if turn.form == "queued" else turn.uuid


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How a transcript is read."""

    now: Callable[[], str]
    tool_limit: int
    """How many bytes of a tool's input or output are stored."""
    quarantine: Path
    """The directory for notes about malformed lines."""
    session_limit: int = MAX_SESSION_BYTES
    """How many bytes of a session are stored."""
    most_pieces: int | None = None
    """How many pieces one call reads at most, so that other work is done between two calls."""
    stop: Callable[[], bool] = lambda: False
    excludes: Excludes = field(default_factory=Excludes)
    read_line: ReadLine | None = None
    """Reads the lines of one of csmd's own session files."""
    owner: Adapter | None = None
    """The assistant in whose directory the file is; another assistant's transcript is not read."""


@dataclass(frozen=True, slots=True)
class Start:
    """Where a reading starts: the transcript's name in the store, its cursor, the position, and its change since."""

    name: str
    cursor: FileState | None
    position: int
    change: FileChange


def read_transcript(store: Store, path: Path, options: ReadOptions) -> ReadReport:
    """Reads a transcript from its cursor to its last whole line; turns and cursor are stored together.

    Raises OSError if the file cannot be read and StoreError if the store refuses; then the cursor is unchanged and the
    next call continues from there.
    """
    report, excludes = ReadReport(), options.excludes

    def read_cursor(rows: Rows) -> tuple[str, FileState | None, str]:
        name = tombstones.cursor_name(rows, storable_path(str(path)), key=store.hash_key)
        redacted = redact(wire.clean(str(path)), Counter())
        source, _ = remove_purged(redacted, tombstones.purged_marks(rows, store.hash_key))
        return name, cursors.find_file_state(rows, name), source

    name, cursor, source = store.read(read_cursor)
    with contextlib.ExitStack() as opened_files:
        transcript: TranscriptFile | DatabaseSession
        if is_file(path.parent):
            transcript = opened_files.enter_context(DatabaseSession.open(path, now=options.now()))
        else:
            transcript = TranscriptFile(opened_files.enter_context(files.open_regular(path)))
        beginning = transcript.beginning
        start = Start(name, cursor, *transcript.find_resume_position(cursor))
        adapter = adapters.adapter_of_transcript(beginning)
        if start.change == "unchanged" or (options.owner and beginning and adapter is not options.owner):
            return report
        started = adapters.find_start_directory(beginning)
        places = Places(started)
        project = places.of("")
        roots = project_identity.list_roots(project)
        report.excluded = excludes.covers_directory(started, *roots)
        if report.excluded:
            return report
        # An excluded session is read and left out, so that it stays out when it is no longer excluded.
        report.excluded = excludes.has_off_mark(started, project.place, *roots)
        notes = opened_files.enter_context(contextlib.closing(QuarantineNotes(options.quarantine, source=source)))
        _PieceReader(store, options, transcript, start, adapter, places, notes, report).read(path)
    return report


@dataclass(slots=True)
class _PieceReader:
    """Reads the pieces of an open transcript and stores their turns; counts them in `report`."""

    store: Store
    options: ReadOptions
    transcript: TranscriptFile | DatabaseSession
    start: Start
    adapter: Adapter
    places: Places
    notes: QuarantineNotes
    report: ReadReport

    def read(self, path: Path) -> None:
        """Reads the lines from the start on, or as many pieces of them as the options allow."""
        options, transcript, begin = self.options, self.transcript, self.start.position
        withheld = WithheldCalls(excludes=options.excludes)
        file, first = transcript.file, transcript.beginning
        opened = Transcript(path=path, file=file, beginning=first, position=begin, withheld=withheld)
        read_line = options.read_line or self.adapter.make_reader(opened)
        is_dropped = self.adapter.drops(transcript.beginning)
        leave_out = TurnFilter(
            excludes=options.excludes, place_of=self.places.of, off=self.report.excluded,
            began=find_times(transcript.beginning)[0], latest=find_times(opened.read_before(LOOKBACK_BYTES))[1],
            written_at=format_time(transcript.mtime_ns / 1e9),
        )  # fmt: skip
        early = leave_out.titles(dict(self.adapter.read_titles(transcript.beginning)))
        for number, (lines, position) in enumerate(transcript.read_pieces(begin, options.stop)):
            reading = Reading(withheld=withheld, tool_limit=options.tool_limit)
            lines_in_turn = self.store.hook_priority.giving_way(lines)
            bad = _parse(lines_in_turn, reading, self.notes, options.now(), read_line)
            if is_dropped is not None:
                reading = reading.filter_turns(lambda turn: not is_dropped(turn))
            reading, left_out = leave_out.split(reading)
            _note_writes(self.store, left_out)
            # Lines that are read again were counted before.
            paused = leave_out.take_paused() if self.start.change in ("new", "grown") else 0
            self._store(reading, early, position, bad=bad, paused=paused)
            if options.most_pieces is not None and number + 1 >= options.most_pieces:
                self.report.more = position < transcript.end
                break

    def _store(self, reading: Reading, early: dict[str, str], position: int, *, bad: int, paused: int) -> None:
        """Stores a piece that ends at a position, with the titles of the file's beginning (`early`)."""
        store, options, report, start = self.store, self.options, self.report, self.start
        reading.turns = [_with_unique_uuid(turn, store.hash_key) for turn in reading.turns]
        reading, titles = filter_purged(store, self.places, reading, early)
        reading = remove_known_secrets(store, reading, options.now())
        # Bad lines before the start, and bad lines after it that an earlier reading has counted.
        known_bad = start.cursor.bad_lines if start.cursor else 0
        bad_before, counted_bad = (known_bad, 0) if start.position else (0, known_bad)
        state = self.transcript.make_state(start.name, position, bad_before + report.bad_lines + bad)
        new_bad = max(0, report.bad_lines + bad - counted_bad) - max(0, report.bad_lines - counted_bad)
        new_counts = [(BAD_LINES, new_bad), *([(PAUSED_TURNS, paused)] if paused else [])]
        sink = Sink(
            store, start.name, self.places, adapter=self.adapter, room=options.session_limit,
            is_hosts_own=options.read_line is None,
        )  # fmt: skip
        new, redactions = sink.write(reading, titles, new_counts, state, options.now())
        report.turns_new += new
        report.turns_known += len(reading.turns) - new
        report.redactions += redactions
        report.bad_lines += bad
        report.bytes_read = self.transcript.count_bytes(start.position, position)


def _with_unique_uuid(turn: Turn, key: bytes) -> Turn:
    """Returns the turn with a unique uuid.

    A queue's line has no uuid: the hash of the text is added to the time that several lines share.
    """
    if turn.form != "queued":
        return turn
    return replace(turn, uuid=f"{turn.uuid}:{tokens.keyed_hash(turn.text, key)[:12]}")


def _parse(
    lines: Iterable[tuple[int, bytes | None]], into: Reading, notes: QuarantineNotes, now: str, read_line: ReadLine
) -> int:
    """Reads lines into a reading; returns how many of them are bad."""
    bad = 0
    for offset, line in lines:
        try:
            if line is None:
                raise TooLarge(f"a line beyond {MAX_LINE_BYTES} bytes")
            read_line(line, into)
        except BadInput as error:
            bad += 1
            notes.add(line, offset, reason=error.what[:MAX_REASON_CHARACTERS], now=now)
    return bad
