"""The hands of what is brought from the assistant's own memory directory: each statement once, as the assistant's word.

Nobody is told it until a person keeps it: the assistant reads that directory by itself.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from csmd.believe import stage as believe
from csmd.believe.stage import MODEL_SAVED
from csmd.capture import memdir
from csmd.capture.redact import redact
from csmd.dream import memos
from csmd.model import Provenance, Statement
from csmd.store import exports, files, memories
from csmd.store.core import Store
from csmd.store.sqlite import Rows

BATCH = 5


@dataclass(slots=True)
class Taken:
    """What came in: files read, statements new and known, those that the user made csmd forget, secrets."""

    files: int = 0
    new: int = 0
    known: int = 0
    forgotten: int = 0
    redactions: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def notes_in(path: Path) -> list[Path]:
    """The notes of a memory directory, or the one that is named, at most 200, the newest first; [] where it is none."""
    if path.is_file():
        return [path] if memos.is_note(path.name) else []
    if not path.is_dir() or any(path.glob("*.jsonl")):
        return []
    found = [one for one in path.glob("*.md") if memos.is_note(one.name) and one.is_file()]
    return sorted(found, key=lambda one: (-one.stat().st_mtime, one.name))[: memdir.MOST_FILES]


def take_in(store: Store, notes: Sequence[Path], *, project: int, now: str, taken: Taken) -> Iterator[int]:
    """Takes in what notes say, for one project; after each batch how many files were read."""
    for number, path in enumerate(notes, start=1):
        said = _read(path, taken)
        for start in range(0, len(said), BATCH):
            part = said[start : start + BATCH]
            store.write(lambda rows, part=part: _put(rows, part, project, taken, key=store.hash_key, now=now))  # type: ignore[misc]
            yield number - 1
        taken.files += 1
        yield number


def _read(path: Path, taken: Taken) -> list[tuple[Statement, Provenance]]:
    """What a note says, redacted, with where it stands; what is odd in it is noted."""
    with files.open_regular(path) as file:
        data, info = file.read(memdir.READ_BYTES), os.fstat(file.fileno())
    modified = datetime.fromtimestamp(info.st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    found = memdir.memo(path.name, data, modified=modified, size=info.st_size)
    taken.problems += [f"{path.name}: {problem}" for problem in found.problems]
    body = redact(memdir.body(data), taken.redactions)
    said = []
    for statement in memos.statements(found, body):
        name = hashlib.sha256(f"{path}\n{statement.text}".encode("utf-8", "replace")).hexdigest()[:24]
        said.append((statement, Provenance(uuid=f"memo:{name}", session_id="", at=modified)))
    return said


def _put(
    rows: Rows, part: Sequence[tuple[Statement, Provenance]], project: int, taken: Taken, *, key: bytes, now: str
) -> None:
    for statement, source in part:
        ident, new = believe.remember(rows, statement, source, project=project, origin=MODEL_SAVED, key=key)
        taken.new += new
        taken.known += bool(ident) and not new
        taken.forgotten += not ident
        if new and memories.by_id(rows, ident) is not None:
            exports.note_brought(rows, ident, reason="from the assistant's own memory", now=now)
