"""Whether a later statement amends an earlier one, adds to it, repeats it or speaks of something else; pure.

An amendment gives the same slot of the same subject another value. What a statement says against (`not X`,
`X instead of Y`, `remove X`) amends only what the older one affirms; a value amends only the value that stands in the
same place: behind the same verb and a preposition of the same kind, of a subject that differs in nothing. Cue words
make it surer and never make it one. In doubt two statements both hold: what is wrongly overturned is lost, what is
wrongly kept is only old.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from csmd import text
from csmd.believe import changed, several
from csmd.believe.against import Against
from csmd.believe.clauses import Said, read, renames
from csmd.believe.phrases import ALWAYS, ANTONYMS, CUE, TURNED, stem

Kind = Literal["amends", "elaborates", "repeats", "unrelated"]

#: What an amendment takes from the older statement's confidence: at least, and at most (design section 4).
LEAST, MOST = 0.20, 0.50
#: And what is left of it in any case.
LEAST_LEFT = 0.05
#: Sure enough to lower the older one.
SURE = 0.5
#: signal -> how sure it alone makes that the older is amended.
SIGNALS: Mapping[str, float] = {
    "renamed": 0.95,
    "says-instead": 0.9,
    "denied": 0.8,
    "removed": 0.8,
    "given-up": 0.8,
    "prefers": 0.8,
    "brought-back": 0.8,
    "changed": 0.75,
    "widened": 0.75,
    "opposite": 0.7,
    "number": 0.7,
    "name": 0.65,
    "value": 0.55,
    **dict.fromkeys(("partly-given-up", "partly-changed"), 0.4),
}
CUE_ADDS = 0.1
#: Words beside what somebody likes that say no more: "prefer tabs", "use tabs for indentation".
LIKING = frozenset(
    stem(word) for word in "prefer like want choose love over indent indentation indenting style always".split()
)
#: Of the shorter statement's words so many are in the other, or they speak of two things.
SAME_SUBJECT = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """What a later statement is to an earlier one; `reasons` name the signals, the surest first."""

    kind: Kind
    confidence: float = 0.0
    reasons: tuple[str, ...] = ()

    @property
    def lowers(self) -> float:
        """By how much the older one's confidence falls, by clarity."""
        clarity = (self.confidence - SURE) / (1.0 - SURE)
        return round(LEAST + (MOST - LEAST) * min(1.0, max(0.0, clarity)), 4) if self.kind == "amends" else 0.0


def relation(older: str, newer: str, renames: Mapping[str, str] | None = None) -> Relation:
    """What `newer` is to `older`; `renames` are names that changed, old -> new, case folded."""
    found = amendment(older, newer, renames)
    if found is not None:
        return found
    before, after = read(followed(older, renames or {})), read(newer)
    shared = before.stems & after.stems
    if shared and text.says_the_same(older, newer):
        return Relation(kind="repeats", confidence=1.0)
    near = shared and len(shared) >= max(1, min(len(before.stems), len(after.stems)) // 4)
    return (
        Relation(kind="elaborates", confidence=0.5)
        if near
        else Relation(kind="unrelated", confidence=0.5 * bool(shared))
    )


def amendment(older: str, newer: str, renames: Mapping[str, str] | None = None) -> Relation | None:
    """How `newer` amends `older`, None where it does not: the one relation that is asked for of every memory that is near."""
    found = _against(older, newer, renames)
    return found if found is not None and found.confidence >= SURE else None


def doubt(older: str, newer: str, renames: Mapping[str, str] | None = None) -> Relation | None:
    """How `newer` may amend `older`, where only a person can tell whether it does; None where it does or does not."""
    found = _against(older, newer, renames)
    return found if found is not None and found.confidence < SURE else None


def _against(older: str, newer: str, renames: Mapping[str, str] | None) -> Relation | None:
    before, after = read(followed(older, renames or {})), read(newer)
    shared = before.stems & after.stems
    if not shared:
        return None
    found = sorted(
        ((SIGNALS[name], name) for name in _signals(before, after, read(older), shared, newer)),
        key=lambda row: (-row[0], row[1]),
    )
    if not found and changed.handed_on(older, newer):
        found = [(SIGNALS["changed"], "changed")]
    if not found:
        return None
    if several.is_partly(older, newer):
        found = [(SIGNALS["partly-changed"], "partly-changed")]
    sure = found[0][0]
    confidence = min(1.0, sure + CUE_ADDS * bool(CUE.search(newer))) if sure >= SURE else sure
    return Relation(kind="amends", confidence=round(confidence, 2), reasons=tuple(name for _, name in found))


def _signals(before: Said, after: Said, unfollowed: Said, shared: frozenset[str], newer: str) -> list[str]:
    if any(old in unfollowed.named for old, _ in after.renames):
        return ["renamed"]
    found: list[str] = ["changed"] if _changed(before, newer) else []
    found += _given_up(before, after)
    if any(_likes_better(one, other, before) for one, other in after.prefers):
        found.append("prefers")
    if len(shared) < SAME_SUBJECT * min(len(before.stems), len(after.main)):
        return found
    if any(_says_against(one, before) for one in after.instead):
        found.append("says-instead")
    if any(_denies(one, before) for one in after.denied):
        found.append("denied")
    if any(_removes(one, before) for one in after.removed) and not before.removed:
        found.append("removed")
    if any(_removes(one, after) for one in before.removed) and after.keeps and not after.removed:
        found.append("brought-back")
    if any(what <= after.stems for what in before.only) and after.widens:
        found.append("widened")
    if _opposite(before, after, shared):
        found.append("opposite")
    return [*found, *_slots(before, after)]


def _changed(before: Said, newer: str) -> bool:
    return any(changed.overturns(change, before) for change in changed.changes(newer))


def _affirmed(what: frozenset[str], said: Said, *, most: float = 0.6) -> bool:
    """Whether a statement affirms nearly all of something, and in one place."""
    inside = what & said.positive
    return bool(inside) and len(inside) >= most * len(what) and said.has_near(inside)


def _removes(one: Against, said: Said) -> bool:
    """Whether what is to be removed is what a statement is about; one common word is not enough to tell."""
    return (len(one.what) > 1 or bool(one.what & said.names)) and _affirmed(one.what, said)


def _given_up(before: Said, after: Said) -> list[str]:
    """What was decided against ends what says little besides it; of a use among others nobody can tell."""
    for what in after.given_up:
        if not before.given_up and not before.asks and what & before.names and _affirmed(what, before):
            return ["given-up" if 2 * len(what & before.stems) >= len(before.stems) else "partly-given-up"]
    return []


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
    """A negation: the older one affirms what is denied, of the same subject; without a subject it must say all of it."""
    if not one.beside:
        all_of_it = before.positive == one.what and bool(one.what & before.names)
        return all_of_it or (len(one.what) >= 2 and _affirmed(one.what, before, most=0.75))
    return _affirmed(one.what, before) and len(one.beside & before.parts) >= 0.6 * len(one.beside)


def _opposite(before: Said, after: Said, shared: frozenset[str]) -> bool:
    """Whether they differ in a word and its opposite, and nothing else of weight."""
    old, new = before.stems - shared, after.stems - shared
    for one in old:
        for other in ANTONYMS.get(one, frozenset()) & new:
            if _same_subject(before.stems - {one}, after.stems - {other}):
                return True
    alike = len(shared) >= text.SAME_SHARE * len(before.stems | after.stems)
    return alike and any(TURNED[word] in after.turns - before.turns for word in before.turns - after.turns)


def _slots(before: Said, after: Said) -> list[str]:
    """The kinds of values that changed: of one slot, where the rest of both statements is the same subject."""
    if after.adds or after.asks or before.asks:
        return []
    if before.positive < after.positive or after.positive < before.positive:
        return []  # one says what the other does, and more
    for old in before.slots:
        for new in after.slots:
            if old.way != new.way or not _one_verb(old.verb, new.verb, before, after):
                continue
            if old.value <= new.value or new.value <= old.value:
                continue
            verbs = {old.verb, new.verb}
            subject, other = before.stems - old.value - verbs, after.stems - new.value - verbs
            if not _same_subject(subject - new.value, other - old.value):
                continue
            changed, into = old.value - new.value, new.value - old.value
            if _is_number(changed) and _is_number(into):
                return ["number"]
            if changed & before.names and into & after.names:
                return ["name"]
            if _is_number(changed) == _is_number(into) or old.way == "time":
                return ["value"]
    return []


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


def stands(*, pinned: bool) -> str:
    """Why a memory stands that is spoken against."""
    return "it is pinned" if pinned else "it was said with more authority, or holds in more places"


# --- names that changed


def table(statements: Sequence[str]) -> dict[str, str]:
    """Old name -> the one it has now, from statements in the order they were made; chains are followed."""
    now: dict[str, str] = {}
    for statement in statements:
        for old, new in renames(statement):
            now.pop(new, None)  # a name that is taken up again is no old one
            for earlier, current in list(now.items()):
                if current == old:
                    now[earlier] = new
            now[old] = new
    return {old: new for old, new in now.items() if old != new}


def names(said: str, name: str) -> bool:
    """Whether a text names something by this name."""
    return name in said.casefold() and bool(_whole(name).search(said))


def followed(said: str, renames: Mapping[str, str]) -> str:
    """A text with each old name replaced by the new one."""
    present = [old for old in renames if old in said.casefold()]
    for old in present:
        said = _whole(old).sub(lambda _, new=renames[old]: new, said)  # type: ignore[misc]
    return said


@lru_cache(maxsize=512)
def _whole(name: str) -> re.Pattern[str]:
    """A name where it stands alone: not as a part of a longer one."""
    return re.compile(rf"(?<![\w/.-]){re.escape(name)}(?![\w/-]|\.\w)", re.IGNORECASE)
