"""Stores the events that hooks spooled while the daemon did not answer."""

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

from csmd.capture import ingest
from csmd.conversation import Event
from csmd.daemon import injection
from csmd.daemon.context import Context, now_iso, to_iso
from csmd.errors import BadInput, StoreError
from csmd.hosts import adapters
from csmd.paths import is_file
from csmd.privacy.redaction import redact
from csmd.store import activity, files, session_context
from csmd.store.sqlite import Rows
from csmd.text.display import amount

log = logging.getLogger(__name__)

#: A hook may wait for a commit, which stores at most this many spooled events and bytes.
MAX_GROUP_FILES = 32
MAX_GROUP_BYTES = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class QueuedEvent:
    """A spooled event whose write is queued; `event` is None if it is only counted."""

    path: Path
    written: Future[Any]
    event: Event | None = None


def replay(context: Context) -> bool:
    """Stores every spooled event, oldest first; returns whether there was any."""
    stored = 0
    waiting = [path for path in files.spooled_paths(context.config.paths.home) if path not in context.unremovable]
    for group in group_files(waiting):
        if context.is_stopping:
            break
        for queued in [_queue(context, path) for path in group]:
            finish = partial(_finish, context, queued)
            stored += bool(context.guard("spooled event", finish, about=queued.path.name))
    if stored:
        log.info("stored %s that hooks spooled while the daemon did not answer", amount(stored, "event"))
    return stored > 0


def group_files(waiting: list[Path]) -> Iterator[list[Path]]:
    """Groups of spooled files that share a commit, in order: at most MAX_GROUP_FILES files and MAX_GROUP_BYTES bytes."""
    group: list[Path] = []
    bytes_left = MAX_GROUP_BYTES
    for path in waiting:
        size = 0
        with suppress(OSError):  # deleted or unreadable, which is handled when it is queued
            size = path.lstat().st_size
        if group and (len(group) == MAX_GROUP_FILES or size > bytes_left):
            yield group
            group, bytes_left = [], MAX_GROUP_BYTES
        group.append(path)
        bytes_left -= size
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
        decoded = ingest.decode_permitted(
            spooled.host, spooled.body, context.excludes,
            name=spooled.name, event_id=spooled.id, at=_parse_time(spooled.at_ns),
        )  # fmt: skip
        if isinstance(decoded, BadInput):
            raise decoded
        event, redacted = decoded
        if event is not None:
            return QueuedEvent(path, _submit_event(context, event, redacted), event)
        counts = list(redacted.items())
    return QueuedEvent(path, store.submit(lambda rows: activity.increment_counters(rows, counts), wait=True))


def _submit_event(context: Context, event: Event, redacted: Counter[str]) -> Future[bool]:
    """Queues the write of an event; the result is whether it starts a session without a brief."""
    store, room = context.store, context.config.settings.capture_session_bytes
    project = store.read(lambda rows: ingest.find_event_project(rows, event))

    def write(rows: Rows) -> bool:
        injection.delete_receipts(rows, event)  # its hook got no answer in time, whatever was sent
        ingest.record_event(
            rows, event, redacted=redacted, key=store.hash_key, now=now_iso(), place=project, max_session_bytes=room,
            is_replayed=True,
        )  # fmt: skip
        return event.name == "session_start" and not session_context.is_briefed(rows, event.session_id)

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
        context.unremovable.add(path)
        raise
    else:
        context.hint_from_hook(*(event.transcript_path, event.host) if event else ("",))
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
        context.config.paths.quarantine, source=redact(str(path), Counter()), reason=redact(reason, Counter()),
        data=data, now=now_iso(),
    )  # fmt: skip
    context.store.write(lambda rows: activity.increment_counters(rows, [(ingest.BAD_EVENTS, 1)]))
    try:
        path.unlink(missing_ok=True)
    except OSError:
        context.unremovable.add(path)  # for example a directory, which csmd must not remove; once is enough


def _parse_time(at_ns: int) -> str:
    try:
        return to_iso(datetime.fromtimestamp(at_ns / 1e9, UTC))
    except (OverflowError, OSError, ValueError) as error:
        raise BadInput(f"{at_ns} is not a time") from error
