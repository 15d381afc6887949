"""The trained numbers that choosing reads: csmd/data/chooser.json, 10 KB, described in docs/extending.md."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from csmd import wire


@dataclass(frozen=True, slots=True)
class Weights:
    """What a passage must be worth (`bar`, 0-1), the weight of each of its features, and those of a sentence's signs."""

    bar: float
    passage: Mapping[str, float]
    assertion: Mapping[str, float]


@cache
def shipped() -> Weights:
    """The weights that csmd brings along."""
    held = wire.loads(resources.files("csmd.data").joinpath("chooser.json").read_bytes())
    return Weights(float(held["bar"]), dict(held["passage"]), dict(held["assertion"]))


def squashed(total: float) -> float:
    """A sum of weights as a share, 0-1."""
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))
