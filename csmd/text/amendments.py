"""Recognises a later statement that says otherwise about the subject of an earlier one; pure.

`similarity` compares a value in one slot of one subject. People change their mind in looser words: "uploads can be 40 MB
now" after "uploads must stay below 5 MB". A word of change, the subject, and a value of the same kind suffice here.
Every test asks for more of the subject than one common word, since a wrong end loses a statement. The words are the
classes below "An amendment" in data/similarity_words.txt.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import dropwhile, product, takewhile
from typing import NamedTuple

from csmd.cache import cached
from csmd.text import clauses
from csmd.text.clauses import COPULA, PREPOSITIONS
from csmd.text.phrases import (
    STOPS,
    WORDS,
    Word,
    load_phrases,
    match_phrase,
    root_of,
    roots_of_class,
    split_clauses,
    stems,
)

_CHANGE = load_phrases("amends")
_DROP_FORMS = WORDS["leave_form"] & (WORDS["leave"] | WORDS["remove"])
#: Words of every phrase of change, and of every clause in which a thing turns into another.
_CHANGE_WORDS = frozenset(part for phrase in WORDS["amends"] for part in re.split("[_/]", phrase))
_TURNING_WORDS = WORDS["becomes"] | WORDS["moving"] | _DROP_FORMS | frozenset(("gets", "get", "got", "moves", "goes"))
_SECOND_THOUGHT = load_phrases("second_thought")
_KINDS_OF_VALUES = frozenset(("means", "place", "form", "extent"))
#: How the kinds of units begin that many things are measured in.
_GENERAL = "unit_of_"
_UNIT_KINDS = {unit: name for name, units in WORDS.items() if name.startswith(_GENERAL) for unit in units}
_NUMBER_WORDS = dict(pair.split("/") for pair in WORDS["number_word"])
_MODALS = WORDS["modal"] | COPULA
_KEEPING_ROOTS = roots_of_class("keeping")
_EMPTY_ROOTS = frozenset(map(root_of, ("always", "never"))) | roots_of_class("amends_empty") | roots_of_class("bound")
_BREAKS = STOPS | frozenset("and but so because since while".split())
_SUPPOSING = frozenset("if when unless until before after once whether".split())
_PLACES = frozenset(word for word, way in PREPOSITIONS.items() if way in ("place", "extent", "source")) | {"of"}
_WE = frozenset("we i we're i'm let's lets let they they're".split())
_ARTICLES = frozenset("the our that this a an its their".split())
_POINTING = frozenset("it this that these those they you i he she them there".split())
_TOWARDS = frozenset(("to", "onto", "into"))
#: Words of a rule or of one of several things, which no change of place ends.
_BINDING = frozenset("must should never not only that which who".split())
#: Fewest stems of a thing with an article that is given up; one word may name many things.
MIN_THING_STEMS = 2


class _Quantity(NamedTuple):
    """A number with its unit in a clause: the kind of the unit, the number and the unit, and where they stand."""

    kind: str
    value: tuple[str, str]
    first: int
    last: int


@cached(4096)
def _read(text: str) -> tuple[tuple[Word, ...], ...]:
    """Reads a text as clauses without marks and conjunctions."""
    words = clauses.without_project_reference(clauses.without_fillers(text))
    parts: list[tuple[Word, ...]] = []
    opening: tuple[Word, ...] = ()
    for part in filter(None, split_clauses(words, _BREAKS)):
        bare = (*opening, *part[part[0].plain in _BREAKS :])
        # "Actually, ..." is part of the clause that it opens.
        is_opening = bool(bare) and match_phrase(_CHANGE, bare, 0) == len(bare)
        opening = bare if is_opening else ()
        if bare and not is_opening:
            parts.append(bare)
    return tuple(parts)


def amends(older: str, newer: str) -> bool:
    """Whether a later statement says otherwise about the subject of an earlier one."""
    if not _may_amend(newer):
        return False
    before, after = _read(older), _read(newer)
    tests = (_sets_other_number, _puts_other_value, _gives_up, _turns_into, _turns_with)
    return any(test(before, after) for test in tests)


def may_announce(words: Collection[str]) -> bool:
    """Whether a sentence of these words, in small letters, may announce a change; cheaper than `announces`."""
    sets_number = not (WORDS["allowing"].isdisjoint(words) or _CHANGE_WORDS.isdisjoint(words))
    return sets_number or not _TURNING_WORDS.isdisjoint(words)


def announces(text: str) -> bool:
    """Whether a statement says by itself that something is otherwise from now on, or becomes so."""
    parts = _read(text)
    if "?" in text or any(part[0].plain in _SUPPOSING for part in parts):
        return False
    follows_drop = any(_find_dropped(part)[0] for part in parts)
    return any(
        _allows_number(part)
        or _has_new_form(part, of_dropped=follows_drop)
        or _has_new_place(part, of_dropped=follows_drop)
        for part in parts
    )


def _allows_number(part: Sequence[Word]) -> bool:
    """Whether a clause allows or demands a number that it did not before: "uploads can be 40 MB now"."""
    is_named = part[0].plain not in _POINTING
    return (
        is_named
        and _find_quantity(part) is not None
        and _has_change_word(part)
        and any(word.plain in WORDS["allowing"] for word in part[1:])
    )


def _has_new_form(part: Sequence[Word], *, of_dropped: bool) -> bool:
    """Whether a clause says that a thing, named or just given up (`of_dropped`), becomes one of its own."""
    thing = _find_turn(part)
    is_clear = (bool(thing) and part[0].plain not in _POINTING) or of_dropped
    return thing is not None and is_clear and any(word.plain in ("own", "part") for word in part)


def _has_new_place(part: Sequence[Word], *, of_dropped: bool) -> bool:
    """Whether the speakers say that they are moving a thing to another, which has no article; a date is none.

    After a thing that is given up (`of_dropped`) an order to move says it, too.
    """
    to = next((index for index, word in enumerate(part) if word.plain in _TOWARDS), 0)
    is_order = of_dropped and part[0].plain in WORDS["move"] and to > 1
    move = (stems(part[1:to]), stems(part[to + 1 :])) if is_order else _find_move(part)
    is_bare = to + 1 < len(part) and part[to + 1].plain not in _ARTICLES | WORDS["when"]
    return move is not None and is_bare


@cached(2048)
def _may_amend(newer: str) -> bool:
    """Whether a statement holds anything by which it may amend another; a question and a supposition do not."""
    parts = _read(newer)
    if "?" in newer or any(part[0].plain in _SUPPOSING for part in parts):
        return False
    leads = [lead for part in parts for lead in ("with", "without") if _find_led(part, lead)[0]]
    return bool(leads) or any(
        _find_quantity(part)
        or _is_second_thought(part)
        or _find_dropped(part)[0]
        or _find_turn(part)
        or _find_move(part)
        for part in parts
    )


def _has_change_word(part: Sequence[Word]) -> bool:
    return any(match_phrase(_CHANGE, part, index) for index in range(len(part)))


# --- another number


def _find_quantity(part: Sequence[Word]) -> _Quantity | None:
    """Finds the only number of a clause that has a unit; None if there are none or several."""
    quantities: list[_Quantity] = []
    for index, word in enumerate(part):
        behind = part[index + 1] if index + 1 < len(part) else None
        if word.is_number and (kind := _UNIT_KINDS.get(word.plain.lstrip("0123456789.,"))):
            quantities.append(_Quantity(kind, (word.plain, ""), index, index))
        elif behind and word.plain in ("every", "each") and _UNIT_KINDS.get(behind.plain) == "unit_of_time":
            quantities.append(_Quantity("unit_of_time/", ("1", behind.root), index, index + 1))
        elif behind and (word.is_number or word.plain in _NUMBER_WORDS) and (kind := _find_kind(word, behind)):
            divisor = _find_divisor(part[index + 2 :])
            last = index + 1 + 2 * bool(divisor)
            quantities.append(
                _Quantity(f"{kind}/{divisor}", (_NUMBER_WORDS.get(word.plain, word.plain), behind.root), index, last)
            )
    return quantities[0] if len(quantities) == 1 else None


def _find_kind(number: Word, unit: Word) -> str:
    """Returns the kind of a unit; a noun without a kind is its own behind digits, and "a" counts only times."""
    kind = _UNIT_KINDS.get(unit.plain, "")
    if number.plain in ("a", "an"):
        return kind if kind == "unit_of_time" else ""
    return kind or (unit.stem if number.is_number and unit.plain.endswith("s") else "")


def _find_divisor(behind: Sequence[Word]) -> str:
    """Returns the stem of the unit by which another is divided: "minute" of "mails per minute"."""
    return behind[1].root if len(behind) > 1 and behind[0].plain in WORDS["per"] | {"a", "an"} else ""


def _sets_other_number(before: Sequence[Sequence[Word]], after: Sequence[Sequence[Word]]) -> bool:
    """Whether a clause gives the thing of an earlier one another number of the same kind."""
    all_before = stems(word for part in before for word in part)
    olds = [(part, quantity) for part in before if (quantity := _find_quantity(part))]
    for part in after:
        new = _find_quantity(part)
        if new is None:
            continue
        is_changed = _has_change_word(part)
        thing, predicate = _split_at_modal(part, new)
        for old_part, old in olds:
            if old.kind != new.kind or old.value == new.value or _is_measured(part) != _is_measured(old_part):
                continue
            old_stems = _rest(old_part, old)
            if not is_changed:
                if _rest(part, new) == old_stems != frozenset():
                    return True
                continue
            keeps = bool(predicate & _KEEPING_ROOTS)
            is_kept = keeps and any(word.root in _KEEPING_ROOTS for word in old_part)
            other = predicate - _KEEPING_ROOTS if is_kept else predicate
            names_subject = thing[-1] in old_stems if thing else bool(predicate) or not new.kind.startswith(_GENERAL)
            if names_subject and frozenset(thing) <= all_before and other <= old_stems:
                return True
    return False


def _is_measured(part: Sequence[Word]) -> bool:
    """Whether a clause says how long something took, which sets nothing."""
    return not WORDS["measured"].isdisjoint(word.plain for word in part)


def _split_at_modal(part: Sequence[Word], quantity: _Quantity) -> tuple[list[str], frozenset[str]]:
    """Returns the stems of the subject of a clause in order, and those of its predicate without the number."""
    index = next((index for index, word in enumerate(part) if word.plain in _MODALS or word.root in _KEEPING_ROOTS), 0)
    rest = _rest(part[index:], quantity._replace(first=quantity.first - index, last=quantity.last - index))
    return [word.stem for word in part[:index] if word.stem and word.stem not in _EMPTY_ROOTS], rest


def _rest(part: Sequence[Word], quantity: _Quantity) -> frozenset[str]:
    """Returns the stems of a clause without its number, its unit, and words that only say how it changes."""
    others = (*part[: max(0, quantity.first)], *part[quantity.last + 1 :])
    return stems(others) - _EMPTY_ROOTS


# --- another value


def _puts_other_value(before: Sequence[Sequence[Word]], after: Sequence[Sequence[Word]]) -> bool:
    """Whether a clause that is a second thought has another value in the slot of an earlier one, and nothing else."""
    for new in after:
        if not _is_second_thought(new):
            continue
        for old in before:
            for slot, other in product(clauses.find_slots(new), clauses.find_slots(old)):
                new_rest, old_rest = stems(new) - slot.value - _EMPTY_ROOTS, stems(old) - other.value - _EMPTY_ROOTS
                is_same_place = (
                    slot.kind == other.kind and slot.kind in _KINDS_OF_VALUES and not slot.value & other.value
                )
                if is_same_place and new_rest == old_rest and len(new_rest) >= MIN_THING_STEMS:
                    return True
    return False


def _is_second_thought(part: Sequence[Word]) -> bool:
    return any(match_phrase(_SECOND_THOUGHT, part, index) for index in range(len(part)))


# --- a thing that is given up


def _gives_up(before: Sequence[Sequence[Word]], after: Sequence[Sequence[Word]]) -> bool:
    """Whether a clause gives up a thing of an earlier statement, and another says what becomes of its subject."""
    stated = stems(word for part in before for word in part if not _denies(part))
    for index, part in enumerate(after):
        thing, rest = _find_dropped(part)
        if len(thing) < MIN_THING_STEMS or not thing <= stated or not rest <= stated:
            continue
        others = [other for number, other in enumerate(after) if number != index and other]
        if any(_goes_on(other, thing, stated) for other in others):
            return True
    return False


def _find_dropped(part: Sequence[Word]) -> tuple[frozenset[str], frozenset[str]]:
    """Returns the stems of the thing that a clause orders to give up, and those of its use or place."""
    words = list(dropwhile(lambda word: word.plain in _WE or word.plain in ("us", "please", "just", "now"), part))
    if not words or words[0].plain not in _DROP_FORMS:
        return frozenset(), frozenset()
    named = list(takewhile(lambda word: word.plain not in PREPOSITIONS and word.plain not in ("of", "now"), words[1:]))
    return stems(named), stems(words[1 + len(named) :])


def _goes_on(part: Sequence[Word], thing: frozenset[str], stated: frozenset[str]) -> bool:
    """Whether a clause says what takes the place of a thing: what it becomes, or something about the same subject."""
    plain = [word.plain for word in part]
    if not _SUPPOSING.isdisjoint(plain) or _denies(part):
        return False
    if _find_turn(part) is not None:
        return True
    own = stems(part)
    return len(own & (stated - thing)) > 0 and len(own - stated) > 0 and plain[0] not in WORDS["remove"]


def _denies(part: Sequence[Word]) -> bool:
    return any(word.plain in WORDS["negation"] or word.plain == "no" or word.plain.endswith("n't") for word in part)


# --- what a thing becomes


def _find_turn(part: Sequence[Word]) -> frozenset[str] | None:
    """Returns the stems of the thing that a clause says to become another, empty for a pronoun; None for no such clause."""
    plain = [word.plain for word in part]
    for index, word in enumerate(plain[1:], 1):
        is_own = word in ("gets", "get", "got") and plain[index + 2 : index + 3] == ["own"]
        becomes = word in WORDS["becomes"] and _names_thing(part[index + 1 :])
        is_to = plain[index + 1 : index + 2] != [] and plain[index + 1] in _TOWARDS
        moves = word in WORDS["moves"] and is_to and _names_thing(part[index + 2 :])
        if is_own or becomes or moves:
            return stems(part[:index])
    return None


def _names_thing(words: Sequence[Word]) -> bool:
    """Whether words name a thing, and do not only describe one."""
    first = words[0] if words else None
    return first is not None and (
        first.plain in _ARTICLES or first.plain == "part" or first.is_name or first.is_capital
    )


def _find_move(part: Sequence[Word]) -> tuple[frozenset[str], frozenset[str]] | None:
    """Returns the stems of the thing that "we are moving", and of where to."""
    plain = [word.plain for word in part]
    index = next((index for index, word in enumerate(plain) if word in WORDS["moving"]), -1)
    to = next((to for to, word in enumerate(plain) if to > index and word in ("to", "onto", "into")), 0)
    if index < 1 or plain[0] not in _WE or not to:
        return None
    if not {"from", "off"}.isdisjoint(plain):
        return None
    thing = stems(part[index + 1 : to])
    return (thing, stems(part[to + 1 :])) if thing else None


def _turns_into(before: Sequence[Sequence[Word]], after: Sequence[Sequence[Word]]) -> bool:
    """Whether a clause says that the subject of an earlier statement becomes or moves to something else."""
    for old in before:
        subject, value = _split_state(old)
        if not subject:
            continue
        for part in after:
            thing = _find_turn(part)
            if thing and thing <= subject and subject - thing <= stems(part):
                return True
            move = _find_move(part)
            if move and move[0] == subject and move[1] and not move[1] & value:
                return True
    return False


def _split_state(part: Sequence[Word]) -> tuple[frozenset[str], frozenset[str]]:
    """Returns the stems of the subject and of the value of a clause that says where, as what or with what a thing is."""
    plain = [word.plain for word in part]
    if not _BINDING.isdisjoint(plain) or not plain:
        return frozenset(), frozenset()
    if plain[0] in _WE:  # "we draw maps with Leaflet"
        way = next(
            (index for index, word in enumerate(plain) if index > 2 and PREPOSITIONS.get(word) in ("means", "place")), 0
        )
        return (stems(part[2:way]), stems(part[way + 1 :])) if way else (frozenset(), frozenset())
    index = next((index for index, word in enumerate(part) if word.plain in COPULA or word.root in _STATE_ROOTS), 0)
    if not index or not _PLACES.isdisjoint(plain[1:index]):
        return frozenset(), frozenset()
    predicate = part[index + 1 :]
    names_kind = part[index].plain in COPULA and plain[index + 1 : index + 2] in (["a"], ["an"], ["part"])
    is_passive = part[index].plain in COPULA and any(word in PREPOSITIONS for word in plain[index + 2 : index + 3])
    is_placed = any(word in PREPOSITIONS for word in plain[index + 1 : index + 2])
    if not (names_kind or is_passive or is_placed):
        return frozenset(), frozenset()
    return stems(part[:index]), stems(predicate)


_STATE_ROOTS = roots_of_class("holding")


# --- with and without


def _turns_with(before: Sequence[Sequence[Word]], after: Sequence[Sequence[Word]]) -> bool:
    """Whether one statement has "with" before the thing that the other has "without" before, and both say the same else."""
    for new in after:
        for old in before:
            for lead, other in (("with", "without"), ("without", "with")):
                new_thing, new_rest = _find_led(new, lead)
                old_thing, old_rest = _find_led(old, other)
                is_same_thing = (
                    bool(new_thing) and bool(old_thing) and (new_thing <= old_thing or old_thing <= new_thing)
                )
                if is_same_thing and _are_forms(new_rest, old_rest):
                    return True
    return False


def _are_forms(first: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two sets of stems are the same words, each perhaps in another form: "show", "shown"."""
    pairs = list(zip(sorted(first), sorted(other), strict=False))
    return len(first) == len(other) and all(left.startswith(right) or right.startswith(left) for left, right in pairs)


def _find_led(part: Sequence[Word], lead: str) -> tuple[frozenset[str], frozenset[str]]:
    index = next((index for index, word in enumerate(part) if word.plain == lead), -1)
    return (stems(part[index + 1 :]), stems(part[:index]) - _EMPTY_ROOTS) if index >= 0 else (frozenset(), frozenset())
