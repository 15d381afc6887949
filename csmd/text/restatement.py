"""Tells whether two statements whose vectors are near are one statement in other words, and why; pure.

Vectors alone do not tell: "port 5433" is as near to "port 6000" as a sentence is to its paraphrase. So each table row
of DIFFERENCES looks for one way in which two like statements say different things. What no row finds is a restatement.
Every word that says something must stand in both, in a form of its own or as a word for the same thing: a wrong merge
loses a statement, a missed one only leaves it twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product, takewhile
from typing import NamedTuple

from csmd import data
from csmd.cache import cached
from csmd.text import clauses, language, similarity, tokens
from csmd.text.clauses import WORDS, Word

#: Two forms of one word share this many first letters and differ only in their endings.
MIN_SHARED_LETTERS = 4
_ENDINGS = frozenset(["", *"e s es ed d ing er ers or ly y al als ment ments ation ations ion ions".split()])
#: Two compounds with the same last MIN_TAIL letters and different beginnings are two things of a kind: upload,
#: download.
MIN_TAIL_LETTERS = 4
#: Words that two statements share at least; fewer make no subject.
MIN_SHARED_WORDS = 2

_NUMBERS = {
    word: str(number)
    for number, word in enumerate("two three four five six seven eight nine ten eleven twelve".split(), start=2)
}
_SYNONYM_GROUP = {
    clauses.root(word): group for group in sorted(WORDS["alike"], reverse=True) for word in group.split("/")
}
_TOPICS, _SENTENCES = data.word_table("topic_words.txt"), data.word_table("sentence_words.txt")
_LIGHT_WORDS = WORDS["light"] | WORDS["likes"] | WORDS["weight"] | WORDS["empty"] | _TOPICS["adverb"]
_VERB_ROOTS = frozenset(
    map(clauses.root, _TOPICS["verb"] | _SENTENCES["order.en"] | _SENTENCES["stative.en"] | WORDS["holding"])
) - frozenset(map(clauses.root, _TOPICS["also_noun"]))
_QUOTED = re.compile(r'["\u201c\u201d]([^"\u201c\u201d\n]+)["\u201c\u201d]')
#: Signals of a replacement that rest on a value alone.
_VALUE_SIGNALS = frozenset(("number", "name", "value"))
#: What ends a clause; what is compared, and what something is of, belongs to it.
_CLAUSE_ENDS = (clauses.STOPS | WORDS["break"]) - {"of", "than", "and", "or"}
_HAVING, _BEING = frozenset(("has", "have", "had", "need", "needs")), clauses.COPULA | WORDS["passive"] | {"be"}
_SPEAKERS = frozenset(("i", "we", "you", "they"))
_SUBJECTS = frozenset(("it", "that", "which", "who"))
_GENERIC_ROOTS = frozenset(map(clauses.root, _TOPICS["generic"]))
_OPPOSITE_TABLES = [
    clauses.opposites(name, form) for name in ("turned", "opposite", "apart") for form in (str, clauses.root)
]


class Verdict(NamedTuple):
    """Whether two statements are one in other words, and why or why not."""

    is_same: bool
    reason: str


@dataclass(frozen=True, slots=True)
class _Statement:
    """A statement as it is compared: its words as they are, its names as stems, and what says something."""

    words: tuple[Word, ...]
    plain: frozenset[str]
    names: frozenset[str]
    numbers: frozenset[str]
    quoted: frozenset[str]
    verbs: frozenset[Word]
    """Those in the place of a verb."""
    written: Mapping[str, Word]
    """In order, by what they are alike to, the words that say something."""


def judge(first: str, second: str) -> Verdict:
    """Whether two statements whose vectors are near say the same in other words, and why or why not."""
    left, right = _parse(first), _parse(second)
    for reason, differs in DIFFERENCES.items():
        if differs(left, right):
            return Verdict(False, reason)
    has_unmatched = any(_find_unmatched(left, right))
    for comparison in (similarity.compare(first, second), similarity.compare(second, first)):
        # Another value in a slot is none where every word has its counterpart.
        if comparison.contradicts and (has_unmatched or not _VALUE_SIGNALS.issuperset(comparison.reasons)):
            return Verdict(False, f"one may replace the other: {', '.join(comparison.reasons)}")
    return Verdict(True, "it says the same in other words")


def has_swapped_roles(first: str, second: str) -> bool:
    """Whether two statements have the same words in other roles: A calls B, and B calls A; from A to B, and from B to
    A."""
    left, right = _parse(first), _parse(second)
    return _has_swapped_agents(left, right) or _has_swapped_ends(left, right)


@cached(2048)
def _parse(text: str) -> _Statement:
    words = tuple(clauses.words_of(text))
    names: set[str] = set()
    written: dict[str, Word] = {}
    begins = True
    for word in words:
        number = _NUMBERS.get(word.plain, "")
        if (word.is_name or (word.is_capital and not begins)) and not word.is_number:
            names.add(tokens.stem(_bare_word(word)))
        begins = word.plain in clauses.SENTENCE_ENDS
        is_adverb = word.plain.endswith("ly") and len(word.plain) > 5 and word.root not in _SYNONYM_GROUP
        if number or (word.stem and not is_adverb and word.plain not in _LIGHT_WORDS):
            written.setdefault(number or _SYNONYM_GROUP.get(word.root, word.root), word)
    return _Statement(
        words=words,
        plain=frozenset(map(_bare_word, words)),
        names=frozenset(names),
        numbers=frozenset(key for key in written if key[0].isdigit()),
        quoted=frozenset(map(tokens.normalise, _QUOTED.findall(text))),
        verbs=frozenset(word for at, word in enumerate(words) if _is_verb(words, at)),
        written=written,
    )


def _is_verb(words: Sequence[Word], at: int) -> bool:
    """Whether a word is in the place of a verb; before a noun, as in "audit logs" and "failed jobs", it says which."""
    plain = words[at].plain
    first, second = ("", "", *(word.plain for word in words[:at]))[-2:]
    if second in WORDS["auxiliary"] | _SPEAKERS or (second == "to" and first in _HAVING):
        return True
    if second in _BEING and (plain.endswith("ed") or plain in WORDS["participle"]):
        return True
    if words[at].root not in _VERB_ROOTS:
        return False
    behind = words[at + 1 :]
    leads = not behind or not behind[0].stem or plain.endswith("s") or second in _SUBJECTS
    return leads or ((not second or second in _CLAUSE_ENDS) and _SENTENCES["finite.en"].isdisjoint(_clause(behind)))


def _clause(words: Sequence[Word]) -> list[str]:
    """The words up to the end of their clause."""
    return [word.plain for word in takewhile(lambda word: word.plain not in _CLAUSE_ENDS, words)]


def _bare_word(word: Word) -> str:
    return word.plain.lstrip("`")


# --- one row of the table each


def _language(left: _Statement, right: _Statement) -> bool:
    return any(
        language.language_of(" ".join(map(_bare_word, reading.words))) not in ("en", "") for reading in (left, right)
    )


def _numbers(left: _Statement, right: _Statement) -> bool:
    return left.numbers != right.numbers


def _names(left: _Statement, right: _Statement) -> bool:
    stems = [frozenset(map(tokens.stem, reading.plain)) for reading in (left, right)]
    return not (left.names <= stems[1] and right.names <= stems[0])


def _quoted(left: _Statement, right: _Statement) -> bool:
    return left.quoted != right.quoted


def _differ_in(name: str) -> Callable[[_Statement, _Statement], bool]:
    """Whether one of two statements has a word of a class and the other has none."""
    return lambda left, right: WORDS[name].isdisjoint(left.plain) != WORDS[name].isdisjoint(right.plain)


def _denial(left: _Statement, right: _Statement) -> bool:
    return _denies(left) != _denies(right)


def _denies(reading: _Statement) -> bool:
    refusing = WORDS["denial"] | WORDS["refusing"]
    return any(word in refusing or word.endswith("n't") for word in reading.plain)


def _permission(left: _Statement, right: _Statement) -> bool:
    """ "Not allowed to" and "must not" are one, "allowed to" and "must" are not."""
    return not _denies(left) and _differ_in("permitting")(left, right)


def _past(left: _Statement, right: _Statement) -> bool:
    return _is_past(left) != _is_past(right)


def _is_past(reading: _Statement) -> bool:
    before_participle = _BEING | {"have", "has"}
    in_past = (
        word.plain in WORDS["told"] and before.plain not in before_participle
        for before, word in pairwise(reading.words)
    )
    return not WORDS["earlier"].isdisjoint(reading.plain) or any(in_past)


def _question(left: _Statement, right: _Statement) -> bool:
    return ("?" in left.plain) != ("?" in right.plain)


def _has_opposites(left: _Statement, right: _Statement) -> bool:
    of_left, of_right = (
        {form for word in reading.words for form in (word.plain, word.root)} for reading in (left, right)
    )
    only_left, only_right = of_left - of_right, of_right - of_left
    return any(table[word] & only_right for table in _OPPOSITE_TABLES for word in only_left & table.keys())


def _names_siblings(left: _Statement, right: _Statement) -> bool:
    """Whether they have two compounds with one end: upload and download."""
    roots = [[word.root for word in words] for words in _find_unmatched(left, right)]
    return any(
        first[-MIN_TAIL_LETTERS:] == second[-MIN_TAIL_LETTERS:]
        and min(len(first), len(second)) > MIN_TAIL_LETTERS
        and first.removeprefix("re") != second.removeprefix("re")
        for first, second in product(*roots)
    )


def _has_extra_thing(left: _Statement, right: _Statement) -> bool:
    """Whether one has a word for a thing that the other has not; a verb may be another one, or none."""
    of_left, of_right = _find_unmatched(left, right)
    return any((*_iter_extra_things(left, of_left), *_iter_extra_things(right, of_right)))


def _iter_extra_things(reading: _Statement, unmatched: list[Word]) -> Iterator[bool]:
    """Of each word whether it names a thing without a counterpart: "helper functions" are helpers, a "debug level" is
    debug."""
    before: Word | None = None
    for word in reading.written.values():
        says_kind = word.root in _GENERIC_ROOTS and before is not None and before not in unmatched
        yield word in unmatched and word not in reading.verbs and not says_kind
        before = word


def _has_substitute(left: _Statement, right: _Statement) -> bool:
    """Whether in one place each has a word of its own, between the same words: admins create users, admins delete
    users."""
    of_left, of_right = _find_unmatched(left, right)
    return not _find_gaps(left, of_left).isdisjoint(_find_gaps(right, of_right))


def _find_gaps(reading: _Statement, unmatched: list[Word]) -> set[tuple[str, str]]:
    """The words around each run of words that have no counterpart."""
    gaps: set[tuple[str, str]] = set()
    before, is_open = "", False
    for key, word in (*reading.written.items(), ("", None)):
        if word in unmatched:
            is_open = True
        else:
            if is_open:
                gaps.add((before, key))
            before, is_open = key, False
    return gaps


def _find_unmatched(left: _Statement, right: _Statement) -> tuple[list[Word], list[Word]]:
    """The words of each of two statements that have no counterpart in the other."""
    return _find_missing(left, right), _find_missing(right, left)


def _find_missing(reading: _Statement, opposite: _Statement) -> list[Word]:
    return [
        word
        for key, word in reading.written.items()
        if key not in opposite.written and not any(_is_form(word.plain, of.plain) for of in opposite.written.values())
    ]


def _is_form(first: str, second: str) -> bool:
    """Whether two words are forms of one: indented and indentation, night and nightly."""
    size = len([*takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False))])
    doubled = first[size - 1 : size]  # labelled is label
    endings = {first[size:].removeprefix(doubled), second[size:].removeprefix(doubled)}
    is_plural = size >= MIN_SHARED_LETTERS - 1 and endings <= {"y", "ies", "ied"}
    return is_plural or (size >= MIN_SHARED_LETTERS and endings <= _ENDINGS)


def _has_swapped_agents(left: _Statement, right: _Statement) -> bool:
    """Whether the words before and after a third one have changed places: A calls B, B calls A."""
    if _is_passive(left) != _is_passive(right):
        return False
    of_left, of_right = _split_clauses(left), _split_clauses(right)
    around = {pivot: (before, after) for clause in of_right for pivot, before, after in _iter_pivots(clause)}
    return any(
        before & around[pivot][1] and after & around[pivot][0]
        for clause in of_left
        for pivot, before, after in _iter_pivots(clause)
        if pivot in around
    )


def _split_clauses(reading: _Statement) -> list[Sequence[str]]:
    """The stems of each clause, in order."""
    return [[word.stem for word in clause if word.stem] for clause in clauses.split(reading.words, _CLAUSE_ENDS)]


def _iter_pivots(clause: Sequence[str]) -> Iterator[tuple[str, frozenset[str], frozenset[str]]]:
    """Each word of a clause with those before and after it."""
    return ((pivot, frozenset(clause[:at]), frozenset(clause[at + 1 :])) for at, pivot in enumerate(clause))


def _is_passive(reading: _Statement) -> bool:
    plain = [word.plain for word in reading.words if word.plain not in WORDS["denial"]]
    return any(
        first in _BEING and (second.endswith("ed") or second in WORDS["participle"])
        for first, second in pairwise(plain)
    )


def _has_swapped_ends(left: _Statement, right: _Statement) -> bool:
    """Whether something comes from where it goes to in the other."""
    of = [{way: _stems_after(reading, way) for way in ("from", "to")} for reading in (left, right)]
    return any(of[at]["from"] & of[1 - at]["to"] for at in (0, 1))


def _stems_after(reading: _Statement, way: str) -> frozenset[str]:
    """The stems after a preposition, to the end of its phrase."""
    return frozenset[str]().union(
        *(
            clauses.stems_until(reading.words[at + 1 :], clauses.STOPS | clauses.WAYS.keys(), most=3)
            for at, word in enumerate(reading.words)
            if word.plain == way
        )
    )


def _little(left: _Statement, right: _Statement) -> bool:
    return len(left.written.keys() & right.written.keys()) < MIN_SHARED_WORDS


#: Why two like statements are two, in the order in which they are looked at: what is cheap and certain first.
DIFFERENCES: Mapping[str, Callable[[_Statement, _Statement], bool]] = {
    "they are in a language whose words are not known": _language,
    "one asks and the other states": _question,
    "their numbers differ": _numbers,
    "their names differ": _names,
    "they quote other words": _quoted,
    "one denies and the other does not": _denial,
    "one is less certain": _differ_in("unsure"),
    "one allows what the other does not speak of allowing": _permission,
    "one tells what is planned": _differ_in("planned"),
    "one tells of the past": _past,
    "one leaves everything else out": _differ_in("only"),
    "one says which way": _differ_in("direction"),
    "they have opposite words": _has_opposites,
    "they name two things of a kind": _names_siblings,
    "one says something that the other does not": _has_extra_thing,
    "another word stands in the same place": _has_substitute,
    "what does and what is done to change places": _has_swapped_agents,
    "where from and where to change places": _has_swapped_ends,
    "they have too little in common": _little,
}
