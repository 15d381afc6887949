"""Passages and memories that bear on a question, by words and vectors.

Each index is asked once, for the 200 best by words and the 200 nearest by meaning. What these lists tell of a passage, of
the passages next to it and of its session thins them out to CANDIDATES, which alone are read and scored (ranking.py).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from csmd.errors import DeadlineExceeded, EmbeddingUnavailable
from csmd.knowledge import Memory
from csmd.memory import supersession
from csmd.recall import ranking
from csmd.recall.query import unquoted
from csmd.recall.ranking import Match, SearchTerms
from csmd.store import fulltext, memories, passages, search, vectors
from csmd.store.passages import Passage
from csmd.store.search import SearchFilter
from csmd.store.sqlite import Rows
from csmd.text import display, search_terms, similarity, tokens
from csmd.text.renames import mentions_name
from csmd.vocabulary import PROMPTS

#: A text to its vector and the model's name; raises EmbeddingUnavailable.
Embed = Callable[[str], tuple[bytes, str]]

#: Rows taken from each index; of a search with filters, rows that are looked through for those that pass.
POOL, WIDE_POOL = 200, 4000
#: Most statements that are read and scored, best memories, and memories that no candidate passage states.
CANDIDATES, MEMORIES, ALONE = 60, 30, 20
#: Most terms of a search, and up to how many rows that hold one are counted.
MAX_TERMS, COUNTED = 40, 1000
#: Seconds for the search by words, and for that by meaning.
LEXICAL_S = VECTOR_S = 1.5
#: A passage states a memory when it holds this share of its words.
STATES = 0.6
ALL = SearchFilter()
#: Characters of a turn's id that are shown; `csmd show` takes them.
SHOWN_ID = 8
#: Passages of one session whose row keys differ by at most this count as next to each other.
NEXT_TO = 4
#: What a passage that states one of the best memories gains when the pool is thinned out.
STATED_BONUS = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question as the indexes are asked: its terms, its vector with the model's row key, and what may be seen.

    `literal` is what no index holds (search_terms.unindexed).
    """

    terms: Sequence[str]
    literal: str = ""
    vector: tuple[bytes, int] | None = None
    places: Sequence[int] | None = None
    narrow: SearchFilter = ALL

    @property
    def pool(self) -> int:
        """How many rows are taken from each index."""
        return POOL if self.narrow.is_all else WIDE_POOL

    def by_words(self, rows: Rows, kind: str) -> dict[int, float]:
        """The rows of a kind that hold the terms, with the bm25 of their best part."""
        best: dict[int, float] = {}
        for seq, score in fulltext.text_hits(rows, kind, self.terms, projects=self.places, limit=self.pool):
            best[int(seq)] = max(best.get(int(seq), 0.0), float(score))
        return best

    def by_meaning(self, rows: Rows, kind: str) -> dict[int, float]:
        """The rows of a kind nearest to the vector, with the cosine of their nearest part; none without a vector."""
        nearest: dict[int, float] = {}
        if self.vector is not None:
            vector, model = self.vector
            hits = vectors.vector_hits(rows, kind, model, vector, projects=self.places, limit=self.pool)
            for seq, _, _, distance in hits:
                nearest[int(seq)] = max(nearest.get(int(seq), -1.0), ranking.cosine(distance))
        return nearest

    def filtered(self, rows: Rows, kind: str, seqs: Sequence[int]) -> set[int]:
        """Those of some rows that the filters of the search let in."""
        return set(seqs) if self.narrow.is_all or not seqs else search.filter_rows(rows, kind, seqs, self.narrow)


@dataclass(frozen=True, kw_only=True)
class ScoredStatement:
    """A statement with its score: a passage, the memory that it states, or a memory whose passage is gone.

    `words` is its bm25, 0 where its words did not find it. An `is_cold` statement is never offered by itself. `replaced` is
    the text of the superseded statement that the search matched, if this one takes its place.
    """

    score: float
    features: Mapping[str, float]
    passage: Passage | None = None
    memory: Memory | None = None
    words: float = 0.0
    is_cold: bool = False
    replaced: str = ""

    @property
    def key(self) -> tuple[int, str]:
        """The passage's row key and the memory's id, which identify the statement."""
        return (self.passage.seq if self.passage else 0, self.memory.id if self.memory else "")

    @cached_property
    def text(self) -> str:
        """Its words: the memory's own where a person edited or pinned it."""
        memory, passage = self.memory, self.passage
        if memory is not None and (passage is None or memory.is_edited or memory.pinned):
            return memory.text
        assert passage is not None
        # The lines that a user quotes with `>` are somebody else's.
        return display.squeeze(unquoted(passage.text) if passage.kind in PROMPTS else passage.text)

    @property
    def at(self) -> str:
        """When it was said last."""
        return max(self.memory.confirmed_at if self.memory else "", self.passage.at if self.passage else "")

    @property
    def is_by_user(self) -> bool:
        """Whether the user said it."""
        return self.memory.is_personal if self.memory else self.passage is not None and self.passage.kind in PROMPTS

    @property
    def session_id(self) -> str:
        """The session that said it."""
        return self.passage.session_id if self.passage else self.memory.session_id if self.memory else ""


def passage_id(passage: Passage) -> str:
    """The id of a passage in receipts: its turn and where it begins in it."""
    return f"{passage.uuid}#{passage.start}"


def cite_passage(passage: Passage) -> str:
    """Who said a passage, when, and an id to read on."""
    speaker = f"the {passage.kind}" if passage.kind in ("user", "assistant") else passage.kind
    return f"{speaker}, {display.day_of(passage.at)}, {passage.uuid[:SHOWN_ID]}"


@dataclass(slots=True)
class Pool:
    """What the indexes returned, by row key: bm25 of words, cosine of meaning."""

    words: dict[int, float] = field(default_factory=dict)
    meaning: dict[int, float] = field(default_factory=dict)
    memory_words: dict[int, float] = field(default_factory=dict)
    memory_meaning: dict[int, float] = field(default_factory=dict)


def expand_terms(rows: Rows, question: str, *, places: Sequence[int] | None) -> list[str]:
    """The terms to search for: the question's own, then the other names, old and new, of what it names."""
    terms = search_terms.question_terms(question)
    named = [word for word in question.split() if ranking.names_something(word)][:MAX_TERMS]
    renames = supersession.read_renames(rows, None if places is None else list(places), of=named) if named else {}
    for old, new in renames.items():
        for name, other in ((new, old), (old, new)):
            if mentions_name(question, name):
                terms += [term for term in search_terms.query_terms(other) if term not in terms]
    return terms[:MAX_TERMS]


def embed_query(rows: Rows, question: str, embed: Embed | None, degraded: list[str]) -> tuple[bytes, int] | None:
    """A question's vector and the row key of its model; None without a model, or with the reason in `degraded`."""
    if embed is None:
        return None
    try:
        vector, name = embed(question)
    except EmbeddingUnavailable as error:
        degraded.append(f"vectors: {error.what}")
        return None
    model = vectors.find_model(rows, name)
    if model is None:
        degraded.append("vectors: none are stored yet")
        return None
    return vector, model


def find(rows: Rows, query: Query, degraded: list[str]) -> list[ScoredStatement]:
    """What bears on a question, best first: passages with the memories that they state, and memories without a passage."""
    pool = read_pool(rows, query, degraded)
    best = _best(pool.memory_words, pool.memory_meaning, MEMORIES)
    stating = _find_stating(rows, best, query.places)
    origins = find_origins(rows, pool, {seq for _, seq in stating})
    chosen = _thin_out(pool, _measure_context(pool.words, pool.meaning, origins), {seq for _, seq in stating})
    stated = {memory for memory, seq in stating if seq in set(chosen)}
    alone = [seq for seq in best if seq not in stated][: max(ALONE, CANDIDATES - len(chosen))]
    chosen = chosen[: CANDIDATES - len(alone)]
    read = passages.by_seqs(rows, chosen)
    cosines = read_cosines(rows, query, read, pool.meaning)
    by_seq = memories.by_seqs(rows, sorted({*alone, *(memory for memory, seq in stating if seq in read)}))
    memory_of = _match_memories(stating, by_seq, read, pool)
    terms = weigh_terms(rows, query, degraded)
    shared = {seq: ranking.shared_rarity(passage.text, terms) for seq, passage in read.items()}
    sessions = {origins[seq][1] for seq in read}
    lengths = passages.passage_lengths(rows, sessions, most=ranking.BEST_OF_SESSION)
    in_sessions = {seq: origin for seq, origin in origins.items() if origin[1] in sessions}
    contexts = _measure_context(shared, pool.meaning | cosines, in_sessions, lengths)

    def score(passage: Passage | None, memory: Memory | None, context: Context, cosine: float) -> ScoredStatement:
        by_words = pool.words.get(passage.seq, 0.0) if passage else 0.0
        words = max(by_words, pool.memory_words.get(memory.seq, 0.0) if memory else 0.0)
        statement = ScoredStatement(score=0.0, features={}, passage=passage, memory=memory, words=words)
        match = Match(
            text=statement.text,
            by_user=statement.is_by_user,
            meaning=None if query.vector is None else cosine,
            kept=memory is not None,
            **context._asdict(),
        )
        features = ranking.features(match, terms)
        return replace(statement, score=ranking.bearing(features), features=features)

    scored: list[ScoredStatement] = []
    for seq, passage in read.items():
        memory = memory_of.get(seq)
        cosine = max(cosines.get(seq, 0.0), pool.memory_meaning.get(memory.seq, 0.0) if memory else 0.0)
        scored.append(score(passage, memory, contexts[seq], cosine))
    used = {memory.seq for memory in memory_of.values()}
    for memory in [by_seq[seq] for seq in best if seq in by_seq and seq not in used][: CANDIDATES - len(read)]:
        cosine = pool.memory_meaning.get(memory.seq, 0.0)
        scored.append(score(None, memory, Context(ranking.shared_rarity(memory.text, terms), cosine), cosine))
    return sorted(scored, key=lambda statement: (-statement.score, statement.key))


def weigh_terms(rows: Rows, query: Query, degraded: list[str]) -> SearchTerms:
    """The stems of a question with how rare each is in the home; a word that was not counted in time is common."""
    total = passages.last_passage_seq(rows)
    counts = dict.fromkeys((term for term in query.terms if " " not in term), total)
    try:
        for term in counts:  # at most COUNTED rows each: they need no deadline of their own, which is a thread
            counts[term] = fulltext.count_rows_with(rows, "passage", term, most=COUNTED)
    except DeadlineExceeded:
        degraded.append("words: counting stopped at the deadline of the read")
    return SearchTerms(
        rarity={tokens.stem(term): ranking.rarity(count, total) for term, count in counts.items()},
        sessions=passages.count_sessions(rows, query.places),
    )


# --- the pool


def read_pool(rows: Rows, query: Query, degraded: list[str]) -> Pool:
    """What the indexes return for a question, within the limits of the search."""
    pool = Pool()
    try:
        with rows.within(rows.share(LEXICAL_S) if query.terms or query.literal else None):
            if query.literal:
                stating_passages, stated, is_whole = fulltext.literal_hits(
                    rows, query.literal, projects=query.places, limit=query.pool
                )
                pool.words, pool.memory_words = _by_rank(stating_passages), _by_rank(stated)
                if not is_whole:
                    degraded.append(
                        f"words: {query.literal!r} is looked for in the newest turns only, no index holds it"
                    )
            elif query.terms:
                pool.words = query.by_words(rows, "passage")
                pool.memory_words = query.by_words(rows, "memory")
                for seq, score in query.by_words(rows, "symptom").items():
                    pool.memory_words[seq] = max(pool.memory_words.get(seq, 0.0), score)
    except DeadlineExceeded:
        degraded.append("words: search stopped at its deadline")
    try:
        with rows.within(rows.share(VECTOR_S) if query.vector else None):
            pool.meaning = query.by_meaning(rows, "passage")
            pool.memory_meaning = query.by_meaning(rows, "memory")
    except DeadlineExceeded:
        degraded.append("vectors: search stopped at its deadline")
    if not query.narrow.is_all:
        only_memories = query.narrow.gate or query.narrow.category or query.narrow.type
        seqs = set() if only_memories else query.filtered(rows, "passage", [*{*pool.words, *pool.meaning}])
        memory_seqs = query.filtered(rows, "memory", [*{*pool.memory_words, *pool.memory_meaning}])
        kept = ((pool.words, seqs), (pool.meaning, seqs), (pool.memory_words, memory_seqs))
        for scores, passing in (*kept, (pool.memory_meaning, memory_seqs)):
            for seq in scores.keys() - passing:
                del scores[seq]
    return pool


def _by_rank(seqs: Sequence[int]) -> dict[int, float]:
    """Scores that keep an order."""
    return {seq: 1 / rank for rank, seq in enumerate(seqs, 1)}


def find_origins(rows: Rows, pool: Pool, others: Collection[int] = ()) -> dict[int, tuple[int, int]]:
    """(turn, session) of each passage of the pool and of some others."""
    return passages.passage_places(rows, sorted({*pool.words, *pool.meaning, *others}))


# --- thinning out


def blend(words: Mapping[int, float], meaning: Mapping[int, float]) -> dict[int, float]:
    """The weighted sum of both scores, each normalised."""
    by_words, by_meaning = ranking.normalised(words), ranking.normalised(meaning)
    return {
        seq: ranking.WORDS_SHARE * by_words.get(seq, 0.0) + (1 - ranking.WORDS_SHARE) * by_meaning.get(seq, 0.0)
        for seq in {*words, *meaning}
    }


def _best(words: Mapping[int, float], meaning: Mapping[int, float], most: int) -> list[int]:
    scores = blend(words, meaning)
    return sorted(scores, key=lambda seq: (-scores[seq], seq))[:most]


def _find_stating(rows: Rows, best: Sequence[int], places: Sequence[int] | None) -> list[tuple[int, int]]:
    """(memory, passage of a turn that states it) of the best memories, by row keys."""
    turns = search.stating_turns(rows, best, projects=places) if best else []
    passages_of = passages.passages_of_turns(rows, sorted({turn for _, turn in turns}))
    return [(memory, seq) for memory, turn in turns for seq in passages_of.get(turn, ())]


class Context(NamedTuple):
    """The best of a passage and those next to it, and the mean of the best of its session, by words and by meaning."""

    near_shared: float = 0.0
    near_meaning: float = 0.0
    session_shared: float = 0.0
    session_meaning: float = 0.0


def _measure_context(
    words: Mapping[int, float],
    meaning: Mapping[int, float],
    origins: Mapping[int, tuple[int, int]],
    lengths: Mapping[int, int] | None = None,
) -> dict[int, Context]:
    """The context of each passage among these; `origins` are (turn, session) by passage, `lengths` those of short sessions."""
    sessions: dict[int, list[int]] = {}
    for seq in sorted(origins):
        sessions.setdefault(origins[seq][1], []).append(seq)
    contexts: dict[int, Context] = {}
    for session, seqs in sessions.items():
        length = (lengths or {}).get(session, ranking.BEST_OF_SESSION)
        scores = [[by.get(seq, 0.0) for seq in seqs] for by in (words, meaning)]
        of_session = [ranking.best_mean(values, of=length) for values in scores]
        for seq in seqs:
            near = slice(bisect_left(seqs, seq - NEXT_TO), bisect_right(seqs, seq + NEXT_TO))
            contexts[seq] = Context(*(max(values[near]) for values in scores), *of_session)
    return contexts


def _thin_out(pool: Pool, contexts: Mapping[int, Context], stating: set[int]) -> list[int]:
    """The passages that are read: the best by what the indexes tell of them."""
    own = blend(pool.words, pool.meaning)
    near_words = ranking.normalised({seq: context.near_shared for seq, context in contexts.items()})
    near_meaning = ranking.normalised({seq: context.near_meaning for seq, context in contexts.items()})
    session = ranking.normalised(
        {seq: context.session_meaning or context.session_shared for seq, context in contexts.items()}
    )

    def worth(seq: int) -> float:
        near = ranking.NEAR_SHARE * max(near_words[seq], near_meaning[seq])
        return own.get(seq, 0.0) + near + ranking.SESSION_SHARE * session[seq] + STATED_BONUS * (seq in stating)

    return sorted(contexts, key=lambda seq: (-worth(seq), seq))[:CANDIDATES]


def read_cosines(
    rows: Rows, query: Query, read: Collection[int], measured_before: Mapping[int, float] | None = None
) -> dict[int, float]:
    """The cosine of each of some passages (row keys), of those that are not `known` as well; none without a vector."""
    cosines = {seq: measured_before[seq] for seq in read if seq in measured_before} if measured_before else {}
    missing = [seq for seq in read if seq > 0 and seq not in cosines]
    if query.vector is not None and missing:
        vector, model = query.vector
        measured = vectors.distances(rows, "passage", model, vector, missing)
        cosines |= {seq: ranking.cosine(distance) for seq, distance in measured.items()}
    return cosines


def _match_memories(
    stating: Sequence[tuple[int, int]], by_seq: Mapping[int, Memory], read: Mapping[int, Passage], pool: Pool
) -> dict[int, Memory]:
    """Passage -> the memory that it states, the one that matches the question best."""
    worth = {seq: pool.memory_meaning.get(seq, 0.0) + pool.memory_words.get(seq, 0.0) / 100 for seq in by_seq}
    matched: dict[int, Memory] = {}
    for memory, seq in sorted(stating, key=lambda pair: -worth.get(pair[0], 0.0)):
        if memory in by_seq and seq in read and seq not in matched and states_memory(read[seq].text, by_seq[memory]):
            matched[seq] = by_seq[memory]
    return matched


def states_memory(text: str, memory: Memory) -> bool:
    """Whether a passage holds what a memory says."""
    stems = ranking.stems(memory.text)
    return similarity.share(stems, ranking.stems(text)) >= STATES
