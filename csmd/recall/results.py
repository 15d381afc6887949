"""Search results: memories, exchanges and session summaries, each once, best first.

A memory is ranked by itself or by the turns that state it, an exchange as exchange_hits.py describes.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from csmd import data, wire
from csmd.briefs import Hit
from csmd.errors import DeadlineExceeded
from csmd.extraction import failure_reports
from csmd.knowledge import Memory
from csmd.memory import supersession
from csmd.recall import exchange_hits, hybrid_search, lens, query, ranking
from csmd.recall.exchange_hits import FIX_WEIGHT, MAX_HIT_CHARACTERS, SUPERSEDED_FACTOR, TIME_WEIGHT, Ranking, sum_parts
from csmd.recall.hybrid_search import LEXICAL_S, NO_FILTER, Embed, Pool, Query
from csmd.store import failures, memories, search
from csmd.store.search import DigestRow
from csmd.store.sqlite import Rows
from csmd.text import prose, search_terms, sentence, similarity, tokens

#: Score factors of memories (their turns say more) and of session summaries.
MEMORY_FACTOR = 0.9
SUMMARY_FACTOR = 0.3
#: Among the first hits, the score factor of each further hit of a session.
FRONT_HITS = 5
REPEATED_SESSION_FACTOR = 0.85
#: Least share of common words of two hits of which one is dropped.
MIN_DUPLICATE_OVERLAP = 0.9
#: The heading of a neighbouring turn in a hit's text (`exchange_hits.render_exchange`).
_NEIGHBOUR = re.compile(r"\n\[(?:before|after)\] ")
#: A hit answers a search from this cosine on, or if it contains this share of the content words.
MIN_CLOSE_COSINE = 0.4
MIN_CLOSE_WORDS = 0.65
#: Least share of the content words of a question, without the verbs that all questions have.
MIN_CLOSE_QUESTION_WORDS = 0.5
_TOPIC_WORDS = data.word_table("topic_words.txt")
_PLAIN_VERBS, _INQUIRY = (frozenset(map(tokens.stem, _TOPIC_WORDS[name])) for name in ("verb", "inquiry"))
#: With at most this many content words everything matches alike: orders and questions get ORDER_FACTOR.
FEW_WORDS = 2
ORDER_FACTOR = 0.6
#: Score factor of a memory that names a thing of the kind that was asked for.
NAMED_FACTOR = 0.9
#: The stem of each word for a kind of thing -> the names of things of that kind.
_NAMES: dict[str, frozenset[str]] = {
    tokens.stem(word): names for words, names in data.word_table("kind_words.txt").items() for word in words.split()
}
_KNOWN_NAMES = frozenset(tokens.stem(name) for names in _NAMES.values() for name in names)
#: Fewest letters of the stem of a name that may be short for a longer one.
MIN_SHORT_NAME = 4
#: Most turns cited as sources of a memory or session summary.
MAX_SOURCES = 4


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
    """Returns the best hits, and a message for each search that was cut short.

    If `now` is None, dates in the question are ignored. Hits in the lens of the directory `asking` rank higher.
    """
    question = wire.clean(question)
    degraded: list[str] = []
    search_query = _make_query(rows, question, projects, within)
    weight_of = lens.make_weight(rows, lens.find_lens(rows, asking))
    summaries: list[Hit] = []
    if kind in ("all", "session"):
        summaries = _apply_lens(_find_summaries(rows, search_query, degraded), weight_of)
    if kind == "session":
        return summaries[:limit], sorted(set(degraded))
    search_query = replace(search_query, vector=hybrid_search.embed_query(rows, question, embed, degraded))
    pool = hybrid_search.read_pool(rows, search_query, degraded)
    _add_named_things(rows, search_query, pool)
    window = query.find_window(question, now) if now else None
    fixes = _find_fixes(rows, question, search_query)
    ranked = exchange_hits.rank_turns(rows, pool)
    hits: list[Hit] = []
    # Memories first: a memory takes its turns' scores as they are before find_exchanges adds those of adjacent turns.
    if kind != "turn":
        hits += _find_memories(rows, search_query, pool, ranked, window, fixes.causes)
    if kind != "memory":
        hits += exchange_hits.find_exchanges(rows, search_query, ranked, window, fixes.turns, limit * 3)
    if len(tokens.content_stems(question)) <= FEW_WORDS:
        hits = [replace(hit, score=hit.score * ORDER_FACTOR) if _is_order(hit) else hit for hit in hits]
    hits = _apply_lens(sorted(hits, key=lambda hit: (-hit.score, hit.at, hit.id)), weight_of)
    return _order_hits(_drop_duplicates(hits, limit * 3), summaries)[:limit], sorted(set(degraded))


def _make_query(rows: Rows, question: str, projects: Sequence[int] | None, filters: search.SearchFilter) -> Query:
    terms = [*hybrid_search.expand_terms(rows, question, places=projects), *query.find_literals(question)]
    terms = list(dict.fromkeys(terms))[: hybrid_search.MAX_TERMS]
    literal = search_terms.find_unindexed(question)
    return Query(terms=terms, literal=literal, places=projects, filters=filters)


def _apply_lens(hits: Sequence[Hit], weight_of: lens.WeightOf | None) -> list[Hit]:
    """Returns the hits sorted by their score under a lens."""
    if weight_of is None:
        return list(hits)
    weighted: list[Hit] = []
    for hit in hits:
        weight = weight_of(hit.text, hit.project, hit.session_id, hit.id)
        weighted.append(replace(hit, score=hit.score * weight, factors={**hit.factors, "lens": weight}))
    return sorted(weighted, key=lambda hit: -hit.score)


def _add_named_things(rows: Rows, search_query: Query, pool: Pool) -> None:
    """Adds the memories that name a thing of the kind in the question: "database" finds PostgreSQL."""
    names = tuple(dict.fromkeys(name for term in search_query.terms for name in _NAMES.get(tokens.stem(term), ())))
    scores = replace(search_query, terms=names).search_words(rows, "memory") if names else {}
    factor = NAMED_FACTOR * max(pool.memories.words.values(), default=1.0) / max(scores.values(), default=1.0)
    passing = search_query.filter_seqs(rows, "memory", sorted(scores))
    pool.memories.add_words({seq: factor * scores[seq] for seq in passing})


def _is_order(hit: Hit) -> bool:
    """Whether a hit only orders, asks or agrees, and states nothing lasting."""
    text = _matched_text(hit)
    speaker, colon, words = text.partition(": ")
    if hit.kind == "session" or (hit.kind == "turn" and colon and speaker not in ("user", "relayed")):
        return False
    sentences = prose.split_sentences(words if hit.kind == "turn" and colon else text)
    parsed = list(map(sentence.parse, sentences))
    return bool(parsed) and all(part.kind in ("orders", "asks", "assents") and not part.lasting for part in parsed)


def is_close(hits: Sequence[Hit], question: str) -> bool:
    """Whether a hit is near the question in meaning or contains most of its content words, at least two of a question."""
    if search_terms.find_unindexed(question):
        return bool(hits)
    words = tokens.content_stems(question)
    every = tokens.words_of(question)
    is_question = _is_question(question)
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
        return is_about and _share_of_words(hit, words) >= min_share and not is_asking

    return any(hit.answers >= MIN_CLOSE_COSINE or says_most(hit) for hit in hits)


def _matched_text(hit: Hit) -> str:
    """Returns the text of the matched turn, without its neighbours."""
    return _NEIGHBOUR.split(hit.text, maxsplit=1)[0]


def _share_of_words(hit: Hit, words: frozenset[str]) -> float:
    """Returns the share of these words that a hit contains, in part ("Postgres" of PostgreSQL), or names a thing of."""
    stems = tokens.content_stems(_matched_text(hit))
    named = {
        word
        for word in words - stems
        if not stems.isdisjoint(map(tokens.stem, _NAMES.get(word, ())))
        or any(_is_short_for(word, name) for name in stems)
    }
    return similarity.share(words, stems | named)


def _is_short_for(word: str, name: str) -> bool:
    """Whether a stem begins the stem of a known name; longer words that only begin alike are other words."""
    return len(word) >= MIN_SHORT_NAME and name in _KNOWN_NAMES and name.startswith(word)


def _is_question(text: str) -> bool:
    parsed = sentence.parse(text)
    return parsed.kind == "asks" or parsed.opens_with_question or sentence.ends_with_question(text)


class Fixes(NamedTuple):
    """The turns that fixed a failure, and the memories of its cause."""

    turns: list[int]
    causes: list[Memory]


def _find_fixes(rows: Rows, question: str, search_query: Query) -> Fixes:
    """Finds the fixes of a pasted failure."""
    pasted = failure_reports.find_pasted_error(question, at="", uuid="")
    if pasted is None:
        return Fixes([], [])
    places = search_query.places
    same = failures.find_same_message(rows, pasted.message, other_than=pasted.fingerprint, projects=places)
    errors = [*filter(None, (failures.find_error(rows, mark, places) for mark in (same, pasted.fingerprint) if mark))]
    turns = search.turns_of_uuids(rows, [error.fixed_uuid for error in errors if error.fixed_uuid])
    causes = [*filter(None, (memories.by_id(rows, error.memory_id) for error in errors if error.memory_id))]
    return Fixes(sorted(turns.values()), [cause for cause in causes if places is None or cause.project_seq in places])


# --- memories


def _find_memories(
    rows: Rows, search_query: Query, pool: Pool, ranked: Ranking, window: query.Window | None, causes: Sequence[Memory]
) -> list[Hit]:
    """Finds the best memories, the causes of a failure, and their replacements."""
    parts = _score_memories(rows, search_query, pool, ranked)
    memory_of = memories.by_seqs(rows, list(parts))
    parts = {seq: parts[seq] for seq in memory_of}
    if window is not None:
        for seq, memory in memory_of.items():
            if window.holds(memory.confirmed_at):
                parts[seq]["time"] = TIME_WEIGHT
    for memory in causes:
        memory_of[memory.seq] = memory
        parts.setdefault(memory.seq, {})["mended"] = FIX_WEIGHT
    replacements = _add_replacements(rows, search_query, memory_of, parts)
    roots = search.map_project_roots(rows)
    return [
        _make_memory_hit(memory, replacements.get(seq), parts[seq], roots.get(memory.project_seq, ""), pool)
        for seq, memory in memory_of.items()
    ]


def _score_memories(rows: Rows, search_query: Query, pool: Pool, ranked: Ranking) -> dict[int, dict[str, float]]:
    """Returns the parts of the scores of the best memories, each by itself or by a turn that states it."""
    scores = pool.memories
    own_scores = scores.blend() if scores.meaning else ranking.normalised(scores.words)
    best = sorted(own_scores, key=lambda seq: (-own_scores[seq], seq))[: hybrid_search.MAX_MEMORIES]
    candidates = {seq: [{"memory": own_scores[seq]}] for seq in best}
    for seq, turn in search.list_stating_turns(rows, best, projects=search_query.places) if best else []:
        if turn in ranked.parts:
            candidates[seq].append(dict(ranked.parts[turn]))
    return {seq: max(of_memory, key=sum_parts) for seq, of_memory in candidates.items()}


def _add_replacements(
    rows: Rows, search_query: Query, memory_of: dict[int, Memory], parts: dict[int, dict[str, float]]
) -> dict[int, Memory]:
    """Adds the replacements of superseded memories that pass the filters; returns all of them by the replaced memory."""
    superseded = {seq: memory for seq, memory in memory_of.items() if memory.superseded_by}
    heirs = {seq: supersession.find_replacement(rows, memory) for seq, memory in superseded.items()}
    replacements = {seq: heir for seq, heir in heirs.items() if heir is not None}
    places = search_query.places
    visible = {heir.seq for heir in replacements.values() if places is None or heir.project_seq in places}
    passing = search_query.filter_seqs(rows, "memory", sorted(visible - memory_of.keys()))
    for seq, heir in replacements.items():
        if heir.seq in passing or heir.seq in memory_of:
            memory_of[heir.seq] = heir
            # A replacement scores at least as high as the best memory it replaced.
            parts[heir.seq] = max(parts.get(heir.seq, {}), parts[seq], key=sum_parts)
    return replacements


def _make_memory_hit(memory: Memory, heir: Memory | None, parts: Mapping[str, float], root: str, pool: Pool) -> Hit:
    is_outdated = memory.superseded_by or memory.is_refuted
    return Hit(
        id=memory.id,
        kind="memory",
        text=memory.text[:MAX_HIT_CHARACTERS],
        score=sum_parts(parts) * MEMORY_FACTOR * (SUPERSEDED_FACTOR if is_outdated else 1.0),
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
        factors=exchange_hits.round_parts(parts),
    )


# --- order


def _order_hits(hits: Sequence[Hit], summaries: Sequence[Hit]) -> list[Hit]:
    """Varies the sessions of the first hits, moves replacements up and inserts the summaries."""
    ordered: list[Hit] = []
    for hit in _vary_sessions(hits):
        replaced = (index for index, other in enumerate(ordered) if other.superseded_by == hit.id)
        ordered.insert(next(replaced, len(ordered)), hit)
    ordered = _insert_sessions(ordered, summaries)
    # A hit has at least the score of the hits after it.
    scores = [*itertools.accumulate((hit.score for hit in reversed(ordered)), max)][::-1]
    return [replace(hit, score=score) for hit, score in zip(ordered, scores, strict=True)]


def _insert_sessions(hits: Sequence[Hit], sessions: Sequence[Hit]) -> list[Hit]:
    """Inserts each session before the first hit that scores less; the hits keep their order."""
    merged = list(hits)
    for session in sessions:
        less = (index for index, hit in enumerate(merged) if hit.kind != "session" and hit.score < session.score)
        merged.insert(next(less, len(merged)), session)
    return merged


def _drop_duplicates(hits: Sequence[Hit], limit: int) -> list[Hit]:
    """Keeps one hit of each source: a memory and the turn that states it are one answer, which links both."""
    distinct: list[Hit] = []
    gists: list[similarity.Gist] = []
    sources: set[str] = set()
    for hit in hits:
        gist = similarity.gist(hit.text)
        first = set(hit.source_uuids[:1])
        if sources & first or any(similarity.overlap(gist, other) >= MIN_DUPLICATE_OVERLAP for other in gists):
            _link_memory(distinct, hit)
            continue
        distinct.append(hit)
        gists.append(gist)
        sources |= first
        if len(distinct) >= limit:
            break
    return distinct


def _link_memory(hits: list[Hit], memory: Hit) -> None:
    """Links a memory from the hit of the turn that states it."""
    if memory.kind != "memory":
        return
    for index, hit in enumerate(hits):
        if hit.kind == "turn" and not hit.states and hit.source_uuids[:1] == memory.source_uuids[:1]:
            hits[index] = replace(
                hit, states=memory.id, gate=memory.gate, authority=memory.authority, confidence=memory.confidence
            )


def _vary_sessions(hits: Sequence[Hit]) -> list[Hit]:
    """Reorders the first hits so that they come from several sessions."""
    rest = list(hits)
    front: list[Hit] = []
    counts: Counter[str] = Counter()
    while rest and len(front) < FRONT_HITS:
        best = max(rest, key=lambda hit: hit.score * REPEATED_SESSION_FACTOR ** counts[hit.session_id])
        rest.remove(best)
        front.append(best)
        counts[best.session_id] += 1
    return [*front, *rest]


# --- session summaries


def _find_summaries(rows: Rows, search_query: Query, degraded: list[str]) -> list[Hit]:
    """Finds the sessions whose summary contains a term, best first; none if only memories are searched."""
    filters = search_query.filters
    if filters.selects_memories:
        return []
    try:
        with rows.deadline(rows.limit_seconds(LEXICAL_S)):
            scores = ranking.normalised(search_query.search_words(rows, "session"))
    except DeadlineExceeded:
        degraded.append("words: session search stopped at its deadline")
        return []
    digests = search.map_digests_by_seq(rows, list(scores))
    hits: dict[str, Hit] = {}
    for seq, score in sorted(scores.items(), key=lambda pair: (-pair[1], pair[0])):
        digest = digests[seq]
        in_time = digest.at >= filters.since and (not filters.until or digest.at < filters.until)
        if digest.session_id not in hits and in_time and filters.session in ("", digest.session_id):
            hits[digest.session_id] = Hit(
                id=digest.session_id,
                kind="session",
                text=prose.excerpt(digest.text, list(search_query.terms), limit=MAX_HIT_CHARACTERS),
                score=SUMMARY_FACTOR * score,
                project=digest.project,
                session_id=digest.session_id,
                source_uuids=_find_sources(digest, search_query.terms),
                at=digest.at,
                factors={"words": round(score, 4), "summary": SUMMARY_FACTOR},
            )
    return list(hits.values())


def _find_sources(digest: DigestRow, terms: Sequence[str]) -> tuple[str, ...]:
    """Returns the turns of a summary's items, those with most of the terms first."""
    stems = {tokens.stem(term) for term in terms}
    shared: dict[str, int] = {}
    for text, uuid in digest.items:
        shared[uuid] = max(shared.get(uuid, 0), len(stems & ranking.stems(text)))
    return tuple(sorted(shared, key=lambda uuid: -shared[uuid])[:MAX_SOURCES])
