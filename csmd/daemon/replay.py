"""What hooks kept while nobody answered: a file goes only after its commit, and none stops the ones behind it.

What is wrong with one event is noted in the quarantine; what is wrong with the disk or the database lets it wait,
and what is wrong with us leaves it where it is.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from csmd.capture import transcripts as capture
from csmd.capture.redact import redact
from csmd.daemon import hosts, injecting
from csmd.daemon.context import Context
from csmd.daemon.now import iso, now_iso
from csmd.errors import BadInput, StoreError
from csmd.model import Event
from csmd.store import activity, files, receipts
from csmd.store.sqlite import Rows
from csmd.text import amount

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
        is_owed = begun.written.result()
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
            context.owed.unread(begun.event)
            if is_owed:
                context.owed.owe(begun.event)
        path.unlink(missing_ok=True)
    return True


def _submit(context: Context, path: Path, left: files.Spooled) -> Begun:
    """Queues the write of one event, or the count of one that nobody understands."""
    store = context.store
    if left.host not in hosts.DECODERS:
        return Begun(path, "", store.submit(lambda rows: activity.count(rows, [(hosts.UNKNOWN, 1)]), wait=True))
    decoded = hosts.decode(
        left.host, left.body, context.excludes, name=left.name, event_id=left.id, at=_moment(left.at_ns)
    )
    if isinstance(decoded, BadInput):
        raise decoded
    event, redacted = decoded
    if event is None:
        return Begun(path, "", store.submit(lambda rows: activity.count(rows, list(redacted.items())), wait=True))
    place, room = store.read(lambda rows: capture.place_of(rows, event)), context.config.settings.capture_session_bytes

    def write(rows: Rows) -> bool:
        """Whether nobody told its session anything at its start."""
        injecting.take_back(rows, event)  # its hook kept it because it had no answer, whatever was sent to it
        capture.record(rows, event, redacted=redacted, key=store.hash_key, now=now_iso(), place=place, room=room)
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
