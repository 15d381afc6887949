"""Reads a growing transcript from where it was left: turns and cursor move together, a piece at a time."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from csmd import text, wire
from csmd.capture import pieces, project, transcript
from csmd.capture import stage_purge as purging
from csmd.capture.exclude import Excludes, Withheld
from csmd.capture.fields import moment_of
from csmd.capture.hosts import claude, claude_calls
from csmd.capture.leaving import Leaving
from csmd.capture.own import ReadLine
from csmd.capture.redact import redact, storable_path
from csmd.capture.stage import BEGINNING_BYTES, SESSION_BYTES
from csmd.capture.stage_place import Places
from csmd.capture.stage_write import Source, note_writes, store_piece
from csmd.capture.stage_write import Tail as Tail
from csmd.errors import BadInput, TooLarge
from csmd.model import Turn
from csmd.store import cursors, files, tombstones
from csmd.store.core import Store
from csmd.store.cursors import FileState
from csmd.store.files import Notes
from csmd.store.sqlite import Rows


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
    read_line: ReadLine = claude.read_line,
) -> Tail:
    """Reads a transcript from its cursor to its last whole line; turns and cursor move together.

    With `most_pieces` at most that many, so that others are served between two calls. Raises OSError when the
    file cannot be read, StoreError when the store refuses: the cursor then stands where it was and the next call
    reads on.
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
        begun = b"\n" in beginning or len(beginning) == BEGINNING_BYTES or transcript.is_whole(beginning)
        if not begun:
            return report  # what it is stands in its first line: the reading below may find one that came since
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
        places = Places(claude.started_in(beginning))
        started, home = claude.started_in(beginning), places.of("")
        roots = project.roots(home)
        report.excluded = excludes.place(started, *roots)
        if report.excluded:
            return report
        # What is marked is read and left out, so that it stays out when the mark is taken away.
        report.excluded = excludes.off(started, home.place, *roots)
        warmup, hosts_own = claude.is_warmup(beginning), read_line is claude.read_line
        source_of = Source(path=name, places=places, room=session_limit, silent=warmup, hosts_own=hosts_own)
        withheld = Withheld(excludes=excludes)
        file.seek(max(0, start.position - claude_calls.BEFORE_BYTES))
        before = file.read(min(start.position, claude_calls.BEFORE_BYTES))
        claude_calls.remember(before, withheld)
        leaving = Leaving(
            excludes=excludes, place_of=places.of, off=report.excluded, began=claude.times_in(beginning)[0],
            latest=claude.times_in(before)[1], written_at=moment_of(info.st_mtime),
        )  # fmt: skip
        early = claude.Reading(titles=leaving.early(claude.titles_in(beginning)))
        bad_before = known.bad_lines if known and start.position else 0
        counted = known.bad_lines if known and not start.position else 0
        for number, (lines, position) in enumerate(pieces.pieces(file, start.position, stop)):
            heard = store.precedence.giving_way([] if source_of.silent else lines)
            read, bad = _parse(heard, tool_limit, notes, now(), withheld, read_line)
            read, left_out = leaving.apart(read)
            note_writes(store, left_out)
            read.turns = [_named(turn, store.hash_key) for turn in read.turns]
            reading, first = purging.permitted_lines(store, places.of, read, early)
            state = FileState(
                path=name,
                device=info.st_dev,
                inode=info.st_ino,
                position=position,
                head=transcript.head_of(beginning),
                foot=_foot(file, position),
                mtime_ns=info.st_mtime_ns,
                bad_lines=bad_before + report.bad_lines + bad,
            )
            bad_news = max(0, report.bad_lines + bad - counted) - max(0, report.bad_lines - counted)
            news = [("bad lines", bad_news), *leaving.news(first_time=start.reason in ("new", "grown"))]
            store_piece(store, reading, first.titles, news, state, source_of, now(), report)
            report.bad_lines += bad
            report.bytes_read = position - start.position
            if most_pieces is not None and number + 1 >= most_pieces:
                report.more = position < info.st_size
                break
    return report


def _named(turn: Turn, key: bytes) -> Turn:
    """A turn under its own name: a queue's line is told from another of its moment by what it says before any purge."""
    if turn.form != "queued":
        return turn
    return replace(turn, uuid=f"{turn.uuid}:{text.keyed_hash(turn.text, key)[:12]}")


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


def _parse(
    lines: Iterable[tuple[int, bytes | None]],
    tool_limit: int,
    notes: Notes,
    now: str,
    withheld: Withheld,
    read_line: ReadLine,
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
