"""Whether a prompt is told anything at all: does it ask for what was said before, and was it said; pure arithmetic.

Two questions, each answered with 0-1, and the lesser one counts. `asks` looks at the prompt's form alone: "commit",
"yes, do that" and "can you fix this?" ask for nothing that the past holds. `grounded` looks at the best matches: a
question about something that nobody here ever spoke of is not answered with what is nearest to it.

The weights are logistic fits on half of a labelled set (tests/bench/train_recall.py; docs/benchmarks.md); 0.5 is where
either says no.
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
_QUESTION = re.compile(
    r"[?\uff1f]\W{0,3}$|^\W*(?:what|which|who|whose|where|when|why|how|did|does|do we)\b", re.IGNORECASE
)
_REQUEST = re.compile(
    r"\b(?:can|could|would|will) (?:you|we|it)\b|\blet'?s\b|\bplease\b|\b(?:take|have) a look\b|\bi(?:'d| would) like\b"
    r"|^\W*(?:add|fix|commit|push|run|update|make|create|write|use|check|show|explain|print|remove|rename|revert"
    r"|continue|review|rebase|merge|try|do (?:it|this|that|the)) ?\b",
    re.IGNORECASE,
)
_FOLLOWS = re.compile(
    r"^\W*(?:but|ah|oh|so|wait|hmm|ok|okay|yes|yeah|sorry|great|and|also)\b|\bright\s*\?", re.IGNORECASE
)
_PRESENT = re.compile(
    r"\b(?:this|these|that one|this one|above|it|now|they|them|here|just|more|you|your)\b", re.IGNORECASE
)
_PAST = re.compile(
    r"\b(?:we|our|us|did|was|were|had|been|last time|again|already|meanwhile|still|today|agreed|decided|known|seen)\b",
    re.IGNORECASE,
)
_TAIL = re.compile(r"['\u2019](?:s|re|ve|ll|d|m|t)\b", re.IGNORECASE)
_NAME = re.compile(r"(?<![\w.!?:/])\w+")
_LOOKS_NAMED = re.compile(r"[^\W\d_]*(?:[A-Z]|\d)\w*")

#: What each feature of a prompt's form adds.
FORM_WEIGHTS = {
    "": -2.26,
    "question": 4.78,
    "request": -4.93,
    "follows": -3.25,
    "present": -2.99,
    "past": 0.48,
    "little": -1.99,
}


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


def form(prompt: str) -> dict[str, float]:
    """The features of a prompt's form, each 0-1."""
    said = prompt.strip()
    return {
        "question": float(bool(_QUESTION.search(said))),
        "request": float(bool(_REQUEST.search(said))),
        "follows": float(bool(_FOLLOWS.search(said))),
        "present": min(2, len(_PRESENT.findall(said))) / 2,
        "past": float(bool(_PAST.search(said))),
        "little": float(len(terms(said)) < 2),
    }


def asks(prompt: str) -> float:
    """How surely a prompt asks for what was said before, by its form, 0-1."""
    return _logistic(FORM_WEIGHTS, form(prompt))


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
