"""Memories that csmd has inferred from what was counted: their words, sureness and sources follow the counts.

What a person stated, pinned or worded since is no longer csmd's to change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from csmd.model import Memory, Provenance
from csmd.store import memories, vectors
from csmd.store.sqlite import Rows

ORIGIN = "inferred"


def is_ours(memory: Memory, said: str) -> bool:
    """Whether a memory is still as csmd inferred it: its words are `said`, and nobody has made it theirs."""
    return memory.origin == ORIGIN and not memory.pinned and memory.text == said


def retell(rows: Rows, memory: Memory, *, text_hash: str, sources: Sequence[Provenance], before: Sequence[str]) -> None:
    """Gives a memory its words, thresholds and sources of now; `before` are the uuids that it rested on as inferred.

    Sources of other origin (a user who said the same) stay.
    """
    old = rows.value("select text from memories where seq = :seq", seq=memory.seq)
    rows.run(
        "update memories set text = :text, text_hash = :hash, session_id = :session, created_at = :created where seq = :seq",
        text=memory.text,
        hash=text_hash,
        session=memory.session_id,
        created=memory.created_at,
        seq=memory.seq,
    )
    memories.update_belief(rows, memory)
    cited = {source.uuid for source in sources}
    for uuid in before:
        if uuid not in cited:
            rows.run("delete from provenance where memory_seq = :seq and uuid = :uuid", seq=memory.seq, uuid=uuid)
    rows.run("update provenance set role = 'confirms' where memory_seq = :seq and role = 'states'", seq=memory.seq)
    for place, source in enumerate(sources):
        told = replace(source, role="states" if place == 0 else "confirms")
        if not memories.add_provenance(rows, memory.seq, told) and place == 0:
            rows.run(
                "update provenance set role = 'states' where memory_seq = :seq and uuid = :uuid",
                seq=memory.seq,
                uuid=source.uuid,
            )
    if old != memory.text:
        vectors.again(rows, "memory", memory.seq)
