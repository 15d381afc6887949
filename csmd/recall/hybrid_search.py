"""Passages and memories that bear on a question, by words and vectors.

Each index is asked once: 200 of the best by words, 200 of the nearest by meaning. What these lists tell of a passage, of
those beside it and of its session thins them out to CANDIDATES, which alone are read and scored (ranking.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from csmd.errors import DeadlineExceeded, EmbeddingUnavailable
from csmd.memory import contradiction, supersession
from csmd.model import PROMPTS, Memory
from csmd.recall import ranking
from csmd.recall.query import unquoted
from csmd.recall.ranking import Asked, Match
from csmd.store import fulltext, memories, passages, search, vectors
from csmd.store import search as narrowing
from csmd.store.passages import Passage
from csmd.store.search import SearchFilter, TurnRow
from csmd.store.sqlite import Row, Rows
from csmd.text import display, prose, tokens

#: A text to its vector and the model's name; raises EmbeddingUnavailable.
Embed = Callable[[str], tuple[bytes, str]]

#: How many rows of each list are taken; of a search with limits, how many are looked through for what they let in.
POOL, WIDE_POOL = 200, 4000
#: How many statements are read and scored; of the best memories those that no passage among these states are ALONE at most.
CANDIDATES, MEMORIES, ALONE = 60, 30, 20
#: Words that are looked for, and up to how many rows that hold one are counted.
MOST_TERMS, COUNTED = 40, 1000
#: How long words may be looked for, and meaning.
LEXICAL_S = VECTOR_S = 1.5
#: A memory stands in a passage that holds so many of its words.
STATES = 0.6
ALL = SearchFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is asked as the indexes are asked: its terms, its vector with the model's row key, and what may be seen."""

    terms: Sequence[str]
    vector: tuple[bytes, int] | None = None
    places: Sequence[int] | None = None
    narrow: SearchFilter = ALL


@dataclass(frozen=True, kw_only=True)
class Found:
    """A statement with its score: a passage, the memory that it states, or a memory whose passage is gone.

    `words` is its bm25, 0 where its words did not find it. What `is_cold` is told to nobody by itself.
    """

    score: float
    features: Mapping[str, float]
    passage: Passage | None = None
    memory: Memory | None = None
    words: float = 0.0
    is_cold: bool = False

    @property
    def key(self) -> tuple[int, str]:
        """What tells it from others."""
        return (self.passage.seq if self.passage else 0, self.memory.id if self.memory else "")

    @cached_property
    def text(self) -> str:
        """What it says: a memory's own words where a person gave it these."""
        return _text(self.passage, self.memory)

    @property
    def at(self) -> str:
        """When it was said last."""
        if self.memory is not None:
            return max(self.memory.confirmed_at, self.passage.at) if self.passage else self.memory.confirmed_at
        assert self.passage is not None
        return self.passage.at

    @property
    def session_id(self) -> str:
        """The session that said it."""
        return self.passage.session_id if self.passage else self.memory.session_id if self.memory else ""


def _text(passage: Passage | None, memory: Memory | None) -> str:
    if memory is not None and (passage is None or memory.is_edited or memory.pinned):
        return memory.text
    assert passage is not None
    # The lines that a user quotes with `>` are another's.
    return display.squeeze(unquoted(passage.text) if passage.kind in PROMPTS else passage.text)


@dataclass(slots=True)
class Pool:
    """What the indexes gave, by row key: bm25 of words, cosine of meaning; what of it was cut short."""

    words: dict[int, float] = field(default_factory=dict)
    meaning: dict[int, float] = field(default_factory=dict)
    memory_words: dict[int, float] = field(default_factory=dict)
    memory_meaning: dict[int, float] = field(default_factory=dict)
    degraded: list[str] = field(default_factory=list)


def terms_of(rows: Rows, said: str, *, places: Sequence[int] | None) -> list[str]:
    """The terms to look for: a question's own, then the other names, old and new, of what it names."""
    found = tokens.question_terms(said)
    named = [word for word in said.split() if ranking.names_something(word)][:MOST_TERMS]
    renames = supersession.renamed(rows, None if places is None else list(places), of=named) if named else {}
    for old, new in renames.items():
        for one, other in ((new, old), (old, new)):
            if contradiction.mentions_name(said, one):
                found += [term for term in tokens.query_terms(other) if term not in found]
    return found[:MOST_TERMS]


def vector_of(rows: Rows, said: str, embed: Embed | None, degraded: list[str]) -> tuple[bytes, int] | None:
    """A question's vector and the row key of its model; None, and why, where there is none."""
    if embed is None:
        degraded.append("vectors: no embedding model is installed (csmd model fetch)")
        return None
    try:
        vector, name = embed(said)
    except EmbeddingUnavailable as error:
        degraded.append(f"vectors: {error.what}")
        return None
    model = vectors.model_seq(rows, name)
    if model is None:
        degraded.append("vectors: none are stored yet")
        return None
    return vector, model


def find(rows: Rows, query: Query, degraded: list[str]) -> list[Found]:
    """What bears on a question, best first: passages with the memories that they state, and memories without a passage."""
    pool = _pool(rows, query)
    unfilled: dict[int, Passage] = {}
    try:
        if not _is_full(rows, query):
            with rows.within(rows.share(LEXICAL_S + VECTOR_S)):
                unfilled = _unfilled(rows, query, pool)
    except DeadlineExceeded:
        pool.degraded.append("turns: search stopped at its deadline")
    degraded += pool.degraded
    best = _best(pool.memory_words, pool.memory_meaning, MEMORIES)
    stated = _stated(rows, best, query.places)
    places = passages.passage_places(rows, sorted({*pool.words, *pool.meaning, *(seq for _, seq in stated)}))
    places |= {seq: (passage.turn_seq, passage.session_seq) for seq, passage in unfilled.items()}
    near = _around(pool.words, pool.meaning, places)
    chosen = _thinned(pool, near, {seq for _, seq in stated})
    among = set(chosen)
    in_passage = {memory for memory, seq in stated if seq in among}
    alone = [one for one in best if one not in in_passage][: max(ALONE, CANDIDATES - len(chosen))]
    chosen = chosen[: CANDIDATES - len(alone)]
    read = passages.by_seqs(rows, [seq for seq in chosen if seq > 0])
    read |= {seq: unfilled[seq] for seq in chosen if seq in unfilled}
    cosines = _cosines(rows, query, pool, read)
    known = memories.by_seqs(rows, sorted({*alone, *(memory for memory, seq in stated if seq in read)}))
    asked = asked_of(rows, query, degraded)
    of_passage = _by_passage(stated, known, read, pool)
    shared = {seq: ranking.shared(passage.text, asked) for seq, passage in read.items()}
    sessions = {places[seq][1] for seq in read}
    around = _around(
        shared, pool.meaning | cosines, {seq: at for seq, at in places.items() if at[1] in sessions},
        passages.passage_lengths(rows, sessions, most=ranking.BEST_OF_SESSION),
    )  # fmt: skip
    with_meaning = query.vector is not None
    found = []
    for seq, passage in read.items():
        memory = of_passage.get(seq)
        cosine = max(cosines.get(seq, 0.0), pool.memory_meaning.get(memory.seq, 0.0) if memory else 0.0)
        found.append(
            _scored(asked, passage, memory, around[seq], cosine if with_meaning else None, _bm25(pool, seq, memory))
        )
    shown = {one.memory.seq for one in found if one.memory is not None}
    for memory in [known[seq] for seq in best if seq in known and seq not in shown][: CANDIDATES - len(read)]:
        cosine = pool.memory_meaning.get(memory.seq, 0.0)
        beside = Around(near_words=ranking.shared(memory.text, asked), near_meaning=cosine)
        found.append(_scored(asked, None, memory, beside, cosine if with_meaning else None, _bm25(pool, 0, memory)))
    return sorted(found, key=lambda one: (-one.score, one.key))


def _bm25(pool: Pool, seq: int, memory: Memory | None) -> float:
    return max(pool.words.get(seq, 0.0), pool.memory_words.get(memory.seq, 0.0) if memory else 0.0)


def asked_of(rows: Rows, query: Query, degraded: list[str]) -> Asked:
    """The stems of a question with how rare each is in the home; a word that was not counted in time is common."""
    of = passages.last_passage(rows)
    counts = dict.fromkeys((term for term in query.terms if " " not in term), of)
    try:
        for term in counts:  # at most COUNTED rows each: they need no deadline of their own, which is a thread
            counts[term] = fulltext.rows_with(rows, "passage", term, most=COUNTED)
    except DeadlineExceeded:
        degraded.append("words: counting stopped at the deadline of the read")
    return Asked(
        rarity={tokens.stem(term): ranking.rarity(count, of) for term, count in counts.items()},
        sessions=passages.passage_sessions(rows, query.places),
    )


# --- the pool


def _pool(rows: Rows, query: Query) -> Pool:
    pool, most = Pool(), POOL if query.narrow.is_all else WIDE_POOL
    if query.terms:
        try:
            with rows.within(rows.share(LEXICAL_S)):
                pool.words = _hits(fulltext.text_hits(rows, "passage", query.terms, projects=query.places, limit=most))
                pool.memory_words = _hits(
                    fulltext.text_hits(rows, "memory", query.terms, projects=query.places, limit=most)
                )
                for seq, score in fulltext.text_hits(rows, "symptom", query.terms, projects=query.places, limit=most):
                    pool.memory_words[seq] = max(pool.memory_words.get(seq, 0.0), float(score))
        except DeadlineExceeded:
            pool.degraded.append("words: search stopped at its deadline")
    if query.vector is not None:
        vector, model = query.vector
        try:
            with rows.within(rows.share(VECTOR_S)):
                pool.meaning = _cosine(
                    vectors.vector_hits(rows, "passage", model, vector, projects=query.places, limit=most)
                )
                pool.memory_meaning = _cosine(
                    vectors.vector_hits(rows, "memory", model, vector, projects=query.places, limit=most)
                )
        except DeadlineExceeded:
            pool.degraded.append("vectors: search stopped at its deadline")
    return pool if query.narrow.is_all else _narrowed(rows, pool, query.narrow)


def _hits(found: Sequence[Row]) -> dict[int, float]:
    return {int(seq): float(score) for seq, score in found}


def _cosine(found: Sequence[Row]) -> dict[int, float]:
    nearest: dict[int, float] = {}
    for seq, _, _, distance in found:
        nearest[int(seq)] = max(nearest.get(int(seq), -1.0), ranking.cosine(distance))
    return nearest


def _narrowed(rows: Rows, pool: Pool, narrow: SearchFilter) -> Pool:
    told = narrowing.filter_rows(rows, "memory", [*{*pool.memory_words, *pool.memory_meaning}], narrow)
    said: set[int] = set()
    if not (narrow.gate or narrow.category or narrow.type):
        said = narrowing.filter_rows(rows, "passage", [*{*pool.words, *pool.meaning}], narrow)
    return Pool(
        words={seq: score for seq, score in pool.words.items() if seq in said},
        meaning={seq: score for seq, score in pool.meaning.items() if seq in said},
        memory_words={seq: score for seq, score in pool.memory_words.items() if seq in told},
        memory_meaning={seq: score for seq, score in pool.memory_meaning.items() if seq in told},
        degraded=pool.degraded,
    )


# --- a home whose passages are still being indexed


def _is_full(rows: Rows, query: Query) -> bool:
    if query.places is None:
        return fulltext.is_turn_index_dropped(rows)
    return passages.is_complete(rows, query.places, model=query.vector[1] if query.vector else None)


def _unfilled(rows: Rows, query: Query, pool: Pool) -> dict[int, Passage]:
    """The best turns by the index of turns: those with passages raise these, of the others one is cut at once.

    Its key is below 0. Turns go with what they say about the question until their passages have been indexed.
    """
    most = POOL if query.narrow.is_all else WIDE_POOL
    words = _hits(fulltext.text_hits(rows, "turn", query.terms, projects=query.places, limit=most))
    meaning: dict[int, float] = {}
    if query.vector is not None:
        vector, model = query.vector
        meaning = _cosine(vectors.vector_hits(rows, "turn", model, vector, projects=query.places, limit=most))
    best = _best(words, meaning, CANDIDATES)
    if not query.narrow.is_all and best:
        let_in = narrowing.filter_rows(rows, "turn", best, query.narrow)
        best = [turn for turn in best if turn in let_in]
    of_turn = passages.of_turns(rows, best)
    read = search.turns_by_seq(rows, [turn for turn in best if not of_turn[turn]])
    asked = frozenset(tokens.stem(term) for term in query.terms)
    made: dict[int, Passage] = {}
    for turn in best:
        for seq in of_turn[turn]:
            if turn in meaning:
                pool.meaning.setdefault(seq, meaning[turn])
        if turn in read:
            made[-turn] = _cut(read[turn], asked)
            pool.words[-turn] = words.get(turn, 0.0)
            if turn in meaning:
                pool.meaning[-turn] = meaning[turn]
    return made


def _cut(turn: TurnRow, asked: frozenset[str]) -> Passage:
    """The passage of a turn that holds most of what is asked."""
    spans = prose.passages(turn.text) or [prose.Span(0, len(turn.text))]
    start, end = max(spans, key=lambda span: len(asked & ranking.stems(turn.text[span.start : span.end])))
    return Passage(
        seq=-turn.seq, turn_seq=turn.seq, session_seq=turn.session_seq, project_seq=turn.project_seq, uuid=turn.uuid,
        kind=turn.kind, start=start, end=end, text=turn.text[start:end], at=turn.at, session_id=turn.session_id,
        project=turn.project,
    )  # fmt: skip


# --- what stands beside what was found


def _best(words: Mapping[int, float], meaning: Mapping[int, float], most: int) -> list[int]:
    by_words, by_meaning = ranking.normalised(words), ranking.normalised(meaning)
    both = {
        seq: ranking.WORDS_SHARE * by_words.get(seq, 0.0) + (1 - ranking.WORDS_SHARE) * by_meaning.get(seq, 0.0)
        for seq in {*words, *meaning}
    }
    return sorted(both, key=lambda seq: (-both[seq], seq))[:most]


def _stated(rows: Rows, best: Sequence[int], places: Sequence[int] | None) -> list[tuple[int, int]]:
    """(memory, passage of a turn that states it) of the best memories."""
    turns = search.stating_turns(rows, best, projects=places) if best else []
    of = passages.of_turns(rows, sorted({turn for _, turn in turns}))
    return [(memory, seq) for memory, turn in turns for seq in of.get(turn, ())]


class Around(NamedTuple):
    """The best of a passage and those beside it, and the mean of the best of its session, by words and by meaning."""

    near_words: float = 0.0
    near_meaning: float = 0.0
    session_words: float = 0.0
    session_meaning: float = 0.0


NO_LENGTHS: Mapping[int, int] = {}
#: Passages of one session whose row keys differ by no more than this stand beside each other.
BESIDE = 4


def _around(
    words: Mapping[int, float],
    meaning: Mapping[int, float],
    places: Mapping[int, tuple[int, int]],
    lengths: Mapping[int, int] = NO_LENGTHS,
) -> dict[int, Around]:
    """What stands around each of these passages, whose (turn, session) is given, among them; `lengths` of short sessions."""
    sessions: dict[int, list[int]] = {}
    for seq in sorted(places):
        sessions.setdefault(places[seq][1], []).append(seq)
    found: dict[int, Around] = {}
    for session, seqs in sessions.items():
        length = lengths.get(session, ranking.BEST_OF_SESSION)
        if len(seqs) == 1:
            own_words, own_meaning = words.get(seqs[0], 0.0), meaning.get(seqs[0], 0.0)
            found[seqs[0]] = Around(own_words, own_meaning, own_words / max(1, length), own_meaning / max(1, length))
            continue
        of_words = [words.get(seq, 0.0) for seq in seqs]
        of_meaning = [meaning.get(seq, 0.0) for seq in seqs]
        best_words, best_meaning = (ranking.best_mean(of, of=length) for of in (of_words, of_meaning))
        first, last = 0, 1
        for seq in seqs:
            while seq - seqs[first] > BESIDE:
                first += 1
            while last < len(seqs) and seqs[last] - seq <= BESIDE:
                last += 1
            found[seq] = Around(max(of_words[first:last]), max(of_meaning[first:last]), best_words, best_meaning)
    return found


def _thinned(pool: Pool, near: Mapping[int, Around], stated: set[int]) -> list[int]:
    """The candidates that are read: the best by what the lists tell."""
    words, meaning = ranking.normalised(pool.words), ranking.normalised(pool.meaning)
    beside = ranking.normalised({seq: one.near_words for seq, one in near.items()})
    sense = ranking.normalised({seq: one.near_meaning for seq, one in near.items()})
    session = ranking.normalised({seq: one.session_meaning or one.session_words for seq, one in near.items()})

    def worth(seq: int) -> float:
        own = ranking.WORDS_SHARE * words.get(seq, 0.0) + (1 - ranking.WORDS_SHARE) * meaning.get(seq, 0.0)
        around = max(beside[seq], sense[seq])
        return own + ranking.NEAR_SHARE * around + ranking.SESSION_SHARE * session[seq] + 0.3 * (seq in stated)

    return sorted(near, key=lambda seq: (-worth(seq), seq))[:CANDIDATES]


def _cosines(rows: Rows, query: Query, pool: Pool, read: Mapping[int, Passage]) -> dict[int, float]:
    """The cosine of each candidate, of those that came in by words alone as well."""
    cosines = {seq: pool.meaning[seq] for seq in read if seq in pool.meaning}
    missing = [seq for seq in read if seq > 0 and seq not in cosines]
    if query.vector is not None and missing:
        vector, model = query.vector
        measured = vectors.distances(rows, "passage", model, vector, missing)
        cosines |= {seq: ranking.cosine(distance) for seq, distance in measured.items()}
    return cosines


def _by_passage(
    stated: Sequence[tuple[int, int]], known: Mapping[int, Memory], read: Mapping[int, Passage], pool: Pool
) -> dict[int, Memory]:
    """Passage -> the memory that it states, the one that matches best."""
    found: dict[int, Memory] = {}
    worth = {seq: pool.memory_meaning.get(seq, 0.0) + pool.memory_words.get(seq, 0.0) / 100 for seq in known}
    for memory_seq, seq in sorted(stated, key=lambda row: -worth.get(row[0], 0.0)):
        memory, passage = known.get(memory_seq), read.get(seq)
        if memory is None or passage is None or seq in found:
            continue
        if states(passage.text, memory):
            found[seq] = memory
    return found


def states(said: str, memory: Memory) -> bool:
    """Whether a passage holds what a memory says."""
    wanted = ranking.stems(memory.text)
    return bool(wanted) and len(wanted & ranking.stems(said)) >= STATES * len(wanted)


def _scored(
    asked: Asked, passage: Passage | None, memory: Memory | None, around: Around, cosine: float | None, words: float
) -> Found:
    match = Match(
        text=_text(passage, memory),
        by_user=(memory.authority == "user") if memory else passage is not None and passage.kind in ("user", "relayed"),
        meaning=cosine,
        near_shared=around.near_words,
        near_meaning=around.near_meaning,
        session_shared=around.session_words,
        session_meaning=around.session_meaning,
        kept=memory is not None,
    )
    found = ranking.features(match, asked)
    return Found(score=ranking.bearing(found), features=found, passage=passage, memory=memory, words=words)
