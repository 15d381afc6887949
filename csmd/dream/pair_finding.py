"""Finds the memories of a project that may belong together; pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice

from csmd.dream.actions import Snapshot, sort_key
from csmd.knowledge import Memory
from csmd.memory import duplicates
from csmd.text import claims, restatement, similarity
from csmd.text.claims import find_renames, follow_renames

#: Most memories that a memory is compared with because of a topic or a contradicted word.
MAX_SIMILAR = 12
#: Fewest words that two memories share if only a topic joins them.
MIN_SHARED_WORDS = 2
#: A pair of ids.
IdPair = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedMemories:
    """Memories that may belong together, by id, in the order of their texts.

    In each pair of `restated` one memory covers the other; in those of `reworded` it does so in other words. `close`
    maps a memory to those with near words, topics or vectors. `duplicates` repeat a memory before them. `renames` maps
    former names to present ones.
    """

    restated: tuple[IdPair, ...] = ()
    reworded: frozenset[frozenset[str]] = frozenset()
    close: Mapping[str, tuple[str, ...]]
    duplicates: frozenset[str] = frozenset()
    renames: Mapping[str, str]

    def covers(self, memory: Memory, other: Memory) -> bool:
        """Whether a memory states everything that another one states."""
        return {memory.id, other.id} in self.reworded or similarity.compare(other.text, memory.text).says_all


#: The result for a scope that is not compared.
NO_RELATED = RelatedMemories(close={}, renames={})


def find_related(snapshot: Snapshot) -> Generator[None, None, RelatedMemories]:
    """Finds which living memories may belong together, in an order that depends only on their texts.

    Each step looks at one memory, because thousands take seconds.
    """
    alive = sorted((memory for memory in snapshot.memories.values() if memory.is_alive), key=sort_key)
    near = yield from _find_near(snapshot, alive)
    renames = yield from _find_renames(snapshot)
    restated: set[IdPair] = set()
    same: set[IdPair] = set()
    for pairs in find_restatements(alive):
        restated.update(pairs)
        same.update(pair for pair in pairs if is_same(*_read_texts(snapshot, pair)))
        yield
    reworded: set[IdPair] = set()
    for pair in sorted(snapshot.near & near - restated - {pair[::-1] for pair in restated}):
        if restatement.judge(*_read_texts(snapshot, pair)).is_same:
            reworded.add(pair)
        yield

    order = {memory.id: number for number, memory in enumerate(alive)}
    own = {memory.id for memory in alive if memory.project_seq == snapshot.project_seq}

    def sort_pairs(pairs: Iterable[IdPair]) -> list[IdPair]:
        """Returns the pairs that have a memory of the project, each once, with its sides in order."""
        sides = [sorted(pair, key=order.__getitem__) for pair in pairs if not own.isdisjoint(pair)]
        return sorted({(first, second) for first, second in sides}, key=lambda pair: list(map(order.__getitem__, pair)))

    close: dict[str, tuple[str, ...]] = defaultdict(tuple)
    for first, second in sort_pairs(near):
        close[first] += (second,)
        close[second] += (first,)
    return RelatedMemories(
        restated=tuple(sort_pairs(restated | reworded)), reworded=frozenset(map(frozenset, reworded)),
        close=dict(close), duplicates=frozenset(other for _, other in sort_pairs(same | reworded)), renames=renames,
    )  # fmt: skip


def _read_texts(snapshot: Snapshot, pair: IdPair) -> tuple[str, str]:
    first, second = pair
    return snapshot.memories[first].text, snapshot.memories[second].text


def is_same(text: str, other: str) -> bool:
    """Whether two texts state the same in nearly the same words."""
    return similarity.compare(text, other).relation == "same"


def _find_near(snapshot: Snapshot, alive: list[Memory]) -> Generator[None, None, set[IdPair]]:
    """Returns the pairs with near vectors, similar words, a common topic or a contradicted word."""
    ids = {memory.id for memory in alive}
    near = {pair for pair in snapshot.near if ids.issuperset(pair)}
    everywhere = {snapshot.project_seq: snapshot.everywhere}
    groups = duplicates.iter_pairs(alive, everywhere=everywhere)
    similar = ([(alive[pair.first].id, alive[pair.second].id) for pair in pairs] for pairs in groups)
    for pairs in chain(similar, _pair_by_topics(snapshot, alive), _pair_contradictions(alive)):
        near.update(pairs)
        yield
    return near


def _find_renames(snapshot: Snapshot) -> Generator[None, None, Mapping[str, str]]:
    """Returns the renames that the memories state: former name -> present name."""
    texts: list[str] = []
    for memory in sorted(snapshot.memories.values(), key=lambda memory: (snapshot.stated_at(memory), sort_key(memory))):
        if find_renames(memory.text):
            texts.append(memory.text)
        yield
    return follow_renames(texts)


def _pair_by_topics(snapshot: Snapshot, memories: list[Memory]) -> Iterator[list[IdPair]]:
    """Yields for each memory of a topic its pairs with the memories of its gate and authority that share most words."""
    groups: dict[tuple[str, str, str], list[Memory]] = defaultdict(list)
    for memory in memories:
        for topic in snapshot.topics.get(memory.id, frozenset()):
            groups[topic, memory.gate, memory.authority].append(memory)
    for _, members in sorted(groups.items()):
        stems = [similarity.gist(memory.text).stems for memory in members]
        texts_with = _index_words(stems)
        for index, memory in enumerate(members):
            shared = Counter(chain.from_iterable(texts_with[stem] for stem in stems[index]))
            # Ties are broken by the order of the texts.
            similar = sorted((-count, k) for k, count in shared.items() if count >= MIN_SHARED_WORDS and k != index)
            yield [(memory.id, members[other].id) for _, other in similar[:MAX_SIMILAR]]


def _index_words(texts: Iterable[Iterable[str]]) -> dict[str, list[int]]:
    """Maps each word to the indexes of the texts that contain it."""
    texts_with: dict[str, list[int]] = defaultdict(list)
    for number, text_words in enumerate(texts):
        for word in text_words:
            texts_with[word].append(number)
    return texts_with


def _pair_contradictions(memories: list[Memory]) -> Iterator[list[IdPair]]:
    """Yields for each memory its pairs with the newest ones that name something it speaks against."""
    newest = sorted(memories, key=lambda memory: (memory.confirmed_at, sort_key(memory)), reverse=True)
    folded = [(memory, memory.text.casefold()) for memory in newest]
    for memory in memories:
        pairs: list[IdPair] = []
        for words in claims.find_ended(memory.text):
            stem = max(words, key=lambda word: (len(word), word))
            candidates = (other for other, text in folded if stem in text and other.id != memory.id)
            naming = (other for other in candidates if stem in claims.parse(other.text).stems)
            pairs += ((memory.id, other.id) for other in islice(naming, MAX_SIMILAR))
        yield pairs


def find_restatements(memories: list[Memory]) -> Iterator[list[IdPair]]:
    """Yields for each memory the id pairs of it and one that covers it.

    Only memories with its rarest word are compared.
    """
    words = [similarity.required_words(memory.text) for memory in memories]
    texts_with = _index_words(words)
    for index, memory in enumerate(memories):
        rarest_word = min(words[index], key=lambda word: (len(texts_with[word]), word), default="")
        others = [k for k in texts_with.get(rarest_word, ()) if k != index and words[index] <= words[k]]
        full = (memories[k] for k in others if similarity.compare(memory.text, memories[k].text).says_all)
        yield [(memory.id, other.id) for other in full]
