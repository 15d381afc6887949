"""The words by which sentences are parsed, and the lookup of words and phrases in a sentence; pure.

The words are in data/sentence_words.txt, a class for each question and language; a phrase has "_" between its words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from csmd import data
from csmd.cache import cached, cached_short

WORDS = data.word_table("sentence_words.txt")
#: Most characters of a sentence that are read.
MAX_READ = 600
MAX_PHRASE_WORDS = 4
#: Languages that are recognised by their function words.
SPACED = ("de", "es", "fr", "pt", "ru")
#: Languages without spaces between words, or with particles at their ends.
UNSPACED = ("zh", "ja", "ko")

_TOKEN = re.compile(r"`[^`]*`|[^\W_]+(?:['’./_+-]+[^\W_]+)*|[^\w\s]|_+")


@cached_short(1024, characters=MAX_READ)
def tokenise(head: str) -> tuple[tuple[str, int], ...]:
    """Splits a sentence into (token in small letters, offset)."""
    return tuple((match.group().casefold().replace("’", "'"), match.start()) for match in _TOKEN.finditer(head))


@cached_short(1024, characters=MAX_READ)
def split_words(text: str) -> tuple[str, ...]:
    """Splits a sentence into its tokens in small letters."""
    return tuple(word for word, _ in tokenise(text))


@cached(512)
def openings(phrases: frozenset[str]) -> frozenset[str]:
    """Returns the first words of some phrases."""
    return frozenset(phrase.partition("_")[0] for phrase in phrases)


def phrase_size(phrases: frozenset[str], words: Sequence[str]) -> int:
    """Returns the number of words of the longest of some phrases with which these words begin, or 0."""
    for size in range(min(MAX_PHRASE_WORDS, len(words)), 0, -1):
        if "_".join(words[:size]) in phrases:
            return size
    return 0


def begins(word_class: str, words: Sequence[str]) -> int:
    """Returns the number of words of a phrase of a class with which these words begin, or 0."""
    return phrase_size(WORDS[word_class], words)


def contains_phrase(phrases: frozenset[str], words: Sequence[str], *, within: int) -> bool:
    """Whether one of some phrases begins at one of the first `within` words."""
    indexes = range(min(within, len(words)))
    return any(phrase_size(phrases, words[index : index + MAX_PHRASE_WORDS]) for index in indexes)


def is_verb(words: Sequence[str]) -> bool:
    """Whether English words begin with a verb of orders."""
    return len(words) > 0 and words[0] in WORDS["order.en"]


def holds(name: str, language: str, words: Sequence[str], head: str) -> bool:
    """Whether a sentence contains a phrase of a class of its language."""
    phrases = WORDS.get(f"{name}.{language}")
    if not phrases:
        return False
    if language in UNSPACED:
        return any(phrase.replace("_", " ") in head for phrase in phrases)
    first_words = openings(phrases)
    if first_words.isdisjoint(words):
        return False
    starts = (index for index, word in enumerate(words) if word in first_words)
    return any(phrase_size(phrases, words[start : start + MAX_PHRASE_WORDS]) for start in starts)
