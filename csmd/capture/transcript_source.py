"""Reads the lines of a transcript, from a file or from a session in a database, and finds where to resume."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import os
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Literal

from csmd import wire
from csmd.capture.ingest import BEGINNING_BYTES
from csmd.capture.transcript_listing import MILLISECOND_NS, pack_written_ns
from csmd.errors import BadInput, TooLarge
from csmd.json_fields import format_time
from csmd.store.cursors import FileState
from csmd.store.opencode_database import Message, SessionDatabase, SessionRow

READ_BYTES = 4 * 1024 * 1024
#: A longer line is not part of a conversation: it is counted as bad and never held in memory as a whole.
MAX_LINE_BYTES = 32 * 1024 * 1024
#: Enough of a file's beginning to distinguish it from another one.
HEAD_BYTES = 1024
#: Enough of the bytes read last to notice that they were rewritten.
FOOT_BYTES = 256
#: An unfinished message that has not changed for this long was left by a killed client: it is read as it is.
ABANDONED_MS = 3_600_000

#: Lines of a transcript with their offsets; None for a line beyond the limit.
Lines = list[tuple[int, bytes | None]]
#: What happened to a transcript since it was read.
FileChange = Literal["new", "unchanged", "grown", "shrunk", "replaced", "rewritten"]


def read_pieces(file: BinaryIO, position: int, stop: Callable[[], bool]) -> Iterator[tuple[Lines, int]]:
    """Yields the complete lines of a file in pieces of about READ_BYTES, each with the offset after it.

    An oversized line is yielded as None, once its newline has been written. A last line without a newline is yielded if
    it is a JSON object.
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
            elif not line.endswith(b"\n") and not is_json_object(line):
                break
            elif line.strip():
                lines.append((position, line.removesuffix(b"\n")))
            position += length
        if position == begin:
            return
        yield lines, position


# --- where to resume


def hash_head(data: bytes) -> str:
    """Returns a hash of a file's first bytes and their number, by which the file is recognised."""
    first = data[:HEAD_BYTES]
    return f"{hashlib.sha256(first).hexdigest()[:16]}:{len(first)}" if first else ""


def matches_head(head: str, data: bytes) -> bool:
    """Whether a file that begins with `data` can be the one with this `head`; True for ""."""
    digits = head.partition(":")[2]
    return not head or hash_head(data[: int(digits)] if digits.isdecimal() else data) == head


def find_resume_position(
    state: FileState | None, *, size: int, beginning: bytes, foot: str = "", inode: int = 0, mtime_ns: int = 0
) -> tuple[int, FileChange]:
    """Returns where to resume reading a file of `size` bytes, and what happened to the file.

    `foot` is the present hash of the bytes before the stored position. A file is recognised by its beginning; one with
    another inode, or one that was written to without growing, may differ anywhere. An edit far before the end of a file
    that has also grown is not noticed.
    """
    if state is None:
        return 0, "new"
    if size < state.position:
        return 0, "shrunk"
    if not matches_head(state.head, beginning) or (state.inode and inode and state.inode != inode):
        return 0, "replaced"
    if state.foot and foot != state.foot:
        return 0, "rewritten"
    if size > state.position:
        return state.position, "grown"
    if state.mtime_ns and mtime_ns != state.mtime_ns:
        return 0, "rewritten"
    return state.position, "unchanged"


def is_json_object(line: bytes) -> bool:
    """Whether a line is a whole JSON object; the beginning of one never is."""
    if not line.rstrip().endswith(b"}"):
        return False
    try:
        return isinstance(wire.loads(line), dict)
    except BadInput:
        return False


def _hash_foot(file: BinaryIO, position: int) -> str:
    """Returns a hash of the bytes before a position of a file."""
    begin = max(0, position - FOOT_BYTES)
    return hash_head(os.pread(file.fileno(), position - begin, begin))


# --- the two kinds of transcripts


class TranscriptFile:
    """Owns an open transcript file; a position is an offset in it."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self._info = os.fstat(file.fileno())
        self.end, self.mtime_ns = self._info.st_size, self._info.st_mtime_ns
        self.beginning = file.read(BEGINNING_BYTES)

    def find_resume_position(self, state: FileState | None) -> tuple[int, FileChange]:
        """Returns where to resume reading, and what happened to the file."""
        if b"\n" not in self.beginning and len(self.beginning) < BEGINNING_BYTES and not is_json_object(self.beginning):
            return 0, "unchanged"  # its first line, which shows what it is, is not complete
        foot = _hash_foot(self.file, state.position) if state else ""
        return find_resume_position(
            state, size=self.end, beginning=self.beginning, foot=foot, inode=self._info.st_ino, mtime_ns=self.mtime_ns
        )

    def read_pieces(self, position: int, stop: Callable[[], bool]) -> Iterator[tuple[Lines, int]]:
        """Yields the lines from a position on in pieces, each with the position after it."""
        return read_pieces(self.file, position, stop)

    def count_bytes(self, begin: int, position: int) -> int:
        """Returns the number of bytes between two positions."""
        return position - begin

    def make_state(self, name: str, position: int, bad_lines: int) -> FileState:
        """Returns the cursor of the transcript, read up to a position."""
        return FileState(
            path=name, device=self._info.st_dev, inode=self._info.st_ino, position=position, bad_lines=bad_lines,
            head=hash_head(self.beginning), foot=_hash_foot(self.file, position), mtime_ns=self.mtime_ns,
        )  # fmt: skip


class DatabaseSession:
    """Presents a session in an assistant's database as a transcript; a position is a message's time (ms).

    A message becomes a line once it is finished. The first bytes are an object with the fields of the session's row.
    The number of messages up to a position is stored with it: after a clock was set back, more messages precede it.
    """

    @classmethod
    @contextlib.contextmanager
    def open(cls, path: Path, *, now: str) -> Iterator[DatabaseSession]:
        """Opens a session by its database's path and its id; OSError if it does not exist or cannot be read now."""
        with SessionDatabase.open(path.parent) as database:
            session = database.session(path.name)
            if session is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
            yield cls(database, path.parent, session, now=now)

    def __init__(self, database: SessionDatabase, path: Path, session: SessionRow, *, now: str) -> None:
        self._database = database
        self._session = session
        self._path = path
        self._abandoned_ms = int(datetime.fromisoformat(now).timestamp() * 1000) - ABANDONED_MS
        listing = database.listed(session.id)
        self.end = listing.end if listing else 0
        self.mtime_ns = pack_written_ns(self.end, listing.messages if listing else 0)
        head = {
            "database": path.name, "timestamp": format_time(session.created / 1000), "cwd": session.directory,
            "id": session.id, "root": session.root, "version": session.version, "permission": session.permission,
            "title": session.title,
        }  # fmt: skip
        self.beginning = wire.dumps(head).encode("utf-8", "replace")
        self.file: BinaryIO = io.BytesIO(self.beginning)
        self._bytes_read = 0

    def find_resume_position(self, state: FileState | None) -> tuple[int, FileChange]:
        """Returns where to resume: after the last message read, or at the beginning if more messages precede it now."""
        if state is None:
            return 0, "new"
        # `mtime_ns` packs the time and the number of messages, see `pack_written_ns`.
        if self._database.count(self._session.id, until=state.position) > state.mtime_ns % MILLISECOND_NS:
            return 0, "rewritten"
        return state.position, "grown" if self.end > state.position else "unchanged"

    def read_pieces(self, position: int, stop: Callable[[], bool]) -> Iterator[tuple[Lines, int]]:
        """Yields the finished messages after a position as lines in pieces, each with the position after it."""
        lines = Lines()
        size = 0
        finished = self._database.finished(self._session.id, after=position, abandoned=self._abandoned_ms)
        previous = self._database.messages_before(self._session.id)
        for index, (message_id, sent_ms) in enumerate(finished):
            if stop():
                return
            for line in self._read_lines(message_id, sent_ms, previous.get(message_id)):
                lines.append((sent_ms, line))
                size += len(line or b"")
                self._bytes_read += len(line or b"")
            # A cursor is a time, so messages of one time belong to one piece.
            is_last = index + 1 == len(finished)
            if is_last or (size >= READ_BYTES and finished[index + 1][1] > sent_ms):
                yield lines, sent_ms
                lines = Lines()
                size = 0

    def _read_lines(self, message_id: str, sent_ms: int, before: tuple[str, int] | None) -> list[bytes | None]:
        """Returns a message as a line, and its unreadable parts as further lines; [] if it was deleted since listed."""
        try:
            message = self._database.message(message_id, at=sent_ms, before=before, limit=MAX_LINE_BYTES)
        except TooLarge:
            return [None]
        if message is None:
            return []
        unreadable_parts = [None if part is None else part.encode("utf-8", "replace") for part in message.bad]
        return [_format_message(message), *unreadable_parts]

    def count_bytes(self, _begin: int, _position: int) -> int:
        """Returns the size of the lines that were read; positions are times, so it cannot follow from them."""
        return self._bytes_read

    def make_state(self, name: str, position: int, bad_lines: int) -> FileState:
        """Returns the cursor of the session, read up to a position."""
        info = self._path.stat()
        return FileState(
            path=name, device=info.st_dev, inode=info.st_ino, position=position, head="",
            mtime_ns=pack_written_ns(position, self._database.count(self._session.id, until=position)), bad_lines=bad_lines,
        )  # fmt: skip


def _format_message(message: Message) -> bytes:
    """Returns a message as a line; its data and parts are inserted as text, because they must stay byte for byte."""
    parts = ",".join(message.parts)
    head = f'{{"timestamp":"{format_time(message.at / 1000)}","name":{wire.dumps(message.name)},'
    line = f'{head}"before":{wire.dumps(message.before)},"message":{message.data},"parts":[{parts}]}}'
    return line.encode("utf-8", "replace")
