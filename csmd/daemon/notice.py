"""A notice on the desktop, at most one a day, in constant words; nothing where there is no desktop or no way to show it.

The day is noted in a file that is there or not, so that neither a restart nor a clock that is set back repeats it.
"""

from __future__ import annotations

import shutil
import subprocess
from contextlib import suppress
from datetime import date, datetime, timedelta
from pathlib import Path

from csmd.config import child_environment, has_desktop

#: What shows a notice, by the name of a program on the PATH; the first that is there.
PROGRAMS = ("notify-send", "osascript")
TITLE = "csmd"
NOTE = "noticed-"
#: A note of a later day, within this, is one too; others are taken for a wrong clock's.
DAYS_KNOWN = 7
PATIENCE_S = 5.0


class Notices:
    """Owns the notes on which day somebody was told, in csmd's `run` directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._noted: set[str] = set()
        """Days of which no note could be made: where the disk is full, memory has to do."""

    def show(self, what: str, do: str) -> bool:
        """Shows a notice unless one was shown today; whether it was."""
        command = arguments(what, do) if has_desktop() else None
        if command is None or not self._is_first(datetime.now().astimezone().date()):
            return False
        with suppress(OSError, subprocess.SubprocessError):  # a desktop that does not listen: `csmd status` says it
            done = subprocess.run(
                command, env=child_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, timeout=PATIENCE_S, check=False, start_new_session=True,
            )  # fmt: skip
            return done.returncode == 0
        return False

    def _is_first(self, today: date) -> bool:
        near = {f"{NOTE}{today + timedelta(days=days)}" for days in range(-DAYS_KNOWN, DAYS_KNOWN + 1)}
        name = f"{NOTE}{today}"
        known = {path.name for path in self._directory.glob(f"{NOTE}*")} | self._noted
        if any(name <= other for other in known & near):
            return False
        try:
            (self._directory / name).touch(mode=0o600, exist_ok=False)
        except OSError:
            self._noted.add(name)
        for old in known - near:
            with suppress(OSError):
                (self._directory / old).unlink()
        return True


def arguments(what: str, do: str) -> list[str] | None:
    """The command that shows a notice; None where there is none. No shell sees the words."""
    for program in PROGRAMS:
        if (found := shutil.which(program)) is None:
            continue
        if program == "osascript":
            script = ["on run words", "display notification (item 1 of words) with title (item 2 of words)", "end run"]
            return [found, *(part for line in script for part in ("-e", line)), f"{what}: {do}", TITLE]
        return [found, f"--app-name={TITLE}", "--", f"{TITLE}: {what}", do]
    return None
