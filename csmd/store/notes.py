"""Notes on the lines of a transcript that could not be read: bounded in number, however many there are."""

from __future__ import annotations

from pathlib import Path

from csmd.store import files

#: Lines of one file and read that get a note each; the rest of them share one.
NOTES_LIMIT = 20


class Notes:
    """The notes on one read of one transcript: the first malformed lines get one each, `close` writes one on the rest.

    `source` (its path, redacted) and a reason only: neither a line's bytes nor what was in it.
    """

    def __init__(self, directory: Path, *, source: str) -> None:
        self._directory = directory
        self._source = source
        self._own = 0
        self._rest: list[int] = []
        self._now = ""

    def add(self, line: bytes | None, offset: int, *, reason: str, now: str) -> None:
        """Notes a line, None for one that was too long to be held."""
        self._now = now
        if self._own >= NOTES_LIMIT:
            self._rest.append(offset)
            return
        self._own += 1
        seen = line if line is not None else f"{self._source}:{offset}".encode("utf-8", "replace")
        files.quarantine(self._directory, source=self._source, reason=reason, data=seen, offset=offset, now=now)

    def close(self) -> None:
        """Writes the note on the lines that got none."""
        if self._rest:
            files.quarantine_rest(
                self._directory,
                source=self._source,
                lines=len(self._rest),
                first=self._rest[0],
                last=self._rest[-1],
                now=self._now,
            )
