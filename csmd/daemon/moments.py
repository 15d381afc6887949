"""Long work, a moment at a time: between two moments whoever does it does what is more urgent."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

#: Others wait so long, and as long as the longest step takes.
MOMENT_S = 0.01


@dataclass(frozen=True, slots=True)
class Ended(Generic[T]):
    """What long work came to."""

    value: T


def a_moment(steps: Generator[None, None, T]) -> Ended[T] | None:
    """Goes on for a moment, one step at least; None while there is more to do."""
    until = time.monotonic() + MOMENT_S
    try:
        next(steps)
        while time.monotonic() < until:
            next(steps)
    except StopIteration as end:
        return Ended(end.value)
    return None


def whole(steps: Generator[None, None, T]) -> T:
    """Does all of it at a stretch, where nobody else waits."""
    while (ended := a_moment(steps)) is None:
        pass
    return ended.value
