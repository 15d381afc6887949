"""The second phase: which memories may belong together, so that not each is compared with each; pure.

Two belong together when one says all of the other, when one speaks against what the other names, when half of their
words are the same, when their vectors are near, or when they are about one topic, of one gate, from one mouth, and share
words. Only those that are seen in one place: of the project, and of what holds all around it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from csmd import text
from csmd.believe import alike, clauses, phrases, supersede
from csmd.dream import apart, wording
from csmd.dream.actions import Action
from csmd.dream.snapshot import Snapshot, alive, order
from csmd.model import Memory

#: Of a group's memories each is compared with so many of those that share most words with it.
LIKEST = 12
#: So many words must be the same where only a topic joins two memories.
SHARED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Memories that may belong together: of one topic ("" for none), gate and authority; ids in order of what they say."""

    topic: str
    gate: str
    authority: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What may belong together: groups, and pairs of ids in the order of what they say, whose words or vectors are near."""

    groups: tuple[Group, ...]
    told: tuple[tuple[str, str], ...]
    """Pairs of which one says all of the other, whichever it is."""
    alike: tuple[tuple[str, str], ...]
    near: tuple[tuple[str, str], ...]
    doubles: frozenset[str]
    """Of those that say the same, each but the first."""
    renames: Mapping[str, str]
    """Names that changed -> those they have now, as the memories say."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a phase looks at, as ids, and what it says of each: an action, or that nothing is to be done."""

    over: Callable[[Snapshot, Gathered], Iterable[tuple[str, ...]]]
    look: Callable[..., Action | None]


def gathering(snapshot: Snapshot) -> Generator[None, None, Gathered]:
    """The groups and pairs of the memories that are alive, in an order that depends on what they say alone.

    A step looks at one memory: thousands take seconds, and others are let pass in between.
    """
    every = sorted((one for one in snapshot.memories.values() if alive(one)), key=order)
    pairs: list[alike.Pair] = []
    for found in alike.comparing(every, everywhere={snapshot.project_seq: snapshot.everywhere}):
        pairs += found
        yield
    words = {(every[pair.one].id, every[pair.other].id) for pair in pairs}
    groups = tuple(_groups(snapshot, every))
    place = {memory.id: at for at, memory in enumerate(every)}
    own = {memory.id for memory in every if memory.project_seq == snapshot.project_seq}

    def ordered(pairs: set[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        sides = {
            (min(pair, key=place.__getitem__), max(pair, key=place.__getitem__)) for pair in pairs if set(pair) & own
        }
        return tuple(sorted(sides, key=lambda pair: (place[pair[0]], place[pair[1]])))

    close = {pair for pair in snapshot.near if set(pair) <= place.keys()}
    for group in groups:
        for ident, others in _sharing(group, snapshot):
            close.update((ident, other) for other in others)
            yield
    for opposed in _against(every):
        close.update(opposed)
        yield
    said = sorted(snapshot.memories.values(), key=lambda one: (snapshot.stated_at(one), order(one)))
    yield
    renaming: list[str] = []
    for memory in said:
        if clauses.renames(memory.text):
            renaming.append(memory.text)
        yield
    repeated: set[tuple[str, str]] = set()
    same: set[tuple[str, str]] = set()
    for parts in telling(every):
        repeated.update(parts)
        same.update(pair for pair in parts if wording.same(*(snapshot.memories[ident].text for ident in pair)))
        yield
    told = ordered(repeated)
    return Gathered(
        groups=groups, told=told, alike=ordered(words), near=ordered(close - words), renames=supersede.table(renaming),
        doubles=frozenset(other for one, other in told if {(one, other), (other, one)} & same),
    )  # fmt: skip


def _against(every: list[Memory]) -> Iterator[list[tuple[str, str]]]:
    """Of each memory the pairs with the newest that name something it speaks against."""
    newest = sorted(every, key=lambda memory: (memory.confirmed_at, order(memory)), reverse=True)
    folded = [(memory, memory.text.casefold()) for memory in newest]
    for memory in every:
        found: list[tuple[str, str]] = []
        if not phrases.SPEAKS_AGAINST.search(memory.text):
            yield found  # taking a text apart is dear
            continue
        said = clauses.read(memory.text)
        ended = [against.what for against in said.instead]
        for what in (*ended, *said.gone, *(liked_less for _, liked_less in said.prefers)):
            stem = max(what, key=lambda one: (len(one), one))
            naming = (one for one, plain in folded if stem in plain and one.id != memory.id)
            beside = (one for one in naming if stem in clauses.read(one.text).stems)
            found += ((memory.id, one.id) for one in islice(beside, LIKEST))
        yield found


def telling(every: list[Memory]) -> Iterator[list[tuple[str, str]]]:
    """Of each memory (it, one that says all of it), by id: that has all of its words, the rarest of them, too."""
    words = [apart.content(memory.text) for memory in every]
    having: dict[str, list[int]] = defaultdict(list)
    for place, found in enumerate(words):
        for word in found:
            having[word].append(place)
    for place, found in enumerate(words):
        rarest = min(found, key=lambda word: (len(having[word]), word), default="")
        yield [
            (every[place].id, every[other].id)
            for other in having.get(rarest, ())
            if other != place and found <= words[other] and wording.says_all(every[other].text, every[place].text)
        ]


def _groups(snapshot: Snapshot, every: list[Memory]) -> Iterator[Group]:
    found: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for memory in every:
        for topic in snapshot.topics.get(memory.id, frozenset()):
            found[topic, memory.gate, memory.authority].append(memory.id)
    for (topic, gate, authority), members in sorted(found.items()):
        if len(members) > 1:
            yield Group(topic=topic, gate=gate, authority=authority, members=tuple(members))


def _sharing(group: Group, snapshot: Snapshot) -> Iterator[tuple[str, list[str]]]:
    """Each memory of a group beside those that share words with it, of them those that share most."""
    stems = [text.gist(snapshot.memories[ident].text).stems for ident in group.members]
    having: dict[str, list[int]] = defaultdict(list)
    for at, held in enumerate(stems):
        for stem in held:
            having[stem].append(at)
    for at, ident in enumerate(group.members):
        shared: Counter[int] = Counter()
        for stem in stems[at]:
            shared.update(having[stem])
        del shared[at]
        # The members stand in the order of what they say: the first of those that share as much.
        found = sorted((-number, other) for other, number in shared.items() if number >= SHARED)
        yield ident, [group.members[other] for _, other in found[:LIKEST]]
