"""Watches the directories of transcripts and instructions for changed files."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from csmd.paths import is_file

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver, ObservedWatch

log = logging.getLogger(__name__)


# --- file events


class Watch:
    """Owns the observer thread of watchdog; only the main thread uses it.

    `hint` is called with the path of every file that changed in a root or its subdirectories, `touch` with the path of
    every file that changed in a directory watched without subdirectories, which holds instructions, not transcripts.
    """

    def __init__(self, hint: Callable[[str], None], touch: Callable[[str], None]) -> None:
        self._hint = hint
        self._touch = touch
        self._observer: BaseObserver | None = None
        self._watched: dict[tuple[Path, bool], tuple[tuple[int, int], ObservedWatch]] = {}
        self._roots: dict[tuple[Path, bool], Path] = {}
        """Watched directory, with whether its subdirectories are watched -> the root that it is watched for."""
        self.trouble = ""

    @property
    def roots(self) -> list[Path]:
        """The roots that are watched: directories and databases."""
        return sorted(root for key, root in self._roots.items() if key in self._watched)

    def follow(self, roots: list[Path], *, alone: Sequence[Path] = ()) -> bool:
        """Watches exactly these directories with their subdirectories, and `alone` without.

        For a database in `roots` its directory is watched. Returns whether a root was not watched before (also if it
        was recreated), so that its earlier changes had no events.
        """
        self._roots = {(root.parent, False) if is_file(root) else (root, True): root for root in roots}
        directories = list(dict.fromkeys([*self._roots, *((root, False) for root in alone)]))
        present = {key: identity for key in directories if (identity := _read_identity(key[0])) is not None}
        for key, (identity, watch) in list(self._watched.items()):
            if present.get(key) != identity and self._observer is not None:
                del self._watched[key]
                self._observer.unschedule(watch)
        trouble, has_new = "", False
        for (root, deep), identity in present.items():
            if (root, deep) in self._watched:
                continue
            try:
                self._watched[root, deep] = identity, self._schedule(root, deep)
                has_new |= (root, deep) in self._roots
            except OSError as error:
                # Out of inotify watches: the sweeps find everything later.
                trouble = f"cannot watch {root}: {error.strerror}; it is checked every 15 minutes"
        if trouble and trouble != self.trouble:
            log.warning("a directory of transcripts cannot be watched, see `csmd status`")
        self.trouble = trouble
        return has_new

    def _schedule(self, root: Path, deep: bool) -> ObservedWatch:
        from watchdog import events
        from watchdog.observers import Observer

        report = self._hint if deep else self._touch

        class Handler(events.FileSystemEventHandler):
            def on_any_event(self, event: events.FileSystemEvent) -> None:
                # A catch-all: an unexpected event must not end the observer's thread.
                try:
                    if not event.is_directory:
                        report(str(event.dest_path or event.src_path))
                except Exception:
                    log.exception("a file event could not be used")

        if self._observer is None:
            self._observer = Observer()
            self._observer.name = "csmd-watch"
            self._observer.start()
        # The default mask includes watchdog's own walk through directories, which never ends on large trees.
        kinds = [events.FileModifiedEvent, events.FileCreatedEvent, events.FileMovedEvent]
        more = events.DirCreatedEvent if deep else events.FileDeletedEvent
        return self._observer.schedule(Handler(), str(root), recursive=deep, event_filter=[*kinds, more])

    def close(self) -> None:
        """Ends the observer's threads."""
        if self._observer is not None:
            self._observer.stop()
            self._observer.join()
            self._observer = None
            self._watched.clear()


def _read_identity(root: Path) -> tuple[int, int] | None:
    """Returns the device and inode of a directory; None if it is missing.

    They distinguish it from a later directory with the same name.
    """
    try:
        info = root.stat()
    except OSError:
        return None
    return info.st_dev, info.st_ino
