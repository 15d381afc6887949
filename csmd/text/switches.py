"""Reads a change of mind in a sentence: what it leaves, and that something takes its place; pure.

"Let's drop Redis, Valkey it is": one part of the sentence leaves something, which stands there without an article as names
and materials do; another part, or what follows a preposition, says what comes instead. Neither alone is a switch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from csmd import data
from csmd.cache import cached
from csmd.text import clauses
from csmd.text.claims import parse
from csmd.text.clauses import COPULA, STOPS, WORDS, Word, roots, stems

_LEAVE, _MOVE, _ENTER = roots("leave"), roots("move"), roots("enter")
_ENDS, _LEFT_STATES, _INTO = WORDS["left_ends"] | COPULA, WORDS["left_state"], WORDS["into"]
_BREAKS = STOPS | frozenset("and but so because since".split())
#: What says of no thing that it is left.
_IDLE = roots("left_ends") | frozenset(map(clauses.root, ("longer", "more", "mind", "place", "rather")))
#: What opens a part in which nothing is stated.
_SUPPOSED = frozenset("because since if when whenever once until unless before after while whether".split())
#: What stands before one thing among others, at hand or named before: no name and no material.
_ARTICLES = frozenset("the a an this that these those it them they its their my your his her some any another one".split())
_SENTENCE_WORDS = data.word_table("sentence_words.txt")
_ORDERS, _AT_HAND = _SENTENCE_WORDS["order.en"] - WORDS["enter"], _SENTENCE_WORDS["thing.en"]
#: Without one of these words nothing is left, or it ends in "n't".
_TRIGGERS = frozenset("from off away no not never instead rather mind too go goes has".split()) | WORDS["leave_form"] | _LEFT_STATES
_QUOTED = re.compile(r"[\"\u201c][^\"\u201d]+[\"\u201d]")
#: What is left, and what comes instead where nothing else is said of it, is a name or a few words.
MOST_NAMED = 3


class Switch(NamedTuple):
    """What a sentence leaves, what comes instead as far as it is known, what else it names, and for what or where: stems."""

    old: frozenset[str]
    new: frozenset[str]
    beside: frozenset[str]
    places: frozenset[str]


class _Left(NamedTuple):
    """What is left, and the other words of its part of the sentence: before it and behind it."""

    old: Sequence[Word]
    before: Sequence[Word]
    behind: Sequence[Word]


@cached(2048)
def find_switch(text: str) -> Switch | None:
    """What a statement or an order leaves for something else; None where it does not, or asks or supposes so."""
    words = clauses.without_here(clauses.without_fillers(text))
    plain = [word.plain for word in words]
    if (_TRIGGERS.isdisjoint(plain) and not any(one.endswith("n't") for one in plain)) or "?" in plain:
        return None
    if _QUOTED.search(text):
        return None  # one wording for another
    parts = [part for part in clauses.split(words, _BREAKS) if part]
    for at, part in enumerate(parts):
        own = part[part[0].plain in _BREAKS :]
        if not own or part[0].plain in _SUPPOSED or own[0].plain in _SUPPOSED:
            continue
        others = [other[other[0].plain in _BREAKS :] for place, other in enumerate(parts) if place != at]
        for left in _find_left(own, opener=part[0].plain):
            old = stems(left.old)
            if not 0 < len(old) <= MOST_NAMED:
                continue
            comes = [*filter(None, [_comes_in(left)]), *(other for other in others if _takes_place(other))]
            if comes:
                return _switch(old, left, others, comes)
    return None


def _switch(old: frozenset[str], left: _Left, others: Sequence[Sequence[Word]], comes: Sequence[Sequence[Word]]) -> Switch:
    rest = [*left.before, *left.behind, *(word for other in others for word in other)]
    slots = clauses.slots(rest)
    new = stems(word for word in rest if word.is_name or word.is_capital)
    new |= frozenset[str]().union(*(slot.value for slot in slots if slot.way in ("means", "is")))
    plainly = [list(takewhile(lambda word: word.plain not in WORDS["extent"], some)) for some in comes]
    new |= frozenset[str]().union(*(stems(some) for some in plainly if len(stems(some)) < MOST_NAMED))
    places = frozenset[str]().union(*(slot.value for slot in slots if slot.way in ("place", "extent")))
    beside = stems(word for word in rest if word.root not in _LEAVE | _MOVE | _ENTER)
    return Switch(old, new - old - _IDLE, beside - old - new - _IDLE, places - old - new - _IDLE)


def is_left(older: str, switch: Switch) -> bool:
    """Whether an older statement is for what a switch leaves: of the same thing, as far as the switch says of which."""
    words, claims = clauses.read(older).words, parse(older)
    said, slots = claims.stems, claims.slots
    is_value = any(switch.old <= slot.value and len(slot.value) <= MOST_NAMED for slot in slots)
    if not switch.old <= claims.positive or not (is_value or stems(words[: len(switch.old)]) == switch.old):
        return False
    own = said - switch.old
    is_beside = bool(own & switch.beside and own - switch.beside - switch.new and switch.beside - own)
    return switch.places <= said and not is_beside


def _find_left(part: Sequence[Word], *, opener: str) -> Iterator[_Left]:
    """What a part of a sentence leaves."""
    plain = [word.plain for word in part]

    def taken(start: int) -> Iterator[_Left]:
        old = list(takewhile(lambda word: word.plain not in _ENDS, part[start:]))
        behind = part[start + len(old) :]
        if len(old) > 2 and old[0].plain == "the" and old[-1].plain in WORDS["kind"]:  # "the tabs rule"
            old = old[1:-1]
        if old and old[0].plain not in _ARTICLES:
            yield _Left(old, part[:start], behind)

    for at, word in enumerate(part):
        behind = plain[at + 1 : at + 4]
        is_denied = not WORDS["negation"].isdisjoint(plain[:at]) or any(one.endswith("n't") for one in plain[:at])
        if word.root in _LEAVE and not stems(part[:at]) and not is_denied:
            yield from taken(at + 1 + (behind[:1] == ["about"]))
        elif word.plain in ("from", "off") and any(other.root in _MOVE for other in part[:at]) and not _is_step(part[:at]):
            yield from taken(at + 1)
        elif word.plain in ("instead", "rather", "place") and behind[:1] in (["of"], ["than"]):
            yield from taken(at + 2)
        elif word.plain == "no" and behind[:1] == ["more"]:
            yield from taken(at + 2)
        elif word.plain == "no" and behind[:1] == ["longer"]:
            yield from taken(_denied_at(part, at + 2))
        elif word.plain == "mind" and behind[:1] in (["about"], ["on"]):
            yield from taken(at + 2)
        elif word.plain in ("stop", "stopped", "quit") and behind[:1] in (["using"], ["with"]):
            yield from taken(at + 2)
        elif word.plain in ("done", "through") and behind[:1] == ["with"] and not is_denied:
            yield from taken(at + 2)
        elif word.plain in ("rid", "up") and behind[:1] in (["of"], ["on"]) and at and part[at - 1].root in ("get", "give", "got", "gave"):
            yield from taken(at + 2)
        elif (word.plain == "not" or word.plain.endswith("n't")) and (opener == "," and at == 0 or _is_over(plain[at:]) or "want" in behind[:2]):
            yield from taken(_denied_at(part, at + 1))
        elif at and word.plain in COPULA | {"go", "goes", "has"} and not is_denied and _is_left_state(plain[at:]):
            old = [other for other in part[:at] if other.plain not in ("the", "our")]
            yield _Left(old, (), ())
            return


def _is_step(before: Sequence[Word]) -> bool:
    """Whether what is moved is one thing of the code at hand: "move the function from"."""
    return before[0].root in _MOVE and any(word.plain in _AT_HAND for word in before[1:])


def _denied_at(part: Sequence[Word], start: int) -> int:
    """Where it stands what is denied from a place on: the object of a verb that says little, else what a preposition leads to."""
    places = range(start, len(part))
    first = next((at for at in places if part[at].stem or part[at].plain in WORDS["weak"]), len(part))
    if part[first : first + 1] and not part[first].plain in WORDS["weak"]:
        first = next((at for at in places if part[at].plain in clauses.WAYS), first)
    return next((at for at in range(first, len(part)) if part[at].stem), len(part))


def _is_over(plain: Sequence[str]) -> bool:
    """Whether a negation says that something is so no more."""
    return "anymore" in plain or any(
        pair in (("any", "more"), ("any", "longer")) for pair in zip(plain, plain[1:], strict=False)
    )


def _is_left_state(plain: Sequence[str]) -> bool:
    """Whether a predicate says that its subject is gone, goes, or is too much of something."""
    said = [word for word in plain[1:] if word not in ("now", "all", "finally", "completely", "just", "all", "simply")]
    if plain[0] in ("go", "goes"):
        return not said
    if plain[0] == "has":
        return said[:2] == ["to", "go"]
    return bool(said) and (said[0] in _LEFT_STATES or (said[0] == "too" and len(said) > 1))


def _comes_in(left: _Left) -> Sequence[Word]:
    """The words behind a preposition with which something comes in the place of what is left, or beside "instead of"; () for none."""
    for at, word in enumerate(left.behind):
        if word.plain in _INTO and stems(left.behind[at + 1 :]):
            return left.behind[at + 1 :]
    last = [word.plain for word in left.before[-2:]]
    return left.before[:-2] if last in (["instead", "of"], ["rather", "than"], ["place", "of"]) and stems(left.before) else ()


def _takes_place(part: Sequence[Word]) -> bool:
    """Whether another part of the sentence says what is so instead, and orders nothing else."""
    named = stems(part)
    is_said_of = any(word.plain in COPULA for word in part[1:])
    if not named or part[0].plain in _SUPPOSED | _ARTICLES or (part[0].plain in _ORDERS and not is_said_of):
        return False
    return len(named) <= MOST_NAMED or is_said_of or any(word.root in _ENTER for word in part)
