"""Tells work that grows with its text from work that grows faster."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable


def assert_in_proportion(work: Callable[[str], object], text_of: Callable[[int], str], *, size: int = 2048) -> None:
    """Fails where a text of eight times the length takes much more than eight times as long; a square would take 64."""
    short, long = text_of(size), text_of(8 * size)
    for _ in range(4):
        if seconds(work, long) < 8 * 3 * max(seconds(work, short), 0.001):  # below a millisecond the clock says nothing
            return
    raise AssertionError(f"{short[:60]!r}: its time grows faster than its length")


def seconds(work: Callable[[str], object], text: str) -> float:
    """Of the processor, so that what else runs does not count."""
    gc.disable()  # its rounds depend on everything else that is alive
    begin = time.process_time()
    work(text)
    took = time.process_time() - begin
    gc.enable()
    return took
