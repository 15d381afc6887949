"""What goes with a memory that is forgotten: what dreams have kept of it, and that days are told without it.

Where a dream changed it, the whole action leaves the journal: half an undo is none. Of pages only its line does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from unicodedata import normalize as form

from csmd import text
from csmd.model import Memory
from csmd.store import dream_journal, memories, page_lines, told_days, tombstones
from csmd.store.sqlite import Rows

_CASES = (str.lower, str.capitalize, str.upper)


#: A row of the scope itself, or of a project for which it is everywhere.
_BELOW = (
    "(project_seq = :scope or (select case p.kind when 'workspace' then -1 else p.workspace_seq end from projects p "
    "where p.seq = project_seq) = :scope)"
)


def below(rows: Rows, text_hash: str, *, scope: int) -> list[Memory]:
    """The memories with this text of the projects for which a scope is everywhere; none for a project's."""
    found = rows.all(
        f"select seq from memories where text_hash = :hash and project_seq <> :scope and {_BELOW} order by seq",  # noqa: S608
        hash=text_hash,
        scope=scope,
    )
    return list(memories.by_seqs(rows, [int(seq) for (seq,) in found]).values())


def sentences(
    rows: Rows, memory: Memory, *, text_hash: str, scope: int, is_same: Callable[[str], bool], by_assistants: bool
) -> None:
    """Removes the sentences that a memory came from, and those in its words that a scope sees; those that assistants
    said only, where `by_assistants`.
    """
    for source in memory.provenance:
        for seq, said in rows.all(
            "select x.seq, x.text from statements x join turns t on t.seq = x.turn_seq "
            "where t.uuid = :uuid and (:assistants = 0 or x.authority <> 'user')",
            uuid=source.uuid,
            assistants=int(by_assistants),
        ):
            if is_same(str(said)):
                rows.run("delete from statements where seq = :seq", seq=seq)
    rows.run(
        f"delete from statements where text_hash = :hash and (:assistants = 0 or authority <> 'user') and {_BELOW}",  # noqa: S608
        hash=text_hash,
        scope=scope,
        assistants=int(by_assistants),
    )


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
    told_days.mark_again(rows, [one.uuid for one in memory.provenance], _likely(memory.text))


def leave_images(rows: Rows, memory: Memory, *, key: bytes) -> None:
    """Takes the lines of a memory out of the files that dreams keep; after it is forgotten."""
    # An editor may have lost the comment that names it: then the line has one of its words.
    seqs = {
        int(seq)
        for word in (memory.id, *_likely(memory.text))
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


def _likely(said: str) -> list[str]:
    """How the longest stems of a text begin words: whatever says the same has one of them; [""] for a text without any.

    Of letters beyond ASCII the store does not know the other case: of such stems there is each spelling.
    """
    stems, as_said = text.gist(said).stems, said.lower()
    left_out = sum(len(stems) - gone >= text.SAME_SHARE * len(stems) for gone in range(1, tombstones.MOST_LEFT_OUT + 1))
    plain_first = sorted(stems, key=lambda one: (not one.isascii() or one not in as_said, -len(one), one))
    spelt = (case(form(way, one)) for one in plain_first[: left_out + 1] for way in ("NFC", "NFD") for case in _CASES)
    return list({one.lower() if one.isascii() else one: None for one in spelt}) or [""]
