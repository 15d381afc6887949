"""Steps that several tasks share: batches, walks over rows, blocking work on a thread, the database's cleansing."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterator
from itertools import count
from typing import TypeVar

from csmd import cache, machine
from csmd.daemon.context import Context, Progress
from csmd.errors import NoThread, StoreError

log = logging.getLogger(__name__)
T = TypeVar("T")
#: Batches of a task's work that end in a value.
Batches = Generator[Progress, None, T]


def repeat_batches(step: str, batch: Callable[[], int], total: int = 0) -> Batches[None]:
    """Does batches, which return how many rows they processed, until one finds none; there are about `total` rows.

    Rows that arrive meanwhile are processed too, up to three times `total`, so that running sessions do not prolong it
    forever.
    """
    processed = 0
    if total:
        yield {"step": step, "done": processed, "total": total}
    while (not total or processed < 3 * total) and (batch_count := batch()):
        processed += batch_count
        shown = min(processed, total) if total else processed
        yield {"step": step, "done": shown, **({"total": total} if total else {})}


def seconds_since(began: float) -> float:
    """Returns the seconds since a monotonic time, in milliseconds' precision."""
    return round(time.monotonic() - began, 3)


#: Attempts to empty the write-ahead log while readers are active.
CLEANSE_TRIES = 50


def walk_parts(part: Callable[[int], tuple[int | None, T]]) -> Iterator[T]:
    """Processes rows in parts: `part` takes a row key and returns (the next row key, None at the end; a result)."""
    after: int | None = 0
    while after is not None:
        after, result = part(after)
        yield result


def cleanse(context: Context) -> Batches[None]:
    """Rewrites the database file when no reader is active, and empties the caches of functions over its texts."""
    for _ in range(CLEANSE_TRIES):
        yield {"step": "cleaning"}
        if context.store.cleanse():
            cache.clear()
            return
    hint = "close programs that have csmd.db open, then `csmd restart` to finish the purge"
    raise StoreError("the write-ahead log could not be emptied: another program keeps reading the database", hint=hint)


#: How long a step waits for a thread's result before other work has its turn.
POLL_S = 0.05
#: How long starting a thread is attempted.
THREAD_START_TIMEOUT_S = 10.0


def run_in_thread(work: Callable[[], T]) -> Generator[None, None, T]:
    """Does blocking work on a thread of its own, in steps; returns its result or raises its error.

    NoThread, with nothing begun, if none can be started for THREAD_START_TIMEOUT_S.
    """
    until = time.monotonic() + THREAD_START_TIMEOUT_S
    while (poll := machine.start_in_thread(lambda: (work(),))) is None:
        if time.monotonic() >= until:
            log.warning("no thread could be started for a request")
            raise NoThread("no thread could be started; nothing was sent", hint=machine.THREADS_HINT)
        time.sleep(POLL_S)
        yield
    for number in count(1):
        if (result := poll(number * POLL_S)) is not None:
            return result[0]
        yield
    raise AssertionError("unreachable")
