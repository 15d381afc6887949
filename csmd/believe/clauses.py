"""A sentence as what it affirms, what it speaks against and which values stand in which slots; pure, tables first.

No grammar is parsed: prepositions, negations and a few verbs cut a sentence into pieces, and each piece is the set of
its stems. What no table names is left as a word like any other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from csmd import text
from csmd.believe import against, phrases
from csmd.believe.against import Against
from csmd.cache import cached


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A value in its place: the verb before it ("" for one that says nothing), the kind of preposition, its stems."""

    verb: str
    way: str
    value: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One statement taken apart; every set is of stems."""

    order: tuple[str, ...]
    stems: frozenset[str]
    parts: frozenset[str]
    """The stems with the parts of identifiers among them: `wrapper` of `entire-wrapper.sh`."""
    names: frozenset[str]
    """Those that are identifiers, paths, flags, numbers or proper names."""
    main: frozenset[str]
    """Those of its main clause."""
    positive: frozenset[str]
    """Those that it does not speak against anywhere."""
    denied: tuple[Against, ...]
    instead: tuple[Against, ...]
    removed: tuple[Against, ...]
    gone: tuple[frozenset[str], ...]
    """What it says is removed, or used no more, whatever for."""
    prefers: tuple[tuple[frozenset[str], frozenset[str]], ...]
    """(what is liked, what it is liked better than)."""
    slots: tuple[Slot, ...]
    renames: tuple[tuple[str, str], ...]
    named: frozenset[str]
    """What it says that something is called."""
    topic: frozenset[str]
    """What it says that it is, or has been: what stands before its first copula."""
    turns: frozenset[str]
    """The small words in it that have an opposite: on, off, before, after."""
    adds: bool
    asks: bool

    def has_near(self, what: frozenset[str]) -> bool:
        """Whether these stems stand close together in it."""
        at = [place for place, stem in enumerate(self.order) if stem in what]
        size = len(what & self.stems)
        return any(what & self.stems <= set(self.order[start : start + 2 * size + 2]) for start in at)


@cached(2048)
def assertion(said: str) -> str:
    """What a statement asserts, without fillers and the reasons that it gives: who shares a reason shares no subject."""
    bare = phrases.FILLER.sub(" ", phrases.REASON.sub("", said)).strip()
    return bare if len(text.gist(bare).stems) >= 2 else said


@cached(2048)
def read(said: str) -> Said:
    """A statement taken apart."""
    tokens = [
        (word, phrases.stem(word)) for word in phrases.TOKEN.findall(said.replace("\u2019", "'").replace("()", ""))
    ]
    stems = frozenset(stem for word, stem in tokens if phrases.counts(word, stem))
    names = frozenset(
        stem for at, (word, stem) in enumerate(tokens) if phrases.counts(word, stem) and _is_name(word, first=at == 0)
    )
    denied, instead, moved = (
        against.negated(tokens),
        against.phrased(phrases.INSTEAD, said),
        against.phrased(phrases.MOVED, said),
    )
    spoken = frozenset(stem for one in (*against.negated(tokens, asides=True), *instead, *moved) for stem in one.what)
    return Said(
        order=tuple(stem for word, stem in tokens if phrases.counts(word, stem)),
        stems=stems, parts=stems | _parts(said), names=names, main=_main(tokens) or stems, positive=stems - spoken, denied=tuple(denied),
        instead=(*instead, *moved), removed=tuple(against.ordered(tokens)), gone=_gone(tokens, said),
        prefers=_prefers(said),
        slots=tuple(_slots(tokens)), renames=renames(said),
        named=frozenset(found.casefold() for found in phrases.CALLED.findall(said)),
        turns=frozenset(word.casefold() for word, _ in tokens) & phrases.TURNED.keys(),
        topic=_topic(tokens), adds=bool(phrases.ADDS.search(said)),
        asks=said.rstrip().endswith("?"),
    )  # fmt: skip


def _is_name(word: str, *, first: bool) -> bool:
    return bool(phrases.NAME.match(word)) or (not first and word[:1].isupper())


def _parts(said: str) -> frozenset[str]:
    return frozenset(phrases.stem(part) for part in text.query_terms(" ".join(re.split(r"[-/._\s]", said))))


def _gone(tokens: list[tuple[str, str]], said: str) -> tuple[frozenset[str], ...]:
    """What a statement says is removed, or used no more, without asking and without a condition."""
    if said.rstrip().endswith("?"):
        return ()
    found = [one.what for one in against.ordered(tokens)]
    for match in phrases.GONE.finditer(said):
        start = max(said.rfind(end, 0, match.start()) for end in ".;\n") + 1
        opening = phrases.TOKEN.findall(said[start : match.end()])
        if not any(word.casefold() in phrases.RESTRICTS for word in opening):
            found.append(frozenset(phrases.stems_of(match[1] or match[2])))
    return tuple(stems for stems in found if stems)


def _prefers(said: str) -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    """(what is liked, what it is liked better than) of each time a statement says so and does not ask."""
    if said.rstrip().endswith("?"):
        return ()
    pairs = [pair for pattern in phrases.PREFERS for pair in pattern.findall(said)]
    found = ((frozenset(phrases.stems_of(one)), frozenset(phrases.stems_of(other))) for one, other in pairs)
    return tuple((one, other) for one, other in found if one and other)


def _main(tokens: list[tuple[str, str]]) -> frozenset[str]:
    """The stems of a statement's first sentence up to what depends on it: a reason, a condition, an example."""
    found: set[str] = set()
    for at, (word, stem) in enumerate(tokens):
        if at and (word in (";", "(", ":", ".", "!") or word.casefold() in phrases.DEPENDS) and len(found) >= 2:
            break
        if phrases.counts(word, stem):
            found.add(stem)
    return frozenset(found)


def _topic(tokens: list[tuple[str, str]]) -> frozenset[str]:
    words = [word.casefold() for word, _ in tokens]
    at = next((place for place, word in enumerate(words) if word in phrases.COPULA), 0)
    return frozenset(stem for word, stem in tokens[:at] if phrases.counts(word, stem))


def _slots(tokens: list[tuple[str, str]]) -> list[Slot]:
    """Every value behind a preposition, a copula or "use", with the verb before it; adverbs of time are values too."""
    found: list[Slot] = []
    for at, (word, _) in enumerate(tokens):
        plain = word.casefold()
        if plain in phrases.TIMES and plain not in ("always", "once", "twice"):
            found.append(Slot(verb=_verb(tokens, at), way="time", value=frozenset((phrases.stem(word),))))
        way = phrases.WAYS.get(plain) or ("means" if plain in ("use", "using") else "")
        if not way and plain in phrases.COPULA:
            way = "is"
        if not way:
            continue
        value = _value(tokens, at + 1, stop_at_ways=True)
        if way == "is" and at + 1 < len(tokens) and _followed_by_way(tokens, at + 1):
            continue  # "is kept for": the verb, not a value
        if value:
            way = "time" if value & phrases.TIME_STEMS else way
            found.append(Slot(verb="" if way == "is" or plain == "use" else _verb(tokens, at), way=way, value=value))
    return found


def _followed_by_way(tokens: list[tuple[str, str]], at: int) -> bool:
    """Whether the word here is a participle with a preposition or an adverb of time behind it."""
    rest = [word.casefold() for word, _ in tokens[at : at + 2]]
    return len(rest) == 2 and (rest[1] in phrases.WAYS or rest[1] in phrases.TIMES) and rest[0] not in phrases.WAYS


def _value(tokens: list[tuple[str, str]], at: int, *, stop_at_ways: bool) -> frozenset[str]:
    part: list[str] = []
    for word, stem in tokens[at:]:
        plain = word.casefold()
        if (
            word in phrases.STOPS
            or plain in phrases.BREAKS
            or plain in phrases.COPULA
            or (stop_at_ways and plain in phrases.WAYS and plain != "every")
        ):
            break
        if phrases.counts(word, stem):
            part.append(stem)
        if len(part) >= 4:
            break
    return frozenset(part)


def _verb(tokens: list[tuple[str, str]], at: int) -> str:
    """The word before a preposition; "" for one that says nothing, or none."""
    for word, stem in reversed(tokens[:at]):
        if word in phrases.STOPS:
            return ""
        if word.casefold() in ("on", "off"):
            return word.casefold()  # "is off in": a state, which another place has for itself
        if word.casefold() in ("out", "up", "down", "back"):
            continue
        return stem if phrases.counts(word, stem) else ""
    return ""


@cached(1024)  # the same fifty memories are asked for every statement
def renames(said: str) -> tuple[tuple[str, str], ...]:
    """(old, new) names that a statement says were changed, case folded."""
    if not any(word in said.casefold() for word in phrases.RENAMING):
        return ()
    found: list[tuple[str, str]] = []
    for pattern in phrases.RENAMES:
        for old, new in pattern.findall(said):
            one, other = (name.strip("`\"'.,").casefold() for name in (old, new))
            if one and other and one != other and len(one) > 2 and len(other) > 2 and one not in text.STOP_WORDS:
                found.append((one, other))
    return tuple(dict.fromkeys(found))
