"""Rates the relevance of a statement to a question by a logistic score; pure except for reading the weights.

The weights in csmd/data/relevance.json are fitted by tests/bench/train_relevance.py (docs/extending.md) and read once. No
feature depends on the length of a prompt. Without an embedding model there are no features of meaning, and other weights
apply.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from csmd import wire
from csmd.cache import cached
from csmd.text import search_terms, sentence, tokens

#: An identifier, a file or a value: code, a dotted, snake or camel case name, a digit.
_IDENTIFIER = re.compile(r"`[^`\n]+`|\w[_./]\w|[a-z][A-Z]|\d")
#: Words that state an obligation, in some languages.
_BINDING = frozenset(
    """never always only must not no instead everywhere nowhere without because every all
    nie nur immer kein keine keinn keinm keinr keins keinen keinem keiner keines nicht ohne weil
    jamais toujours sans pas nunca siempre solo sin porque""".split()
)
_WORD = re.compile(r"\w+")
#: The end of `don't`, with or without an apostrophe.
_NEGATED = re.compile(r"n['’]?t\b")
#: Words beyond those of the question that make a passage fully informative.
TELLING_WORDS = 4
#: Least sum of the rarities of a question's words: a single common word does not cover the question.
MIN_COVERED = 1.0
#: Weight of a letter pair in a syllabic script, in which two letters are about half a word.
SYLLABLES_WEIGHT = 0.5
_SYLLABLES = re.compile("[\u3040-\u30ff\uac00-\ud7af]+")
#: Words that make a line fully informative.
TELLING_LINE = 20
#: Best passages of a session that measure how much of it is about the question.
BEST_OF_SESSION = 3
#: Weights of the selection from the pool: words (the rest is meaning), neighbouring passages, the session.
WORDS_WEIGHT = 0.4
NEAR_WEIGHT = 0.3
SESSION_WEIGHT = 0.3
#: Scale of the int8 form of a vector of unit length (embedding/worker.py).
VECTOR_SCALE = 127 / 0.25
#: The sum of rarities above which further shared words add nothing.
MAX_SHARED = 3.0
#: A home with fewer passages counts as one with this many.
MIN_PASSAGES = 2000
#: A score of at most this share of the best one counts 0.
ZERO_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchTerms:
    """The stems of a question, each with its rarity (0: in every passage, 1: once in the home).

    `sessions` is the number of searched sessions: more sessions make a good match by chance more likely. `orders` are the
    stems that name an action and not its object.
    """

    rarity: Mapping[str, float]
    sessions: int = 0
    orders: frozenset[str] = frozenset()
    asks: bool = False

    @property
    def subject(self) -> Mapping[str, float]:
        """Returns the terms that name the subject of a prompt, with their rarity."""
        return {stem: rarity for stem, rarity in self.rarity.items() if stem not in self.orders}


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A statement with its measurements: `meaning` is its cosine, None without a model.

    `*_shared` are sums of rarities of shared words. `near_*` are the best values of the passage and its neighbours,
    `session_*` the mean of the best of its session. `kept`: a memory states it; `by_user`: a user said it.
    """

    text: str
    by_user: bool
    meaning: float | None = None
    near_shared: float = 0.0
    near_meaning: float = 0.0
    session_shared: float = 0.0
    session_meaning: float = 0.0
    kept: bool = False


def rarity(count: int, of: int) -> float:
    """Returns the rarity of a word in `count` of `of` passages, 0-1.

    A young home counts as one of MIN_PASSAGES: a word that was used in it once is not common.
    """
    of = max(of, MIN_PASSAGES)
    return max(0.0, min(1.0, math.log((of + 1) / (count + 0.5)) / math.log(of + 2)))


def shared_rarity(text: str, terms: SearchTerms) -> float:
    """Returns the sum of the rarities of the terms in a text."""
    return sum(terms.rarity[stem] for stem in terms.rarity.keys() & stems(text))


def cap_shared(shared: float) -> float:
    """Converts a sum of rarities to a feature, 0-1."""
    return min(MAX_SHARED, shared) / MAX_SHARED


def features(match: Match, terms: SearchTerms) -> dict[str, float]:
    """Returns the features of a statement, each about 0-1; those of meaning only with a model."""
    words = stems(match.text)
    rarities = [terms.rarity[stem] for stem in terms.rarity.keys() & words]
    values = {
        "shared": cap_shared(sum(rarities)),
        "near shared": cap_shared(match.near_shared),
        "session shared": cap_shared(match.session_shared),
        "rarest": max(rarities, default=0.0),
        "user": float(match.by_user),
        "asks": float(match.text.rstrip("\"')*_` ").endswith(("?", "？"))),
        "binding": min(3, _count_binding(match.text)) / 3,
        "identifiers": float(names_something(match.text)),
        "telling": min(TELLING_WORDS, len(words - terms.rarity.keys())) / TELLING_WORDS,
        "kept": float(match.kept),
    }
    if match.meaning is not None:
        values["meaning"] = match.meaning
        values["near meaning"] = match.near_meaning
        values["session meaning"] = match.session_meaning
    return values


def line_features(
    text: str, terms: SearchTerms, features_of_passage: Mapping[str, float], *, by_user: bool, replaced: str = ""
) -> dict[str, float]:
    """Returns the features of a line, each 0-1; those of its passage are warm, led and, with a model, meaning.

    The words of the statement that it `replaced` count as its own.
    """
    words = stems(text)
    all_words = words | stems(replaced)
    subject = terms.subject or terms.rarity
    common = {stem: rarity for stem, rarity in terms.rarity.items() if stem in all_words}
    shared = sum(rarity * (SYLLABLES_WEIGHT if _SYLLABLES.fullmatch(stem) else 1.0) for stem, rarity in common.items())
    return {
        "warm": 0.0,
        "led": 0.0,
        **features_of_passage,
        "shared": cap_shared(shared),
        "covers": sum(common[stem] for stem in common.keys() & subject) / max(MIN_COVERED, sum(subject.values())),
        "user": float(by_user),
        "lasting": float(bool(sentence.parse(text, "user" if by_user else "assistant").lasting)),
        "telling": min(TELLING_LINE, len(words)) / TELLING_LINE,
    }


def rate(model: str, values: Mapping[str, float]) -> float:
    """Returns the probability that a prompt needs a "line" ("line words" without a model), or any line ("prompt")."""
    return logistic(weights()[model], values)


def names_something(text: str) -> bool:
    """Whether a text contains code, a file, an identifier or a value."""
    return _IDENTIFIER.search(text) is not None


def _count_binding(text: str) -> int:
    """Counts the words that state an obligation."""
    lower = text.lower()
    starts = (match.start() for match in _NEGATED.finditer(lower))
    negated = sum(start > 0 and _WORD.match(lower, start - 1) is not None for start in starts)
    return sum(map(_BINDING.__contains__, _WORD.findall(lower))) + negated


def rate_relevance(values: Mapping[str, float]) -> float:
    """Rates the relevance of a statement with these features, 0-1, relative to other results."""
    return logistic(weights()["meaning" if "meaning" in values else "words"], values)


def logistic(weight: Mapping[str, float], values: Mapping[str, float]) -> float:
    """Returns the logistic of a weighted sum; `""` is the intercept, a feature without a weight is ignored."""
    total = weight[""] + sum(weight.get(name, 0.0) * value for name, value in values.items())
    return 1.0 / (1.0 + math.exp(-total)) if total > -700 else 0.0


@cache
def weights() -> dict[str, dict[str, float]]:
    """Reads the fitted weights of results (`meaning` with a model, `words` without), threads, lines and prompts."""
    return dict(wire.loads(resources.files("csmd.data").joinpath("relevance.json").read_bytes())["weights"])


def cosine(squared_distance: float) -> float:
    """Returns the cosine of two unit vectors from the squared distance of their int8 forms."""
    return 1.0 - squared_distance / (2 * VECTOR_SCALE * VECTOR_SCALE)


def normalised(scores: Mapping[int, float]) -> dict[int, float]:
    """Scales scores to 0-1: 0 is the least score, or ZERO_SHARE of the greatest; a single score is 1."""
    high = max(scores.values(), default=0.0)
    low = min((*scores.values(), ZERO_SHARE * high))
    return {key: (score - low) / (high - low) if high > low else 1.0 for key, score in scores.items()}


def best_mean(values: Sequence[float], *, of: int = BEST_OF_SESSION) -> float:
    """Returns the mean of the best values of a session with `of` passages; missing ones count 0."""
    return sum(sorted(values, reverse=True)[:BEST_OF_SESSION]) / max(1, min(BEST_OF_SESSION, of))


@cached(1024)
def stems(text: str) -> frozenset[str]:
    """Returns the stems by which a statement is compared with a question."""
    return frozenset(map(tokens.stem, search_terms.query_terms(text)))
