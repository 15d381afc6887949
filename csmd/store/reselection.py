"""Which memories are chosen anew, and how far that has come."""

from __future__ import annotations

from csmd.model import Memory
from csmd.store import belief_changes, cursors, memories, speakers, vectors
from csmd.store.sqlite import Rows

STAGE = "reselection"
#: The reason by which what was archived is known, and the change of a memory's words.
NOT_CHOSEN, REWORDED = "it is not chosen any more by how csmd chooses now", "reworded"
#: Memories of one read.
READ = 200


def is_due(rows: Rows) -> bool:
    """Whether the memories of an older csmd are still to be chosen anew."""
    return cursors.cursor(rows, STAGE, "due") > 0


def settle(rows: Rows) -> None:
    """Notes that they were, or that a person is asked."""
    cursors.move_cursor(rows, STAGE, "due", 0)


def seqs(rows: Rows) -> list[int]:
    """The row keys of the memories that were chosen from what was said, and stand for themselves."""
    found = rows.all(
        "select seq from memories where origin = 'stated' and pinned = 0 and tier <> 'archive' and twin_of = 0 order by seq"
    )
    return [int(seq) for (seq,) in found]


def part(rows: Rows, keys: list[int]) -> list[Memory]:
    """Those of some memories whose every source is a transcript's turn, and that no person has touched or asked for."""
    found = memories.by_seqs(rows, keys)
    return [found[seq] for seq in sorted(found) if _is_csmds(rows, found[seq])]


def _is_csmds(rows: Rows, memory: Memory) -> bool:
    if speakers.is_of_person(rows, memory):
        return False
    asked_for = rows.value(
        "select 1 from memories m join statements s on s.text_hash = m.text_hash "
        "where m.seq = :seq and ' ' || s.reasons || ' ' like '% remember %' limit 1",
        seq=memory.seq,
    )
    elsewhere = rows.value(
        "select 1 from provenance p where p.memory_seq = :seq and p.role <> 'beside' and not exists "
        "(select 1 from turns t where t.uuid = p.uuid and t.source = 'transcript') limit 1",
        seq=memory.seq,
    )
    return asked_for is None and elsewhere is None


def archived(rows: Rows) -> int:
    """How many memories were archived because they are not chosen any more."""
    return int(
        rows.value(
            "select count(distinct memory_id) from belief_changes where change = 'archive' and reason = :reason "
            "and undone_at = ''",
            reason=NOT_CHOSEN,
        )
    )


def reword(rows: Rows, memory: Memory, *, text_hash: str, now: str) -> None:
    """Gives a memory the words and the kind that it has now; its id and its sources stay."""
    rows.run(
        "update memories set text = :text, text_hash = :hash, gate = :gate, category = :category, type = :type "
        "where seq = :seq",
        text=memory.text,
        hash=text_hash,
        gate=memory.gate,
        category=memory.category,
        type=memory.type,
        seq=memory.seq,
    )
    memories.update_belief(rows, memory)
    vectors.again(rows, "memory", memory.seq)
    belief_changes.note(rows, memory.id, REWORDED, "", "", "chosen anew", belief_changes.DREAM, now)
