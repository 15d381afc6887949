"""What a sweep has found grown and nobody has read yet, and how long it will still take.

Only a list of where to look: how far each transcript is read the store knows, so that a daemon that was killed
finds the same again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from csmd.capture.transcripts import OnDisk
from csmd.daemon.backfill import Past

#: Fewer sessions are read before anybody has looked: nothing worth telling.
WORTH_TELLING = 5


class Backlog:
    """Owns the list; only the steward's thread changes it."""

    def __init__(self) -> None:
        self._files: dict[str, OnDisk] = {}
        self._session_of: dict[str, str] = {}
        self._left: Counter[str] = Counter()
        """Transcripts left of each session."""
        self._bytes = self._most = self._done = self._read = 0
        self._took_s = 0.0

    def __bool__(self) -> bool:
        return bool(self._files)

    def __contains__(self, path: str) -> bool:
        return path in self._files

    def fill(self, sessions: Iterable[Past]) -> None:
        """Takes what a sweep found for what is left now; what is done is counted from when nothing was left."""
        if not self._files:
            self._most = self._done = self._read = 0
            self._took_s = 0.0
        self._files, self._session_of = {}, {}
        for past in sessions:
            for one in past.files:
                self._files[one.path] = one
                self._session_of[one.path] = f"{past.project}/{past.session}"
        self._left = Counter(self._session_of.values())
        self._bytes = sum(one.size for one in self._files.values())
        self._most = max(self._most, len(self._left))

    def first(self) -> OnDisk | None:
        """What is to be read next."""
        return next(iter(self._files.values()), None)

    def note(self, *, read: int, took_s: float) -> None:
        """Notes what reading a piece has given: from it is told how long the rest will take."""
        self._read += read
        self._took_s += took_s

    def drop(self, path: str) -> None:
        """Takes a transcript off the list: it is read."""
        one = self._files.pop(path, None)
        if one is None:
            return
        self._bytes -= one.size
        session = self._session_of.pop(path)
        self._left[session] -= 1
        if not self._left[session]:
            del self._left[session]
            self._done += 1

    def shown(self) -> dict[str, Any] | None:
        """What `csmd status` says; None when nothing worth telling is left. `eta_s` is None until it can be told."""
        sessions, left = len(self._left), self._bytes
        if not sessions or self._most < WORTH_TELLING:
            return None
        eta = round(left * self._took_s / self._read) if self._read else None
        return {"sessions_left": sessions, "bytes_left": left, "sessions_done": self._done, "eta_s": eta}
