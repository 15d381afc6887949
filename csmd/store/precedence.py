"""What somebody waits for goes first: the background's writes are short, and it stands still while a hook is answered.

A hook's event waits for the write that is under way, and each of its own thirty statements for the interpreter. How long
a write is goes by the time of the processor and not by rows: one row costs what ten others do, and a machine that is busy
elsewhere makes no more writes of the same work. Nobody stands still for ever: the background has half of the time at least.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

#: An item may take as long as it takes: a write is so much longer than this.
SHORT_S = 0.003
#: The background stands still so long at most, and no longer than it worked before.
PATIENCE_S = 0.02
#: What worked no longer than this goes on: to stand still so often would cost more than it gives.
TURN_S = 0.002


def fitting(items: Iterable[T]) -> Iterator[T]:
    """Those of the items, one at least, that a short write has time for; the others are the next write's."""
    began = time.thread_time()
    for item in items:
        yield item
        if time.thread_time() - began > SHORT_S:
            return


class Precedence:
    """Owns whether a hook is being answered; the socket's thread says so, the background asks."""

    def __init__(self) -> None:
        self._free = threading.Event()
        self._free.set()
        self._resumed = time.monotonic()

    def say(self, *, answering: bool) -> None:
        """Says whether a hook is being answered."""
        if answering == self._free.is_set():
            (self._free.clear if answering else self._free.set)()

    def give_way(self) -> None:
        """Stands still while a hook is answered, for a moment at most."""
        if self._free.is_set():
            return
        worked = time.monotonic() - self._resumed
        if worked >= TURN_S:
            self._free.wait(min(worked, PATIENCE_S))
            self._resumed = time.monotonic()

    def giving_way(self, items: Iterable[T]) -> Iterator[T]:
        """The items, before each of which a hook is let pass."""
        for item in items:
            self.give_way()
            yield item
