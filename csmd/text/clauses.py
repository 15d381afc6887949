"""Reads a statement as words, phrases, parts and values; pure.

A reading leaves out fillers, lead-ins ("note that", "we decided to") and reasons: two statements with one reason need
not share a subject. Readings are cached, since a statement is compared with many others.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from csmd import data
from csmd.cache import cached
from csmd.text import prose, tokens
from csmd.text.tokens import STOP_WORDS, stem

WORDS = data.word_table("similarity_words.txt")
#: Verbs without a meaning of their own; in a slot they match any other verb.
WEAK = WORDS["weak"]
#: Preposition -> the kind of slot it opens.
WAYS = {word: way for way in ("means", "place", "source", "extent", "form", "time") for word in WORDS[way]}
COPULA = WORDS["copula"] | WORDS["was"]
#: Punctuation that ends a clause, and a sentence.
STOPS = frozenset(",;:.!?()\u2014")
SENTENCE_ENDS = frozenset(".;!?\u2014")
_CLAUSE_ENDS = STOPS | WORDS["break"]
#: What ends a value.
_VALUE_ENDS = (_CLAUSE_ENDS | COPULA | WAYS.keys()) - {"every"}
_SAME_AS = {word: name[1:] for name, words in WORDS.items() if name.startswith("=") for word in words}
_MONTHS = frozenset(stem(month.casefold()) for month in (*calendar.month_name[1:], *calendar.month_abbr[1:]))
_DASHES = frozenset(("-", "--", "\u2013", "\u2014"))
#: What is one token: code, a flag or a signed number, a path, a dotted name or version, a word, a mark.
_TOKEN = re.compile(
    r"`[^`\n]{1,80}`|(?<!\w)--?\w[\w-]*(?:\.\w+)*|[~.]?[\w-]*(?:[/.][\w-]+)+|[^\W_]+(?:[_'-][^\W_]+)*[+#%]*"
    r"|--|[^\w\s\"'`*\[\]{}\u201c\u201d\u2018]"
)
_CONTRACTED = ("n't", "'re", "'m", "'ve", "'ll")


class Word(NamedTuple):
    """A token in small letters (code with its opening mark), its stem, and that stem if it says something, else ""."""

    plain: str
    root: str
    stem: str
    is_name: bool = False
    is_capital: bool = False

    @property
    def is_number(self) -> bool:
        return self.root[:1].isdigit()


def stems(words: Iterable[Word]) -> frozenset[str]:
    """The stems of the words that say something."""
    return frozenset(word.stem for word in words if word.stem)


@cached(8192)
def _word(token: str) -> Word:
    if token in STOPS or token in _DASHES:
        mark = "\u2014" if token in _DASHES else token
        return Word(mark, mark, "")
    bare = token.lstrip("`")
    plain = bare.casefold()
    own = plain.removesuffix("'s")
    compared = root(own) if own.isalpha() and not tokens.turns_round(own) else own
    is_code = bare != token
    is_marked = any(char.isdigit() or char in "/._" for char in bare) or (token[0] == "-" and len(token) > 1)
    is_name = is_code or is_marked or bare[1:] != plain[1:]
    has_meaning = any(map(str.isalnum, compared)) and not plain.endswith(_CONTRACTED)
    if compared.isalpha() and not is_code:
        is_empty = plain in STOP_WORDS or tokens.turns_round(plain) or compared in _WEAK_STEMS or len(compared) < 2
        has_meaning = has_meaning and not is_empty
    meaning = compared if has_meaning else ""
    return Word(f"`{plain}" if is_code else plain, compared, meaning, is_name, bare[:1].isupper())


def root(word: str) -> str:
    """A word of a list as `Word.root` has it."""
    return stem(_SAME_AS.get(word, word))


def roots(word_class: str) -> frozenset[str]:
    return frozenset(map(root, WORDS[word_class]))


def opposites(word_class: str, form: Callable[[str], str]) -> dict[str, frozenset[str]]:
    """Maps each word of a class of pairs to its opposites, both in the same form."""
    pairs = [tuple(map(form, pair.split("/"))) for pair in WORDS[word_class]]
    both = [*pairs, *(pair[::-1] for pair in pairs)]
    return {word: frozenset(other for first, other in both if first == word) for word, _ in both}


_WEAK_STEMS, _UNITS = roots("weak"), roots("unit")


# --- phrases


class Step(NamedTuple):
    """A step of a phrase: the words that match it, or a hole (no words) and its name; optional steps may be missing."""

    words: frozenset[str]
    hole: str
    is_optional: bool


class Phrase(NamedTuple):
    word_class: str
    steps: Sequence[Step]


Phrases = Mapping[str, Sequence[Phrase]]
Holes = dict[str, Sequence["Word"]]


def phrases(*classes: str) -> Phrases:
    """The phrases of some classes by the words that they may begin with, a hole before them aside."""
    table: dict[str, list[Phrase]] = {}
    for word_class, written in ((name, row) for name in classes for row in sorted(WORDS[name])):
        steps = [_step(step) for step in written.split("_")]
        beginning = steps[1:] if steps[0].hole else steps
        for at, step in enumerate(beginning):
            if at == 0 or beginning[at - 1].is_optional:
                for word in step.words:
                    table.setdefault(word, []).append(Phrase(word_class, steps))
            else:
                break
    return table


def _step(written: str) -> Step:
    bare = written.rstrip("?")
    return Step(frozenset(() if bare.isupper() else bare.split("/")), bare if bare.isupper() else "", bare != written)


#: Most words of a hole within a phrase, so that the cost grows only with the length of the text.
MAX_HELD = 24


def _fit(steps: Sequence[Step], words: Sequence[Word], at: int) -> tuple[int, Holes] | None:
    """(The end of some steps, the words in their holes) from a place on; the last hole takes all words."""
    if not steps:
        return at, {}
    step, rest = steps[0], steps[1:]
    if step.hole:
        first = at + (not step.is_optional)
        ends = (
            range(first, min(at + MAX_HELD, len(words)) + 1) if rest else range(max(first, len(words)), len(words) + 1)
        )
        for end in ends:
            if (fitted := _fit(rest, words, end)) is not None:
                return fitted[0], {step.hole: words[at:end], **fitted[1]}
        return None
    if at < len(words) and words[at].plain in step.words and (fitted := _fit(rest, words, at + 1)) is not None:
        return fitted
    return _fit(rest, words, at) if step.is_optional else None


def match(table: Phrases, words: Sequence[Word], at: int) -> int:
    """How many words the longest of some phrases takes from a place on; 0 for none."""
    fits = [_fit(phrase.steps, words, at) for phrase in table.get(words[at].plain, ())]
    return max((end for end, _ in filter(None, fits)), default=at) - at


class PhraseMatch(NamedTuple):
    """A phrase in a clause: its class, the words in its holes, and the words around it.

    `around` is the clause, with the one before it if the phrase opens it; `sentence` goes on to the end of the clause.
    """

    word_class: str
    holes: Holes
    around: Sequence[Word]
    sentence: Sequence[Word]


def find(table: Phrases, words: Sequence[Word]) -> Iterator[PhraseMatch]:
    """The phrases in each clause of some words."""
    for sentence in split(words, SENTENCE_ENDS):
        before: Sequence[Word] = ()
        end = 0
        for clause in split(sentence):
            end += len(clause)
            for at, word in enumerate(clause):
                for phrase in table.get(word.plain, ()):
                    if (holes := _holes(phrase.steps, clause, at)) is not None:
                        around = [*before, *clause] if at < 2 else clause
                        yield PhraseMatch(phrase.word_class, holes, around, sentence[:end])
            before = clause


def _holes(steps: Sequence[Step], clause: Sequence[Word], at: int) -> Holes | None:
    """The words in the holes of a phrase whose first word is at a place of a clause; None if it does not match."""
    if not steps[0].hole:
        return fit[1] if (fit := _fit(steps, clause, at)) is not None else None
    fit = _fit(steps[1:], clause, at) if at else None
    return {steps[0].hole: clause[:at], **fit[1]} if fit is not None else None


def split(words: Sequence[Word], ends: frozenset[str] = STOPS) -> Iterator[Sequence[Word]]:
    """The clauses (or, by other ends, sentences) of some words, each with the mark before it."""
    starts = [0, *(at for at, word in enumerate(words) if word.plain in ends and at), len(words)]
    return (words[start:end] for start, end in pairwise(starts))


_FILLER, _LEAD, _WISH, _USER = map(phrases, ("filler", "lead", "wish", "user"))
_BAN, _HERE, _REASON = map(phrases, ("ban", "here_phrase", "reason"))
_CONTINUING = phrases("continuing")
_EMPTY = WORDS["empty"] | STOPS


# --- reading


class Reading(NamedTuple):
    """A text as words, without fillers, a lead-in and its reasons; `reasons` are those, as stems."""

    words: tuple[Word, ...]
    reasons: frozenset[tuple[str, ...]]
    asks: bool


def words_of(text: str) -> list[Word]:
    """Every word and mark of a text, in order."""
    words: list[Word] = []
    for token in _TOKEN.findall(text.replace("\u2019", "'").replace("()", "")):
        if token[0] == "`" and len(token) > 2:
            words += (_word(f"`{part}") for part in token.strip("`").split() if part)
        else:
            words.append(_word(token))
    return words


def without_fillers(text: str) -> list[Word]:
    """Every word and mark of a text, in order, but for its fillers."""
    return _without(words_of(text), _FILLER)


def without_here(words: list[Word]) -> list[Word]:
    """The words without those that say that something holds in the project at hand."""
    return _without(words, _HERE)


@cached(4096)
def read(text: str) -> Reading:
    """Reads a text; the words of the same text are the same objects."""
    words = without_fillers(text)
    while words and (size := match(_LEAD, words, 0) or words[0].plain in STOPS):
        words = words[size:]
    words = without_here(_simplify(words)) if words else []
    kept: list[Word] = []
    reasons: set[tuple[str, ...]] = set()
    at = 0
    while at < len(words):
        if words[at].plain in _REASON and (size := _opens_reason(words, at)):
            end = next((place for place in range(at, len(words)) if words[place].plain in SENTENCE_ENDS), len(words))
            why = [word for word in words[at + size : end] if word.plain not in _EMPTY]
            if WORDS["no_reason"].isdisjoint(word.plain for word in why):
                reasons.add(tuple(word.root for word in why))
                at = end
                continue
        kept.append(words[at])
        at += 1
    return Reading(tuple(kept), frozenset(reasons), text.rstrip(" \"'`)\u201d\u2019").endswith("?"))


def _without(words: list[Word], left_out: Phrases) -> list[Word]:
    """The words without some phrases and without the comma or colon after each."""
    if not any(word.plain in left_out for word in words):
        return words
    kept: list[Word] = []
    at = 0
    while at < len(words):
        if size := match(left_out, words, at):
            at += size
            at += at < len(words) and words[at].plain in (",", ":")
        else:
            kept.append(words[at])
            at += 1
    return kept


def _simplify(words: list[Word]) -> list[Word]:
    """An order, a wish or a ban in its plainest form: "I want tabs" as "use tabs", "must be set" as "be set"."""
    plain = [word.plain for word in words]
    if (size := match(_WISH, words, 0)) and not WORDS["no_wish"].issuperset(plain[size : size + 1]):
        return [_word("use"), *words[size:]]
    if (size := match(_USER, words, 0)) and WORDS["likes"].issuperset(plain[size : size + 1]):
        return words[size:]
    if size := match(_BAN, words, 0):
        return [_word("never"), *words[size:]]
    if "must" not in plain and "shall" not in plain:
        return words
    return [word for at, word in enumerate(words) if not _is_ordered(plain[at : at + 3])]


def _is_ordered(plain: Sequence[str]) -> bool:
    """Whether three words begin an order in the passive: "must be set"."""
    is_order = plain[0] in ("must", "shall") and plain[1:2] == ["be"] and len(plain) == 3
    return is_order and (plain[2] in WORDS["participle"] or (plain[2].endswith("ed") and not plain[2].endswith("eed")))


def _opens_reason(words: Sequence[Word], at: int) -> int:
    """How many words open a reason at a place that may; 0 for none."""
    size = match(_REASON, words, at) if at else 0
    if not size or words[at - 1].plain in WORDS["just_because"]:
        return 0
    behind = words[at + size : at + size + 2]
    is_date = words[at].plain == "since" and any(word.is_number or word.plain == "version" for word in behind)
    return 0 if is_date else size


# --- several things in one statement

#: Where one part ends and another begins: rows of a list, numbers that count off, a full stop before a small letter.
_CUTS = re.compile(r"; |\n+|(?:^|(?<=[\s:;,.]))\(?\d{1,2}[.)] |(?<=\w{3}[.!]) +(?=[a-z])")


@cached(1024)
def parts(text: str) -> tuple[str, ...]:
    """Splits a statement into list items, sentences or joined clauses, each with the clauses that continue it.

    A heading, which ends with a colon, is left out.
    """
    split_parts: list[str] = []
    for part in (
        part for row in _CUTS.split(text) for sentence in prose.split_sentences(row) for part in _joined(sentence)
    ):
        if part.endswith(":") and not split_parts:
            continue
        if split_parts and (match(_CONTINUING, [*words_of(part), _word(".")], 0) or not _says_something(part)):
            split_parts[-1] = f"{split_parts[-1]} {part}"
        elif part.strip():
            split_parts.append(part.strip())
    return tuple(filter(_says_something, split_parts))


def _joined(sentence: str) -> Sequence[str]:
    """Splits a sentence at the first "and" that has a value on both sides; a reason goes on to its end."""
    clauses = sentence.split(" and ")
    for at in range(1, len(clauses)):
        if read(" and ".join(clauses[:at])).reasons:
            break
        sides = " and ".join(clauses[:at]).removesuffix(","), " and ".join(clauses[at:]).removeprefix("also ")
        if all(slots(read(side).words) for side in sides):
            return sides
    return [sentence]


def _says_something(part: str) -> bool:
    words = words_of(part)
    return len(stems(words)) >= 2 or bool(slots(words))


def text_without(text: str, ended: Sequence[str]) -> str:
    """Removes some of a statement's `parts` and keeps its heading; "" if nothing is left."""
    left = [part for part in parts(text) if part not in ended]
    if not left:
        return ""
    first = _CUTS.split(text)[0].strip()
    heading = f"{first} " if first.endswith(":") and first not in left else ""
    return heading + "".join(part + (" " if part.endswith((".", "!")) else "; ") for part in left[:-1]) + left[-1]


def mentioned_parts(older: str, newer: str) -> tuple[str, ...]:
    """The parts of the older statement that share a word of their own with the newer; its only part in any case."""
    every = parts(older)
    if len(every) < 2:
        return every
    of_parts, others = [stems(words_of(part)) for part in every], stems(words_of(newer))
    own = [words.difference(*(other for other in of_parts if other is not words)) for words in of_parts]
    return tuple(part for part, words in zip(every, own, strict=True) if words & others)


# --- values


class Slot(NamedTuple):
    """A value in its place: the verb before it ("" for one that says nothing), the kind of preposition, its stems."""

    verb: str
    way: str
    value: frozenset[str]


def slots(words: Sequence[Word]) -> list[Slot]:
    """Every value after a preposition, a copula or "use", with the verb before it; adverbs of time are values too."""
    values: list[Slot] = []
    for at, (plain, word, *_) in enumerate(words):
        if plain in WORDS["when"]:
            values.append(Slot(_verb(words, at), "time", frozenset((word,))))
        way = "means" if plain == "use" else "is" if plain in COPULA else WAYS.get(plain, "")
        if plain == "every" and _is_of_each(words, at):
            way = ""
        value = stems_until(words[at + 1 :], _VALUE_ENDS, most=4) if way else frozenset[str]()
        behind = [word.plain in WAYS or word.plain in WORDS["when"] for word in words[at + 1 : at + 3]]
        is_participle = way == "is" and behind == [False, True]  # "is kept for": the verb, not a value
        if value and not is_participle:
            verb = "" if way == "is" or plain == "use" else _verb(words, at)
            values.append(Slot(verb, way, value))
    return values


def _is_of_each(words: Sequence[Word], at: int) -> bool:
    """Whether "every" at a position begins a clause about each thing of a kind, and says not how often something is done."""
    begins = not at or words[at - 1].plain in _CLAUSE_ENDS
    after = words[at + 1 : at + 3]
    spans = WORDS["counts"] | WORDS["when"] | WORDS["span"]
    return begins and not any(word.plain in spans or word.stem in _UNITS or word.is_number for word in after)


def _verb(words: Sequence[Word], at: int) -> str:
    """The stem of the word before a preposition; "" for a weak one, or none."""
    return words[at - 1].stem if at else ""


def stems_until(
    words: Iterable[Word], ends: frozenset[str], *, most: int = 99, leaving: frozenset[str] = frozenset()
) -> frozenset[str]:
    """The stems of at most `most` words before one of `ends`, those of `leaving` left out."""
    values: list[str] = []
    for word in words:
        if word.plain in ends or len(values) >= most:
            break
        if word.stem and word.plain not in leaving:
            values.append(word.stem)
    return frozenset(values)


def has_number(words: Iterable[str]) -> bool:
    return any(word[0].isdigit() for word in words)


def is_date_or_number(value: frozenset[str]) -> bool:
    return has_number(value) and all(word[0].isdigit() or word in _MONTHS or word in _UNITS for word in value)
