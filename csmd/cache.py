"""Caches of pure functions; a purge empties all of them, since they hold the user's text."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_clearing: list[Callable[[], None]] = []


def cached(entries: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Caches the last `entries` results of a function until `clear`."""

    def keep(function: Callable[P, T]) -> Callable[P, T]:
        kept = lru_cache(maxsize=entries)(function)
        _clearing.append(kept.cache_clear)
        return kept  # type: ignore[return-value]

    return keep


def cached_short(entries: int, *, characters: int) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """Caches the last `entries` results of a function of a text, for texts up to a number of characters."""

    def keep(function: Callable[[str], T]) -> Callable[[str], T]:
        of_short = cached(entries)(function)
        return wraps(function)(lambda text: of_short(text) if len(text) <= characters else function(text))

    return keep


def clear() -> None:
    """Empties every cache."""
    for clear_cache in _clearing:
        clear_cache()
