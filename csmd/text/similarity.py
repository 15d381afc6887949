"""Whether two texts say the same; pure."""

from __future__ import annotations

from dataclasses import dataclass

from csmd.cache import cached
from csmd.text.tokens import content_of, stem, words_of

#: Small words that turn a sentence round: two texts that differ in them do not say the same.
TURNING_WORDS = frozenset(
    "not no nor never none cannot without before after on off instead than only until unless except over under".split()
)
SAME_SHARE = 0.8
#: Texts up to this length are memories, sentences and messages, which are compared again and again.
GIST_KEPT = 600


@dataclass(frozen=True, slots=True)
class Gist:
    """What two texts are compared by: the stems of their content words, and the small words that turn a meaning round."""

    stems: frozenset[str]
    turns: tuple[str, ...]


def gist(text: str) -> Gist:
    """What a text is compared by; a short one, like a memory's, is compared with many and kept for the next."""
    return _gist_of_short(text) if len(text) <= GIST_KEPT else _gist(text)


def _gist(text: str) -> Gist:
    turns: list[str] = []
    others: list[str] = []
    for word in words_of(text.replace("\u2019", "'")):
        if not turns_round(word):
            others.append(word)
        else:
            turns.append("not" if word.endswith("n't") or word == "cannot" else word)
    return Gist(frozenset(map(stem, content_of(others))), tuple(sorted(turns)))


_gist_of_short = cached(2048)(_gist)


def turns_round(word: str) -> bool:
    """Whether a word turns the meaning of the others round: `not`, `before`, `off`."""
    return word in TURNING_WORDS or word.endswith("n't")


def alike(one: Gist, other: Gist, *, share: float) -> bool:
    """Whether two texts have at least `share` of their content words in common and nothing turned round."""
    if not one.stems or one.turns != other.turns:
        return False
    return len(one.stems & other.stems) >= share * len(one.stems | other.stems)


def says_the_same(one: str, other: str) -> bool:
    """Whether one text repeats the other: a word more or less, but none in another's place and nothing turned round.

    "Use two spaces" and "use four spaces" share most of their words and do not say the same.
    """
    left, right = gist(one), gist(other)
    replaced = bool(left.stems - right.stems) and bool(right.stems - left.stems)
    return not replaced and alike(left, right, share=SAME_SHARE)
