"""Tags the memories of a project with topics: the phrases that several of them share."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from csmd.memory.topic_phrases import Key, find_phrases
from csmd.store import topics
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import display, tokens

#: Most tags of one memory.
MAX_TAGS = 3
#: Fewest memories of a project that is tagged: in fewer, common words are chance.
MIN_TAGGABLE = 5
#: Fewest memories of a topic.
MIN_MEMORIES = 2
#: Fewest sessions with a topic.
MIN_SESSIONS = 2
#: Greatest share of the memories with one topic.
MAX_SHARE = 0.2
#: Words are a name if they are written as one in at least one of this many memories.
MIN_NAMED_FRACTION = 3
#: Words that are not a name must be used as a noun at least this many times as often as a verb.
MIN_THINGS_PER_DEED = 2
#: A topic is dropped for a longer one with at least this share of its memories.
MIN_COVERED_SHARE = 0.6
#: Least share of the memories in which the noun of a topic ends a phrase after an article, or is a name by itself.
MIN_CLOSING_SHARE = 0.3
#: Number of words -> the factor of a topic's score.
WORDS_WEIGHT = {1: 1.0, 2: 1.5, 3: 1.6}
#: The factor of the score of a topic that is mostly written as code or as a file.
NAMED_WEIGHT = 1.15
#: A project is tagged again when one of this many memories is new.
MEMORIES_PER_CHANGE_AT_REST = 200
MEMORIES_PER_CHANGE_IMPORTING = 4
#: Most memories of a project that are read, the newest: each takes a millisecond of processor time.
MAX_MEMORIES = 5000
#: Tags of one write, for which hooks wait.
WRITE_BATCH = 200


class TaggableMemory(NamedTuple):
    """A memory as topic tagging reads it."""

    seq: int
    text: str
    session_id: str


class Tag(NamedTuple):
    """A memory and one of its topics; `weight` is 0-1."""

    seq: int
    topic: str
    weight: float


@dataclass(slots=True)
class _Subject:
    """Counts of a subject: its memories and sessions, its spellings, and how it is used in sentences."""

    memories: set[int] = field(default_factory=set)
    sessions: set[str] = field(default_factory=set)
    things: set[str] = field(default_factory=set)
    """The sessions in which it is used as a thing."""
    written: Counter[str] = field(default_factory=Counter)
    """Its spellings; those used as a thing count twice."""
    named: int = 0
    closing: int = 0
    thing: int = 0
    deed: int = 0

    @property
    def name(self) -> str:
        """The most frequent spelling, the shortest of several."""
        return min(self.written, key=lambda written: (-self.written[written], len(written), written))


def choose_tags(memories: Sequence[TaggableMemory]) -> list[Tag]:
    """Tags each memory of a project with at most MAX_TAGS topics, the best first; in order of memories."""
    total = len(memories)
    if total < MIN_TAGGABLE:
        return []
    subjects, keys_of = _count_subjects(memories)
    sessions = len({memory.session_id for memory in memories})
    frequent = {key: subject for key, subject in subjects.items() if _is_frequent(subject, total)}
    by_key = {key: subject for key, subject in frequent.items() if _is_thing(key, subject, total, sessions)}
    scores = {key: _score(key, subject, total) for key, subject in by_key.items()}
    scores = {key: scores[key] for key in _drop_covered(by_key, scores)}
    for _ in range(3):  # memories whose topic too few others chose choose again
        best_of = {seq: _choose_best(keys, scores) for seq, keys in keys_of.items()}
        members = Counter(key for keys in best_of.values() for key in keys)
        rare = [key for key in scores if members[key] < _compute_minimum(total)]
        if not rare:
            break
        for key in rare:
            del scores[key]
    best_of = {seq: _choose_best(keys, scores) for seq, keys in keys_of.items()}
    best_score = max(scores.values(), default=1.0)
    tags = ((seq, key) for seq, keys in sorted(best_of.items()) for key in keys)
    return [Tag(seq, by_key[key].name, round(scores[key] / best_score, 3)) for seq, key in tags]


def _count_subjects(memories: Sequence[TaggableMemory]) -> tuple[dict[Key, _Subject], dict[int, list[Key]]]:
    """Returns (the subjects that enough memories share, by key; the keys of each memory)."""
    # Nine phrases in ten are in one memory only: all are counted by their hash, and only the others are kept.
    counts: Counter[int] = Counter()
    for memory in memories:
        counts.update({hash(phrase.key) for phrase in find_phrases(memory.text)})
    repeated = {hashed for hashed, count in counts.items() if count >= _compute_minimum(len(memories))}
    del counts
    subjects: dict[Key, _Subject] = {}
    keys_of: dict[int, list[Key]] = {}
    nouns: set[str] = set()
    for memory in sorted(memories, key=lambda memory: memory.seq):
        phrases = find_phrases(memory.text)
        nouns |= {phrase.key[-1] for phrase in phrases if phrase.is_led}
        phrases = [phrase for phrase in phrases if hash(phrase.key) in repeated]
        keys_of[memory.seq] = sorted({phrase.key for phrase in phrases})
        for phrase in phrases:
            subject = subjects.setdefault(phrase.key, _Subject())
            subject.memories.add(memory.seq)
            subject.sessions.add(memory.session_id)
            subject.written[phrase.written] += 1 + phrase.is_thing
            subject.named += phrase.is_name
            subject.closing += phrase.closes
            subject.thing += phrase.is_thing
            subject.deed += phrase.is_deed
            if phrase.is_thing or phrase.is_name:
                subject.things.add(memory.session_id)
    # A word that no article ever leads is an adverb, a verb, or of another language.
    return {key: subject for key, subject in subjects.items() if key[-1] in nouns}, keys_of


def normalise_name(typed: str) -> str:
    """Normalises a topic's name to small letters on one line without surrounding marks."""
    return display.cut(tokens.normalise(typed), 60)


# --- which subjects are topics


def _compute_minimum(total: int) -> int:
    """Computes the fewest memories of a topic in a project with `total` memories."""
    return max(MIN_MEMORIES, math.ceil(math.log2(total) / 3))


def _is_frequent(subject: _Subject, total: int) -> bool:
    count = len(subject.memories)
    if not _compute_minimum(total) <= count <= max(MIN_MEMORIES + 1, MAX_SHARE * total):
        return False
    return len(subject.sessions) >= MIN_SESSIONS and subject.closing >= MIN_CLOSING_SHARE * count


def _is_thing(key: Key, subject: _Subject, total: int, sessions: int) -> bool:
    """Whether words name a thing, as no verb or adjective does.

    Words that are not a name must do so in enough memories and sessions, a single word in more than a phrase.
    """
    count, is_word = len(subject.memories), len(key) == 1
    # The first word of a sentence does not show whether it is a name.
    if subject.named * MIN_NAMED_FRACTION >= count:
        return 2 * subject.deed <= count
    least_sessions = max(MIN_SESSIONS, math.ceil(math.log2(sessions) / (2 if is_word else 2.5)))
    least_memories = 2 * _compute_minimum(total) - 1 if is_word else _compute_minimum(total)
    is_usual = count >= least_memories and len(subject.things) >= least_sessions
    return is_usual and subject.thing >= MIN_THINGS_PER_DEED * subject.deed


def _drop_covered(by_key: dict[Key, _Subject], scores: Mapping[Key, float]) -> list[Key]:
    """Drops subjects whose memories are mostly those of a longer or better one that shares a word."""
    remaining: list[Key] = []
    by_word: dict[str, list[Key]] = {}
    for key in sorted(scores, key=lambda key: (-scores[key], key)):
        memories = by_key[key].memories
        rivals = {other for word in key for other in by_word.get(word, ())}
        if any(_is_covered(memories, by_key[other].memories, is_part=set(key) < set(other)) for other in rivals):
            continue
        remaining.append(key)
        for word in key:
            by_word.setdefault(word, []).append(key)
    return remaining


def _is_covered(memories: set[int], others: set[int], *, is_part: bool) -> bool:
    """Whether a subject's memories are mostly another's; for a `part` of it, whether most of its own are."""
    return len(memories & others) >= MIN_COVERED_SHARE * (len(memories) if is_part else len(memories | others))


def _score(key: Key, subject: _Subject, total: int) -> float:
    count = len(subject.memories)
    spread = math.log(1 + count) * math.log(1 + total / count)
    name_weight = NAMED_WEIGHT if subject.named * 2 >= count else 1.0
    return spread * WORDS_WEIGHT[len(key)] * name_weight


def _choose_best(keys: Sequence[Key], scores: Mapping[Key, float]) -> list[Key]:
    """Returns the best topics of one memory, none a part of another."""
    best: list[Key] = []
    for key in sorted((key for key in keys if key in scores), key=lambda key: (-scores[key], key)):
        if len(best) < MAX_TAGS and not any(set(key) <= set(other) or set(other) <= set(key) for other in best):
            best.append(key)
    return best


def step(store: Store, *, force: bool, reading: bool) -> int:
    """Tags the memories of the next project that has changed enough (with `force`: at all); returns their number, or 0.

    `reading`: an import is running. The computation takes seconds, outside of reads and writes.
    """
    pending = store.read(lambda rows: _find_due(rows, force=force, reading=reading))
    if pending is None:
        return 0
    project, memories = pending
    tags = choose_tags(memories)
    since = memories[0].seq if len(memories) == MAX_MEMORIES else 0
    changed = store.read(lambda rows: topics.find_changed_tags(rows, project.project_seq, tags, since=since))
    for start in range(0, len(changed), WRITE_BATCH):
        part = changed[start : start + WRITE_BATCH]
        store.write(lambda rows, part=part: topics.replace_tags(rows, project.project_seq, part))  # type: ignore[misc]
    store.write(lambda rows: topics.mark_computed(rows, project))
    return max(1, project.memories)


def _find_due(rows: Rows, *, force: bool, reading: bool) -> tuple[topics.DueProject, list[TaggableMemory]] | None:
    share = MEMORIES_PER_CHANGE_IMPORTING if reading else MEMORIES_PER_CHANGE_AT_REST
    for project in topics.list_due_projects(rows):
        if force or project.changes * share >= project.memories:
            newest = topics.list_newest_memories(rows, project.project_seq, limit=MAX_MEMORIES)
            return project, [TaggableMemory(*memory) for memory in newest]
    return None
