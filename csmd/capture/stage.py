"""Capture's hands: reads what hooks and transcripts bring, writes turns and cursors together."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from csmd import text
from csmd.capture import project, transcript
from csmd.capture.hosts import claude
from csmd.errors import BadInput
from csmd.model import Event, Project, Turn
from csmd.store import counts, cursors, files, journal
from csmd.store.core import Store
from csmd.store.cursors import FileState
from csmd.store.sqlite import Rows

READ_BYTES = 4 * 1024 * 1024
BATCH_TURNS = 400


@dataclass(slots=True)
class Tail:
    """What reading one transcript brought."""

    turns_new: int = 0
    turns_known: int = 0
    bad_lines: int = 0
    redactions: int = 0
    bytes_read: int = 0


def decode_event(body: bytes, *, name: str, event_id: str, at: str) -> tuple[Event | None, Counter[str]]:
    """The event in a hook's payload and what was redacted in it; BadInput when it is malformed."""
    counts: Counter[str] = Counter()
    return claude.event(body, name=name, event_id=event_id, at=at, counts=counts), counts


def record(rows: Rows, event: Event, *, redacted: Counter[str], key: bytes, now: str) -> bool:
    """Stores an event and its provisional turn in one transaction; False when the event was known."""
    text_hash = text.keyed_hash(event.text, key) if event.text else ""
    payload_hash = text.keyed_hash(event.payload, key)
    if not journal.record_event(rows, event, text_hash=text_hash, payload_hash=payload_hash):
        return False
    counts.count(rows, redaction_counts(redacted))
    turn = claude.event_turn(event)
    if turn is not None:
        place = project.identify(event.cwd, read=files.read_small)
        journal.add_provisional(
            rows,
            turn,
            event=event.name,
            text_hash=text_hash,
            host=event.host,
            project=journal.ensure_project(rows, place, now=now),
            path="" if event.agent_id else event.transcript_path,
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


def has_grown(path: Path, known: dict[str, int]) -> bool:
    """Whether a transcript holds something that was not read yet, by its size alone."""
    try:
        return path.stat().st_size != known.get(str(path), -1)
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
) -> Tail:
    """Reads a transcript from its cursor to its last complete line; turns and cursor move together.

    Raises OSError when the file cannot be read, StoreError when the store refuses: the cursor
    then stands where it was and the next call reads on.
    """
    report = Tail()
    with path.open("rb") as file:
        info = os.fstat(file.fileno())
        head_now = transcript.head_of(file.read(transcript.HEAD_BYTES))
        known = store.read(lambda rows: cursors.file_state(rows, str(path)))
        start = transcript.where_to_start(
            position=known.position if known else 0,
            head=known.head if known else "",
            size=info.st_size,
            head_now=head_now,
            seen=known is not None,
        )
        if start.reason == "unchanged":
            return report
        places: dict[str, Project] = {}
        for lines, position in _pieces(file, start.position, stop):
            reading, bad = _parse(lines, tool_limit, quarantine, path, now())
            state = FileState(
                path=str(path),
                device=info.st_dev,
                inode=info.st_ino,
                position=position,
                head=head_now,
                bad_lines=bad + report.bad_lines + (known.bad_lines if known and start.position else 0),
            )
            _store(store, reading, bad, state, places, now(), report)
        report.bytes_read = max(0, info.st_size - start.position)
    return report


def _pieces(file: object, position: int, stop: Callable[[], bool]) -> Iterator[tuple[list[tuple[int, bytes]], int]]:
    """Complete lines of a file in pieces, each with the offset after it; a line beyond the limit is one empty line."""
    file.seek(position)  # type: ignore[attr-defined]
    rest = b""
    dropping = False
    while not stop():
        data = file.read(READ_BYTES)  # type: ignore[attr-defined]
        if not data:
            return
        if dropping:
            newline = data.find(b"\n")
            if newline < 0:
                position += len(data)
                continue
            position += newline + 1
            data, dropping = data[newline + 1 :], False
        rest += data
        lines, after = transcript.split_lines(rest, at=position)
        rest = rest[after - position :]
        position = after
        if len(rest) > transcript.MAX_LINE_BYTES:
            lines.append((position, b"!"))  # parsed as malformed: noted in the quarantine, never held
            position += len(rest)
            rest, dropping = b"", True
        if lines:
            yield lines, position


def _parse(
    lines: list[tuple[int, bytes]], tool_limit: int, quarantine: Path, path: Path, now: str
) -> tuple[claude.Reading, int]:
    reading = claude.Reading()
    bad = 0
    for offset, line in lines:
        try:
            claude.read_line(line, reading, tool_limit=tool_limit)
        except BadInput as error:
            bad += 1
            # Path and reason only: neither the line's bytes nor what was in it.
            files.quarantine(quarantine, source=str(path), reason=error.what[:120], data=line, offset=offset, now=now)
    return reading, bad


def _store(
    store: Store,
    reading: claude.Reading,
    bad: int,
    state: FileState,
    places: dict[str, Project],
    now: str,
    report: Tail,
) -> None:
    """Writes what was read in batches; only the last batch moves the cursor, so a crash reads the piece again."""
    batches = [reading.turns[at : at + BATCH_TURNS] for at in range(0, len(reading.turns), BATCH_TURNS)] or [[]]
    for number, batch in enumerate(batches):
        last = number == len(batches) - 1

        def write(rows: Rows, batch: list[Turn] = batch, last: bool = last) -> tuple[int, int]:
            new = sum(_store_turn(rows, turn, state.path, places, store.hash_key, now) for turn in batch)
            if last:
                for session, title in reading.titles.items():
                    journal.set_title(rows, session, title)
                counts.count(rows, [*redaction_counts(reading.redactions), ("bad lines", bad)])
                cursors.save_file(rows, state, now=now)
            return new, len(batch) - new

        new, known = store.write(write)
        report.turns_new += new
        report.turns_known += known
    report.bad_lines += bad
    report.redactions += sum(reading.redactions.values())


def _store_turn(rows: Rows, turn: Turn, path: str, places: dict[str, Project], key: bytes, now: str) -> bool:
    start = places.get("")
    place = places.get(turn.cwd)
    if place is None:
        place = project.identify(turn.cwd, read=files.read_small, start=start.root if start else turn.cwd)
        places[turn.cwd] = place
        places.setdefault("", place)
    return journal.add_turn(
        rows,
        turn,
        text_hash=text.keyed_hash(turn.text, key),
        host=claude.HOST,
        project=journal.ensure_project(rows, place, now=now),
        path="" if turn.agent_id else path,
    )
