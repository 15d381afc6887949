"""Caches of pure functions; a purge empties all of them, since they hold the user's text."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_clearing: list[Callable[[], None]] = []


def cached(entries: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Keeps the last `entries` answers of a function until `clear`."""

    def keep(function: Callable[P, T]) -> Callable[P, T]:
        kept = lru_cache(maxsize=entries)(function)
        _clearing.append(kept.cache_clear)
        return kept  # type: ignore[return-value]

    return keep


def clear() -> None:
    """Empties every cache."""
    for clear_cache in _clearing:
        clear_cache()
