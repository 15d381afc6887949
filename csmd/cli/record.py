"""What `csmd install` wrote outside csmd's own directories: `install.json`, what `uninstall` goes by, and no more.

settings         file -> {"original", "sha256", "kinds"}: how to give its bytes back (edited.py)
folders          file -> whether its directory was made for it
events           the newer events that are registered; `needs` is the oldest client that may be in use with them,
                 `kept_out_by` why there are not more
service          the unit that keeps the daemon: {"kind", "file", "folders": those made for it}; null for none
version          which csmd put all this into place
assistant_dirs   the configuration directories that were served; the daemon reads their transcripts
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from csmd import wire
from csmd.cli.disk import write_whole
from csmd.errors import BadInput, CsmdError
from csmd.paths import Paths


def load(paths: Paths) -> dict[str, Any]:
    """The install record, empty when there is none."""
    empty: dict[str, Any] = {
        "settings": {},
        "folders": {},
        "assistant_dirs": [],
        "events": [],
        "needs": "",
        "kept_out_by": "",
        "service": None,
        "version": "",
    }
    if not paths.install_record.exists():
        return empty
    try:
        value = wire.loads(paths.install_record.read_bytes())
    except BadInput:
        value = None
    service = value.get("service") if isinstance(value, dict) else None
    sound = isinstance(value, dict) and isinstance(value.get("settings"), dict)
    if not sound or not (
        service is None or (isinstance(service, dict) and {"kind", "file", "folders"} <= service.keys())
    ):
        raise CsmdError(f"{paths.install_record} is damaged", hint="move it away; then `csmd install` writes it anew")
    return {**empty, **value}


def save(paths: Paths, record: Mapping[str, Any]) -> None:
    """Writes the install record whole."""
    write_whole(paths.install_record, wire.pretty(record).encode() + b"\n")


def assistant_dirs(paths: Paths) -> tuple[Path, ...]:
    """The assistant's configuration directories that earlier installs wrote to."""
    return tuple(Path(folder) for folder in load(paths)["assistant_dirs"])


@contextmanager
def alone(paths: Paths) -> Iterator[None]:
    """Of two that install, settle or uninstall at once the second waits; nothing to wait for where no home is."""
    if not paths.run_dir.is_dir():
        yield
        return
    descriptor = os.open(paths.run_dir / "install.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def noted(paths: Paths, path: Path, kept: Mapping[str, Any], *, made: bool) -> Iterator[None]:
    """Notes how a file is given back, before it is written: an entry without a record could not be taken back.

    `made`: its directory is made for it. What is raised inside takes the note away again.
    """
    before, record, key = load(paths), load(paths), str(path)
    record["settings"][key] = dict(kept)
    record["folders"][key] = made or bool(record["folders"].get(key))
    save(paths, record)
    try:
        yield
    except BaseException:
        save(paths, before)
        raise
