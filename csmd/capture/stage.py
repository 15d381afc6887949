"""Capture's hands: reads what hooks and transcripts bring, writes turns and cursors together."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from csmd import text, wire
from csmd.capture import pieces, project, transcript
from csmd.capture.hosts import claude
from csmd.capture.redact import redact
from csmd.errors import BadInput, TooLarge
from csmd.model import Event, Project, Turn
from csmd.store import counts, cursors, events, files, journal, projects, queue, reports
from csmd.store.core import Store
from csmd.store.cursors import FileState
from csmd.store.notes import Notes
from csmd.store.sqlite import Rows

#: A write holds the writer for about 20 ms: a hook that comes meanwhile still gets its answer in time.
BATCH_TURNS = 60
#: Enough of a transcript's beginning for the first line that names a directory.
BEGINNING_BYTES = 64 * 1024

#: Bytes of text of one session that are kept where nobody says otherwise.
SESSION_BYTES = 50_000_000


@dataclass(slots=True)
class Tail:
    """What reading one transcript brought."""

    turns_new: int = 0
    turns_known: int = 0
    bad_lines: int = 0
    redactions: int = 0
    bytes_read: int = 0
    more: bool = False
    """Whether it was left before its end."""


def decode_event(body: bytes, *, name: str, event_id: str, at: str) -> tuple[Event | None, Counter[str]]:
    """The event in a hook's payload and what was redacted in it; BadInput when it is malformed."""
    counts: Counter[str] = Counter()
    return claude.event(body, name=name, event_id=event_id, at=at, counts=counts), counts


def place_of(event: Event) -> Project | None:
    """The project of the turn that an event reports, None when it reports none; looks at the disk.

    For `record`: what is looked up before the write is submitted does not hold up the writer.
    """
    if claude.event_turn(event) is None:
        return None
    start = started_in(Path(event.transcript_path)) if event.transcript_path else ""
    return project.identify(event.cwd, read=files.read_small, start=start)


def record(
    rows: Rows,
    event: Event,
    *,
    redacted: Counter[str],
    key: bytes,
    now: str,
    place: Project | None = None,
    room: int = SESSION_BYTES,
) -> bool:
    """Stores an event and its provisional turn in one transaction; False when the event was known.

    `place` is what `place_of` says of the event: the writer never looks at the disk. `room` is how much of a
    session is kept.
    """
    text_hash = text.keyed_hash(event.text, key) if event.text else ""
    payload_hash = text.keyed_hash(event.payload, key)
    if not events.record(rows, event, text_hash=text_hash, payload_hash=payload_hash):
        return False
    counts.count(rows, redaction_counts(redacted))
    turn = claude.event_turn(event)
    if turn is not None and place is not None:
        reports.add_provisional(
            rows,
            turn,
            event=event.name,
            text_hash=text_hash,
            host=event.host,
            project=projects.ensure(rows, place, now=now),
            path="" if event.agent_id else event.transcript_path,
            room=room,
        )
    if event.name in ("stop", "session_end", "pre_compact"):
        journal.settle(rows, event.session_id, at=event.at)
    return True


def redaction_counts(counts: Counter[str]) -> list[tuple[str, int]]:
    """Redactions by kind as counters."""
    return [(f"redacted {kind}", amount) for kind, amount in counts.items()]


def transcripts(root: Path) -> list[Path]:
    """Every transcript below a projects directory or in it, the latest written first; a file is itself."""
    if root.is_file():
        return [root]
    found: list[tuple[float, Path]] = []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [name for name in subfolders if name not in ("memory", "tool-results")]
        for name in names:
            if name.endswith(".jsonl"):
                path = Path(folder) / name
                try:
                    found.append((path.stat().st_mtime, path))
                except OSError:
                    continue  # gone between listing and looking: there is nothing to read
    return [path for _, path in sorted(found, key=lambda pair: (-pair[0], str(pair[1])))]


def started_in(path: Path) -> str:
    """The directory in which a transcript's session began; "" when there is no such file yet, or it is a pipe."""
    try:
        with files.open_regular(path) as file:
            return claude.started_in(file.read(BEGINNING_BYTES))
    except (OSError, ValueError):
        return ""


def has_grown(path: Path, known: dict[str, tuple[int, int]]) -> bool:
    """Whether a transcript may hold something that was not read yet, by its size and when it was written."""
    try:
        info = path.stat()
    except OSError:
        return False
    return (info.st_size, info.st_mtime_ns) != known.get(str(path), (-1, -1))


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
) -> Tail:
    """Reads a transcript from its cursor to its last whole line; turns and cursor move together.

    With `most_pieces` at most that many, so that others are served between two calls. Raises OSError when the file cannot be read, StoreError when the store refuses: the cursor
    then stands where it was and the next call reads on.
    """
    report = Tail()
    source = redact(wire.clean(str(path)), Counter())
    with files.open_regular(path) as file, contextlib.closing(Notes(quarantine, source=source)) as notes:
        info = os.fstat(file.fileno())
        beginning = file.read(BEGINNING_BYTES)
        known = store.read(lambda rows: cursors.file_state(rows, str(path)))
        start = transcript.where_to_start(
            _as_known(known),
            size=info.st_size,
            beginning=beginning,
            foot=_foot(file, known.position) if known else "",
            inode=info.st_ino,
            mtime_ns=info.st_mtime_ns,
        )
        if start.reason == "unchanged":
            return report
        source_of = Source(
            path=str(path),
            places=Places(claude.started_in(beginning)),
            early=claude.titles_in(beginning),
            room=session_limit,
            silent=claude.is_warmup(beginning),
        )
        bad_before = known.bad_lines if known and start.position else 0
        counted = known.bad_lines if known and not start.position else 0
        latest = moment_of(info.st_mtime)
        for number, (lines, position) in enumerate(pieces.pieces(file, start.position, stop)):
            reading, bad = _parse([] if source_of.silent else lines, tool_limit, notes, now())
            reading.turns = transcript.with_times(reading.turns, latest)
            latest = reading.turns[-1].at if reading.turns else latest
            state = FileState(
                path=str(path),
                device=info.st_dev,
                inode=info.st_ino,
                position=position,
                head=transcript.head_of(beginning),
                foot=_foot(file, position),
                mtime_ns=info.st_mtime_ns,
                bad_lines=bad_before + report.bad_lines + bad,
            )
            news = max(0, report.bad_lines + bad - counted) - max(0, report.bad_lines - counted)
            _store(store, reading, news, state, source_of, now(), report)
            report.bad_lines += bad
            report.bytes_read = position - start.position
            if most_pieces is not None and number + 1 >= most_pieces:
                report.more = position < info.st_size
                break
    return report


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What holds for all of a transcript's turns: its path, their projects, the titles of its beginning, the room.

    `early` came when their session was not known yet. A `silent` one holds nobody's conversation.
    """

    path: str
    places: Places
    early: dict[str, str]
    room: int
    silent: bool


def moment_of(seconds: float) -> str:
    """A time in seconds since 1970 in csmd's form."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _as_known(state: FileState | None) -> transcript.Known | None:
    if state is None:
        return None
    return transcript.Known(
        position=state.position, head=state.head, foot=state.foot, inode=state.inode, mtime_ns=state.mtime_ns
    )


def _foot(file: BinaryIO, position: int) -> str:
    """A hash of what stands before a position of a file."""
    begin = max(0, position - transcript.FOOT_BYTES)
    return transcript.head_of(os.pread(file.fileno(), position - begin, begin))


class Places:
    """The projects of one transcript's directories, each looked up once; `start` is where its session began."""

    def __init__(self, start: str) -> None:
        self._start = start
        self._known: dict[str, Project] = {}

    def of(self, cwd: str) -> Project:
        """The project of a directory; of the session's start for a line that names none."""
        place = self._known.get(cwd)
        if place is None:
            place = project.identify(cwd, read=files.read_small, start=self._start or cwd)
            self._known[cwd] = place
        return place


def _parse(lines: pieces.Lines, tool_limit: int, notes: Notes, now: str) -> tuple[claude.Reading, int]:
    reading = claude.Reading()
    bad = 0
    for offset, line in lines:
        try:
            if line is None:
                raise TooLarge(f"a line beyond {transcript.MAX_LINE_BYTES} bytes")
            claude.read_line(line, reading, tool_limit=tool_limit)
        except BadInput as error:
            bad += 1
            notes.add(line, offset, reason=error.what[:120], now=now)
    return reading, bad


def _store(
    store: Store, reading: claude.Reading, bad: int, state: FileState, source: Source, now: str, report: Tail
) -> None:
    """Writes what was read in batches; only the last batch moves the cursor, so a crash reads the piece again.

    What was taken out of a line is counted with its turns, once: `bad` are the malformed lines not counted yet.
    """
    borders = list(range(0, len(reading.turns), BATCH_TURNS)) or [0]
    for begin in borders:
        batch = reading.turns[begin : begin + BATCH_TURNS]
        end = None if begin == borders[-1] else begin + BATCH_TURNS
        left = [one for one in reading.left if begin <= one.place and (end is None or one.place < end)]

        def write(
            rows: Rows,
            batch: list[Turn] = batch,
            left: list[claude.Left] = left,
            begin: int = begin,
            last: bool = end is None,
        ) -> tuple[int, Counter[str]]:
            new = 0
            found: Counter[str] = Counter()
            leaving = iter([*left, None])
            next_left = next(leaving)
            for place, turn in enumerate(batch, begin):
                while next_left is not None and next_left.place <= place:
                    _leave(rows, next_left, store.hash_key)
                    next_left = next(leaving)
                if _store_turn(rows, turn, source, store.hash_key, now):
                    new += 1
                    found.update(reading.redactions.get(turn.uuid, {}))
            while next_left is not None:
                _leave(rows, next_left, store.hash_key)
                next_left = next(leaving)
            if last:
                for session, title in reading.titles.items():
                    if journal.set_title(rows, session, title):
                        found.update(reading.redactions.get("", {}))
                for session, title in source.early.items():
                    journal.set_title(rows, session, title, first=True)
                counts.count(rows, [("bad lines", bad)])
                cursors.save_file(rows, state, now=now)
            counts.count(rows, redaction_counts(found))
            return new, found

        new, found = store.write(write)
        report.turns_new += new
        report.turns_known += len(batch) - new
        report.redactions += found.total()


def _leave(rows: Rows, left: claude.Left, key: bytes) -> None:
    queue.leave(
        rows,
        left.session_id,
        at=left.at,
        text_hash=text.keyed_hash(left.text, key) if left.text else "",
        absorbed=left.absorbed,
        nth=left.nth,
    )


def _store_turn(rows: Rows, turn: Turn, source: Source, key: bytes, now: str) -> bool:
    if turn.answers and not claude.may_answer(journal.tools_called(rows, turn.answers)):
        return False
    return journal.add_turn(
        rows,
        turn,
        text_hash=text.keyed_hash(turn.text, key),
        host=claude.HOST,
        project=projects.ensure(rows, source.places.of(turn.cwd), now=now),
        path="" if turn.agent_id else source.path,
        room=source.room,
    )
