"""What was composed and looked for is noted in memory, and written down now and then: no answer waits for it.

What was noted in the last minute before the power fails is lost; an end that was asked for writes it down.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from csmd import text
from csmd.daemon.now import iso_before, now_iso
from csmd.model import Brief, Event
from csmd.store import activity
from csmd.store.activity import Composed, Recalled
from csmd.store.core import Store

#: Written down so often at most, kept so long; with more waiting the oldest goes: a disk may be full for days.
EVERY_S, KEPT_S, MOST_WAITING = 60.0, 90 * 86_400, 2_000
#: The tools that look something up for somebody: (kind, the parameter with the words, what is counted in the answer).
ASKED: Mapping[str, tuple[str, str, str]] = {
    "csm_memory_search": ("search", "query", "hits"),
    "csm_memory_recall": ("recall", "prompt", "items"),
}


class Noted:
    """Owns what is not written down yet; from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._composed: deque[Composed] = deque(maxlen=MOST_WAITING)
        self._recalled: deque[Recalled] = deque(maxlen=MOST_WAITING)
        self._next = 0.0

    def composed(self, event: Event, brief: Brief, took_s: float) -> None:
        """Notes what was composed for an event, and of a prompt that it was looked for."""
        made = Composed(
            at=event.at, session_id=event.session_id, event=event.name, chosen=len(brief.items), cut=brief.cut,
            tokens=brief.tokens, degraded=len(brief.degraded), ms=round(took_s * 1000),
        )  # fmt: skip
        with self._lock:
            self._composed.append(made)
        if event.name == "prompt":
            self._asked("prompt", event.text, [item.score for item in brief.items], took_s)

    def answered(self, tool: str, params: Mapping[str, Any], result: Mapping[str, Any], took_s: float) -> None:
        """Notes what a tool found, where it is one that looks something up."""
        if tool in ASKED:
            kind, words, found = ASKED[tool]
            self._asked(kind, str(params[words]), [float(one["score"]) for one in result[found]], took_s)

    def _asked(self, kind: str, words: str, scores: Sequence[float], took_s: float) -> None:
        asked = Recalled(
            at=now_iso(), kind=kind, query_hash=text.keyed_hash(words, self._store.hash_key), results=len(scores),
            top=max(scores, default=0.0), ms=round(took_s * 1000),
        )  # fmt: skip
        with self._lock:
            self._recalled.append(asked)

    def waiting(self) -> tuple[list[Composed], list[Recalled]]:
        """What is not written down yet, the latest first."""
        with self._lock:
            return list(reversed(self._composed)), list(reversed(self._recalled))

    def step(self, now: float) -> bool:
        """Writes down what waits when it is time to, at the monotonic time `now`; nothing follows from it."""
        if now >= self._next:
            self._next = now + EVERY_S
            self.write()
        return False

    def write(self) -> bool:
        """Writes down what waits; whether there was any."""
        with self._lock:
            composed, recalled = list(self._composed), list(self._recalled)
        if not composed and not recalled:
            return False
        before, key = iso_before(KEPT_S), self._store.hash_key
        self._store.write(lambda rows: activity.add_lookups(rows, composed, recalled, before=before, key=key))
        with self._lock:  # what came meanwhile stands behind what was written
            _drop(self._composed, composed)
            _drop(self._recalled, recalled)
        return True


def _drop(waiting: deque[Any], written: Sequence[object]) -> None:
    """Lets go of what was written; the oldest of it may have gone meanwhile for want of room."""
    done = set(map(id, written))
    while waiting and id(waiting[0]) in done:
        waiting.popleft()
