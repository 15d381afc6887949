"""What is known of the files at hand: those that a prompt names, and those that the session read or edited last."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from csmd import text
from csmd.capture.hosts.claude import ANSWER_LIMIT_UNITS
from csmd.distill.calls import EDITS, file_of
from csmd.model import Brief
from csmd.recall import compose, file, prompt, stage, tiers
from csmd.recall.compose import Block, Note
from csmd.recall.hybrid_search import Found
from csmd.store import context, fulltext, memories, passages, search, touched
from csmd.store.sqlite import Rows

TOOLS = EDITS | {"Read"}
#: How many of a session's last turns are looked through for calls of these, and how many calls.
LOOKED_BACK, CALLS = 100, 20
#: So many files, those of the latest calls, are at hand.
AT_HAND = 3
#: Memories that are looked at for a set of files.
CANDIDATES = 100
#: Passages that are looked at for those that name a file.
PASSAGES = 40


def block(
    rows: Rows, *, places: Sequence[int], session_id: str, named: str, besides: Collection[str] = ()
) -> Block | None:
    """What the memories of these places say of the files that a text names and of those at hand in a session.

    Nothing that the session was told already, nothing of `besides` (ids); None for nothing.
    """
    paths = [*file.paths_in(named), *_at_hand(rows, session_id)]
    told = (context.told(rows, session_id) if session_id else frozenset[str]()).union(besides)
    return _of(rows, list(dict.fromkeys(paths))[: file.MOST_FILES], places, session_id, told)


def file_recall(rows: Rows, path: str, *, places: Sequence[int], max_tokens: int, key: bytes) -> Brief:
    """What a session that names this file would be told of it, and behind that what was said of it in earlier ones.

    Passages are for who asks about a file and nothing else: a session at work is told the memories alone.
    """
    notes = _of(rows, [path], places, "", frozenset())
    blocks = [
        *([notes] if notes else []),
        Block(heading=file.SAID, notes=_said(rows, path, places, notes, key), weight=0.5),
    ]
    return compose.fenced(file.TAG, file.ABOUT, blocks, max_tokens=max_tokens)


def _said(rows: Rows, path: str, places: Sequence[int], notes: Block | None, key: bytes) -> tuple[Note, ...]:
    """The passages of earlier talk that name a file and still hold, the best match first; none says what `notes` say."""
    noted = {note.id for note in notes.notes} if notes else set()
    last = path.rstrip("/").rpartition("/")[2]
    hits = fulltext.text_hits(rows, "passage", [last], projects=places, limit=PASSAGES)
    naming = [
        one for one in passages.by_seqs(rows, [int(seq) for seq, _ in hits]).values() if file.names(one.text, path)
    ]
    found = [Found(score=1.0, features={}, passage=one) for one in naming]
    told = prompt.tellable(rows, found, places=places, session_id="", prompt="", key=key)
    kept = [one for one in told if one.passage and not (one.memory and one.memory.id in noted)]
    return tuple(prompt.note_of(one) for one in kept)[: file.MOST_PASSAGES]


def together(brief: Brief, block: Block | None, *, max_tokens: int) -> Brief:
    """A brief with what is known of files behind it, as far as both have room; nothing twice."""
    told = {item.id for item in brief.items}
    notes = tuple(note for note in block.notes if note.id not in told) if block else ()
    if block is None or not notes:
        return brief
    rest = [Block(heading=block.heading, notes=notes, weight=block.weight)]
    made = compose.fenced(file.TAG, file.ABOUT, rest, max_tokens=max_tokens - brief.tokens - 1)
    body = "\n".join(part for part in (brief.text, made.text) if part)
    if not made.text or text.utf16_units(body) > ANSWER_LIMIT_UNITS:  # each keeps the host's limit, both may not
        return replace(brief, cut=brief.cut + len(notes))
    return Brief(
        text=body, tokens=text.estimate_tokens(body), items=(*brief.items, *made.items), degraded=brief.degraded,
        cut=brief.cut + made.cut,
    )  # fmt: skip


def _of(rows: Rows, paths: Sequence[str], places: Sequence[int], session_id: str, told: frozenset[str]) -> Block | None:
    if not paths:
        return None
    # A phrase finds a name whichever way the index takes it apart; whose name it is, the text says.
    last = [path.rstrip("/").rpartition("/")[2] for path in paths]
    hits = search.text_hits(rows, "memory", list(dict.fromkeys(last)), projects=places, limit=CANDIDATES)
    found = memories.by_seqs(rows, [int(seq) for seq, _ in hits])
    attention, near = stage.attention(rows, places), context.near(rows, places, session_id)
    reached = [
        memory
        for memory in found.values()
        if file.is_told(memory)
        and memory.id not in told
        and tiers.reaches(memory, attention(memory), at="match", near=near)
    ]
    return file.block(file.chosen(reached, paths), known=stage.told_anyway(rows, places)) if reached else None


def _at_hand(rows: Rows, session_id: str) -> list[str]:
    """The files that a session read or edited last, the latest first."""
    if not session_id:
        return []
    calls = touched.given(rows, session_id, TOOLS, back=LOOKED_BACK, limit=CALLS)
    return list(dict.fromkeys(path for call in calls if (path := file_of(call))))[:AT_HAND]
