"""The words by which sentences are read, and the forms in which they are looked for; pure.

The words are in data/sentence_words.txt, a class for each question and language; a phrase has "_" between its words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from csmd import data
from csmd.cache import cached

WORDS = data.word_table("sentence_words.txt")
#: Characters of a sentence that are read.
MAX_READ = 600
#: Languages that are told apart by their function words, and those whose words have no spaces or end in particles.
SPACED = ("de", "es", "fr", "pt", "ru")
UNSPACED = ("zh", "ja", "ko")

_TOKEN = re.compile(r"`[^`]*`|[^\W_]+(?:['’./_+-]+[^\W_]+)*|[^\w\s]|_+")


def tokenise(head: str) -> tuple[tuple[str, int], ...]:
    return _tokens_of_short(head) if len(head) <= MAX_READ else _find_tokens(head)


def _find_tokens(head: str) -> tuple[tuple[str, int], ...]:
    return tuple((match.group().casefold().replace("’", "'"), match.start()) for match in _TOKEN.finditer(head))


#: What one sentence is asked (its language, its kind, how it opens) is asked of the same tokens.
_tokens_of_short = cached(1024)(_find_tokens)


def split_words(text: str) -> tuple[str, ...]:
    return _split_cached(text) if len(text) <= MAX_READ else _split_uncached(text)


def _split_uncached(text: str) -> tuple[str, ...]:
    return tuple(word for word, _ in tokenise(text))


_split_cached = cached(1024)(_split_uncached)


@cached(512)
def openings(phrases: frozenset[str]) -> frozenset[str]:
    """The words with which some phrases begin."""
    return frozenset(phrase.partition("_")[0] for phrase in phrases)


def phrase_size(phrases: frozenset[str], words: Sequence[str]) -> int:
    """How many words the longest of some phrases takes with which these words begin; 0 for none."""
    for size in range(min(4, len(words)), 0, -1):
        if "_".join(words[:size]) in phrases:
            return size
    return 0


def begins(word_class: str, words: Sequence[str]) -> int | None:
    return phrase_size(WORDS[word_class], words) or None


def is_verb(words: Sequence[str]) -> bool:
    return bool(words) and words[0] in WORDS["order.en"]


def holds(name: str, language: str, words: Sequence[str], head: str) -> bool:
    """Whether a sentence holds a word of a class of its language."""
    phrases = WORDS.get(f"{name}.{language}")
    if not phrases:
        return False
    if language in UNSPACED:
        return any(phrase.replace("_", " ") in head for phrase in phrases)
    first_words = openings(phrases)
    if first_words.isdisjoint(words):
        return False
    return any(word in first_words and phrase_size(phrases, words[at : at + 4]) for at, word in enumerate(words))
