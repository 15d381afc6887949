"""How a growing transcript is read: whole lines from a remembered place; values in, values out.

A file event is only a hint. What decides is the file's state against the remembered one: the
same file that grew is read on; one that shrank, was replaced or rewritten is read from its
start again, which is harmless because turns are stored once per uuid.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

from csmd import wire
from csmd.errors import BadInput

#: Enough of a file's beginning to tell it from another one.
HEAD_BYTES = 1024
#: A longer line is not a conversation's: it is skipped and noted, never held in memory as a whole.
MAX_LINE_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where to begin reading, and why."""

    position: int
    reason: Literal["new", "unchanged", "grown", "shrunk", "replaced"]


def head_of(data: bytes) -> str:
    """A hash of a file's first bytes and how many they are, for telling whether it is still the same file."""
    first = data[:HEAD_BYTES]
    return f"{hashlib.sha256(first).hexdigest()[:16]}:{len(first)}" if first else ""


def is_head_of(head: str, data: bytes) -> bool:
    """Whether a file that begins with `data` can be the one of which `head` was taken; "" cannot contradict."""
    digits = head.partition(":")[2]
    return not head or head_of(data[: int(digits)] if digits.isdecimal() else data) == head


def where_to_start(*, position: int, head: str, size: int, beginning: bytes, seen: bool) -> Start:
    """Where to read on in a file of `size` bytes that was read up to `position` before.

    A rename keeps device and inode out of it: the beginning of the file says what it is.
    """
    if not seen:
        return Start(position=0, reason="new")
    if size < position:
        return Start(position=0, reason="shrunk")
    if not is_head_of(head, beginning):
        return Start(position=0, reason="replaced")
    return Start(position=position, reason="unchanged" if size == position else "grown")


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
