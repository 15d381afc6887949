"""Search: the best hits for a question among memories, turns and session summaries, each with how its score came about.

Memories and turns are looked for both, whichever are shown: a turn gains from the memory that it states, and a memory
from its turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from csmd import text
from csmd.model import Hit
from csmd.recall import (
    question,
    rank,
    stage_graph,
    stage_hits,
    stage_memories,
    stage_order,
    stage_sessions,
    stage_turns,
)
from csmd.recall.stage_hits import Embed
from csmd.recall.stage_matches import Asked, matching
from csmd.store.narrow import Narrow
from csmd.store.sqlite import Rows

MOST_TERMS = 40
ALL = Narrow()


def find(
    rows: Rows,
    query: str,
    *,
    projects: Sequence[int] | None,
    kind: str,
    limit: int,
    embed: Embed | None,
    now: datetime | None = None,
    narrow: Narrow = ALL,
) -> tuple[list[Hit], list[str]]:
    """The best hits for a query among memories, turns and session summaries, and what was degraded.

    Without `now` times mean nothing.
    """
    degraded: list[str] = []
    understood = question.read(query, now=now)
    terms = list(dict.fromkeys([*stage_order.by_all_names(rows, query, projects=projects), *understood.literals]))
    summaries = stage_sessions.find(rows, terms, projects, degraded, narrow) if kind in ("all", "session") else []
    if kind == "session":
        return stage_sessions.among([], summaries)[:limit], sorted(set(degraded))
    asked = Asked(
        rows=rows, question=understood, terms=terms[:MOST_TERMS], projects=projects, narrow=narrow,
        vector=stage_hits.vector_of(rows, query, embed, degraded), degraded=degraded,
    )  # fmt: skip
    fix_turns, fix_memories = stage_graph.mended(rows, query, projects=projects)
    believed, close = matching(asked, "memory")
    turns, near = matching(asked, "turn")
    turns, where = stage_turns.standing(asked, turns, close, fix_turns)
    hits = [] if kind == "memory" else stage_turns.hits(asked, turns, where, near, limit * 3)
    if kind != "turn":
        believed = rank.raised(believed, stage_graph.linked(rows, believed, projects=projects), "linked",
                               weight=rank.LINK_WEIGHT)  # fmt: skip
        reported = stage_graph.explained(rows, turns, projects=projects)
        believed = rank.raised(believed, reported, "reported", weight=rank.LINK_WEIGHT)
        believed = rank.raised(believed, dict.fromkeys(fix_memories, 1.0), "mended", weight=rank.MENDED_WEIGHT)
        hits += stage_memories.hits(asked, believed, {hit.source_uuids[0]: hit.score for hit in hits}, close)
    hits.sort(key=lambda hit: (-hit.score, hit.at, hit.id))
    distinct = _distinct(hits, limit * 3)
    front = [distinct[at] for at in rank.varied([(hit.session_id, hit.score) for hit in distinct])]
    ordered = stage_order.newest_first(rows, front, terms)
    return stage_sessions.among(ordered, summaries)[:limit], sorted(set(degraded))


def _distinct(hits: Sequence[Hit], limit: int) -> list[Hit]:
    """The best `limit` hits, each from a source of its own: a memory and the turn that states it are one answer."""
    kept: list[Hit] = []
    said: list[text.Gist] = []
    sources: set[str] = set()
    for hit in hits:
        body = text.gist(hit.text)
        if sources.intersection(hit.source_uuids[:1]) or any(
            text.alike(body, other, share=rank.TWIN_OVERLAP) for other in said
        ):
            continue
        kept.append(hit)
        said.append(body)
        sources.update(hit.source_uuids[:1])
        if len(kept) >= limit:
            break
    return kept
