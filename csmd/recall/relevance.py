"""Whether what a prompt asks about was spoken of, and which rules bear on an order; pure arithmetic.

A prompt is told something when it asks (csmd.recall.asking) and is `grounded`, each answered with 0-1: a question about
something that nobody here ever spoke of is not answered with what is nearest to it.

The weights are logistic fits on half of a labelled set (tests/bench/train_recall.py; docs/benchmarks.md); 0.5 is where
it says no.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from csmd import text

#: Turns that hold a word beyond which it says nothing, and is no longer counted.
COMMON = 2000
_TAIL = re.compile(r"['\u2019](?:s|re|ve|ll|d|m|t)\b", re.IGNORECASE)
_NAME = re.compile(r"(?<![\w.!?:/])\w+")
_LOOKS_NAMED = re.compile(r"[^\W\d_]*(?:[A-Z]|\d)\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What a prompt's best matches are: cosines of turn and memory (None without a vector), the share of its words in one.

    `unknown`: it names something that was never said here.
    """

    turn: float | None
    memory: float | None
    covered: float
    unknown: bool


#: What each feature of the best matches adds, with a vector and by words alone.
GROUND_WEIGHTS = {"": -5.77, "covered": 2.89, "unknown": -2.68, "turn": 6.92, "memory": 7.39}
WORDS_WEIGHTS = {"": -1.77, "covered": 5.74, "unknown": -3.96}


#: What each adds to how surely a rule bears on an order: its cosine and the share of the order's subject that it names.
HEED_WEIGHTS = {"": -9.0, "memory": 10.0, "covered": 6.0}
HEED_WORDS_WEIGHTS = {"": -5.0, "covered": 7.0}
#: A subject of fewer words is nobody's in particular.
LEAST_SUBJECT = 2
#: Words of orders that name no subject.
_ORDERS = frozenset(
    """add fix make create update change write remove delete use run check show explain print rename revert continue
    review rebase merge try commit push move put take look let please can could would will help need want like new now
    test tests some more""".split()
)


def subject(prompt: str) -> list[str]:
    """The words of an order that say what it is about; [] for one that names too little to be about anything."""
    words = [word for word in terms(prompt) if word not in _ORDERS]
    return words if len(words) >= LEAST_SUBJECT else []


def heeded(cosine: float | None, share: float) -> float:
    """How surely a rule bears on an order, 0-1, by its cosine (None without a vector) and what it covers of the subject."""
    words = {"covered": share}
    if cosine is None:
        return _logistic(HEED_WORDS_WEIGHTS, words)
    return _logistic(HEED_WEIGHTS, {**words, "memory": max(0.0, cosine)})


def grounded(ground: Ground) -> float:
    """How surely what a prompt asks about was spoken of here, 0-1."""
    return _logistic(WORDS_WEIGHTS if ground.turn is None else GROUND_WEIGHTS, features(ground))


def features(ground: Ground) -> dict[str, float]:
    """The features of the best matches, each 0-1; without a vector two of them."""
    words = {"covered": ground.covered, "unknown": float(ground.unknown)}
    if ground.turn is None:
        return words
    return {**words, "turn": max(0.0, ground.turn), "memory": max(0.0, ground.memory or 0.0)}


def _logistic(weights: Mapping[str, float], given: Mapping[str, float]) -> float:
    total = weights[""] + sum(weights[name] * value for name, value in given.items())
    return 1.0 / (1.0 + math.exp(-total))


def terms(prompt: str) -> list[str]:
    """The distinct words of a prompt that say something: `what's` is `what`."""
    return text.query_terms(_TAIL.sub("", prompt))


def names(prompt: str) -> list[str]:
    """The words of a prompt that look like names, as an index holds them: a capital inside a sentence, or a digit."""
    found = [match.group() for match in _NAME.finditer(_TAIL.sub("", prompt.strip())) if match.start() > 0]
    named = (word.lower() for word in found if len(word) > 1 and _LOOKS_NAMED.fullmatch(word) and not word.isdigit())
    return [word for word in dict.fromkeys(named) if word not in text.STOP_WORDS]


def rarity(count: int) -> float:
    """How much a word says that `count` turns hold: the logarithm of its rarity, 0 for one that everybody says.

    Against a fixed number of turns, so that a young store's few words do not look common.
    """
    return math.log((COMMON + 1) / (min(count, COMMON) + 0.5))


def covered(weights: Mapping[str, float], said: str) -> float:
    """The share of a prompt's words, by their rarity, that a text holds, 0-1."""
    total = sum(weights.values())
    if total <= 0:
        return 0.0
    stems = _stems(said)
    return sum(weight for word, weight in weights.items() if text.stem(word) in stems) / total


@lru_cache(maxsize=1024)
def _stems(said: str) -> frozenset[str]:
    """The stems that a text can be found by; the same memories are near many prompts."""
    return frozenset(text.stem(word) for word in text.query_terms(said))


def unquoted(said: str) -> str:
    """What somebody said without the lines that they quote with `>`: these are another's."""
    return "\n".join(line for line in said.splitlines() if not line.lstrip().startswith(">"))
