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
MIN_BEGINNING = 4
_ENDINGS = frozenset(["", *"e s es ed d ing er ers or ly y al als ment ments ation ations ion ions".split()])
#: Two compounds with the same last MIN_TAIL letters and different beginnings are two things of a kind: upload,
#: download.
MIN_TAIL = 4
#: Words that two statements share at least; fewer make no subject.
MIN_SHARED = 2

_NUMBERS = {
    word: str(number)
    for number, word in enumerate("two three four five six seven eight nine ten eleven twelve".split(), start=2)
}
_ALIKE = {clauses.root(word): group for group in sorted(WORDS["alike"], reverse=True) for word in group.split("/")}
_TOPICS, _SENTENCES = data.word_table("topic_words.txt"), data.word_table("sentence_words.txt")
_LIGHT = WORDS["light"] | WORDS["likes"] | WORDS["weight"] | WORDS["empty"] | _TOPICS["adverb"]
_VERBS = frozenset(
    map(clauses.root, _TOPICS["verb"] | _SENTENCES["order.en"] | _SENTENCES["stative.en"] | WORDS["holding"])
) - frozenset(map(clauses.root, _TOPICS["also_noun"]))
_QUOTED = re.compile(r'["\u201c\u201d]([^"\u201c\u201d\n]+)["\u201c\u201d]')
#: Signals of a replacement that rest on a value alone.
_VALUES = frozenset(("number", "name", "value"))
#: What ends a clause; what is compared, and what something is of, belongs to it.
_CLAUSE_ENDS = (clauses.STOPS | WORDS["break"]) - {"of", "than", "and", "or"}
_HAVING, _BEING = frozenset(("has", "have", "had", "need", "needs")), clauses.COPULA | WORDS["passive"] | {"be"}
_SPEAKERS = frozenset(("i", "we", "you", "they"))
_SUBJECTS = frozenset(("it", "that", "which", "who"))
_GENERIC = frozenset(map(clauses.root, _TOPICS["generic"]))
_OPPOSITES = [clauses.opposites(name, form) for name in ("turned", "opposite", "apart") for form in (str, clauses.root)]


class Verdict(NamedTuple):
    """Whether two statements are one in other words, and why or why not."""

    is_same: bool
    reason: str


@dataclass(frozen=True, slots=True)
class _Reading:
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
    left, right = _read(first), _read(second)
    for reason, differs in DIFFERENCES.items():
        if differs(left, right):
            return Verdict(False, reason)
    has_unmatched = any(_unmatched(left, right))
    for comparison in (similarity.compare(first, second), similarity.compare(second, first)):
        # Another value in a slot is none where every word has its counterpart.
        if comparison.contradicts and (has_unmatched or not _VALUES.issuperset(comparison.reasons)):
            return Verdict(False, f"one may replace the other: {', '.join(comparison.reasons)}")
    return Verdict(True, "it says the same in other words")


def change_places(first: str, second: str) -> bool:
    """Whether two statements have the same words in other roles: A calls B, and B calls A; from A to B, and from B to
    A."""
    left, right = _read(first), _read(second)
    return _roles(left, right) or _ways(left, right)


@cached(2048)
def _read(text: str) -> _Reading:
    words = tuple(clauses.words_of(text))
    names: set[str] = set()
    written: dict[str, Word] = {}
    begins = True
    for word in words:
        number = _NUMBERS.get(word.plain, "")
        if (word.is_name or (word.is_capital and not begins)) and not word.is_number:
            names.add(tokens.stem(_bare(word)))
        begins = word.plain in clauses.SENTENCE_ENDS
        is_adverb = word.plain.endswith("ly") and len(word.plain) > 5 and word.root not in _ALIKE
        if number or (word.stem and not is_adverb and word.plain not in _LIGHT):
            written.setdefault(number or _ALIKE.get(word.root, word.root), word)
    return _Reading(
        words=words,
        plain=frozenset(map(_bare, words)),
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
    if words[at].root not in _VERBS:
        return False
    behind = words[at + 1 :]
    leads = not behind or not behind[0].stem or plain.endswith("s") or second in _SUBJECTS
    return leads or ((not second or second in _CLAUSE_ENDS) and _SENTENCES["finite.en"].isdisjoint(_clause(behind)))


def _clause(words: Sequence[Word]) -> list[str]:
    """The words up to the end of their clause."""
    return [word.plain for word in takewhile(lambda word: word.plain not in _CLAUSE_ENDS, words)]


def _bare(word: Word) -> str:
    return word.plain.lstrip("`")


# --- one row of the table each


def _language(left: _Reading, right: _Reading) -> bool:
    return any(language.language_of(" ".join(map(_bare, reading.words))) not in ("en", "") for reading in (left, right))


def _numbers(left: _Reading, right: _Reading) -> bool:
    return left.numbers != right.numbers


def _names(left: _Reading, right: _Reading) -> bool:
    stems = [frozenset(map(tokens.stem, reading.plain)) for reading in (left, right)]
    return not (left.names <= stems[1] and right.names <= stems[0])


def _quoted(left: _Reading, right: _Reading) -> bool:
    return left.quoted != right.quoted


def _has(name: str) -> Callable[[_Reading, _Reading], bool]:
    """Whether one of two statements has a word of a class and the other has none."""
    return lambda left, right: WORDS[name].isdisjoint(left.plain) != WORDS[name].isdisjoint(right.plain)


def _denial(left: _Reading, right: _Reading) -> bool:
    return _denies(left) != _denies(right)


def _denies(reading: _Reading) -> bool:
    refusing = WORDS["denial"] | WORDS["refusing"]
    return any(word in refusing or word.endswith("n't") for word in reading.plain)


def _permission(left: _Reading, right: _Reading) -> bool:
    """ "Not allowed to" and "must not" are one, "allowed to" and "must" are not."""
    return not _denies(left) and _has("permitting")(left, right)


def _past(left: _Reading, right: _Reading) -> bool:
    return _tells_past(left) != _tells_past(right)


def _tells_past(reading: _Reading) -> bool:
    before_participle = _BEING | {"have", "has"}
    in_past = (
        word.plain in WORDS["told"] and before.plain not in before_participle
        for before, word in pairwise(reading.words)
    )
    return not WORDS["earlier"].isdisjoint(reading.plain) or any(in_past)


def _question(left: _Reading, right: _Reading) -> bool:
    return ("?" in left.plain) != ("?" in right.plain)


def _opposites(left: _Reading, right: _Reading) -> bool:
    of_left, of_right = (
        {form for word in reading.words for form in (word.plain, word.root)} for reading in (left, right)
    )
    only_left, only_right = of_left - of_right, of_right - of_left
    return any(table[word] & only_right for table in _OPPOSITES for word in only_left & table.keys())


def _kinds(left: _Reading, right: _Reading) -> bool:
    """Whether they have two compounds with one end: upload and download."""
    roots = [[word.root for word in words] for words in _unmatched(left, right)]
    return any(
        first[-MIN_TAIL:] == second[-MIN_TAIL:]
        and min(len(first), len(second)) > MIN_TAIL
        and first.removeprefix("re") != second.removeprefix("re")
        for first, second in product(*roots)
    )


def _more(left: _Reading, right: _Reading) -> bool:
    """Whether one has a word for a thing that the other has not; a verb may be another one, or none."""
    of_left, of_right = _unmatched(left, right)
    return any((*_things(left, of_left), *_things(right, of_right)))


def _things(reading: _Reading, unmatched: list[Word]) -> Iterator[bool]:
    """Of each word whether it names a thing without a counterpart: "helper functions" are helpers, a "debug level" is
    debug."""
    before: Word | None = None
    for word in reading.written.values():
        says_kind = word.root in _GENERIC and before is not None and before not in unmatched
        yield word in unmatched and word not in reading.verbs and not says_kind
        before = word


def _instead(left: _Reading, right: _Reading) -> bool:
    """Whether in one place each has a word of its own, between the same words: admins create users, admins delete
    users."""
    of_left, of_right = _unmatched(left, right)
    return not _gaps(left, of_left).isdisjoint(_gaps(right, of_right))


def _gaps(reading: _Reading, unmatched: list[Word]) -> set[tuple[str, str]]:
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


def _unmatched(left: _Reading, right: _Reading) -> tuple[list[Word], list[Word]]:
    """The words of each of two statements that have no counterpart in the other."""
    return _without(left, right), _without(right, left)


def _without(reading: _Reading, opposite: _Reading) -> list[Word]:
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
    is_plural = size >= MIN_BEGINNING - 1 and endings <= {"y", "ies", "ied"}
    return is_plural or (size >= MIN_BEGINNING and endings <= _ENDINGS)


def _roles(left: _Reading, right: _Reading) -> bool:
    """Whether the words before and after a third one have changed places: A calls B, B calls A."""
    if _is_passive(left) != _is_passive(right):
        return False
    of_left, of_right = _clauses(left), _clauses(right)
    around = {pivot: (before, after) for clause in of_right for pivot, before, after in _around(clause)}
    return any(
        before & around[pivot][1] and after & around[pivot][0]
        for clause in of_left
        for pivot, before, after in _around(clause)
        if pivot in around
    )


def _clauses(reading: _Reading) -> list[Sequence[str]]:
    """The stems of each clause, in order."""
    return [[word.stem for word in clause if word.stem] for clause in clauses.split(reading.words, _CLAUSE_ENDS)]


def _around(clause: Sequence[str]) -> Iterator[tuple[str, frozenset[str], frozenset[str]]]:
    """Each word of a clause with those before and after it."""
    return ((pivot, frozenset(clause[:at]), frozenset(clause[at + 1 :])) for at, pivot in enumerate(clause))


def _is_passive(reading: _Reading) -> bool:
    plain = [word.plain for word in reading.words if word.plain not in WORDS["denial"]]
    return any(
        first in _BEING and (second.endswith("ed") or second in WORDS["participle"])
        for first, second in pairwise(plain)
    )


def _ways(left: _Reading, right: _Reading) -> bool:
    """Whether something comes from where it goes to in the other."""
    of = [{way: _behind(reading, way) for way in ("from", "to")} for reading in (left, right)]
    return any(of[at]["from"] & of[1 - at]["to"] for at in (0, 1))


def _behind(reading: _Reading, way: str) -> frozenset[str]:
    """The stems after a preposition, to the end of its phrase."""
    return frozenset[str]().union(
        *(
            clauses.stems_until(reading.words[at + 1 :], clauses.STOPS | clauses.WAYS.keys(), most=3)
            for at, word in enumerate(reading.words)
            if word.plain == way
        )
    )


def _little(left: _Reading, right: _Reading) -> bool:
    return len(left.written.keys() & right.written.keys()) < MIN_SHARED


#: Why two like statements are two, in the order in which they are looked at: what is cheap and certain first.
DIFFERENCES: Mapping[str, Callable[[_Reading, _Reading], bool]] = {
    "they are in a language whose words are not known": _language,
    "one asks and the other states": _question,
    "their numbers differ": _numbers,
    "their names differ": _names,
    "they quote other words": _quoted,
    "one denies and the other does not": _denial,
    "one is less certain": _has("unsure"),
    "one allows what the other does not speak of allowing": _permission,
    "one tells what is planned": _has("planned"),
    "one tells of the past": _past,
    "one leaves everything else out": _has("only"),
    "one says which way": _has("direction"),
    "they have opposite words": _opposites,
    "they name two things of a kind": _kinds,
    "one says something that the other does not": _more,
    "another word stands in the same place": _instead,
    "what does and what is done to change places": _roles,
    "where from and where to change places": _ways,
    "they have too little in common": _little,
}
