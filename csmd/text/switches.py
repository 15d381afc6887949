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
from csmd.text import clauses
from csmd.text.claims import parse
from csmd.text.clauses import COPULA, STOPS, WORDS, Word, roots, stems

_LEAVE_ROOTS = roots("leave")
_MOVE_ROOTS = roots("move")
_ENTER_ROOTS = roots("enter")
_LEAD_PHRASES = clauses.phrases("leads_to_left", "changes_mind")
_CHANGE_PHRASES = clauses.phrases("changes_mind")
_THING_ENDS = WORDS["left_ends"] | COPULA
_PREDICATES = COPULA | frozenset("go goes has have had got became becomes".split())
_IDLE_ROOTS = roots("left_ends") | roots("idle")
_BREAKS = STOPS | frozenset("and but so because since".split())
#: The mark between two parts of a sentence.
_PART_BREAK = Word(".", ".", "")
#: First words of parts that claim nothing.
_SUPPOSING_WORDS = frozenset("because since if when whenever once until unless before after while whether".split())
#: Articles and pronouns, which never precede a name or a material.
_PLAIN_ARTICLES = frozenset("the a an".split())
_ARTICLES = _PLAIN_ARTICLES | frozenset(
    "this that these those it them they its their my your his her some any another one".split()
)
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
    behind: Sequence[Word]
    is_past: bool = False


def changes_mind(text: str) -> bool:
    """Whether a sentence announces that its speaker thinks otherwise about something: what holds comes after it."""
    return _is_announced(clauses.read(text).words)


def may_switch(words: Collection[str]) -> bool:
    """Whether a sentence of these words, in small letters, may be a switch; cheaper than `find_switch`."""
    return not _TRIGGER_WORDS.isdisjoint(words) or any(word.endswith("n't") for word in words)


@cached(2048)
def find_switch(text: str) -> Switch | None:
    """Finds the switch in a statement or an order; None if there is none, as in a question or a supposition."""
    if "?" in text or _QUOTED.search(text):  # quotation marks: one wording for another
        return None
    words = clauses.without_here(clauses.without_fillers(text))
    if not may_switch([word.plain for word in words]):
        return None
    parts = [part for part in clauses.split(words, _BREAKS) if part]
    bare = [_without_break(part) for part in parts]
    for at, part in enumerate(bare):
        opener = parts[at][0].plain
        is_supposed = opener in _SUPPOSING_WORDS and len(part) + 1 >= len(parts[at])
        if not part or is_supposed or part[0].plain in _SUPPOSING_WORDS:
            continue
        others = [other for number, other in enumerate(bare) if number != at]
        antecedent = bare[0][:1] if at and bare[0] and bare[0][0].plain not in _ORDERS else ()
        is_announced = _is_announced(part)
        for left in _find_departures(part, follows_comma=opener == ",", antecedent=antecedent):
            entering = [*filter(None, [_find_entering(left)]), *filter(_may_take_place, others)]
            if is_announced:
                old = stems(left.old)
                entering = [other for other in others if _states(other) and old.isdisjoint(stems(other))]
            if left.is_past:
                entering = [other for other in entering if _holds_instead(other)]
            if entering and 0 < len(stems(left.old)) <= MAX_THING_WORDS:
                return _build_switch(left, others, entering)
    return None


def _without_break(part: Sequence[Word]) -> Sequence[Word]:
    """Returns a part without its first mark or conjunction, and without "because of the price" before "we"."""
    rest = part[part[0].plain in _BREAKS :]
    if part[0].plain == "because" and rest and rest[0].plain == "of":
        return rest[next((at for at, word in enumerate(rest) if word.plain in ("we", "i")), len(rest)) :]
    return rest


def _build_switch(left: _Departure, others: Sequence[Sequence[Word]], entering: Sequence[Sequence[Word]]) -> Switch:
    old, part_words = stems(left.old), [*left.before, *left.behind]
    rest = [*part_words, *(word for other in others for word in (_PART_BREAK, *other))]
    slots = clauses.slots(rest)
    new = set(stems(word for word in rest if word.is_name or word.is_capital))
    new = new.union(*(slot.value for slot in slots if slot.way in ("means", "is")))
    for part in entering:
        named = stems(takewhile(lambda word: word.plain not in WORDS["extent"], part))
        new |= named if len(named) < MAX_THING_WORDS else set()
    uses = [slot.value for slot in slots if slot.way == "extent"]
    places = set[str]().union(*uses, *(slot.value for slot in clauses.slots(part_words) if slot.way == "place"))
    lead = left.before[-1].plain if left.before else ""
    if lead in ("from", "off"):  # "the labels from A to B"
        places |= stems(takewhile(lambda word: word.root not in _MOVE_ROOTS, reversed(left.before[:-1]))) - new
    if lead in ("of", "than"):  # "the shop uses A instead of B"
        verb = next((at for at, word in enumerate(left.before) if word.root in _ENTER_ROOTS or word.plain in COPULA), 0)
        places |= stems(left.before[:verb])
        new -= stems(left.before[:verb])
    named = stems(word for word in rest if word.root not in _LEAVE_ROOTS | _MOVE_ROOTS | _ENTER_ROOTS)
    named = named - old - new - _IDLE_ROOTS
    return Switch(old, frozenset(new - old - _IDLE_ROOTS), named, frozenset(places - old - new - _IDLE_ROOTS))


def is_left(older: str, switch: Switch) -> bool:
    """Whether a switch gives up the value or the subject of an older statement, for the same use and place."""
    words, claims = clauses.read(older).words, parse(older)
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
    if plain[-1:] not in (["now"], ["again"]) or plain[0] in (_ARTICLES - _PLAIN_ARTICLES) | _SUPPOSING_WORDS | _ORDERS:
        return False
    if "?" in text or any(word == "not" or word.endswith("n't") or word in _SUPPOSING_WORDS for word in plain):
        return False
    named = stems(word for at, word in enumerate(words) if word.is_name or word.is_number or (at and word.is_capital))
    return any(slot.value & named for slot in clauses.slots(words))


# --- the thing that is given up


def _find_departures(part: Sequence[Word], *, follows_comma: bool, antecedent: Sequence[Word]) -> Iterator[_Departure]:
    """Yields the things that a part of a sentence gives up; "it" is the antecedent."""
    plain = [word.plain for word in part]
    for at, word in enumerate(part):
        if not WORDS["negation"].isdisjoint(plain[:at]) or any(other.endswith("n't") for other in plain[:at]):
            return
        if _is_negation(word) and stems(part[:at]) and _is_over(plain[at:]) and _is_out_of_use(part[at + 1 :]):
            yield _Departure(part[:at], (), ())
        elif start := _find_thing_start(part, at, follows_comma=follows_comma):
            old = _read_thing(part, start, antecedent)
            if old:
                rest = list(dropwhile(lambda word: word.plain not in _THING_ENDS, part[start:]))
                yield _Departure(old, part[:start], rest)
        elif at and word.plain in _PREDICATES and (state := _classify_state(plain[at:])):
            if state == "gone" or plain[0] not in _ARTICLES:
                subject = [other for other in part[:at] if other.plain not in ("the", "our")]
                yield _Departure(subject, (), (), is_past=state == "past")
            return


def _find_thing_start(part: Sequence[Word], at: int, *, follows_comma: bool) -> int:
    """Returns the start of the thing given up by the word at `at`, 0 if there is none."""
    plain, word = [other.plain for other in part], part[at]
    rest = plain[at + 1 :]
    if size := clauses.match(_LEAD_PHRASES, part, at):
        return at + size
    is_ours = at > 0 and plain[at - 1].partition("'")[0] in ("we", "i")
    is_ordered = not stems(other for other in part[:at] if other.plain not in WORDS["aside"])
    if word.root in _LEAVE_ROOTS and is_ordered and {"from", "off"}.isdisjoint(rest):
        return at + 1 + (rest[:1] == ["about"])
    follows_move = any(other.root in _MOVE_ROOTS for other in part[:at])
    is_from = word.plain in ("from", "off") and follows_move and not _is_step(part)
    is_than = word.plain == "than" and "rather" in plain[:at]
    takes_place = word.plain in WORDS["takes_place_of"] and stems(part[:at])
    if is_from or is_than or takes_place or (is_ours and word.plain in WORDS["leave_by_us"]):
        return at + 1
    if word.plain == "no" and rest[:1] == ["longer"]:
        return _find_denied_start(part, at + 2)
    if word.plain == "no" and _is_over(rest):
        return at + 1
    is_contrast = word.plain == "not" and follows_comma and at == 0
    is_denied = _is_negation(word) and (_is_over(rest) or "want" in rest[:2])
    return _find_denied_start(part, at + 1) if is_contrast or is_denied else 0


def _read_thing(part: Sequence[Word], start: int, antecedent: Sequence[Word]) -> Sequence[Word]:
    """Returns the name or material that begins at `start`; () for a thing at hand, which has an article."""
    old = list(takewhile(lambda word: word.plain not in _THING_ENDS, part[start:]))
    if len(old) > 2 and old[0].plain == "the" and old[-1].plain in WORDS["kind"]:  # "the tabs rule"
        old = old[1:-1]
    if old[1:] and old[-1].plain in ("one", "ones"):
        old = old[:-1]
    if [word.plain for word in old] in (["it"], ["them"]):
        return antecedent
    # "Uploads go to the disk instead of the bucket" is about all uploads; the same as an order is about those at hand.
    may_have_article = part[0].plain not in _ORDERS and part[start - 1].plain in ("of", "than")
    if (
        old
        and old[0].plain in _ARTICLES
        and not ((may_have_article or _is_announced(part)) and old[0].plain in ("the", "our"))
    ):
        return ()
    return old


def _is_announced(part: Sequence[Word]) -> bool:
    """Whether a part only says that its speaker thinks otherwise about something: "I changed my mind about"."""
    return any(
        word.plain in _CHANGE_PHRASES and clauses.match(_CHANGE_PHRASES, part, at) for at, word in enumerate(part)
    )


def _states(part: Sequence[Word]) -> bool:
    """Whether a part states something without a doubt or a complaint, and orders nothing."""
    words = {word.plain for word in part}
    return (
        len(part) > 2
        and len(stems(part)) > 0
        and part[0].plain not in _ORDERS | _SUPPOSING_WORDS | (_ARTICLES - _PLAIN_ARTICLES)
        and _NOT_SETTLED.isdisjoint(words)
    )


def _is_step(part: Sequence[Word]) -> bool:
    """Whether a part orders to move one thing of the code at hand: "move the function from"."""
    return part[0].root in _MOVE_ROOTS and any(word.plain in _AT_HAND for word in part[1:])


def _find_denied_start(part: Sequence[Word], start: int) -> int:
    """Returns the start of a denied thing: the object of a weak verb, else the words after a preposition."""
    places = range(start, len(part))
    first = next((at for at in places if part[at].stem or part[at].plain in WORDS["weak"]), len(part))
    if part[first : first + 1] and part[first].plain not in WORDS["weak"]:
        first = next((at for at in places if part[at].plain in clauses.WAYS), first)
    named = next((at for at in range(first, len(part)) if part[at].stem), len(part))
    return named - (part[named - 1].plain in _ARTICLES)


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


def _find_entering(left: _Departure) -> Sequence[Word]:
    """Returns the words that name the replacement in the same part; () if there are none."""
    for at, word in enumerate(left.behind):
        if word.plain in WORDS["into"] and stems(left.behind[at + 1 :]):
            return left.behind[at + 1 :]
    lead = left.before[-1].plain if left.before else ""
    if lead in WORDS["takes_place_of"]:
        return left.before[:-1]
    if lead in ("of", "than"):  # "B rather than A", "instead of A we use B"
        before = left.before[:-2]
        return before if stems(before) else left.behind if clauses.slots(left.behind) else ()
    return ()


def _may_take_place(part: Sequence[Word]) -> bool:
    """Whether another part of a sentence may name the replacement: it makes a claim."""
    if not part or part[0].plain in _SUPPOSING_WORDS or not _TROUBLE.isdisjoint(word.plain for word in part):
        return False
    first, count, slots = part[0].plain, len(stems(part)), clauses.slots(part)
    has_copula = any(word.plain in COPULA for word in part[1:])
    if first.partition("'")[0] in ("it", "they"):
        return any(slot.way != "is" for slot in slots)
    if first in _ARTICLES and not (first in _PLAIN_ARTICLES and (has_copula or slots)):
        return False
    if first in _ORDERS - WORDS["enter"] and not has_copula:  # "show sums in euros" states it, "run the tests" does not
        return bool(slots) and part[1].plain not in _ARTICLES
    has_verb = has_copula or bool(slots) or any(word.root in _ENTER_ROOTS for word in part)
    return 0 < count <= MAX_PART_WORDS or (count > 0 and has_verb)


def _holds_instead(part: Sequence[Word]) -> bool:
    """Whether a part states a present choice, and is not about the thing that only was in some way."""
    plain = [word.plain for word in part]
    is_same_thing = plain[0] in _ARTICLES or any(word.partition("'")[0] in ("it", "they") for word in plain)
    enters = any(word.root in _ENTER_ROOTS for word in part)
    is_now = enters or not {"now", "back", "again", "instead"}.isdisjoint(plain)
    moves = any(word.root in _MOVE_ROOTS for word in part) and "to" in plain
    return not is_same_thing and (is_now or moves)
