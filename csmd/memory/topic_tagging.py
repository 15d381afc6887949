"""Finds the topics of a project in the words of its memories."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from csmd import data
from csmd.store import topics as stored
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import clauses, display, tokens
from csmd.text.clauses import WEAK
from csmd.text.tokens import STOP_WORDS, TURNING_WORDS

_WORDS = data.word_table("topic_words.txt")
#: What a phrase does not go across.
BREAKS = (
    STOP_WORDS | TURNING_WORDS | WEAK - {"work"} | _WORDS["adverb"] | _WORDS["verb"] - _WORDS["also_noun"]
) - _WORDS["determiner"]
#: Words of every project: they make a subject only beside another.
GENERIC = _WORDS["generic"] | _WORDS["verb"]
_GENERIC_STEMS = frozenset(map(tokens.stem, GENERIC))


#: Tags of one memory, and words of a subject.
MOST_TAGS, MOST_WORDS = 3, 3
#: A subject of fewer memories, or of one session, heads nothing; one of more than this share separates nothing.
LEAST_MEMORIES, LEAST_SESSIONS, MOST_SHARE = 2, 2, 0.2
#: In fewer memories nothing can be told to be shared.
LEAST_KNOWN = 5
#: Words that are written as a name in one of so many of their memories are one.
NAMED_PART = 3
#: Words that are no name stand for a thing so many times as often as for what is done.
THING_OVER_DEED = 2
#: A shorter subject whose memories mostly say the longer one is left to it.
SAID_LONGER = 0.6
#: Of what is looked at of one memory.
MOST_CHARACTERS, MOST_SUBJECTS = 1200, 120
#: How far a longer subject goes before a shorter one that is as well spread.
WORDS_WEIGHT = {1: 1.0, 2: 1.5, 3: 1.6}
#: A noun closes what an article led, or stands as a name alone, at least so often; what never does is an adjective or verb.
LEAST_CLOSING = 0.3
#: And what was written as code or as a file before what was only said.
NAMED_WEIGHT = 1.15

_TOKEN = re.compile(
    r"`(?P<code>[^`\n]{2,80})`|(?P<url>https?://\S+)|(?P<file>(?:[\w.~-]*/)*[\w-]{1,60}\.(?P<ending>[A-Za-z][a-z0-9]{0,4}))(?![\w(])(?:[:#]\d[\d-]*)?"
    r"|(?P<path>(?:[\w.~@-]+/)+[\w.-]*)|(?P<number>\d[\d.,]*(?!\w))|(?P<word>--?[A-Za-z][\w-]*|[^\W\d_][\w]*(?:['\u2019-][^\W_]+)*)|(?P<mark>[^\s\w])"
)
#: Between these stands a thing, or what is done.
_BEFORE_THING = (clauses.WAYS.keys() | {"of", "about", "without"}) - {"to", "as"}
_BEHIND_THING = clauses.COPULA | {"of", "has", "have", "must", "should"}
_ENDS = clauses.SENTENCE_ENDS | {"", "*", "-"}
#: Stands for a number.
AMOUNT = "#"
_BEFORE_DEED = clauses.WORDS["auxiliary"] | {AMOUNT, "to", "i", "we", "you", "they", "it", "let's"}
_BEHIND_DEED = _WORDS["determiner"] | {"it", "them", "up", "down", "off", "out", "back"}
#: How words end that say how, or what became of something.
_NO_THING = ("ly", "ed")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[^\W\d_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggableMemory:
    """A memory as topic tagging reads it."""

    seq: int
    text: str
    session_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """A memory and what it is about; `weight` is 0-1, `reason` says how many memories share it."""

    seq: int
    topic: str
    weight: float
    reason: str


@dataclass(slots=True)
class _Subject:
    """Counts of a subject: its memories and sessions, its spellings, and how it is used in sentences."""

    memories: set[int]
    sessions: set[str]
    things: set[str]
    """The sessions in which it stands for a thing."""
    written: Counter[str]
    """Its spellings, those that stand for a thing counted twice."""
    named: int = 0
    closing: int = 0
    thing: int = 0
    deed: int = 0


#: A subject's words, by their stems; a file is one word with its dot.
Key = tuple[str, ...]


class Phrase(NamedTuple):
    """Words that a text may be about.

    `is_led`: they follow an article or the like, or are a name. `closes`: they stand where a phrase has its noun.
    `is_thing`: they stand where only a thing can, as "in the queue" or "the queue is"; `is_deed`: where a verb, an amount or a
    heading does, as "to queue", "queue it", "3 queues", "Queue: ...".
    """

    key: Key
    written: str
    is_name: bool
    is_led: bool
    closes: bool
    is_thing: bool
    is_deed: bool


class Part(NamedTuple):
    """A word in small letters; whether it is written as a name is, and whether it is all of it."""

    word: str
    is_named: bool
    is_whole: bool


def tags_of(memories: Sequence[TaggableMemory]) -> list[Tag]:
    """Tags each memory of a project with at most MOST_TAGS topics, the best first; in order of memories."""
    if len(memories) < LEAST_KNOWN:
        return []
    # Nine phrases in ten stand in one memory alone: they are counted by their hash, and only the others are looked at.
    counts = Counter(at for memory in memories for at in {hash(phrase.key) for phrase in subjects(memory.text)})
    repeated = {at for at, number in counts.items() if number >= _least(len(memories))}
    del counts
    by_key: dict[Key, _Subject] = {}
    of: dict[int, list[Key]] = {}
    nouns: set[str] = set()
    for memory in sorted(memories, key=lambda memory: memory.seq):
        phrases = subjects(memory.text)
        nouns |= {phrase.key[-1] for phrase in phrases if phrase.is_led}
        phrases = [phrase for phrase in phrases if hash(phrase.key) in repeated]
        of[memory.seq] = sorted({phrase.key for phrase in phrases})
        for phrase in phrases:
            subject = by_key.setdefault(phrase.key, _Subject(set(), set(), set(), Counter()))
            subject.memories.add(memory.seq)
            subject.sessions.add(memory.session_id)
            subject.written[phrase.written] += 1 + phrase.is_thing
            subject.named += phrase.is_name
            subject.closing += phrase.closes
            subject.thing += phrase.is_thing
            subject.deed += phrase.is_deed
            if phrase.is_thing or phrase.is_name:
                subject.things.add(memory.session_id)
    # What no article ever led is an adverb, a verb, or a word of another language.
    sessions = len({memory.session_id for memory in memories})
    kept = {
        key: subject
        for key, subject in by_key.items()
        if key[-1] in nouns and _heads(subject, len(memories)) and _is_thing(key, subject, len(memories), sessions)
    }
    score = {key: _score(key, subject, len(memories)) for key, subject in kept.items()}
    score = {key: score[key] for key in _distinct(kept, score)}
    for _ in range(3):  # what too few memories chose is no heading: those choose again
        chosen = {seq: _best(keys, score) for seq, keys in of.items()}
        members = Counter(key for keys in chosen.values() for key in keys)
        few = [key for key in score if members[key] < _least(len(memories))]
        if not few:
            break
        for key in few:
            del score[key]
    chosen = {seq: _best(keys, score) for seq, keys in of.items()}
    names = {key: _name(kept[key]) for key in score}
    top = max(score.values(), default=1.0)
    return [
        Tag(
            seq=seq, topic=names[key], weight=round(score[key] / top, 3),
            reason=f"shared by {len(kept[key].memories)} of {display.amount(len(memories), 'memory')}, in {display.amount(len(kept[key].sessions), 'session')}",
        )
        for seq, keys in sorted(chosen.items())
        for key in keys
    ]  # fmt: skip


def name_of(typed: str) -> str:
    """Normalises a topic's name: one line, small letters, no surrounding marks; "" for nothing."""
    return display.cut(tokens.normalise(typed), 60)


# --- what a text speaks of


def subjects(text: str) -> list[Phrase]:
    """Finds the phrases that a text may be about, in order."""
    phrases: list[Phrase] = []
    run: list[Part] = []
    before, opens = "", True
    for token in _TOKEN.finditer(text[:MOST_CHARACTERS]):
        kind, value = token.lastgroup, token.group()
        small = value.casefold().replace("\u2019", "'")
        if kind == "word" and small not in BREAKS and small not in _WORDS["determiner"] and "'" not in small:
            is_cased = value[1:] != value[1:].lower() or (value[0].isupper() and not opens)
            named = is_cased or "_" in value or "-" in value
            parts = _parts(value)
            run.extend(Part(part, named, len(parts) == 1) for part in parts)
        else:
            phrases.extend(_phrases(run, before, small))
            run.clear()
            before = AMOUNT if kind == "number" else small
        if kind in ("file", "ending") and token["ending"].casefold() in _WORDS["ending"]:
            phrases.append(_file(token["file"].rsplit("/", 1)[-1].casefold()))
        elif kind == "code":
            phrases.extend(_of_code(token["code"]))
        opens = kind == "mark" and value not in "(/'\""
    phrases.extend(_phrases(run, before, ""))
    return phrases[:MOST_SUBJECTS]


def _file(name: str) -> Phrase:
    return Phrase((name,), name, is_name=True, is_led=True, closes=True, is_thing=True, is_deed=False)


def _of_code(code: str) -> list[Phrase]:
    """What a code span names: a file, a path's last part, an identifier, the beginning of a command."""
    words = code.split()
    if not words:
        return []
    last = words[0].rstrip("/,;").rsplit("/", 1)[-1]
    stem, dot, ending = last.partition(":")[0].rpartition(".")
    if len(words) == 1 and dot and ending.casefold() in _WORDS["ending"]:
        return [_file(f"{stem}.{ending}".casefold())]
    names = [word.partition("(")[0].rsplit(".", 1)[-1] for word in words[:MOST_WORDS]]
    run = [Part(part, True, len(words) == len(parts) == 1) for parts in map(_parts, names) for part in parts]
    if len(run) == 1 and names[0].islower() and names[0].isalpha():
        run = [
            Part(word, False, True) for word, *_ in run if word not in BREAKS
        ]  # `render` and `with` are words of a language
    return list(_phrases(run, "", ""))


def _parts(value: str) -> list[str]:
    if value.casefold() in _WORDS["one_word"]:
        return [value.casefold()]
    return [part.casefold() for part in _PART.findall(value) if len(part) > 1]


def _phrases(run: Sequence[Part], before: str, behind: str) -> Iterable[Phrase]:
    """The phrases of up to three words in a run of words that nothing breaks, between two words or marks that do."""
    stems = [tokens.stem(word) if word.isalpha() else word for word, *_ in run]
    led = before in _WORDS["determiner"]
    # "5 minutes" are how many, and a word before a colon is a heading.
    opens_deed = before in _BEFORE_DEED or (behind == ":" and before in _ENDS)
    closes_deed = behind in _BEHIND_DEED and (len(run) > 1 or not led)
    stands_for_thing = (led or before in _BEFORE_THING or behind in _BEHIND_THING) and not closes_deed
    for start in range(len(run)):
        for size in range(1, MOST_WORDS + 1):
            part = run[start : start + size]
            if len(part) < size or len({word for word, *_ in part}) < size:
                break
            words = [word for word, *_ in part]
            named = all(word.is_named for word in part) and (size > 1 or part[0].is_whole)
            if _is_generic(words, named=named):
                continue
            ends = start + size == len(run)  # there the noun stands of which the rest is told
            is_led = ends and (led or (named and start == 0))
            closes = is_led or (ends and size == 1 and start > 0)
            yield Phrase(
                tuple(stems[start : start + size]), " ".join(words), named, is_led, closes,
                is_thing=ends and stands_for_thing and not (opens_deed and start == 0) and not words[-1].endswith(_NO_THING),
                is_deed=(opens_deed and start == 0) or (closes_deed and ends),
            )  # fmt: skip


def _is_generic(words: Sequence[str], *, named: bool) -> bool:
    """Whether words are too general for a topic; several that form one name never are."""
    if words[0] in _WORDS["head"] or words[-1] in _WORDS["head"]:
        return True
    if named and len(words) > 1:
        return False
    return all(tokens.stem(word) in _GENERIC_STEMS or len(word) < 3 for word in words)


# --- which of them are headings


def _least(total: int) -> int:
    """The fewest memories of a topic in a project with `total` memories."""
    return max(LEAST_MEMORIES, math.ceil(math.log2(total) / 3))


def _heads(subject: _Subject, total: int) -> bool:
    number = len(subject.memories)
    if not _least(total) <= number <= max(LEAST_MEMORIES + 1, MOST_SHARE * total):
        return False
    return len(subject.sessions) >= LEAST_SESSIONS and subject.closing >= LEAST_CLOSING * number


def _is_thing(key: Key, subject: _Subject, total: int, sessions: int) -> bool:
    """Whether words stand for a thing that a person would name: no verb and no adjective.

    Where they are no name they do so in enough memories and sessions, one word in more than a phrase.
    """
    number, is_word = len(subject.memories), len(key) == 1
    # At the beginning of a sentence nobody sees that a word is a name.
    if subject.named * NAMED_PART >= number:
        return 2 * subject.deed <= number
    least_sessions = max(LEAST_SESSIONS, math.ceil(math.log2(sessions) / (2 if is_word else 2.5)))
    least_memories = 2 * _least(total) - 1 if is_word else _least(total)
    is_usual = number >= least_memories and len(subject.things) >= least_sessions
    return is_usual and subject.thing >= THING_OVER_DEED * subject.deed


def _name(subject: _Subject) -> str:
    """The spelling by which a subject is known: the usual one, and of those the shortest."""
    return min(subject.written, key=lambda written: (-subject.written[written], len(written), written))


def _distinct(by_key: dict[Key, _Subject], score: Mapping[Key, float]) -> list[Key]:
    """Drops subjects that are mostly another one, longer or better, that shares a word."""
    kept: list[Key] = []
    by_word: dict[str, list[Key]] = {}
    for key in sorted(score, key=lambda key: (-score[key], key)):
        own = by_key[key].memories
        rivals = {other for word in key for other in by_word.get(word, ())}
        if any(_is_of(own, by_key[other].memories, part=set(key) < set(other)) for other in rivals):
            continue
        kept.append(key)
        for word in key:
            by_word.setdefault(word, []).append(key)
    return kept


def _is_of(own: set[int], others: set[int], *, part: bool) -> bool:
    """Whether a subject's memories are mostly another's; for a `part` of it, whether most of its own are."""
    return len(own & others) >= SAID_LONGER * (len(own) if part else len(own | others))


def _score(key: Key, subject: _Subject, total: int) -> float:
    number = len(subject.memories)
    spread = math.log(1 + number) * math.log(1 + total / number)
    named = NAMED_WEIGHT if subject.named * 2 >= number else 1.0
    return spread * WORDS_WEIGHT[len(key)] * named


def _best(keys: Sequence[Key], score: Mapping[Key, float]) -> list[Key]:
    """The best topics of one memory, none a part of another."""
    best: list[Key] = []
    for key in sorted((key for key in keys if key in score), key=lambda key: (-score[key], key)):
        if len(best) < MOST_TAGS and not any(set(key) <= set(other) or set(other) <= set(key) for other in best):
            best.append(key)
    return best


#: Unasked, a project is looked at again when one of so many memories is new; while more is on its way, of so many.
WHEN_AT_REST, WHEN_READING = 200, 4
#: Memories of one project that are looked at, the newest: each takes a millisecond of a processor that hooks need, too.
MOST = 5000
#: Tags of one write: hooks wait behind it.
PART = 200


def step(store: Store, *, force: bool, reading: bool) -> int:
    """Tags the memories of the next project that has changed enough (with `force`: at all); how many, 0 for none left.

    This takes seconds of the caller's time, and no reader's or writer's. `reading`: more of the past is being imported.
    """
    due = store.read(lambda rows: _look(rows, force=force, reading=reading))
    if due is None:
        return 0
    project, memories = due
    tags = [(tag.seq, tag.topic, tag.weight) for tag in tags_of(memories)]
    since = memories[0].seq if len(memories) == MOST else 0
    other = store.read(lambda rows: stored.changed_tags(rows, project.project_seq, tags, since=since))
    for start in range(0, len(other), PART):
        part = other[start : start + PART]
        store.write(lambda rows, part=part: stored.replace_tags(rows, project.project_seq, part))  # type: ignore[misc]
    store.write(lambda rows: stored.mark_done(rows, project))
    return max(1, project.memories)


def _look(rows: Rows, *, force: bool, reading: bool) -> tuple[stored.Due, list[TaggableMemory]] | None:
    share = WHEN_READING if reading else WHEN_AT_REST
    for project in stored.due_projects(rows):
        if force or project.changes * share >= project.memories:
            return project, [
                TaggableMemory(seq=seq, text=text, session_id=session)
                for seq, text, session in stored.newest_memories(rows, project.project_seq, limit=MOST)
            ]
    return None
