"""Whether a later statement replaces an earlier one, certainly or perhaps; pure.

A certain replacement gives the same slot of the same subject another value, or denies just what the older statement
affirms. Reasons are left out first: two statements with one reason are not of one subject. Where one of them names more
of the subject than the other (an environment, a component, one use of several) it is doubtful, and a person decides;
where each names something that the other does not, they are of two things. Cue words make a replacement surer and never
make it one. In doubt both statements hold: what is wrongly replaced is lost, what is wrongly kept is only old.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from csmd.believe import changed, several, signals
from csmd.believe.clauses import assertion, read, renames
from csmd.believe.phrases import CUE, ENVIRONMENTS
from csmd.cache import cached

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
    "gone": 0.8,
    "prefers": 0.8,
    "changed": 0.75,
    "opposite": 0.7,
    "number": 0.7,
    "name": 0.65,
    "value": 0.55,
}
#: Why a person is asked.
UNSURE = "the newer one may replace it, or be about something else"
#: How sure what may be a replacement is: only a person can tell.
DOUBTFUL = 0.4
CUE_ADDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """How a later statement replaces an earlier one: certainly (SURE and more) or perhaps; `reasons` name the signals, the surest first."""

    confidence: float
    reasons: tuple[str, ...]

    @property
    def lowers(self) -> float:
        """By how much the older one's confidence falls, by clarity."""
        clarity = (self.confidence - SURE) / (1.0 - SURE)
        return round(LEAST + (MOST - LEAST) * min(1.0, max(0.0, clarity)), 4)


def amendment(older: str, newer: str, renames: Mapping[str, str] | None = None) -> Replacement | None:
    """How `newer` amends `older`, None where it does not: the one relation that is asked for of every memory that is near."""
    found = replacement(older, newer, renames)
    return found if found is not None and found.confidence >= SURE else None


def doubt(older: str, newer: str, renames: Mapping[str, str] | None = None) -> Replacement | None:
    """How `newer` may amend `older`, where only a person can tell whether it does; None where it does or does not."""
    found = replacement(older, newer, renames)
    return found if found is not None and found.confidence < SURE else None


def ended_parts(
    older: str, newer: str, renames: Mapping[str, str] | None = None
) -> tuple[Replacement, tuple[str, ...]] | None:
    """Which of the several parts of `older` are certainly replaced, and how; None where it is one thing, or none is."""
    said = several.parts(older)
    found = {part: replaced for part in said if (replaced := amendment(part, newer, renames))} if len(said) > 1 else {}
    return (next(iter(found.values())), tuple(found)) if found else None


def replacement(older: str, newer: str, renames: Mapping[str, str] | None = None) -> Replacement | None:
    """How `newer`, or the surest of its parts, replaces `older`: certainly (SURE and more) or doubtfully; None where it does not."""
    of_parts = (_of_one(older, part, renames) for part in dict.fromkeys((newer, *several.parts(newer))))
    found = [one for one in of_parts if one is not None]
    if found and several.is_partly(older, newer):
        return replace(found[0], confidence=DOUBTFUL)
    return max(found, key=lambda one: one.confidence, default=None)


def _of_one(older: str, newer: str, renames: Mapping[str, str] | None) -> Replacement | None:
    older, newer = assertion(older), assertion(newer)
    before, after = read(followed(older, renames or {})), read(newer)
    shared = before.stems & after.stems
    if not shared or before.asks:
        return None
    if ENVIRONMENTS & before.stems - after.stems and ENVIRONMENTS & after.stems - before.stems:
        return None
    found = signals.signals(before, after, read(older), shared, newer)
    if changed.handed_on(older, newer):
        found["changed"] = True
    if not found:
        return None
    certain = sorted((name for name, is_certain in found.items() if is_certain), key=lambda name: -SIGNALS[name])
    if not certain:
        return Replacement(confidence=DOUBTFUL, reasons=tuple(found))
    confidence = min(1.0, SIGNALS[certain[0]] + CUE_ADDS * bool(CUE.search(newer)))
    return Replacement(confidence=round(confidence, 2), reasons=tuple(certain))


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


@cached(512)
def _whole(name: str) -> re.Pattern[str]:
    """A name where it stands alone: not as a part of a longer one."""
    return re.compile(rf"(?<![\w/.-]){re.escape(name)}(?![\w/-]|\.\w)", re.IGNORECASE)
