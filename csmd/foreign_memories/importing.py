"""Imports the memories of another program: read as a whole first, then stored as not said here.

They wait in the review for a person and are found by search; no session is shown one until it is kept.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import PurePath

from csmd import vocabulary
from csmd.errors import BadInput
from csmd.foreign_memories import Source
from csmd.foreign_memories.foreign_memory import ForeignMemory, Skipped
from csmd.knowledge import Provenance, Statement
from csmd.memory import remember
from csmd.paths import folder_name
from csmd.privacy.redaction import redact
from csmd.store import exports, memories, workspaces
from csmd.store.core import Store
from csmd.store.import_files import ForeignFile
from csmd.store.sqlite import Rows
from csmd.text import tokens

#: The confidence of an imported memory, before its category's range.
CONFIDENCE = 0.6
#: Fewest words of a memory that carry its meaning.
MIN_WORDS = 2
#: Memories that are read, and written, in one batch.
READ_BATCH = 200
WRITE_BATCH = 5
#: Most memories that are all shown before the import.
MAX_SHOWN = 5
#: Samples that are shown of more memories.
MAX_SAMPLES = 3
#: Why memories are left out, besides the readers' reasons.
SHORT = "texts of a word or two"
UNPLACED = "memories of projects that csmd does not know"


@dataclass(slots=True)
class ForeignCounts:
    """The memories of a file by kind, project and result: skipped, new, known, kept out as forgotten.

    `placed_here` are the memories that name no project and got that of the caller.
    """

    kinds: Counter[str] = field(default_factory=Counter)
    projects: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    unplaced: Counter[str] = field(default_factory=Counter)
    samples: list[dict[str, str]] = field(default_factory=list)
    redactions: Counter[str] = field(default_factory=Counter)
    new: int = 0
    known: int = 0
    forgotten: int = 0
    placed_here: int = 0


@dataclass(frozen=True, slots=True)
class _Placed:
    """A memory, redacted, with the row of its project."""

    memory: ForeignMemory
    project: int


def examine(
    store: Store, source: Source, file: ForeignFile, *, project: int | None, here: int | None = None,
    counts: ForeignCounts,
) -> Iterator[int]:  # fmt: skip
    """Reads a whole file and counts the results of an import; yields the number of entries read. Nothing is stored.

    `project` is for memories whose own project is unknown, `here` for those that name none. BadInput if the file is
    damaged, or if no memory has a project.
    """
    progress, first = 0, list[dict[str, str]]()
    batches = _prepare_batches(store, source, file, project=project, here=here, counts=counts, size=READ_BATCH)
    for batch in batches:
        repeats = store.read(partial(_count_known, batch=batch, key=store.hash_key))
        counts.known += repeats
        counts.new += len(batch) - repeats
        for placed in batch:
            counts.kinds[placed.memory.kind] += 1
            sample = {"kind": placed.memory.kind, "text": placed.memory.text}
            if len(first) < MAX_SHOWN:
                first.append(sample)
            if len(counts.samples) < MAX_SAMPLES and sample["kind"] not in {row["kind"] for row in counts.samples}:
                counts.samples.append(sample)
        progress += len(batch)
        yield progress
    if progress <= MAX_SHOWN:
        counts.samples = first
    if counts.unplaced and not counts.kinds:
        names = ", ".join(sorted(name for name in counts.unplaced if name)[:3])
        what = f"csmd knows no project of these names: {names}" if names else "it names no project for its memories"
        raise BadInput(f"{file.path}: {what}", hint="name one: csmd import FILE --project PATH")


def import_all(
    store: Store, source: Source, file: ForeignFile, *, project: int | None, here: int | None = None, now: str,
    counts: ForeignCounts,
) -> Iterator[int]:  # fmt: skip
    """Stores the memories of an examined file; yields the number of entries read after each batch.

    After an interruption the stored memories stay, and the next import adds the rest.
    """
    write = partial(_write, origin=f"imported from {source.label}", path=str(file.path), now=now, key=store.hash_key)
    progress = 0
    batches = _prepare_batches(store, source, file, project=project, here=here, counts=counts, size=WRITE_BATCH)
    for batch in batches:
        store.write(partial(write, batch=batch, counts=counts))
        progress += len(batch)
        yield progress


def _prepare_batches(
    store: Store, source: Source, file: ForeignFile, *, project: int | None, here: int | None, counts: ForeignCounts,
    size: int,
) -> Iterator[list[_Placed]]:  # fmt: skip
    """Yields the memories of a file in batches, each redacted and with its project; counts those that are left out."""
    place_of = store.read(_places)
    entries = source.read(file)
    while part := list(islice(entries, size)):
        batch: list[_Placed] = []
        for entry in part:
            if isinstance(entry, Skipped):
                counts.skipped[entry.reason] += 1
                continue
            memory = _redacted(entry, counts.redactions)
            own = place_of(memory.project)
            is_placed_here = own is None and project is None and not memory.project
            project_seq = own if own is not None else project
            if is_placed_here:
                project_seq = here
            if len(tokens.content_words(memory.text)) < MIN_WORDS:
                counts.skipped[SHORT] += 1
            elif project_seq is None:
                counts.unplaced[memory.project] += 1
            else:
                counts.projects[memory.project if own is not None else ""] += 1
                counts.placed_here += is_placed_here
                batch.append(_Placed(memory, project_seq))
        yield batch


def _redacted(memory: ForeignMemory, counts: Counter[str]) -> ForeignMemory:
    text = redact(memory.text, counts)
    source_id, kind, project = (redact(part, Counter()) for part in (memory.source_id, memory.kind, memory.project))
    return ForeignMemory(source_id=source_id, kind=kind, text=text, at=memory.at, project=project)


def _places(rows: Rows) -> Callable[[str], int | None]:
    """Finds a project's row by its path, the name of its directory, or Claude Code's name for it; None where not just
    one fits."""
    by_name: dict[str, set[int]] = {}
    for path, seq in workspaces.list_directories(rows):
        for name in (path, PurePath(path).name, folder_name(path)):
            by_name.setdefault(name, set()).add(seq)

    def find(name: str) -> int | None:
        matches = by_name.get(name, set()) if name else set()
        return next(iter(matches)) if len(matches) == 1 else None

    return find


def _count_known(rows: Rows, batch: Sequence[_Placed], key: bytes) -> int:
    hashes = ((tokens.keyed_hash(placed.memory.text, key), placed.project) for placed in batch)
    return sum(memories.by_hash(rows, text_hash, project=project) is not None for text_hash, project in hashes)


def _write(
    rows: Rows, batch: Sequence[_Placed], counts: ForeignCounts, *, origin: str, path: str, now: str, key: bytes
) -> None:
    for placed in batch:
        memory, written_at = placed.memory, placed.memory.at or now
        name = hashlib.sha256(f"{origin}\n{memory.source_id}\n{memory.text}".encode("utf-8", "replace")).hexdigest()
        statement = Statement(
            text=memory.text, gate=vocabulary.CATEGORIES[memory.category].gate, category=memory.category,
            confidence=CONFIDENCE, authority="external", reasons=("imported",),
        )  # fmt: skip
        memory_id, is_new = remember.remember(
            rows, statement, Provenance(uuid=f"foreign:{name[:24]}", session_id="", at=written_at), project=placed.project,
            origin=remember.MODEL_SAVED, key=key, scope="project",
        )  # fmt: skip
        counts.new += is_new
        counts.known += bool(memory_id) and not is_new
        counts.forgotten += not memory_id
        counts.kinds[memory.kind] += 1
        if is_new and memories.by_id(rows, memory_id) is not None:
            exports.record_import(rows, memory_id, reason=f"{origin}: {memory.source_id}, {path}", now=now)
