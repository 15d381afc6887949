"""Decides whether two statements whose vectors are near say the same in other words, and why; pure.

Vectors are not enough: "port 5433" is as near to "port 6000" as a sentence is to its paraphrase. So each row of
DIFFERENCES looks for one way in which two similar statements differ. Two statements without a difference are the same.
Every content word must be in both, in some form or as a synonym: a wrong merge loses a statement, a missed one only
leaves it twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product, takewhile
from typing import NamedTuple

from csmd import data
from csmd.cache import cached
from csmd.text import clauses, language, phrases, similarity, tokens
from csmd.text.phrases import WORDS, Word, root_of

#: Fewest first letters that two forms of one word share; they differ only in their endings.
MIN_SHARED_LETTERS = 4
_ENDINGS = frozenset(["", *"e s es ed d ing er ers or ly y al als ment ments ation ations ion ions".split()])
#: Fewest last letters that two things of a kind share: upload, download.
MIN_TAIL_LETTERS = 4
#: Fewest words that two statements on one subject share.
MIN_SHARED_WORDS = 2

_NUMBER_NAMES = "two three four five six seven eight nine ten eleven twelve".split()
_NUMBERS = {word: str(number) for number, word in enumerate(_NUMBER_NAMES, start=2)}
_SYNONYMS = sorted(WORDS["alike"], reverse=True)
_SYNONYM_GROUP = {root_of(word): group for group in _SYNONYMS for word in group.split("/")}
_TOPICS, _SENTENCES = data.word_table("topic_words.txt"), data.word_table("sentence_words.txt")
_LIGHT_WORDS = WORDS["light"] | WORDS["likes"] | WORDS["weight"] | WORDS["empty"] | _TOPICS["adverb"]
_VERB_ROOTS = frozenset(
    map(root_of, _TOPICS["verb"] | _SENTENCES["order.en"] | _SENTENCES["stative.en"] | WORDS["holding"])
) - frozenset(map(root_of, _TOPICS["also_noun"]))
_QUOTED = re.compile(r'["\u201c\u201d]([^"\u201c\u201d\n]+)["\u201c\u201d]')
#: Signals of a replacement that rest on a value alone.
_VALUE_SIGNALS = frozenset(("number", "name", "value"))
#: Words and marks that end a clause; a comparison and a genitive are parts of it.
_CLAUSE_ENDS = clauses.CLAUSE_ENDS - {"of", "than", "and", "or"}
_HAVING, _BEING = frozenset(("has", "have", "had", "need", "needs")), clauses.COPULA | WORDS["passive"] | {"be"}
_SPEAKERS = frozenset(("i", "we", "you", "they"))
_SUBJECTS = frozenset(("it", "that", "which", "who"))
_GENERIC_ROOTS = frozenset(map(root_of, _TOPICS["generic"]))
_OPPOSITE_CLASSES = ("turned", "opposite", "apart")
_OPPOSITE_TABLES = [phrases.find_opposites(name, form) for name in _OPPOSITE_CLASSES for form in (str, root_of)]


class Verdict(NamedTuple):
    """Whether two statements say the same in other words, and the reason."""

    is_same: bool
    reason: str


@dataclass(frozen=True, slots=True)
class _Statement:
    """A statement as it is compared: its words, its names as stems, and its content words."""

    words: tuple[Word, ...]
    plain: frozenset[str]
    names: frozenset[str]
    numbers: frozenset[str]
    quoted: frozenset[str]
    verbs: frozenset[Word]
    """The words in the position of a verb."""
    content: Mapping[str, Word]
    """Synonym group or root -> content word, in order."""


Difference = Callable[[_Statement, _Statement], bool]


def judge(first: str, second: str) -> Verdict:
    """Decides whether two statements whose vectors are near say the same in other words, and why."""
    left, right = _parse(first), _parse(second)
    reason = next((reason for reason, differs in DIFFERENCES.items() if differs(left, right)), "")
    if reason:
        return Verdict(False, reason)
    has_unmatched = _find_unmatched(left, right) or _find_unmatched(right, left)
    for comparison in (similarity.compare(first, second), similarity.compare(second, first)):
        # If every word has its counterpart, a slot has no other value.
        if comparison.contradicts and (has_unmatched or not _VALUE_SIGNALS.issuperset(comparison.reasons)):
            return Verdict(False, f"one may replace the other: {', '.join(comparison.reasons)}")
    return Verdict(True, "it says the same in other words")


def has_swapped_roles(first: str, second: str) -> bool:
    """Whether two statements have the same words in swapped roles: A calls B, B calls A; from A to B, from B to A."""
    left, right = _parse(first), _parse(second)
    return _has_swapped_roles(left, right) or _has_swapped_ends(left, right)


@cached(2048)
def _parse(text: str) -> _Statement:
    words = tuple(phrases.tokenize(text))
    names: set[str] = set()
    content: dict[str, Word] = {}
    is_first = True
    for word in words:
        number = _NUMBERS.get(word.plain, "")
        if (word.is_name or (word.is_capital and not is_first)) and not word.is_number:
            names.add(tokens.stem(_bare_word(word)))
        is_first = word.plain in phrases.SENTENCE_ENDS
        is_adverb = word.plain.endswith("ly") and len(word.plain) > 5 and word.root not in _SYNONYM_GROUP
        if number or (word.stem and not is_adverb and word.plain not in _LIGHT_WORDS):
            content.setdefault(number or _SYNONYM_GROUP.get(word.root, word.root), word)
    return _Statement(
        words=words,
        plain=frozenset(map(_bare_word, words)),
        names=frozenset(names),
        numbers=frozenset(key for key in content if key[0].isdigit()),
        quoted=frozenset(map(tokens.normalise, _QUOTED.findall(text))),
        verbs=frozenset(word for index, word in enumerate(words) if _is_verb(words, index)),
        content=content,
    )


def _is_verb(words: Sequence[Word], index: int) -> bool:
    """Whether a word is in the position of a verb, and not an attribute as in "audit logs" and "failed jobs"."""
    plain = words[index].plain
    before, previous = ("", "", *(word.plain for word in words[:index]))[-2:]
    if previous in WORDS["auxiliary"] | _SPEAKERS or (previous == "to" and before in _HAVING):
        return True
    if previous in _BEING and _is_participle(plain):
        return True
    if words[index].root not in _VERB_ROOTS:
        return False
    following = words[index + 1 :]
    if not following or not following[0].stem or plain.endswith("s") or previous in _SUBJECTS:
        return True
    clause = [word.plain for word in phrases.words_until(following, _CLAUSE_ENDS)]
    return (not previous or previous in _CLAUSE_ENDS) and _SENTENCES["finite.en"].isdisjoint(clause)


def _bare_word(word: Word) -> str:
    return word.plain.lstrip("`")


# --- properties of one statement


def _is_english(statement: _Statement) -> bool:
    return language.language_of(" ".join(map(_bare_word, statement.words))) in ("en", "")


def _denies(statement: _Statement) -> bool:
    refusing = WORDS["denial"] | WORDS["refusing"]
    return any(word in refusing or word.endswith("n't") for word in statement.plain)


def _is_past(statement: _Statement) -> bool:
    if not WORDS["earlier"].isdisjoint(statement.plain):
        return True
    before_participle = _BEING | {"have", "has"}
    pairs = pairwise(word.plain for word in statement.words)
    return any(word in WORDS["told"] and before not in before_participle for before, word in pairs)


def _is_passive(statement: _Statement) -> bool:
    plain = [word.plain for word in statement.words if word.plain not in WORDS["denial"]]
    return any(first in _BEING and _is_participle(second) for first, second in pairwise(plain))


def _is_participle(plain: str) -> bool:
    return plain.endswith("ed") or plain in WORDS["participle"]


# --- differences of two statements


def _differ(read: Callable[[_Statement], object]) -> Difference:
    """Returns a test for a property with a different value in each statement."""
    return lambda left, right: read(left) != read(right)


def _differ_in(name: str) -> Difference:
    """Returns a test for a word of a class that only one of two statements has."""
    return _differ(lambda statement: WORDS[name].isdisjoint(statement.plain))


def _differ_in_names(left: _Statement, right: _Statement) -> bool:
    stems = [frozenset(map(tokens.stem, statement.plain)) for statement in (left, right)]
    return not (left.names <= stems[1] and right.names <= stems[0])


def _differ_in_permission(left: _Statement, right: _Statement) -> bool:
    """Whether only one statement permits; "not allowed to" and "must not" are the same."""
    return not _denies(left) and _differ_in("permitting")(left, right)


def _has_opposites(left: _Statement, right: _Statement) -> bool:
    forms = [{form for word in statement.words for form in (word.plain, word.root)} for statement in (left, right)]
    only_left, only_right = forms[0] - forms[1], forms[1] - forms[0]
    return any(table[word] & only_right for table in _OPPOSITE_TABLES for word in only_left & table.keys())


def _names_siblings(left: _Statement, right: _Statement) -> bool:
    """Whether the statements have two compounds with the same end: upload and download."""
    pairs = product(_find_unmatched(left, right), _find_unmatched(right, left))
    return any(_are_siblings(first.root, second.root) for first, second in pairs)


def _are_siblings(first: str, second: str) -> bool:
    if min(len(first), len(second)) <= MIN_TAIL_LETTERS or first.removeprefix("re") == second.removeprefix("re"):
        return False
    return first[-MIN_TAIL_LETTERS:] == second[-MIN_TAIL_LETTERS:]


def _has_extra_thing(left: _Statement, right: _Statement) -> bool:
    """Whether one statement names a thing that the other lacks; verbs may differ or be missing."""
    return _names_extra_thing(left, right) or _names_extra_thing(right, left)


def _names_extra_thing(statement: _Statement, other: _Statement) -> bool:
    """Whether a word names a thing without a counterpart; "helper functions" are helpers, a "debug level" is debug."""
    unmatched = _find_unmatched(statement, other)
    before: Word | None = None
    for word in statement.content.values():
        names_kind = word.root in _GENERIC_ROOTS and before is not None and before not in unmatched
        if word in unmatched and word not in statement.verbs and not names_kind:
            return True
        before = word
    return False


def _has_substitute(left: _Statement, right: _Statement) -> bool:
    """Whether each statement has its own word between the same two: admins create users, admins delete users."""
    return not _find_gaps(left, right).isdisjoint(_find_gaps(right, left))


def _find_gaps(statement: _Statement, other: _Statement) -> set[tuple[str, str]]:
    """Finds the words around each run of words that have no counterpart in the other statement."""
    unmatched = _find_unmatched(statement, other)
    gaps: set[tuple[str, str]] = set()
    before = ""
    is_open = False
    for key, word in (*statement.content.items(), ("", None)):
        if word in unmatched:
            is_open = True
            continue
        if is_open:
            gaps.add((before, key))
        before = key
        is_open = False
    return gaps


def _find_unmatched(statement: _Statement, other: _Statement) -> list[Word]:
    """Finds the words of a statement that have no counterpart in the other one."""
    return [
        word
        for key, word in statement.content.items()
        if key not in other.content and not any(_is_form(word.plain, match.plain) for match in other.content.values())
    ]


def _is_form(first: str, second: str) -> bool:
    """Whether two words are forms of one: indented and indentation, night and nightly."""
    size = len([*takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False))])
    doubled = first[size - 1 : size]  # labelled is label
    endings = {first[size:].removeprefix(doubled), second[size:].removeprefix(doubled)}
    is_plural = size >= MIN_SHARED_LETTERS - 1 and endings <= {"y", "ies", "ied"}
    return is_plural or (size >= MIN_SHARED_LETTERS and endings <= _ENDINGS)


def _has_swapped_roles(left: _Statement, right: _Statement) -> bool:
    """Whether the words before and after a third one are swapped: A calls B, B calls A."""
    if _is_passive(left) != _is_passive(right):
        return False
    pivots = {pivot.stem: pivot for pivot in _iter_pivots(right)}
    pairs = ((pivot, pivots[pivot.stem]) for pivot in _iter_pivots(left) if pivot.stem in pivots)
    return any(pivot.before & other.after and pivot.after & other.before for pivot, other in pairs)


class _Pivot(NamedTuple):
    """A stem, and the stems before and after it in its clause."""

    stem: str
    before: frozenset[str]
    after: frozenset[str]


def _iter_pivots(statement: _Statement) -> Iterator[_Pivot]:
    """Yields each stem with the stems around it."""
    for clause in phrases.split_clauses(statement.words, _CLAUSE_ENDS):
        stems = [word.stem for word in clause if word.stem]
        for index, stem in enumerate(stems):
            yield _Pivot(stem, frozenset(stems[:index]), frozenset(stems[index + 1 :]))


def _has_swapped_ends(left: _Statement, right: _Statement) -> bool:
    """Whether the words after "from" in one statement come after "to" in the other."""
    pairs = (left, right), (right, left)
    return any(_stems_after(first, "from") & _stems_after(second, "to") for first, second in pairs)


def _stems_after(statement: _Statement, preposition: str) -> frozenset[str]:
    """Returns the stems after a preposition, to the end of its phrase."""
    stops = phrases.STOPS | clauses.PREPOSITIONS.keys()
    endings = (statement.words[index + 1 :] for index, word in enumerate(statement.words) if word.plain == preposition)
    return frozenset[str]().union(*(clauses.stems_until(words, stops, limit=3) for words in endings))


#: Reason why two similar statements differ -> its test, in the order of the tests: cheap and certain ones first.
DIFFERENCES: Mapping[str, Difference] = {
    "they are in a language whose words are not known": lambda left, right: (
        not (_is_english(left) and _is_english(right))
    ),
    "one asks and the other states": _differ(lambda statement: "?" in statement.plain),
    "their numbers differ": _differ(lambda statement: statement.numbers),
    "their names differ": _differ_in_names,
    "they quote other words": _differ(lambda statement: statement.quoted),
    "one denies and the other does not": _differ(_denies),
    "one is less certain": _differ_in("unsure"),
    "one allows what the other does not speak of allowing": _differ_in_permission,
    "one tells what is planned": _differ_in("planned"),
    "one tells of the past": _differ(_is_past),
    "one leaves everything else out": _differ_in("only"),
    "one says which way": _differ_in("direction"),
    "they have opposite words": _has_opposites,
    "they name two things of a kind": _names_siblings,
    "one says something that the other does not": _has_extra_thing,
    "another word stands in the same place": _has_substitute,
    "what does and what is done to change places": _has_swapped_roles,
    "where from and where to change places": _has_swapped_ends,
    "they have too little in common": lambda left, right: (
        len(left.content.keys() & right.content.keys()) < MIN_SHARED_WORDS
    ),
}
