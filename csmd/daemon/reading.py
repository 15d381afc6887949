"""How a transcript is read by this configuration: by the running daemon and by a repair alike.

What the user wants left out, and who speaks in a session file of csmd's own, does not depend on who reads.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from itertools import chain
from pathlib import Path

from csmd.capture import own, transcripts
from csmd.capture.exclude import Excludes
from csmd.config import Config
from csmd.daemon import backfill
from csmd.daemon.context import Context
from csmd.daemon.now import now_iso
from csmd.store import cursors
from csmd.store.core import Store

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
        known = context.store.read(cursors.known_positions)
        roots = [str(root) for root in context.roots()]
        elsewhere = (path for path in known if not path.startswith(tuple(f"{root}/" for root in roots)))
        on_disk = chain.from_iterable(
            [*(transcripts.listed(Path(root)) for root in roots), filter(None, map(transcripts.look, elsewhere))]
        )
        grown = [one for one in on_disk if transcripts.has_grown(one, known) and Path(one.path) not in context.excluded]
        context.backlog.fill(backfill.in_order(grown, roots))
        _forget_trouble_of_lost_files(context)
        return len(grown)
    since = time.time_ns() - LIVE_S * 1_000_000_000
    live = context.store.read(lambda rows: cursors.positions_written_since(rows, since, most=MOST_LIVE))
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
