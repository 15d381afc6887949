"""How likely a user's sentence, by itself, states something that holds beyond the moment; pure.

A logistic regression over which of the language's common words a sentence has, which begins it, and how long it is.
The weights stand in csmd/data/chooser.json (tests/bench/train_chooser.py; docs/model-card.md).
"""

from __future__ import annotations

import re

from csmd.extraction.weights import Weights, squashed

#: More of a sentence is not read: words, and the steps of its length.
MAX_WORDS, LENGTHS = 40, (4, 8, 12, 18, 26)

_WORD = re.compile(r"[a-z][a-z']*|\d+|[?`]")


def signs(sentence: str) -> set[str]:
    """What a sentence shows: its words, the first of them once more, and how long it is."""
    found = _WORD.findall(sentence.lower().replace("’", "'"))[:MAX_WORDS]
    first = f"^{found[0]}" if found else "^"
    return (
        {"0" if word.isdigit() else word for word in found}
        | {first}
        | {f">{size}" for size in LENGTHS if len(found) > size}
    )


def certainty(sentence: str, weights: Weights) -> float:
    """How likely, 0-1, the sentence states something that lasts."""
    held = weights.assertion
    return squashed(held[""] + sum(held.get(sign, 0.0) for sign in signs(sentence)))
