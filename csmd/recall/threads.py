"""Threads between passages on one matter."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
Key = TypeVar("Key")
Value = TypeVar("Value")


# --- threads

STAGE = "threads"
#: Passages of one step.
BATCH = 40
#: How many of the nearest by meaning, and of those that share words, a passage is compared with.
NEAREST, SHARING = 30, 20
#: Most distances that are measured at once.
DISTANCES = 200
#: The rarest words of a passage, by which others are found, and up to how many rows that hold one are counted.
MAX_TERMS, COUNTED = 12, 1000
#: How many passages before a statement, its lead, tell what it is about.
LEAD = 3
#: A passage of fewer words says nothing by itself.
MIN_WORDS = 2
#: Least number of words that the shorter of two sentences is taken to have.
MIN_OVERLAP = 3
#: Least probability of a thread that is stored, and most threads of one passage.
KEPT, MOST = 0.1, 3
#: Most steps for which a thread is followed.
STEPS = 4
#: From this probability on the newer passage replaces the older, and a thread is followed on.
SURE = 0.6
#: A passage that surely follows more others than this says nothing of any of them: plans and reports resemble everything.
FOLLOWED = 3


class Pair(NamedTuple):
    """An older passage and a newer one of another time, with what was measured: see `features`."""

    older: Passage
    newer: Passage
    meaning: float | None
    lead_meaning: float
    lead_shared: float


def features(pair: Pair, rarity: Mapping[str, float]) -> dict[str, float]:
    """The features of two statements that may be of one thread, each about 0-1."""
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
    """How much of the shorter of two sentences the other holds, for the pair of sentences that agrees most.

    What is changed in passing is one matter among others, but the sentence that changes it repeats words of the old one. A
    sentence that is repeated as it was changes nothing.
    """
    return max(
        (
            len(old & new) / max(MIN_OVERLAP, min(len(old), len(new)))
            for old, new in itertools.product(_sentence_stems(older), _sentence_stems(newer))
            if old != new
        ),
        default=0.0,
    )


@cached(1024)
def _sentence_stems(text: str) -> tuple[Stems, ...]:
    return tuple(map(ranking.stems, prose.split_sentences(text) or [text]))


def probability(values: Mapping[str, float]) -> float:
    """How surely the newer of two passages says what now holds in the place of the older, 0-1."""
    return ranking.logistic(ranking.weights()["thread" if "meaning" in values else "thread words"], values)


def step(store: Store, *, model: str | None) -> int:
    """Links the next passages to older and newer ones on the same matter; how many were looked at."""
    links, seqs = store.read(lambda rows: _find_links(rows, model))

    def save(rows: Rows) -> None:
        model_seq = _model_seq(rows, model) or 0
        for older, newer, sure in links:
            passages.link_passages(rows, older, newer, sure, most=MOST)
        if not passages.mark_relinked(rows, model_seq, seqs):
            reached = max(seqs[-1], cursors.read_cursor(rows, STAGE, str(model_seq)))
            cursors.move_cursor(rows, STAGE, str(model_seq), reached)

    if seqs:
        store.write(save)
    return len(seqs)


def count_waiting(rows: Rows, *, model: str | None) -> int:
    """How many passages have not been looked at."""
    model_seq = _model_seq(rows, model)
    reached = cursors.read_cursor(rows, STAGE, str(model_seq or 0))
    changed = len(passages.passages_to_relink(rows, model_seq or 0))
    return changed + passages.count_passages_after(rows, reached, until=_last_ready(rows, model_seq))


def _model_seq(rows: Rows, model: str | None) -> int | None:
    return None if model is None else vectors.find_model(rows, model)


def _last_ready(rows: Rows, model: int | None) -> int:
    """The last passage that can be looked at: with a model, the last that has its vector."""
    return passages.last_passage_seq(rows) if model is None else cursors.read_cursor(rows, "embed-passage", str(model))


def _find_links(rows: Rows, name: str | None) -> tuple[list[tuple[int, int, float]], list[int]]:
    """((older, newer, probability) of the next passages, which these are)."""
    model = _model_seq(rows, name)
    after = cursors.read_cursor(rows, STAGE, str(model or 0))
    seqs = passages.passages_to_relink(rows, model or 0)[:BATCH]
    seqs = seqs or passages.passages_after(rows, after, until=_last_ready(rows, model), limit=BATCH)
    finder = PairFinder(rows, model)
    rated = [(pair, probability(features(pair, rare))) for seq in seqs for pair, rare in finder.pairs(seq)]
    return [(pair.older.seq, pair.newer.seq, round(sure, 4)) for pair, sure in rated if sure >= KEPT], seqs


def follow_threads(
    rows: Rows, seqs: Sequence[int], *, least: float = KEPT, rivals: bool = False
) -> dict[int, list[tuple[int, float]]]:
    """Passage -> (the newest that its thread leads to, how surely), the surest first; passages without a thread are left out.

    A thread of several steps is as sure as all of them together: it soon drifts to other matters. With `rivals` the links
    of a passage say which one of them follows it; else whether any does.
    """
    ends: dict[int, list[tuple[int, float]]] = {seq: [(seq, 1.0)] for seq in seqs}
    links: dict[int, list[tuple[int, float]]] = {}
    for step in range(STEPS):
        if unread := sorted({seq for reached in ends.values() for seq, _ in reached} - links.keys()):
            links |= {seq: [] for seq in unread}
            newer = passages.find_later(rows, unread, least=KEPT, sure=SURE, most=FOLLOWED)
            links |= {seq: _compete(some) if rivals else some for seq, some in newer.items()}
        further: dict[int, list[tuple[int, float]]] = {}
        for start, reached in ends.items():
            onwards: dict[int, float] = {}
            for seq, sure in reached:
                after = [link for link in links[seq] if link[0] != start and link[1] >= (SURE if step else least)]
                for newest, link in after or [(seq, 1.0)]:  # what nothing follows is an end
                    onwards[newest] = max(onwards.get(newest, 0.0), round(sure * link, 4))
            further[start] = sorted(onwards.items(), key=lambda pair: (-pair[1], pair[0]))
        if further == ends:
            break
        ends = further
    others = {start: [end for end in reached if end[0] != start] for start, reached in ends.items()}
    return {start: reached for start, reached in others.items() if reached}


def find_followers(rows: Rows, seqs: Sequence[int]) -> dict[int, set[int]]:
    """Passage -> all that surely follow it, those between it and the end of its thread too."""
    followers = {seq: {seq} for seq in seqs}
    links: dict[int, list[tuple[int, float]]] = {}
    for _ in range(STEPS):
        if not (unread := sorted(set().union(*followers.values()) - links.keys())):
            break
        links |= {seq: [] for seq in unread}
        links |= passages.find_later(rows, unread, least=SURE, sure=SURE, most=FOLLOWED)
        for following in followers.values():
            following |= {newer for seq in following for newer, _ in links[seq]}
    return {start: following - {start} for start, following in followers.items()}


def _compete(links: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """The links of one passage when at most one of them follows it: where much is equally near, none is sure."""
    odds = [(seq, sure / max(1e-6, 1.0 - sure)) for seq, sure in links]
    total = 1.0 + sum(value for _, value in odds)
    return [(seq, value / total) for seq, value in odds]


class PairFinder:
    """Finds what a passage may follow or be followed by; keeps what was read, which passages in a row share."""

    def __init__(self, rows: Rows, model: int | None) -> None:
        self._rows = rows
        self._model = model
        self._near: dict[int, dict[int, float]] = {}
        self._read: dict[int, Passage] = {}
        self._lead: dict[int, list[int]] = {}
        self._rare: dict[str, float] = {}
        self._total = passages.last_passage_seq(rows)

    def pairs(self, seq: int) -> Iterator[tuple[Pair, Mapping[str, float]]]:
        """Each pair that a passage makes with an older or newer one of its project, and the rarity of its words."""
        own = self._passages([seq]).get(seq)
        if own is None or len(ranking.stems(own.text)) < MIN_WORDS:
            return
        rarity = self._rarity(own.text)
        lead = self._leads([seq])[seq]
        candidates = [*self._nearest(seq, own.project_seq), *self._sharing(own, rarity)]
        for passage in self._passages(lead).values():
            candidates += self._nearest(passage.seq, passage.project_seq)
        read = {
            other: passage
            for other, passage in self._passages(dict.fromkeys(candidates)).items()
            if other != seq and passage.turn_seq != own.turn_seq and passage.project_seq == own.project_seq
        }
        leads = self._leads([seq, *read])
        leading = self._passages(sorted(set(itertools.chain(*leads.values()))))
        # (older passage, passage of the newer one's lead) -> cosine.
        cosines = {(seq, other): value for other, value in self._cosines(seq, [*read, *leading]).items()}
        for before in lead:
            cosines |= {(other, before): value for other, value in self._cosines(before, [*read]).items()}
        for other in read.values():
            if other.at == own.at:
                continue
            older, newer = sorted((own, other), key=lambda passage: passage.at)
            old, before_newer = ranking.stems(older.text), leads[newer.seq]
            shared = [
                sum(rarity.get(stem, 0.0) for stem in old & ranking.stems(leading[before].text))
                for before in before_newer
                if before in leading
            ]
            pair = Pair(
                older,
                newer,
                meaning=None if self._model is None else cosines.get((seq, other.seq), 0.0),
                lead_meaning=max((cosines.get((older.seq, before), 0.0) for before in before_newer), default=0.0),
                lead_shared=max(shared, default=0.0),
            )
            yield pair, rarity

    def _passages(self, seqs: Iterable[int]) -> dict[int, Passage]:
        return _fill(self._read, seqs, lambda missing: passages.by_seqs(self._rows, missing))

    def _leads(self, seqs: Iterable[int]) -> dict[int, list[int]]:
        """The passages right before each in its session, the nearest first."""
        return _fill(self._lead, seqs, lambda missing: passages.passages_before(self._rows, missing, most=LEAD))

    def _nearest(self, seq: int, project: int) -> dict[int, float]:
        if self._model is None:
            return {}
        if seq not in self._near:
            hits = [
                hit
                for vector in vectors.vectors_of_row(self._rows, "passage", seq, model=self._model)[:1]
                for hit in vectors.vector_hits(
                    self._rows, "passage", self._model, vector, projects=[project], limit=NEAREST + 1
                )
            ]
            self._near[seq] = {int(other): ranking.cosine(distance) for other, _, _, distance in hits if other != seq}
        return self._near[seq]

    def _sharing(self, own: Passage, rarity: Mapping[str, float]) -> list[int]:
        terms = sorted(search_terms.question_terms(own.text), key=lambda term: -rarity.get(tokens.stem(term), 0.0))
        hits = fulltext.text_hits(self._rows, "passage", terms[:MAX_TERMS], projects=[own.project_seq], limit=SHARING)
        return [int(seq) for seq, _ in hits]

    def _rarity(self, text: str) -> dict[str, float]:
        words = {tokens.stem(word): word for word in search_terms.query_terms(text)}

        def count(stems: Sequence[str]) -> dict[str, float]:
            counts = {
                stem: fulltext.count_rows_with(self._rows, "passage", words[stem], most=COUNTED) for stem in stems
            }
            return {stem: ranking.rarity(number, self._total) for stem, number in counts.items()}

        return _fill(self._rare, words, count)

    def _cosines(self, seq: int, others: Iterable[int]) -> dict[int, float]:
        if self._model is None or not (vector := vectors.vectors_of_row(self._rows, "passage", seq, model=self._model)):
            return {}
        cosines: dict[int, float] = {}
        seqs = list(dict.fromkeys(others))
        for at in range(0, len(seqs), DISTANCES):
            measured = vectors.distances(self._rows, "passage", self._model, vector[0], seqs[at : at + DISTANCES])
            cosines |= {other: ranking.cosine(distance) for other, distance in measured.items()}
        return cosines


def _fill(
    cache: dict[Key, Value], keys: Iterable[Key], read: Callable[[list[Key]], Mapping[Key, Value]]
) -> dict[Key, Value]:
    """The values of some keys, in their order; those that are not in the cache are read into it."""
    keys = list(keys)
    if missing := [key for key in keys if key not in cache]:
        cache |= read(missing)
    return {key: cache[key] for key in keys if key in cache}
