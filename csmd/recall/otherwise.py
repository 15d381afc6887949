"""Whether what was said later says that something is otherwise by now, so that it is read first; pure.

For the order of what was found only: nothing is superseded by it, so that less is enough than between memories
(believe/supersede.py). The later one must say that something changed, and hold another value in the place of one that
the earlier one holds: a number of the same form beside the same word, or what it speaks against.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from csmd import text
from csmd.believe import changed, phrases, supersede
from csmd.believe.clauses import Said, read

#: What a sentence says in which something is otherwise than before.
CHANGED = re.compile(
    r"\b(?:now|no longer|any ?more|instead|from (?:now|today|v?\d[\w.]*|the next \w+)(?: on)?\b|as of|since (?:v?\d|last|yesterday|today)"
    r"|(?:moved|switched|migrated|changed|renamed|replaced|raised|lowered|bumped|upgraded|postponed)\b|forget|drop(?:ped)?|not v?\d)",
    re.IGNORECASE,
)
#: A number that has a form: 8080, 1.85, 2026-02-23, 10:30.
_NUMBER = re.compile(r"(?<![\w.:/-])v?(\d+(?:[.:/-]\d+)*)(?!\w|[.:/-]\w)", re.IGNORECASE)
#: So many words before and behind a number tell what it counts.
BESIDE = 2


#: What may end a clause; a number's point does not.
_CLAUSE = re.compile(r"[,;.!?]+(?:\s+|$)")
_FORGOTTEN = re.compile(
    r"\bforget(?: about)?\s+([^.,;:!?\n]{1,60})|([\w.+#-]{2,40}) (?:is|are) (?:out|gone|history)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a sentence: itself, its form (what stands between its parts), the stems beside it."""

    value: str
    form: str
    beside: frozenset[str]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence taken apart, with its numbers, and of these those in a clause that says that something changed."""

    text: str
    said: Said
    numbers: tuple[Number, ...]
    changed: tuple[Number, ...]
    forgotten: frozenset[str]


def by_now(earlier: str, later: str) -> bool:
    """Whether `later`, a passage, says that something `earlier` says is otherwise by now."""
    return bool(CHANGED.search(later)) and any(
        _overtakes(new, old) for new in _read(later) if CHANGED.search(new.text) for old in _read(earlier)
    )


def _overtakes(new: Sentence, old: Sentence) -> bool:
    if new.said.asks or not new.said.stems & old.said.stems:
        return False
    return (
        _another_number(new, old)
        or _speaks_against(new, old.said)
        or _another_name(new, old.said)
        or supersede.amendment(old.text, new.text) is not None
    )


def _another_number(new: Sentence, old: Sentence) -> bool:
    """Whether a number of the older sentence has another one in its place: of a version its form tells that."""
    known, kept = {number.value for number in old.numbers}, {number.value for number in new.changed}
    denied = {stem for one in (*new.said.denied, *new.said.instead) for stem in one.what}
    return any(
        one.form == other.form and (one.form == "." or bool(one.beside & other.beside))
        for one in new.changed
        if one.value not in known | denied
        for other in old.numbers
        if other.value not in kept or other.value in denied
    )


def _speaks_against(new: Sentence, old: Said) -> bool:
    """Whether a name that the older sentence affirms is spoken against, beside something that both say."""
    affirmed = old.names & old.positive
    against = (*new.said.denied, *new.said.instead, *new.said.removed)
    return bool(new.forgotten & affirmed) or any(one.what & affirmed and one.beside & old.parts for one in against)


def _another_name(new: Sentence, old: Said) -> bool:
    """Whether what the older sentence speaks of, and has a name for, is now something that it does not name."""
    return any(
        change.thing <= old.stems and not change.value & old.stems and bool((old.names & old.positive) - change.thing)
        for change in changed.changes(new.text)
    )


@lru_cache(maxsize=512)
def _read(passage: str) -> tuple[Sentence, ...]:
    return tuple(_sentence(one) for line in passage.split("\n") if line.strip() for one in text.sentences(line))


def _sentence(said: str) -> Sentence:
    clauses = _CLAUSE.split(said)
    return Sentence(
        text=said,
        said=read(said),
        numbers=tuple(number for clause in clauses for number in _numbers(clause)),
        changed=tuple(number for clause in clauses if CHANGED.search(clause) for number in _numbers(clause)),
        forgotten=frozenset(stem for part in _FORGOTTEN.findall(said) for stem in phrases.stems_of(" ".join(part))),
    )


def _numbers(clause: str) -> Iterator[Number]:
    for match in _NUMBER.finditer(clause):
        near = [
            *phrases.stems_of(clause[: match.start()])[-BESIDE:],
            *phrases.stems_of(clause[match.end() :])[:BESIDE],
        ]
        yield Number(match[1], "".join(re.findall(r"\D", match[1])), frozenset(near))
