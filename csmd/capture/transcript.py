"""How a growing transcript is read: whole lines from a remembered place; values in, values out.

A file event is only a hint. What decides is the file's state against the remembered one: the
same file that grew is read on; one that shrank, was replaced or rewritten is read from its
start again, which is harmless because turns are stored once per uuid.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Literal

from csmd import wire
from csmd.capture.fields import EPOCH
from csmd.errors import BadInput
from csmd.model import Turn

#: Enough of a file's beginning to tell it from another one.
HEAD_BYTES = 1024
#: Enough of what was read last to tell that it was written anew.
FOOT_BYTES = 256
#: A longer line is not a conversation's: it is skipped and noted, never held in memory as a whole.
MAX_LINE_BYTES = 32 * 1024 * 1024


Reason = Literal["new", "unchanged", "grown", "shrunk", "replaced", "rewritten"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where to begin reading, and why."""

    position: int
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is remembered of a file: how far it was read, hashes of its first and of the last bytes read, when written."""

    position: int
    head: str
    foot: str = ""
    inode: int = 0
    mtime_ns: int = 0


def head_of(data: bytes) -> str:
    """A hash of a file's first bytes and how many they are, for telling whether it is still the same file."""
    first = data[:HEAD_BYTES]
    return f"{hashlib.sha256(first).hexdigest()[:16]}:{len(first)}" if first else ""


def is_head_of(head: str, data: bytes) -> bool:
    """Whether a file that begins with `data` can be the one of which `head` was taken; "" cannot contradict."""
    digits = head.partition(":")[2]
    return not head or head_of(data[: int(digits)] if digits.isdecimal() else data) == head


def where_to_start(
    known: Known | None, *, size: int, beginning: bytes, foot: str = "", inode: int = 0, mtime_ns: int = 0
) -> Start:
    """Where to read on in a file of `size` bytes; `foot` is of the bytes that stand before the known position now.

    The beginning of a file says whether it is the same; another inode, or a file that was written to and has not
    grown, may differ anywhere. An edit far before the end of a file that grew meanwhile goes unnoticed.
    """
    if known is None:
        return Start(position=0, reason="new")
    if size < known.position:
        return Start(position=0, reason="shrunk")
    if not is_head_of(known.head, beginning) or (known.inode and inode and known.inode != inode):
        return Start(position=0, reason="replaced")
    if known.foot and foot != known.foot:
        return Start(position=0, reason="rewritten")
    if size > known.position:
        return Start(position=known.position, reason="grown")
    if known.mtime_ns and mtime_ns != known.mtime_ns:
        return Start(position=0, reason="rewritten")
    return Start(position=known.position, reason="unchanged")


def with_times(turns: list[Turn], otherwise: str) -> list[Turn]:
    """The turns with a time for those whose line has none that can be read: the one's before, else the next one's."""
    if all(turn.at != EPOCH for turn in turns):
        return turns
    before = next((turn.at for turn in turns if turn.at != EPOCH), otherwise)
    timed: list[Turn] = []
    for turn in turns:
        timed.append(turn if turn.at != EPOCH else replace(turn, at=before))
        before = timed[-1].at
    return timed


def split_lines(data: bytes, *, at: int) -> tuple[list[tuple[int, bytes]], int]:
    """The complete lines in `data`, each with its offset in the file, and the offset after the last one.

    `at` is the offset of `data` in the file. What stands after the last newline stays for later (or is_whole).
    """
    end = data.rfind(b"\n")
    if end < 0:
        return [], at
    lines: list[tuple[int, bytes]] = []
    offset = at
    for line in data[:end].split(b"\n"):
        if line.strip():
            lines.append((offset, line))
        offset += len(line) + 1
    return lines, offset


def is_whole(line: bytes) -> bool:
    """Whether a line that has no end yet is an object already: no beginning of an object is one itself."""
    if not line.rstrip().endswith(b"}"):
        return False
    try:
        return isinstance(wire.loads(line), dict)
    except BadInput:
        return False
