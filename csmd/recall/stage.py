"""Recall's hands: reads candidates for a question, asks the pure modules, answers.

Everything here runs on a reader's connection. What failed or timed out is named in
`degraded`; the rest of the answer stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from csmd import text
from csmd.believe import score as belief
from csmd.capture import stage_place
from csmd.errors import BadInput, DeadlineExceeded, EmbeddingUnavailable
from csmd.model import Attention, Brief, Hit, Memory
from csmd.recall import brief as briefs
from csmd.recall import known, rank, stage_order, tiers
from csmd.store import context, counts, instructions, memories, merges, projects, search, vectors
from csmd.store.sqlite import Rows

#: A text to its vector and the model's name; raises EmbeddingUnavailable.
Embed = Callable[[str], tuple[bytes, str]]
LEXICAL_S = 1.5
VECTOR_S = 1.5
#: How many of a scope's surest memories a brief is chosen from.
PRELOADED = 1000


def scopes(rows: Rows, path: str, *, start: str = "") -> list[int]:
    """The row keys a place sees: its project's, its workspace's and everybody's; `start` is its session's."""
    return stage_place.scopes(rows, path, start=start)


def asked(rows: Rows, project: str, *, asking: str) -> list[int] | None:
    """The rows a question may see: about one project or, with "", about all; None for really all.

    A wall holds for both: what is behind one is seen only when `asking`, the directory in which the
    question is put, is behind it too. BadInput when the project it is about is not.
    """
    if not project:
        return seen(rows, asking=asking)
    found = scopes(rows, project)
    if asking and asking != project:
        inside = stage_place.wall(rows, project)
        if inside and inside != stage_place.wall(rows, asking):
            raise BadInput(
                f"{project} is in the workspace {projects.name_of(rows, inside)}, and you are not",
                hint=f"ask from there: cd '{project}'",
            )
    return found


def seen(rows: Rows, *, asking: str) -> list[int] | None:
    """The rows that may be seen from a directory, whatever the question is about; None for really all."""
    return projects.visible(rows, inside=stage_place.wall(rows, asking))


def is_seen(rows: Rows, project: int, *, asking: str) -> bool:
    """Whether what belongs to a project's row may be seen from a directory."""
    open_ones = seen(rows, asking=asking)
    return open_ones is None or project in open_ones


def find(
    rows: Rows,
    query: str,
    *,
    projects: Sequence[int] | None,
    kind: str,
    limit: int,
    embed: Embed | None,
) -> tuple[list[Hit], list[str]]:
    """The best hits for a query among memories and turns, and what was degraded."""
    degraded: list[str] = []
    kinds = ("memory", "turn") if kind == "all" else (kind,)
    terms = stage_order.by_all_names(rows, query, projects=projects)
    vector = _vector(rows, query, embed, degraded)
    fused: dict[str, dict[int, rank.Scored]] = {}
    spans: dict[int, tuple[int, int]] = {}
    for one in kinds:
        lexical = _lexical(rows, one, terms, projects, degraded)
        sense: dict[int, float] = {}
        if vector is not None:
            for seq, start, end, distance in _nearest(rows, one, vector, projects, degraded):
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
    return stage_order.newest_first(rows, _distinct(hits, limit * 3), terms)[:limit], sorted(set(degraded))


def session_brief(rows: Rows, *, places: Sequence[int], session_id: str, max_tokens: int) -> Brief:
    """The brief for a session that starts where `places` are seen; nothing that its context holds already."""
    told = context.told(rows, session_id) if session_id else frozenset[str]()
    attention, near = _attention(rows, places), context.near(rows, places, session_id)
    candidates = [
        (memory, attention(memory))
        for memory in memories.listing(rows, projects=places, limit=PRELOADED)
        if memory.id not in told and tiers.reaches(memory, attention(memory), at="start", near=near)
    ]
    return briefs.compose(candidates, max_tokens=max_tokens, known=_told_anyway(rows, places))


def _attention(rows: Rows, places: Sequence[int]) -> Callable[[Memory], Attention]:
    """How present a memory of these places is today."""
    days = {place: projects.active_day(rows, place) for place in places}
    return lambda memory: belief.attention(
        today=days[memory.project_seq], hot_until=memory.hot_until, warm_until=memory.warm_until
    )


def _told_anyway(rows: Rows, places: Sequence[int]) -> Callable[[str], bool]:
    """Whether CLAUDE.md, or the assistant's own memory, says something already in these places.

    Of directories that were merged each must say it: nobody asks here from which of them.
    """
    sides = [
        [known.known(told) for one in sorted(merges.with_merged(rows, place)) if (told := instructions.texts(rows, [one]))]
        for place in places
        if place
    ]  # fmt: skip
    return lambda statement: any(side and all(one.says(statement) for one in side) for side in sides)


def prompt_recall(
    rows: Rows,
    *,
    places: Sequence[int],
    session_id: str,
    prompt: str,
    floor: float,
    max_tokens: int,
    max_items: int,
    embed: Embed | None,
) -> Brief:
    """What bears on a prompt, above the relevance floor; nothing that the session was told already."""
    degraded: list[str] = []
    told = context.told(rows, session_id) if session_id else frozenset[str]()
    vector = _vector(rows, prompt, embed, degraded)
    lexical = _lexical(rows, "memory", text.query_terms(prompt), places, degraded)
    sense: dict[int, float] = {}
    if vector is not None:
        for seq, _, _, distance in _nearest(rows, "memory", vector, places, degraded):
            sense[int(seq)] = max(sense.get(int(seq), -1.0), rank.cosine(distance))
    found = memories.by_seqs(rows, [*{*lexical, *sense}])
    weights = _weights(rows, text.query_terms(prompt))
    attention, near = _attention(rows, places), context.near(rows, places, session_id)
    ranked: list[tuple[Memory, float]] = []
    for seq, memory in found.items():
        relevant = rank.relevance(weights, memory.text, cosine_to_prompt=sense.get(seq, 0.0) if vector else None)
        reached = memory.id not in told and tiers.reaches(memory, attention(memory), at="match", near=near)
        if relevant >= floor and reached:
            ranked.append((memory, relevant * rank.memory_weight(memory)))
    ranked.sort(key=lambda row: (-row[1], row[0].id))
    made = briefs.compose_recall(
        ranked, prompt=prompt, max_tokens=max_tokens, max_items=max_items, known=_told_anyway(rows, places)
    )
    return Brief(text=made.text, tokens=made.tokens, items=made.items, degraded=tuple(sorted(set(degraded))))


def _weights(rows: Rows, terms: Sequence[str]) -> dict[str, float]:
    """A prompt's terms and how much each says among the memories."""
    total = search.memory_count(rows)
    return {term: rank.rarity(search.memories_with(rows, term), total) for term in terms}


def _vector(rows: Rows, query: str, embed: Embed | None, degraded: list[str]) -> tuple[bytes, int] | None:
    if embed is None:
        degraded.append("vectors: no embedding model is installed (csmd model fetch)")
        return None
    try:
        vector, name = embed(query)
    except EmbeddingUnavailable as error:
        degraded.append(f"vectors: {error.what}")
        return None
    model = vectors.model_seq(rows, name)
    if model is None:
        degraded.append("vectors: none are stored yet")
        return None
    return vector, model


def _lexical(
    rows: Rows, kind: str, terms: Sequence[str], projects: Sequence[int] | None, degraded: list[str]
) -> dict[int, float]:
    try:
        with rows.within(LEXICAL_S):
            found = search.text_hits(rows, kind, terms, projects=projects, limit=rank.POOL)
            asked_as = (
                search.text_hits(rows, "symptom", terms, projects=projects, limit=rank.POOL) if kind == "memory" else []
            )
    except DeadlineExceeded:
        degraded.append(f"words: {kind} search stopped at its deadline")
        return {}
    scores = {int(seq): float(score) for seq, score in found}
    for seq, score in asked_as:  # a cause is asked for in the words in which it was reported
        scores[int(seq)] = max(scores.get(int(seq), 0.0), float(score) * rank.SYMPTOM_SHARE)
    return scores


def _nearest(
    rows: Rows, kind: str, vector: tuple[bytes, int], projects: Sequence[int] | None, degraded: list[str]
) -> list[tuple[int, int, int, float]]:
    try:
        with rows.within(VECTOR_S):
            found = search.vector_hits(rows, kind, vector[1], vector[0], projects=projects, limit=rank.POOL)
    except DeadlineExceeded:
        degraded.append(f"vectors: {kind} search stopped at its deadline")
        return []
    return [(int(a), int(b), int(c), float(d)) for a, b, c, d in found]


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
    roots = {seq: root for seq, root, *_ in counts.projects(rows)}
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
