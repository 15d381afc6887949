"""The hands of what goes between homes: writes memories into a directory, and takes them in again without doubles.

What is here already stays as it is; what the user made csmd forget stays forgotten. Nothing gains authority on the way:
a file that this home did not make as it is, and that no person brings, comes in as an assistant's word.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from csmd import text
from csmd.believe import stage as believe
from csmd.believe import stage_rest
from csmd.capture.project import normal_remote
from csmd.capture.redact import redact
from csmd.dream import parcel
from csmd.errors import BadInput
from csmd.model import Memory, Project, Statement
from csmd.store import disk, exports, files, memories, tombstones, workspaces
from csmd.store.core import Store
from csmd.store.sqlite import Rows

#: Memories that one read or one write goes through: hooks wait behind it; lines that are checked at a stretch.
BATCH, CHECKED = 50, 200
#: No file is larger, nor a line: two hundred thousand memories or so.
MOST_BYTES, MOST_LINE = 400_000_000, 4_000_000


@dataclass(slots=True)
class Taken:
    """What came in: memories new and known, those that the user made csmd forget, those nobody vouched for, those that somebody does now, secrets.

    `placed` counts those of each directory that is not here, or is another clone than the one in which it is asked for:
    (what it was there, what it is here, "" for nothing yet, its remote).
    """

    new: int = 0
    known: int = 0
    forgotten: int = 0
    lowered: int = 0
    vouched: int = 0
    redactions: Counter[str] = field(default_factory=Counter)
    placed: Counter[tuple[str, str, str]] = field(default_factory=Counter)


def export(store: Store, directory: Path, places: Sequence[int] | None) -> Iterator[int]:
    """Writes the memories of some places (None: all) into `memories.jsonl`; after each batch how many were read."""
    seqs = store.read(lambda rows: exports.seqs(rows, places))
    records: list[dict[str, Any]] = []
    for start in range(0, len(seqs), BATCH):
        part = seqs[start : start + BATCH]
        records += store.read(lambda rows, part=part: [exports.record(rows, seq) for seq in part])  # type: ignore[misc]
        yield len(records)
    data = "".join(parcel.lines(records, key=store.hash_key)).encode()
    files.write_atomic(directory / parcel.NAME, data)


def take_in(
    store: Store, file: BinaryIO, *, vouched: bool, now: str, taken: Taken, here: Project | None = None
) -> Iterator[int]:
    """Takes in what an export wrote; after each batch how many records were gone through. BadInput: it is damaged.

    `here` is the project in whose directory it is asked for: what has its remote is of it.

    The file is gone through three times, a line at a time: it is checked as a whole before anything is done, what leads
    to another memory comes when all are there, and a line that is another than it was is none. A damaged file changes
    nothing. Where it becomes another while it is read, or the import is interrupted, what is in by then stays, and
    the next import of it brings the rest.
    """
    lines: list[bytes] = []
    found = parcel.read(_noting(file, lines), key=store.hash_key)
    number, first, last, sealed = 0, 0, 0, False
    while True:
        try:
            last, _ = next(found)
        except StopIteration as end:
            sealed = bool(end.value)
            break
        number, first = number + 1, first or last
        if number % CHECKED == 0:
            yield 0
    records = range(first, last + 1)
    trusted = vouched or sealed
    taken.lowered = 0 if trusted else number
    renamed: dict[str, str] = {}
    fresh: set[int] = set()
    for done, part in _parts(file, lines, records, trusted=trusted, counts=taken.redactions):
        put = partial(
            _put, part=part, renamed=renamed, taken=taken, trusted=trusted, here=here, key=store.hash_key, now=now
        )
        fresh.update(store.write(put))
        yield done
    for _, part in _parts(file, lines, fresh, trusted=trusted, counts=Counter()):
        store.write(partial(_join, joined=[one for _, one in part], renamed=renamed, key=store.hash_key))
        yield number


def _noting(file: BinaryIO, digests: list[bytes]) -> Iterator[bytes]:
    """The lines of a file, each noted by its digest."""
    file.seek(0)
    number = 0
    while line := file.readline(MOST_LINE + 1):
        number += 1
        if len(line) > MOST_LINE:
            raise BadInput(f"line {number} of {parcel.NAME} is longer than any memory", hint="export them again")
        digests.append(_digest(line))
        yield line


def _digest(line: bytes) -> bytes:
    return hashlib.blake2b(line, digest_size=16).digest()


def _parts(
    file: BinaryIO, digests: Sequence[bytes], among: Collection[int], *, trusted: bool, counts: Counter[str]
) -> Iterator[tuple[int, list[tuple[int, dict[str, Any]]]]]:
    """(how many records up to there, some of them with their lines) of the lines `among` a file that was checked; BadInput where it changed."""
    file.seek(0)
    part: list[tuple[int, dict[str, Any]]] = []
    done = 0
    for number, known in enumerate(digests, start=1):
        line = file.readline(MOST_LINE + 1)
        if _digest(line) != known:
            raise BadInput(f"{parcel.NAME} was changed while it was read", hint="import it again")
        if number not in among or not line.strip():
            continue
        record = parcel.of_line(line, number)
        part.append((number, parcel.redacted(record if trusted else parcel.lowered(record), redact, counts)))
        done += 1
        if len(part) == BATCH:
            yield done, part
            part = []
    if part:
        yield done, part


def _put(
    rows: Rows,
    *,
    part: Sequence[tuple[int, dict[str, Any]]],
    renamed: dict[str, str],
    taken: Taken,
    trusted: bool,
    here: Project | None,
    key: bytes,
    now: str,
) -> list[int]:
    """Stores what is not there yet; the lines of those of which what leads to others is yet to come."""
    fresh: list[int] = []
    for number, one in part:
        said = Statement(
            text=one["text"], gate=one["gate"], category=one["category"], confidence=one["confidence"],
            authority=one["authority"],
        )  # fmt: skip
        project = _placed(rows, one["project"], taken, here=here, now=now)
        if believe.is_forgotten(rows, said, project=project, at=str(one["created_at"]), key=key):
            taken.forgotten += 1
            continue
        text_hash = text.keyed_hash(one["text"], key)
        known = memories.by_id(rows, one["id"])
        if known is None or known.text != one["text"]:
            known = memories.by_hash(rows, text_hash, project=project)
        if known is not None:
            taken.known += 1
            _rename(renamed, one["id"], known.id)
            if trusted:
                exports.add_sources(rows, known.seq, one)
                taken.vouched += _vouch(rows, known, one, key=key, now=now)
            # An import that was interrupted is gone on with; nobody's file says what leads from a memory of a trusted one.
            if exports.is_in_part(rows, known.id) and (trusted or known.origin == believe.MODEL_SAVED):
                fresh.append(number)
            continue
        ident = (
            one["id"]
            if memories.by_id(rows, one["id"]) is None
            else stage_rest.free_identity(rows, project, one["text"])
        )
        exports.put(rows, ident, one, project=project, text_hash=text_hash)
        exports.note_brought(rows, ident, reason="it was imported", now=now, state=exports.IN_PART)
        _rename(renamed, one["id"], ident)
        taken.new += 1
        fresh.append(number)
    return fresh


def _placed(rows: Rows, said: Mapping[str, str], taken: Taken, *, here: Project | None, now: str) -> int:
    """Where a record's project is here, noted where that is another place than it was there, or than is asked in."""
    if said:
        said = {**said, "remote": normal_remote(said["remote"])}
    project = exports.place(rows, said, now=now, here=here)
    if said and said["kind"] != workspaces.KIND:
        root, is_gone = workspaces.root_of(rows, project), disk.is_gone(said["root"])
        if is_gone or (here is not None and here.remote == said["remote"] != "" and here.root != root):
            taken.placed[said["root"], "" if is_gone and root == said["root"] else root, said["remote"]] += 1
    return project


def _rename(renamed: dict[str, str], there: str, here: str) -> None:
    if there != here:
        renamed[there] = here


def _vouch(rows: Rows, here: Memory, one: Mapping[str, Any], *, key: bytes, now: str) -> bool:
    """Gives a memory that came in as an assistant's the authority and the scene that its record has, now that somebody vouches for it."""
    if here.origin != believe.MODEL_SAVED or one["origin"] == believe.MODEL_SAVED or here.authority != "assistant":
        return False
    raised = replace(here, authority=one["authority"], origin=one["origin"], pinned=bool(one["pinned"]))
    memories.update_belief(rows, raised)
    exports.put_scene(rows, here.seq, _without_purged(rows, one, key=key))
    exports.note_brought(rows, here.id, reason="somebody vouched for it", now=now)
    return True


def _join(rows: Rows, *, joined: Sequence[dict[str, Any]], renamed: Mapping[str, str], key: bytes) -> None:
    for found in joined:
        one, ident = _without_purged(rows, found, key=key), renamed.get(found["id"], found["id"])
        memory = memories.by_id(rows, ident)
        if memory is not None and exports.is_in_part(rows, ident):
            exports.put_beside(rows, memory.seq, ident, one, renamed=renamed)
            exports.note_whole(rows, ident)


def _without_purged(rows: Rows, one: Mapping[str, Any], *, key: bytes) -> dict[str, Any]:
    purged = tombstones.marks(rows, key)
    return parcel.without(one, lambda said: bool(purged.spans(said)))


def found_in(path: Path) -> Path | None:
    """The file of memories that is named, or lies in a directory; None where there is none."""
    place = path / parcel.NAME if path.is_dir() else path
    return place if place.name == parcel.NAME and place.is_file() else None


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A file of memories, to be read; BadInput: it is larger than any."""
    with files.open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > MOST_BYTES:
            raise BadInput(f"{path} is larger than {MOST_BYTES // 1_000_000} MB", hint="export fewer: --project PATH")
        yield file
