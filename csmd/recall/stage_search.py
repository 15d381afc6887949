"""Search: the best hits for a question among memories and turns, each with how its score came about.

Memories and turns are looked for both, whichever are shown: a turn gains from the memory that it states, and a memory
from its turn. A turn is shown with what was said right before and after it, so that no two hits show one exchange.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from csmd import text
from csmd.believe import score as belief
from csmd.errors import DeadlineExceeded
from csmd.model import Hit, Memory
from csmd.recall import exchange, question, rank, stage_graph, stage_hits, stage_order
from csmd.recall.rank import Scored
from csmd.recall.stage_hits import LEXICAL_S, Embed
from csmd.store import counts, memories, nearby, projects, search, spread
from csmd.store import narrow as narrowing
from csmd.store.nearby import Beside
from csmd.store.narrow import Narrow
from csmd.store.search import TurnRow
from csmd.store.sqlite import Rows

#: How many scored rows of each list are fused; of a search with limits, how many are looked through for what they let in.
POOL, WIDE_POOL = 300, 4000
#: How many memories are read whole, and how many are asked for the turns that state them.
MOST_MEMORIES, MOST_STATED = 60, 100
#: Of the time that a question names so many of the user's turns come in by that alone.
OF_A_TIME = 40
MOST_TERMS = 40
ALL = Narrow()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """One search: its question as it was understood, what it may see, the terms and the vector that it is made with."""

    rows: Rows
    question: question.Question
    terms: Sequence[str]
    projects: Sequence[int] | None
    narrow: Narrow
    vector: tuple[bytes, int] | None
    degraded: list[str]
    spans: dict[int, tuple[int, int]] = field(default_factory=dict)


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
    """The best hits for a query among memories and turns, and what was degraded; without `now` times mean nothing."""
    degraded: list[str] = []
    understood = question.read(query, now=now)
    terms = list(dict.fromkeys([*stage_order.by_all_names(rows, query, projects=projects), *understood.literals]))
    asked = _Asked(
        rows=rows, question=understood, terms=terms[:MOST_TERMS], projects=projects, narrow=narrow,
        vector=stage_hits.vector_of(rows, query, embed, degraded), degraded=degraded,
    )  # fmt: skip
    fix_turns, fix_memories = stage_graph.mended(rows, query, projects=projects)
    believed, close = _matching(asked, "memory")
    turns, _ = _matching(asked, "turn")
    turns, where = _turns(asked, turns, close, fix_turns)
    hits = [] if kind == "memory" else _turn_hits(asked, turns, where, limit * 3)
    if kind != "turn":
        believed = rank.raised(believed, stage_graph.linked(rows, believed, projects=projects), "linked",
                               weight=rank.LINK_WEIGHT)  # fmt: skip
        reported = stage_graph.explained(rows, turns, projects=projects)
        believed = rank.raised(believed, reported, "reported", weight=rank.LINK_WEIGHT)
        believed = rank.raised(believed, dict.fromkeys(fix_memories, 1.0), "mended", weight=rank.MENDED_WEIGHT)
        hits += _memory_hits(asked, believed, {hit.source_uuids[0]: hit.score for hit in hits})
    hits.sort(key=lambda hit: (-hit.score, hit.at, hit.id))
    return stage_order.newest_first(rows, _distinct(hits, limit * 3), terms)[:limit], sorted(set(degraded))


def _matching(asked: _Asked, kind: str) -> tuple[dict[int, Scored], dict[int, float]]:
    """The rows of a kind that match by words and by sense, fused, and the cosines of those found by sense."""
    pool = POOL if asked.narrow.is_all else WIDE_POOL
    lexical = stage_hits.lexical(asked.rows, kind, asked.terms, asked.projects, asked.degraded, pool=pool)
    sense: dict[int, float] = {}
    if asked.vector is not None:
        nearest = stage_hits.nearest(asked.rows, kind, asked.vector, asked.projects, asked.degraded, pool=pool)
        for seq, start, end, distance in nearest:
            closeness = rank.cosine(distance)
            if closeness > sense.get(seq, -1.0):
                sense[seq] = closeness
                if kind == "turn":
                    asked.spans[seq] = (start, end)
    if not asked.narrow.is_all:
        let_in = (narrowing.turns if kind == "turn" else narrowing.memories)(
            asked.rows, [*{*lexical, *sense}], asked.narrow
        )
        lexical = {seq: value for seq, value in lexical.items() if seq in let_in}
        sense = {seq: value for seq, value in sense.items() if seq in let_in}
    return rank.fuse(lexical, sense), sense


# --- turns


def _turns(
    asked: _Asked, turns: dict[int, Scored], close: Mapping[int, float], fixes: Sequence[int]
) -> tuple[dict[int, Scored], dict[int, Beside]]:
    """The turns with all that speaks for them, and where each stands."""
    window = asked.question.window
    named = _of_the_time(asked, window) if window else {}
    extra = {**_stated(asked, close), **named, **dict.fromkeys(fixes, 0.0)}
    if not asked.narrow.is_all and extra:
        let_in = narrowing.turns(asked.rows, list(extra), asked.narrow)
        extra = {seq: value for seq, value in extra.items() if seq in let_in}
    where = nearby.beside(asked.rows, [*{*turns, *extra}])
    stated = {seq: value for seq, value in _stated(asked, close).items() if seq in where}
    turns = rank.raised(turns, stated, "states a memory", weight=rank.STATED_WEIGHT)
    turns = rank.raised(turns, {seq: 1.0 for seq in fixes if seq in where}, "mended", weight=rank.MENDED_WEIGHT)
    near = {seq: (place.before, place.after) for seq, place in where.items()}
    turns = rank.raised(turns, rank.neighbours(turns, near), "neighbour", weight=rank.NEIGHBOUR_WEIGHT)
    sessions = _sessions(asked)
    of_session = {seq: sessions.get(where[seq].session, 0.0) for seq in turns if seq in where}
    turns = rank.raised(turns, of_session, "session", weight=rank.SESSION_WEIGHT)
    if window:
        then = {seq: 1.0 for seq, place in where.items() if (seq in turns or seq in named) and window.holds(place.at)}
        turns = rank.raised(turns, then, "time", weight=rank.TIME_WEIGHT)
    recent = _recent({seq: where[seq].at for seq in turns if seq in where})
    return rank.raised(turns, recent, "recency", weight=rank.RECENCY_WEIGHT), where


def _stated(asked: _Asked, close: Mapping[int, float]) -> dict[int, float]:
    """Turn -> how near the question is to a memory that it states, above what any two texts have in common."""
    best = sorted(close, key=lambda seq: (-close[seq], seq))[:MOST_STATED]
    found: dict[int, float] = {}
    for memory, turn in nearby.statements(asked.rows, best, projects=asked.projects):
        found[turn] = max(found.get(turn, 0.0), close[memory] - rank.STATED_FLOOR)
    return found


def _of_the_time(asked: _Asked, window: question.Window) -> dict[int, float]:
    """Turns of the time that a question names, which may have no word of it: "what did we do yesterday?"."""
    found = nearby.asked_between(
        asked.rows, window.since, window.until, projects=asked.projects, limit=OF_A_TIME
    )
    return {seq: 0.0 for seq, _ in found}


def _sessions(asked: _Asked) -> dict[int, float]:
    """Session -> how much of the question falls into it, 0-1."""
    try:
        with asked.rows.within(LEXICAL_S):
            total = spread.session_count(asked.rows, projects=asked.projects)
            found = [spread.sessions_with(asked.rows, term, projects=asked.projects) for term in asked.terms]
    except DeadlineExceeded:
        asked.degraded.append("words: sessions were not compared in time")
        return {}
    return rank.spread(found, total)


def _recent(at: Mapping[int, str]) -> dict[int, float]:
    """How recent each is beside the newest of them: a project that was left for months is no older for that."""
    days = {seq: datetime.fromisoformat(moment).timestamp() / 86_400 for seq, moment in at.items() if moment}
    newest = max(days.values(), default=0.0)
    return {seq: rank.recency(newest - day) for seq, day in days.items()}


def _turn_hits(asked: _Asked, scored: Mapping[int, Scored], where: Mapping[int, Beside], limit: int) -> list[Hit]:
    ranked = sorted((row for row in scored.values() if row.seq in where), key=lambda row: (-row.score, row.seq))
    near = {row.seq: (where[row.seq].after, where[row.seq].before) for row in ranked}
    groups = exchange.groups([row.seq for row in ranked], near, {row.seq: row.score for row in ranked}, most=limit)
    turns = search.turns_by_seq(asked.rows, [seq for group in groups for seq in group])
    hits: list[Hit] = []
    for group in groups:
        own, *others = [turns[seq] for seq in group if seq in turns]
        if own.seq != group[0]:
            continue
        parts = [_part(asked, own, "", scored)]
        parts += [_part(asked, one, "before" if one.seq == where[own.seq].before else "after", scored) for one in others]
        hits.append(
            Hit(
                id=own.uuid,
                kind="turn",
                text=exchange.told(parts, limit=rank.PASSAGE_CHARACTERS),
                score=scored[own.seq].score,
                project=own.project,
                session_id=own.session_id,
                source_uuids=tuple(dict.fromkeys(one.uuid.partition("/")[0] for one in (own, *others))),
                at=own.at,
                factors=scored[own.seq].factors,
            )
        )
    return hits


def _part(asked: _Asked, turn: TurnRow, place: str, scored: Mapping[int, Scored]) -> exchange.Part:
    """A turn of an exchange, cut to where its words or, without such, its sense matched."""
    by_words = turn.seq not in scored or bool(scored[turn.seq].factors.get("words"))
    start, end = (0, len(turn.text)) if by_words else asked.spans.get(turn.seq, (0, len(turn.text)))
    body = turn.text[start:end].strip()
    return exchange.Part(
        speaker=turn.kind, place=place, text=body,
        cut=lambda limit: text.passage(body, list(asked.terms), limit=limit) if by_words else text.cut(body, limit),
    )  # fmt: skip


# --- memories


def _memory_hits(asked: _Asked, scored: Mapping[int, Scored], turns: Mapping[str, float]) -> list[Hit]:
    best = sorted(scored.values(), key=lambda row: (-row.score, row.seq))[:MOST_MEMORIES]
    let_in = {row.seq for row in best}
    if not asked.narrow.is_all and best:  # what came in over the graph was not looked at yet
        let_in = narrowing.memories(asked.rows, [row.seq for row in best], asked.narrow)
    found = {seq: memory for seq, memory in memories.by_seqs(asked.rows, sorted(let_in)).items()}
    roots = {seq: root for seq, root, *_ in counts.projects(asked.rows)}
    recent = _recent({seq: memory.confirmed_at for seq, memory in found.items()})
    sure = _sure(asked.rows, found.values())
    hits: list[Hit] = []
    for seq, memory in found.items():
        uuids = tuple(dict.fromkeys(source.uuid for source in memory.provenance))[:4]
        added = {
            "source turn": rank.NEIGHBOUR_WEIGHT * max((turns.get(uuid, 0.0) for uuid in uuids), default=0.0),
            "kind asked for": rank.KIND_WEIGHT * (memory.category in asked.question.categories),
            "time": rank.TIME_WEIGHT * _holds(asked.question.window, memory),
            "recency": rank.RECENCY_WEIGHT * recent.get(seq, 0.0),
        }
        weight = rank.memory_weight(memory, sure=sure[seq])
        scope = 1.0 if memory.scope == "project" else rank.EVERYWHERE_SHARE
        factors = {**scored[seq].factors, **{name: round(value, 4) for name, value in added.items() if value}}
        hits.append(
            Hit(
                id=memory.id,
                kind="memory",
                text=memory.text[: rank.PASSAGE_CHARACTERS],
                score=(scored[seq].score + sum(added.values())) * weight * scope,
                project=roots.get(memory.project_seq, ""),
                session_id=memory.session_id,
                source_uuids=uuids,
                at=memory.confirmed_at,
                confidence=memory.confidence,
                gate=memory.gate,
                authority=memory.authority,
                superseded_by=memory.superseded_by,
                factors={**factors, "standing": round(weight, 4), "scope": scope},
            )
        )
    return hits


def _holds(window: question.Window | None, memory: Memory) -> bool:
    return window is not None and any(window.holds(one.at) for one in memory.provenance)


def _sure(rows: Rows, found: Iterable[Memory]) -> dict[int, float]:
    """How sure each memory is by now: its confidence after the active days since it was last fresh."""
    days: dict[tuple[int, str], int] = {}

    def day(project: int, on: str) -> int:
        if (project, on) not in days:
            days[project, on] = projects.active_day(rows, project, on=on) if on else projects.active_day(rows, project)
        return days[project, on]

    return {
        one.seq: belief.strength(one, days=day(one.project_seq, "") - day(one.project_seq, one.fresh_at[:10]))
        for one in found
    }


# --- both


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
