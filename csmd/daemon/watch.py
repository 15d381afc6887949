"""Files that change, as hints: a file event says where to look, never what is there.

Transcripts are watched with everything below their root, instruction files by the directory they lie in.

`event_filter` is a must: watchdog's default mask sees its own directory walk and livelocks on
large trees (facts: dependencies section 6).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver, ObservedWatch

log = logging.getLogger(__name__)


class Watch:
    """Owns the observer thread; `hint` is called with the path of every file that changed below a root, `touch` with
    that of every one in a directory that is watched alone: what lies beside instructions is no transcript."""

    def __init__(self, hint: Callable[[str], None], touch: Callable[[str], None]) -> None:
        self._hint = hint
        self._touch = touch
        self._observer: BaseObserver | None = None
        self._roots: dict[tuple[Path, bool], tuple[tuple[int, int], ObservedWatch]] = {}
        self.trouble = ""

    @property
    def roots(self) -> list[Path]:
        """The directories that are watched with everything below."""
        return sorted(root for root, deep in self._roots.copy() if deep)

    def follow(self, roots: list[Path], *, alone: Sequence[Path] = ()) -> bool:
        """Watches these directories, and no others, with everything below; one that was made anew is another one.

        Those in `alone` are watched without what is below. Whether one with everything below was not watched
        before: what was written there until now nobody has hinted at.
        """
        from watchdog.events import (
            DirCreatedEvent,
            FileCreatedEvent,
            FileDeletedEvent,
            FileModifiedEvent,
            FileMovedEvent,
            FileSystemEvent,
            FileSystemEventHandler,
        )
        from watchdog.observers import Observer

        class Handler(FileSystemEventHandler):
            def __init__(self, tell: Callable[[str], None]) -> None:
                self._tell = tell

            def on_any_event(self, event: FileSystemEvent) -> None:
                # One of the four catch-alls: an odd event must not end the observer's thread.
                try:
                    path = (
                        str(event.dest_path or event.src_path)
                        if isinstance(event, FileMovedEvent)
                        else str(event.src_path)
                    )
                    if not event.is_directory:
                        self._tell(path)
                except Exception:
                    log.exception("a file event could not be used")

        events: list[type[FileSystemEvent]] = [FileModifiedEvent, FileCreatedEvent, FileMovedEvent]
        wanted = [*((root, True) for root in roots), *((root, False) for root in alone)]
        present = {key: identity for key in wanted if (identity := _identity(key[0])) is not None}
        for key, (identity, watch) in list(self._roots.items()):
            if present.get(key) != identity and self._observer is not None:
                del self._roots[key]
                self._observer.unschedule(watch)
        trouble, new = "", False
        for (root, deep), identity in present.items():
            if (root, deep) in self._roots:
                continue
            if self._observer is None:
                self._observer = Observer()
                self._observer.name = "csmd-watch"
                self._observer.start()
            try:
                watch = self._observer.schedule(
                    Handler(self._hint if deep else self._touch),
                    str(root),
                    recursive=deep,
                    event_filter=[*events, DirCreatedEvent if deep else FileDeletedEvent],
                )
            except OSError as error:
                # Out of inotify watches: the sweeps still find everything, later.
                trouble = f"cannot watch {root}: {error.strerror}; it is looked at every 15 minutes"
                continue
            self._roots[root, deep] = (identity, watch)
            new = new or deep
        if trouble and trouble != self.trouble:
            log.warning("a directory of transcripts cannot be watched, see `csmd status`")
        self.trouble = trouble
        return new

    def close(self) -> None:
        """Ends the observer's threads."""
        if self._observer is not None:
            self._observer.stop()
            self._observer.join()
            self._observer = None
            self._roots.clear()


def _identity(root: Path) -> tuple[int, int] | None:
    """What tells a directory from a later one of the same name; None when it is not there."""
    try:
        info = root.stat()
    except OSError:
        return None
    return info.st_dev, info.st_ino
