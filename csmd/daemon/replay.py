"""What hooks kept while nobody answered: a file goes only after its commit, and none stops the ones behind it.

What is wrong with one event is noted in the quarantine; what is wrong with the disk or the database lets it wait.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from csmd.capture import stage as capture
from csmd.daemon.now import iso, now_iso
from csmd.errors import BadInput, CsmdError, StoreError
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
            found |= steward.guard(f"spooled event {path.name}", lambda path=path: _take_in(steward, path))  # type: ignore[misc]
    return found


def _take_in(steward: Steward, path: Path) -> bool:
    store = steward.store
    try:
        left = files.read_spooled(path)
        event, redacted = capture.decode_event(left.body, name=left.name, event_id=left.id, at=_moment(left.at_ns))
        if event is not None:
            store.write(lambda rows: capture.record(rows, event, redacted=redacted, key=store.hash_key, now=now_iso()))
    except FileNotFoundError:
        return False
    except (OSError, StoreError):
        if path.is_file():
            raise
        _quarantine(steward, path, "not a file")
    except Exception as error:  # noqa: BLE001 - whatever is wrong with one event, the next ones are taken in
        _quarantine(steward, path, error.what if isinstance(error, CsmdError) else type(error).__name__)
    else:
        if event is not None:
            steward.hint(event.transcript_path)
        path.unlink(missing_ok=True)
    return True


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
