"""How well a statement bears on a question: a logistic score; pure.

The weights are fitted by tests/bench/train_bearing.py (csmd/data/bearing.json; docs/extending.md). No feature
depends on how long a prompt is. Without an embedding model the features of meaning are absent, and other weights hold.
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
from csmd.text import tokens

#: What marks an identifier, a file or a value: code, a dotted or snake name, a hump, a digit.
_IDENTIFIER = re.compile(r"`[^`\n]+`|\w[_./]\w|[a-z][A-Z]|\d")
#: Words that say how things have to be, in some languages.
_BINDING = frozenset(
    """never always only must not no instead everywhere nowhere without because every all
    nie nur immer kein keine keinn keinm keinr keins keinen keinem keiner keines nicht ohne weil
    jamais toujours sans pas nunca siempre solo sin porque""".split()
)
_RUN = re.compile(r"\w+")
#: The end of `don't`, and of any word that ends as it does without its mark.
_NEGATED = re.compile(r"n['’]?t\b")
#: So many words that a passage holds beside those asked for make it tell something.
TELLING_WORDS = 4
#: Of a session so many of its best passages say how much of it is about what is asked.
BEST_OF_SESSION = 3
#: What a passage's two parts, words and meaning, count when the pool is thinned out.
WORDS_SHARE, NEAR_SHARE, SESSION_SHARE = 0.4, 0.3, 0.3
#: A vector of unit length times this, as int8 (embedding/worker.py).
VECTOR_SCALE = 127 / 0.25
#: Words that are as rare as can be beyond which more of them say nothing further.
MOST_SHARED = 3.0
#: So many passages a home is taken to have at least.
LEAST_PASSAGES = 2000
#: In so many sessions half as many good matches come by chance as in very many.
FEW_SESSIONS = 4
#: Of the best score of a list so much is worth nothing at most.
ZERO_AT = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is looked for: stems of its words, each with its rarity (0 everywhere, 1 once in the home).

    `sessions` is how many there are to look through: the more, the likelier is a good match by chance.
    """

    rarity: Mapping[str, float]
    sessions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A statement with what was measured of it: cosine of its meaning (None without a model), rare words that it shares.

    `near_*` are the best of itself and the passages beside it, `session_*` the mean of the best of its session; `kept`: a memory states
    it; `by_user`: a user said it.
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
    """How much a word says that `count` of `of` passages hold, 0-1.

    A young home is taken for one of LEAST_PASSAGES: what was said in it once is no common word.
    """
    of = max(of, LEAST_PASSAGES)
    return max(0.0, min(1.0, math.log((of + 1) / (count + 0.5)) / math.log(of + 2)))


def shared(said: str, asked: Asked) -> float:
    """How much of what is asked a statement holds: the sum of the rarity of its words."""
    return sum(asked.rarity[stem] for stem in asked.rarity.keys() & stems(said))


def features(match: Match, asked: Asked) -> dict[str, float]:
    """The features of a statement, each about 0-1."""
    said = stems(match.text)
    held = [asked.rarity[stem] for stem in asked.rarity.keys() & said]
    new = len(said - asked.rarity.keys())
    found = {
        "shared": min(MOST_SHARED, sum(held)) / MOST_SHARED,
        "near shared": min(MOST_SHARED, match.near_shared) / MOST_SHARED,
        "session shared": min(MOST_SHARED, match.session_shared) / MOST_SHARED,
        "rarest": max(held, default=0.0),
        "user": float(match.by_user),
        "asks": float(match.text.rstrip("\"')*_` ").endswith(("?", "？"))),
        "binding": min(3, _binding(match.text)) / 3,
        "identifiers": float(names_something(match.text)),
        "telling": min(TELLING_WORDS, new) / TELLING_WORDS,
        "kept": float(match.kept),
        "few": 1 / (1 + asked.sessions / FEW_SESSIONS),
    }
    if match.meaning is not None:
        found |= {
            "meaning": match.meaning,
            "near meaning": match.near_meaning,
            "session meaning": match.session_meaning,
        }
    return found


def names_something(said: str) -> bool:
    """Whether a text has code, a file, an identifier or a value in it."""
    return _IDENTIFIER.search(said) is not None


def _binding(said: str) -> int:
    """How many words say how things have to be."""
    lower = said.lower()
    negated = sum(at.start() > 0 and _RUN.match(lower, at.start() - 1) is not None for at in _NEGATED.finditer(lower))
    return sum(map(_BINDING.__contains__, _RUN.findall(lower))) + negated


def bearing(found: Mapping[str, float]) -> float:
    """How surely a statement with these features bears on what is asked, 0-1; 0.5 is where csmd begins to tell it."""
    return logistic(weights()["meaning" if "meaning" in found else "words"], found)


def logistic(weight: Mapping[str, float], found: Mapping[str, float]) -> float:
    """The logistic of a weighted sum; `""` is the intercept, a feature without a weight counts nothing."""
    total = weight[""] + sum(weight.get(name, 0.0) * value for name, value in found.items())
    return 1.0 / (1.0 + math.exp(-total)) if total > -700 else 0.0


@cache
def weights() -> dict[str, dict[str, float]]:
    """The fitted weights: of `meaning` (with a model), `words` (without), `thread` and `thread words` (csmd.recall.threads)."""
    return dict(wire.loads(resources.files("csmd.data").joinpath("bearing.json").read_bytes())["weights"])


def cosine(squared_distance: float) -> float:
    """The cosine of two unit vectors from the squared distance of their int8 forms."""
    return 1.0 - squared_distance / (2 * VECTOR_SCALE * VECTOR_SCALE)


def normalised(scores: Mapping[int, float]) -> dict[int, float]:
    """Scores moved to 0-1; a single score is 1, and 0 is the least of them or ZERO_AT of the greatest."""
    if not scores:
        return {}
    high = max(scores.values())
    low = min(*scores.values(), ZERO_AT * high)
    if high <= low:
        return dict.fromkeys(scores, 1.0)
    return {key: (value - low) / (high - low) for key, value in scores.items()}


def best_mean(values: Sequence[float], *, of: int = BEST_OF_SESSION) -> float:
    """The mean of the best of a session that has `of` passages; those that were not found count 0."""
    best = sorted(values, reverse=True)[:BEST_OF_SESSION]
    return sum(best) / max(1, min(BEST_OF_SESSION, of))


@cached(1024)
def stems(said: str) -> frozenset[str]:
    """The stems by which a statement is compared with a question."""
    return frozenset(map(tokens.stem, tokens.query_terms(said)))
