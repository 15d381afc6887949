"""Imports exported memories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, BinaryIO

from csmd.capture.project_identity import normalise_remote
from csmd.conversation import Project
from csmd.knowledge import Memory, Statement
from csmd.memory import remember, supersession
from csmd.memory_export.export_file import check_file, read_batches
from csmd.memory_export.record_schema import STATEMENT_FIELDS, drop_purged, lower_record, redact_record
from csmd.privacy.redaction import redact
from csmd.store import exports, files, memories, tombstones, workspaces
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import tokens


@dataclass(slots=True)
class ImportCounts:
    """Counts of an import: memories new, already stored, rejected as forgotten, lowered, vouched for.

    `placed` counts memories by (directory in the export, local directory or "", remote), if the directory does not
    exist here or is another clone than the one in which the import was started.
    """

    new: int = 0
    repeated: int = 0
    forgotten: int = 0
    lowered: int = 0
    vouched: int = 0
    redactions: Counter[str] = field(default_factory=Counter)
    placed: Counter[tuple[str, str, str]] = field(default_factory=Counter)


def import_memories(
    store: Store, file: BinaryIO, *, vouched: bool, now: str, counts: ImportCounts, here: Project | None = None
) -> Iterator[int]:
    """Imports a file of memories; yields how many records were read after each batch. BadInput if it is damaged.

    `here` is the project in whose directory the import was started; memories with its remote are put there.

    The file is read three times, line by line: it is checked as a whole before anything is stored, links are stored
    when all memories are, and a line that has changed in between is refused. A damaged file changes nothing. After an
    interrupted import the stored memories stay, and the next import adds the rest.
    """
    digests: dict[int, bytes] = {}
    is_sealed = yield from check_file(file, digests, key=store.hash_key)
    run = _Import(key=store.hash_key, now=now, is_trusted=vouched or is_sealed, here=here, counts=counts)
    counts.lowered = 0 if run.is_trusted else len(digests)
    incomplete: dict[int, bytes] = {}
    progress = 0
    for batch in read_batches(file, digests):
        records = {number: run.prepare(record, counts.redactions) for number, record in batch.items()}
        incomplete |= {number: digests[number] for number in store.write(partial(run.store_memories, records=records))}
        progress += len(batch)
        yield progress
    for batch in read_batches(file, incomplete):
        store.write(partial(run.annotate, records=[run.prepare(record, Counter()) for record in batch.values()]))
        yield progress


@dataclass(slots=True, kw_only=True)
class _Import:
    """The state shared by the batches of one import; `renamed` maps the ids of records to ids of this home."""

    key: bytes
    now: str
    is_trusted: bool
    here: Project | None
    counts: ImportCounts
    renamed: dict[str, str] = field(default_factory=dict)

    def prepare(self, record: Mapping[str, Any], redactions: Counter[str]) -> dict[str, Any]:
        """Returns a record as it may be stored: redacted, and lowered if its origin is unknown."""
        return redact_record(record if self.is_trusted else lower_record(record), redact, redactions)

    def store_memories(self, rows: Rows, records: Mapping[int, dict[str, Any]]) -> list[int]:
        """Stores the memories that are new; returns the line numbers of those whose annotations are still missing."""
        return [number for number, record in records.items() if self._store_memory(rows, record)]

    def _store_memory(self, rows: Rows, record: dict[str, Any]) -> bool:
        """Stores a memory unless it was forgotten or is known; returns whether its annotations are still missing."""
        text, memory_id = record["text"], record["id"]
        statement = Statement(**{name: record[name] for name in STATEMENT_FIELDS})
        project = self._find_project(rows, record["project"])
        if remember.is_forgotten(rows, statement, project=project, at=str(record["created_at"]), key=self.key):
            self.counts.forgotten += 1
            return False
        text_hash = tokens.keyed_hash(text, self.key)
        same_id = memories.by_id(rows, memory_id)
        is_same = same_id is not None and same_id.text == text
        existing = same_id if is_same else memories.by_hash(rows, text_hash, project=project)
        if existing is not None:
            return self._merge_existing(rows, existing, record)
        new_id = memory_id if same_id is None else supersession.free_identity(rows, project, text)
        exports.insert_memory(rows, new_id, record, project=project, text_hash=text_hash)
        exports.record_import(rows, new_id, reason="it was imported", now=self.now, state=exports.INCOMPLETE)
        self.renamed[memory_id] = new_id
        self.counts.new += 1
        return True

    def _merge_existing(self, rows: Rows, existing: Memory, record: dict[str, Any]) -> bool:
        """Adds a record's sources to a stored memory; returns whether an interrupted import is to be finished.

        A file of unknown origin adds nothing to a memory that was stored otherwise.
        """
        self.counts.repeated += 1
        self.renamed[record["id"]] = existing.id
        if self.is_trusted:
            exports.add_sources(rows, existing.seq, record)
            self.counts.vouched += self._vouch(rows, existing, record)
        may_annotate = self.is_trusted or existing.origin == remember.MODEL_SAVED
        return may_annotate and exports.is_import_incomplete(rows, existing.id)

    def _find_project(self, rows: Rows, origin: Mapping[str, str]) -> int:
        """Returns the row key of a record's project; counts it in `placed` if its directory differs."""
        if origin:
            origin = {**origin, "remote": normalise_remote(origin["remote"])}
        here, project = self.here, exports.ensure_project(rows, origin, now=self.now, own_project=self.here)
        if origin and origin["kind"] != workspaces.WORKSPACE_KIND:
            root, is_gone = workspaces.root_of(rows, project), files.is_missing(origin["root"])
            if is_gone or (here is not None and here.remote == origin["remote"] != "" and here.root != root):
                root = "" if is_gone and root == origin["root"] else root
                self.counts.placed[origin["root"], root, origin["remote"]] += 1
        return project

    def _vouch(self, rows: Rows, memory: Memory, record: Mapping[str, Any]) -> bool:
        """Gives a memory that an earlier import lowered its record's authority and scene."""
        is_lowered = memory.origin == remember.MODEL_SAVED and memory.authority == "assistant"
        if not is_lowered or record["origin"] == remember.MODEL_SAVED:
            return False
        raised = {name: record[name] for name in ("authority", "origin")}
        memories.update_belief(rows, replace(memory, **raised, pinned=bool(record["pinned"])))
        exports.set_scene(rows, memory.seq, self._without_purged(rows, record))
        exports.record_import(rows, memory.id, reason="a person vouched for it", now=self.now)
        return True

    def annotate(self, rows: Rows, records: Iterable[dict[str, Any]]) -> None:
        """Adds links, tags, audit and other annotations of a memory, once all memories are stored."""
        for record in records:
            memory_id = self.renamed.get(record["id"], record["id"])
            memory = memories.by_id(rows, memory_id)
            if memory is not None and exports.is_import_incomplete(rows, memory_id):
                allowed = self._without_purged(rows, record)
                exports.add_annotations(rows, memory.seq, memory_id, allowed, renamed=self.renamed)
                exports.mark_import_complete(rows, memory_id)

    def _without_purged(self, rows: Rows, record: Mapping[str, Any]) -> dict[str, Any]:
        purged = tombstones.purged_marks(rows, self.key)
        return drop_purged(record, lambda text: bool(purged.spans(text)))
