"""Search: the best hits for a question among memories, turns and session summaries, each with how its score came about."""

from __future__ import annotations

from collections.abc import Sequence

from csmd import text
from csmd.model import Hit
from csmd.recall import rank, stage_hits, stage_order, stage_sessions
from csmd.recall.stage_hits import Embed
from csmd.store import memories, search
from csmd.store.sqlite import Rows


def find(
    rows: Rows,
    query: str,
    *,
    projects: Sequence[int] | None,
    kind: str,
    limit: int,
    embed: Embed | None,
) -> tuple[list[Hit], list[str]]:
    """The best hits for a query among memories, turns and session summaries, and what was degraded."""
    degraded: list[str] = []
    kinds = ("memory", "turn") if kind == "all" else (kind,) if kind != "session" else ()
    terms = stage_order.by_all_names(rows, query, projects=projects)
    vector = stage_hits.vector_of(rows, query, embed, degraded) if kinds else None
    fused: dict[str, dict[int, rank.Scored]] = {}
    spans: dict[int, tuple[int, int]] = {}
    for one in kinds:
        lexical = stage_hits.lexical(rows, one, terms, projects, degraded)
        sense: dict[int, float] = {}
        if vector is not None:
            for seq, start, end, distance in stage_hits.nearest(rows, one, vector, projects, degraded):
                closeness = rank.cosine(distance)
                if closeness > sense.get(int(seq), -1.0):
                    sense[int(seq)] = closeness
                    if one == "turn":
                        spans[int(seq)] = (int(start), int(end))
        fused[one] = rank.fuse(lexical, sense)
    if "turn" in fused:
        fused["turn"] = rank.with_neighbours(fused["turn"], search.neighbours(rows, list(fused["turn"])))
    hits = _turn_hits(rows, fused.get("turn", {}), terms, spans, limit * 3)
    hits += _memory_hits(rows, fused.get("memory", {}), {hit.source_uuids[0]: hit.score for hit in hits})
    hits.sort(key=lambda hit: (-hit.score, hit.at, hit.id))
    ordered = stage_order.newest_first(rows, _distinct(hits, limit * 3), terms)
    if kind in ("all", "session"):
        ordered = stage_sessions.among(ordered, stage_sessions.find(rows, terms, projects, degraded))
    return ordered[:limit], sorted(set(degraded))


def _turn_hits(
    rows: Rows, fused: dict[int, rank.Scored], terms: list[str], spans: dict[int, tuple[int, int]], limit: int
) -> list[Hit]:
    best = sorted(fused.values(), key=lambda row: (-row.score, row.seq))[:limit]
    turns = search.turns_by_seq(rows, [row.seq for row in best])
    return [
        Hit(
            id=turn.uuid,
            kind="turn",
            text=text.passage(turn.text, terms, limit=rank.PASSAGE_CHARACTERS)
            if row.factors.get("words")
            else _span(turn.text, spans.get(row.seq)),
            score=row.score,
            project=turn.project,
            session_id=turn.session_id,
            source_uuids=(turn.uuid.split("/")[0],),
            at=turn.at,
            factors=row.factors,
        )
        for row in best
        if (turn := turns.get(row.seq)) is not None
    ]


def _span(body: str, span: tuple[int, int] | None) -> str:
    start, end = span or (0, rank.PASSAGE_CHARACTERS)
    return body[start : min(end, start + rank.PASSAGE_CHARACTERS)].strip()


def _memory_hits(rows: Rows, fused: dict[int, rank.Scored], turns: dict[str, float]) -> list[Hit]:
    found = memories.by_seqs(rows, list(fused))
    roots = search.roots(rows)
    hits: list[Hit] = []
    for seq, memory in found.items():
        row = fused[seq]
        uuids = tuple(dict.fromkeys(source.uuid for source in memory.provenance))[:4]
        beside = rank.NEIGHBOUR_WEIGHT * max((turns.get(uuid, 0.0) for uuid in uuids), default=0.0)
        weight = rank.memory_weight(memory)
        hits.append(
            Hit(
                id=memory.id,
                kind="memory",
                text=memory.text[: rank.PASSAGE_CHARACTERS],
                score=(row.score + beside) * weight,
                project=roots.get(memory.project_seq, ""),
                session_id=memory.session_id,
                source_uuids=uuids,
                at=memory.confirmed_at,
                confidence=memory.confidence,
                gate=memory.gate,
                authority=memory.authority,
                superseded_by=memory.superseded_by,
                factors={**row.factors, "source turn": round(beside, 4), "standing": round(weight, 4)},
            )
        )
    return hits


def _distinct(hits: Sequence[Hit], limit: int) -> list[Hit]:
    """The best `limit` hits, each from a source of its own: a memory and the turn that states it are one answer."""
    kept: list[Hit] = []
    said: list[text.Gist] = []
    sources: set[str] = set()
    for hit in hits:
        body = text.gist(hit.text)
        if sources.intersection(hit.source_uuids) or any(
            text.alike(body, other, share=rank.TWIN_OVERLAP) for other in said
        ):
            continue
        kept.append(hit)
        said.append(body)
        sources.update(hit.source_uuids[:1])
        if len(kept) >= limit:
            break
    return kept
