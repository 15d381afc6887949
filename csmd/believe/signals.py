"""The signals that a later statement replaces an earlier one: what is denied, exchanged, changed or given another value; pure."""

from __future__ import annotations

from csmd import text
from csmd.believe import changed
from csmd.believe.against import Against
from csmd.believe.clauses import Said
from csmd.believe.phrases import ALWAYS, ANTONYMS, HERE, REPLACING, TURNED, stem

#: Words beside what somebody likes that say no more: "prefer tabs", "use tabs for indentation".
LIKING = frozenset(
    stem(word) for word in "prefer like want choose love over indent indentation indenting style always".split()
)
#: A denial names so much of what it denies.
MOST_OF_IT = 0.6
#: Of the shorter statement's words so many are in the other, or they speak of two things.
SAME_SUBJECT = 0.5


def signals(before: Said, after: Said, unfollowed: Said, shared: frozenset[str], newer: str) -> dict[str, bool]:
    """By what the newer one replaces the older: signal -> whether it certainly is the same subject."""
    if any(old in unfollowed.named for old, _ in after.renames):
        return {"renamed": True}
    found = {"changed": True} if _changed(before, newer) else {}
    if any(_likes_better(one, other, before) for one, other in after.prefers):
        found["prefers"] = True
    for what in after.gone:
        if what <= before.positive and before.has_near(what) and not before.gone:
            is_subject = before.topic == what
            if is_subject or 2 * len(what) >= len(before.stems):
                found["gone"] = True
            elif what & before.names or any(slot.value == what for slot in before.slots):
                found.setdefault("gone", False)
    if len(shared) < SAME_SUBJECT * min(len(before.stems), len(after.main)):
        return found
    if any(_says_against(one, before) for one in after.instead):
        found["says-instead"] = not _names_another_end(before, after)
    if any(_denies(one, before) for one in after.denied):
        found["denied"] = True
    if (opposite := _opposite(before, after, shared)) is not None:
        found["opposite"] = opposite
    return found | _slots(before, after)


def _changed(before: Said, newer: str) -> bool:
    return any(changed.overturns(change, before) for change in changed.changes(newer))


def _names_another_end(before: Said, after: Said) -> bool:
    """Whether each statement names something that the other does not, besides the value that was exchanged."""
    left = before.positive & after.positive
    verbs = frozenset(slot.verb for slot in before.slots)
    gone = frozenset(stem for one in after.instead for stem in one.what) | HERE
    return bool(before.positive - left - verbs - gone) and len(after.positive - before.stems - REPLACING) > 1


def _likes_better(one: frozenset[str], other: frozenset[str], before: Said) -> bool:
    """Whether an older statement is for what is now liked less, and of nothing but that."""
    rest = before.stems - other - LIKING
    return (
        other <= before.positive
        and (one <= rest or not one & rest)
        and not rest - one
        and not before.denied
        and (not any(one <= liked for liked, _ in before.prefers))
    )


def _says_against(one: Against, before: Said) -> bool:
    """`X instead of Y`: Y stands in the older one, with what stands beside it in the newer."""
    if not one.what <= before.positive or not before.has_near(one.what):
        return False
    if one.beside and one.beside <= before.stems - before.positive:
        return True  # "use black, not ruff": what is wanted now is what the older one spoke against
    beside = len(one.beside & before.parts)
    if not beside and len(one.beside) <= 1 and _is_all(one.what, before):
        return True  # "use pytest instead of unittest" speaks of no subject, and the older one of little else
    special = len(one.what) > 1 or one.what & before.names
    return (beside >= 2 and beside >= 0.4 * len(one.beside)) or (bool(special) and 1 <= beside >= 0.5 * len(one.beside))


def _is_all(what: frozenset[str], before: Said) -> bool:
    """Whether a statement says by what something is done, or where ("we deploy to Fly.io"), and hardly what."""
    beside, slots = before.positive - what - ALWAYS, [slot for slot in before.slots if slot.value == what]
    placed = {slot.verb for slot in slots if slot.way == "place"} & changed.HOLDING if what <= before.names else None
    return bool(placed and beside <= placed) or (len(beside) <= 2 and any(slot.way == "means" for slot in slots))


def _denies(one: Against, before: Said) -> bool:
    """A negation: the older one affirms just what is denied, of the same subject; without a subject nearly all of it."""
    if one.is_qualified or not one.what <= before.positive or not before.has_near(one.what):
        return False
    if not one.beside and len(one.what) < 2:
        return before.positive == one.what
    return one.beside <= before.parts and len(one.what | one.beside) >= MOST_OF_IT * len(before.main)


def _opposite(before: Said, after: Said, shared: frozenset[str]) -> bool | None:
    """Whether they differ in a word and its opposite and in nothing else; False where one says more, None if otherwise."""
    old, new = before.stems - shared, after.stems - shared
    for one in old:
        for other in ANTONYMS.get(one, frozenset()) & new:
            if _same_subject(before.stems - {one}, after.stems - {other}):
                return before.stems - {one} == after.stems - {other}
    alike = len(shared) >= text.SAME_SHARE * len(before.stems | after.stems)
    if alike and any(TURNED[word] in after.turns - before.turns for word in before.turns - after.turns):
        return True
    return None


def _slots(before: Said, after: Said) -> dict[str, bool]:
    """The kinds of values that changed: of one slot, where the rest of both statements is the same subject."""
    if after.adds or after.asks:
        return {}
    if before.positive < after.positive or after.positive < before.positive:
        return {}  # one says what the other does, and more
    for old in before.slots:
        for new in after.slots:
            if old.way != new.way or not _one_verb(old.verb, new.verb, before, after):
                continue
            if old.value <= new.value or new.value <= old.value:
                continue
            verbs = {old.verb, new.verb}
            subject, other = before.stems - old.value - verbs - new.value, after.stems - new.value - verbs - old.value
            if not _same_subject(subject, other):
                continue
            kind = _kind(old.value - new.value, new.value - old.value, before, after, is_time=old.way == "time")
            if kind and (subject == other or kind != "value"):
                return {kind: subject == other}
    return {}


def _kind(changed: frozenset[str], into: frozenset[str], before: Said, after: Said, *, is_time: bool) -> str:
    """The signal that a value of one kind gives when it takes another's place; "" for two that are of different kinds."""
    if _is_number(changed) and _is_number(into):
        return "number"
    if changed & before.names and into & after.names:
        return "name"
    return "value" if _is_number(changed) == _is_number(into) or is_time else ""


def _one_verb(old: str, new: str, before: Said, after: Said) -> bool:
    """Whether two slots stand behind the same word, or behind one that says nothing or stands in both statements."""
    return old == new or not old or not new or (old in after.stems and new in before.stems)


def _same_subject(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether what is left of two statements is one subject: of what one says more, the other has no counterpart."""
    both = one & other
    if not both or (one - other and other - one):
        return False
    return len(both) >= 0.5 * max(len(one), len(other))


def _is_number(stems: frozenset[str]) -> bool:
    return any(stem[0].isdigit() for stem in stems)
