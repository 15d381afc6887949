"""By which keyed hashes a forgotten statement is known again, in these and in nearly the same words; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, islice

from csmd import text
from csmd.store.purged import name_hash

#: As many content words may be left out of a statement that is kept out all the same.
MOST_LEFT_OUT = 2
#: Beyond as many content words only one: the ways to leave out two are too many.
MANY_WORDS = 20


def statement_hash(said: str, key: bytes) -> str:
    """The keyed hash of a statement's normalised words."""
    return name_hash("statement", text.normalise(said), key)


def gist_hashes(said: str, *, correction: bool, key: bytes) -> Iterator[str]:
    """The hash of a statement's gist, then of what is left of it without a word or two; none where it has no words.

    By the rule of `text.says_the_same`: small words that turn a meaning round must be the same, and
    at least SAME_SHARE of the others. A correction is compared with corrections only.
    """
    gist = text.gist(said)
    stems = sorted(gist.stems)
    head = f"{'correction' if correction else 'statement'}:{' '.join(gist.turns)}:"
    if not stems:
        return
    yield name_hash("gist", head + " ".join(stems), key)
    most = 1 if len(stems) > MANY_WORDS else MOST_LEFT_OUT
    for gone in range(1, most + 1):
        if len(stems) - gone < text.SAME_SHARE * len(stems):
            return
        for left in combinations(stems, len(stems) - gone):
            yield name_hash("gist", head + " ".join(left), key)


def hashes(wordings: Mapping[str, bool], key: bytes) -> frozenset[str]:
    """Every hash by which texts may be known as forgotten, as statements or corrections; where True, also a word or two less."""
    found = set[str]()
    for said, nearly in wordings.items():
        found.add(statement_hash(said, key))
        for correction in (False, True):
            found.update(islice(gist_hashes(said, correction=correction, key=key), None if nearly else 1))
    return frozenset(found)
