"""Recognises the language of a sentence by its script or its function words; pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence, Set

from csmd import data
from csmd.cache import cached
from csmd.text.sentence_words import MAX_READ, UNSPACED, WORDS, tokenise

_SCRIPT_LETTER = re.compile(
    "(?P<ja>[\u3040-\u30ff])|(?P<ko>[\uac00-\ud7af\u1100-\u11ff])|(?P<zh>[\u3400-\u9fff])|(?P<ru>[\u0400-\u04ff])"
    "|(?P<other>[\u0370-\u03ff\u0590-\u08ff\u0900-\u0fff\u1000-\u109f])"
)

#: Fewest known English words of an English sentence with letters of another script.
MIN_ENGLISH_WORDS = 2
#: Fewest function words by which a language is recognised; one is enough in a sentence without English words.
MIN_FUNCTION_WORDS = 2
#: Fewest letters of a single known English word that makes a sentence English.
MIN_TELLING_LETTERS = 4
#: Least share of another script among the letters of a sentence in its language.
MIN_SCRIPT_SHARE = 1 / 4
#: The same in a sentence with English words, where names and quotations do not change the language.
MIN_SCRIPT_SHARE_IN_ENGLISH = 3 / 4


@cached(4096)
def language_of(text: str) -> str:
    """Returns the ISO 639-1 code of a sentence's language, by its script or its function words; "" if unknown."""
    words = {word.removesuffix("'s") for word, _ in tokenise(text) if word.replace("'", "").isalpha()}
    script = _find_script(text, is_english=len(words & _KNOWN_ENGLISH) >= MIN_ENGLISH_WORDS)
    return _find_word_language(text, words) if script is None else script


def _find_script(text: str, *, is_english: bool) -> str | None:
    """Returns the language of the script in most letters of a text, "" for an unknown one; None for Latin letters."""
    if text.isascii():
        return None
    counts = Counter(str(match.lastgroup) for match in _SCRIPT_LETTER.finditer(text))
    share = MIN_SCRIPT_SHARE_IN_ENGLISH if is_english else MIN_SCRIPT_SHARE
    if not counts or counts.total() < share * sum(map(str.isalpha, text)):
        return None
    script = max(counts, key=lambda name: (counts[name], name))
    if script == "zh" and counts["ja"]:
        return "ja"
    return "" if script == "other" else script


def _find_word_language(text: str, words: Set[str]) -> str:
    """Returns the language with the most function words in a text of Latin letters, "" if unknown."""
    scores = {language: len(words & function) for language, function in _FUNCTION_WORDS.items()}
    best = max(scores, key=lambda language: scores[language])
    evidence = sum(len(word) > 1 for word in words & _FUNCTION_WORDS[best])
    # "do", "me" and "was" belong to several languages.
    english_count = sum(len(word) > 1 for word in words & ENGLISH - _find_words(best))
    is_sure = evidence >= MIN_FUNCTION_WORDS or (evidence == 1 and english_count == 0)
    if is_sure and (evidence > english_count or (evidence == english_count and not text.isascii())):
        return best
    is_plain = text.isascii() or all(letter.isascii() for letter in text if letter.isalpha())
    is_english = len(words & _KNOWN_ENGLISH) >= MIN_ENGLISH_WORDS
    has_english = not evidence and any(len(word) >= MIN_TELLING_LETTERS for word in words & _KNOWN_ENGLISH)
    return "en" if is_plain or is_english or has_english else ""


def is_mostly_not_english(texts: Sequence[str]) -> bool:
    """Whether most texts of a known language are not English."""
    languages = [language for text in texts if (language := language_of(text[:MAX_READ]))]
    return 2 * sum(language != "en" for language in languages) > len(languages)


@cached(32)
def _find_words(language: str) -> frozenset[str]:
    """Returns all single words in the word classes of a language."""
    classes = [words for name, words in WORDS.items() if name.endswith(f".{language}")]
    return frozenset(word for words in classes for word in words if "_" not in word)


ENGLISH = data.word_table("stop_words.txt")["english"] | {"please", "can", "will"}
_KNOWN_ENGLISH = ENGLISH | _find_words("en")
_LANGUAGES = sorted({name.partition(".")[2] for name in WORDS} - {"", "en", *UNSPACED})
_FUNCTION_WORDS = {language: _find_words(language) - _KNOWN_ENGLISH for language in _LANGUAGES if language.isalpha()}
