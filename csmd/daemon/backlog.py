"""What a sweep has found grown and nobody has read yet, and how long it will still take.

Only a list of where to look: how far each transcript is read the store knows, so that a daemon that was killed
finds the same again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from csmd.capture.stage import OnDisk
from csmd.daemon.backfill import Past

#: Fewer sessions are read before anybody has looked: nothing worth telling.
WORTH_TELLING = 5


class Backlog:
    """Owns the list; only the steward's thread changes it."""

    def __init__(self) -> None:
        self._files: deque[OnDisk] = deque()
        self._last: set[str] = set()
        """The last transcript of each session: with it the session is done."""
        self._bytes = 0
        self._done = 0
        self._read = 0
        self._took_s = 0.0

    def __bool__(self) -> bool:
        return bool(self._files)

    def fill(self, sessions: Iterable[Past]) -> None:
        """Takes what a sweep found for what is left now; the count of what is done begins with an empty list."""
        if not self._files:
            self._done = self._read = 0
            self._took_s = 0.0
        listed = list(sessions)
        self._files = deque(one for past in listed for one in past.files)
        self._last = {past.files[-1].path for past in listed}
        self._bytes = sum(one.size for one in self._files)

    def first(self) -> OnDisk | None:
        """What is to be read next."""
        return self._files[0] if self._files else None

    def note(self, *, read: int, took_s: float, done: bool) -> None:
        """Notes what the first has given; `done` when nothing is left of it."""
        self._read += read
        self._took_s += took_s
        if done:
            one = self._files.popleft()
            self._bytes -= one.size
            self._done += one.path in self._last
            self._last.discard(one.path)

    def shown(self) -> dict[str, Any] | None:
        """What `csmd status` says: None when nothing worth telling is left. `eta_s` is None until it can be told."""
        sessions, left = len(self._last), self._bytes
        if sessions < WORTH_TELLING and not self._done:
            return None
        if not self._files:
            return None
        return {
            "sessions_left": sessions,
            "bytes_left": left,
            "sessions_done": self._done,
            "eta_s": round(left * self._took_s / self._read) if self._read else None,
        }
