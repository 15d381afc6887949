"""Reads transcripts, by file events, in sweeps and from the backlog of past sessions; and replays events that hooks spooled.

A file event says which file to read, never what it contains. The backlog is read newest first, alternating between projects:
a new user of csmd asks about recent work, in any project.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from csmd.capture import ingest, transcript_listing, transcripts
from csmd.capture.transcript_listing import OnDisk
from csmd.config import Config
from csmd.conversation import Event
from csmd.daemon import injection
from csmd.daemon.context import Context, iso, now_iso
from csmd.errors import BadInput, StoreError
from csmd.exclusions import Excludes
from csmd.hosts import adapters, csmd_sessions
from csmd.paths import file_of_transcript, is_file
from csmd.privacy.redaction import redact
from csmd.store import activity, cursors, files, receipts
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text.display import amount

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver, ObservedWatch

log = logging.getLogger(__name__)

#: A transcript written within this many seconds may belong to an active session.
LIVE_S = 3600
#: The largest number of active transcripts that a short sweep checks.
MOST_LIVE = 200
#: How long a step reads the backlog, which delays other work.
SLICE_S = 0.2
#: If the backlog was read within this many seconds, the rest since then counts as reading time.
STILL_S = 5.0
#: The rest after a background step, as a multiple of its length: a backlog takes half of one core at most, and a hook meets
#: it half as often. A lower priority would be worse: a thread that holds the interpreter's lock delays those that answer hooks.
REST = 1.0
#: How many spooled events share one commit, for which a hook may wait.
TOGETHER = 32
#: How many bytes of them share one commit.
TOGETHER_BYTES = 2 * 1024 * 1024


def read(
    store: Store,
    config: Config,
    path: Path,
    *,
    leave_out: Excludes,
    most_pieces: int | None = None,
    stop: Callable[[], bool] = lambda: False,
    is_chosen: bool = False,
) -> transcripts.Tail:
    """Reads the new lines of a transcript, or `most_pieces` of them; raises as `transcripts.tail` does.

    In an assistant's directory only that assistant's transcripts are read, and only where it stores them, unless the user
    has chosen the file: an assistant may have downloaded other files there.
    """
    owner, has_place = (None if is_chosen else adapters.below_root(config, str(path))) or (None, True)
    if not has_place:
        return transcripts.Tail()
    return transcripts.tail(
        store,
        path,
        now=now_iso,
        tool_limit=config.settings.capture_tool_output_bytes,
        quarantine=config.paths.quarantine,
        session_limit=config.settings.capture_session_bytes,
        most_pieces=most_pieces,
        stop=stop,
        excludes=leave_out,
        read_line=csmd_sessions.reader(path, home=config.paths.sessions, key=store.hash_key),
        owner=owner,
    )


def look_at(
    context: Context, path: Path, *, strict: bool = False, most_pieces: int | None = None, is_chosen: bool = False
) -> transcripts.Tail:
    """Reads the new lines of a transcript, or some of them; a failure is noted in `trouble`."""

    def read_tail() -> transcripts.Tail:
        if not is_file(file_of_transcript(path)):
            return transcripts.Tail()  # deleted, which is no error, or a pipe that would never end
        report = transcripts.Tail()
        with suppress(FileNotFoundError):
            report = read(
                context.store, context.config, path,
                leave_out=context.excludes, most_pieces=most_pieces, stop=lambda: context.stopping, is_chosen=is_chosen,
            )  # fmt: skip
            if report.excluded:
                context.excluded.add(path)
            elif report.bytes_read:
                context.excluded.discard(path)
        return report

    report = context.guard("transcript", read_tail, about=str(path), strict=strict) or transcripts.Tail()
    (context.half_read.add if report.more else context.half_read.discard)(str(path))
    return report


def follow_hints(context: Context) -> bool:
    """Reads a piece of each hinted transcript, the rest in later steps; returns whether any had new lines."""
    has_read = False
    for path in _hinted(context):
        context.live.add(str(path))
        report = look_at(context, path, most_pieces=1)
        if report.more:
            context.hint(str(path))
        has_read |= report.bytes_read > 0
    return has_read


def _hinted(context: Context) -> Iterator[Path]:
    """The hinted transcripts; of a database those that may have grown."""
    databases = [root for root in context.roots() if is_file(root)]
    for path in context.take_hints():
        if path not in databases:
            yield path
            continue
        positions = context.store.read(partial(cursors.file_positions, since=time.time_ns() - LIVE_S * 1_000_000_000))
        find = partial(transcript_listing.list_latest, path, positions)
        yield from (Path(file.path) for file in context.guard("transcript", find, about=str(path)) or ())


def listed(config: Config, root: Path) -> Iterator[OnDisk]:
    """The transcripts in a root, in no order, without files where its assistant stores none."""
    for file in transcript_listing.list_transcripts(root):
        owner = adapters.below_root(config, file.path)
        if owner is None or owner[1]:
            yield file


def sweep(context: Context, *, full: bool) -> int:
    """Finds the transcripts that have grown, all of them if `full`, else those of the last hour; returns how many."""
    if not full:
        since = time.time_ns() - LIVE_S * 1_000_000_000
        live = context.store.read(lambda rows: cursors.file_positions(rows, since=since, most=MOST_LIVE))
        grown = [
            file
            for path in live
            if (file := transcript_listing.stat_transcript(path)) and transcript_listing.has_grown(file, live)
        ]
        for file in grown:
            context.hint(file.path)
        return len(grown)
    positions = context.store.read(cursors.file_positions)
    roots = [str(root) for root in context.roots()]
    elsewhere = (path for path in positions if not path.startswith(tuple(f"{root}/" for root in roots)))
    on_disk = chain(
        chain.from_iterable(listed(context.config, Path(root)) for root in roots),
        filter(None, map(transcript_listing.stat_transcript, elsewhere)),
    )
    grown = [
        file
        for file in on_disk
        if transcript_listing.has_grown(file, positions) and Path(file.path) not in context.excluded
    ]
    fill_backlog(context, newest_first(grown, roots))
    for what in [what for what in context.trouble if what.startswith("transcript ")]:
        if files.is_missing(what.removeprefix("transcript ")):
            del context.trouble[what]
    return len(grown)


# --- the backlog


@dataclass(frozen=True, slots=True)
class PastSession:
    """A session's transcripts, its own before its sub-agents'; `rank` counts from 0 for the newest of its project."""

    project: str
    session: str
    rank: int
    mtime_ns: int
    files: tuple[OnDisk, ...]


def newest_first(on_disk: Iterable[OnDisk], roots: Sequence[str]) -> list[PastSession]:
    """The sessions of these transcripts: the newest of every project, then every project's second, and so on.

    `roots` are the directories of transcripts; one outside of them belongs to the project of its own directory.
    """
    by_session: defaultdict[tuple[str, str], list[OnDisk]] = defaultdict(list)
    for file in sorted(on_disk, key=_own_first):
        by_session[place_of(file.path, roots)].append(file)
    latest = {place: max(file.mtime_ns for file in group) for place, group in by_session.items()}
    ranks: Counter[str] = Counter()
    sessions = []
    for place in sorted(by_session, key=lambda place: (-latest[place], place)):
        project, session = place
        sessions.append(PastSession(project, session, ranks[project], latest[place], tuple(by_session[place])))
        ranks[project] += 1
    return sorted(sessions, key=lambda past: past.rank)


def place_of(path: str, roots: Sequence[str]) -> tuple[str, str]:
    """(project directory, session) of a transcript, by its path."""
    root = next((root for root in roots if path.startswith(f"{root}/")), "")
    if not root:
        folder, _, name = path.rpartition("/")
        return folder, name.removesuffix(".jsonl")
    return adapters.place_of(root, path[len(root) + 1 :])


def _own_first(file: OnDisk) -> tuple[int, str]:
    """Orders a session's own transcript before its sub-agents', which mean little without it."""
    return len(PurePath(file.path).parts), file.path


def fill_backlog(context: Context, sessions: Iterable[PastSession]) -> None:
    """Replaces the backlog by the transcripts of these sessions."""
    context.backlog.fill((f"{past.project}/{past.session}", file) for past in sessions for file in past.files)


def read_backlog(context: Context) -> bool:
    """Reads the backlog for SLICE_S, or until a client waits; returns whether it read any."""
    began = time.monotonic()
    # Its time includes distilling between two slices and the rests.
    at = context.read_until if began - context.read_until < STILL_S else began
    has_read = False
    while (file := context.backlog.first()) and not context.stopping and not context.client_is_waiting():
        has_read = True
        report = look_at(context, Path(file.path), most_pieces=1)
        if context.store.last_write_error and f"transcript {file.path}" in context.trouble:
            return False  # the others would fail too: it stays first until the disk accepts writes
        before, at = at, time.monotonic()
        context.backlog.record_reading(read=report.bytes_read, took_s=at - before)
        if not report.more:
            context.backlog.drop(file.path)
        if at - began > SLICE_S:
            break
    context.read_until = at
    return has_read


# --- the spool


@dataclass(frozen=True, slots=True)
class QueuedEvent:
    """A spooled event whose write is queued; `event` is None if it is only counted."""

    path: Path
    written: Future[Any]
    event: Event | None = None


def replay(context: Context) -> bool:
    """Stores every spooled event, oldest first; returns whether there was any."""
    taken = 0
    waiting = [path for path in files.spooled_paths(context.config.paths.home) if path not in context.left_alone]
    for group in groups(waiting):
        if context.stopping:
            break
        for queued in [_queue(context, path) for path in group]:
            done = context.guard("spooled event", partial(_finish, context, queued), about=queued.path.name)
            taken += bool(done)
    if taken:
        log.info("took in %s that hooks kept while the daemon did not answer", amount(taken, "event"))
    return taken > 0


def groups(waiting: list[Path]) -> Iterator[list[Path]]:
    """Groups of spooled files that share a commit, in order: at most TOGETHER files and TOGETHER_BYTES bytes."""
    group: list[Path] = []
    left = TOGETHER_BYTES
    for path in waiting:
        size = 0
        with suppress(OSError):  # deleted or unreadable, which is handled when it is queued
            size = path.lstat().st_size
        if group and (len(group) == TOGETHER or size > left):
            yield group
            group, left = [], TOGETHER_BYTES
        group.append(path)
        left -= size
    if group:
        yield group


def _queue(context: Context, path: Path) -> QueuedEvent:
    """Reads an event and queues its write; an error is raised by `_finish`, in its turn."""
    try:
        return _submit(context, path, files.read_spooled(path))
    except Exception as error:  # noqa: BLE001 - raised again by `_finish`
        failed: Future[Any] = Future()
        failed.set_exception(error)
        return QueuedEvent(path, failed)


def _submit(context: Context, path: Path, spooled: files.Spooled) -> QueuedEvent:
    """Queues the write of an event, or the count of an event from an unknown host."""
    store, counts = context.store, [(ingest.UNKNOWN_HOSTS, 1)]
    if spooled.host in adapters.ADAPTERS:
        decoded = ingest.decode(
            spooled.host, spooled.body, context.excludes,
            name=spooled.name, event_id=spooled.id, at=_time_of(spooled.at_ns),
        )  # fmt: skip
        if isinstance(decoded, BadInput):
            raise decoded
        event, redacted = decoded
        if event is not None:
            return QueuedEvent(path, _submit_event(context, event, redacted), event)
        counts = list(redacted.items())
    return QueuedEvent(path, store.submit(lambda rows: activity.count(rows, counts), wait=True))


def _submit_event(context: Context, event: Event, redacted: Counter[str]) -> Future[bool]:
    """Queues the write of an event; the result is whether it starts a session without a brief."""
    store, room = context.store, context.config.settings.capture_session_bytes
    place = store.read(lambda rows: ingest.place_of(rows, event))

    def write(rows: Rows) -> bool:
        injection.take_back(rows, event)  # its hook got no answer in time, whatever was sent
        ingest.record(
            rows, event, redacted=redacted, key=store.hash_key, now=now_iso(), place=place, room=room, waited=True
        )
        return event.name == "session_start" and not receipts.was_briefed(rows, event.session_id)

    return store.submit(write, wait=True)


def _finish(context: Context, queued: QueuedEvent) -> bool:
    path, event = queued.path, queued.event
    try:
        is_pending = queued.written.result()
    except FileNotFoundError:
        return False
    except BadInput as error:
        _quarantine(context, path, error.what)
    except (OSError, StoreError):
        if is_file(path):
            raise  # the disk or the database failed: the event waits
        _quarantine(context, path, "not a file")
    except Exception:
        # A catch-all: a bug or a lack of memory is not the event's fault, so it stays for the next daemon.
        context.left_alone.add(path)
        raise
    else:
        context.hint_of_hook(*(event.transcript_path, event.host) if event else ("",))
        if event is not None:
            context.starts.reopen(event)
            if is_pending:
                context.starts.add(event)
        path.unlink(missing_ok=True)
    return True


def _quarantine(context: Context, path: Path, reason: str) -> None:
    data = b""
    with suppress(OSError, BadInput), files.open_regular(path, follow_links=False) as file:
        data = file.read(files.SPOOL_LIMIT_BYTES)
    files.quarantine(
        context.config.paths.quarantine,
        source=redact(str(path), Counter()),
        reason=redact(reason, Counter()),
        data=data,
        now=now_iso(),
    )
    context.store.write(lambda rows: activity.count(rows, [(ingest.BAD_EVENTS, 1)]))
    try:
        path.unlink(missing_ok=True)
    except OSError:
        context.left_alone.add(path)  # for example a directory, which csmd must not remove; once is enough


def _time_of(at_ns: int) -> str:
    try:
        return iso(datetime.fromtimestamp(at_ns / 1e9, UTC))
    except (OverflowError, OSError, ValueError) as error:
        raise BadInput(f"{at_ns} is not a time") from error


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
        """Watches exactly these directories with their subdirectories, and `alone` without; a recreated directory is a new one.

        For a database in `roots` its directory is watched. Returns whether a root was not watched before: there was no
        event for what was written there until now.
        """
        self._roots = {(root.parent, False) if is_file(root) else (root, True): root for root in roots}
        wanted = list(dict.fromkeys([*self._roots, *((root, False) for root in alone)]))
        present = {key: identity for key in wanted if (identity := _identity(key[0])) is not None}
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


def _identity(root: Path) -> tuple[int, int] | None:
    """Device and inode, which distinguish a directory from a later one with the same name; None if it is missing."""
    try:
        info = root.stat()
    except OSError:
        return None
    return info.st_dev, info.st_ino
