"""Parses changes of mind, in which a sentence gives up one thing for another; pure.

"Let's drop Redis, Valkey it is": one part of the sentence gives up a thing, which has no article, as names and
materials have none. Another part, or the words after a preposition, name its replacement. Neither alone is a switch.
The words are the classes below "A change of mind" in data/similarity_words.txt.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import dropwhile, pairwise, takewhile
from typing import Literal, NamedTuple

from csmd import data
from csmd.cache import cached
from csmd.text import clauses, phrases
from csmd.text.claims import parse
from csmd.text.clauses import COPULA, PREPOSITIONS, find_slots
from csmd.text.phrases import STOPS, WORDS, Word, roots_of_class, stems, words_until

_LEAVE_ROOTS = roots_of_class("leave")
_MOVE_ROOTS = roots_of_class("move")
_ENTER_ROOTS = roots_of_class("enter")
_LEAD_PHRASES = phrases.load_phrases("leads_to_left", "changes_mind")
_CHANGE_PHRASES = phrases.load_phrases("changes_mind")
_THING_ENDS = WORDS["left_ends"] | COPULA
_PREDICATES = COPULA | frozenset("go goes has have had got became becomes".split())
_IDLE_ROOTS = roots_of_class("left_ends") | roots_of_class("idle")
#: Marks and words between two parts of a sentence.
_BREAKS = STOPS | frozenset("and but so because since".split())
_PART_BREAK = Word(".", ".", "")
#: First words of parts that claim nothing.
_SUPPOSING_WORDS = frozenset("because since if when whenever once until unless before after while whether".split())
#: Articles and pronouns, which never precede a name or a material.
_PLAIN_ARTICLES = frozenset("the a an".split())
_POINTING_ARTICLES = frozenset(
    "this that these those it them they its their my your his her some any another one".split()
)
_ARTICLES = _PLAIN_ARTICLES | _POINTING_ARTICLES
_SENTENCE_WORDS = data.word_table("sentence_words.txt")
_TROUBLE, _AT_HAND, _ORDERS = (_SENTENCE_WORDS[name] for name in ("trouble.en", "thing.en", "order.en"))
#: Words of a part that says nothing certain: a doubt, a complaint, a wish to talk.
_NOT_SETTLED = _TROUBLE | _SENTENCE_WORDS["hedge.en"] | _SENTENCE_WORDS["talk.en"]
#: Only a sentence with one of these words, or one that ends in "n't", gives something up.
_TRIGGER_WORDS = frozenset("from off no not rather too than go goes has have had was were".split())
_TRIGGER_WORDS |= _LEAD_PHRASES.keys() | WORDS["leave_form"] | WORDS["left_state"]
_QUOTED = re.compile(r"[\"\u201c][^\"\u201d]+[\"\u201d]")
#: Most words of the thing that is given up.
MAX_THING_WORDS = 3
#: Most words of a part without a known verb that names another thing.
MAX_PART_WORDS = 5


#: The words of a part of a sentence.
_Part = Sequence[Word]


class Switch(NamedTuple):
    """A change of mind, in stems: the thing given up, its possible replacements, and all other things.

    The named uses and `places` limit the switch: "use Skia for the labels, not Cairo".
    """

    old: frozenset[str]
    new: frozenset[str]
    others: frozenset[str]
    places: frozenset[str]


class _Departure(NamedTuple):
    """The words given up, and those before and after them in their part of the sentence.

    `is_past`: the part only says how the thing was.
    """

    old: Sequence[Word]
    before: Sequence[Word]
    following: Sequence[Word]
    is_past: bool = False

    @property
    def lead(self) -> str:
        """Returns the word before the thing given up."""
        return self.before[-1].plain if self.before else ""


def changes_mind(text: str) -> bool:
    """Whether a sentence announces that its speaker changed their mind; the new choice follows it."""
    return _is_announced(clauses.read_statement(text).words)


def may_switch(words: Collection[str]) -> bool:
    """Whether a sentence of these words, in small letters, may be a switch; cheaper than `find_switch`."""
    return not _TRIGGER_WORDS.isdisjoint(words) or any(word.endswith("n't") for word in words)


@cached(2048)
def find_switch(text: str) -> Switch | None:
    """Finds the switch in a statement or an order; None if there is none, as in a question or a supposition."""
    if "?" in text or _QUOTED.search(text):  # quotation marks: one wording for another
        return None
    words = clauses.without_project_reference(clauses.without_fillers(text))
    if not may_switch([word.plain for word in words]):
        return None
    parts = [part for part in phrases.split_clauses(words, _BREAKS) if part]
    bare = [_without_break(part) for part in parts]
    for index, part in enumerate(bare):
        opener = parts[index][0].plain
        is_supposed = opener in _SUPPOSING_WORDS and len(part) + 1 >= len(parts[index])
        if not part or is_supposed or part[0].plain in _SUPPOSING_WORDS:
            continue
        others = [*bare[:index], *bare[index + 1 :]]
        antecedent = bare[0][:1] if index and bare[0] and bare[0][0].plain not in _ORDERS else ()
        for departure in _find_departures(part, follows_comma=opener == ",", antecedent=antecedent):
            old = stems(departure.old)
            if _is_announced(part):
                candidates = [other for other in others if _states(other) and old.isdisjoint(stems(other))]
            else:
                candidates = [*filter(None, [_find_entering(departure)]), *filter(_may_take_place, others)]
            if departure.is_past:
                candidates = list(filter(_states_present_choice, candidates))
            if candidates and 0 < len(old) <= MAX_THING_WORDS:
                return _build_switch(departure, others, candidates)
    return None


def _without_break(part: Sequence[Word]) -> Sequence[Word]:
    """Returns a part without its first mark or conjunction, and without "because of the price" before "we"."""
    rest = part[part[0].plain in _BREAKS :]
    if part[0].plain == "because" and rest and rest[0].plain == "of":
        return list(dropwhile(lambda word: word.plain not in ("we", "i"), rest))
    return rest


def _build_switch(departure: _Departure, others: Sequence[_Part], candidates: Sequence[_Part]) -> Switch:
    old, before = stems(departure.old), departure.before
    part_words = [*before, *departure.following]
    rest = [*part_words, *(word for other in others for word in (_PART_BREAK, *other))]
    slots = find_slots(rest)
    new = set(stems(word for word in rest if word.is_name or word.is_capital))
    new = new.union(*(slot.value for slot in slots if slot.kind in ("means", "is")))
    for part in candidates:
        thing = stems(words_until(part, WORDS["extent"]))
        if len(thing) < MAX_THING_WORDS:
            new |= thing
    uses = [slot.value for slot in slots if slot.kind == "extent"]
    places = set[str]().union(*uses, *(slot.value for slot in find_slots(part_words) if slot.kind == "place"))
    if departure.lead in ("from", "off"):  # "the labels from A to B"
        places |= stems(takewhile(lambda word: word.root not in _MOVE_ROOTS, reversed(before[:-1]))) - new
    if departure.lead in ("of", "than"):  # "the shop uses A instead of B"
        verbs = (index for index, word in enumerate(before) if word.root in _ENTER_ROOTS or word.plain in COPULA)
        subject = stems(before[: next(verbs, 0)])
        places |= subject
        new -= subject
    things = stems(word for word in rest if word.root not in _LEAVE_ROOTS | _MOVE_ROOTS | _ENTER_ROOTS)
    excluded = old | _IDLE_ROOTS
    return Switch(old, frozenset(new - excluded), things - new - excluded, frozenset(places - new - excluded))


def is_left(older: str, switch: Switch) -> bool:
    """Whether a switch gives up the value or the subject of an older statement, for the same use and place."""
    words = clauses.read_statement(older).words
    claims = parse(older)
    slots = [slot for slot in claims.slots if switch.old <= slot.value and len(slot.value) <= MAX_THING_WORDS]
    is_subject = stems(words[: len(switch.old)]) == switch.old
    if not switch.old <= claims.positive or not (slots or is_subject):
        return False
    things = claims.stems - switch.old - {slot.verb for slot in slots}
    # Both share one thing, and each names another: they are two things of a kind.
    is_other_thing = things & switch.others and things - switch.others - switch.new and switch.others - claims.stems
    return switch.places <= claims.stems and not is_other_thing


def holds_now(text: str) -> bool:
    """Whether a statement gives a thing a name or number as of now: "the proxy listens on 8081 now"."""
    words = [word for word in clauses.without_fillers(text) if word.plain not in STOPS]
    plain = [word.plain for word in words]
    if plain[-1:] not in (["now"], ["again"]) or plain[0] in _POINTING_ARTICLES | _SUPPOSING_WORDS | _ORDERS:
        return False
    if "?" in text or any(word == "not" or word.endswith("n't") or word in _SUPPOSING_WORDS for word in plain):
        return False
    names = [word for word in words if word.is_name or word.is_number] + [word for word in words[1:] if word.is_capital]
    return any(slot.value & stems(names) for slot in find_slots(words))


# --- the thing that is given up


def _find_departures(part: Sequence[Word], *, follows_comma: bool, antecedent: Sequence[Word]) -> Iterator[_Departure]:
    """Yields the things that a part of a sentence gives up; "it" is the antecedent."""
    plain = [word.plain for word in part]
    for index, word in enumerate(part):
        if not WORDS["negation"].isdisjoint(plain[:index]) or any(other.endswith("n't") for other in plain[:index]):
            return
        if _is_negation(word) and stems(part[:index]) and _is_over(plain[index:]) and _is_out_of_use(part[index + 1 :]):
            yield _Departure(part[:index], (), ())
        elif start := _find_thing_start(part, index, follows_comma=follows_comma):
            old = _read_thing(part, start, antecedent)
            if old:
                following = list(dropwhile(lambda word: word.plain not in _THING_ENDS, part[start:]))
                yield _Departure(old, part[:start], following)
        elif index and word.plain in _PREDICATES and (state := _classify_state(plain[index:])):
            if state == "gone" or plain[0] not in _ARTICLES:
                subject = [other for other in part[:index] if other.plain not in ("the", "our")]
                yield _Departure(subject, (), (), is_past=state == "past")
            return


def _find_thing_start(part: Sequence[Word], index: int, *, follows_comma: bool) -> int:
    """Returns the start of the thing given up by the word at `at`, 0 if there is none."""
    word = part[index]
    plain = [other.plain for other in part]
    rest = plain[index + 1 :]
    if size := phrases.match_phrase(_LEAD_PHRASES, part, index):
        return index + size
    is_ours = index > 0 and plain[index - 1].partition("'")[0] in ("we", "i")
    is_ordered = not stems(other for other in part[:index] if other.plain not in WORDS["aside"])
    if word.root in _LEAVE_ROOTS and is_ordered and {"from", "off"}.isdisjoint(rest):
        return index + 1 + (rest[:1] == ["about"])
    follows_move = any(other.root in _MOVE_ROOTS for other in part[:index])
    is_from = word.plain in ("from", "off") and follows_move and not _is_step(part)
    is_than = word.plain == "than" and "rather" in plain[:index]
    takes_place = word.plain in WORDS["takes_place_of"] and stems(part[:index])
    if is_from or is_than or takes_place or (is_ours and word.plain in WORDS["leave_by_us"]):
        return index + 1
    if word.plain == "no" and rest[:1] == ["longer"]:
        return _find_denied_start(part, index + 2)
    if word.plain == "no" and _is_over(rest):
        return index + 1
    is_contrast = word.plain == "not" and follows_comma and index == 0
    is_denied = _is_negation(word) and (_is_over(rest) or "want" in rest[:2])
    return _find_denied_start(part, index + 1) if is_contrast or is_denied else 0


def _read_thing(part: Sequence[Word], start: int, antecedent: Sequence[Word]) -> Sequence[Word]:
    """Returns the name or material that begins at `start`; () for a thing at hand, which has an article."""
    old = words_until(part[start:], _THING_ENDS)
    if len(old) > 2 and old[0].plain == "the" and old[-1].plain in WORDS["kind"]:  # "the tabs rule"
        old = old[1:-1]
    if old[1:] and old[-1].plain in ("one", "ones"):
        old = old[:-1]
    if [word.plain for word in old] in (["it"], ["them"]):
        return antecedent
    # "Uploads go to the disk instead of the bucket" is about all uploads; the same as an order is about those at hand.
    may_have_article = part[0].plain not in _ORDERS and part[start - 1].plain in ("of", "than")
    if not old or old[0].plain not in _ARTICLES:
        return old
    return old if old[0].plain in ("the", "our") and (may_have_article or _is_announced(part)) else ()


def _is_announced(part: Sequence[Word]) -> bool:
    """Whether a part only says that its speaker changed their mind: "I changed my mind about"."""
    return any(phrases.match_phrase(_CHANGE_PHRASES, part, index) for index in range(len(part)))


def _states(part: Sequence[Word]) -> bool:
    """Whether a part states something without a doubt or a complaint, and orders nothing."""
    if len(part) <= 2 or not stems(part) or part[0].plain in _ORDERS | _SUPPOSING_WORDS | _POINTING_ARTICLES:
        return False
    return _NOT_SETTLED.isdisjoint(word.plain for word in part)


def _is_step(part: Sequence[Word]) -> bool:
    """Whether a part orders to move one thing of the code at hand: "move the function from"."""
    return part[0].root in _MOVE_ROOTS and any(word.plain in _AT_HAND for word in part[1:])


def _find_denied_start(part: Sequence[Word], start: int) -> int:
    """Returns the start of a denied thing: the object of a weak verb, else the words after a preposition."""
    indexes = range(start, len(part))
    first = next((index for index in indexes if part[index].stem or part[index].plain in WORDS["weak"]), len(part))
    if first < len(part) and part[first].plain not in WORDS["weak"]:
        first = next((index for index in indexes if part[index].plain in PREPOSITIONS), first)
    thing = next((index for index in range(first, len(part)) if part[index].stem), len(part))
    return thing - 1 if part[thing - 1].plain in _ARTICLES else thing


def _is_negation(word: Word) -> bool:
    return word.plain == "not" or word.plain.endswith("n't")


def _is_over(plain: Sequence[str]) -> bool:
    """Whether the words after a negation imply a change: "anymore", "any longer"."""
    return "anymore" in plain or any(pair in (("any", "more"), ("any", "longer")) for pair in pairwise(plain))


def _is_out_of_use(predicate: Sequence[Word]) -> bool:
    """Whether a negated predicate is about the use, wish or presence of its subject."""
    words = [word.plain for word in predicate if word.stem or word.plain in WORDS["in_use"]]
    return not WORDS["in_use"].isdisjoint(words[:1])


def _classify_state(plain: Sequence[str]) -> Literal["", "gone", "past"]:
    """Classifies a predicate: its subject is gone, going or too much ("gone"), or only was in some way ("past")."""
    rest = [word for word in plain[1:] if word not in ("now", "all", "finally", "completely", "just", "simply")]
    if plain[0] in ("go", "goes"):
        return "gone" if rest in ([], ["out"]) else ""
    if plain[0] in ("has", "have", "had"):
        return "gone" if rest[:2] == ["to", "go"] else ""
    if rest and (rest[0] in WORDS["left_state"] or (rest[0] == "too" and len(rest) > 1)):
        return "gone"
    return "past" if plain[0] in ("was", "were") and rest else ""


# --- the replacement


def _find_entering(departure: _Departure) -> Sequence[Word]:
    """Returns the words that name the replacement in the same part; () if there are none."""
    before, following = departure.before, departure.following
    for index, word in enumerate(following):
        if word.plain in WORDS["into"] and stems(following[index + 1 :]):
            return following[index + 1 :]
    if departure.lead in WORDS["takes_place_of"]:
        return before[:-1]
    if departure.lead not in ("of", "than"):
        return ()
    if stems(before[:-2]):  # "B rather than A"
        return before[:-2]
    return following if find_slots(following) else ()  # "instead of A we use B"


def _may_take_place(part: Sequence[Word]) -> bool:
    """Whether another part of a sentence may name the replacement: it makes a claim."""
    if not part or part[0].plain in _SUPPOSING_WORDS or not _TROUBLE.isdisjoint(word.plain for word in part):
        return False
    first, count, slots = part[0].plain, len(stems(part)), find_slots(part)
    has_copula = any(word.plain in COPULA for word in part[1:])
    if first.partition("'")[0] in ("it", "they"):
        return any(slot.kind != "is" for slot in slots)
    if first in _ARTICLES and not (first in _PLAIN_ARTICLES and (has_copula or slots)):
        return False
    if first in _ORDERS - WORDS["enter"] and not has_copula:  # "show sums in euros" states it, "run the tests" does not
        return bool(slots) and part[1].plain not in _ARTICLES
    has_verb = has_copula or bool(slots) or any(word.root in _ENTER_ROOTS for word in part)
    return 0 < count <= MAX_PART_WORDS or (count > 0 and has_verb)


def _states_present_choice(part: Sequence[Word]) -> bool:
    """Whether a part states a present choice, and is not about the former one."""
    plain = [word.plain for word in part]
    is_former = plain[0] in _ARTICLES or any(word.partition("'")[0] in ("it", "they") for word in plain)
    roots = {word.root for word in part}
    is_now = not _ENTER_ROOTS.isdisjoint(roots) or not {"now", "back", "again", "instead"}.isdisjoint(plain)
    return not is_former and (is_now or ("to" in plain and not _MOVE_ROOTS.isdisjoint(roots)))
