"""What still holds of what was found: what replaced a thing in its place, no echo of the old, nothing that was forgotten."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from csmd.model import Memory
from csmd.recall import echo
from csmd.recall.checkpoint import Piece, PieceKind
from csmd.recall.echo import Replaced
from csmd.store import beliefs, memories, search
from csmd.store.sqlite import Rows

#: How often what replaced something was replaced itself, at most; and replacements of places that are looked at.
HEIRS, MOST_REPLACED = 8, 200
#: The pieces of a checkpoint that somebody said.
SAID: frozenset[PieceKind] = frozenset({"goal", "correction", "decision", "open"})


def replaced_in(rows: Rows, places: Sequence[int]) -> list[Replaced]:
    """What was superseded in these places, the latest first."""
    return of_memories(rows, memories.by_seqs(rows, beliefs.superseded(rows, places, limit=MOST_REPLACED)).values())


def pieces_that_hold(rows: Rows, project: int, session_id: str, pieces: Sequence[Piece]) -> list[Piece]:
    """A session's pieces without echoes of what was superseded; a goal stays, and says that it holds no longer."""
    replaced = replaced_in(rows, [project])
    if not replaced:
        return list(pieces)
    turns = search.turns_of_uuids(rows, [one.uuid for one in pieces if one.kind in SAID])
    by_seq = search.turns_by_seq(rows, list(turns.values()))
    kept: list[Piece] = []
    for one in pieces:
        turn = by_seq.get(turns.get(one.uuid, 0)) if one.kind in SAID else None
        old = echo.of(one.text, at=turn.at, session=session_id, replaced=replaced) if turn else None
        if old is None:
            kept.append(one)
        elif one.kind == "goal":
            kept.append(one._replace(text=f"{one.text} (no longer: superseded by {old.heir})"))
    return kept


def of_memories(rows: Rows, superseded: Iterable[Memory]) -> list[Replaced]:
    """Superseded memories with what holds in their place."""
    return [
        Replaced(
            text=one.text,
            heir=found.id,
            heir_text=found.text,
            since=found.confirmed_at,
            sessions=frozenset(source.session_id for source in one.provenance if source.session_id),
        )
        for one in superseded
        if (found := heir(rows, one)) is not None
    ]


def heir(rows: Rows, memory: Memory) -> Memory | None:
    """What holds at the end of a line of replacements; None where that is gone, or the line has no end."""
    found: Memory | None = memory
    for _ in range(HEIRS):
        if found is None or not found.superseded_by:
            return found
        found = memories.by_id(rows, found.superseded_by)
    return None
