"""Says what a file that no reader takes looks like, and where it breaks off; pure."""

from __future__ import annotations

from csmd.errors import TooLarge
from csmd.foreign_memories import mcp_memory, mem0
from csmd.foreign_memories.foreign_memory import find_break
from csmd.store.import_files import SQLITE, ForeignFile
from csmd.text.display import join_names

#: Most bytes of a file that are looked through, and most names of tables that are shown.
MOST_BYTES, MOST_TABLES = 50_000_000, 3


def describe(file: ForeignFile) -> str:
    """What is known of a file that no reader recognises, as what follows its name; "" where nothing is."""
    data = file.beginning
    if file.rows is not None:
        tables = f" (its tables: {join_names(sorted(file.tables)[:MOST_TABLES])})" if file.tables else ""
        return f"is a SQLite database of no program that csmd knows{tables}"
    if not data.strip():
        return "is empty"
    if SQLITE.startswith(data):
        return f"looks like a SQLite database and ends at byte {len(data)}: it was cut"
    if data.lstrip()[:1] not in (b"{", b"["):
        return ""
    try:
        place = find_break(file.read_whole(MOST_BYTES))
    except TooLarge:
        return ""
    if not place:
        return "is JSON of no program that csmd knows"
    reader = next((reader for reader in (mcp_memory, mem0) if reader.begins(data)), None)
    return f"looks like {f'a file of {reader.LABEL}' if reader else 'JSON'} and {place}"
