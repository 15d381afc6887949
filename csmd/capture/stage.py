"""Capture's hands: stores what hooks report, and finds the transcripts; stage_tail.py reads them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from csmd import text
from csmd.capture import probe, stage_place
from csmd.capture import stage_purge as purging
from csmd.capture.hosts import claude
from csmd.capture.redact import storable_path
from csmd.model import Event, Project
from csmd.store import activity, events, files, projects, tombstones
from csmd.store.sqlite import Rows

#: Enough of a transcript's beginning for the first line that names a directory.
BEGINNING_BYTES = 64 * 1024

#: What says that nothing of the session is still to come for now. A turn that ended in an error is over, too; what the
#: client says of the error is no words of the assistant's, and a summary is taken from its own line, not from the hook.
SETTLING = ("stop", "stop_failure", "session_end", "pre_compact", "post_compact")

#: Bytes of text of one session that are kept where nobody says otherwise.
SESSION_BYTES = 50_000_000
#: Directories of the assistant's in which no transcripts are.
LEFT_OUT = ("memory", "tool-results")


@dataclass(frozen=True, slots=True)
class OnDisk:
    """A transcript as a listing finds it."""

    path: str
    size: int
    mtime_ns: int


def decode_event(body: bytes, *, name: str, event_id: str, at: str) -> tuple[Event | None, Counter[str]]:
    """The event in a hook's payload and what was redacted in it; BadInput when it is malformed."""
    counts: Counter[str] = Counter()
    event = claude.event(body, name=name, event_id=event_id, at=at, counts=counts)
    return None if event is None else probe.unanswered(event), counts


def place_of(rows: Rows, event: Event) -> Project | None:
    """The project of the turn that an event reports, a new one with its marks; None when it reports none.

    For `record`: what the disk is asked before the write is submitted does not hold up the writer.
    """
    if claude.event_turn(event) is None or probe.is_probe(event):
        return None
    start = started_in(Path(event.transcript_path)) if event.transcript_path else ""
    return stage_place.entering(rows, stage_place.identify(event.cwd, start=start))


def record(
    rows: Rows,
    event: Event,
    *,
    redacted: Counter[str],
    key: bytes,
    now: str,
    place: Project | None = None,
    room: int = SESSION_BYTES,
) -> bool:
    """Stores an event and its provisional turn in one transaction; False when it was known or nothing of it may be kept.

    `place` is what `place_of` says of the event: the writer never looks at the disk. `room` is how much of a
    session is kept.
    """
    permitted = purging.permitted_event(rows, event, place, key=key)
    if permitted is None:
        return False
    event = permitted
    text_hash = text.keyed_hash(event.text, key) if event.text else ""
    turn = claude.event_turn(event)
    if turn is not None and probe.is_probe(event):
        return events.add_probe(rows, turn, text_hash=text_hash)
    payload_hash = text.keyed_hash(event.payload, key)
    if not events.record(rows, event, text_hash=text_hash, payload_hash=payload_hash):
        return False
    activity.count(rows, redaction_counts(redacted))
    if turn is not None and place is not None:
        listed = tombstones.listed_path(rows, storable_path(event.transcript_path), key=key)
        turn, place, path = purging.permitted_turn(turn, place, listed, tombstones.marks(rows, key))
        home = projects.settle(rows, place, now=now)
        events.add_provisional(
            rows,
            turn,
            event=event.name,
            text_hash=text_hash,
            host=event.host,
            project=home.seq,
            directory=home.directory,
            path=path,
            room=room,
        )
    if event.name in SETTLING:
        events.settle_provisional(rows, event.session_id, at=event.at)
    return True


def redaction_counts(counts: Counter[str]) -> list[tuple[str, int]]:
    """Redactions by kind as counters."""
    return [(f"redacted {kind}", amount) for kind, amount in counts.items()]


def transcripts(root: Path) -> list[Path]:
    """Every transcript below a projects directory or in it, the latest written first; a file is itself."""
    found = sorted(listed(root), key=lambda one: (-one.mtime_ns, one.path))
    return [Path(one.path) for one in found]


def listed(root: Path) -> Iterator[OnDisk]:
    """Every transcript below a projects directory or in it, in no order; a file is itself.

    There may be twenty thousand, and this looks at them four times an hour: names as the system gives them, and
    one question for each.
    """
    if root.is_file():
        info = root.stat()
        yield OnDisk(str(root), info.st_size, info.st_mtime_ns)
        return
    folders = [str(root)]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir():
                        if entry.name not in LEFT_OUT and not entry.is_symlink():
                            folders.append(entry.path)
                    elif entry.name.endswith(".jsonl"):
                        with suppress(OSError):  # gone between listing and looking: there is nothing to read
                            info = entry.stat()
                            yield OnDisk(entry.path, info.st_size, info.st_mtime_ns)
        except OSError:
            continue  # a directory that is gone, or that we may not read


def look(path: str) -> OnDisk | None:
    """A file as it is now; None when there is none."""
    try:
        info = os.stat(path)  # noqa: PTH116 - thousands of names, of which few become a Path
    except OSError:
        return None
    return OnDisk(path, info.st_size, info.st_mtime_ns)


def started_in(path: Path) -> str:
    """The directory in which a transcript's session began; "" when there is no such file yet, or it is a pipe."""
    try:
        with files.open_regular(path) as file:
            return claude.started_in(file.read(BEGINNING_BYTES))
    except (OSError, ValueError):
        return ""


def has_grown(one: OnDisk, known: Mapping[str, tuple[int, int]]) -> bool:
    """Whether a transcript may hold something that was not read yet, by its size and when it was written."""
    state = (one.size, one.mtime_ns)
    # Nearly every name is stored as it is: what is stored under another is asked for only where that fails.
    return state != known.get(one.path) and state != known.get(storable_path(one.path))
