"""What a session's start was not told in time is owed to it: its next prompt brings it, once.

A busy machine, a daemon that is only starting and a hook that left a moment too early cost a session nothing but the
place where its brief stands. Kept in memory: after a restart the spool tells of the starts that nobody answered.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from csmd.model import Event

#: So many sessions that started last are known.
MOST = 200


@dataclass(frozen=True, slots=True)
class _Start:
    """A session's last start, and the event whose answer told what it was owed; "" while none did."""

    event: Event
    told_by: str = ""


class Owed:
    """Owns which starts were not told anything yet; from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._starts: OrderedDict[str, _Start] = OrderedDict()

    def owe(self, start: Event) -> None:
        """Notes a start that nobody was told of yet; not one before another of its session, nor one that was told since."""
        with self._lock:
            known = self._starts.get(start.session_id)
            if known is not None and (known.event.at > start.at or known.event.id == start.id):
                return
            self._starts[start.session_id] = _Start(start)
            self._starts.move_to_end(start.session_id)
            while len(self._starts) > MOST:
                self._starts.popitem(last=False)

    def settle(self, session_id: str, *, by: str) -> None:
        """Notes that the answer to an event told a session's start all that there was to tell."""
        with self._lock:
            if session_id in self._starts:
                self._starts[session_id] = _Start(self._starts[session_id].event, told_by=by)

    def unread(self, event: Event) -> None:
        """Takes back what the answer to an event settled: its hook had left."""
        with self._lock:
            known = self._starts.get(event.session_id)
            if known is not None and known.told_by == event.id:
                self._starts[event.session_id] = _Start(known.event)

    def of(self, session_id: str) -> Event | None:
        """The start that a session's next prompt is to be told; None for nothing."""
        with self._lock:
            known = self._starts.get(session_id)
            return None if known is None or known.told_by else known.event
