"""How a session goes at one moment: ten pure functions over what was said and done, and the table that adds them up.

Nothing here reads anybody's mind: each function counts something that anybody can look up, and gives 0 to 1. The
weights turn nine of them into frustration, energy and urgency (each 0 to 1); the tenth is the user's stance. A figure is
unknown unless one of the PLAIN ones speaks for it: a pace, a length or one failed call is no mood. So is a stance for
which no words stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from csmd import text
from csmd.model import Stance, State

#: Outcomes that are looked back at; failures in a row that are as bad as it gets.
LOOKED_BACK, IN_A_ROW = 6, 3
BRISK_S, SLOW_S = 60.0, 600.0
MANY_WORDS, MANY_TURNS = 60, 2_000
ENERGY = 0.5

#: A prompt of more characters holds what somebody else wrote: its words are nobody's mood.
TYPED = 300
_LEAD = r"^\W*(?:(?:ok(?:ay)?|yes|yeah|and|but|so|now|again|also|then|cool)\b\W*){0,3}"
_OBJECTS = re.compile(
    rf"{_LEAD}(?:(?:no|nope)\b(?! (?:problem|worries|need|idea)\b)|stop\b|why (?:did|didn['’]?t|would) you\b|i (?:said|meant|told you)\b"
    r"|(?:this|that|it|the [\w -]{1,30}?)(?: is|['’]s| are| was) (?:still )?(?:not (?:correct|right|true|working|what i)|wrong|incorrect|broken|the same)\b"
    r"|(?:this|that|it) (?:still )?(?:doesn['’]?t work|fails)\b)",
    re.IGNORECASE,
)
_PLEASED = re.compile(
    rf"{_LEAD}(?:(?:it|that|this) )?(?:great|thanks?|thank you|perfect|awesome|nice|excellent|works|good job|well done|lgtm)\b",
    re.I,
)
_PRESSES = re.compile(
    r"\b(?:asap|urgent(?:ly)?|as soon as possible|hurry(?: up)?|(?:prod|production) is (?:down|broken|failing)|outage)\b",
    re.IGNORECASE,
)
_APPROVES = re.compile(
    r"^\W*(?:yes|yeah|yep|ok|okay|sure|do it|go ahead|sounds good|agreed|lgtm)\b.{0,30}$", re.IGNORECASE
)
_ASKS = re.compile(r"\?\W*$")
_ORDERS = re.compile(
    rf"{_LEAD}(?:(?:can|could|would|will) (?:you|we)\b|please\b|let['’]?s\b|(?:add|fix|remove|make|run|update|change|commit|push|create|write|use|check"
    r"|review|move|rename|implement|merge|rebase|try|show|give|do)\b)|\bplease\W*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What is known of a session at one turn: the user's latest words and earlier ones, and how tools ended before it.

    `gap_s` is the time since the prompt before the latest, below 0 where there is none; `ordinal` the turn's place.
    """

    said: str = ""
    earlier: tuple[str, ...] = ()
    outcomes: tuple[bool, ...] = ()
    gap_s: float = -1.0
    ordinal: int = 0


def failing(moment: Moment) -> float:
    """The share of the latest tool calls that failed."""
    latest = moment.outcomes[-LOOKED_BACK:]
    return latest.count(False) / len(latest) if latest else 0.0


def stuck(moment: Moment) -> float:
    """How many calls in a row have failed, up to now."""
    row = 0
    for ended_well in reversed(moment.outcomes):
        if ended_well:
            break
        row += 1
    return min(1.0, row / IN_A_ROW)


def repeating(moment: Moment) -> float:
    """Whether the user says again what was said before."""
    same = text.normalise(moment.said)
    return float(bool(same) and any(text.normalise(before) == same for before in moment.earlier))


def objecting(moment: Moment) -> float:
    """Whether the user objects to what was done."""
    return float(_says(_OBJECTS, moment))


def pleased(moment: Moment) -> float:
    """Whether the user is content."""
    return float(_says(_PLEASED, moment) and not objecting(moment))


def pressing(moment: Moment) -> float:
    """Whether the user is in a hurry."""
    return float(_says(_PRESSES, moment))


def brisk(moment: Moment) -> float:
    """How soon the user spoke again: 1 within a minute, 0 after ten."""
    if moment.gap_s < 0:
        return 0.0
    return max(0.0, min(1.0, (SLOW_S - moment.gap_s) / (SLOW_S - BRISK_S)))


def expansive(moment: Moment) -> float:
    """How much the user said."""
    return min(1.0, len(moment.said.split()) / MANY_WORDS)


def wearing(moment: Moment) -> float:
    """How long the session has become."""
    return min(1.0, moment.ordinal / MANY_TURNS)


def stance(moment: Moment) -> Stance:
    """How the user's latest words stand to the work: the first of the table that fits."""
    for name, fits in _STANCES:
        if _says(fits, moment):
            return name
    return "unknown" if moment.said else "silent"


_STANCES: tuple[tuple[Stance, re.Pattern[str]], ...] = (
    ("objects", _OBJECTS), ("orders", _ORDERS), ("approves", _APPROVES), ("asks", _ASKS),
)  # fmt: skip
#: What speaks for a mood by itself.
PLAIN = frozenset({stuck, objecting, pleased, pressing})

#: Function -> what a full measure of it adds to frustration, energy and urgency.
WEIGHTS: tuple[tuple[Callable[[Moment], float], float, float, float], ...] = (
    (failing, 0.3, -0.1, 0.1),
    (stuck, 0.3, -0.1, 0.0),
    (repeating, 0.3, 0.0, 0.2),
    (objecting, 0.3, 0.0, 0.0),
    (pleased, -0.4, 0.2, 0.0),
    (pressing, 0.0, 0.1, 0.6),
    (brisk, 0.0, 0.3, 0.1),
    (expansive, 0.0, 0.2, 0.0),
    (wearing, 0.0, -0.3, 0.0),
)


def state(moment: Moment) -> State:
    """The ten functions together, each figure within 0 and 1, None where nothing plain speaks for it."""
    measured = [(measure, measure(moment), weights) for measure, *weights in WEIGHTS]

    def figure(at: int, before: float) -> float | None:
        if not any(measure in PLAIN and value == 1.0 and weights[at] for measure, value, weights in measured):
            return None
        return round(min(1.0, max(0.0, before + sum(weights[at] * value for _, value, weights in measured))), 3)

    return State(frustration=figure(0, 0.0), energy=figure(1, ENERGY), stance=stance(moment), urgency=figure(2, 0.0))


def _says(words: re.Pattern[str], moment: Moment) -> bool:
    """Whether what the user typed has these words; what was pasted is not looked at."""
    return len(moment.said) <= TYPED and words.search(moment.said) is not None
