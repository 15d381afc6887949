"""What the assistant is told anyway, by instruction files and its own memory's index; pure.

A memory that stands there already is not told again. One that says more, or something else in nearly the same
words, is: a repetition costs tokens, a lost correction costs trust.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from csmd import text
from csmd.cache import cached

#: Fewer words than this stand in many a sentence that says something else.
LEAST_WORDS = 3
#: Words that make a difference of the order of the others, beside those that turn a sentence round.
ORDERING = frozenset({"from", "to", "into", "rather", "but"})
#: A line that is longer is a paste, not an instruction.
LONGEST_LINE = 2000


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence: what it is compared by, its content words in order, and whether their order matters."""

    gist: text.Gist
    order: tuple[str, ...]
    ordered: bool


class Known:
    """The sentences of instructions, found by their words; taken apart further when something is like them."""

    def __init__(self, sentences: Sequence[str]) -> None:
        self._sentences = sentences
        self._with: dict[str, list[int]] = {}
        stems: dict[str, str] = {}
        for number, sentence in enumerate(sentences):
            for word in set(text.content_words(sentence)):
                stem = stems.get(word) or stems.setdefault(word, text.stem(word))
                self._with.setdefault(stem, []).append(number)

    def says(self, statement: str) -> bool:
        """Whether the instructions say what `statement` says, or more in the same words; each of its sentences."""
        asked = [one for part in text.sentences(text.squeeze(statement)) if (one := said(part)).gist.stems]
        return bool(asked) and all(self._says(one) for one in asked)

    def _says(self, asked: Said) -> bool:
        shared = Counter(number for stem in asked.gist.stems for number in self._with.get(stem, ()))
        enough = text.SAME_SHARE * len(asked.gist.stems)
        return any(count >= enough and _holds(said(self._sentences[number]), asked) for number, count in shared.items())


def _holds(told: Said, asked: Said) -> bool:
    if told.gist.turns != asked.gist.turns:
        return False
    contained = len(asked.gist.stems) >= LEAST_WORDS and asked.gist.stems <= told.gist.stems
    replaced = asked.gist.stems - told.gist.stems and told.gist.stems - asked.gist.stems
    same = not replaced and text.alike(asked.gist, told.gist, share=text.SAME_SHARE)
    if not (contained or same):
        return False
    return not (told.ordered or asked.ordered) or _in_order(asked.order, told.order)


def _in_order(some: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Whether the words that both have come in one in the order of the other; in between may stand more."""
    both = set(some) & set(others)
    left = [word for word in some if word in both]
    right = [word for word in others if word in both]
    shorter, longer = sorted((left, right), key=len)
    rest = iter(longer)
    return all(word in rest for word in shorter)


@cached(512)
def said(sentence: str) -> Said:
    """A sentence as it is compared."""
    gist = text.gist(sentence)
    words = text.words(sentence.replace("\u2019", "'"))
    order = tuple(stem for word in words if (stem := text.stem(word)) in gist.stems)
    return Said(gist, order, bool(gist.turns) or not ORDERING.isdisjoint(words))


def known(texts: Sequence[str]) -> Known:
    """What these texts say, sentence by sentence; the same texts are taken apart once."""
    return _known(tuple(texts))


@cached(8)
def _known(texts: tuple[str, ...]) -> Known:
    lines = [line for body in texts for line in text.lines_of_prose(body) if len(line) <= LONGEST_LINE]
    return Known(list(dict.fromkeys(sentence for line in lines for sentence in text.sentences(line))))
