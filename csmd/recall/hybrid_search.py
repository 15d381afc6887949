"""Finds the passages and memories relevant to a question, by words and vectors.

Each index returns its 200 best rows. Their scores, those of neighbouring passages and of their session select
MAX_CANDIDATES statements; only these are read and scored (ranking.py).
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
from csmd.recall.query import drop_quoted_lines
from csmd.recall.ranking import Match, SearchTerms
from csmd.store import fulltext, memories, passages, search, vectors
from csmd.store.passages import Passage
from csmd.store.search import SearchFilter
from csmd.store.sqlite import Rows
from csmd.text import display, search_terms, similarity, tokens
from csmd.text.claims import mentions_name
from csmd.vocabulary import PROMPTS

#: Encodes a text; returns its vector and the model's name, or raises EmbeddingUnavailable.
Embed = Callable[[str], tuple[bytes, str]]

#: Rows that are read from each index, without and with filters.
POOL_ROWS = 200
FILTERED_POOL_ROWS = 4000
#: Most statements that are read and scored.
MAX_CANDIDATES = 60
MAX_MEMORIES = 30
#: Memories that no candidate passage states; more if there are fewer candidates.
MAX_UNSTATED_MEMORIES = 20
MAX_TERMS = 40
#: Most rows that are counted to tell how rare a term is.
MAX_COUNTED_ROWS = 1000
#: Seconds that a search by words, and one by vectors, may take.
LEXICAL_S = 1.5
VECTOR_S = 1.5
NO_FILTER = SearchFilter()
#: Passages of one session whose row keys differ by at most this are neighbours.
NEIGHBOUR_DISTANCE = 4
#: Added to the selection score of a passage that states one of the best memories.
STATED_BONUS = 0.3
#: Characters of a turn's id that are shown; `csmd show` accepts them.
SHOWN_ID_CHARACTERS = 8
#: Least share of a memory's words in a passage that states it.
MIN_STATED_SHARE = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question for the indexes: its terms, its vector with the model's row key, the visible projects, and filters.

    `literal` is a text that no index contains (search_terms.find_unindexed).
    """

    terms: Sequence[str]
    literal: str = ""
    vector: tuple[bytes, int] | None = None
    places: Sequence[int] | None = None
    filters: SearchFilter = NO_FILTER

    @property
    def limit(self) -> int:
        """Returns the number of rows to read from each index."""
        return POOL_ROWS if self.filters.is_all else FILTERED_POOL_ROWS

    def search_words(self, rows: Rows, kind: str) -> dict[int, float]:
        """Returns the rows of a kind that contain the terms, with the bm25 of their best part."""
        best: dict[int, float] = {}
        for seq, score in fulltext.text_hits(rows, kind, self.terms, projects=self.places, limit=self.limit):
            best[int(seq)] = max(best.get(int(seq), 0.0), float(score))
        return best

    def search_vectors(self, rows: Rows, kind: str) -> dict[int, float]:
        """Returns the rows of a kind nearest to the vector, with the cosine of their nearest part; {} without a vector."""
        nearest: dict[int, float] = {}
        if self.vector is not None:
            vector, model = self.vector
            hits = vectors.find_vector_hits(rows, kind, model, vector, projects=self.places, limit=self.limit)
            for seq, _, _, distance in hits:
                nearest[int(seq)] = max(nearest.get(int(seq), -1.0), ranking.cosine(distance))
        return nearest

    def filter_seqs(self, rows: Rows, kind: str, seqs: Sequence[int]) -> set[int]:
        """Returns the row keys that pass the filters."""
        return set(seqs) if self.filters.is_all or not seqs else search.filter_rows(rows, kind, seqs, self.filters)


@dataclass(slots=True)
class Scores:
    """Scores by row key: the bm25 of words, the cosine of meaning."""

    words: dict[int, float] = field(default_factory=dict)
    meaning: dict[int, float] = field(default_factory=dict)

    @property
    def seqs(self) -> set[int]:
        """Returns the row keys that have a score."""
        return {*self.words, *self.meaning}

    def keep(self, seqs: Collection[int]) -> None:
        """Drops the scores of all other row keys."""
        self.words = {seq: score for seq, score in self.words.items() if seq in seqs}
        self.meaning = {seq: score for seq, score in self.meaning.items() if seq in seqs}

    def add_words(self, scores: Mapping[int, float]) -> None:
        """Raises the scores of words to these."""
        for seq, score in scores.items():
            self.words[seq] = max(self.words.get(seq, 0.0), score)

    def blend(self, words_weight: float = ranking.WORDS_WEIGHT) -> dict[int, float]:
        """Returns the weighted sum of both scores, each normalised."""
        words, meaning = ranking.normalised(self.words), ranking.normalised(self.meaning)
        meaning_weight = 1 - words_weight
        return {seq: words_weight * words.get(seq, 0.0) + meaning_weight * meaning.get(seq, 0.0) for seq in self.seqs}


@dataclass(slots=True)
class Pool:
    """The scores that the indexes returned."""

    passages: Scores = field(default_factory=Scores)
    memories: Scores = field(default_factory=Scores)


@dataclass(frozen=True, kw_only=True)
class ScoredStatement:
    """A statement with its score: a passage, the memory that it states, or a memory without its passage.

    `words` is its bm25, 0 if only meaning matched. An `is_cold` statement is never offered by itself. `replaced` is the text
    of the superseded statement that matched, if this one takes its place.
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
        """Returns the passage's row key and the memory's id, which identify the statement."""
        return (self.passage.seq if self.passage else 0, self.memory.id if self.memory else "")

    @cached_property
    def text(self) -> str:
        """Returns the passage's text, or the memory's if there is no passage or a person edited or pinned the memory."""
        memory, passage = self.memory, self.passage
        if memory is not None and (passage is None or memory.is_edited or memory.pinned):
            return memory.text
        assert passage is not None
        # Lines that a user quotes with `>` are another speaker's.
        return display.squeeze(drop_quoted_lines(passage.text) if passage.kind in PROMPTS else passage.text)

    @property
    def at(self) -> str:
        """Returns the time of the last statement."""
        return max(self.memory.confirmed_at if self.memory else "", self.passage.at if self.passage else "")

    @property
    def is_by_user(self) -> bool:
        """Whether the user stated it."""
        if self.memory:
            return self.memory.is_personal
        return self.passage is not None and self.passage.kind in PROMPTS

    @property
    def session_id(self) -> str:
        """Returns the session in which it was stated."""
        source = self.passage or self.memory
        return source.session_id if source else ""


def passage_id(passage: Passage) -> str:
    """Returns the id of a passage in receipts: its turn and its offset."""
    return f"{passage.uuid}#{passage.start}"


def cite_passage(passage: Passage) -> str:
    """Returns the speaker, day and short turn id of a passage."""
    speaker = f"the {passage.kind}" if passage.kind in ("user", "assistant") else passage.kind
    return f"{speaker}, {display.day_of(passage.at)}, {passage.uuid[:SHOWN_ID_CHARACTERS]}"


def states_memory(text: str, memory: Memory) -> bool:
    """Whether a passage states a memory."""
    return similarity.share(ranking.stems(memory.text), ranking.stems(text)) >= MIN_STATED_SHARE


def expand_terms(rows: Rows, question: str, *, places: Sequence[int] | None) -> list[str]:
    """Returns the question's terms, then the other names, old and new, of the things that it names."""
    terms = search_terms.question_terms(question)
    names = [word for word in question.split() if ranking.names_something(word)][:MAX_TERMS]
    renames = supersession.read_renames(rows, None if places is None else list(places), of=names) if names else {}
    for old, new in renames.items():
        for name, other in ((new, old), (old, new)):
            if mentions_name(question, name):
                terms += [term for term in search_terms.query_terms(other) if term not in terms]
    return terms[:MAX_TERMS]


def embed_query(rows: Rows, question: str, embed: Embed | None, degraded: list[str]) -> tuple[bytes, int] | None:
    """Returns a question's vector and the row key of its model; None without a model, or with the reason in `degraded`."""
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
    """Finds the relevant passages, each with the memory that it states, and memories without a passage; the best first."""
    pool = read_pool(rows, query, degraded)
    blended = pool.memories.blend()
    best = sorted(blended, key=lambda seq: (-blended[seq], seq))[:MAX_MEMORIES]
    stating = _find_stating_passages(rows, best, query.places)
    stating_seqs = {seq for _, seq in stating}
    origins = find_origins(rows, pool, stating_seqs)
    selected = _select_passages(pool.passages, _measure_contexts(pool.passages, origins), stating_seqs)
    stated = {memory for memory, seq in stating if seq in selected}
    unstated = [seq for seq in best if seq not in stated][: max(MAX_UNSTATED_MEMORIES, MAX_CANDIDATES - len(selected))]
    passage_of = passages.by_seqs(rows, selected[: MAX_CANDIDATES - len(unstated)])
    by_seq = memories.by_seqs(rows, sorted({*unstated, *(memory for memory, seq in stating if seq in passage_of)}))
    memory_of = _match_memories(stating, by_seq, passage_of, pool.memories)
    terms = weigh_terms(rows, query, degraded)
    cosines = read_cosines(rows, query, passage_of, pool.passages.meaning)
    contexts = _read_contexts(rows, passage_of, origins, terms, pool.passages.meaning | cosines)
    scored: list[ScoredStatement] = []
    for seq, passage in passage_of.items():
        memory = memory_of.get(seq)
        cosine = max(cosines.get(seq, 0.0), pool.memories.meaning.get(memory.seq, 0.0) if memory else 0.0)
        words = max(pool.passages.words.get(seq, 0.0), pool.memories.words.get(memory.seq, 0.0) if memory else 0.0)
        statement = ScoredStatement(score=0.0, features={}, passage=passage, memory=memory, words=words)
        scored.append(_score(statement, contexts[seq], None if query.vector is None else cosine, terms))
    used = {memory.seq for memory in memory_of.values()}
    for memory in [by_seq[seq] for seq in best if seq in by_seq and seq not in used][
        : MAX_CANDIDATES - len(passage_of)
    ]:
        cosine = pool.memories.meaning.get(memory.seq, 0.0)
        words = pool.memories.words.get(memory.seq, 0.0)
        statement = ScoredStatement(score=0.0, features={}, memory=memory, words=words)
        context = Context(ranking.shared_rarity(memory.text, terms), cosine)
        scored.append(_score(statement, context, None if query.vector is None else cosine, terms))
    return sorted(scored, key=lambda statement: (-statement.score, statement.key))


def _score(statement: ScoredStatement, context: Context, meaning: float | None, terms: SearchTerms) -> ScoredStatement:
    by_user, kept = statement.is_by_user, statement.memory is not None
    match = Match(text=statement.text, by_user=by_user, meaning=meaning, kept=kept, **context._asdict())
    features = ranking.features(match, terms)
    return replace(statement, score=ranking.rate_relevance(features), features=features)


def weigh_terms(rows: Rows, query: Query, degraded: list[str]) -> SearchTerms:
    """Returns the stems of a question with their rarity in the home; a word not counted in time is common."""
    total = passages.last_passage_seq(rows)
    counts = dict.fromkeys((term for term in query.terms if " " not in term), total)
    try:
        # Without its own deadline, which takes a thread: each count stops at MAX_COUNTED_ROWS.
        for term in counts:
            counts[term] = fulltext.count_rows_with(rows, "passage", term, limit=MAX_COUNTED_ROWS)
    except DeadlineExceeded:
        degraded.append("words: counting stopped at the deadline of the read")
    return SearchTerms(
        rarity={tokens.stem(term): ranking.rarity(count, total) for term, count in counts.items()},
        sessions=passages.count_sessions(rows, query.places),
    )


# --- the pool


def read_pool(rows: Rows, query: Query, degraded: list[str]) -> Pool:
    """Reads the scores of a question from the indexes and applies its filters."""
    pool = Pool()
    try:
        with rows.deadline(rows.limit_seconds(LEXICAL_S) if query.terms or query.literal else None):
            if query.literal:
                _search_literal(rows, query, pool, degraded)
            elif query.terms:
                pool.passages.words = query.search_words(rows, "passage")
                pool.memories.words = query.search_words(rows, "memory")
                pool.memories.add_words(query.search_words(rows, "symptom"))
    except DeadlineExceeded:
        degraded.append("words: search stopped at its deadline")
    try:
        with rows.deadline(rows.limit_seconds(VECTOR_S) if query.vector else None):
            pool.passages.meaning = query.search_vectors(rows, "passage")
            pool.memories.meaning = query.search_vectors(rows, "memory")
    except DeadlineExceeded:
        degraded.append("vectors: search stopped at its deadline")
    if not query.filters.is_all:
        may_be_passage = not query.filters.selects_memories
        pool.passages.keep(query.filter_seqs(rows, "passage", [*pool.passages.seqs]) if may_be_passage else ())
        pool.memories.keep(query.filter_seqs(rows, "memory", [*pool.memories.seqs]))
    return pool


def _search_literal(rows: Rows, query: Query, pool: Pool, degraded: list[str]) -> None:
    hits = fulltext.find_literal_hits(rows, query.literal, projects=query.places, limit=query.limit)
    passage_seqs, memory_seqs, is_complete = hits
    pool.passages.words = {seq: 1 / rank for rank, seq in enumerate(passage_seqs, 1)}
    pool.memories.words = {seq: 1 / rank for rank, seq in enumerate(memory_seqs, 1)}
    if not is_complete:
        degraded.append(f"words: {query.literal!r} is not indexed; only the newest turns were searched")


def find_origins(rows: Rows, pool: Pool, others: Collection[int] = ()) -> dict[int, tuple[int, int]]:
    """Returns (turn, session) of each passage of the pool and of `others`."""
    return passages.map_passage_keys(rows, sorted(pool.passages.seqs.union(others)))


# --- selection


def _find_stating_passages(rows: Rows, best: Sequence[int], places: Sequence[int] | None) -> list[tuple[int, int]]:
    """Returns (memory, passage of a turn that states it) of the best memories, by row keys."""
    turns = search.list_stating_turns(rows, best, projects=places) if best else []
    passages_of = passages.passages_of_turns(rows, sorted({turn for _, turn in turns}))
    return [(memory, seq) for memory, turn in turns for seq in passages_of.get(turn, ())]


class Context(NamedTuple):
    """The best score of a passage and its neighbours, and the mean of the best of its session, by words and by meaning."""

    near_shared: float = 0.0
    near_meaning: float = 0.0
    session_shared: float = 0.0
    session_meaning: float = 0.0


def _measure_contexts(
    scores: Scores, origins: Mapping[int, tuple[int, int]], lengths: Mapping[int, int] | None = None
) -> dict[int, Context]:
    """Returns the context of each passage; `origins`: passage -> (turn, session), `lengths`: short session -> passages."""
    sessions: dict[int, list[int]] = {}
    for seq in sorted(origins):
        sessions.setdefault(origins[seq][1], []).append(seq)
    contexts: dict[int, Context] = {}
    for session, seqs in sessions.items():
        length = (lengths or {}).get(session, ranking.BEST_OF_SESSION)
        columns = [[by_seq.get(seq, 0.0) for seq in seqs] for by_seq in (scores.words, scores.meaning)]
        session_means = [ranking.best_mean(values, of=length) for values in columns]
        for seq in seqs:
            near = slice(bisect_left(seqs, seq - NEIGHBOUR_DISTANCE), bisect_right(seqs, seq + NEIGHBOUR_DISTANCE))
            contexts[seq] = Context(*(max(values[near]) for values in columns), *session_means)
    return contexts


def _read_contexts(
    rows: Rows,
    passage_of: Mapping[int, Passage],
    origins: Mapping[int, tuple[int, int]],
    terms: SearchTerms,
    meaning: dict[int, float],
) -> dict[int, Context]:
    """Returns the contexts of passages among those of their sessions, by the rare words in them."""
    sessions = {origins[seq][1] for seq in passage_of}
    shared = {seq: ranking.shared_rarity(passage.text, terms) for seq, passage in passage_of.items()}
    in_sessions = {seq: origin for seq, origin in origins.items() if origin[1] in sessions}
    lengths = passages.count_passages_of_sessions(rows, sessions, limit=ranking.BEST_OF_SESSION)
    return _measure_contexts(Scores(shared, meaning), in_sessions, lengths)


def _select_passages(scores: Scores, contexts: Mapping[int, Context], stating: Collection[int]) -> list[int]:
    """Returns the passages to read: the best by their index scores."""
    own = scores.blend()
    near_words = ranking.normalised({seq: context.near_shared for seq, context in contexts.items()})
    near_meaning = ranking.normalised({seq: context.near_meaning for seq, context in contexts.items()})
    of_sessions = {seq: context.session_meaning or context.session_shared for seq, context in contexts.items()}
    session = ranking.normalised(of_sessions)

    def rate(seq: int) -> float:
        near = ranking.NEAR_WEIGHT * max(near_words[seq], near_meaning[seq])
        return own.get(seq, 0.0) + near + ranking.SESSION_WEIGHT * session[seq] + STATED_BONUS * (seq in stating)

    return sorted(contexts, key=lambda seq: (-rate(seq), seq))[:MAX_CANDIDATES]


def read_cosines(
    rows: Rows, query: Query, seqs: Collection[int], measured_before: Mapping[int, float] | None = None
) -> dict[int, float]:
    """Returns the cosines of passages; `measured_before` supplies those already known. Without a vector, only these."""
    cosines = {seq: measured_before[seq] for seq in seqs if seq in measured_before} if measured_before else {}
    missing = [seq for seq in seqs if seq > 0 and seq not in cosines]
    if query.vector is not None and missing:
        vector, model = query.vector
        measured = vectors.compute_distances(rows, "passage", model, vector, missing)
        cosines |= {seq: ranking.cosine(distance) for seq, distance in measured.items()}
    return cosines


def _match_memories(
    stating: Sequence[tuple[int, int]], by_seq: Mapping[int, Memory], passage_of: Mapping[int, Passage], scores: Scores
) -> dict[int, Memory]:
    """Returns passage -> the memory that it states; of several, the one that matches the question best."""
    match = {seq: scores.meaning.get(seq, 0.0) + scores.words.get(seq, 0.0) / 100 for seq in by_seq}
    memory_of: dict[int, Memory] = {}
    for memory, seq in sorted(stating, key=lambda pair: -match.get(pair[0], 0.0)):
        is_match = memory in by_seq and seq in passage_of and seq not in memory_of
        if is_match and states_memory(passage_of[seq].text, by_seq[memory]):
            memory_of[seq] = by_seq[memory]
    return memory_of
