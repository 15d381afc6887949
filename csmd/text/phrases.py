"""Splits a text into words, and finds in them the fixed phrases of data/similarity_words.txt; pure.

A phrase is written with "_" between its elements: words, of which "/" separates alternatives, or a gap for any words,
whose name is in capitals. "?" marks an optional element.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, takewhile
from typing import NamedTuple

from csmd import data
from csmd.cache import cached
from csmd.text import tokens
from csmd.text.tokens import STOP_WORDS, stem

WORDS = data.word_table("similarity_words.txt")
#: Punctuation that ends a clause.
STOPS = frozenset(",;:.!?()\u2014")
SENTENCE_ENDS = frozenset(".;!?\u2014")
#: Most words of a gap within a phrase, so that the cost grows only with the length of the text.
MAX_GAP_WORDS = 24
_SAME_AS = {word: name[1:] for name, words in WORDS.items() if name.startswith("=") for word in words}
_DASHES = frozenset(("-", "--", "\u2013", "\u2014"))
_TOKEN = re.compile(
    r"""`[^`\n]{1,80}`                                   # code
    | (?<!\w)--?\w[\w-]*(?:\.\w+)*                       # a flag or a signed number
    | [~.]?[\w-]*(?:[/.][\w-]+)+                         # a path, a dotted name or a version
    | [^\W_]+(?:[_'-][^\W_]+)*[+\#%]*                    # a word
    | --|[^\w\s\"'`*\[\]{}\u201c\u201d\u2018]            # a mark""",
    re.VERBOSE,
)
_CONTRACTED = ("n't", "'re", "'m", "'ve", "'ll")


class Word(NamedTuple):
    """A word or mark of a text.

    `plain` is in lower case (code keeps its opening backtick), `root` its stem, `stem` the same, or "" for a word without
    a meaning of its own.
    """

    plain: str
    root: str
    stem: str
    is_name: bool = False
    is_capital: bool = False

    @property
    def is_number(self) -> bool:
        """Whether the word begins with a digit."""
        return self.root[:1].isdigit()


def tokenize(text: str) -> list[Word]:
    """Splits a text into its words and marks."""
    words: list[Word] = []
    for token in _TOKEN.findall(text.replace("\u2019", "'").replace("()", "")):
        if token[0] == "`" and len(token) > 2:
            words += (_make_word(f"`{part}") for part in token.strip("`").split() if part)
        else:
            words.append(_make_word(token))
    return words


@cached(8192)
def _make_word(token: str) -> Word:
    if token in STOPS or token in _DASHES:
        mark = "\u2014" if token in _DASHES else token
        return Word(mark, mark, "")
    bare = token.lstrip("`")
    plain = bare.casefold()
    singular = plain.removesuffix("'s")
    root = root_of(singular) if singular.isalpha() and not tokens.turns_round(singular) else singular
    is_code = bare != token
    is_marked = any(char.isdigit() or char in "/._" for char in bare) or (token[0] == "-" and len(token) > 1)
    is_name = is_code or is_marked or bare[1:] != plain[1:]
    has_meaning = any(map(str.isalnum, root)) and not plain.endswith(_CONTRACTED)
    if root.isalpha() and not is_code:
        is_empty = plain in STOP_WORDS or tokens.turns_round(plain) or root in _WEAK_ROOTS or len(root) < 2
        has_meaning = has_meaning and not is_empty
    return Word(f"`{plain}" if is_code else plain, root, root if has_meaning else "", is_name, bare[:1].isupper())


def stems(words: Iterable[Word]) -> frozenset[str]:
    """Returns the stems of the words that have a meaning of their own."""
    return frozenset(word.stem for word in words if word.stem)


def root_of(word: str) -> str:
    """Returns the `Word.root` of a word of a word list."""
    return stem(_SAME_AS.get(word, word))


def roots_of_class(word_class: str) -> frozenset[str]:
    """Returns the roots of the words of a class."""
    return frozenset(map(root_of, WORDS[word_class]))


def find_opposites(word_class: str, form: Callable[[str], str]) -> dict[str, frozenset[str]]:
    """Maps each word of a class of pairs to its opposites, both in the same form."""
    pairs = [tuple(map(form, pair.split("/"))) for pair in WORDS[word_class]]
    both = [*pairs, *(pair[::-1] for pair in pairs)]
    return {word: frozenset(other for first, other in both if first == word) for word, _ in both}


_WEAK_ROOTS = roots_of_class("weak")


# --- phrases


class Element(NamedTuple):
    """An element of a phrase: the words that match it, or a gap (no words) with its name."""

    words: frozenset[str]
    gap: str
    is_optional: bool


class Phrase(NamedTuple):
    """A phrase of a class."""

    word_class: str
    elements: Sequence[Element]


Phrases = Mapping[str, Sequence[Phrase]]
#: Name of a gap -> the words in it.
Gaps = dict[str, Sequence[Word]]


class PhraseMatch(NamedTuple):
    """A phrase in a clause: its class, the words in its gaps, and the words around it.

    `around` is the clause, with the one before it if the phrase opens it; `sentence` extends to the end of the clause.
    """

    word_class: str
    gaps: Gaps
    around: Sequence[Word]
    sentence: Sequence[Word]


def load_phrases(*classes: str) -> Phrases:
    """Indexes the phrases of some classes by each word that may come first, after a leading gap."""
    table: dict[str, list[Phrase]] = {}
    for word_class, row in ((name, row) for name in classes for row in sorted(WORDS[name])):
        elements = [_parse_element(element) for element in row.split("_")]
        for element in elements[1:] if elements[0].gap else elements:
            for word in element.words:
                table.setdefault(word, []).append(Phrase(word_class, elements))
            if not element.is_optional:
                break
    return table


def _parse_element(element: str) -> Element:
    bare = element.rstrip("?")
    words, gap = ((), bare) if bare.isupper() else (bare.split("/"), "")
    return Element(frozenset(words), gap, bare != element)


def match_phrase(table: Phrases, words: Sequence[Word], index: int) -> int:
    """Returns the number of words of the longest phrase at `index`; 0 if none matches."""
    matches = [_match_elements(phrase.elements, words, index) for phrase in table.get(words[index].plain, ())]
    return max((end for end, _ in filter(None, matches)), default=index) - index


def find_phrases(table: Phrases, words: Sequence[Word]) -> Iterator[PhraseMatch]:
    """Yields the phrases in each clause of some words."""
    for sentence in split_clauses(words, SENTENCE_ENDS):
        before: Sequence[Word] = ()
        end = 0
        for clause in split_clauses(sentence):
            end += len(clause)
            for index, word in enumerate(clause):
                for phrase in table.get(word.plain, ()):
                    if (gaps := _match_in_clause(phrase.elements, clause, index)) is not None:
                        around = [*before, *clause] if index < 2 else clause
                        yield PhraseMatch(phrase.word_class, gaps, around, sentence[:end])
            before = clause


def _match_in_clause(elements: Sequence[Element], clause: Sequence[Word], index: int) -> Gaps | None:
    """Returns the gaps of a phrase whose first word is at `index` of a clause; None if it does not match."""
    lead = elements[0].gap
    match = None if lead and not index else _match_elements(elements[bool(lead) :], clause, index)
    if match is None:
        return None
    return {lead: clause[:index], **match[1]} if lead else match[1]


def _match_elements(elements: Sequence[Element], words: Sequence[Word], start: int) -> tuple[int, Gaps] | None:
    """Matches elements from `start` on; returns (end, gaps) or None. A final gap takes all remaining words."""
    if not elements:
        return start, {}
    element, rest = elements[0], elements[1:]
    if element.gap:
        first = start if element.is_optional else start + 1
        if not rest:
            return (len(words), {element.gap: words[start:]}) if first <= len(words) else None
        for end in range(first, min(start + MAX_GAP_WORDS, len(words)) + 1):
            if (match := _match_elements(rest, words, end)) is not None:
                return match[0], {element.gap: words[start:end], **match[1]}
        return None
    is_present = start < len(words) and words[start].plain in element.words
    if is_present and (match := _match_elements(rest, words, start + 1)) is not None:
        return match
    return _match_elements(rest, words, start) if element.is_optional else None


def words_until(words: Iterable[Word], ends: frozenset[str]) -> list[Word]:
    """Returns the words before the first of `ends`."""
    return list(takewhile(lambda word: word.plain not in ends, words))


def split_clauses(words: Sequence[Word], ends: frozenset[str] = STOPS) -> Iterator[Sequence[Word]]:
    """Splits words into clauses (or, by other ends, sentences), each with the mark before it."""
    starts = [0, *(index for index, word in enumerate(words) if word.plain in ends and index), len(words)]
    return (words[start:end] for start, end in pairwise(starts))
