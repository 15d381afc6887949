"""Finds the turns that answer a question, and shows each with the turns before and after it.

A turn's score is the sum of its best passage's words and meaning, each normalised over the results, and a share of the
scores of adjacent turns and of the best turns of its session.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from csmd.briefs import Hit
from csmd.knowledge import Memory
from csmd.memory import supersession
from csmd.recall import hybrid_search, query, ranking
from csmd.recall.hybrid_search import Pool, Query, states_memory
from csmd.store import memories, passages, search
from csmd.store.passages import Passage
from csmd.store.search import TurnNeighbours, TurnRow
from csmd.store.sqlite import Rows
from csmd.text import display, prose

MAX_HIT_CHARACTERS = 1200
#: Least share of a hit's characters for the matched turn, if it is long enough.
MIN_MATCHED_SHARE = 0.5
#: The weight of words in a turn's score; the rest is the weight of meaning.
TURN_WORDS_WEIGHT = 0.55
#: Weight of the scores of adjacent turns, and of the best turns of its session, in a turn's score.
ADJACENT_WEIGHT = 0.3
SESSION_WEIGHT = 0.5
#: Added to the score of a turn or memory from the period asked about, and of one that fixed the pasted failure.
TIME_WEIGHT = 0.3
FIX_WEIGHT = 0.5
#: Score factor of superseded statements.
SUPERSEDED_FACTOR = 0.5
#: Most turns whose neighbours are looked up.
MAX_TURNS = 100
#: Most prompts that are added because of their time alone.
MAX_PROMPTS_OF_TIME = 40


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Turn (row key) -> its best passage, the cosine of that, and the named parts of its score."""

    best: dict[int, int] = field(default_factory=dict)
    cosines: dict[int, float] = field(default_factory=dict)
    parts: dict[int, dict[str, float]] = field(default_factory=dict)

    def score(self, turn: int) -> float:
        """Returns the score of a turn, 0 if it was not found."""
        return sum_parts(self.parts.get(turn, {}))

    def add(self, part: str, scores: Mapping[int, float]) -> None:
        """Adds a part to the scores of turns, also of those that had none."""
        for turn, value in scores.items():
            self.parts.setdefault(turn, {})[part] = value


def sum_parts(parts: Mapping[str, float]) -> float:
    """Returns the score that consists of these parts."""
    return sum(parts.values())


def round_parts(parts: Mapping[str, float]) -> dict[str, float]:
    """Returns the parts of a score as a hit shows them, without those that are 0."""
    return {name: round(value, 4) for name, value in parts.items() if value}


def rank_turns(rows: Rows, pool: Pool) -> Ranking:
    """Ranks the turns of the pool by their best passage and the best passages of their session."""
    scores = pool.passages
    weight = TURN_WORDS_WEIGHT if scores.meaning else 1.0
    words, meaning = ranking.normalised(scores.words), ranking.normalised(scores.meaning)
    fused = {seq: (weight * words.get(seq, 0.0), (1 - weight) * meaning.get(seq, 0.0)) for seq in scores.seqs}
    origins = hybrid_search.find_origins(rows, pool)
    ranked = Ranking()
    session_scores: dict[int, list[float]] = {}
    for seq in sorted(fused.keys() & origins.keys(), key=lambda seq: (-sum(fused[seq]), seq)):
        turn, session = origins[seq]
        if turn in ranked.best:
            continue
        session_scores.setdefault(session, []).append(sum(fused[seq]))
        ranked.best[turn] = seq
        ranked.cosines[turn] = scores.meaning.get(seq, 0.0)
        if len(ranked.parts) < MAX_TURNS:
            ranked.parts[turn] = dict(zip(("words", "meaning"), fused[seq], strict=True))
    best_means = {session: ranking.best_mean(of_session) for session, of_session in session_scores.items()}
    ranked.add("session", {turn: SESSION_WEIGHT * best_means[origins[ranked.best[turn]][1]] for turn in ranked.parts})
    return ranked


class Part(NamedTuple):
    """A turn of an exchange: `position` is "" for the matched turn, else before or after; `cut` shortens it."""

    speaker: str
    position: str
    text: str
    cut: Callable[[int], str]


def render_exchange(parts: Sequence[Part], *, limit: int) -> str:
    """Renders a hit in at most `limit` characters, the matched turn first; a single turn has no heading."""
    if len(parts) == 1:
        return parts[0].cut(limit)
    headings = [f"[{part.position}] {part.speaker}: " if part.position else f"{part.speaker}: " for part in parts]
    sizes = [len(part.text) for part in parts]
    available = limit - sum(len(heading) + 1 for heading in headings)
    limits = {0: min(sizes[0], max(int(available * MIN_MATCHED_SHARE), available - sum(sizes[1:])))}
    # The shortest first: space that a short turn does not use goes to the longer ones.
    for index in sorted(range(1, len(parts)), key=lambda index: sizes[index]):
        limits[index] = min(sizes[index], (available - sum(limits.values())) // (len(parts) - len(limits)))
    return "\n".join(headings[index] + part.cut(limits[index]) for index, part in enumerate(parts))


def group_exchanges(
    ranked: Sequence[int],
    adjacent: Mapping[int, Sequence[int]],
    scores: Mapping[int, float],
    *,
    limit: int,
    continuing: Collection[int] = frozenset(),
) -> list[list[int]]:
    """Groups the best `limit` turns of `ranked` (best first) with adjacent ones (0: none); no turn is in two groups.

    A `continuing` turn is in the middle of an exchange; it gets no group if the exchange is in a group already.
    """
    used: set[int] = set()
    groups: list[list[int]] = []
    for seq in ranked:
        others = adjacent.get(seq, ())
        if len(groups) >= limit:
            break
        if seq in used or (seq in continuing and not used.isdisjoint(others)):
            continue
        unused = [turn for turn in dict.fromkeys(others) if turn and turn not in used and turn != seq]
        groups.append([seq, *sorted(unused, key=lambda turn: -scores.get(turn, 0.0))])
        used.update(groups[-1])
    return groups


def find_exchanges(
    rows: Rows, search_query: Query, ranked: Ranking, window: query.Window | None, fixes: Sequence[int], limit: int
) -> list[Hit]:
    """Finds the best exchanges, each by its most relevant turn; raises the scores of the turns in `fixes`."""
    own_scores = {turn: ranked.score(turn) for turn in ranked.parts}
    if window is not None:
        prompts = search.list_user_turns_between(
            rows, window.since, window.until, projects=search_query.places, limit=MAX_PROMPTS_OF_TIME
        )
        in_time = search_query.filter_seqs(rows, "turn", [seq for seq, _ in prompts])
        ranked.add("time", dict.fromkeys(sorted(in_time), TIME_WEIGHT))
    ranked.add("mended", dict.fromkeys(sorted(search_query.filter_seqs(rows, "turn", fixes)), FIX_WEIGHT))
    neighbours = search.map_turn_neighbours(rows, sorted(ranked.parts), projects=search_query.places)
    if window is not None:
        ranked.add("time", {turn: TIME_WEIGHT for turn, near in neighbours.items() if window.holds(near.at)})
    adjacent = {turn: (near.after, near.before) for turn, near in neighbours.items()}
    near_scores = {turn: sum(own_scores.get(seq, 0.0) for seq in pair) for turn, pair in adjacent.items()}
    ranked.add("near", {turn: ADJACENT_WEIGHT * score for turn, score in near_scores.items()})
    scores = {turn: ranked.score(turn) for turn in neighbours}
    groups = group_exchanges(
        sorted(scores, key=lambda turn: (-scores[turn], turn)),
        adjacent,
        scores,
        limit=limit,
        continuing={turn for turn, near in neighbours.items() if near.midway},
    )
    turn_rows = search.turns_by_seq(rows, [turn for group in groups for turn in group])
    groups = [group for group in groups if group[0] in turn_rows]
    best = [ranked.best[turn] for turn, *_ in groups if turn in ranked.best]
    matched = {passage.turn_seq: passage for passage in passages.by_seqs(rows, best).values()}
    replacements = _find_replacements(rows, matched)
    hits: list[Hit] = []
    for group in groups:
        turn = group[0]
        turns = [turn_rows[seq] for seq in group if seq in turn_rows]
        passage = matched.get(turn)
        hits.append(_make_hit(search_query, turns, neighbours[turn], ranked, passage, replacements.get(turn)))
    return hits


def _find_replacements(rows: Rows, matched: Mapping[int, Passage]) -> dict[int, Memory]:
    """Returns turn -> the memory that replaced the one that its passage states."""
    superseded = search.list_superseded_by_turn(rows, sorted(matched))
    memory_of = memories.by_seqs(rows, sorted({memory for _, memory in superseded}))
    return {
        turn: replacement
        for turn, memory in superseded
        if states_memory(matched[turn].text, memory_of[memory])
        and (replacement := supersession.find_replacement(rows, memory_of[memory])) is not None
    }


def _make_hit(
    search_query: Query,
    turns: Sequence[TurnRow],
    neighbours: TurnNeighbours,
    ranked: Ranking,
    passage: Passage | None,
    replacement: Memory | None,
) -> Hit:
    matched, *others = turns
    start = passage.start if passage else 0

    def cut_matched(limit: int) -> str:
        """Cuts the turn so that it begins with its best passage."""
        if not start or len(matched.text) <= limit:
            return display.cut(matched.text, limit)
        return "…" + display.cut(matched.text[min(start, len(matched.text) - limit + 1) :], limit - 1)

    def make_part(turn: TurnRow) -> Part:
        position = "before" if turn.seq == neighbours.before else "after"
        terms = list(search_query.terms)
        return Part(turn.kind, position, turn.text, lambda limit: prose.excerpt(turn.text, terms, limit=limit))

    parts = [Part(matched.kind, "", matched.text, cut_matched), *map(make_part, others)]
    return Hit(
        id=matched.uuid,
        kind="turn",
        text=render_exchange(parts, limit=MAX_HIT_CHARACTERS),
        score=ranked.score(matched.seq) * (SUPERSEDED_FACTOR if replacement else 1.0),
        project=matched.project,
        session_id=matched.session_id,
        source_uuids=tuple(dict.fromkeys(turn.uuid.partition("/")[0] for turn in turns)),
        at=matched.at,
        superseded_by=replacement.id if replacement else "",
        superseded_at=replacement.confirmed_at if replacement else "",
        answers=max(ranked.cosines.get(turn.seq, 0.0) for turn in turns),
        factors=round_parts(ranked.parts[matched.seq]),
    )
