"""Turns as hits: all that speaks for each, and the exchange that it is shown in.

A turn is shown with what was asked before it and answered after it, so that no two hits show one exchange.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from csmd import text
from csmd.errors import DeadlineExceeded
from csmd.model import Hit
from csmd.recall import exchange, question, rank
from csmd.recall.rank import Scored
from csmd.recall.stage_hits import LEXICAL_S
from csmd.recall.stage_matches import Asked, recent
from csmd.store import narrow as narrowing
from csmd.store import nearby, search, spread
from csmd.store.nearby import Beside
from csmd.store.search import TurnRow

#: Of the time that a question names so many of the user's turns come in by that alone.
OF_A_TIME = 40


def standing(
    asked: Asked, turns: dict[int, Scored], close: Mapping[int, float], fixes: Sequence[int]
) -> tuple[dict[int, Scored], dict[int, Beside]]:
    """The turns with all that speaks for them, and where each stands."""
    window = asked.question.window
    stated = _stated(asked, close)
    named = _of_the_time(asked, window) if window else set()
    extra = {*stated, *named, *fixes}
    if not asked.narrow.is_all and extra:
        extra = narrowing.turns(asked.rows, sorted(extra), asked.narrow)
    where = nearby.beside(asked.rows, sorted({*turns, *extra}))
    stated = {seq: value for seq, value in stated.items() if seq in where}
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
    newer = recent({seq: where[seq].at for seq in turns if seq in where})
    return rank.raised(turns, newer, "recency", weight=rank.RECENCY_WEIGHT), where


def _stated(asked: Asked, close: Mapping[int, float]) -> dict[int, float]:
    """Turn -> how near the question is to a memory that it states, above what it is to most of them."""
    nearest = rank.nearness(close)
    found: dict[int, float] = {}
    for memory, turn in nearby.statements(asked.rows, list(nearest), projects=asked.projects):
        found[turn] = max(found.get(turn, 0.0), nearest[memory])
    return found


def _of_the_time(asked: Asked, window: question.Window) -> set[int]:
    """Turns of the time that a question names, which may have no word of it: "what did we do yesterday?"."""
    found = nearby.asked_between(asked.rows, window.since, window.until, projects=asked.projects, limit=OF_A_TIME)
    return {seq for seq, _ in found}


def _sessions(asked: Asked) -> dict[int, float]:
    """Session -> how much of the question falls into it, 0-1."""
    try:
        with asked.rows.within(asked.rows.share(LEXICAL_S)):
            total = spread.session_count(asked.rows, projects=asked.projects)
            found = [spread.sessions_with(asked.rows, term, projects=asked.projects) for term in asked.terms]
    except DeadlineExceeded:
        asked.degraded.append("words: sessions were not compared in time")
        return {}
    return rank.spread(found, total)


def hits(
    asked: Asked, scored: Mapping[int, Scored], where: Mapping[int, Beside], close: Mapping[int, float], limit: int
) -> list[Hit]:
    """The best `limit` exchanges; `close` are the cosines of turns."""
    ranked = sorted((row for row in scored.values() if row.seq in where), key=lambda row: (-row.score, row.seq))
    near = {row.seq: (where[row.seq].after, where[row.seq].before) for row in ranked}
    groups = exchange.groups(
        [row.seq for row in ranked],
        near,
        {row.seq: row.score for row in ranked},
        most=limit,
        midway={row.seq for row in ranked if where[row.seq].midway},
    )
    turns = search.turns_by_seq(asked.rows, [seq for group in groups for seq in group])
    found: list[Hit] = []
    for group in groups:
        own, *others = [turns[seq] for seq in group if seq in turns]
        if own.seq != group[0]:
            continue
        parts = [_part(asked, own, "", scored)]
        parts += [
            _part(asked, one, "before" if one.seq == where[own.seq].before else "after", scored) for one in others
        ]
        found.append(
            Hit(
                id=own.uuid,
                kind="turn",
                text=exchange.told(parts, limit=rank.PASSAGE_CHARACTERS),
                score=scored[own.seq].score,
                project=own.project,
                session_id=own.session_id,
                source_uuids=tuple(dict.fromkeys(one.uuid.partition("/")[0] for one in (own, *others))),
                at=own.at,
                answers=max(rank.own_match(scored[seq].factors) for seq in group if seq in scored),
                cosine=max(close.get(seq, 0.0) for seq in group) if asked.vector else None,
                factors=scored[own.seq].factors,
            )
        )
    return found


def _part(asked: Asked, turn: TurnRow, place: str, scored: Mapping[int, Scored]) -> exchange.Part:
    """A turn of an exchange, cut to where its words or, without such, its sense matched."""
    by_words = turn.seq not in scored or bool(scored[turn.seq].factors.get("words"))
    start, end = (0, len(turn.text)) if by_words else asked.spans.get(turn.seq, (0, len(turn.text)))
    body = turn.text[start:end].strip()
    return exchange.Part(
        speaker=turn.kind, place=place, text=body,
        cut=lambda limit: text.passage(body, list(asked.terms), limit=limit) if by_words else text.cut(body, limit),
    )  # fmt: skip
