"""The file of exported memories: writes it, finds it, checks it and reads it in batches."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from csmd import wire
from csmd.errors import BadInput
from csmd.foreign_memories.claude_notes import EXPORTED
from csmd.memory_export.record_schema import FILE_NAME, check_record, redact_record, reject_line
from csmd.privacy.redaction import redact
from csmd.recall import visibility
from csmd.store import exports, files
from csmd.store.core import Store
from csmd.text import display, markdown

#: The file of an export for people, which cannot be imported.
MARKDOWN_NAME = "memories.md"
NAMES = (FILE_NAME, MARKDOWN_NAME)
#: The format and version that the first line names.
FORMAT = "csmd memories"
VERSION = 1
_BEGINNING = wire.dumps({"format": FORMAT}).removesuffix("}").encode()
#: Headings of memories that no session is shown.
REPLACED = "Replaced"
WAITING = "Waiting for review"
#: Memories read or written at once; hooks wait for a write.
RECORD_BATCH = 50
#: Lines checked between two pauses.
CHECK_BATCH = 200
#: Most bytes of a file, some two hundred thousand memories.
MAX_BYTES = 400_000_000
MAX_LINE_BYTES = 4_000_000


# --- writing


def render_lines(records: Iterable[Mapping[str, Any]], *, key: bytes) -> Iterator[str]:
    """Yields the lines of a file, each with its newline: the format, one line for each memory, the seal."""
    seal = _new_seal(key)
    for value in ({"format": FORMAT, "version": VERSION}, *records):
        line = wire.dumps(dict(value)) + "\n"
        seal.update(line.encode())
        yield line
    yield wire.dumps({"seal": seal.hexdigest()}) + "\n"


def _new_seal(key: bytes) -> hmac.HMAC:
    return hmac.new(key, b"parcel\n", hashlib.sha256)


def render_markdown(records: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yields the lines of an export for people: by project, each memory with category, speaker, date, id and successor.

    Replaced memories and those that wait for review follow under headings of their own.
    """
    by_project: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for record in records:
        project = record["project"]
        title = f"{project['name']} ({project['root']})" if project else "Everywhere"
        by_heading = by_project.setdefault(title, {"": [], WAITING: [], REPLACED: []})
        by_heading[_find_heading(record)].append(record)
    yield f"{EXPORTED} -->\n# Memories\n"
    for title, by_heading in sorted(by_project.items()):
        yield f"\n## {markdown.to_line(title)}\n\n"
        for heading, rows in by_heading.items():
            if heading and rows:
                yield f"\n### {heading}\n\n"
            yield from map(_render_entry, rows)


def _find_heading(record: Mapping[str, Any]) -> str:
    """Returns the heading of a record, "" if sessions are shown it."""
    if record["superseded_by"]:
        return REPLACED
    needs_review = record["authority"] == "external" or record["origin"] in visibility.UNSTATED
    return WAITING if needs_review and not record["pinned"] else ""


def _render_entry(record: Mapping[str, Any]) -> str:
    successor = record["superseded_by"]
    replaced = f", replaced by {successor}" if successor else ""
    about = f"{record['category']}, {display.said_by(record['authority'])}, {record['created_at'][:10]}"
    return f"- {markdown.to_line(record['text'])}  \n  {about}, {record['id']}{replaced}\n"


def export_memories(
    store: Store, directory: Path, projects: Sequence[int] | None, *, redacts: bool = False, is_markdown: bool = False
) -> Iterator[int]:
    """Writes the memories of some projects (None: all) into one file; yields how many were read after each batch.

    With `redacts` they are redacted first, because older rules may have let secrets through.
    """
    seqs = store.read(lambda rows: exports.list_exported(rows, projects))
    records: list[dict[str, Any]] = []
    for start in range(0, len(seqs), RECORD_BATCH):
        part = seqs[start : start + RECORD_BATCH]
        records += store.read(lambda rows, part=part: [exports.make_memory_record(rows, seq) for seq in part])  # type: ignore[misc]
        yield len(records)
    if redacts:
        records = [redact_record(record, redact, Counter()) for record in records]
    lines = render_markdown(records) if is_markdown else render_lines(records, key=store.hash_key)
    name = MARKDOWN_NAME if is_markdown else FILE_NAME
    files.write_atomic(directory / name, "".join(lines).encode("utf-8", "replace"))


# --- reading


def find_file(path: Path) -> Path | None:
    """Returns the file of memories at a path, whatever its name, or in that directory; None if there is none."""
    path = path / FILE_NAME if path.is_dir() else path
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return path if file.read(len(_BEGINNING)) == _BEGINNING or path.name == FILE_NAME else None


@contextmanager
def open_file(path: Path) -> Iterator[BinaryIO]:
    """Opens a file of memories for reading; BadInput if it is too large."""
    with files.open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > MAX_BYTES:
            raise BadInput(f"{path} is larger than {MAX_BYTES // 1_000_000} MB", hint="export fewer: --project PATH")
        yield file


def _number_lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yields the lines of a file from its beginning with their numbers; BadInput if one is too long."""
    file.seek(0)
    for number, line in enumerate(iter(partial(file.readline, MAX_LINE_BYTES + 1), b""), start=1):
        if len(line) > MAX_LINE_BYTES:
            raise reject_line(number, "longer than any memory")
        yield number, line


def _parse_line(line: bytes, number: int) -> dict[str, Any]:
    try:
        value = wire.loads(line)
    except BadInput as error:
        raise reject_line(number, "not JSON") from error
    if not isinstance(value, dict):
        raise reject_line(number, "not a JSON object")
    return value


def _check_head(value: Mapping[str, Any]) -> None:
    if value.get("format") != FORMAT:
        raise BadInput("not a `csmd export` file", hint="give the directory that was passed to --to")
    if value.get("version") != VERSION:
        raise BadInput("the export was written by a newer csmd", hint="csmd upgrade")


def _digest(line: bytes) -> bytes:
    return hashlib.blake2b(line, digest_size=16).digest()


def check_file(file: BinaryIO, digests: dict[int, bytes], *, key: bytes) -> Generator[int, None, bool]:
    """Checks every line and stores the digest of each record by line number; returns whether this home wrote the file.

    BadInput names an invalid line, or says that the file is of another kind or truncated.
    """
    seal = _new_seal(key)
    stored_seal: str | None = None
    lines = ((number, line) for number, line in _number_lines(file) if line.strip())
    number, line = next(lines, (0, b"{}"))
    _check_head(_parse_line(line, number))
    seal.update(line.rstrip(b"\n") + b"\n")
    for number, line in lines:
        value = _parse_line(line, number)
        if "seal" in value and stored_seal is None:
            stored_seal = str(value["seal"])
            continue
        check_record(value, number)
        digests[number] = _digest(line)
        seal.update(line.rstrip(b"\n") + b"\n")
        if len(digests) % CHECK_BATCH == 0:
            yield 0
    if stored_seal is None:
        raise BadInput("the file is truncated: its seal is missing", hint="export them again")
    return hmac.compare_digest(seal.hexdigest(), stored_seal)


def read_batches(file: BinaryIO, digests: Mapping[int, bytes]) -> Iterator[dict[int, dict[str, Any]]]:
    """Yields the records on some lines of a checked file, in batches by line number.

    BadInput if the file has changed.
    """
    lines = (line for number, line in _number_lines(file) if number in digests)
    remaining = iter(digests.items())
    while batch := list(islice(remaining, RECORD_BATCH)):
        records: dict[int, dict[str, Any]] = {}
        for number, digest in batch:
            line = next(lines, b"")
            if _digest(line) != digest:
                raise BadInput(f"{FILE_NAME} was changed while it was read", hint="import it again")
            records[number] = check_record(_parse_line(line, number), number)
        yield records
