"""Searches files for purged texts, byte by byte.

A program of its own (`python -m csmd.store.byte_search`, JSON on stdin and stdout): a process that has the database open
must not open its file, since closing it would drop SQLite's locks. It reads csmd's own files and the assistant's, and
changes none.
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

#: Bytes of a file that are read at a time.
CHUNK_BYTES = 4 * 1024 * 1024
#: Bytes of the chunk before that are searched again with the next.
OVERLAP_BYTES = 64 * 1024
#: Lines of one file that are named.
MAX_LINES = 20
#: Texts that are returned.
MAX_TEXTS = 2000
#: Folders below the home that are not searched: files that csmd did not write, or copies of its own program.
SKIPPED_FOLDERS = ("models", "hook")
#: The file that marks a Python environment, such as csmd's own in its home, with other people's packages.
ENVIRONMENT_MARKER = "pyvenv.cfg"
MAX_TEXT_CHARACTERS = 4000


@dataclass(slots=True)
class FileHits:
    """Occurrences of a text in a file: at least how many, and the numbers (from 1) of the first lines."""

    path: str
    count: int = 0
    lines: list[int] = field(default_factory=list)


def walk_files(folder: Path, *, leave_out: Sequence[str] = (), environments: bool = True) -> Iterator[Path]:
    """Yields every regular file below a folder, or the file itself; no link is followed.

    `leave_out` names folders to skip; Python environments are skipped unless `environments`.
    """
    if folder.is_file() and not folder.is_symlink():
        yield folder
        return
    for directory, subfolders, names in os.walk(folder):
        if Path(directory) == folder:
            subfolders[:] = [name for name in subfolders if name not in leave_out]
        elif not environments and ENVIRONMENT_MARKER in names:
            subfolders.clear()
            continue
        subfolders.sort()
        for name in sorted(names):
            path = Path(directory) / name
            with contextlib.suppress(OSError):
                if stat.S_ISREG(path.lstat().st_mode):
                    yield path


def count_in_bytes(path: Path, needles: Sequence[Needle]) -> int:
    """Returns how often any of the texts occurs in a file of any kind."""
    count = 0
    rest = b""
    with path.open("rb") as file:
        while data := file.read(CHUNK_BYTES):
            chunk = rest + data
            count += len(_find_spans(chunk, needles))
            rest = chunk[-OVERLAP_BYTES:]
            count -= (
                len(_find_spans(rest, needles)) if len(data) == CHUNK_BYTES else 0
            )  # the next chunk counts the overlap
    return count


def _find_spans(data: bytes, needles: Sequence[Needle]) -> list[str]:
    """Returns the matches in some bytes, as they appear there."""
    folded = data.lower()
    likely = [needle for needle in needles if needle.rare in folded]
    if not likely:
        return []
    text = data.decode("utf-8", "replace")
    return [text[start:end] for needle in likely for start, end in needle.spans(text)]


def find_in_lines(path: Path, needles: Sequence[Needle], names: Sequence[bytes], texts: set[str]) -> FileHits:
    """Finds texts and names in a file of lines; adds each match in whole words to `texts`."""
    hits = FileHits(str(path))
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            spans = _find_spans(line, needles)
            amount = len(spans) + sum(name in line for name in names)
            if amount:
                hits.count += amount
                hits.lines += [number] if len(hits.lines) < MAX_LINES else []
                texts |= {span for span in spans if len(span) <= MAX_TEXT_CHARACTERS and len(texts) < MAX_TEXTS}
    return hits


def scan_files(
    texts: Sequence[str], names: Sequence[str], *, own: Sequence[Path], hosts: Sequence[Path]
) -> tuple[list[FileHits], list[FileHits], list[str]]:
    """Returns (hits in csmd's files, hits in the assistant's, the matches); names count only in the assistant's."""
    needles = [Needle(text) for text in texts]
    own_hits: list[FileHits] = []
    for root in own:
        for path in walk_files(root, leave_out=SKIPPED_FOLDERS, environments=False):
            with contextlib.suppress(OSError):
                relative = str(path.relative_to(root)) if path != root else ""
                if needles and (
                    count := count_in_bytes(path, needles) + sum(bool(needle.spans(relative)) for needle in needles)
                ):
                    own_hits.append(FileHits(str(path), count))
    host_hits: list[FileHits] = []
    seen: set[str] = set()
    for root in hosts:
        for path in walk_files(root):
            with contextlib.suppress(OSError):
                hits = find_in_lines(path, needles, [name.encode() for name in names], seen)
                if hits.count:
                    host_hits.append(hits)
    return own_hits, host_hits, sorted(seen)


def main() -> None:
    """Reads {texts, names, own, hosts} from stdin and prints {left, hosts, texts}."""
    request = wire.loads(sys.stdin.buffer.read())
    left, hosts, texts = scan_files(
        request["texts"],
        request["names"],
        own=[Path(path) for path in request["own"]],
        hosts=[Path(path) for path in request["hosts"]],
    )
    answer = {"left": [asdict(hits) for hits in left], "hosts": [asdict(hits) for hits in hosts], "texts": texts}
    sys.stdout.buffer.write(wire.dumps(answer).encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
