"""Derives the terms by which texts are indexed, and the terms for which a question searches; pure.

In Chinese, Japanese and Korean pairs of letters replace words, because words have no marked ends. A Russian or German
word is searched by its stem as a prefix, a German compound also by its parts, which the index contains as tails.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import chain

from csmd import data
from csmd.cache import cached
from csmd.text.dates import DATE, parse_date
from csmd.text.tokens import STOP_WORDS, WORD, words_of

_WORDS = data.word_table("stop_words.txt")

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003134f"
_CJK_RUN = re.compile(f"[{_CJK}]+")
#: Latin words that the tokenizer would join to the adjacent CJK run.
_ADJACENT_LATIN = re.compile(f"(?<=[{_CJK}])[A-Za-z0-9]+|[A-Za-z0-9]+(?=[{_CJK}])")
_CYRILLIC = re.compile("[\u0400-\u04ff]{4,40}")
_LATIN = re.compile("[A-Za-zÄÖÜäöüß]{4,40}")
#: A long word with a capital, as German writes its compounds.
_COMPOUND = re.compile(r"[A-ZÄÖÜ][a-zäöüß]{9,40}\b")
#: Fewest letters of each part of a compound.
MIN_PART_LETTERS = 5
#: Most compounds of a text whose tails are indexed, since a list of words would grow tenfold.
MAX_COMPOUNDS = 500
MIN_STEM_LETTERS = 3
#: Most terms of a question, and of another text.
MAX_TERMS = 60
MAX_TEXT_TERMS = 40
MAX_NAME_PARTS = 12
#: A hump in a name, and a name with one; plurals of capitals (URLs, IDs) have none.
_HUMP = re.compile(r"[A-Z](?<=[a-z].)|[A-Z]{2}[a-z]{2}")
_HUMPED = re.compile(
    r"(?<![A-Za-z0-9])(?=[A-Za-z0-9]{4,80}(?![A-Za-z0-9]))[A-Za-z0-9]*?(?:[a-z][A-Z]|[A-Z]{2}[a-z]{2})[A-Za-z0-9]*"
)
_CAMEL = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
#: Names of several words: paths, dotted, kebab and snake names, each with its parts.
_NAME = re.compile(r"(?<![^\W_])[^\W_]++(?:[./:\\_-]{1,3}[^\W_]++)+")
_SEPARATOR = re.compile(r"[./:\\_-]+")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


# --- terms of an index


def build_index_text(text: str, written_at: str) -> str:
    """Returns a text with its derived terms, as the full-text index stores it; `written_at` is an ISO time or ""."""
    terms = [*_day_terms(written_at[:10])]
    if _HUMP.search(text):
        terms += [" ".join(_CAMEL.findall(name)) for name in dict.fromkeys(_HUMPED.findall(text))]
    terms += derive_terms(text)
    return f"{text}\n{' '.join(terms)}" if terms else text


def derive_terms(text: str) -> Iterator[str]:
    """Yields the derived terms of a text: pairs of letters, words next to them, tails of compounds."""
    if not text.isascii():
        for run in _CJK_RUN.findall(text):
            yield from split_pairs(run)
        yield from _ADJACENT_LATIN.findall(text)
    for word in list(dict.fromkeys(_COMPOUND.findall(text)))[:MAX_COMPOUNDS]:
        yield from (word[index:] for index in range(MIN_PART_LETTERS - 1, len(word) - MIN_PART_LETTERS + 1))


def _day_terms(day: str) -> Iterator[str]:
    """Yields the index terms of a day: the day and its month, each with and without the year."""
    if _DAY.fullmatch(day):
        year, month, number = day.split("-")
        yield from (f"d{year}{month}{number}", f"d{month}{number}", f"m{year}{month}", f"m{month}")


def split_pairs(run: str) -> Iterator[str]:
    """Yields every two adjacent letters, or a single letter itself."""
    return (run[index : index + 2] for index in range(max(1, len(run) - 1)))


def split_cjk_word(word: str) -> list[str]:
    """Splits a word with Chinese, Japanese or Korean letters into pairs and words next to them; [] for other words."""
    if word.isascii() or not _CJK_RUN.search(word):
        return []
    return [*(pair for run in _CJK_RUN.findall(word) for pair in split_pairs(run)), *_ADJACENT_LATIN.findall(word)]


# --- terms of a question


def question_terms(question: str) -> list[str]:
    """Returns up to MAX_TERMS distinct terms of a question: its words, its names whole and in parts, its days.

    A term of several words is a phrase. A question of stop words alone searches for these.
    """
    terms: list[str] = []
    undated: list[str] = []
    end = 0
    for date in DATE.finditer(question):
        if days := _date_terms(date):
            terms += days
            undated.append(question[end : date.start()])
            end = date.end()
    rest = " ".join([*undated, question[end:]])
    words = query_terms(rest)
    language_terms = find_language_terms(question, words)
    terms += [*(words if language_terms is None else language_terms), *_name_terms(rest)]
    return list(dict.fromkeys(terms or words_of(question)))[:MAX_TERMS]


def find_language_terms(question: str, words: list[str]) -> list[str] | None:
    """Returns the terms that replace the `words` of a Russian or German question; None for any other question.

    A term that ends with `*` matches the beginning of a word.
    """
    is_german = _is_german(question)
    if not is_german and question.isascii():
        return None
    stop_words = _WORDS["russian"] | _WORDS["german"] if is_german else _WORDS["russian"]
    terms: dict[str, None] = {}
    for word in words:
        if word in stop_words:
            continue
        terms[word] = None
        if _CYRILLIC.fullmatch(word):
            terms[f"{_stem_in('russian', word)}*"] = None
        elif is_german and _LATIN.fullmatch(word):
            stem = _stem_in("german", word)
            terms[f"{stem}*"] = None
            terms.update((part, None) for part in _split_compound(word, len(stem)))
    return list(terms)


def _is_german(question: str) -> bool:
    words = set(WORD.findall(question.lower()))
    has_umlaut = any(letter in "äöüß" for word in words for letter in word)
    return len((words & _WORDS["german"]) - _WORDS["shared"]) + has_umlaut > len(words & _WORDS["question"])


def _stem_in(language: str, word: str) -> str:
    """Cuts a word to the length of its stem; the stem itself is not used, because the stemmer drops umlauts."""
    import snowballstemmer  # 15 ms, and few questions need it

    return word[: max(MIN_STEM_LETTERS, len(snowballstemmer.stemmer(language).stemWord(word)))]


def _split_compound(word: str, stem_length: int) -> Iterator[str]:
    """Yields the possible parts of a compound: its beginnings, and its tails without their ending."""
    for index in range(MIN_PART_LETTERS, len(word) - MIN_PART_LETTERS + 1):
        is_long = len(word) - index > MIN_PART_LETTERS + 1
        yield word[:index]
        yield f"{word[index : max(stem_length, index + MIN_STEM_LETTERS)]}*" if is_long else word[index:]


def _date_terms(match: re.Match[str]) -> list[str]:
    year, month, number, name = parse_date(match)
    if not 1 <= month <= 12 or number > 31:
        return []
    if number:
        return [f"d{year}{month:02}{number:02}", *([f"{name} {number}"] if name else [])]
    return [f"m{year}{month:02}", *([name] if len(name) > 3 else [])]


def _name_terms(question: str) -> Iterator[str]:
    """Yields names of several words as phrases: whole, a path's last part, and CamelCase as its parts."""
    for match in _NAME.finditer(question):
        name = match.group().lower()
        parts = _SEPARATOR.split(name)
        if len(parts) <= MAX_NAME_PARTS and sum(len(part) > 1 and part not in STOP_WORDS for part in parts) > 1:
            yield name
            last = name.replace("\\", "/").rpartition("/")[2]
            if last != name and _SEPARATOR.search(last):
                yield last
    for match in _HUMPED.finditer(question):
        yield " ".join(_CAMEL.findall(match.group())).lower()


def find_unindexed(question: str) -> str:
    """Returns a question that consists of symbols, or of one CJK letter, which no index contains; "" for others."""
    symbol = question.strip().replace("\ufe0f", "")
    is_letter = len(symbol) == 1 and _CJK_RUN.fullmatch(symbol)
    is_symbol = not any(map(str.isalnum, symbol)) and any(unicodedata.category(char) == "So" for char in symbol)
    return symbol if is_letter or is_symbol else ""


# --- terms of a text


def query_terms(text: str) -> list[str]:
    """Returns up to MAX_TEXT_TERMS distinct terms of a text: content words, parts of identifiers, pairs of CJK letters."""
    return list(dict.fromkeys(chain.from_iterable(map(_word_terms, WORD.findall(text)))))[:MAX_TEXT_TERMS]


@cached(8192)
def _word_terms(word: str) -> tuple[str, ...]:
    """Returns the terms of one word."""
    folded = word.lower()  # as the full-text index has it: ß stays ß
    if word.isalpha() and word.isascii() and (word[1:] or word).islower():  # it has no parts
        return (folded,) if len(folded) > 1 and folded not in STOP_WORDS else ()
    if pairs := split_cjk_word(folded):
        return tuple(pairs)
    terms = [folded] if len(folded) > 1 and folded not in STOP_WORDS else []
    parts = [part.casefold() for part in _CAMEL.findall(word)]
    if len(parts) > 1:
        terms += [part for part in parts if len(part) > 2 and part not in STOP_WORDS]
    return tuple(terms)
