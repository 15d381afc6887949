"""What goes with a memory that is forgotten: what dreams have kept of it, and that days are told without it.

Where a dream changed it, the whole action leaves the journal: half an undo is none. Of pages only its line does.
"""

from __future__ import annotations

from functools import cache

from csmd import text
from csmd.model import Memory
from csmd.store import dream_journal, page_lines, told_days
from csmd.store.sqlite import Rows

#: A sentence that says the same has one of its longest words: it leaves out two at most.
LONGEST = 3


def leave(rows: Rows, memory: Memory) -> None:
    """Takes what dreams did to a memory out of their journal, and marks the days that may tell it; before its sentences go."""
    named = f"%{memory.id}%"
    touched = rows.all(
        "select change_seq from dream_rows where item = :id or state like :named or more like :named "
        "or state_after like :named or more_after like :named union "
        "select seq from dream_changes where evidence like :named or reason like :named",
        id=memory.id,
        named=named,
    )
    for (change,) in touched:
        dream_journal.take_away(rows, int(change))
    told_days.mark_again(rows, [one.uuid for one in memory.provenance], _longest(memory))


def leave_images(rows: Rows, memory: Memory, *, key: bytes) -> None:
    """Takes the lines of a memory out of the files that dreams keep; after it is forgotten."""
    # An editor may have lost the comment that names it: then the line has one of its words.
    seqs = {
        int(seq)
        for word in (memory.id, *_longest(memory))
        for (seq,) in rows.all(
            "select seq from dream_files where before like :word or after like :word", word=f"%{word}%"
        )
    }
    is_unsaid = cache(lambda words: page_lines.unsaid(rows, words, key=key))
    for seq in sorted(seqs):
        images = rows.all("select before, after from dream_files where seq = :seq", seq=seq)[0]
        (was, one), (then, other) = (
            page_lines.without(str(image), lambda ids: [ident for ident in ids if ident == memory.id], is_unsaid)
            for image in images
        )
        if one or other:
            rows.run("update dream_files set before = :was, after = :now where seq = :seq", seq=seq, was=was, now=then)


def _longest(memory: Memory) -> list[str]:
    """Its longest words; "" where they are written in letters whose case the store does not know."""
    longest = sorted(set(text.content_words(memory.text)), key=lambda word: (-len(word), word))[:LONGEST]
    return longest if memory.text.isascii() else [""]
