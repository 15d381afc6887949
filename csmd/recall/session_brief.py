"""What a session is told at its start: the memories that its place sees, but for what its context holds already.

Beside them stands what the last sessions came to, and once, of a promise that is about to fade, whether it is open.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from csmd.model import Brief, Memory
from csmd.recall import brief, compose, prompt, ranking, threads, visibility
from csmd.recall import brief as briefs
from csmd.recall.compose import Block, Note
from csmd.recall.hybrid_search import Found
from csmd.store import markdown_pages, memories, passages, projects, receipts
from csmd.store.passages import Passage
from csmd.store.sqlite import Rows
from csmd.text import display

#: How many of a scope's surest memories a brief is chosen from.
PRELOADED = 1000
#: A promise that is WARM for no more than so many active days is about to fade; so many are asked about in one brief.
FADES_WITHIN, ASKED_AT_ONCE = 2, 1

#: What a memory states takes the place of an older one from this weight of the thread on; below it is only told before that.
REPLACES = 0.5
#: By what the line on removed lines is known in a receipt.
REMOVED = "pages"


def session_brief(
    rows: Rows,
    *,
    places: Sequence[int],
    session_id: str,
    max_tokens: int,
    goals: Sequence[Note] = (),
    blocks: Sequence[Block] = (),
    before: str = "",
    today: str = "",
    besides: Collection[str] = (),
    key: bytes = b"",
) -> Brief:
    """The brief for a session that starts where `places` are seen; nothing that its context holds already, nor `besides` (ids).

    What is promised for a day from `today` on (ISO; else the last day on which anybody said something) is told until then.

    `goals` stand before everything else, `blocks` behind it; what `before` says is told before it, and not again.
    """
    told = (receipts.told(rows, session_id) if session_id else frozenset[str]()).union(besides)
    attention, near = visibility.attention(rows, places), receipts.near(rows, places, session_id)
    listed = [one for one in memories.listing(rows, projects=places, limit=PRELOADED) if one.id not in told]
    today = today or max(projects.active_days(rows, 0), default="")
    promised = frozenset(one.id for one in listed if visibility.is_promised(one, today=today))
    undated = [one for one in listed if one.id not in promised]
    fading, over = _fading(rows, undated, places=places, session_id=session_id)
    candidates = [
        (memory, "WARM" if memory.id in promised and attention(memory) == "COLD" else attention(memory))
        for memory in listed
        if memory.id not in over
        and (memory.id in promised or visibility.reaches(memory, attention(memory), at="start", near=near))
    ]
    lasting = [one for one in listed if one.tier != "archive"]
    followed = _followed(rows, lasting, of={one.id for one, _ in candidates}, places=places, key=key)
    # What was said later on what is told comes with it, whatever its own tier.
    missing = {newer.memory for newer in followed.values()} - {one.id for one, _ in candidates}
    candidates += [(one, attention(one)) for one in lasting if one.id in missing]
    found = [one for one in brief.ended(rows, places=places, session_id=session_id) if one.session_id not in told]
    anyway, said = visibility.told_anyway(rows, places), visibility.known([before] if before else [])
    found = [
        replace(one, items=tuple(item for item in one.items if item[0] != "goal" or not said.says(item[1])))
        for one in found
    ]
    beside = briefs.Beside(
        goals=tuple(one for one in goals if one.id not in told),
        ended=brief.notes(found),
        left=brief.open_ends(found),
        blocks=(*blocks, *_removed(rows, places, told)),
    )
    return briefs.composed_brief(
        candidates,
        max_tokens=max_tokens,
        known=lambda statement: said.says(statement) or anyway(statement),
        beside=beside,
        fading=fading,
        newer=followed,
    )


def _followed(
    rows: Rows, among: Sequence[Memory], *, of: Collection[str], places: Sequence[int], key: bytes
) -> dict[str, briefs.Newer]:
    """Memory -> what was said later on the same matter, by any `among` all, of those (`of`, ids) whose thread goes on."""
    stated, read = threads.stated(rows, [one for one in among if not one.pinned], projects=places)
    ends = threads.ends(rows, sorted(seq for seq, memory in stated.items() if memory.id in of))
    read |= passages.by_seqs(rows, sorted({seq for of_one in ends.values() for seq, _ in of_one} - read.keys()))
    last = {seq: _newest(of_one, read) for seq, of_one in ends.items()}
    found = [Found(score=1.0, features={}, passage=read[seq]) for seq, _ in last.values() if seq in read]
    may = {
        one.passage.seq: one
        for one in prompt.telling(rows, places=places, session_id="", prompt="", key=key)(found)
        if one.passage is not None
    }
    followed: dict[str, briefs.Newer] = {}
    for seq, (end, sure) in sorted(last.items()):
        memory = stated[seq]
        later = may.get(end)
        if later is None or later.passage is None or memory.confirmed_at >= later.passage.at:
            continue
        new = later.memory or _beside(later.passage, stated, read)
        if new is None or new.id == memory.id:
            continue
        followed[memory.id] = briefs.Newer(
            text=compose.without_refused(later.text), at=later.at, tail=prompt.tail_of(later.passage), memory=new.id,
            likely=sure >= REPLACES, stated=later.memory is not None,
        )  # fmt: skip
    return followed


def _newest(ends: Sequence[tuple[int, float]], read: Mapping[int, Passage]) -> tuple[int, float]:
    """Of the ends of a thread the one that was said last among those that are sure, or else the surest."""
    sure = [one for one in ends if one[1] >= threads.SURE and one[0] in read]
    return max(sure, key=lambda one: (read[one[0]].at, one[0])) if sure else ends[0]


def _beside(passage: Passage, stated: Mapping[int, Memory], read: Mapping[int, Passage]) -> Memory | None:
    """The memory of an exchange that shares most words with one of its passages: each half says what was decided."""
    words = ranking.stems(passage.text)
    near = [
        (-len(words & ranking.stems(memory.text)), abs(seq - passage.seq), seq)
        for seq, memory in stated.items()
        if read[seq].session_seq == passage.session_seq and abs(seq - passage.seq) <= threads.LEAD
    ]
    return stated[min(near)[2]] if near else None


def _removed(rows: Rows, places: Sequence[int], told: Collection[str]) -> list[Block]:
    """One line on the lines that somebody took off the pages that csmd keeps: they are asked about, not forgotten."""
    pages = [page for _, page in markdown_pages.asked_about(rows, places)]
    if not pages or REMOVED in told:
        return []
    among = sorted(set(pages))
    others = f" and {display.amount(len(among) - 1, 'other page')}" if len(among) > 1 else ""
    lines = f"{display.amount(len(pages), 'line')} that {'was' if len(pages) == 1 else 'were'}"
    said = f"csmd review asks about {lines} removed from {among[0]}{others}"
    return [Block(heading="", notes=(Note(id=REMOVED, text=said, reason="lines of a page were removed"),))]


def _fading(
    rows: Rows, listed: Sequence[Memory], *, places: Sequence[int], session_id: str
) -> tuple[list[Memory], frozenset[str]]:
    """(promises to ask about now, ids of those that another session was asked about since they were told last)."""
    days = {place: projects.active_day(rows, place) for place in places}
    promised = [
        one
        for one in listed
        if one.gate == "promissory"
        and not (one.pinned or one.tier == "archive")
        and briefs.injectable(one)
        and one.warm_until >= days[one.project_seq]
    ]
    asked = {one.id: receipts.asked(rows, one.id, briefs.FADING[0], session_id=session_id) for one in promised}
    over = frozenset(one.id for one in promised if asked[one.id] > one.fresh_at)
    near = [one for one in promised if one.id not in over and one.warm_until - days[one.project_seq] < FADES_WITHIN]
    return near[:ASKED_AT_ONCE], over
