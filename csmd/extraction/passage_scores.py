"""Scores passages, and how surely a sentence states something that lasts, by the weights in data/chooser.json; pure.

One regression over FEATURES scores passages of every source alike; another, over the words of a sentence, gives its
certainty. tests/bench/train_chooser.py fits both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import NamedTuple

from csmd import wire
from csmd.text.similarity import share
from csmd.text.tokens import content_words, words_of


class Passage(NamedTuple):
    """Neighbouring sentences of a turn, from `first` to `last`, as one text with its distinct content words."""

    first: int
    last: int
    text: str
    content: frozenset[str]
    has_good_title: bool = False


def make_passage(first: int, last: int, text: str) -> Passage:
    return Passage(first, last, text, frozenset(content_words(text)))


@dataclass(frozen=True, slots=True)
class Weights:
    """The least score of a passage (`bar`, 0-1), the weights of its features, and those of a sentence's features."""

    bar: float
    passage: Mapping[str, float]
    assertion: Mapping[str, float]


@cache
def load_weights() -> Weights:
    """Loads the weights shipped with csmd."""
    stored = wire.loads(resources.files("csmd.data").joinpath("chooser.json").read_bytes())
    return Weights(float(stored["bar"]), dict(stored["passage"]), dict(stored["assertion"]))


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


#: The ranges of content words in which a longer passage scores differently.
_LENGTH_RANGES = ((0, 8), (8, 16), (16, 28), (28, 45))
#: What is counted in a passage, up to MAX_COUNT.
_COUNTED: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("binding", _compile(r"\b(?:must|never|always|only|every|required?|(?:has|have|needs?) to|cannot|can['’]t|don['’]t|do not|no longer)\b")),
    ("choice", _compile(r"\b(?:instead|rather than|prefer\w*|decided|decision|chose|used?|uses|should|keep|not)\b")),
    ("done", _compile(r"\b(?:added|updated|fixed|created|removed|changed|implemented|moved|refactored|renamed|replaced)\b")),
    ("person", _compile(r"\b(?:i|we|our|my)\b")),
    ("condition", _compile(r"\b(?:if|when|whenever|unless|until|before|after|while)\b")),
    ("request", _compile(r"\b(?:please|can you|could you|can we|would you|make sure|check|add|fix|implement|run|create)\b")),
    ("number", _compile(r"\b\d+\b")),
)  # fmt: skip
MAX_COUNT = 3
FEATURES = (
    "any", "user", *(f"to {high} words" for _, high in _LENGTH_RANGES), *(name for name, _ in _COUNTED),
    "dense", "of the prompt", "quotation", "long turn", "long turn's point",
)  # fmt: skip
#: A turn with this many candidates counts as long; more make no difference.
LONG_TURN = 30


def measure_features(passage: Passage, *, user: bool, prompt_content: frozenset[str], among: int) -> list[float]:
    """Measures FEATURES, each 0-1, of a passage that is one of `among` candidates in its turn."""
    size, turn_length = len(passage.content), min(among, LONG_TURN) / LONG_TURN
    return [
        1.0,
        float(user),
        *((min(size, high) - low) / (high - low) if size > low else 0.0 for low, high in _LENGTH_RANGES),
        *(min(MAX_COUNT, len(pattern.findall(passage.text))) / MAX_COUNT for _, pattern in _COUNTED),
        size / max(1, len(words_of(passage.text))),
        share(passage.content, prompt_content),
        float('"' in passage.text),
        turn_length,
        turn_length * passage.has_good_title,
    ]


def score_features(values: Sequence[float], weights: Weights) -> float:
    """Returns the score of a passage with these FEATURES, 0-1."""
    return _logistic(sum(weights.passage[name] * value for name, value in zip(FEATURES, values, strict=True)))


def _logistic(total: float) -> float:
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))


#: Most words of a sentence that are read.
MAX_WORDS = 40
#: The lengths in words that the features of a sentence tell apart.
LENGTHS = (4, 8, 12, 18, 26)
_WORD = re.compile(r"[a-z][a-z']*|\d+|[?`]")


def sentence_features(sentence: str) -> set[str]:
    """Returns the features of a sentence: its words, its first word (`^word`), and its length (`>size`)."""
    words = _WORD.findall(sentence.lower().replace("’", "'"))[:MAX_WORDS]
    present = {"0" if word.isdigit() else word for word in words}
    return present | {f"^{''.join(words[:1])}"} | {f">{size}" for size in LENGTHS if len(words) > size}


def certainty(sentence: str, weights: Weights) -> float:
    """How likely, 0-1, the sentence states something that lasts."""
    weight_of = weights.assertion
    return _logistic(weight_of[""] + sum(weight_of.get(feature, 0.0) for feature in sentence_features(sentence)))
