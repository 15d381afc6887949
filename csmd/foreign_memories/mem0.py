"""mem0: the JSON that its `get_all` gives, `{"results": [...]}`, or the list alone; pure."""

from __future__ import annotations

import re

from csmd import wire
from csmd.errors import BadInput
from csmd.foreign_memories.foreign_memory import ForeignContent, ForeignMemory, Skipped, shorten, to_utc
from csmd.json_fields import mapping
from csmd.store.import_files import ForeignFile

LABEL = "mem0"
#: Most bytes of a file, which is parsed in memory.
MAX_BYTES = 50_000_000
_BEGINNING = re.compile(rb'\s*(?:\{\s*"(?:results|memories)"\s*:\s*)?\[')
_MEMORY = re.compile(rb'"memory"\s*:\s*"')


def recognises(file: ForeignFile) -> bool:
    """Whether it begins as a list of objects with a `memory`."""
    return bool(_BEGINNING.match(file.beginning) and _MEMORY.search(file.beginning))


def may_begin(data: bytes) -> bool:
    """Whether a mem0 file may begin with these bytes."""
    return bool(_BEGINNING.match(data) and (data.lstrip()[:1] == b"{" or _MEMORY.search(data)))


def read(file: ForeignFile) -> ForeignContent:
    """Yields one memory for each entry; BadInput if the file is not valid JSON."""
    data = file.read_whole(MAX_BYTES)
    try:
        value = wire.loads(data)
    except BadInput as error:
        damage = wire.find_break(data) or "has data after its end"
        raise BadInput(f"{file.path} is a file of {LABEL} and {damage}", hint="export it again") from error
    entries = value if isinstance(value, list) else value.get("results", value.get("memories"))
    if not isinstance(entries, list):
        raise BadInput(f"{file.path} has no list of memories", hint="export it again: Memory.get_all()")
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, dict) or not isinstance(entry.get("memory"), str) or not entry["memory"].strip():
            yield Skipped(f"entry {number}", "entries without a memory")
            continue
        metadata = mapping(entry, "metadata")
        kind = metadata.get("category") or metadata.get("type") or "memory"
        yield ForeignMemory(
            source_id=str(entry.get("id") or f"entry {number}"), kind=str(kind), text=shorten(entry["memory"]),
            at=to_utc(entry.get("created_at")), project=str(metadata.get("project") or ""),
        )  # fmt: skip
