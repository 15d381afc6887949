"""Reads back the pages that people have edited, once they are settled."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

from csmd.capture import instruction_files
from csmd.daemon import reading
from csmd.daemon.context import Context, now_iso, to_iso, to_local_time
from csmd.dream import day_files, dream_undo, page_edits, page_files
from csmd.paths import is_directory
from csmd.pauses import Pauses
from csmd.store.core import run_to_end

# --- edited pages

#: How often pages are checked for changes.
CHECK_EVERY_S = 60.0
#: A page is settled when it has not changed for longer than a sweep of the active transcripts takes.
SETTLED_S = 40.0
#: How many pages are checked; the next dream reads all of them.
MAX_PAGES = 500


class PageReader:
    """Owns the stamps that show whether a page was edited; only the background thread uses it."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._next_check = 0.0
        #: The stamps at the last check, and when the pages were last read.
        self._checked_stamp: instruction_files.Stamp = ()
        self._read_stamp: instruction_files.Stamp = ()
        #: Whether a line has to be removed from the pages; also at the start, in case the last daemon was killed
        #: before.
        self._has_forgotten = True

    def forget(self) -> None:
        """Notes that a memory was forgotten, from any thread: the next step removes its line from pages and days."""
        self._has_forgotten = True

    def step(self, now: float) -> bool:
        """Checks whether a page has changed, and reads the pages once they have not changed since the check before."""
        if self._has_forgotten and self._remove_forgotten():
            return True
        if now < self._next_check:
            return False
        self._next_check = now + CHECK_EVERY_S
        stamp = self._stamp()
        if stamp == self._read_stamp:
            return False
        if stamp != self._checked_stamp or self._context.backlog or self._context.client_is_waiting():
            self._checked_stamp, self._next_check = stamp, now + SETTLED_S
            return False
        return self.read() > 0

    def _remove_forgotten(self) -> bool:
        """Removes forgotten lines from pages and, some in each step, from days; returns whether there were any."""
        store, directory = self._context.store, self._context.config.paths.memory
        self._has_forgotten = False
        try:
            days = day_files.remove_withdrawn(store, directory, now=now_iso(), to_local=to_local_time)
            self._has_forgotten |= days > 0  # more may be left
            return page_files.remove_forgotten_lines(store, directory) + days > 0
        except OSError:
            self._has_forgotten = True  # until the disk accepts it
            raise

    def read_settled(self) -> int:
        """Reads the pages, unless one has just changed: the transcript of the tool that edited it may follow."""
        since = time.time() - SETTLED_S
        for path in self._files():
            with suppress(OSError):
                if since < path.stat().st_ctime < since + 2 * SETTLED_S:
                    return 0
        return self.read()

    def read_at_once(self) -> Iterator[None]:
        """Reads the pages now, after the transcripts of active sessions, which show the edits of tools."""
        context = self._context
        reading.sweep_transcripts(context, full=False)
        for path in context.take_hints():
            while reading.read_guarded(context, path, most_pieces=1).more:
                yield
            yield
        self.read()

    def read(self) -> int:
        """Reads people's edits of the pages; returns how many."""
        context, stamp = self._context, self._stamp()
        store, paths = context.store, context.config.paths
        # Half-finished undoing of a dream is not an edit.
        run_to_end(dream_undo.finish_undo(store, home=paths.home, now=now_iso()))
        pauses = self._unrecorded_spans()
        edits = page_edits.read_edits(store, paths.memory, now=now_iso(), key=store.hash_key, pauses=pauses)
        self._read_stamp = stamp
        return edits

    def _unrecorded_spans(self) -> Pauses:
        """Returns the times in which tools wrote unrecorded: pauses, and the last activity of excluded sessions."""
        spans = list(self._context.pauses().spans)
        for path in list(self._context.excluded_paths):
            with suppress(OSError):
                last = datetime.fromtimestamp(path.stat().st_mtime, UTC)
                spans.append((to_iso(last), to_iso(last + timedelta(seconds=1))))
        return Pauses(tuple(spans))

    def _stamp(self) -> instruction_files.Stamp:
        return instruction_files.make_stamp(map(str, [*self._folders(), *self._files()]))

    def _files(self) -> list[Path]:
        paths = (path for folder in self._folders() if is_directory(folder) for path in sorted(folder.glob("*.md")))
        return list(islice(paths, MAX_PAGES))

    def _folders(self) -> list[Path]:
        memory = self._context.config.paths.memory
        return [memory, memory / "projects", memory / "topics"]
