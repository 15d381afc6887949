"""The parts of a statement that says several things; pure.

"Commits are signed; tests run with pytest; branches are named feat/x" is three rules in one memory. Who takes back one
of them says nothing of the others: ended with it they would be lost without a word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from csmd import text
from csmd.believe import clauses
from csmd.cache import cached
from csmd.patterns import at_first_use

#: Where one part ends and another begins: rows of a list, numbers that count off, a full stop before a small letter.
_CUTS = re.compile(r"; |\n+|(?:^|(?<=[\s:;,.]))\(?\d{1,2}[.)] |(?<=\w{3}[.!]) +(?=[a-z])")
#: Joins two clauses, where each says of something how it is, with what, or where.
_AND = re.compile(r",? and (?:also )?", re.IGNORECASE)
#: What goes on about the part before it.
_GOES_ON = at_first_use(
    r"\W*(?:it|this|that|these|those|they|he|she|we then|then|so|because|since|but|and|or|however|instead|otherwise|therefore|which|as|not|except|unless"
    r"|e\.g|for example|the reason|reason)\b",
    re.IGNORECASE,
)
#: A part has so many words with content.
LEAST = 2


@cached(1024)
def parts(said: str) -> tuple[str, ...]:
    """The parts of a statement in its own words: its list's items, sentences or joined clauses, each with what goes on about it.

    A heading, which ends with a colon, is none.
    """
    found: list[str] = []
    for row in _CUTS.split(said):
        for sentence in text.sentences(row):
            for clause in _clauses(sentence):
                if clause.endswith(":") and not found:
                    continue
                if found and (_GOES_ON.match(clause) or not _says_something(clause)):
                    found[-1] = f"{found[-1]} {clause}"
                elif clause.strip():
                    found.append(clause.strip())
    return tuple(part for part in found if _says_something(part))


def _says_something(clause: str) -> bool:
    return len(text.gist(clause).stems) >= LEAST or bool(clauses.read(clause).slots)


def _clauses(sentence: str) -> list[str]:
    """A sentence cut at its first "and" where a value is given on both sides; else whole."""
    for match in _AND.finditer(sentence):
        sides = (sentence[: match.start()], sentence[match.end() :])
        if all(clauses.read(side).slots for side in sides):
            return list(sides)
    return [sentence]


def without(said: str, ended: Sequence[str]) -> str:
    """What is left of a statement without some of its `parts`, its heading kept; "" where nothing is."""
    left = [part for part in parts(said) if part not in ended]
    if not left:
        return ""
    first = _CUTS.split(said)[0].strip()
    heading = f"{first} " if first.endswith(":") and first not in left else ""
    return heading + "".join(part + (" " if part.endswith((".", "!")) else "; ") for part in left[:-1]) + left[-1]


def spoken_of(older: str, newer: str) -> tuple[str, ...]:
    """The parts of the older one that the newer one speaks of, by words that only they say; all where it has one part."""
    said = parts(older)
    if len(said) < 2:
        return said
    stems, told = [text.gist(part).stems for part in said], text.gist(newer).stems
    own = [one.difference(*(other for other in stems if other is not one)) for one in stems]
    return tuple(part for part, words in zip(said, own, strict=True) if words & told)


def is_partly(older: str, newer: str) -> bool:
    """Whether the newer one speaks of some of the parts of the older one, and of others it says nothing."""
    return 0 < len(spoken_of(older, newer)) < len(parts(older))
