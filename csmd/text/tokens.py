"""Splits a text into words, stems them, and normalises texts for comparison; pure."""

from __future__ import annotations

import hmac
import re
import unicodedata
from collections.abc import Iterable

from csmd import data
from csmd.cache import cached

_WORDS = data.word_table("stop_words.txt")

#: Words that do not depend on a text's subject; dropped from queries and overlaps.
STOP_WORDS = _WORDS["english"]

WORD = re.compile(r"[^\W_]+(?:[_'][^\W_]+)*", re.UNICODE)


def normalise(text: str) -> str:
    """Normalises `text` for comparison: NFKC, case folded, single spaces, without outer punctuation."""
    # ASCII is already NFKC, and its lower case is its case fold.
    folded = text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
    return " ".join(folded.split()).strip(" \t\n.,;:!?\"'`*_-")


def keyed_hash(text: str, key: bytes) -> str:
    """Returns a keyed hash of the normalised text, in 32 hex digits."""
    return hmac.digest(key, normalise(text).encode("utf-8", "replace"), "sha256").hex()[:32]


def words_of(text: str) -> list[str]:
    """Splits `text` into its words, case folded; identifiers stay whole."""
    if text.isascii():  # the fast path: lower() equals casefold()
        return WORD.findall(text.lower())
    return [word.casefold() for word in WORD.findall(text)]


def content_words(text: str) -> list[str]:
    """Returns the content words in order: numbers, and words that are neither stop words nor single letters."""
    return content_of(words_of(text))


def content_of(words: Iterable[str]) -> list[str]:
    """Returns the content words among some words."""
    return [word for word in words if word not in STOP_WORDS and (len(word) > 1 or word.isdigit())]


_ENDINGS = ("ations", "ation", "ingly", "ings", "ing", "edly", "ies", "es", "ed", "s", "e")
#: A letter that an ending doubles: committing, planned.
_DOUBLED_LETTERS = ("bb", "gg", "mm", "nn", "pp", "rr", "tt")
_IRREGULAR = dict(pair.split("/") for pair in data.word_table("similarity_words.txt")["irregular"])


@cached(8192)
def stem(word: str) -> str:
    """Removes the commonest English ending of a word, for comparison; at least three letters stay.

    An irregular form has the stem of its verb or singular: kept, keep.
    """
    word = _IRREGULAR.get(word, word)
    if word.endswith(_ENDINGS):
        for ending in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= 3:
                word = word[: -len(ending)]
                word = word[:-1] if len(word) > 3 and word.endswith(_DOUBLED_LETTERS) else word
                break
    return word[:-1] if len(word) > 4 and word.endswith("y") else word  # retry as in retries


_SPELLINGS: dict[str, list[str]] = {}
for _form, _whole in _IRREGULAR.items():
    _SPELLINGS.setdefault(stem(_whole), []).append(_form)


def spellings(stem: str) -> tuple[str, ...]:
    """Returns the beginnings of all words with a stem: the stem itself, and its irregular forms."""
    return (stem, *_SPELLINGS.get(stem, ()))


#: Small words that reverse a sentence: texts that differ in them do not say the same.
TURNING_WORDS = frozenset(
    "not no nor never none cannot without before after on off instead than only until unless except over under".split()
)


def turns_round(word: str) -> bool:
    """Whether a word reverses the meaning of a sentence: `not`, `before`, `off`."""
    return word in TURNING_WORDS or word.endswith("n't")


@cached(2048)
def content_stems(text: str) -> frozenset[str]:
    """Returns the stems of the content words of a text."""
    return frozenset(map(stem, content_words(text)))
