"""How many tokens fit into a model's context, by the beginning of its id; the host does not write it anywhere."""

from __future__ import annotations

USUAL, LARGE = 200_000, 1_000_000
#: Beginning of a model's id -> its window; the first that fits. Every other model has the usual one.
WINDOWS: tuple[tuple[str, int], ...] = (
    ("claude-2.0", 100_000),
    ("claude-instant", 100_000),
)
#: What the host puts behind the id of a model that is used with the large window.
MARK = "[1m]"


def window(model: str, used: int) -> int:
    """The window of a model; where more is in use than fits into the usual one, it is the large one."""
    found = next((size for beginning, size in WINDOWS if model.startswith(beginning)), USUAL)
    return LARGE if MARK in model or used > found else found
