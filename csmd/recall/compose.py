"""One way to put notes before the assistant: fenced, within one budget, trimmed in a fixed order; pure.

Whoever has something to tell makes blocks of notes; this makes the text. The same blocks give the same bytes. What
does not fit goes note by note, from the block with the least weight and there from the end, so that a budget is never
passed and what matters most stays longest. Nothing left is no text at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from csmd import text
from csmd.capture.hosts.claude import ANSWER_LIMIT_UNITS
from csmd.model import Brief, BriefItem, Memory

#: Longest that one note is told, in characters.
NOTE_CHARACTERS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One thing to tell, on one line; `tail` stands behind it whole: its date, its id.

    `id`, `score` and `reason` are its receipt's.
    """

    id: str
    text: str
    tail: str = ""
    score: float = 1.0
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Notes under a heading ("" for none), in the order in which they are shown; the greatest `weight` is trimmed last."""

    heading: str
    notes: tuple[Note, ...]
    weight: float = 1.0


def told(memory: Memory, *, score: float = 1.0, reason: str, text: str = "") -> Note:
    """A memory as a note, as it is or in the words of `text`: where it was said, when last, whether its code was edited since, its id."""
    said = (memory.scene, memory.confirmed_at[:10], "its code edited since" * memory.is_edited, memory.id)
    tail = ", ".join(filter(None, said))
    return Note(id=memory.id, text=text or memory.text, tail=tail, score=score, reason=reason)


def line(note: Note) -> str:
    """A note as it is shown: no fence can be closed from inside, no line begun."""
    body = text.cut(text.squeeze(text.defuse(note.text)), NOTE_CHARACTERS)
    tail = text.squeeze(text.defuse(note.tail))
    return f"- {body} ({tail})" if tail else f"- {body}"


def fenced(tag: str, about: str, blocks: Sequence[Block], *, max_tokens: int) -> Brief:
    """The blocks inside `<tag note="about">`, as much of them as `max_tokens` and the host's limit let through."""
    kept = [list(block.notes) for block in blocks]
    offered = sum(map(len, kept))
    order = sorted(range(len(blocks)), key=lambda place: (blocks[place].weight, -place))
    while any(kept):
        rows = [f'<{tag} note="{about}">']
        for block, notes in zip(blocks, kept, strict=True):
            if notes:
                rows += [*([f"{block.heading}:"] if block.heading else []), *(line(note) for note in notes)]
        body = "\n".join([*rows, f"</{tag}>"])
        tokens = text.estimate_tokens(body)
        if tokens <= max_tokens and text.utf16_units(body) <= ANSWER_LIMIT_UNITS:
            items = tuple(
                BriefItem(id=note.id, score=round(note.score, 4), reason=note.reason)
                for notes in kept
                for note in notes
            )
            return Brief(text=body, tokens=tokens, items=items, cut=offered - len(items))
        next(kept[place] for place in order if kept[place]).pop()
    return Brief(text="", tokens=0, items=(), cut=offered)
