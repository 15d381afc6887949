"""Memories of other programs: one reader for each, the table of readers, and the description of unknown files."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from csmd import wire
from csmd.errors import TooLarge
from csmd.foreign_memories import basic_memory, claude_mem, claude_notes, mcp_memory, mem0
from csmd.foreign_memories.foreign_memory import ForeignContent
from csmd.store.import_files import SQLITE_MAGIC, ForeignFile
from csmd.text.display import join_names

#: Most bytes of a file that are read.
MAX_BYTES = 50_000_000
#: Most names of tables that are shown.
MAX_TABLES = 3


class Source(NamedTuple):
    """A program: its name, the check whether a file is its own, and the reader of the file."""

    label: str
    recognises: Callable[[ForeignFile], bool]
    read: Callable[[ForeignFile], ForeignContent]


#: The first that recognises a file reads it: any Markdown could be Claude Code's.
_READERS = (claude_mem, mcp_memory, mem0, basic_memory, claude_notes)
SOURCES = tuple(Source(reader.LABEL, reader.recognises, reader.read) for reader in _READERS)


def recognise(file: ForeignFile) -> Source | None:
    """Returns the program that wrote a file; None if no reader recognises it."""
    return next((source for source in SOURCES if source.recognises(file)), None)


def describe_unknown(file: ForeignFile) -> str:
    """Returns a predicate for an error message about a file that no reader recognises, as "is empty"; "" for unknown
    text."""
    data = file.beginning
    if file.rows is not None:
        tables = f" (its tables: {join_names(sorted(file.tables)[:MAX_TABLES])})" if file.tables else ""
        return f"is a SQLite database that csmd does not recognise{tables}"
    if not data.strip():
        return "is empty"
    if SQLITE_MAGIC.startswith(data):
        return f"looks like a SQLite database but is truncated at byte {len(data)}"
    if data.lstrip()[:1] not in (b"{", b"["):
        return ""
    try:
        problem = wire.find_break(file.read_whole(MAX_BYTES))
    except TooLarge:
        return ""
    if not problem:
        return "is JSON that csmd does not recognise"
    label = next((reader.LABEL for reader in (mcp_memory, mem0) if reader.may_begin(data)), None)
    return f"looks like {f'a file of {label}' if label else 'JSON'} and {problem}"
