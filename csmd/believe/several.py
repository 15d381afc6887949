"""Whether a statement says several things of which a later one speaks of some only; pure.

"Commits are signed; tests run with pytest; branches are named feat/x" is three rules in one memory. Who takes back one
of them says nothing of the others: ended with it they would be lost without a word.
"""

from __future__ import annotations

import re

from csmd import text
from csmd.patterns import at_first_use

#: Where one thing ends and another begins within a line: rows of a list, numbers that count off.
_CUTS = re.compile(r"; |\n+|(?:^|(?<=[\s:;,.]))\(?\d{1,2}[.)] ")
#: What goes on about the thing before it.
_GOES_ON = at_first_use(
    r"\W*(?:it|this|that|these|those|they|he|she|we|then|so|because|since|but|and|also|or|however|instead|otherwise|therefore|which|as|not|except|unless"
    r"|e\.g|for example|the reason|reason)\b",
    re.IGNORECASE,
)
#: A thing said has so many words with content.
LEAST = 2


def things(said: str) -> list[frozenset[str]]:
    """The stems of each of the things that a statement says: its list's items, or its sentences, each with what goes on about it."""
    found: list[set[str]] = []
    for row in _CUTS.split(said):
        for sentence in text.sentences(row):
            stems = frozenset() if sentence.endswith(":") else text.gist(sentence).stems
            if found and (_GOES_ON.match(sentence) or len(stems) < LEAST):
                found[-1] |= stems
            elif stems:
                found.append(set(stems))
    return [frozenset(one) for one in found if len(one) >= LEAST]


def is_partly(older: str, newer: str) -> bool:
    """Whether the newer one speaks of some of the things that the older one says, and of others it says nothing."""
    said = things(older)
    if len(said) < 2:
        return False
    told = text.gist(newer).stems
    own = [one.difference(*(other for other in said if other is not one)) for one in said]
    return any(one & told for one in own) and any(one and not one & told for one in own)
