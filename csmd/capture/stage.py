"""Capture's hands: reads what hooks and transcripts bring, writes turns and cursors together."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from csmd import text, wire
from csmd.capture import stage_place, transcript
from csmd.capture import stage_purge as purging
from csmd.capture.exclude import Excludes, Withheld
from csmd.capture.hosts import claude, claude_calls
from csmd.capture.hosts.claude_tools import transcripts_written
from csmd.capture.own import ReadLine
from csmd.capture.redact import redact, storable_path
from csmd.capture.stage_place import Places
from csmd.errors import BadInput, TooLarge
from csmd.model import Event, Project, Turn
from csmd.store import counts, cursors, events, files, journal, projects, sessions, tampered, tombstones
from csmd.store.core import Store
from csmd.store.cursors import FileState
from csmd.store.notes import Notes
from csmd.store.purged import Marks
from csmd.store.sqlite import Rows

READ_BYTES = 4 * 1024 * 1024
#: A write holds the writer for about 20 ms: a hook that comes meanwhile still gets its answer in time.
BATCH_TURNS = 60
#: Enough of a transcript's beginning for the first line that names a directory.
BEGINNING_BYTES = 64 * 1024

#: Lines of a transcript with their offsets; None stands for one beyond the limit.
Lines = list[tuple[int, bytes | None]]


@dataclass(slots=True)
class Tail:
    """What reading one transcript brought."""

    turns_new: int = 0
    turns_known: int = 0
    bad_lines: int = 0
    redactions: int = 0
    bytes_read: int = 0
    excluded: bool = False


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
    return stage_place.identify(event.cwd, start=start)


def record(
    rows: Rows, event: Event, *, redacted: Counter[str], key: bytes, now: str, place: Project | None = None
) -> bool:
    """Stores an event and its provisional turn in one transaction; False when it was known or nothing of it may be kept.

    `place` is what `place_of` says of the event; without it the writer has to look at the disk.
    """
    place = place or place_of(event)
    permitted = purging.permitted_event(rows, event, place, key=key)
    if permitted is None:
        return False
    event = permitted
    text_hash = text.keyed_hash(event.text, key) if event.text else ""
    payload_hash = text.keyed_hash(event.payload, key)
    if not events.record(rows, event, text_hash=text_hash, payload_hash=payload_hash):
        return False
    counts.count(rows, redaction_counts(redacted))
    turn = claude.event_turn(event)
    if turn is not None and place is not None:
        listed = tombstones.listed_path(rows, storable_path(event.transcript_path), key=key)
        turn, place, path = purging.permitted_turn(turn, place, listed, tombstones.marks(rows, key))
        home = stage_place.enter(rows, place, now=now)
        journal.add_provisional(
            rows,
            turn,
            event=event.name,
            text_hash=text_hash,
            host=event.host,
            project=home.seq,
            directory=home.directory,
            path=path,
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


def has_grown(path: Path, known: dict[str, int]) -> bool:
    """Whether a transcript holds something that was not read yet, by its size alone."""
    try:
        return path.stat().st_size != known.get(storable_path(str(path)), -1)
    except OSError:
        return False


def tail(
    store: Store,
    path: Path,
    *,
    now: Callable[[], str],
    tool_limit: int,
    quarantine: Path,
    stop: Callable[[], bool] = lambda: False,
    excludes: Excludes = Excludes(),  # noqa: B008 - frozen
    read_line: ReadLine = claude.read_line,
) -> Tail:
    """Reads a transcript from its cursor to its last whole line; turns and cursor move together.

    Raises OSError when the file cannot be read, StoreError when the store refuses: the cursor
    then stands where it was and the next call reads on.
    """
    report = Tail()
    source = redact(wire.clean(str(path)), Counter())

    def look(rows: Rows) -> tuple[str, FileState | None, str]:
        name = tombstones.listed_path(rows, storable_path(str(path)), key=store.hash_key)
        return name, cursors.file_state(rows, name), purging.permitted_words(rows, source, key=store.hash_key)

    name, known, source = store.read(look)
    with files.open_regular(path) as file, contextlib.closing(Notes(quarantine, source=source)) as notes:
        info = os.fstat(file.fileno())
        beginning = file.read(BEGINNING_BYTES)
        start = transcript.where_to_start(
            position=known.position if known else 0,
            head=known.head if known else "",
            size=info.st_size,
            beginning=beginning,
            seen=known is not None,
        )
        if start.reason == "unchanged":
            return report
        places = Places(claude.started_in(beginning))
        report.excluded = excludes.place(claude.started_in(beginning), places.of("").root)
        if report.excluded:
            return report
        withheld = Withheld(excludes=excludes)
        file.seek(max(0, start.position - claude_calls.BEFORE_BYTES))
        claude_calls.remember(file.read(min(start.position, claude_calls.BEFORE_BYTES)), withheld)
        early = claude.Reading(titles=claude.titles_in(beginning))
        bad_before = known.bad_lines if known and start.position else 0
        for lines, position in _pieces(file, start.position, stop):
            read, bad = _parse(lines, tool_limit, notes, now(), withheld, read_line)
            read.turns = [turn for turn in read.turns if not excludes.place(turn.cwd)]
            reading, first = purging.permitted_lines(store, places.of, read, early)
            state = FileState(
                path=name,
                device=info.st_dev,
                inode=info.st_ino,
                position=position,
                head=transcript.head_of(beginning),
                bad_lines=bad_before + report.bad_lines + bad,
            )
            _store(store, reading, first.titles, bad, state, places, now(), report)
            report.bytes_read = position - start.position
    return report


def _pieces(file: BinaryIO, position: int, stop: Callable[[], bool]) -> Iterator[tuple[Lines, int]]:
    """Complete lines of a file in pieces, each with the offset after it.

    A line beyond the limit is passed by without being held, as None; until its end is there, the
    offset stays before it. A last line without a newline counts when it is whole in itself.
    """
    file.seek(position)
    rest = b""
    passed_by = 0
    while not stop():
        data = file.read(READ_BYTES)
        if not data:
            if transcript.is_whole(rest):
                yield [(position, rest)], position + len(rest)
            return
        lines: Lines = []
        before = position
        if passed_by:
            newline = data.find(b"\n")
            if newline < 0:
                passed_by += len(data)
                continue
            lines.append((position, None))
            position += passed_by + newline + 1
            data, passed_by = data[newline + 1 :], 0
        rest += data
        complete, after = transcript.split_lines(rest, at=position)
        lines += [(at, line if len(line) <= transcript.MAX_LINE_BYTES else None) for at, line in complete]
        rest = rest[after - position :]
        position = after
        if position > before:
            yield lines, position
        if len(rest) > transcript.MAX_LINE_BYTES:
            passed_by, rest = len(rest), b""


def _parse(
    lines: Lines, tool_limit: int, notes: Notes, now: str, withheld: Withheld, read_line: ReadLine
) -> tuple[claude.Reading, int]:
    reading = claude.Reading(withheld=withheld)
    bad = 0
    for offset, line in lines:
        try:
            if line is None:
                raise TooLarge(f"a line beyond {transcript.MAX_LINE_BYTES} bytes")
            read_line(line, reading, tool_limit=tool_limit)
        except BadInput as error:
            bad += 1
            notes.add(line, offset, reason=error.what[:120], now=now)
    return reading, bad


def _store(
    store: Store,
    reading: claude.Reading,
    early: dict[str, str],
    bad: int,
    state: FileState,
    places: Places,
    now: str,
    report: Tail,
) -> None:
    """Writes what was read in batches; only the last batch moves the cursor, so a crash reads the piece again.

    `early` are the titles of the file's beginning: they came when their session was not known yet.
    """
    for turn in reading.turns:
        places.of(turn.cwd)  # what is looked up on the disk now does not hold up the writer
    batches = [reading.turns[at : at + BATCH_TURNS] for at in range(0, len(reading.turns), BATCH_TURNS)] or [[]]
    for number, batch in enumerate(batches):
        last = number == len(batches) - 1

        def write(rows: Rows, batch: list[Turn] = batch, last: bool = last) -> tuple[int, int]:
            marks = tombstones.marks(rows, store.hash_key)
            new = sum(_store_turn(rows, turn, state.path, places, marks, store.hash_key, now) for turn in batch)
            if last:
                for session, title in early.items():
                    journal.set_title(rows, session, title, first=True)
                for session, title in reading.titles.items():
                    journal.set_title(rows, session, title)
                for uuid in reading.withdrawn:
                    sessions.withdraw(rows, state.path, uuid)
                counts.count(rows, [*redaction_counts(reading.redactions), ("bad lines", bad)])
                cursors.save_file(rows, state, now=now)
            return new, len(batch) - new

        new, known = store.write(write)
        report.turns_new += new
        report.turns_known += known
    report.bad_lines += bad
    report.redactions += sum(reading.redactions.values())


def _store_turn(rows: Rows, turn: Turn, path: str, places: Places, marks: Marks, key: bytes, now: str) -> bool:
    tampered.note(rows, (text.keyed_hash(name, key) for name in transcripts_written(turn)), at=turn.at)
    turn, place, listed = purging.permitted_turn(turn, places.of(turn.cwd), path, marks)
    home = projects.settle(rows, place, now=now)
    return journal.add_turn(
        rows,
        turn,
        text_hash=text.keyed_hash(turn.text, key),
        host=claude.HOST,
        project=home.seq,
        directory=home.directory,
        path=listed,
    )
