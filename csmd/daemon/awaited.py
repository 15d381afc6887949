"""Turns that a hook reported and no transcript has told yet: a few of them are looked at in each sweep, each in its turn.

Of a session without a transcript thousands may wait for good; hooks wait behind whatever is written about them.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from csmd.daemon.now import iso
from csmd.store import events
from csmd.store.core import Store

#: How long a hook's turn waits for the transcript before it is judged.
PROVISIONAL_S = 120.0
#: Turns that one read or write looks at (each takes a millisecond at most), and such parts of a sweep.
LOOKED_AT, PARTS = 20, 10


class Awaited:
    """Owns the place from which the next sweep goes on; only the steward's thread uses it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._after = events.FIRST

    def close(self) -> bool:
        """Ends the wait of those that the transcript has passed by; whether there were any."""
        before = iso(datetime.now(UTC) - timedelta(seconds=PROVISIONAL_S))
        closed = False
        for _ in range(PARTS):
            closed |= self._part(before)
            if self._after == events.FIRST:
                break
        return closed

    def _part(self, before: str) -> bool:
        after = self._after
        over, self._after = self._store.read(lambda rows: events.over(rows, before=before, after=after, most=LOOKED_AT))
        return bool(over) and any(self._store.write(lambda rows: events.close_provisional(rows, over)))
