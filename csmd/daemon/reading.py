"""Reads transcripts: after file events, in sweeps, and from the backlog of past sessions.

A file event says which file to read, never what it contains. The backlog is read newest first, alternating between
projects: a new user of csmd asks about recent work, in any project.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path, PurePath

from csmd.capture import transcript_listing, transcripts
from csmd.capture.transcript_listing import ListedTranscript
from csmd.capture.transcripts import ReadOptions
from csmd.config import Config
from csmd.daemon.context import Context, now_iso
from csmd.exclusions import Excludes
from csmd.hosts import adapters, csmd_sessions
from csmd.paths import file_of_transcript, is_file
from csmd.store import cursors, files
from csmd.store.core import Store

log = logging.getLogger(__name__)

#: A transcript written within this time may belong to an active session.
LIVE_S = 3600
LIVE_NS = LIVE_S * 1_000_000_000
#: Most active transcripts that a short sweep checks.
MAX_LIVE_TRANSCRIPTS = 200
#: A step of reading the backlog delays other work for this long.
SLICE_S = 0.2
#: A shorter rest since the backlog was last read counts as reading time.
BACKLOG_GAP_S = 5.0
#: The rest after a background step, as a multiple of its length: a backlog takes half of one core at most, and a hook
#: meets it half as often. A lower priority would be worse: a thread that holds the interpreter's lock delays those that
#: answer hooks.
REST_FACTOR = 1.0


def read_transcript(
    store: Store, config: Config, path: Path, *, leave_out: Excludes, most_pieces: int | None = None,
    stop: Callable[[], bool] = lambda: False, is_chosen: bool = False,
) -> transcripts.ReadReport:  # fmt: skip
    """Reads the new lines of a transcript, or `most_pieces` of them; raises as `transcripts.read_transcript` does.

    In an assistant's directory only that assistant's transcripts are read, and only where it stores them, unless the
    user has chosen the file: an assistant may have downloaded other files there.
    """
    owner, is_in_place = (None if is_chosen else adapters.find_adapter_of_path(config, str(path))) or (None, True)
    if not is_in_place:
        return transcripts.ReadReport()
    options = ReadOptions(
        now=now_iso, tool_limit=config.settings.capture_tool_output_bytes, quarantine=config.paths.quarantine,
        session_limit=config.settings.capture_session_bytes, most_pieces=most_pieces, stop=stop, excludes=leave_out,
        read_line=csmd_sessions.make_reader(path, home=config.paths.sessions, key=store.hash_key), owner=owner,
    )  # fmt: skip
    return transcripts.read_transcript(store, path, options)


def read_guarded(
    context: Context, path: Path, *, strict: bool = False, most_pieces: int | None = None, is_chosen: bool = False
) -> transcripts.ReadReport:
    """Reads the new lines of a transcript, or some of them; a failure is noted in `trouble`."""

    def read_tail() -> transcripts.ReadReport:
        if not is_file(file_of_transcript(path)):
            return transcripts.ReadReport()  # deleted, which is no error, or a pipe that would never end
        report = transcripts.ReadReport()
        with suppress(FileNotFoundError):
            report = read_transcript(
                context.store, context.config, path,
                leave_out=context.excludes, most_pieces=most_pieces, stop=lambda: context.is_stopping, is_chosen=is_chosen,
            )  # fmt: skip
            if report.excluded:
                context.excluded_paths.add(path)
            elif report.bytes_read:
                context.excluded_paths.discard(path)
        return report

    report = context.guard("transcript", read_tail, about=str(path), strict=strict) or transcripts.ReadReport()
    (context.partly_read.add if report.more else context.partly_read.discard)(str(path))
    return report


def follow_hints(context: Context) -> bool:
    """Reads a piece of each hinted transcript, the rest in later steps; returns whether any had new lines."""
    has_read = False
    for path in _hinted_paths(context):
        context.live_paths.add(str(path))
        report = read_guarded(context, path, most_pieces=1)
        if report.more:
            context.hint(str(path))
        has_read |= report.bytes_read > 0
    return has_read


def _hinted_paths(context: Context) -> Iterator[Path]:
    """Yields the hinted transcripts; for a database, its sessions that may have grown."""
    databases = [root for root in context.list_roots() if is_file(root)]
    for path in context.take_hints():
        if path not in databases:
            yield path
            continue
        positions = context.store.read(partial(cursors.file_positions, since=time.time_ns() - LIVE_NS))
        find = partial(transcript_listing.list_latest, path, positions)
        yield from (Path(file.path) for file in context.guard("transcript", find, about=str(path)) or ())


def list_own_transcripts(config: Config, root: Path) -> Iterator[ListedTranscript]:
    """Yields the transcripts in a root, in no order, without files where its assistant stores none."""
    for file in transcript_listing.list_transcripts(root):
        owner = adapters.find_adapter_of_path(config, file.path)
        if owner is None or owner[1]:
            yield file


def sweep_transcripts(context: Context, *, full: bool) -> int:
    """Finds the transcripts that have grown, all of them if `full`, else those of the last hour; returns how many."""
    if not full:
        since = time.time_ns() - LIVE_NS
        live = context.store.read(lambda rows: cursors.file_positions(rows, since=since, limit=MAX_LIVE_TRANSCRIPTS))
        present = filter(None, map(transcript_listing.stat_transcript, live))
        grown = [file for file in present if transcript_listing.has_grown(file, live)]
        for file in grown:
            context.hint(file.path)
        return len(grown)
    positions = context.store.read(cursors.file_positions)
    roots = [str(root) for root in context.list_roots()]
    elsewhere = (path for path in positions if not path.startswith(tuple(f"{root}/" for root in roots)))
    own = chain.from_iterable(list_own_transcripts(context.config, Path(root)) for root in roots)
    on_disk = chain(own, filter(None, map(transcript_listing.stat_transcript, elsewhere)))
    grown = [file for file in on_disk if transcript_listing.has_grown(file, positions)]
    grown = [file for file in grown if Path(file.path) not in context.excluded_paths]
    fill_backlog(context, order_newest_first(grown, roots))
    for key in [key for key in context.trouble if key.startswith("transcript ")]:
        if files.is_missing(key.removeprefix("transcript ")):
            del context.trouble[key]
    return len(grown)


# --- the backlog


@dataclass(frozen=True, slots=True)
class PastSession:
    """A session's transcripts, its own before its sub-agents'; `rank` counts from 0 for the newest of its project."""

    project: str
    session: str
    rank: int
    mtime_ns: int
    files: tuple[ListedTranscript, ...]


def order_newest_first(on_disk: Iterable[ListedTranscript], roots: Sequence[str]) -> list[PastSession]:
    """Returns the sessions of these transcripts: the newest of every project, then every project's second, and so on.

    `roots` are the directories of transcripts; one outside of them belongs to the project of its own directory.
    """
    by_session: defaultdict[tuple[str, str], list[ListedTranscript]] = defaultdict(list)
    # A session's own transcript comes before its sub-agents', which mean little without it.
    for file in sorted(on_disk, key=lambda file: (len(PurePath(file.path).parts), file.path)):
        by_session[locate_transcript(file.path, roots)].append(file)
    latest = {location: max(file.mtime_ns for file in group) for location, group in by_session.items()}
    ranks: Counter[str] = Counter()
    sessions = []
    for location in sorted(by_session, key=lambda location: (-latest[location], location)):
        project, session = location
        sessions.append(PastSession(project, session, ranks[project], latest[location], tuple(by_session[location])))
        ranks[project] += 1
    return sorted(sessions, key=lambda past: past.rank)


def locate_transcript(path: str, roots: Sequence[str]) -> tuple[str, str]:
    """Returns (project directory, session) of a transcript, by its path."""
    root = next((root for root in roots if path.startswith(f"{root}/")), "")
    if not root:
        folder, _, name = path.rpartition("/")
        return folder, name.removesuffix(".jsonl")
    return adapters.locate_transcript(root, path[len(root) + 1 :])


def fill_backlog(context: Context, sessions: Iterable[PastSession]) -> None:
    """Replaces the backlog by the transcripts of these sessions."""
    context.backlog.fill((f"{past.project}/{past.session}", file) for past in sessions for file in past.files)


def read_backlog(context: Context) -> bool:
    """Reads the backlog for SLICE_S, or until a client waits; returns whether it read any."""
    began = time.monotonic()
    # Its time includes distilling between two slices and the rests.
    reading_until = context.backlog_read_until if began - context.backlog_read_until < BACKLOG_GAP_S else began
    has_read = False
    while (file := context.backlog.next_transcript()) and not context.is_stopping and not context.client_is_waiting():
        has_read = True
        report = read_guarded(context, Path(file.path), most_pieces=1)
        if context.store.last_write_error and f"transcript {file.path}" in context.trouble:
            return False  # the others would fail too: it stays first until the disk accepts writes
        before, reading_until = reading_until, time.monotonic()
        context.backlog.record_reading(size=report.bytes_read, took_s=reading_until - before)
        if not report.more:
            context.backlog.drop(file.path)
        if reading_until - began > SLICE_S:
            break
    context.backlog_read_until = reading_until
    return has_read
