"""Memories of other programs: one reader for each, and the table of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from csmd.foreign_memories import basic_memory, claude_mem, claude_notes, mcp_memory, mem0
from csmd.foreign_memories.foreign_memory import Found
from csmd.store.import_files import ForeignFile


class Source(NamedTuple):
    """A program: its name, whether a file is its, and what the file holds."""

    label: str
    recognises: Callable[[ForeignFile], bool]
    read: Callable[[ForeignFile], Found]


#: The first that recognises a file reads it: any Markdown could be Claude Code's.
SOURCES = tuple(
    Source(reader.LABEL, reader.recognises, reader.read)
    for reader in (claude_mem, mcp_memory, mem0, basic_memory, claude_notes)
)


def recognise(file: ForeignFile) -> Source | None:
    """The program that a file is of; None where no reader knows it."""
    return next((source for source in SOURCES if source.recognises(file)), None)
