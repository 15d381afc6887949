"""The language of a sentence: by its script, else by its function words; pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from csmd import data
from csmd.cache import cached
from csmd.text.sentence_words import MAX_READ, UNSPACED, WORDS, tokenise

_SCRIPT_LETTER = re.compile(
    "(?P<ja>[\u3040-\u30ff])|(?P<ko>[\uac00-\ud7af\u1100-\u11ff])|(?P<zh>[\u3400-\u9fff])|(?P<ru>[\u0400-\u04ff])"
    "|(?P<other>[\u0370-\u03ff\u0590-\u08ff\u0900-\u0fff\u1000-\u109f])"
)

#: A sentence with this many known English words is English, whatever its script.
MIN_ENGLISH = 2
#: A language is recognised by this many of its function words, or by one if no English word is there.
MIN_FUNCTION = 2
#: A single known English word tells English from this many letters on.
MIN_TELLING_LETTERS = 4


@cached(4096)
def language_of(text: str) -> str:
    """The language of a sentence as ISO 639-1 code: by its script, else by its function words; "" for none that is
    known."""
    counts: dict[str, int] = {}
    if not text.isascii():
        for match in _SCRIPT_LETTER.finditer(text):
            counts[str(match.lastgroup)] = counts.get(str(match.lastgroup), 0) + 1
    letters = sum(map(str.isalpha, text))
    words = {word.removesuffix("'s") for word, _ in tokenise(text) if word.replace("'", "").isalpha()}
    # A name or a quotation in another script does not change the language of the sentence around it.
    is_english = len(words & _KNOWN_ENGLISH) >= MIN_ENGLISH
    if counts and 4 * sum(counts.values()) >= letters * (3 if is_english else 1):
        script = max(counts, key=lambda name: (counts[name], name))
        if script == "zh" and counts.get("ja"):
            script = "ja"
        return "" if script == "other" else script
    scores = {language: len(words & function) for language, function in _FUNCTION_WORDS.items()}
    best = max(scores, key=lambda language: scores[language])
    telling = [word for word in words & _FUNCTION_WORDS[best] if len(word) > 1]
    english = sum(
        len(word) > 1 for word in words & ENGLISH - _find_words(best)
    )  # "do", "me" and "was" belong to several languages
    is_sure = len(telling) >= MIN_FUNCTION or (len(telling) == 1 and english == 0)
    if is_sure and (len(telling) > english or (len(telling) == english and not text.isascii())):
        return best
    is_plain = text.isascii() or all(letter.isascii() for letter in text if letter.isalpha())
    has_english = not telling and any(len(word) >= MIN_TELLING_LETTERS for word in words & _KNOWN_ENGLISH)
    return "en" if is_plain or is_english or has_english else ""


def is_mostly_not_english(texts: Sequence[str]) -> bool:
    """Whether most of some texts whose language is known are of another one than English."""
    languages = [language for text in texts if (language := language_of(text[:MAX_READ]))]
    return 2 * sum(language != "en" for language in languages) > len(languages)


@cached(32)
def _find_words(language: str) -> frozenset[str]:
    """Every single word of a language's classes."""
    return frozenset(
        word for name, words in WORDS.items() if name.endswith(f".{language}") for word in words if "_" not in word
    )


ENGLISH = data.word_table("stop_words.txt")["english"] | {"please", "can", "will"}
_KNOWN_ENGLISH = ENGLISH | _find_words("en")
_LANGUAGES = sorted({name.partition(".")[2] for name in WORDS} - {"", "en", *UNSPACED})
_FUNCTION_WORDS = {
    language: _find_words(language) - ENGLISH - _find_words("en") for language in _LANGUAGES if language.isalpha()
}
