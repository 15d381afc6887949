"""The MCP reference memory server: a JSONL file of entities with observations, and of relations between them; pure."""

from __future__ import annotations

import re
from typing import Any

from csmd import wire
from csmd.errors import BadInput
from csmd.foreign_memories.foreign_memory import ForeignContent, ForeignMemory, Skipped, add_subject, shorten
from csmd.store.import_files import ForeignFile

LABEL = "MCP memory server"
_BEGINNING = re.compile(rb'\s*\{\s*"type"\s*:\s*"(?:entity|relation)"\s*,')
_MARKS = (b'{"type":"entity",', b'{"type":"relation",')
#: Bytes by which the beginning of a truncated file is recognised.
BEGINNING_BYTES = 100
_FIELDS = {"entity": ("name", "entityType"), "relation": ("from", "to", "relationType")}


def recognises(file: ForeignFile) -> bool:
    """Whether the first line is an entity or a relation."""
    return _BEGINNING.match(file.beginning) is not None


def may_begin(data: bytes) -> bool:
    """Whether a file of the memory server may begin with these bytes."""
    packed = b"".join(data[:BEGINNING_BYTES].split())
    return any(len(packed) > len(b'{"type":"') and mark.startswith(packed[: len(mark)]) for mark in _MARKS)


def read(file: ForeignFile) -> ForeignContent:
    """Yields one memory for each observation and each relation; BadInput names a line that is neither."""
    for line_number, line in file.read_lines():
        try:
            value = wire.loads(line)
        except BadInput as error:
            what = f"{file.path}: line {line_number} is not JSON; the file was truncated or edited"
            raise BadInput(what, hint="import a whole copy of it") from error
        if not isinstance(value, dict) or value.get("type") not in _FIELDS or not _is_complete(value):
            hint = "remove that line and import again"
            raise BadInput(f"{file.path}: line {line_number} is neither an entity nor a relation", hint=hint)
        if value["type"] == "relation":
            text = f"{value['from']} {value['relationType'].replace('_', ' ')} {value['to']}"
            yield ForeignMemory(source_id=text, kind="relation", text=shorten(text))
            continue
        name, observations = value["name"], value.get("observations") or []
        if not observations:
            yield Skipped(name, "entities without observations")
        for number, observation in enumerate(observations, start=1):
            text = shorten(add_subject(name, str(observation)))
            yield ForeignMemory(source_id=f"{name}, observation {number}", kind=value["entityType"], text=text)


def _is_complete(value: dict[str, Any]) -> bool:
    has_fields = all(isinstance(value.get(name), str) for name in _FIELDS[value["type"]])
    return has_fields and isinstance(value.get("observations", []), list)
