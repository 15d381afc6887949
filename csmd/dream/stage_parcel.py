"""The hands of what goes between homes: writes memories into a directory, and takes them in again without doubles.

What is here already stays as it is; what the user made csmd forget stays forgotten. Nothing gains authority on the way:
a file that this home did not make as it is, and that no person brings, comes in as an assistant's word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from csmd import text
from csmd.believe import stage as believe
from csmd.capture.redact import redact
from csmd.dream import parcel
from csmd.errors import BadInput
from csmd.model import Statement
from csmd.store import files, memories, parcels, tombstones
from csmd.store.core import Store
from csmd.store.sqlite import Rows

#: Memories that one read or one write goes through: hooks wait behind it.
BATCH = 50


@dataclass(slots=True)
class Taken:
    """What came in: memories new and known, those that the user made csmd forget, those nobody vouched for, secrets."""

    new: int = 0
    known: int = 0
    forgotten: int = 0
    lowered: int = 0
    redactions: Counter[str] = field(default_factory=Counter)


def export(store: Store, directory: Path, places: Sequence[int] | None) -> Iterator[int]:
    """Writes the memories of some places (None: all) into `memories.jsonl`; after each batch how many were read."""
    seqs = store.read(lambda rows: parcels.seqs(rows, places))
    records: list[dict[str, Any]] = []
    for start in range(0, len(seqs), BATCH):
        part = seqs[start : start + BATCH]
        records += store.read(lambda rows, part=part: [parcels.record(rows, seq) for seq in part])  # type: ignore[misc]
        yield len(records)
    data = "".join(parcel.lines(records, key=store.hash_key)).encode()
    files.write_atomic(directory / parcel.NAME, data)


def take_in(store: Store, data: bytes, *, vouched: bool, now: str, taken: Taken) -> Iterator[int]:
    """Takes in what an export wrote; after each batch how many records were gone through. BadInput changes nothing."""
    found, sealed = parcel.read(data, key=store.hash_key)
    trusted = vouched or sealed
    if not trusted:
        taken.lowered = len(found)
        found = [parcel.lowered(one) for one in found]
    records = [parcel.redacted(one, redact, taken.redactions) for one in found]
    renamed: dict[str, str] = {}
    fresh: list[tuple[str, dict[str, Any]]] = []
    for start in range(0, len(records), BATCH):
        part = records[start : start + BATCH]
        put = partial(_put, part=part, renamed=renamed, taken=taken, trusted=trusted, key=store.hash_key, now=now)
        fresh += store.write(put)
        yield start + len(part)
    # What leads to another memory comes when all are there.
    for start in range(0, len(fresh), BATCH):
        store.write(partial(_join, joined=fresh[start : start + BATCH], renamed=renamed, now=now))
        yield len(records)


def _put(
    rows: Rows,
    *,
    part: Sequence[dict[str, Any]],
    renamed: dict[str, str],
    taken: Taken,
    trusted: bool,
    key: bytes,
    now: str,
) -> list[tuple[str, dict[str, Any]]]:
    fresh, purged = [], tombstones.marks(rows, key)
    for one in part:
        said = Statement(
            text=one["text"], gate=one["gate"], category=one["category"], confidence=one["confidence"],
            authority=one["authority"],
        )  # fmt: skip
        if believe.is_forgotten(rows, said, key=key):
            taken.forgotten += 1
            continue
        project = parcels.place(rows, one["project"], now=now)
        text_hash = text.keyed_hash(one["text"], key)
        here = memories.by_id(rows, one["id"])
        if here is None or here.text != one["text"]:
            here = memories.by_hash(rows, text_hash, project=project)
        if here is not None:
            taken.known += 1
            renamed[one["id"]] = here.id
            if trusted:
                parcels.add_sources(rows, here.seq, one)
            continue
        ident = (
            one["id"] if memories.by_id(rows, one["id"]) is None else believe.free_identity(rows, project, one["text"])
        )
        parcels.put(rows, ident, one, project=project, text_hash=text_hash)
        renamed[one["id"]] = ident
        taken.new += 1
        fresh.append((ident, parcel.without(one, lambda said: bool(purged.spans(said)))))
    return fresh


def _join(rows: Rows, *, joined: Sequence[tuple[str, Mapping[str, Any]]], renamed: Mapping[str, str], now: str) -> None:
    for ident, one in joined:
        memory = memories.by_id(rows, ident)
        if memory is not None:
            parcels.put_beside(rows, memory.seq, ident, one, renamed=renamed)
            parcels.note_brought(rows, ident, reason="it was imported", now=now)


def data_of(path: Path) -> bytes | None:
    """The memories that an export wrote to a file, or into a directory; None where there are none. BadInput: too large."""
    place = path / parcel.NAME if path.is_dir() else path
    if place.name != parcel.NAME or not place.is_file():
        return None
    with files.open_regular(place) as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise BadInput(f"{place} is larger than {MOST_BYTES} bytes: no export is")
    return data


#: Two hundred thousand memories or so.
MOST_BYTES = 400_000_000
