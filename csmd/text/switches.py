"""Reads a change of mind in a sentence: what it leaves, and that something takes its place; pure.

"Let's drop Redis, Valkey it is": one part of the sentence leaves something, which stands there without an article as names
and materials do; another part, or what follows a preposition, says what comes instead. Neither alone is a switch.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import takewhile
from typing import Literal, NamedTuple

from csmd import data
from csmd.cache import cached
from csmd.text import clauses
from csmd.text.claims import parse
from csmd.text.clauses import COPULA, STOPS, WORDS, Word, roots, stems

_LEAVE, _MOVE, _ENTER = roots("leave"), roots("move"), roots("enter")
_LEADS = clauses.phrases("leads_to_left")
_PREDICATES = COPULA | frozenset("go goes has have had got became becomes".split())
_ENDS, _LEFT_STATES, _INTO = WORDS["left_ends"] | COPULA, WORDS["left_state"], WORDS["into"]
_BREAKS = STOPS | frozenset("and but so because since".split())
#: A mark between the parts of a sentence.
_END = Word(".", ".", "")
#: What says of no thing that it is left.
_IDLE = roots("left_ends") | frozenset(
    map(clauses.root, ("longer", "more", "mind", "place", "rather", "shall", "away"))
)
#: What opens a part in which nothing is stated.
_SUPPOSED = frozenset("because since if when whenever once until unless before after while whether".split())
#: What stands before one thing among others, at hand or named before: no name and no material.
_ARTICLES = frozenset(
    "the a an this that these those it them they its their my your his her some any another one".split()
)
_DEFINITE = frozenset("the a an".split())
_SENTENCE_WORDS = data.word_table("sentence_words.txt")
_TROUBLE = _SENTENCE_WORDS["trouble.en"]
_ORDERS, _AT_HAND = _SENTENCE_WORDS["order.en"] - WORDS["enter"], _SENTENCE_WORDS["thing.en"]
#: Without one of these words nothing is left, or it ends in "n't".
_TRIGGERS = (
    frozenset("from off no not instead rather too than go goes has have had was were".split())
    | _LEADS.keys()
    | WORDS["leave_form"]
    | _LEFT_STATES
)
_QUOTED = re.compile(r"[\"\u201c][^\"\u201d]+[\"\u201d]")
#: What is left, and what comes instead where nothing else is said of it, is a name or a few words.
MOST_NAMED = 3


#: What is said of it in a part without a verb that is known has so many words at most.
MOST_SAID = 5


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
    is_past: bool = False
    """Whether it is only said how it was."""


def may_switch(words: Collection[str]) -> bool:
    """Whether some words, in small letters, could be those of a switch: reading them as one costs ten times as much."""
    return not _TRIGGERS.isdisjoint(words) or any(word.endswith("n't") for word in words)


@cached(2048)
def find_switch(text: str) -> Switch | None:
    """What a statement or an order leaves for something else; None where it does not, or asks or supposes so."""
    if "?" in text or _QUOTED.search(text):  # a question, or one wording for another
        return None
    words = clauses.without_here(clauses.without_fillers(text))
    if not may_switch([word.plain for word in words]):
        return None
    parts = [part for part in clauses.split(words, _BREAKS) if part]
    for at, part in enumerate(parts):
        own = part[part[0].plain in _BREAKS :]
        if part[0].plain == "because" and own and own[0].plain == "of":  # its reason stands before who does it
            own = part = own[next((place for place, word in enumerate(own) if word.plain in ("we", "i")), len(own)) :]
        if not own or part[0].plain in _SUPPOSED or own[0].plain in _SUPPOSED:
            continue
        others = [other[other[0].plain in _BREAKS :] for place, other in enumerate(parts) if place != at]
        for left in _find_left(own, opener=part[0].plain, subject=_subject(parts[0]) if at else ()):
            old = stems(left.old)
            if not 0 < len(old) <= MOST_NAMED:
                continue
            comes = [*filter(None, [_comes_in(left)]), *filter(_takes_place, others)]
            if left.is_past:
                comes = [some for some in comes if _is_so_now(some)]
            if comes:
                return _switch(old, left, others, comes)
    return None


def _switch(
    old: frozenset[str], left: _Left, others: Sequence[Sequence[Word]], comes: Sequence[Sequence[Word]]
) -> Switch:
    rest = [*left.before, *left.behind, *(word for other in others for word in (_END, *other))]
    slots = clauses.slots(rest)
    new = stems(word for word in rest if word.is_name or word.is_capital)
    new |= frozenset[str]().union(*(slot.value for slot in slots if slot.way in ("means", "is")))
    plainly = [list(takewhile(lambda word: word.plain not in WORDS["extent"], some)) for some in comes]
    new |= frozenset[str]().union(*(stems(some) for some in plainly if len(stems(some)) < MOST_NAMED))
    of_part = clauses.slots([*left.before, *left.behind])
    places = frozenset[str]().union(
        *(slot.value for slot in slots if slot.way == "extent"),
        *(slot.value for slot in of_part if slot.way == "place"),
    )
    if left.before and left.before[-1].plain in ("from", "off"):  # "the jobs from A to B"
        places |= stems(takewhile(lambda word: word.root not in _MOVE, reversed(left.before[:-1]))) - new
    if left.before and left.before[-1].plain in ("of", "than"):  # "the shop uses A instead of B"
        verb = next((at for at, word in enumerate(left.before) if word.root in _ENTER or word.plain in COPULA), 0)
        places |= stems(left.before[:verb])
    beside = stems(word for word in rest if word.root not in _LEAVE | _MOVE | _ENTER)
    return Switch(old, new - old - _IDLE, beside - old - new - _IDLE, places - old - new - _IDLE)


def holds_now(text: str) -> bool:
    """Whether a statement says by name or number what something is, has or does now: "the proxy listens on 8081 now"."""
    words = [word for word in clauses.without_fillers(text) if word.plain not in STOPS]
    plain = [word.plain for word in words]
    if plain[-1:] not in (["now"], ["again"]) or plain[0] in _ARTICLES - {"the", "a", "an"} | _SUPPOSED | _ORDERS:
        return False
    if "?" in text or any(one == "not" or one.endswith("n't") or one in _SUPPOSED for one in plain):
        return False
    named = stems(word for at, word in enumerate(words) if word.is_name or word.is_number or (at and word.is_capital))
    return any(slot.value & named for slot in clauses.slots(words))


def is_left(older: str, switch: Switch) -> bool:
    """Whether an older statement is for what a switch leaves: of the same thing, as far as the switch says of which."""
    words, claims = clauses.read(older).words, parse(older)
    said, slots = claims.stems, claims.slots
    is_value = any(switch.old <= slot.value and len(slot.value) <= MOST_NAMED for slot in slots)
    if not switch.old <= claims.positive or not (is_value or stems(words[: len(switch.old)]) == switch.old):
        return False
    own = said - switch.old - {slot.verb for slot in slots if switch.old <= slot.value}
    is_beside = bool(own & switch.beside and own - switch.beside - switch.new and switch.beside - said)
    return switch.places <= said and not is_beside


def _subject(part: Sequence[Word]) -> Sequence[Word]:
    """The name or material with which a part of a sentence begins."""
    return part[:1] if part[0].stem and part[0].plain not in _ORDERS else ()


def _find_left(part: Sequence[Word], *, opener: str, subject: Sequence[Word]) -> Iterator[_Left]:
    """What a part of a sentence leaves; `subject` is what it may call "it"."""
    plain = [word.plain for word in part]

    def taken(start: int) -> Iterator[_Left]:
        old = list(takewhile(lambda word: word.plain not in _ENDS, part[start:]))
        behind = part[start + len(old) :]
        if len(old) > 2 and old[0].plain == "the" and old[-1].plain in WORDS["kind"]:  # "the tabs rule"
            old = old[1:-1]
        if old[1:] and old[-1].plain in ("one", "ones"):
            old = old[:-1]
        if [word.plain for word in old] in (["it"], ["them"]):
            old = list(subject)
        is_said = part[0].plain not in _SENTENCE_WORDS["order.en"] and part[start - 1].plain in (
            "of",
            "than",
        )  # no order for the moment
        if old and (old[0].plain not in _ARTICLES or (is_said and old[0].plain == "the")):
            yield _Left(old, part[:start], behind)

    for at, word in enumerate(part):
        is_denied = not WORDS["negation"].isdisjoint(plain[:at]) or any(one.endswith("n't") for one in plain[:at])
        denies = word.plain == "not" or word.plain.endswith("n't")
        if is_denied:
            continue
        if size := clauses.match(_LEADS, part, at):
            yield from taken(at + size)
        elif (
            word.plain in WORDS["leave_by_us"] and plain[at - 1 : at] and plain[at - 1].partition("'")[0] in ("we", "i")
        ):
            yield from taken(at + 1)
        elif (
            word.root in _LEAVE
            and not stems(other for other in part[:at] if other.plain not in WORDS["aside"])
            and {"from", "off"}.isdisjoint(plain[at:])
        ):
            yield from taken(at + 1 + (plain[at + 1 : at + 2] == ["about"]))
        elif (
            (
                word.plain in ("from", "off")
                and any(other.root in _MOVE for other in part[:at])
                and not _is_step(part[:at])
            )
            or (word.plain == "than" and "rather" in plain[:at])
            or (word.plain in WORDS["takes_place_of"] and stems(part[:at]))
        ):
            yield from taken(at + 1)
        elif word.plain == "no" and plain[at + 1 : at + 2] == ["longer"]:
            yield from taken(_denied_at(part, at + 2))
        elif word.plain == "no" and _is_over(plain[at:]):
            yield from taken(at + 1)
        elif denies and stems(part[:at]) and _is_over(plain[at:]) and _is_unused(part[at + 1 :]):
            yield _Left(part[:at], (), ())
        elif (denies and (_is_over(plain[at:]) or "want" in plain[at + 1 : at + 3])) or (
            word.plain == "not" and opener == "," and at == 0
        ):
            yield from taken(_denied_at(part, at + 1))
        elif at and word.plain in _PREDICATES and (state := _left_state(plain[at:])):
            old = [other for other in part[:at] if other.plain not in ("the", "our")]
            if state == "gone" or part[0].plain not in _ARTICLES:
                yield _Left(old, (), (), is_past=state == "past")
            return


def _is_step(before: Sequence[Word]) -> bool:
    """Whether what is moved is one thing of the code at hand: "move the function from"."""
    return before[0].root in _MOVE and any(word.plain in _AT_HAND for word in before[1:])


def _denied_at(part: Sequence[Word], start: int) -> int:
    """Where it stands what is denied from a place on: the object of a verb that says little, else what a preposition leads to."""
    places = range(start, len(part))
    first = next((at for at in places if part[at].stem or part[at].plain in WORDS["weak"]), len(part))
    if part[first : first + 1] and part[first].plain not in WORDS["weak"]:
        first = next((at for at in places if part[at].plain in clauses.WAYS), first)
    named = next((at for at in range(first, len(part)) if part[at].stem), len(part))
    return named - (part[named - 1].plain in _ARTICLES)


def _is_unused(predicate: Sequence[Word]) -> bool:
    """Whether what is denied of a subject is that it is used, wanted or there."""
    said = [word.plain for word in predicate if word.stem or word.plain in WORDS["in_use"]]
    return said[:1] != [] and said[0] in WORDS["in_use"]


def _is_over(plain: Sequence[str]) -> bool:
    """Whether a negation says that something is so no more."""
    return "anymore" in plain or any(pair in (("any", "more"), ("any", "longer")) for pair in itertools.pairwise(plain))


def _left_state(plain: Sequence[str]) -> Literal["", "gone", "past"]:
    """Whether a predicate says that its subject is gone, goes or is too much of something, or only how it was."""
    said = [word for word in plain[1:] if word not in ("now", "all", "finally", "completely", "just", "simply")]
    if plain[0] in ("go", "goes"):
        return "gone" if said in ([], ["out"]) else ""
    if plain[0] in ("has", "have", "had"):
        return "gone" if said[:2] == ["to", "go"] else ""
    if said and (said[0] in _LEFT_STATES or (said[0] == "too" and len(said) > 1)):
        return "gone"
    return "past" if plain[0] in ("was", "were") and said else ""


def _comes_in(left: _Left) -> Sequence[Word]:
    """The words behind a preposition with which something comes in the place of what is left, or beside "instead of"; () for none."""
    for at, word in enumerate(left.behind):
        if word.plain in _INTO and stems(left.behind[at + 1 :]):
            return left.behind[at + 1 :]
    if left.before and left.before[-1].plain in WORDS["takes_place_of"]:
        return left.before[:-1]
    leads = [word.plain for word in left.before[-2:]]
    if leads[-1:] in (["of"], ["than"]):  # "instead of A we use B", "B rather than A"
        return left.before[:-2] if stems(left.before[:-2]) else left.behind if clauses.slots(left.behind) else ()
    return ()


def _takes_place(part: Sequence[Word]) -> bool:
    """Whether another part of the sentence says what is so instead, and orders nothing else."""
    named = stems(part)
    is_said_of = any(word.plain in COPULA for word in part[1:])
    if not named or not _TROUBLE.isdisjoint(word.plain for word in part) or part[0].plain in _SUPPOSED:
        return False
    is_of_it = part[0].plain.partition("'")[0] in ("it", "they")
    if is_of_it and not any(slot.way != "is" for slot in clauses.slots(part)):
        return False
    if part[0].plain in _ARTICLES - _DEFINITE and not is_of_it:
        return False
    is_at_hand = part[1:2] == [] or part[1].plain in _ARTICLES or not clauses.slots(part)
    if part[0].plain in _ORDERS and not is_said_of and is_at_hand:
        return False
    if part[0].plain in _DEFINITE and not (is_said_of or clauses.slots(part)):
        return False
    if len(named) <= MOST_NAMED or is_said_of:
        return True
    says_how = any(word.root in _ENTER for word in part) or clauses.slots(part)
    return bool(says_how) or len(named) <= MOST_SAID


def _is_so_now(part: Sequence[Word]) -> bool:
    """Whether a part says what is so in the place of something that was, and nothing more of that itself."""
    plain = [word.plain for word in part]
    is_of_it = not _ARTICLES.isdisjoint(plain[:1]) or any(word.partition("'")[0] in ("it", "they") for word in plain)
    return not is_of_it and any(
        word.plain in ("now", "back", "again", "instead") or word.root in _ENTER | _MOVE for word in part
    )
