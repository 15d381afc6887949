"""A store of before passages gets them in the background: filled in small writes, embedded like any, then the old index goes.

Killed anywhere it goes on where its last write was. Until it is through, turns are searched as well.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator

from csmd.daemon.context import Context
from csmd.errors import StoreError
from csmd.store import passage_index, vectors

#: How long a step goes on: what happens meanwhile waits so long at most.
SLICE_S = 0.2
#: What is left free on the disk besides.
FREE_BYTES = 100_000_000
MB = 1_000_000


class Reindex:
    """Owns the way of a store from an index of turns to one of passages; only the steward's thread uses it."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._needed = 0
        """Bytes that the index of passages will take, by that of turns; 0 while it was not looked at."""
        self._through = False

    def step(self) -> int:
        """Goes on for a moment, or until somebody waits; how many turns or parts were gone through."""
        total, until = 0, time.monotonic() + SLICE_S
        while not self._context.stopping and (done := self._part()):
            total += done
            if time.monotonic() >= until or self._context.somebody_waits():
                break
        return total

    def finish(self) -> Iterator[int]:
        """Gives every turn its passages, a part at a time, for who waits for it."""
        while done := self._part():
            yield done

    def _part(self) -> int:
        """One write; 0 when nothing is left to be done now. StoreError where the disk has no room for it."""
        if self._through:
            return 0
        store = self._context.store
        filled, until = store.read(passage_index.progress)
        if filled < until:
            if not filled:
                self._look_for_room()
            return store.write(passage_index.fill)
        name = self._context.model_name()
        if name is not None:
            model = store.read(lambda rows: vectors.model_seq(rows, name))
            if store.read(lambda rows: vectors.is_any_left(rows, model)):
                return 0
        done = store.write(passage_index.drop_turn_index)
        self._through = not done
        return done

    def _look_for_room(self) -> None:
        store = self._context.store
        self._needed = self._needed or store.read(passage_index.room_needed)
        free = shutil.disk_usage(store.path.parent).free
        if free < self._needed + FREE_BYTES:
            raise StoreError(
                f"past sessions are not indexed anew: that takes {(self._needed + FREE_BYTES) / MB:.0f} MB free on the disk "
                f"of {store.path.parent}, and {free / MB:.0f} MB are; search goes on as before, and it is tried again",
                hint="free some space on that disk",
            )
