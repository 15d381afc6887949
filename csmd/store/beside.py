"""The other half of what was stored before it came: a reply, cited by the statement of its prompt."""

from __future__ import annotations

from csmd.model import Provenance, StoredTurn
from csmd.store import memories
from csmd.store.sqlite import Rows


def cite_beside(rows: Rows, turn: StoredTurn, beside: StoredTurn, *, text_hash: str) -> None:
    """Notes that the turn `beside` is the other half of a statement that was stored before, and of its memory."""
    rows.run(
        "update statements set also = :uuid where turn_seq = :turn and text_hash = :hash and also = ''",
        uuid=beside.uuid,
        turn=turn.seq,
        hash=text_hash,
    )
    for (seq,) in rows.all(
        "select m.seq from provenance p join memories m on m.seq = p.memory_seq where p.uuid = :uuid and m.text_hash = :hash",
        uuid=turn.uuid,
        hash=text_hash,
    ):
        memories.add_provenance(
            rows, int(seq), Provenance(uuid=beside.uuid, session_id=beside.session_id, at=beside.at, role="beside")
        )
