"""What a unit is worth: a small linear model over its features, and the tables alone where there is no model; pure.

The weights stand in worth.json, written by tests/bench/train_worth.py and described in docs/model-card.md; a file that
is missing or is not what it should be makes the choice fall back to the tables, which `Worth.model` tells. Values are
0-1 either way and are compared with the bars: what a unit must reach to become a statement.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from csmd import wire
from csmd.distill.features import Features
from csmd.errors import BadInput

WEIGHTS = Path(__file__).with_name("worth.json")
FORMAT = 1
#: Where there is no model, set by hand: the clearest sentence's value by the tables, and beside it what anybody would look
#: at. A sentence of eight to thirty words says something; a name, a word of the prompt's or of the rest of the turn ties
#: it to the work; what stands late in a long turn, behind many calls, or where tests and files are listed, says less.
TABLES_ALONE: Mapping[str, float] = {
    "any": -1.4,
    "tables": 1.0,
    "to 8 words": 0.5,
    "to 16 words": 1.0,
    "to 28 words": 0.5,
    "code": 0.5,
    "of the prompt": 0.5,
    "said elsewhere": 0.5,
    "place": -0.25,
    "turn's length": -0.5,
    "tools": -0.5,
    "poor section": -0.5,
}


@dataclass(frozen=True, slots=True)
class Bars:
    """What a unit must be worth: of a prompt, of a reply, of a reply where the prompt gave a statement, of work in between,
    and of a turn that gave one already.
    """

    prompt: float
    reply: float
    reply_too: float
    midway: float
    further: float


@dataclass(frozen=True, slots=True)
class Worth:
    """How worth is told, and the bars that go with it; `model` is "" where the tables decide alone."""

    model: str
    weights: Mapping[str, float]
    bars: Bars

    def of(self, found: Features) -> float:
        """The worth, 0-1, of a unit with these features."""
        weights = self.weights
        total = sum([weights[name] * value for name, value in found.items() if name in weights])
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))


#: Where there is no model.
TABLES = Worth(
    model="",
    weights=TABLES_ALONE,
    bars=Bars(prompt=0.5, reply=0.5, reply_too=0.85, midway=0.6, further=0.75),
)


@cache
def shipped() -> Worth:
    """The model that csmd brings along, or the tables."""
    return load(WEIGHTS)


def load(path: Path) -> Worth:
    """The model in a file; TABLES where there is none, or none of this format."""
    try:
        held = wire.loads(path.read_bytes())
        if held["format"] != FORMAT:
            return TABLES
        weights = {str(name): float(weight) for name, weight in held["weights"].items()}
        bars = Bars(**{name: float(bar) for name, bar in held["bars"].items()})
        return Worth(model=str(held["name"]), weights=weights, bars=bars)
    except (OSError, BadInput, ValueError, KeyError, TypeError, AttributeError):
        return TABLES
