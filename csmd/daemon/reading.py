"""How a transcript is read by this configuration: by the running daemon and by a repair alike.

What the user wants left out, and who speaks in a session file of csmd's own, does not depend on who reads.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from csmd.capture import own, transcripts
from csmd.capture.exclude import Excludes
from csmd.config import Config
from csmd.daemon.now import now_iso
from csmd.store import disk
from csmd.store.core import Store
from csmd.store.pauses import PauseFile


def roots(config: Config) -> list[Path]:
    """The directories with transcripts, those that exist."""
    folders = [*(folder / "projects" for folder in config.assistant_dirs), config.paths.sessions]
    return [path for path in folders if path.is_dir()]


def excludes(config: Config, pauses: PauseFile) -> Excludes:
    """What the user wants left out."""
    settings = config.settings
    return Excludes(
        projects=settings.privacy_exclude, files=settings.files_left_out, is_off=disk.is_off, pauses=pauses
    )  # fmt: skip


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
