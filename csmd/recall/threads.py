"""What no longer holds, and what stands in its place.

A decision that was overturned has its own memory, which says so. What was said around it has none: the assistant's
"okay, I will use Redis", the order that a session began with, a checkpoint's pieces. They are told from what they say:
the words that what was superseded has for itself, none of what replaced it, and said before that was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from csmd.cache import cached
from csmd.memory import contradiction
from csmd.model import Memory
from csmd.recall import hybrid_search, ranking
from csmd.store import belief_changes, cursors, fulltext, memories, passages, search, vectors
from csmd.store.core import Store
from csmd.store.passages import Passage
from csmd.store.sqlite import Rows
from csmd.text import prose, tokens

#: Of the words that only the old has so many are an echo of it, in its own session; elsewhere so many of all its words, too.
OWN_SHARE, WHOLE_SHARE = 0.5, 0.5

Stems = frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """Something superseded, and what (`heir`, its id) holds in its place since `since`; `sessions` are those that state it."""

    text: str
    heir: str
    heir_text: str
    since: str
    sessions: frozenset[str]


def known_stems(said: str) -> Stems:
    """The stems of what a text says."""
    return frozenset(tokens.stem(word) for word in tokens.content_words(said))


def find_echo(said: str, *, at: str, session: str, replaced: Sequence[Replaced]) -> Replaced | None:
    """The first of these that a text of a session and time repeats, with nothing of what replaced it; None for none."""
    shown = known_stems(said) if replaced else frozenset()
    return next((one for one in replaced if _is_echo(shown, at, session, one)), None)


def _is_echo(shown: Stems, at: str, session: str, one: Replaced) -> bool:
    old, new = known_stems(one.text), _affirmed(one.heir_text)
    own = old - new
    if at >= one.since or not own or shown & (new - old) or len(shown & own) < OWN_SHARE * len(own):
        return False
    return session in one.sessions or len(shown & old) >= WHOLE_SHARE * len(old)


def _affirmed(said: str) -> Stems:
    """The stems of a text but for those that it speaks against: "pnpm, not npm" says nothing for npm."""
    read = contradiction.parse_statement(said)
    return known_stems(said).difference(*(one.what for one in (*read.denied, *read.instead)), *read.gone)


# --- over the store


#: How often what replaced something was replaced itself, at most; and replacements of places that are looked at.
HEIRS, MOST_REPLACED = 8, 200


def read_replaced(rows: Rows, places: Sequence[int]) -> list[Replaced]:
    """What was superseded in these places, the latest first."""
    return read_replacements(
        rows, memories.by_seqs(rows, belief_changes.superseded(rows, places, limit=MOST_REPLACED)).values()
    )


def read_replacements(rows: Rows, superseded: Iterable[Memory]) -> list[Replaced]:
    """Superseded memories with what holds in their place."""
    return [
        Replaced(
            text=one.text,
            heir=found.id,
            heir_text=found.text,
            since=found.confirmed_at,
            sessions=frozenset(source.session_id for source in one.provenance if source.session_id),
        )
        for one in superseded
        if (found := find_heir(rows, one)) is not None
    ]


def find_heir(rows: Rows, memory: Memory) -> Memory | None:
    """What holds at the end of a line of replacements; None where that is gone, or the line has no end."""
    found: Memory | None = memory
    for _ in range(HEIRS):
        if found is None or not found.superseded_by:
            return found
        found = memories.by_id(rows, found.superseded_by)
    return None


STAGE = "threads"
#: Passages of one step.
BATCH = 40
#: How many of the likest by meaning, and of those that share words, a passage is compared with.
NEAREST, SHARING = 30, 20
#: The rarest words of a passage, by which others are found, and up to how many rows that hold one are counted.
MOST_TERMS, COUNTED = 12, 1000
#: So many passages before a statement tell what it is about.
LEAD = 3
#: A passage of fewer words says nothing by itself.
LEAST_WORDS = 2
#: Of two sentences the shorter is taken to have so many words at least.
LEAST_OVERLAP = 3
#: A thread is kept from this probability on, and as many from one passage.
KEPT, MOST = 0.1, 3
#: A thread is followed for so many steps.
STEPS = 4
#: What follows is told in the place of what it follows, and a thread is followed on, from this one on.
SURE = 0.6
#: A passage that surely follows more than so many others says nothing of any of them: plans and reports resemble all others.
FOLLOWED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
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
    found = {
        "shared": min(ranking.MOST_SHARED, sum(shared)) / ranking.MOST_SHARED,
        "rarest": max(shared, default=0.0),
        "overlap": _overlap(pair.older.text, pair.newer.text),
        "lead shared": min(ranking.MOST_SHARED, pair.lead_shared) / ranking.MOST_SHARED,
        "user": float(pair.newer.kind in ("user", "relayed")),
        "telling": min(ranking.TELLING_WORDS, len(new - old)) / ranking.TELLING_WORDS,
        "same session": float(pair.older.session_seq == pair.newer.session_seq),
    }
    if pair.meaning is not None:
        found |= {"meaning": pair.meaning, "lead meaning": pair.lead_meaning}
    return found


def _overlap(older: str, newer: str) -> float:
    """How much of the shorter of two sentences the other holds, of the pair that agrees most.

    What is changed in passing stands beside other matters, but the sentence that changes it repeats words of the old one.
    One that is repeated as it was changes nothing.
    """
    return max(
        (
            len(one & other) / max(LEAST_OVERLAP, min(len(one), len(other)))
            for one in _sentences(older)
            for other in _sentences(newer)
            if one != other
        ),
        default=0.0,
    )


@cached(1024)
def _sentences(said: str) -> tuple[frozenset[str], ...]:
    """The stems of each sentence."""
    return tuple(map(ranking.stems, prose.sentences(said) or [said]))


def probability(found: Mapping[str, float]) -> float:
    """How surely the newer of two says what now holds in the place of the older, 0-1."""
    return ranking.logistic(ranking.weights()["thread" if "meaning" in found else "thread words"], found)


def step(store: Store, *, model: str | None) -> int:
    """Links the next passages to what is older and newer on the same matter; how many were looked at."""
    links, looked = store.read(lambda rows: _links(rows, model))
    if looked:
        store.write(lambda rows: _save(rows, links, _model(rows, model) or 0, looked))
    return len(looked)


def waiting(rows: Rows, *, model: str | None) -> int:
    """How many passages have not been looked at."""
    seq = _model(rows, model)
    reached = cursors.cursor(rows, STAGE, str(seq or 0))
    again = len(passages.passages_to_relink(rows, seq or 0))
    return again + passages.count_after(rows, reached, until=_until(rows, seq))


def _model(rows: Rows, model: str | None) -> int | None:
    return None if model is None else vectors.model_seq(rows, model)


def _until(rows: Rows, model: int | None) -> int:
    """The last passage that can be looked at: with a model, the last that has its vector."""
    return passages.last_passage(rows) if model is None else cursors.cursor(rows, "embed-passage", str(model))


def _links(rows: Rows, name: str | None) -> tuple[list[tuple[int, int, float]], list[int]]:
    model = _model(rows, name)
    after = cursors.cursor(rows, STAGE, str(model or 0))
    seqs = passages.passages_to_relink(rows, model or 0)[:BATCH]
    seqs = seqs or passages.after_passage(rows, after, until=_until(rows, model), limit=BATCH)
    found: list[tuple[int, int, float]] = []
    looking = Looking(rows, model)
    for seq in seqs:
        for pair, rarity in looking.pairs(seq):
            sure = probability(features(pair, rarity))
            if sure >= KEPT:
                found.append((pair.older.seq, pair.newer.seq, round(sure, 4)))
    return found, seqs


def _save(rows: Rows, links: Sequence[tuple[int, int, float]], model: int, looked: Sequence[int]) -> None:
    for older, newer, sure in links:
        passages.link_passages(rows, older, newer, sure, most=MOST)
    if not passages.mark_relinked(rows, model, looked):
        cursors.move_cursor(rows, STAGE, str(model), max(looked[-1], cursors.cursor(rows, STAGE, str(model))))


def follow_threads(
    rows: Rows, seqs: Sequence[int], *, least: float = KEPT, rivals: bool = False
) -> dict[int, list[tuple[int, float]]]:
    """Passage -> (the newest that its thread leads to, how surely), the surest first; passages without a thread are left out.

    A thread of several steps is as sure as all of them together: it drifts to other matters soon. As `rivals` the links
    of a passage say which of them follows it; else whether any does.
    """
    ends: dict[int, list[tuple[int, float]]] = {seq: [(seq, 1.0)] for seq in seqs}
    links: dict[int, list[tuple[int, float]]] = {}
    for step in range(STEPS):
        if unread := sorted({seq for of in ends.values() for seq, _ in of} - links.keys()):
            links |= {seq: [] for seq in unread}
            links |= {
                seq: _competing(of) if rivals else of
                for seq, of in passages.newer_than(rows, unread, least=KEPT, sure=SURE, most=FOLLOWED).items()
            }
        further: dict[int, list[tuple[int, float]]] = {}
        for start, of in ends.items():
            onwards: dict[int, float] = {}
            for seq, known in of:  # what nothing follows is an end
                after = [one for one in links[seq] if one[0] != start and one[1] >= (SURE if step else least)]
                for newer, link in after or [(seq, 1.0)]:
                    onwards[newer] = max(onwards.get(newer, 0.0), round(known * link, 4))
            further[start] = sorted(onwards.items(), key=lambda row: (-row[1], row[0]))
        if further == ends:
            break
        ends = further
    return {start: found for start, of in ends.items() if (found := [one for one in of if one[0] != start])}


def find_followers(rows: Rows, seqs: Sequence[int]) -> dict[int, set[int]]:
    """Passage -> all that surely follow it, those between it and the end of its thread too."""
    found = {seq: {seq} for seq in seqs}
    links: dict[int, list[tuple[int, float]]] = {}
    for _ in range(STEPS):
        if not (unread := sorted(set().union(*found.values()) - links.keys())):
            break
        links |= {seq: [] for seq in unread}
        links |= passages.newer_than(rows, unread, least=SURE, sure=SURE, most=FOLLOWED)
        for of in found.values():
            of |= {newer for seq in of for newer, _ in links[seq]}
    return {start: of - {start} for start, of in found.items()}


def _competing(links: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """The links of one passage when at most one of them follows it: where much is equally near, none is sure."""
    odds = [(seq, sure / max(1e-6, 1.0 - sure)) for seq, sure in links]
    whole = 1.0 + sum(each for _, each in odds)
    return [(seq, each / whole) for seq, each in odds]


def stating_passages(
    rows: Rows, among: Sequence[Memory], *, projects: Sequence[int] | None
) -> tuple[dict[int, Memory], dict[int, Passage]]:
    """The passages of these projects (None: all) that state some memories, by row keys: which memory, and the passage."""
    of = {memory.seq: memory for memory in among}
    turns = search.stating_turns(rows, sorted(of), projects=projects) if of else []
    in_turns = passages.of_turns(rows, sorted({turn for _, turn in turns}))
    read = passages.by_seqs(rows, sorted({seq for seqs in in_turns.values() for seq in seqs}))
    found = {
        seq: of[memory]
        for memory, turn in turns
        for seq in in_turns.get(turn, ())
        if seq in read and hybrid_search.states(read[seq].text, of[memory])
    }
    return found, {seq: read[seq] for seq in found}


def find_replaced(rows: Rows, among: Sequence[Memory]) -> dict[str, str]:
    """Memory -> the one of these, by ids, that surely says what holds now in its place, the last that was said."""
    stating, read = stating_passages(rows, among, projects=None)
    found: dict[str, Memory] = {}
    for seq, of in follow_threads(rows, sorted(stating), least=SURE).items():
        later = [stating[end] for end, sure in of if sure >= SURE and end in stating and read[end].at > read[seq].at]
        known = found.get(stating[seq].id)
        last = max([*later, *([known] if known else [])], key=lambda one: (one.confirmed_at, one.id), default=None)
        if last is not None and last.confirmed_at > stating[seq].confirmed_at:
            found[stating[seq].id] = last
    return {older: newer.id for older, newer in found.items()}


class Looking:
    """Owns what one step has read: neighbours are shared by passages that follow each other."""

    def __init__(self, rows: Rows, model: int | None) -> None:
        self._rows = rows
        self._model = model
        self._near: dict[int, dict[int, float]] = {}
        self._read: dict[int, Passage] = {}
        self._lead: dict[int, list[int]] = {}
        self._rare: dict[str, float] = {}
        self._of = passages.last_passage(rows)

    def pairs(self, seq: int) -> Iterator[tuple[Pair, Mapping[str, float]]]:
        """Each pair that this passage makes with an older or newer one of its project, and the rarity of its words."""
        own = self._passages([seq]).get(seq)
        if own is None or len(ranking.stems(own.text)) < LEAST_WORDS:
            return
        rarity = self._rarity(own.text)
        lead = self._leads([seq])[seq]
        near = self._nearest(own)
        sharing = self._sharing(own, rarity)
        candidates = dict.fromkeys([*near, *sharing])
        for one in lead:
            if leading := self._passages([one]).get(one):
                candidates |= dict.fromkeys(self._nearest(leading))
        candidates.pop(seq, None)
        read = {
            one: passage
            for one, passage in self._passages(list(candidates)).items()
            if passage.turn_seq != own.turn_seq and passage.project_seq == own.project_seq
        }
        leads = self._leads(list(read))
        self._passages(sorted({one for of in leads.values() for one in of} | set(lead)))
        distances = self._cosines(seq, [*read, *(one for of in leads.values() for one in of)])
        from_lead = [self._cosines(one, list(read)) for one in lead]
        for one, other in read.items():
            if other.at == own.at:
                continue
            is_newer = own.at > other.at
            before = lead if is_newer else leads[one]
            older = other if is_newer else own
            meaning = (
                [each.get(one, 0.0) for each in from_lead]
                if is_newer
                else [distances.get(lead_, 0.0) for lead_ in before]
            )
            stems = ranking.stems(older.text)
            shared = max(
                (
                    sum(rarity.get(stem, 0.0) for stem in stems & ranking.stems(self._read[lead_].text))
                    for lead_ in before
                    if lead_ in self._read
                ),
                default=0.0,
            )
            yield Pair(
                older=older, newer=own if is_newer else other,
                meaning=distances.get(one, 0.0) if self._model is not None else None,
                lead_meaning=max(meaning, default=0.0), lead_shared=shared,
            ), rarity  # fmt: skip

    def _passages(self, seqs: Sequence[int]) -> dict[int, Passage]:
        missing = [seq for seq in seqs if seq not in self._read]
        if missing:
            self._read |= passages.by_seqs(self._rows, missing)
        return {seq: self._read[seq] for seq in seqs if seq in self._read}

    def _leads(self, seqs: Sequence[int]) -> dict[int, list[int]]:
        """The passages right before each in its session, the nearest first."""
        missing = [seq for seq in seqs if seq not in self._lead]
        if missing:
            self._lead |= passages.before_passage(self._rows, missing, most=LEAD)
        return {seq: self._lead.get(seq, []) for seq in seqs}

    def _nearest(self, own: Passage) -> dict[int, float]:
        if self._model is None:
            return {}
        if own.seq not in self._near:
            vector = vectors.of_row(self._rows, "passage", own.seq, model=self._model)
            found = (
                vectors.vector_hits(
                    self._rows, "passage", self._model, vector[0], projects=[own.project_seq], limit=NEAREST + 1
                )
                if vector
                else []
            )
            self._near[own.seq] = {
                int(seq): ranking.cosine(distance) for seq, _, _, distance in found if seq != own.seq
            }
        return self._near[own.seq]

    def _sharing(self, own: Passage, rarity: Mapping[str, float]) -> list[int]:
        asked = sorted(tokens.question_terms(own.text), key=lambda term: -rarity.get(tokens.stem(term), 0.0))[
            :MOST_TERMS
        ]
        found = fulltext.text_hits(self._rows, "passage", asked, projects=[own.project_seq], limit=SHARING)
        return [int(seq) for seq, _ in found]

    def _cosines(self, seq: int, others: Sequence[int]) -> dict[int, float]:
        vector = vectors.of_row(self._rows, "passage", seq, model=self._model) if self._model is not None else []
        if self._model is None or not vector or not others:
            return {}
        found: dict[int, float] = {}
        each = list(dict.fromkeys(others))
        for at in range(0, len(each), 200):
            part = vectors.distances(self._rows, "passage", self._model, vector[0], each[at : at + 200])
            found |= {one: ranking.cosine(distance) for one, distance in part.items()}
        return found

    def _rarity(self, said: str) -> dict[str, float]:
        words = {tokens.stem(word): word for word in tokens.query_terms(said)}
        for stem, word in words.items():
            if stem not in self._rare:
                count = fulltext.rows_with(self._rows, "passage", word, most=COUNTED)
                self._rare[stem] = ranking.rarity(count, self._of)
        return {stem: self._rare[stem] for stem in words}
