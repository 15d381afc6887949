"""A transcript's complete lines, piece by piece: bounded memory whatever a file holds, a line without an end included."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO

from csmd.capture import transcript

READ_BYTES = 4 * 1024 * 1024

#: Lines of a transcript with their offsets; None stands for one beyond the limit.
Lines = list[tuple[int, bytes | None]]


def pieces(file: BinaryIO, position: int, stop: Callable[[], bool]) -> Iterator[tuple[Lines, int]]:
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
