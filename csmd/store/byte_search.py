"""Looks for texts byte by byte in files: in csmd's own, and in the assistant's, which are named and never changed.

Run as a program of its own (`python -m csmd.store.byte_search`, JSON in on stdin, JSON out on stdout):
whoever has the database open must not open its file beside SQLite, since closing it would drop SQLite's locks.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from csmd import wire
from csmd.privacy.fingerprints import Needle

CHUNK_BYTES, OVERLAP_BYTES = 4 * 1024 * 1024, 64 * 1024
#: Lines of one file that are named, and texts that are given back.
LINES, TEXTS = 20, 2000
#: Below the home: what csmd did not write, or what is a copy of its own program.
NOT_LOOKED_AT = ("models", "hook")
#: What makes a directory a Python environment, wherever below: csmd's own venv lies in its home, with other people's packages.
ENVIRONMENT = "pyvenv.cfg"
WIDEST_TEXT = 4000


@dataclass(slots=True)
class Found:
    """Where a text stands: a file, how often at least, and the first lines (from 1) in a file of lines."""

    path: str
    count: int = 0
    lines: list[int] = field(default_factory=list)


def files_below(folder: Path, *, leave_out: Sequence[str] = (), environments: bool = True) -> Iterator[Path]:
    """Every regular file below a folder or the file itself; no link is followed.

    `leave_out` names folders in it, and without `environments` Python's below it are passed by.
    """
    if folder.is_file() and not folder.is_symlink():
        yield folder
        return
    for place, subfolders, names in os.walk(folder):
        if Path(place) == folder:
            subfolders[:] = [name for name in subfolders if name not in leave_out]
        elif not environments and ENVIRONMENT in names:
            subfolders.clear()
            continue
        subfolders.sort()
        for name in sorted(names):
            path = Path(place) / name
            with contextlib.suppress(OSError):
                if stat.S_ISREG(path.lstat().st_mode):
                    yield path


def in_bytes(path: Path, needles: Sequence[Needle]) -> int:
    """How often any of the texts stands in a file, of whatever kind."""
    count = 0
    rest = b""
    with path.open("rb") as file:
        while data := file.read(CHUNK_BYTES):
            chunk = rest + data
            count += len(_spans(chunk, needles))
            rest = chunk[-OVERLAP_BYTES:]
            count -= len(_spans(rest, needles)) if len(data) == CHUNK_BYTES else 0  # they are counted with the next
    return count


def _spans(data: bytes, needles: Sequence[Needle]) -> list[str]:
    """The texts of what is found in bytes, as they stand there."""
    folded = data.lower()
    likely = [needle for needle in needles if needle.rare in folded]
    if not likely:
        return []
    said = data.decode("utf-8", "replace")
    return [said[start:end] for needle in likely for start, end in needle.spans(said)]


def in_lines(path: Path, needles: Sequence[Needle], names: Sequence[bytes], texts: set[str]) -> Found:
    """Where texts and names stand in a file of lines; `texts` gains each as it stands there, in whole words."""
    found = Found(str(path))
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            hits = _spans(line, needles)
            amount = len(hits) + sum(name in line for name in names)
            if amount:
                found.count += amount
                found.lines += [number] if len(found.lines) < LINES else []
                texts |= {hit for hit in hits if len(hit) <= WIDEST_TEXT and len(texts) < TEXTS}
    return found


def look(
    texts: Sequence[str], names: Sequence[str], *, own: Sequence[Path], hosts: Sequence[Path]
) -> tuple[list[Found], list[Found], list[str]]:
    """(in csmd's files, in the assistant's files, the texts as they stand there); names count in the assistant's only."""
    needles = [Needle(said) for said in texts]
    left: list[Found] = []
    for root in own:
        for path in files_below(root, leave_out=NOT_LOOKED_AT, environments=False):
            with contextlib.suppress(OSError):
                if needles and (count := in_bytes(path, needles)):
                    left.append(Found(str(path), count))
    there: list[Found] = []
    seen: set[str] = set()
    for root in hosts:
        for path in files_below(root):
            with contextlib.suppress(OSError):
                found = in_lines(path, needles, [name.encode() for name in names], seen)
                if found.count:
                    there.append(found)
    return left, there, sorted(seen)


def main() -> None:
    """Reads {texts, names, own, hosts} from stdin, prints {left, hosts, texts}."""
    asked = wire.loads(sys.stdin.buffer.read())
    left, hosts, texts = look(
        asked["texts"],
        asked["names"],
        own=[Path(path) for path in asked["own"]],
        hosts=[Path(path) for path in asked["hosts"]],
    )
    answer = {"left": [asdict(one) for one in left], "hosts": [asdict(one) for one in hosts], "texts": texts}
    sys.stdout.buffer.write(wire.dumps(answer).encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
