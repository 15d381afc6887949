"""The one fit of the trained files: logistic regression held back towards 0, by Newton's method."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]


def newton(matrix: Array, wanted: Array, counts: Array, held_back: Array, *, rounds: int, until: float) -> Array:
    """The weights of the columns: of rows that are `wanted` 0-1 and count so much each; stops at steps below `until`."""
    weights = np.zeros(matrix.shape[1])
    for _ in range(rounds):
        guessed = 1 / (1 + np.exp(-matrix @ weights))
        slope = matrix.T @ (counts * (guessed - wanted)) + held_back * weights
        curve = (matrix * (counts * guessed * (1 - guessed))[:, None]).T @ matrix + np.diag(held_back)
        step = np.linalg.solve(curve, slope)
        weights -= step
        if abs(step).max() < until:
            break
    return weights
