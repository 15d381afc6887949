"""Parses the claims of a statement: its affirmations, denials, replacements, changes and renames; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from csmd.cache import cached
from csmd.text import clauses, phrases, tokens
from csmd.text.clauses import CLAUSE_ENDS, COPULA, MAX_VALUE_WORDS, PREPOSITIONS, Slot, stems_until
from csmd.text.phrases import STOPS, WORDS, PhraseMatch, Word, stems, words_until
from csmd.text.tokens import STOP_WORDS

_CLASSES = ("instead", "prefer", "gone", "unused", "changed", "called")
_PHRASES = phrases.load_phrases(*_CLASSES)
_REPLACING_ROOTS = phrases.roots_of_class("replacing")
TURNING_OPPOSITES = phrases.find_opposites("turned", str)
#: A statement without one of these words opposes nothing.
_OPPOSING_WORDS = WORDS["against"]
#: Most words of a thing that a statement opposes.
MAX_OPPOSED_WORDS = 5
#: A statement without one of these words contains no rename.
_RENAMING = ("renam", "now")
_RENAMED = phrases.load_phrases("renamed")
MIN_NAME_CHARACTERS = 3


class Denial(NamedTuple):
    """A thing that a statement opposes, and the rest of its clause, both as stems.

    `is_qualified`: a clause after it limits it to a kind or a time.
    """

    what: frozenset[str]
    context: frozenset[str]
    is_qualified: bool = False


class Change(NamedTuple):
    """A thing and its present value, both as stems; `is_common`: the value is a common noun and not a name.

    `unused` are things that the statement calls no longer used.
    """

    thing: frozenset[str]
    value: frozenset[str]
    is_common: bool
    unused: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """The claims of a statement; all sets are of stems."""

    stems: frozenset[str]
    names: frozenset[str]
    """Identifiers, paths, flags, numbers and proper names."""
    main: frozenset[str]
    """The first sentence, up to a dependent clause: a condition, an example."""
    positive: frozenset[str]
    """All stems that it does not oppose anywhere."""
    denied: tuple[Denial, ...]
    instead: tuple[Denial, ...]
    gone: tuple[frozenset[str], ...]
    """Things that are removed, or no longer used for any purpose."""
    prefers: tuple[tuple[frozenset[str], frozenset[str]], ...]
    """(the preferred thing, the other one)."""
    changes: tuple[Change, ...]
    slots: tuple[Slot, ...]
    renames: tuple[tuple[str, str], ...]
    named: frozenset[str]
    """Names that it gives to things."""
    topic: frozenset[str]
    """The words before its first copula."""
    turns: frozenset[str]
    """Small words that have an opposite: on, off, before, after."""
    adds: bool
    """Whether it adds a thing to others, and so replaces none."""
    asks: bool


@cached(2048)
def parse(text: str) -> Claims:
    """Parses the claims of a statement."""
    words, _, asks = clauses.read_statement(text)
    matches: dict[str, list[PhraseMatch]] = {word_class: [] for word_class in _CLASSES}
    for phrase in phrases.find_phrases(_PHRASES, words):
        matches[phrase.word_class].append(phrase)
    instead = tuple(chain.from_iterable(map(_find_replaced, matches["instead"])))
    gone = (*_find_removed(words), *chain.from_iterable(map(_find_gone, matches["gone"])))
    against = _union(*(claim.what for claim in (*_find_denials(words, asides=True), *instead)))
    unused = stems(phrase.gaps["OLD"][0] for phrase in matches["unused"])
    copula = next((index for index, word in enumerate(words) if word.plain in COPULA), 0)
    plain = frozenset(word.plain for word in words)
    all_stems = stems(words)
    return Claims(
        stems=all_stems,
        names=stems(word for index, word in enumerate(words) if word.is_name or (index and word.is_capital)),
        main=_find_main_stems(words) or all_stems,
        positive=all_stems - against,
        denied=tuple(_find_denials(words)),
        instead=instead,
        gone=() if asks else tuple(filter(None, gone)),
        prefers=() if asks else tuple(chain.from_iterable(map(_find_preferences, matches["prefer"]))),
        changes=tuple(change for phrase in matches["changed"] for change in _find_changes(phrase, unused)),
        slots=tuple(clauses.find_slots(words)),
        renames=find_renames(text),
        named=frozenset(choose_name(phrase.gaps["NAME"][:1]) for phrase in matches["called"]),
        topic=stems(words[:copula]),
        turns=plain & TURNING_OPPOSITES.keys(),
        adds=not plain.isdisjoint(WORDS["adds"]),
        asks=asks,
    )


def _union(*sets: frozenset[str]) -> frozenset[str]:
    return frozenset[str]().union(*sets)


def find_ended(text: str) -> list[frozenset[str]]:
    """Finds the things that a statement opposes in all cases: no longer used, replaced, liked less."""
    if _OPPOSING_WORDS.isdisjoint(tokens.words_of(text.replace("\u2019", "'"))):  # parsing is expensive
        return []
    statement = parse(text)
    return [*(claim.what for claim in statement.instead), *statement.gone, *(less for _, less in statement.prefers)]


def find_denied_stems(text: str) -> frozenset[str]:
    """Finds all stems that a statement opposes: "pnpm, not npm" opposes npm."""
    statement = parse(text)
    return _union(*(claim.what for claim in (*statement.denied, *statement.instead)), *statement.gone)


def _find_main_stems(words: Sequence[Word]) -> frozenset[str]:
    main_stems: set[str] = set()
    for word in words:
        if len(main_stems) >= 2 and (word.plain in (";", "(", ":", ".", "!") or word.plain in WORDS["depend"]):
            break
        main_stems |= {word.stem} - {""}
    return frozenset(main_stems)


def _stems_before(words: Sequence[Word], index: int) -> frozenset[str]:
    """Returns the stems of the same clause before a word."""
    return stems_until(reversed(words[:index]), STOPS, excluded=WORDS["aside"])


def _is_aside(words: Sequence[Word], index: int) -> bool:
    """Whether a word is in a dependent or counterfactual clause, which makes no claim."""
    clause = words_until(reversed(words[:index]), STOPS)
    return words[0].plain in WORDS["counterfactual"] or any(word.plain in WORDS["depend"] for word in clause)


def _is_restricted(words: Iterable[Word]) -> bool:
    """Whether some words limit a statement to certain things or times."""
    return not WORDS["restrict"].isdisjoint(word.plain for word in words)


def _find_denials(words: Sequence[Word], *, asides: bool = False) -> Iterator[Denial]:
    """Yields the words after each negation in its clause, with the words before it.

    `asides` includes those of dependent clauses.
    """
    for index, (plain, *_) in enumerate(words):
        no_longer = plain == "no" and [word.plain for word in words[index + 1 : index + 2]] == ["longer"]
        if not (plain in WORDS["negation"] or plain.endswith("n't") or no_longer):
            continue
        if not asides and index and words[index - 1].plain == ",":
            continue  # "this, not that": `_find_replaced`
        what = stems_until(words[index + 1 :], CLAUSE_ENDS, limit=MAX_OPPOSED_WORDS, excluded=WORDS["aside"])
        if what and (asides or not _is_aside(words, index)):
            yield Denial(what, _stems_before(words, index), _is_restricted(words_until(words[index + 1 :], STOPS)))


def _find_replaced(phrase: PhraseMatch) -> Iterator[Denial]:
    """Yields the replaced thing of a phrase, with the rest of its clause and of the clause before."""
    what = stems(phrase.gaps["OLD"])
    if what and phrase.gaps["OLD"][0].plain not in WORDS["not_instead"]:
        yield Denial(what, stems(phrase.around) - what - _REPLACING_ROOTS)


def _find_preferences(phrase: PhraseMatch) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    pair = stems(phrase.gaps["NEW"]), stems_until(phrase.gaps["OLD"], WORDS["now"])
    if all(pair):
        yield pair


def _find_removed(words: Sequence[Word]) -> Iterator[frozenset[str]]:
    """Yields the things that a statement orders to remove, or removes ("we drop")."""
    for index, word in enumerate(words):
        if word.plain in WORDS["remove"] and not _stems_before(words, index) and not _is_aside(words, index):
            yield stems_until(words[index + 1 :], CLAUSE_ENDS, limit=MAX_OPPOSED_WORDS, excluded=WORDS["aside"])


def _find_gone(phrase: PhraseMatch) -> Iterator[frozenset[str]]:
    """Yields the things that a phrase calls removed or unused, without a condition."""
    subject = list(phrase.gaps["OLD"])
    following = phrase.gaps.get("MORE")
    if following is not None:
        joint = max((index for index, word in enumerate(subject) if word.plain in STOPS | {"and", "but"}), default=-1)
        subject = subject[joint + 1 :]
    is_out_of_use = following is None or (len(subject) <= 3 and [word.plain for word in following[:1]] != ["from"])
    if is_out_of_use and not _is_restricted(phrase.sentence):
        yield stems_until(subject, WORDS["until"])


def _find_changes(phrase: PhraseMatch, unused: frozenset[str]) -> Iterator[Change]:
    """Yields the change of a phrase; its NUMBER has to contain a number, its NAME has to be a name."""
    thing, number, name = (phrase.gaps.get(gap, ()) for gap in ("THING", "NUMBER", "NAME"))
    value = phrase.gaps.get("VALUE") or number or name
    is_named = any(word.is_name or word.is_capital for word in value)
    if number:
        fits = any(word.is_number for word in number)
    else:
        fits = not name or (is_named and name[0].plain not in PREPOSITIONS)
    others = (word.plain for word in phrase.sentence if word not in value)
    if fits and stems(thing) and stems(value) and WORDS["undone"].isdisjoint(others):
        is_common = not is_named and value[0].plain in WORDS["common"]
        yield Change(stems(thing), stems_until(value, frozenset(), limit=MAX_VALUE_WORDS), is_common, unused)


# --- renames


@cached(1024)  # the same fifty memories are read for every statement
def find_renames(text: str) -> tuple[tuple[str, str], ...]:
    """Finds the (old, new) names that a statement says were changed, in small letters."""
    if not any(word in text.casefold() for word in _RENAMING):
        return ()
    renames: dict[tuple[str, str], None] = {}
    for phrase in phrases.find_phrases(_RENAMED, phrases.tokenize(text)):
        code = phrase.gaps.get("CODE", ())
        last_words = [words[-1] for words in (phrase.gaps["OLD"], code[:1]) if words]
        if "CODE" in phrase.gaps and any(word.plain[0] != "`" for word in last_words):
            continue
        old, new = choose_name(phrase.gaps["OLD"]), choose_name(phrase.gaps.get("NEW", code)[:1])
        if old != new and min(len(old), len(new)) >= MIN_NAME_CHARACTERS and old not in STOP_WORDS:
            renames[old, new] = None
    return tuple(renames)


def choose_name(words: Sequence[Word]) -> str:
    """Returns the last of some words that is a name, else the last content word, else ""."""
    names = [word for word in words if word.is_name] or [word for word in words if word.stem]
    return names[-1].plain.lstrip("`") if names else ""


def follow_renames(statements: Sequence[str]) -> dict[str, str]:
    """Maps old names to present ones, from statements in order of time; chains are followed."""
    present: dict[str, str] = {}
    for statement in statements:
        for old, new in find_renames(statement):
            present.pop(new, None)  # a name that is used again is not an old one
            present = {earlier: new if name == old else name for earlier, name in present.items()}
            present[old] = new
    return {old: new for old, new in present.items() if old != new}


def mentions_name(text: str, name: str) -> bool:
    """Whether a text mentions a name as a whole word."""
    return name in text.casefold() and bool(_name_pattern(name).search(text))


def apply_renames(text: str, renames: Mapping[str, str]) -> str:
    """Replaces each old name in a text by its new one."""
    for old in [old for old in renames if old in text.casefold()]:
        text = _name_pattern(old).sub(lambda _, new=renames[old]: new, text)  # type: ignore[misc]
    return text


@cached(512)
def _name_pattern(name: str) -> re.Pattern[str]:
    """Returns the pattern of a name on its own, not as a part of a longer one."""
    return re.compile(rf"(?<![\w/.-]){re.escape(name)}(?![\w/-]|\.\w)", re.IGNORECASE)
