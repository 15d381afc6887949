"""Search results: memories and exchanges, each once, best first; and the neighbours of a memory.

A turn's score is the sum of its best passage's words and meaning, each normalised over the results, and a share of the
scores of the turns next to it and of the best of its session. A memory is ranked by itself or by its turns.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from csmd import data, wire
from csmd.briefs import Hit
from csmd.errors import DeadlineExceeded
from csmd.extraction import failure_reports
from csmd.knowledge import Memory
from csmd.memory import supersession
from csmd.recall import hybrid_search, lens, query, ranking
from csmd.recall.hybrid_search import LEXICAL_S, NO_FILTER, Embed, Pool, Query
from csmd.recall.scored_statement import states_memory
from csmd.store import failures, memories, memory_graph, passages, search
from csmd.store.passages import Passage
from csmd.store.search import DigestRow, TurnNeighbours, TurnRow
from csmd.store.sqlite import Rows
from csmd.text import display, prose, search_terms, sentence, similarity, tokens

MAX_HIT_CHARACTERS = 1200
#: Least share of them for the matched turn, if it is so long.
MATCHED_SHARE = 0.5
#: The share of words in a turn's score; the rest is meaning.
WORDS_SHARE = 0.55
#: What neighbouring turns, and the best of its session, add to a turn's score.
NEAR_SHARE = 0.3
SESSION_SHARE = 0.5
#: Added to what is of the time in the question, and to what fixed a pasted failure.
TIME_WEIGHT = 0.3
FIX_WEIGHT = 0.5
#: Most turns whose neighbours are looked up.
MAX_TURNS = 100
#: Score factors of superseded statements, of memories (their turns say more) and of session summaries.
SUPERSEDED_SHARE = 0.5
MEMORY_SHARE = 0.9
SUMMARY_SHARE = 0.3
#: Among the first hits, the score factor of each further hit of a session.
FRONT_HITS = 5
REPEATED_SHARE = 0.85
#: Two hits that share this much of their words are one.
TWIN_OVERLAP = 0.9
#: Most prompts that are added because of their time alone.
MAX_PROMPTS_OF_TIME = 40
#: The heading of a neighbouring turn in a hit's text (`render_exchange`).
_NEIGHBOUR = re.compile(r"\n\[(?:before|after)\] ")
#: A hit answers a search from this cosine on, or if it contains this share of the content words.
MIN_CLOSE_COSINE = 0.4
MIN_CLOSE_WORDS = 0.65
#: The same for a question, without the verbs that all questions have.
MIN_CLOSE_QUESTION_WORDS = 0.5
_TOPIC_WORDS = data.word_table("topic_words.txt")
_PLAIN_VERBS, _INQUIRY = (frozenset(map(tokens.stem, _TOPIC_WORDS[name])) for name in ("verb", "inquiry"))
#: With so few content words everything matches alike: orders and questions get this score factor.
FEW_WORDS = 2
ORDER_SHARE = 0.6
#: Score factor of a memory that names a thing of the kind that was asked for.
NAMED_SHARE = 0.9
#: The stem of each word for a kind of thing -> the names of things of that kind.
_NAMES: dict[str, frozenset[str]] = {
    tokens.stem(word): names for words, names in data.word_table("kind_words.txt").items() for word in words.split()
}
_KNOWN_NAMES = frozenset(tokens.stem(name) for names in _NAMES.values() for name in names)
#: Fewest letters of the stem of a name that may be short for a longer one.
MIN_SHORT_NAME = 4
#: Most turns cited as sources of a session summary.
MAX_SOURCES = 4


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Turn (row key) -> its best passage, the cosine of that, and the named parts of its score."""

    best: dict[int, int] = field(default_factory=dict)
    cosines: dict[int, float] = field(default_factory=dict)
    parts: dict[int, dict[str, float]] = field(default_factory=dict)

    def score(self, turn: int) -> float:
        """Returns the score of a turn, 0 if it was not found."""
        return sum(self.parts.get(turn, {}).values())

    def add(self, part: str, worth: Mapping[int, float]) -> None:
        """Adds a part to the scores of turns, also of those that had none."""
        for turn, value in worth.items():
            self.parts.setdefault(turn, {})[part] = value


def find(
    rows: Rows,
    question: str,
    *,
    projects: Sequence[int] | None,
    kind: str,
    limit: int,
    embed: Embed | None,
    now: datetime | None = None,
    within: search.SearchFilter = NO_FILTER,
    asking: str = "",
) -> tuple[list[Hit], list[str]]:
    """Returns the best memories, turns and session summaries, and what was degraded. Without `now` no time is recognised.

    Hits in the lens of the directory `asking` rank higher.
    """
    question, degraded = wire.clean(question), list[str]()
    terms = hybrid_search.expand_terms(rows, question, places=projects)
    terms = list(dict.fromkeys([*terms, *query.find_literals(question)]))
    search_query = Query(
        terms=terms[: hybrid_search.MAX_TERMS],
        literal=search_terms.find_unindexed(question),
        places=projects,
        filters=within,
    )
    weigh = lens.make_weight(rows, lens.find_lens(rows, asking))
    summaries = _apply_lens(_find_summaries(rows, search_query, degraded), weigh) if kind in ("all", "session") else []
    if kind == "session":
        return summaries[:limit], sorted(set(degraded))
    search_query = replace(search_query, vector=hybrid_search.embed_query(rows, question, embed, degraded))
    pool = hybrid_search.read_pool(rows, search_query, degraded)
    _add_named_things(rows, search_query, pool)
    window = query.find_window(question, now) if now else None
    mended, causes = _find_fixes(rows, question, search_query)
    ranked = _rank_turns(rows, pool)
    # Memories first: their turns count for them without those next to them.
    hits = _find_memories(rows, search_query, pool, ranked, window, causes) if kind != "turn" else []
    hits += _find_turns(rows, search_query, ranked, window, mended, limit * 3) if kind != "memory" else []
    if len(tokens.content_stems(question)) <= FEW_WORDS:
        hits = [replace(hit, score=hit.score * ORDER_SHARE) if _is_order(hit) else hit for hit in hits]
    hits = _apply_lens(sorted(hits, key=lambda hit: (-hit.score, hit.at, hit.id)), weigh)
    merged = _insert_sessions(_move_replacements_up(_vary_sessions(_drop_twins(hits, limit * 3))), summaries)
    # A hit has at least the score of the hits behind it.
    scores = [*itertools.accumulate((hit.score for hit in reversed(merged)), max)][::-1]
    scored = [replace(hit, score=score) for hit, score in zip(merged, scores, strict=True)]
    return scored[:limit], sorted(set(degraded))


def _apply_lens(hits: Sequence[Hit], weigh: lens.WeightOf | None) -> list[Hit]:
    """Returns the hits sorted by their score under a lens."""
    if weigh is None:
        return list(hits)
    weights = [weigh(hit.text, hit.project, hit.session_id, hit.id) for hit in hits]
    weighed = [
        replace(hit, score=hit.score * weight, factors={**hit.factors, "lens": weight})
        for hit, weight in zip(hits, weights, strict=True)
    ]
    return sorted(weighed, key=lambda hit: -hit.score)


def _add_named_things(rows: Rows, search_query: Query, pool: Pool) -> None:
    """Adds the memories that name a thing of the kind in the question: "database" finds PostgreSQL."""
    names = tuple(dict.fromkeys(name for term in search_query.terms for name in _NAMES.get(tokens.stem(term), ())))
    named = replace(search_query, terms=names).search_words(rows, "memory") if names else {}
    best, best_named = max(pool.memories.words.values(), default=1.0), max(named.values(), default=1.0)
    passing = search_query.filter_seqs(rows, "memory", sorted(named))
    pool.memories.add_words({seq: NAMED_SHARE * best * named[seq] / best_named for seq in passing})


def _is_order(hit: Hit) -> bool:
    """Whether a hit only orders, asks or agrees, and states nothing lasting."""
    text = _matched_text(hit)
    speaker, colon, words = text.partition(": ")
    if hit.kind == "session" or (hit.kind == "turn" and colon and speaker not in ("user", "relayed")):
        return False
    read = [sentence.parse(part) for part in prose.split_sentences(words if hit.kind == "turn" and colon else text)]
    return bool(read) and all(part.kind in ("orders", "asks", "assents") and not part.lasting for part in read)


def is_close(hits: Sequence[Hit], question: str) -> bool:
    """Whether a hit is near the question in meaning or contains most of its content words, at least two of a question.

    If not, the nearest hits are shown nevertheless.
    """
    if search_terms.find_unindexed(question):
        return bool(hits)
    words, every, is_question = tokens.content_stems(question), tokens.words_of(question), _is_question(question)
    inquires = not _TOPIC_WORDS["asks_of_name"].isdisjoint(every)
    if is_question or len(every) > len(words):  # "reason for the port" asks about the port; "decision log" is a thing
        inquires = inquires or not words.isdisjoint(_INQUIRY)
        words = words - _INQUIRY or words
    is_of_name = len(words) == 1 and (inquires or len(every) <= 2)
    is_question = is_question or inquires
    if is_question:  # "where do we keep orders" asks about orders
        words = words - _PLAIN_VERBS or words
    # "Why postgres" and "what about postgres" are searches for the name; a memory is a statement by itself.
    min_words = 2 if is_question and not is_of_name else 1
    min_share = MIN_CLOSE_QUESTION_WORDS if is_question else MIN_CLOSE_WORDS

    def says_most(hit: Hit) -> bool:
        # A question is not answered by a question.
        is_asking = is_question and _matched_text(hit).rstrip().endswith("?")
        is_about = len(words) >= min_words or hit.kind == "memory" or hit.states != ""
        return is_about and _share_held(hit, words) >= min_share and not is_asking

    return any(hit.answers >= MIN_CLOSE_COSINE or says_most(hit) for hit in hits)


def _matched_text(hit: Hit) -> str:
    """The text of the matched turn, without its neighbours."""
    return _NEIGHBOUR.split(hit.text, maxsplit=1)[0]


def _share_held(hit: Hit, words: frozenset[str]) -> float:
    """Returns the share of these words that a hit contains, in part ("Postgres" of PostgreSQL), or names a thing of."""
    held = tokens.content_stems(_matched_text(hit))
    named = {
        word
        for word in words - held
        if not held.isdisjoint(map(tokens.stem, _NAMES.get(word, ())))
        or any(_is_short_for(word, name) for name in held)
    }
    return similarity.share(words, held | named)


def _is_short_for(word: str, name: str) -> bool:
    """Whether a stem begins the stem of a known name; longer words that only begin alike are other words."""
    return len(word) >= MIN_SHORT_NAME and name in _KNOWN_NAMES and name.startswith(word)


def _is_question(text: str) -> bool:
    parsed = sentence.parse(text)
    return parsed.kind == "asks" or parsed.opens_with_question or sentence.ends_with_question(text)


def _rank_turns(rows: Rows, pool: Pool) -> Ranking:
    """Ranks the turns of the pool by their best passage and the best passages of their session."""
    scores = pool.passages
    share = WORDS_SHARE if scores.meaning else 1.0
    words, meaning = ranking.normalised(scores.words), ranking.normalised(scores.meaning)
    fused = {seq: (share * words.get(seq, 0.0), (1 - share) * meaning.get(seq, 0.0)) for seq in scores.seqs}
    origins = hybrid_search.find_origins(rows, pool)
    ranked, of_session = Ranking(), dict[int, list[float]]()
    for seq in sorted(fused.keys() & origins.keys(), key=lambda seq: (-sum(fused[seq]), seq)):
        turn, session = origins[seq]
        if turn in ranked.best:
            continue
        of_session.setdefault(session, []).append(sum(fused[seq]))
        ranked.best[turn], ranked.cosines[turn] = seq, scores.meaning.get(seq, 0.0)
        if len(ranked.parts) < MAX_TURNS:
            ranked.parts[turn] = dict(zip(("words", "meaning"), fused[seq], strict=True))
    sessions = {turn: origins[ranked.best[turn]][1] for turn in ranked.parts}
    ranked.add("session", {turn: SESSION_SHARE * ranking.best_mean(of_session[at]) for turn, at in sessions.items()})
    return ranked


def _find_fixes(rows: Rows, question: str, search_query: Query) -> tuple[list[int], list[Memory]]:
    """Returns the turns that fixed a pasted failure, and the memories of its cause."""
    pasted = failure_reports.find_pasted_error(question, at="", uuid="")
    if pasted is None:
        return [], []
    same = failures.find_same_message(rows, pasted.message, other_than=pasted.fingerprint, projects=search_query.places)
    errors = [failures.find_error(rows, mark, search_query.places) for mark in (same, pasted.fingerprint) if mark]
    fixes = search.turns_of_uuids(rows, [error.fixed_uuid for error in errors if error and error.fixed_uuid])
    causes = [memories.by_id(rows, error.memory_id) for error in errors if error and error.memory_id]
    places = search_query.places
    visible = [memory for memory in causes if memory and (places is None or memory.project_seq in places)]
    return sorted(fixes.values()), visible


# --- exchanges


class Part(NamedTuple):
    """A turn of an exchange: `place` is "" for the matched turn, else before or after; `cut` shortens it to a length."""

    speaker: str
    place: str
    text: str
    cut: Callable[[int], str]


def render_exchange(parts: Sequence[Part], *, limit: int) -> str:
    """Renders a hit in at most `limit` characters, the matched turn first; a single turn has no heading."""
    if len(parts) == 1:
        return parts[0].cut(limit)
    headings = [f"[{part.place}] {part.speaker}: " if part.place else f"{part.speaker}: " for part in parts]
    sizes = [len(part.text) for part in parts]
    room = limit - sum(len(heading) + 1 for heading in headings)
    shares = {0: min(sizes[0], max(int(room * MATCHED_SHARE), room - sum(sizes[1:])))}
    shortest_first = sorted(range(1, len(parts)), key=lambda index: sizes[index])
    for place, index in enumerate(shortest_first):  # what a short one leaves is the others'
        shares[index] = min(sizes[index], (room - sum(shares.values())) // (len(shortest_first) - place))
    return "\n".join(headings[index] + part.cut(shares[index]) for index, part in enumerate(parts))


def group_exchanges(
    ranked: Sequence[int],
    near: Mapping[int, Sequence[int]],
    scores: Mapping[int, float],
    *,
    most: int,
    midway: Collection[int] = frozenset(),
) -> list[list[int]]:
    """Groups the best `most` turns of `ranked` (best first) with their neighbours (0: none); no turn is in two groups.

    A turn `midway` in an exchange that is already in a group gets no group.
    """
    used: set[int] = set()
    groups: list[list[int]] = []
    for seq in ranked:
        adjacent = near.get(seq, ())
        if len(groups) >= most:
            break
        if seq in used or (seq in midway and not used.isdisjoint(adjacent)):
            continue
        others = [turn for turn in dict.fromkeys(adjacent) if turn and turn not in used and turn != seq]
        groups.append([seq, *sorted(others, key=lambda turn: -scores.get(turn, 0.0))])
        used.update(groups[-1])
    return groups


def _find_turns(
    rows: Rows, search_query: Query, ranked: Ranking, window: query.Window | None, mended: Sequence[int], limit: int
) -> list[Hit]:
    """Finds the best exchanges, each by its most relevant turn."""
    alone = {turn: ranked.score(turn) for turn in ranked.parts}
    if window is not None:
        prompts = search.user_turns_between(
            rows, window.since, window.until, projects=search_query.places, limit=MAX_PROMPTS_OF_TIME
        )
        in_time = search_query.filter_seqs(rows, "turn", [seq for seq, _ in prompts])
        ranked.add("time", dict.fromkeys(sorted(in_time), TIME_WEIGHT))
    ranked.add("mended", dict.fromkeys(sorted(search_query.filter_seqs(rows, "turn", mended)), FIX_WEIGHT))
    where = search.turn_neighbours(rows, sorted(ranked.parts), projects=search_query.places)
    if window is not None:
        ranked.add("time", {turn: TIME_WEIGHT for turn, place in where.items() if window.holds(place.at)})
    near = {turn: alone.get(place.before, 0.0) + alone.get(place.after, 0.0) for turn, place in where.items()}
    ranked.add("near", {turn: NEAR_SHARE * score for turn, score in near.items()})
    scores = {turn: ranked.score(turn) for turn in where}
    groups = group_exchanges(
        sorted(scores, key=lambda turn: (-scores[turn], turn)),
        {turn: (place.after, place.before) for turn, place in where.items()},
        scores,
        most=limit,
        midway={turn for turn, place in where.items() if place.midway},
    )
    read = search.turns_by_seq(rows, [turn for group in groups for turn in group])
    groups = [group for group in groups if group[0] in read]
    seqs = [ranked.best[turn] for turn, *_ in groups if turn in ranked.best]
    matched = {passage.turn_seq: passage for passage in passages.by_seqs(rows, seqs).values()}
    heirs = _find_heirs(rows, matched)
    return [
        _make_exchange_hit(
            search_query, [read[turn] for turn in group if turn in read], where[group[0]], ranked, matched.get(group[0]),
            heirs.get(group[0]),
        )
        for group in groups
    ]  # fmt: skip


def _find_heirs(rows: Rows, matched: Mapping[int, Passage]) -> dict[int, Memory]:
    """Returns turn -> the memory that replaced the one that its passage states."""
    stated = search.superseded_by_turn(rows, sorted(matched))
    memory_of = memories.by_seqs(rows, sorted({memory for _, memory in stated}))
    return {
        turn: heir
        for turn, memory in stated
        if states_memory(matched[turn].text, memory_of[memory])
        and (heir := supersession.find_heir(rows, memory_of[memory])) is not None
    }


def _make_exchange_hit(
    search_query: Query,
    turns: Sequence[TurnRow],
    where: TurnNeighbours,
    ranked: Ranking,
    passage: Passage | None,
    heir: Memory | None,
) -> Hit:
    own, *others = turns
    start = passage.start if passage else 0

    def cut_matched(limit: int) -> str:
        """Cuts the turn so that it begins with its best passage."""
        if not start or len(own.text) <= limit:
            return display.cut(own.text, limit)
        return "…" + display.cut(own.text[min(start, len(own.text) - limit + 1) :], limit - 1)

    def adjacent(turn: TurnRow) -> Part:
        place = "before" if turn.seq == where.before else "after"
        return Part(
            turn.kind, place, turn.text, lambda limit: prose.excerpt(turn.text, list(search_query.terms), limit=limit)
        )

    parts = [Part(own.kind, "", own.text, cut_matched), *map(adjacent, others)]
    return Hit(
        id=own.uuid,
        kind="turn",
        text=render_exchange(parts, limit=MAX_HIT_CHARACTERS),
        score=ranked.score(own.seq) * (SUPERSEDED_SHARE if heir else 1.0),
        project=own.project,
        session_id=own.session_id,
        source_uuids=tuple(dict.fromkeys(turn.uuid.partition("/")[0] for turn in turns)),
        at=own.at,
        superseded_by=heir.id if heir else "",
        superseded_at=heir.confirmed_at if heir else "",
        answers=max(ranked.cosines.get(turn.seq, 0.0) for turn in turns),
        factors=_round_parts(ranked.parts[own.seq]),
    )


def _sum_parts(parts: Mapping[str, float]) -> float:
    return sum(parts.values())


def _round_parts(parts: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in parts.items() if value}


# --- memories


def _find_memories(
    rows: Rows, search_query: Query, pool: Pool, ranked: Ranking, window: query.Window | None, causes: Sequence[Memory]
) -> list[Hit]:
    """Finds the best memories and their replacements, each ranked by itself or by a turn that states it."""
    scores = pool.memories
    alone = scores.blend() if scores.meaning else ranking.normalised(scores.words)
    best = sorted(alone, key=lambda seq: (-alone[seq], seq))[: hybrid_search.MAX_MEMORIES]
    stating: dict[int, list[int]] = {}
    for stated, turn in search.stating_turns(rows, best, projects=search_query.places) if best else []:
        stating.setdefault(stated, []).append(turn)
    memory_of = memories.by_seqs(rows, best)
    parts: dict[int, dict[str, float]] = {}
    for seq, memory in memory_of.items():
        turn_parts = [ranked.parts[turn] for turn in stating.get(seq, ()) if turn in ranked.parts]
        best_parts: dict[str, float] = max([{"memory": alone[seq]}, *turn_parts], key=_sum_parts)
        parts[seq] = dict(best_parts)
        if window is not None and window.holds(memory.confirmed_at):
            parts[seq] = {**parts[seq], "time": TIME_WEIGHT}
    for memory in causes:
        memory_of[memory.seq], parts[memory.seq] = memory, {**parts.get(memory.seq, {}), "mended": FIX_WEIGHT}
    heirs = {
        seq: heir for seq, old in memory_of.items() if old.superseded_by if (heir := supersession.find_heir(rows, old))
    }
    seen = {
        heir.seq for heir in heirs.values() if search_query.places is None or heir.project_seq in search_query.places
    }
    passing = search_query.filter_seqs(rows, "memory", sorted(seen - memory_of.keys()))
    for seq, heir in heirs.items():
        if heir.seq in passing or heir.seq in memory_of:
            memory_of[heir.seq] = heir
            # What replaced others matches as well as the best of them.
            parts[heir.seq] = max(parts.get(heir.seq, {}), parts[seq], key=_sum_parts)
    roots = search.project_roots(rows)
    return [
        _make_memory_hit(memory, heirs.get(seq), parts[seq], roots.get(memory.project_seq, ""), pool)
        for seq, memory in memory_of.items()
    ]


def _make_memory_hit(memory: Memory, heir: Memory | None, parts: Mapping[str, float], root: str, pool: Pool) -> Hit:
    overtaken = memory.superseded_by or memory.is_refuted
    return Hit(
        id=memory.id,
        kind="memory",
        text=memory.text[:MAX_HIT_CHARACTERS],
        score=sum(parts.values()) * MEMORY_SHARE * (SUPERSEDED_SHARE if overtaken else 1.0),
        project=root,
        session_id=memory.session_id,
        source_uuids=tuple(dict.fromkeys(source.uuid for source in memory.provenance))[:MAX_SOURCES],
        at=memory.confirmed_at,
        confidence=memory.confidence,
        gate=memory.gate,
        authority=memory.authority,
        author=memory.author,
        superseded_by=heir.id if heir else memory.superseded_by,
        superseded_at=heir.confirmed_at if heir else "",
        refuted=memory.is_refuted,
        edited=memory.is_edited,
        scene=memory.scene,
        answers=pool.memories.meaning.get(memory.seq, 0.0),
        factors=_round_parts(parts),
    )


# --- order


def _drop_twins(hits: Sequence[Hit], limit: int) -> list[Hit]:
    """Keeps one hit of each source: a memory and the turn that states it are one answer, which names both."""
    kept: list[Hit] = []
    gists: list[similarity.Gist] = []
    sources: set[str] = set()
    for hit in hits:
        gist, first = similarity.gist(hit.text), set(hit.source_uuids[:1])
        if sources & first or any(similarity.overlap(gist, other) >= TWIN_OVERLAP for other in gists):
            _name_memory(kept, hit)
            continue
        kept.append(hit)
        gists.append(gist)
        sources |= first
        if len(kept) >= limit:
            break
    return kept


def _name_memory(kept: list[Hit], memory: Hit) -> None:
    """Names a memory in the hit of the turn that states it."""
    if memory.kind != "memory":
        return
    for index, hit in enumerate(kept):
        if hit.kind == "turn" and not hit.states and hit.source_uuids[:1] == memory.source_uuids[:1]:
            kept[index] = replace(
                hit, states=memory.id, gate=memory.gate, authority=memory.authority, confidence=memory.confidence
            )


def _vary_sessions(hits: Sequence[Hit]) -> list[Hit]:
    """Reorders the first hits so that they come from several sessions."""
    rest, front = list(hits), list[Hit]()
    counts: Counter[str] = Counter()
    while rest and len(front) < FRONT_HITS:
        best = max(rest, key=lambda hit: hit.score * REPEATED_SHARE ** counts[hit.session_id])
        rest.remove(best)
        front.append(best)
        counts[best.session_id] += 1
    return [*front, *rest]


def _move_replacements_up(hits: Sequence[Hit]) -> list[Hit]:
    """Moves the replacement of a memory before it; nothing else moves."""
    ordered: list[Hit] = []
    for hit in hits:
        before = (at for at, other in enumerate(ordered) if other.superseded_by == hit.id)
        ordered.insert(next(before, len(ordered)), hit)
    return ordered


# --- session summaries


def _find_summaries(rows: Rows, search_query: Query, degraded: list[str]) -> list[Hit]:
    """Finds the sessions whose summary contains a term, best first; none if only memories are searched."""
    filters = search_query.filters
    if filters.selects_memories:
        return []
    try:
        with rows.within(rows.share(LEXICAL_S)):
            scores = ranking.normalised(search_query.search_words(rows, "session"))
    except DeadlineExceeded:
        degraded.append("words: session search stopped at its deadline")
        return []
    digests = search.digests_by_seq(rows, list(scores))
    hits: dict[str, Hit] = {}
    for seq, score in sorted(scores.items(), key=lambda pair: (-pair[1], pair[0])):
        digest = digests[seq]
        in_time = digest.at >= filters.since and (not filters.until or digest.at < filters.until)
        if digest.session_id not in hits and in_time and filters.session in ("", digest.session_id):
            hits[digest.session_id] = Hit(
                id=digest.session_id,
                kind="session",
                text=prose.excerpt(digest.text, list(search_query.terms), limit=MAX_HIT_CHARACTERS),
                score=SUMMARY_SHARE * score,
                project=digest.project,
                session_id=digest.session_id,
                source_uuids=_find_sources(digest, search_query.terms),
                at=digest.at,
                factors={"words": round(score, 4), "summary": SUMMARY_SHARE},
            )
    return list(hits.values())


def _insert_sessions(hits: Sequence[Hit], sessions: Sequence[Hit]) -> list[Hit]:
    """Inserts each session before the first hit that scores less; the hits keep their order."""
    merged = list(hits)
    for session in sessions:
        places = (at for at, hit in enumerate(merged) if hit.kind != "session" and hit.score < session.score)
        merged.insert(next(places, len(merged)), session)
    return merged


def _find_sources(digest: DigestRow, terms: Sequence[str]) -> tuple[str, ...]:
    """Returns the turns of a summary's items, those with most of the terms first."""
    stems = {tokens.stem(term) for term in terms}
    shared: dict[str, int] = {}
    for text, uuid in digest.items:
        shared[uuid] = max(shared.get(uuid, 0), len(stems & ranking.stems(text)))
    return tuple(sorted(shared, key=lambda uuid: -shared[uuid])[:MAX_SOURCES])


# --- neighbours of a memory

#: Relationship -> its worth from the memory it begins at, and from the one it leads to. What replaced a memory is nearly
#: always wanted, what it replaced seldom; a merged memory says nothing that the other does not say.
LINK_WORTH: dict[str, tuple[float, float]] = {
    "superseded_by": (1.0, 0.3),
    "symptom_of": (0.9, 0.9),
    "caused": (0.8, 0.8),
    "renamed_to": (0.7, 0.7),
    "elaborates": (0.7, 0.7),
    "refuted_by": (0.6, 0.6),
    "confirmed_by": (0.5, 0.5),
    "contradicts": (0.5, 0.5),
    "depends_on": (0.5, 0.5),
    "relates_to": (0.5, 0.5),
    "merged_into": (0.0, 0.0),
}
#: Relationships that may be drawn by hand; the others have commands of their own, which see to the consequences.
DRAWN_BY_HAND = tuple(sorted(set(LINK_WORTH) - {"superseded_by", "merged_into"}))
#: Worth of a topic that two memories share (less the more memories share it), and of a session. Both are weak ties: an
#: answer is five times as often as by chance in the session of a hit, twice in its topics.
TOPIC_WORTH = 0.1
SESSION_WORTH = 0.1
SAME_TOPIC = "same_topic"
SAME_SESSION = "same_session"
MAX_NEIGHBOURS = 12
#: Topics and sessions of more memories tie nothing together.
MAX_TOPIC_MEMORIES = 20
MAX_SESSION_MEMORIES = 60

#: A neighbour: its row key, how it is related, the worth of that, 0-1.
Neighbour = tuple[int, str, float]


def rate_topic(members: int) -> float:
    """Returns the worth of a topic that this many memories share."""
    return TOPIC_WORTH / math.log2(max(members, 2))


def rank_neighbours(edges: Iterable[Neighbour]) -> list[Neighbour]:
    """Ranks the neighbours of one memory by their strongest edge; further edges add a little."""
    best: dict[int, tuple[str, float]] = {}
    for seq, relation, worth in sorted(edges, key=lambda edge: (-edge[2], edge[1], edge[0])):
        if worth > 0:
            first, total = best.get(seq, (relation, 0.0))
            best[seq] = first, total + (1 - total) * worth
    nearest = sorted(best.items(), key=lambda pair: (-pair[1][1], pair[0]))[:MAX_NEIGHBOURS]
    return [(seq, relation, round(worth, 4)) for seq, (relation, worth) in nearest]


def find_neighbours(
    rows: Rows, memory_seqs: Sequence[int], *, projects: Sequence[int] | None = None
) -> dict[int, list[Neighbour]]:
    """Returns memory -> its neighbours in `projects` (None: all), the nearest first."""
    edges: dict[int, list[Neighbour]] = {seq: [] for seq in memory_seqs}
    for memory, other, relationship, weight, outwards in memory_graph.list_edges(rows, memory_seqs, projects=projects):
        ahead, back = LINK_WORTH.get(relationship, LINK_WORTH["relates_to"])
        edges[memory].append((other, relationship, weight * (ahead if outwards else back)))
    for memory, other, kind, members in _find_ties(rows, memory_seqs, projects):
        tie = (SAME_TOPIC, rate_topic(members)) if kind == "topic" else (SAME_SESSION, SESSION_WORTH)
        edges[memory].append((other, *tie))
    return {seq: neighbours for seq, some in edges.items() if (neighbours := rank_neighbours(some))}


def find_same_topic(rows: Rows, memory_seq: int, *, projects: Sequence[int] | None) -> list[int]:
    """Returns the memories that share topics with one, those that share most and the rarest first."""
    ties = [tie for tie in _find_ties(rows, [memory_seq], projects) if tie[2] == "topic"]
    return [seq for seq, *_ in rank_neighbours((other, SAME_TOPIC, rate_topic(n)) for _, other, _, n in ties)]


def _find_ties(rows: Rows, seqs: Sequence[int], projects: Sequence[int] | None) -> list[tuple[int, int, str, int]]:
    return memory_graph.list_shared(
        rows, seqs, projects=projects, widest_topic=MAX_TOPIC_MEMORIES, widest_session=MAX_SESSION_MEMORIES
    )
