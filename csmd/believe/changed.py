"""What a statement says was changed: "we moved the queue to Redis" ends "we use Postgres for the queue"; pure.

A verb of change gives a thing a new value, and what an older statement gives the very same thing is over. The thing must
be the older one's whole subject, and both values of one kind: a move of the queue's documents, or to a repository of
its own, says nothing about what it runs on. What is only planned, asked or denied has changed nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from csmd.believe import phrases
from csmd.believe.clauses import Said, Slot
from csmd.cache import cached


@dataclass(frozen=True, slots=True)
class Change:
    """A thing and the value it has now, both as stems; `common`: the value is some thing and not a name.

    `gone` is what the statement says nobody uses any more.
    """

    thing: frozenset[str]
    value: frozenset[str]
    common: bool
    gone: frozenset[str] = frozenset()


_DID = r"(?:moved|migrated|switched|ported|transitioned)(?: over)?"
_NP = r"((?:[\w`'./-]+ ){0,5}[\w`'./-]+)"
#: "we moved THING to VALUE", and "THING [was] moved to VALUE"; a clause ends where the next begins.
_CHANGED = (
    re.compile(rf"\b(?:we|i|they|have|has|['\u2019]ve) (?:\w+ly |now |just |all |finally )?{_DID} {_NP}? (?:over )?(?:to|onto) {_NP}", re.IGNORECASE),
    re.compile(rf"{_NP}? (?:(?:has|have) been|was|were|is|are|got|has|have)? ?(?:now |just )?{_DID} (?:to|onto) {_NP}", re.IGNORECASE),
)  # fmt: skip
#: "THING is now VALUE": where the value is a name; "the tests are now green" tells of no other thing.
_IS_NOW = re.compile(
    rf"{_NP}? (?:is|are) now (?!(?:in|on|at|from|with|for|behind|under|part|of|to|by|done|only)\b){_NP}", re.IGNORECASE
)
#: "we're back on VALUE for THING", and "we're on NAME VERSION now".
_BACK_ON = re.compile(
    rf"\b(?:we|i)(?:['\u2019]re|['\u2019]m| are| am| went| go) (?:now )?back (?:on|to|with) {_NP}? (?:for|as|in) {_NP}",
    re.IGNORECASE,
)
_ON_VERSION = re.compile(
    r"\b(?:we|i)(?:['\u2019]re|['\u2019]m| are| am) (?:now )?(?:back )?(?:on|at) ([\w.+#-]*[a-z][\w.+#-]*) v?(\d[\w.]*)",
    re.IGNORECASE,
)
#: "THING is 9191 now".
_NUMBER_NOW = re.compile(rf"{_NP}? (?:is|are) ((?:[\w`'./-]+ ){{0,2}}[\w`'./-]*\d[\w`'./-]*) now\b", re.IGNORECASE)
#: Who has something in hand: "Ines owns billing".
_IN_HAND = re.compile(
    r"^\W*((?:[A-Z][\w'-]{1,30} ){1,2})(?:now )?(owns|maintains|leads|manages|handles|reviews) ([^.,;:\n]{2,80})"
)
_SINCE = re.compile(r"\b(?:now|by now|took over|from now on|these days|nowadays)\b", re.IGNORECASE)
#: What nobody uses any more.
_GONE = re.compile(
    r"\b(?:no longer|don['\u2019]t|do not) use ([\w`'./-]+)(?! for\b)|\bstopped using ([\w`'./-]+)", re.IGNORECASE
)
#: Before the verb these say that nothing was changed, or not yet.
_UNDONE = re.compile(
    r"n['\u2019]t\b|\b(?:not|never|if|when|once|until|before|unless|should|could|would|might|may|will|want|plan|almost|nearly|why|did)\b",
    re.IGNORECASE,
)
#: The thing is the first group and its value the second, but for _BACK_ON.
_PATTERNS = (_BACK_ON, _ON_VERSION, *_CHANGED, _NUMBER_NOW, _IS_NOW)
_COMMON = re.compile(r"(?:the|a|an|its|their|our|his|her|my|your|another|some|this|that)\b", re.IGNORECASE)
_SENTENCE = re.compile(r"[.;:!?,()\n]+(?:\s+|$)")
#: In these ways a thing has what can be changed like this: where it runs or is kept, and with what; not who wrote it.
HOLDING = frozenset(
    phrases.stem(word)
    for word in "use run keep store live host go deploy do serve manage track work sit stay handle ship report render hold listen".split()
) | {""}
_MONTHS = frozenset(
    phrases.stem(word)
    for word in "january february march april may june july august september october november december jan feb mar apr jun "
    "jul aug sep sept oct nov dec".split()
)
#: What of a thing somebody has in hand says only that it is one.
_PARTS_OF_WORK = frozenset(
    phrases.stem(word) for word in "module service team part area stuff package component app".split()
)
MOST_OF_VALUE = 4
#: Characters of a statement that are read: people say at once that something has changed, and a pattern's time is bounded.
MOST_READ = 600


@cached(2048)
def changes(said: str) -> tuple[Change, ...]:
    """What a statement says was changed, and into what."""
    said = said[:MOST_READ]
    if not any(
        word in said.casefold()
        for word in ("moved", "migrated", "switched", "ported", "transitioned", " now", " back ", "re on ", " are on ")
    ):
        return ()
    found: list[Change] = []
    gone = frozenset(stem for pair in _GONE.findall(said) for stem in phrases.stems_of(" ".join(pair)))
    for part in _SENTENCE.split(said):
        match = next((match for pattern in _PATTERNS if (match := pattern.search(part))), None)
        if match is None or not match[1] or _UNDONE.search(part[: match.start(2)]):
            continue
        of, into = (2, 1) if match.re is _BACK_ON else (1, 2)
        thing, value = frozenset(phrases.stems_of(match[of])), frozenset(phrases.stems_of(match[into])[:MOST_OF_VALUE])
        if thing and value and not part.rstrip().endswith("?"):
            named = any(phrases.NAME.match(word) or word[:1].isupper() for word in match[into].split())
            if named or match.re is not _IS_NOW:
                found.append(Change(thing, value, bool(_COMMON.match(match[into])) and not named, gone))
    return tuple(found)


def overturns(change: Change, before: Said) -> bool:
    """Whether an older statement gives the thing that was changed another value."""
    if not change.thing <= before.stems or before.asks:
        return False
    return any(_is_other(change, slot, before) for slot in before.slots)


def handed_on(older: str, newer: str) -> bool:
    """Whether what somebody had in hand is another's by now."""
    before, after = _IN_HAND.match(older), _IN_HAND.match(newer)
    if before is None or after is None or before[2] != after[2] or not _SINCE.search(newer):
        return False
    one, other = (frozenset(phrases.stems_of(found[3])) for found in (before, after))
    one, other = one - _PARTS_OF_WORK, other - _PARTS_OF_WORK
    return before[1] != after[1] and len(one & other) * 2 >= max(1, min(len(one), len(other)))


def _is_other(change: Change, slot: Slot, before: Said) -> bool:
    # A number takes a number's place, in 2026-12-15 as in "port 8080"; "green" nothing's.
    numbers = _is_number(slot.value - change.thing) and _is_number(change.value)
    if slot.way == "is":
        if not numbers:
            return False
    elif slot.way not in ("means", "place") or slot.verb not in HOLDING:
        return False
    if slot.value & change.value or (slot.value & change.thing and not numbers):
        return False
    if slot.value & before.names and change.common:
        return False
    if slot.value & change.gone:
        return True
    # The thing is all that the older one speaks of: a part of it, or one of several, stays where it is.
    subject = before.positive - (slot.value - change.thing) - {slot.verb} - phrases.HERE
    return len(change.thing) >= 0.6 * len(subject)


def _is_number(value: frozenset[str]) -> bool:
    return any(stem[0].isdigit() for stem in value) and all(stem[0].isdigit() or stem in _MONTHS for stem in value)
