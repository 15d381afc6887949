"""What goes with a memory that is forgotten: what dreams have kept of it, and that days are told without it.

Where a dream changed it, the whole action leaves the journal: half an undo is none. Of pages only its line does.
"""

from __future__ import annotations

from csmd import text
from csmd.model import Memory
from csmd.store import dream_journal, page_lines, told_days
from csmd.store.sqlite import Rows

#: A sentence that says the same has one of its longest words: it leaves out two at most.
LONGEST = 3


def leave(rows: Rows, memory: Memory) -> None:
    """Takes a memory out of the journal of dreams, and marks the days that may tell it; before its sentences go."""
    ident, named = memory.id, f"%{memory.id}%"
    touched = rows.all(
        "select change_seq from dream_rows where item = :id or state like :named or more like :named "
        "or state_after like :named or more_after like :named union "
        "select seq from dream_changes where evidence like :named or reason like :named",
        id=ident,
        named=named,
    )
    for (change,) in touched:
        dream_journal.take_away(rows, int(change))
    for seq, before, after in rows.all(
        "select seq, before, after from dream_files where before like :named or after like :named", named=named
    ):
        images = (
            page_lines.without(str(one), lambda ids: [each for each in ids if each == ident])[0]
            for one in (before, after)
        )
        was, is_now = images
        rows.run("update dream_files set before = :was, after = :now where seq = :seq", seq=seq, was=was, now=is_now)
    longest = sorted(set(text.content_words(memory.text)), key=lambda word: (-len(word), word))[:LONGEST]
    told_days.mark_again(rows, [one.uuid for one in memory.provenance], longest if memory.text.isascii() else [""])
