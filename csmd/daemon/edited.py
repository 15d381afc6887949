"""When the pages that people edit are looked at: once a minute by their stamps, and read when somebody is through.

A page that has just changed may be half saved, or written by a tool whose call no transcript tells yet: it is read when
it has stayed as it is for a while. Whoever syncs or asks for a dream is through with it, and what tools did is read first.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

from csmd.capture import instruction_files as capture
from csmd.daemon import reading
from csmd.daemon.context import Context
from csmd.daemon.moments import whole
from csmd.daemon.now import here, iso, now_iso
from csmd.dream import daily, page_edits, page_files, undo
from csmd.pauses import Pauses

#: Settled is what has not changed for longer than the steward takes to sweep the transcripts of those at work.
LOOK_S, SETTLED_S = 60.0, 40.0
#: More pages than anybody reads; beyond it the next dream looks at all.
MOST = 500


class Edited:
    """Owns the stamps by which a changed page is known; only the steward's thread uses it."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._next = 0.0
        self._seen: capture.Stamp = ()
        self._read: capture.Stamp = ()
        self._forgotten = True
        """Whether a line is to leave the pages; also where a daemon was killed before it could see to that."""

    def forget(self) -> None:
        """Says that a memory is no more, from any thread: its line leaves pages and days in the next step."""
        self._forgotten = True

    def step(self, now: float) -> bool:
        """Looks whether a page has changed, and reads those that have not changed since the look before."""
        if self._forgotten:
            self._forgotten = False
            try:
                if self._withdraw():
                    return True
            except OSError:
                self._forgotten = True  # until the disk takes it
                raise
        if now < self._next:
            return False
        self._next = now + LOOK_S
        stamp = capture.stamp(map(str, self._pages()))
        if stamp == self._read:
            return False
        if stamp != self._seen or self._context.backlog or self._context.somebody_waits():
            self._seen, self._next = stamp, now + SETTLED_S
            return False
        return self.read() > 0

    def _withdraw(self) -> int:
        """Takes what was forgotten out of all that csmd wrote, of the days some in a step; in how many places it was looked for."""
        store, directory = self._context.store, self._context.config.paths.memory
        days = daily.withdraw(store, directory, now=now_iso(), here=here)
        self._forgotten |= days > 0  # more may be left
        return page_files.withdraw(store, directory) + days

    def read_settled(self) -> int:
        """Reads them for a dream or an import, but not while one has just changed: who ran the tool that did is told soon."""
        since = time.time() - SETTLED_S
        for path in self._files():
            with suppress(OSError):
                if since < path.stat().st_ctime < since + 2 * SETTLED_S:
                    return 0
        return self.read()

    def read_at_once(self) -> Generator[None, None, int]:
        """Reads them for somebody who waits, behind what those at work have written into their transcripts by now."""
        context = self._context
        reading.sweep(context, full=False)
        for path in context.take_hints():
            while reading.look_at(context, path, most_pieces=1).more:
                yield
            yield
        return self.read()

    def read(self) -> int:
        """Reads what people did to the pages now; how many edits."""
        stamp = capture.stamp(map(str, self._pages()))
        store, directory = self._context.store, self._context.config.paths.memory
        # What undoing a dream has left half done is no edit.
        whole(undo.finish(store, home=self._context.config.paths.home, now=now_iso()))
        done = page_edits.step(store, directory, now=now_iso(), key=store.hash_key, pauses=self._away())
        self._read = stamp
        return done

    def _away(self) -> Pauses:
        """When nobody heard what tools wrote: in pauses, and when a session was last at work that the user leaves out."""
        spans = list(self._context.pauses().spans)
        for path in list(self._context.excluded):
            with suppress(OSError):
                last = datetime.fromtimestamp(path.stat().st_mtime, UTC)
                spans.append((iso(last), iso(last + timedelta(seconds=1))))
        return Pauses(tuple(spans))

    def _pages(self) -> list[Path]:
        return [*self._places(), *self._files()]

    def _files(self) -> list[Path]:
        found = (path for place in self._places() if place.is_dir() for path in sorted(place.glob("*.md")))
        return list(islice(found, MOST))

    def _places(self) -> tuple[Path, ...]:
        directory = self._context.config.paths.memory
        return directory, directory / "projects", directory / "topics"
