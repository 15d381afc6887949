"""Reads hinted and swept transcripts, the backlog and the spool."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from csmd.capture import ingest, transcripts
from csmd.config import Config
from csmd.daemon import backlog, injection
from csmd.daemon.context import Context, iso, now_iso
from csmd.errors import BadInput, StoreError
from csmd.exclusions import Excludes
from csmd.hosts import own
from csmd.model import Event
from csmd.privacy.redaction import redact
from csmd.store import activity, cursors, files, receipts
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text.display import amount

#: A transcript written to so lately may be somebody's at work; more of them than anybody has.
LIVE_S, MOST_LIVE = 3600, 200
#: How long a step reads a backlog: what happens meanwhile waits so long.
SLICE_S = 0.2
#: A backlog that was read from so lately is still being read: the rests between are a part of what it takes.
STILL_S = 5.0


def read(
    store: Store,
    config: Config,
    path: Path,
    *,
    leave_out: Excludes,
    most_pieces: int | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> transcripts.Tail:
    """Reads what a transcript has grown by, or `most_pieces` of it; raises as `stage_tail.tail` does."""
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
        read_line=own.reader(path, home=config.paths.sessions, key=store.hash_key),
    )


def sweep(context: Context, *, full: bool) -> int:
    """Finds every transcript that has grown; only those written to in the last hour unless `full`; how many."""
    if full:
        known = context.store.read(cursors.file_positions)
        roots = [str(root) for root in context.roots()]
        elsewhere = (path for path in known if not path.startswith(tuple(f"{root}/" for root in roots)))
        on_disk = chain.from_iterable(
            [*(transcripts.listed(Path(root)) for root in roots), filter(None, map(transcripts.look, elsewhere))]
        )
        grown = [one for one in on_disk if transcripts.has_grown(one, known) and Path(one.path) not in context.excluded]
        context.backlog.fill(backlog.in_order(grown, roots))
        _forget_trouble_of_lost_files(context)
        return len(grown)
    since = time.time_ns() - LIVE_S * 1_000_000_000
    live = context.store.read(lambda rows: cursors.file_positions_since(rows, since, most=MOST_LIVE))
    grown = [one for path in live if (one := transcripts.look(path)) and transcripts.has_grown(one, live)]
    for one in grown:
        context.hint(one.path)
    return len(grown)


def look_some(context: Context, path: Path) -> bool:
    """Reads a piece of what a transcript has grown by, the rest in a later step; whether it brought anything."""
    report = look_at(context, path, most_pieces=1)
    if report.more:
        context.hint(str(path))
    return report.bytes_read > 0


def look_at(context: Context, path: Path, *, strict: bool = False, most_pieces: int | None = None) -> transcripts.Tail:
    """Reads what a transcript has grown by, or a part of it; what it could not read is told in `trouble`."""
    report = transcripts.Tail()

    def look() -> bool:
        nonlocal report
        if not path.is_file():
            return False  # gone, which is no trouble, or a pipe that would never end
        with suppress(FileNotFoundError):
            report = read(
                context.store, context.config, path,
                leave_out=context.excludes, most_pieces=most_pieces, stop=lambda: context.stopping,
            )  # fmt: skip
            if report.excluded:
                context.excluded.add(path)
            elif report.bytes_read:
                context.excluded.discard(path)
        return True

    context.guard("transcript", look, about=str(path), strict=strict)
    (context.half_read.add if report.more else context.half_read.discard)(str(path))
    return report


def read_backlog(context: Context) -> bool:
    """Reads of what a sweep found for a moment, or until somebody waits; whether it read any."""
    begun = time.monotonic()
    # Of the time it takes, distilling between two slices and the rests are a part.
    at = context.read_until if begun - context.read_until < STILL_S else begun
    some = False
    while (one := context.backlog.first()) and not context.stopping and not context.somebody_waits():
        some = True
        report = look_at(context, Path(one.path), most_pieces=1)
        if context.store.refusing and f"transcript {one.path}" in context.trouble:
            return False  # the others would fare no better: it stays the first, until the disk takes writes
        was, at = at, time.monotonic()
        context.backlog.note(read=report.bytes_read, took_s=at - was)
        if not report.more:
            context.backlog.drop(one.path)
        if at - begun > SLICE_S:
            break
    context.read_until = at
    return some


def _forget_trouble_of_lost_files(context: Context) -> None:
    for what in [what for what in context.trouble if what.startswith("transcript ")]:
        if not Path(what.removeprefix("transcript ")).exists():
            del context.trouble[what]


log = logging.getLogger(__name__)

#: So many, or so much, share one commit; a hook that comes meanwhile stands behind them.
TOGETHER, TOGETHER_BYTES = 32, 2 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Begun:
    """An event whose write is queued, and the transcript it speaks of."""

    path: Path
    transcript: str
    written: Future[Any]
    event: Event | None = None


def replay(context: Context) -> bool:
    """Takes in every spooled event, the oldest first; whether there was any."""
    found = False
    taken = 0
    waiting = [path for path in files.spooled_paths(context.config.paths.home) if path not in context.left_alone]
    for group in groups(waiting):
        if context.stopping:
            break
        for begun in [_begin(context, path) for path in group]:
            done = context.guard("spooled event", partial(_finish, context, begun), about=begun.path.name)
            found, taken = found or done, taken + done
    if taken:
        log.info("took in %s that hooks kept while nobody answered", amount(taken, "event"))
    return found


def groups(waiting: list[Path]) -> Iterator[list[Path]]:
    """What is taken in together, in order: few enough, and never so much that it would not fit into memory."""
    group: list[Path] = []
    left = TOGETHER_BYTES
    for path in waiting:
        size = 0
        with suppress(OSError):  # gone, or nothing to be read: that comes to light when it is begun
            size = path.lstat().st_size
        if group and (len(group) == TOGETHER or size > left):
            yield group
            group, left = [], TOGETHER_BYTES
        group.append(path)
        left -= size
    if group:
        yield group


def _begin(context: Context, path: Path) -> Begun:
    """Reads an event and queues its write; what is wrong with it comes to light when it is finished."""
    try:
        return _submit(context, path, files.read_spooled(path))
    except Exception as error:  # noqa: BLE001 - raised again by `_finish`, in its turn
        failed: Future[Any] = Future()
        failed.set_exception(error)
        return Begun(path, "", failed)


def _finish(context: Context, begun: Begun) -> bool:
    path = begun.path
    try:
        is_pending = begun.written.result()
    except FileNotFoundError:
        return False
    except BadInput as error:
        _quarantine(context, path, error.what)
    except (OSError, StoreError):
        if path.is_file():
            raise  # the disk or the database: it waits
        _quarantine(context, path, "not a file")
    except Exception:
        # A bug of ours or no memory: not the event's fault, so it stays, and is tried again by the next daemon.
        context.left_alone.add(path)
        raise
    else:
        context.hint_of_hook(begun.transcript)
        if begun.event is not None:
            context.starts.reopen(begun.event)
            if is_pending:
                context.starts.add(begun.event)
        path.unlink(missing_ok=True)
    return True


def _submit(context: Context, path: Path, left: files.Spooled) -> Begun:
    """Queues the write of one event, or the count of one that nobody understands."""
    store = context.store
    if left.host not in ingest.DECODERS:
        return Begun(path, "", store.submit(lambda rows: activity.count(rows, [(ingest.UNKNOWN, 1)]), wait=True))
    decoded = ingest.decode(
        left.host, left.body, context.excludes, name=left.name, event_id=left.id, at=_moment(left.at_ns)
    )
    if isinstance(decoded, BadInput):
        raise decoded
    event, redacted = decoded
    if event is None:
        return Begun(path, "", store.submit(lambda rows: activity.count(rows, list(redacted.items())), wait=True))
    place, room = store.read(lambda rows: ingest.place_of(rows, event)), context.config.settings.capture_session_bytes

    def write(rows: Rows) -> bool:
        """Whether nobody told its session anything at its start."""
        injection.take_back(rows, event)  # its hook kept it because it had no answer, whatever was sent to it
        ingest.record(rows, event, redacted=redacted, key=store.hash_key, now=now_iso(), place=place, room=room)
        return event.name == "session_start" and not receipts.was_briefed(rows, event.session_id)

    written = store.submit(write, wait=True)
    return Begun(path, event.transcript_path, written, event)


def _quarantine(context: Context, path: Path, reason: str) -> None:
    data = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
    files.quarantine(
        context.config.paths.quarantine,
        source=redact(str(path), Counter()),
        reason=redact(reason, Counter()),
        data=data,
        now=now_iso(),
    )
    context.store.write(lambda rows: activity.count(rows, [("bad events", 1)]))
    try:
        path.unlink(missing_ok=True)
    except OSError:
        context.left_alone.add(path)  # a directory, say: not ours to remove, and noted once is enough


def _moment(at_ns: int) -> str:
    try:
        return iso(datetime.fromtimestamp(at_ns / 1e9, UTC))
    except (OverflowError, OSError, ValueError) as error:
        raise BadInput(f"{at_ns} is no time") from error
