"""What still holds of what was found: what replaced a thing in its place, no echo of the old, nothing that was forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from csmd import text
from csmd.model import Authority, Memory, Quote
from csmd.recall import echo
from csmd.recall.checkpoint import Piece, PieceKind
from csmd.recall.echo import Replaced
from csmd.store import beliefs, memories, search, tombstones
from csmd.store.sqlite import Rows

#: How often what replaced something was replaced itself, at most; and replacements of places that are looked at.
HEIRS, MOST_REPLACED = 8, 200
#: The pieces of a checkpoint that somebody said.
SAID: frozenset[PieceKind] = frozenset({"goal", "correction", "decision", "open"})


def that_hold(
    rows: Rows, matches: Sequence[tuple[Memory | Quote, float]], may: Callable[[Memory], bool], key: bytes
) -> list[tuple[Memory | Quote, float]]:
    """The matches that may be told, with what replaced it in the place of each that was overturned."""
    replaced = of_memories(rows, [one for one, _ in matches if isinstance(one, Memory) and one.superseded_by])
    kept: dict[str, tuple[Memory | Quote, float]] = {}
    for one, score in matches:
        stated = [one] if isinstance(one, Memory) else _stated_in(rows, one)
        heirs = [found for memory in stated if memory.superseded_by and (found := heir(rows, memory)) is not None]
        others = [memory for memory in stated if not memory.superseded_by and not may(memory)]
        holding: list[Memory | Quote]
        if others or any(memory.superseded_by for memory in stated):
            holding = [found for found in heirs if may(found)]
        elif isinstance(one, Memory):
            holding = [one]
        else:
            repeats = echo.of(one.text, at=one.at, session=one.session_id, replaced=replaced)
            holding = [] if repeats is not None or _forgotten(rows, one, key) else [one]
        for each in holding:
            kept.setdefault(each.id if isinstance(each, Memory) else each.uuid, (each, score))
    return list(kept.values())


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


def _stated_in(rows: Rows, quote: Quote) -> list[Memory]:
    """The memories that a quoted passage states."""
    shown = echo.stems(quote.text)
    found = memories.by_seqs(rows, search.memories_of_turn(rows, quote.uuid.split("/")[0]))
    return [memory for memory in found.values() if echo.states(shown, memory.text)]


def _forgotten(rows: Rows, quote: Quote, key: bytes) -> bool:
    """Whether a passage says what the user made csmd forget."""
    if not tombstones.has(rows, "memory"):
        return False
    said: Authority = "user" if quote.kind == "user" else "assistant"
    return any(
        tombstones.is_out(rows, sentence, authority=said, project=quote.project_seq, at=quote.at, key=key)
        for sentence in text.sentences(quote.text)
    )
