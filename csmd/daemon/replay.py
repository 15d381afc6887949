"""What hooks kept while nobody answered: a file goes only after its commit, and none stops the ones behind it.

What is wrong with one event is noted in the quarantine; what is wrong with the disk or the database lets it wait,
and what is wrong with us leaves it where it is.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from csmd.capture import stage as capture
from csmd.daemon import hosts
from csmd.daemon.now import iso, now_iso
from csmd.errors import BadInput, StoreError
from csmd.store import counts, files

if TYPE_CHECKING:
    from csmd.daemon.steward import Steward


def replay(steward: Steward) -> bool:
    """Takes in every spooled event, the oldest first; whether there was any."""
    found = False
    for path in files.spooled_paths(steward.config.paths.home):
        if steward.stopping:
            break
        if path not in steward.left_alone:
            found |= steward.guard("spooled event", lambda path=path: _take_in(steward, path), about=path.name)  # type: ignore[misc]
    return found


def _take_in(steward: Steward, path: Path) -> bool:
    try:
        transcript = _store(steward, files.read_spooled(path))
    except FileNotFoundError:
        return False
    except BadInput as error:
        _quarantine(steward, path, error.what)
    except (OSError, StoreError):
        if path.is_file():
            raise  # the disk or the database: it waits
        _quarantine(steward, path, "not a file")
    except Exception:
        # A bug of ours or no memory: not the event's fault, so it stays, and is tried again by the next daemon.
        steward.left_alone.add(path)
        raise
    else:
        steward.hint(transcript)
        path.unlink(missing_ok=True)
    return True


def _store(steward: Steward, left: files.Spooled) -> str:
    """Takes in one event, or counts that nobody understands it; the path of its transcript or ""."""
    store = steward.store
    if left.host not in hosts.DECODERS:
        store.write(lambda rows: counts.count(rows, [(hosts.UNKNOWN, 1)]))
        return ""
    decoded = hosts.decode(left.host, left.body, name=left.name, event_id=left.id, at=_moment(left.at_ns))
    if isinstance(decoded, BadInput):
        raise decoded
    event, redacted = decoded
    if event is None:
        return ""
    place, room = capture.place_of(event), steward.config.settings.capture_session_bytes
    store.write(
        lambda rows: capture.record(
            rows, event, redacted=redacted, key=store.hash_key, now=now_iso(), place=place, room=room
        )
    )
    return event.transcript_path


def _quarantine(steward: Steward, path: Path, reason: str) -> None:
    data = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
    files.quarantine(steward.config.paths.quarantine, source=str(path), reason=reason, data=data, now=now_iso())
    steward.store.write(lambda rows: counts.count(rows, [("bad events", 1)]))
    try:
        path.unlink(missing_ok=True)
    except OSError:
        steward.left_alone.add(path)  # a directory, say: not ours to remove, and noted once is enough


def _moment(at_ns: int) -> str:
    try:
        return iso(datetime.fromtimestamp(at_ns / 1e9, UTC))
    except (OverflowError, OSError, ValueError) as error:
        raise BadInput(f"{at_ns} is no time") from error
