"""What the log says of work that went well: a line for each job, an hour's numbers on one line, nothing for a turn.

Numbers and words of ours only; an hour in which nothing happened has no line.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime

from csmd.store import activity
from csmd.store.core import Store
from csmd.text import amount

log = logging.getLogger(__name__)

HOUR_S = 3600.0
#: What an hour's line tells, in this order: a count or counter, one of it, what of it.
TOLD = (
    ("turns", "turn", ""), ("memories", "memory", ""), ("injections", "injection", ""),
    ("paused turns", "turn", " left out in a pause"), ("excluded events", "event", " left out"),
    ("bad lines", "line", " that could not be read"), ("bad events", "event", " that could not be read"),
)  # fmt: skip


class Hourly:
    """Owns the numbers of an hour ago."""

    def __init__(self) -> None:
        self._next = 0.0
        self._since = ""
        self._then: Mapping[str, int] | None = None

    def step(self, store: Store, now: float) -> bool:
        """Writes the line that is due at the monotonic time `now`; whether there was one."""
        if now < self._next:
            return False
        self._next = now + HOUR_S
        found = store.read(lambda rows: {**activity.counters(rows), **activity.counts(rows)})
        then, since, self._then, self._since = self._then, self._since, found, f"{datetime.now(UTC).astimezone():%H:%M}"
        if then is None:
            return False
        more = {name: found.get(name, 0) - then.get(name, 0) for name, *_ in TOLD}
        parts = [amount(more[name], one) + of for name, one, of in TOLD if more[name] > 0]
        if parts:
            log.info("since %s: %s", since, ", ".join(parts))
        return bool(parts)
