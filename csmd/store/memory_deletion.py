"""Deletes memories with everything that depends on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from csmd.knowledge import Memory
from csmd.store import candidates, memories, memory_links, vectors
from csmd.store.belief_changes import pass_on_supersessions
from csmd.store.sqlite import Rows


def delete_memory(rows: Rows, memory: Memory) -> None:
    """Deletes a memory with its vectors, links, items of receipts, and the memory of its remaining parts.

    What it superseded is superseded by its successor, or is active again. Memories merged into it, its twins, the note made
    of it, and the candidates and audit that quote it are deleted, too.
    """
    sql = """select seq from memories where twin_of = :seq and twin_of > 0
        union all select from_seq from links where to_seq = :seq and relationship = 'merged_into'
        union all select n.seq from links l join memories n on n.seq = l.to_seq
        where l.from_seq = :seq and l.relationship = 'curated_as' and n.origin = 'curated' and n.pinned = 0"""
    dependent_seqs = rows.column(sql, seq=memory.seq)
    delete_all(rows, [*dependent_seqs, *memory_links.release_second_half(rows, memory.id)])
    candidates.forget(rows, memory.id)
    vectors.delete_of_row(rows, "memory", memory.seq)
    rows.delete("injection_items", memory_id=memory.id)
    rows.delete("memories", seq=memory.seq)
    for restored_id in pass_on_supersessions(rows, memory.id, memory.superseded_by):
        delete_all(rows, memory_links.release_second_half(rows, restored_id))


def delete_all(rows: Rows, seqs: Sequence[int]) -> None:
    """Deletes memories by row key."""
    for seq in seqs:
        for memory in memories.by_seqs(rows, [seq]).values():
            delete_memory(rows, memory)


def drop_sources(rows: Rows, where: str, **values: Any) -> None:
    """Deletes sources of memories, by a condition on `provenance`, and the memories that have no source left.

    The other memories get the session of a source that is left.
    """
    sourced = rows.distinct(f"delete from provenance where {where} returning memory_seq", **values)  # noqa: S608
    for memory in memories.by_seqs(rows, sorted(sourced)).values():
        # A note that a model made of several turns may repeat any of them.
        is_note = memory.origin == "curated" and not memory.pinned
        if is_note or all(source.role == "beside" for source in memory.provenance):
            delete_memory(rows, memory)
        elif memory.session_id not in {source.session_id for source in memory.provenance}:
            rows.revise("memories", memory.seq, session_id=memory.provenance[0].session_id)
