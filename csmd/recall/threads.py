"""Links passages to later ones on the same matter, and follows the threads of these links."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from csmd.cache import cached
from csmd.recall import ranking
from csmd.store import cursors, fulltext, passages, vectors
from csmd.store.core import Store
from csmd.store.passages import Passage
from csmd.store.sqlite import Rows
from csmd.text import prose, search_terms, tokens
from csmd.vocabulary import PROMPTS

Stems = frozenset[str]
K = TypeVar("K")
V = TypeVar("V")


STAGE = "threads"
#: Passages of one step.
BATCH = 40
#: Most passages with which a passage is compared: the nearest by meaning, and those that share words.
MAX_NEAREST = 30
MAX_SHARING = 20
#: Most distances that are measured at once.
MAX_DISTANCES = 200
#: The rarest words of a passage, by which others are found.
MAX_TERMS = 12
#: Most rows that are counted to tell how rare a word is.
MAX_COUNTED_ROWS = 1000
#: The lead of a passage: the passages before it, which introduce its subject.
LEAD_PASSAGES = 3
#: A passage of fewer words says nothing by itself.
MIN_WORDS = 2
#: A sentence of fewer words counts as one of this many.
MIN_OVERLAP_WORDS = 3
#: Least probability of a link that is stored, and most links of one passage.
MIN_STORED = 0.1
MAX_LINKS = 3
#: Most steps for which a thread is followed.
MAX_STEPS = 4
#: From this probability on the newer passage replaces the older, and its own links are followed.
SURE = 0.6
#: A passage that surely follows more passages is ignored, because plans and reports resemble everything.
MAX_FOLLOWED = 3


class Pair(NamedTuple):
    """An older passage and a newer one of another time, with the measurements for `features`."""

    older: Passage
    newer: Passage
    meaning: float | None
    lead_meaning: float
    lead_shared: float


def features(pair: Pair, rarity: Mapping[str, float]) -> dict[str, float]:
    """Returns the features of two statements that may be of one thread, each about 0-1."""
    old, new = ranking.stems(pair.older.text), ranking.stems(pair.newer.text)
    shared = [rarity.get(stem, 0.0) for stem in old & new]
    values = {
        "shared": ranking.cap_shared(sum(shared)),
        "rarest": max(shared, default=0.0),
        "overlap": _rate_overlap(pair.older.text, pair.newer.text),
        "lead shared": ranking.cap_shared(pair.lead_shared),
        "user": float(pair.newer.kind in PROMPTS),
        "telling": min(ranking.TELLING_WORDS, len(new - old)) / ranking.TELLING_WORDS,
        "same session": float(pair.older.session_seq == pair.newer.session_seq),
    }
    if pair.meaning is not None:
        values |= {"meaning": pair.meaning, "lead meaning": pair.lead_meaning}
    return values


def _rate_overlap(older: str, newer: str) -> float:
    """Returns the share of the shorter sentence's words in the other, for the pair of sentences that agrees most.

    Sentences are compared, because a matter may be changed in passing; the sentence that changes it repeats words of the
    old one. A sentence that is repeated word for word changes nothing.
    """
    pairs = itertools.product(_sentence_stems(older), _sentence_stems(newer))
    shares = (len(a & b) / max(MIN_OVERLAP_WORDS, min(len(a), len(b))) for a, b in pairs if a != b)
    return max(shares, default=0.0)


@cached(1024)
def _sentence_stems(text: str) -> tuple[Stems, ...]:
    return tuple(map(ranking.stems, prose.split_sentences(text) or [text]))


def probability(values: Mapping[str, float]) -> float:
    """Returns the probability that the newer of two passages replaces the older."""
    return ranking.logistic(ranking.weights()["thread" if "meaning" in values else "thread words"], values)


def step(store: Store, *, model: str | None) -> int:
    """Links the next passages to older and newer ones on the same matter; returns the number of passages."""
    links, seqs = store.read(lambda rows: _find_links(rows, model))

    def save(rows: Rows) -> None:
        model_seq = _find_model(rows, model) or 0
        for older, newer, sure in links:
            passages.link_passages(rows, older, newer, sure, limit=MAX_LINKS)
        if not passages.mark_relinked(rows, model_seq, seqs):
            reached = max(seqs[-1], cursors.read_cursor(rows, STAGE, str(model_seq)))
            cursors.move_cursor(rows, STAGE, str(model_seq), reached)

    if seqs:
        store.write(save)
    return len(seqs)


def count_waiting(rows: Rows, *, model: str | None) -> int:
    """Counts the passages that are not linked yet."""
    model_seq = _find_model(rows, model)
    reached = cursors.read_cursor(rows, STAGE, str(model_seq or 0))
    changed = len(passages.list_passages_to_relink(rows, model_seq or 0))
    return changed + passages.count_passages_after(rows, reached, until=_last_ready(rows, model_seq))


def _find_model(rows: Rows, model: str | None) -> int | None:
    return None if model is None else vectors.find_model(rows, model)


def _last_ready(rows: Rows, model: int | None) -> int:
    """Returns the last passage that can be linked: with a model, the last that has its vector."""
    return passages.last_passage_seq(rows) if model is None else cursors.read_cursor(rows, "embed-passage", str(model))


def _find_links(rows: Rows, name: str | None) -> tuple[list[tuple[int, int, float]], list[int]]:
    """Returns the links (older, newer, probability) of the next passages, and these passages."""
    model = _find_model(rows, name)
    after = cursors.read_cursor(rows, STAGE, str(model or 0))
    seqs = passages.list_passages_to_relink(rows, model or 0)[:BATCH]
    seqs = seqs or passages.list_passages_after(rows, after, until=_last_ready(rows, model), limit=BATCH)
    finder = PairFinder(rows, model)
    rated = [(pair, probability(features(pair, rare))) for seq in seqs for pair, rare in finder.find_pairs(seq)]
    return [(pair.older.seq, pair.newer.seq, round(sure, 4)) for pair, sure in rated if sure >= MIN_STORED], seqs


def follow_threads(
    rows: Rows, seqs: Sequence[int], *, least: float = MIN_STORED, rivals: bool = False
) -> dict[int, list[tuple[int, float]]]:
    """Maps each passage with a thread to the (newest passage, probability) pairs that it leads to, the surest first.

    The probability of a thread is the product of its steps, because it soon drifts to other matters. With `rivals` at most
    one link of a passage is right, so that their probabilities compete.
    """
    ends: dict[int, list[tuple[int, float]]] = {seq: [(seq, 1.0)] for seq in seqs}
    links: dict[int, list[tuple[int, float]]] = {}
    for step in range(MAX_STEPS):
        if unread := sorted({seq for reached in ends.values() for seq, _ in reached} - links.keys()):
            links |= {seq: [] for seq in unread}
            later = passages.find_later(rows, unread, min_weight=MIN_STORED, sure=SURE, limit=MAX_FOLLOWED)
            links |= {seq: _compete(of_passage) if rivals else of_passage for seq, of_passage in later.items()}
        further: dict[int, list[tuple[int, float]]] = {}
        for start, reached in ends.items():
            newest_ends: dict[int, float] = {}
            for seq, sure in reached:
                after = [link for link in links[seq] if link[0] != start and link[1] >= (SURE if step else least)]
                for newest, link in after or [(seq, 1.0)]:  # a passage without a link is an end
                    newest_ends[newest] = max(newest_ends.get(newest, 0.0), round(sure * link, 4))
            further[start] = sorted(newest_ends.items(), key=lambda pair: (-pair[1], pair[0]))
        if further == ends:
            break
        ends = further
    others = {start: [end for end in reached if end[0] != start] for start, reached in ends.items()}
    return {start: reached for start, reached in others.items() if reached}


def find_followers(rows: Rows, seqs: Sequence[int]) -> dict[int, set[int]]:
    """Maps each passage to all that surely follow it, up to the end of its thread."""
    followers = {seq: {seq} for seq in seqs}
    links: dict[int, list[tuple[int, float]]] = {}
    for _ in range(MAX_STEPS):
        if not (unread := sorted(set().union(*followers.values()) - links.keys())):
            break
        links |= {seq: [] for seq in unread}
        links |= passages.find_later(rows, unread, min_weight=SURE, sure=SURE, limit=MAX_FOLLOWED)
        for following in followers.values():
            following |= {newer for seq in following for newer, _ in links[seq]}
    return {start: following - {start} for start, following in followers.items()}


def _compete(links: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """Returns the links of one passage if at most one is right: if many are equally probable, none is sure."""
    odds = [(seq, sure / max(1e-6, 1.0 - sure)) for seq, sure in links]
    total = 1.0 + sum(value for _, value in odds)
    return [(seq, value / total) for seq, value in odds]


class PairFinder:
    """Finds the passages that a passage may follow or be followed by; caches reads, which consecutive passages share."""

    def __init__(self, rows: Rows, model: int | None) -> None:
        self._rows = rows
        self._model = model
        self._near: dict[int, dict[int, float]] = {}
        self._read: dict[int, Passage] = {}
        self._lead: dict[int, list[int]] = {}
        self._rare: dict[str, float] = {}
        self._total = passages.last_passage_seq(rows)

    def find_pairs(self, seq: int) -> Iterator[tuple[Pair, Mapping[str, float]]]:
        """Yields the pairs of a passage with older and newer ones of its project, and the rarity of its words."""
        own = self._read_passages([seq]).get(seq)
        if own is None or len(ranking.stems(own.text)) < MIN_WORDS:
            return
        rarity = self._measure_rarity(own.text)
        lead = self._read_leads([seq])[seq]
        candidates = [*self._find_nearest(seq, own.project_seq), *self._find_sharing(own, rarity)]
        for passage in self._read_passages(lead).values():
            candidates += self._find_nearest(passage.seq, passage.project_seq)
        read = {
            other: passage
            for other, passage in self._read_passages(dict.fromkeys(candidates)).items()
            if other != seq and passage.turn_seq != own.turn_seq and passage.project_seq == own.project_seq
        }
        leads = self._read_leads([seq, *read])
        leading = self._read_passages(sorted(set(itertools.chain(*leads.values()))))
        # (older passage, passage of the newer one's lead) -> cosine.
        cosines = {(seq, other): value for other, value in self._measure_cosines(seq, [*read, *leading]).items()}
        for before in lead:
            cosines |= {(other, before): value for other, value in self._measure_cosines(before, [*read]).items()}
        for other in read.values():
            if other.at == own.at:
                continue
            older, newer = sorted((own, other), key=lambda passage: passage.at)
            old = ranking.stems(older.text)
            lead_of_newer = leads[newer.seq]
            lead_stems = [ranking.stems(leading[before].text) for before in lead_of_newer if before in leading]
            shared = (sum(rarity.get(stem, 0.0) for stem in old & stems) for stems in lead_stems)
            pair = Pair(
                older,
                newer,
                meaning=None if self._model is None else cosines.get((seq, other.seq), 0.0),
                lead_meaning=max((cosines.get((older.seq, before), 0.0) for before in lead_of_newer), default=0.0),
                lead_shared=max(shared, default=0.0),
            )
            yield pair, rarity

    def _read_passages(self, seqs: Iterable[int]) -> dict[int, Passage]:
        return _fill(self._read, seqs, lambda missing: passages.by_seqs(self._rows, missing))

    def _read_leads(self, seqs: Iterable[int]) -> dict[int, list[int]]:
        """Returns the passages right before each in its session, the nearest first."""
        return _fill(
            self._lead, seqs, lambda missing: passages.map_passages_before(self._rows, missing, limit=LEAD_PASSAGES)
        )

    def _find_nearest(self, seq: int, project: int) -> dict[int, float]:
        if self._model is None:
            return {}
        if seq not in self._near:
            search = partial(vectors.find_vector_hits, self._rows, "passage", self._model)
            vector = vectors.read_vectors_of_row(self._rows, "passage", seq, model=self._model)[:1]
            hits = search(vector[0], projects=[project], limit=MAX_NEAREST + 1) if vector else []
            self._near[seq] = {int(other): ranking.cosine(distance) for other, _, _, distance in hits if other != seq}
        return self._near[seq]

    def _find_sharing(self, own: Passage, rarity: Mapping[str, float]) -> list[int]:
        terms = sorted(search_terms.question_terms(own.text), key=lambda term: -rarity.get(tokens.stem(term), 0.0))
        hits = fulltext.text_hits(
            self._rows, "passage", terms[:MAX_TERMS], projects=[own.project_seq], limit=MAX_SHARING
        )
        return [int(seq) for seq, _ in hits]

    def _measure_rarity(self, text: str) -> dict[str, float]:
        words = {tokens.stem(word): word for word in search_terms.query_terms(text)}

        def count(stems: Sequence[str]) -> dict[str, float]:
            count_rows = partial(fulltext.count_rows_with, self._rows, "passage", limit=MAX_COUNTED_ROWS)
            return {stem: ranking.rarity(count_rows(words[stem]), self._total) for stem in stems}

        return _fill(self._rare, words, count)

    def _measure_cosines(self, seq: int, others: Iterable[int]) -> dict[int, float]:
        if self._model is None or not (
            vector := vectors.read_vectors_of_row(self._rows, "passage", seq, model=self._model)
        ):
            return {}
        cosines: dict[int, float] = {}
        seqs = list(dict.fromkeys(others))
        for start in range(0, len(seqs), MAX_DISTANCES):
            batch = seqs[start : start + MAX_DISTANCES]
            measured = vectors.compute_distances(self._rows, "passage", self._model, vector[0], batch)
            cosines |= {other: ranking.cosine(distance) for other, distance in measured.items()}
        return cosines


def _fill(cache: dict[K, V], keys: Iterable[K], read: Callable[[list[K]], Mapping[K, V]]) -> dict[K, V]:
    """Returns the values of some keys, in their order; those that are not in the cache are read into it."""
    keys = list(keys)
    if missing := [key for key in keys if key not in cache]:
        cache |= read(missing)
    return {key: cache[key] for key in keys if key in cache}
