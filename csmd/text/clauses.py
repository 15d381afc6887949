"""Reads a statement: its words without fillers, its parts, and the values in it; pure.

A reading omits fillers, lead-ins ("note that", "we decided to") and reasons, because two statements with the same
reason need not be about the same thing. Readings are cached, since a statement is compared with many others.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from csmd.cache import cached
from csmd.text import phrases, prose
from csmd.text.phrases import SENTENCE_ENDS, STOPS, WORDS, Word, match_phrase, stems, tokenize
from csmd.text.tokens import stem

#: Preposition -> the kind of slot that it opens.
PREPOSITIONS = {word: kind for kind in ("means", "place", "source", "extent", "form", "time") for word in WORDS[kind]}
COPULA = WORDS["copula"] | WORDS["was"]
CLAUSE_ENDS = STOPS | WORDS["break"]
#: Word before a value -> the kind of its slot.
_VALUE_KINDS = PREPOSITIONS | dict.fromkeys(COPULA, "is") | {"use": "means"}
#: Most words of a value.
MAX_VALUE_WORDS = 4
_VALUE_ENDS = (CLAUSE_ENDS | COPULA | PREPOSITIONS.keys()) - {"every"}
_MONTHS = frozenset(stem(month.casefold()) for month in (*calendar.month_name[1:], *calendar.month_abbr[1:]))
_UNITS = phrases.roots_of_class("unit")
_EMPTY = WORDS["empty"] | STOPS
_FILLER, _LEAD, _WISH, _USER = map(phrases.load_phrases, ("filler", "lead", "wish", "user"))
_BAN, _HERE, _REASON, _CONTINUING = map(phrases.load_phrases, ("ban", "here_phrase", "reason", "continuing"))
_USE, _NEVER, _FULL_STOP = tokenize("use never .")
#: Boundaries of parts: rows of a list, list numbers, a full stop before a small letter.
_PART_BOUNDARY = re.compile(r"; |\n+|(?:^|(?<=[\s:;,.]))\(?\d{1,2}[.)] |(?<=\w{3}[.!]) +(?=[a-z])")


# --- readings


class Reading(NamedTuple):
    """The words of a text without its fillers, lead-in and reasons; `reasons` are the roots of each reason."""

    words: tuple[Word, ...]
    reasons: frozenset[tuple[str, ...]]
    asks: bool


def without_fillers(text: str) -> list[Word]:
    """Returns the words and marks of a text without its fillers."""
    return _remove_phrases(tokenize(text), _FILLER)


def without_project_reference(words: list[Word]) -> list[Word]:
    """Removes the words that say that something holds in the present project."""
    return _remove_phrases(words, _HERE)


@cached(4096)
def read_statement(text: str) -> Reading:
    """Reads a text; the words of the same text are the same objects."""
    words = without_fillers(text)
    while words and (size := match_phrase(_LEAD, words, 0) or words[0].plain in STOPS):
        words = words[size:]
    words = without_project_reference(_simplify(words)) if words else []
    reasons: set[tuple[str, ...]] = set()

    def measure_reason(index: int) -> int:
        """Adds the reason at `index` to `reasons`, and returns its number of words."""
        if not (size := _measure_reason_opening(words, index)):
            return 0
        clause = phrases.words_until(words[index:], SENTENCE_ENDS)
        reason = [word for word in clause[size:] if word.plain not in _EMPTY]
        if not WORDS["no_reason"].isdisjoint(word.plain for word in reason):
            return 0
        reasons.add(tuple(word.root for word in reason))
        return len(clause)

    rest = _remove_spans(words, measure_reason)
    return Reading(tuple(rest), frozenset(reasons), text.rstrip(" \"'`)\u201d\u2019").endswith("?"))


def _remove_spans(words: list[Word], measure: Callable[[int], int]) -> list[Word]:
    """Removes the number of words that `measure` returns for an index; 0 keeps the word."""
    remaining: list[Word] = []
    index = 0
    while index < len(words):
        size = measure(index)
        if not size:
            remaining.append(words[index])
        index += size or 1
    return remaining


def _remove_phrases(words: list[Word], table: phrases.Phrases) -> list[Word]:
    """Removes some phrases, each with a comma or colon after it."""

    def measure(index: int) -> int:
        size = match_phrase(table, words, index)
        has_mark = size > 0 and any(word.plain in (",", ":") for word in words[index + size : index + size + 1])
        return size + has_mark

    return _remove_spans(words, measure) if any(word.plain in table for word in words) else words


def _simplify(words: list[Word]) -> list[Word]:
    """Returns an order, wish or ban in its plainest form: "I want tabs" as "use tabs", "must be set" as "be set"."""
    plain = [word.plain for word in words]
    if (size := match_phrase(_WISH, words, 0)) and not WORDS["no_wish"].issuperset(plain[size : size + 1]):
        return [_USE, *words[size:]]
    if (size := match_phrase(_USER, words, 0)) and WORDS["likes"].issuperset(plain[size : size + 1]):
        return words[size:]
    if size := match_phrase(_BAN, words, 0):
        return [_NEVER, *words[size:]]
    if "must" not in plain and "shall" not in plain:
        return words
    return [word for index, word in enumerate(words) if not _is_passive_order(plain[index : index + 3])]


def _is_passive_order(plain: Sequence[str]) -> bool:
    """Whether three words are an order in the passive: "must be set"."""
    modal, be, verb, *_ = (*plain, "", "")
    is_participle = verb in WORDS["participle"] or (verb.endswith("ed") and not verb.endswith("eed"))
    return modal in ("must", "shall") and be == "be" and is_participle


def _measure_reason_opening(words: Sequence[Word], index: int) -> int:
    """Returns the number of words that open a reason at `index` ("because", "since"); 0 if none do."""
    size = match_phrase(_REASON, words, index) if index else 0
    if not size or words[index - 1].plain in WORDS["just_because"]:
        return 0
    following = words[index + size : index + size + 2]
    is_date = words[index].plain == "since" and any(word.is_number or word.plain == "version" for word in following)
    return 0 if is_date else size


# --- parts


@cached(1024)
def split_parts(text: str) -> tuple[str, ...]:
    """Splits a statement into list items, sentences or joined clauses, each with the clauses that continue it.

    A heading, which ends with a colon, is left out.
    """
    sentences = (sentence for row in _PART_BOUNDARY.split(text) for sentence in prose.split_sentences(row))
    parts: list[str] = []
    for clause in (clause for sentence in sentences for clause in _split_at_and(sentence)):
        if clause.endswith(":") and not parts:
            continue
        if parts and (match_phrase(_CONTINUING, [*tokenize(clause), _FULL_STOP], 0) or not _has_content(clause)):
            parts[-1] = f"{parts[-1]} {clause}"
        elif clause.strip():
            parts.append(clause.strip())
    return tuple(filter(_has_content, parts))


def _split_at_and(sentence: str) -> Sequence[str]:
    """Splits a sentence at the first "and" that has a value on both sides; a reason extends to its end."""
    clauses = sentence.split(" and ")
    for index in range(1, len(clauses)):
        first, second = " and ".join(clauses[:index]), " and ".join(clauses[index:])
        if read_statement(first).reasons:
            break
        sides = first.removesuffix(","), second.removeprefix("also ")
        if all(find_slots(read_statement(side).words) for side in sides):
            return sides
    return [sentence]


def _has_content(part: str) -> bool:
    words = tokenize(part)
    return len(stems(words)) >= 2 or bool(find_slots(words))


def text_without(text: str, ended_parts: Sequence[str]) -> str:
    """Removes some of a statement's parts and keeps its heading; "" if nothing remains."""
    remaining = [part for part in split_parts(text) if part not in ended_parts]
    if not remaining:
        return ""
    first = _PART_BOUNDARY.split(text)[0].strip()
    heading = f"{first} " if first.endswith(":") and first not in remaining else ""
    joined = "".join(part + (" " if part.endswith((".", "!")) else "; ") for part in remaining[:-1])
    return heading + joined + remaining[-1]


def mentioned_parts(older: str, newer: str) -> tuple[str, ...]:
    """Returns the parts of the older statement that share a distinctive word with the newer; its only part in any case."""
    older_parts = split_parts(older)
    if len(older_parts) < 2:
        return older_parts
    part_stems = [stems(tokenize(part)) for part in older_parts]
    newer_stems = stems(tokenize(newer))
    distinctive = [words.difference(*(other for other in part_stems if other is not words)) for words in part_stems]
    return tuple(part for part, words in zip(older_parts, distinctive, strict=True) if words & newer_stems)


# --- values


class Slot(NamedTuple):
    """A value with its position: the verb before it ("" without a meaning of its own) and the kind of its preposition."""

    verb: str
    kind: str
    value: frozenset[str]


def find_slots(words: Sequence[Word]) -> list[Slot]:
    """Finds every value after a preposition, a copula or "use"; adverbs of time are values, too."""
    slots: list[Slot] = []
    for index, (plain, root, *_) in enumerate(words):
        verb = words[index - 1].stem if index else ""
        if plain in WORDS["when"]:
            slots.append(Slot(verb, "time", frozenset((root,))))
        kind = _VALUE_KINDS.get(plain, "")
        if plain == "use" or plain in COPULA:
            verb = ""
        elif plain == "every" and _is_of_each(words, index):
            kind = ""
        value = stems_until(words[index + 1 :], _VALUE_ENDS, limit=MAX_VALUE_WORDS) if kind else frozenset[str]()
        following = [word.plain in PREPOSITIONS or word.plain in WORDS["when"] for word in words[index + 1 : index + 3]]
        is_participle = kind == "is" and following == [False, True]  # "is kept for": the verb, not a value
        if value and not is_participle:
            slots.append(Slot(verb, kind, value))
    return slots


def _is_of_each(words: Sequence[Word], index: int) -> bool:
    """Whether an "every" begins a clause about each thing of a kind, and does not say how often something is done."""
    begins = not index or words[index - 1].plain in CLAUSE_ENDS
    after = words[index + 1 : index + 3]
    spans = WORDS["counts"] | WORDS["when"] | WORDS["span"]
    return begins and not any(word.plain in spans or word.stem in _UNITS or word.is_number for word in after)


def stems_until(
    words: Iterable[Word], ends: frozenset[str], *, limit: int = 99, excluded: frozenset[str] = frozenset()
) -> frozenset[str]:
    """Returns the first `limit` stems of the words before one of `ends`, without those of the `excluded` words."""
    clause = phrases.words_until(words, ends)
    return frozenset([word.stem for word in clause if word.stem and word.plain not in excluded][:limit])


def has_number(words: Iterable[str]) -> bool:
    """Whether a word begins with a digit."""
    return any(word[0].isdigit() for word in words)


def is_date_or_number(value: frozenset[str]) -> bool:
    """Whether a value is only a number, with a unit or a month."""
    return has_number(value) and all(word[0].isdigit() or word in _MONTHS or word in _UNITS for word in value)
