"""The daemon's log: private, rotating, and without anyone's words.

The text of an exception may quote a request, a transcript or a path, so only its type and its frames are written.
csmd's own lines consist of fixed words, numbers and csmd's names; details are in `csmd status`. The same holds for
stderr, which `csmd start` keeps in a file. What is written is also redacted, as the last line of defence.
"""

from __future__ import annotations

import logging
import logging.handlers
import os
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from types import TracebackType

from csmd.capture import ingest, transcripts
from csmd.config import Config
from csmd.errors import CsmdError
from csmd.privacy.redaction import redact
from csmd.store import activity, files
from csmd.store.core import Store
from csmd.text.display import amount

log = logging.getLogger(__name__)

LOG_BACKUPS = 3
#: Most causes of an error that are logged.
MAX_CAUSES = 5
#: Innermost frames of an error that are logged.
MAX_FRAMES = 30
HOUR_S = 3600.0
#: Count or counter -> its noun and what happened to it, in the order of an hour's line.
HOURLY_COUNTS: Mapping[str, tuple[str, str]] = {
    "turns": ("turn", ""), "memories": ("memory", ""), "injections": ("injection", ""),
    transcripts.PAUSED_TURNS: ("turn", " left out in a pause"), ingest.EXCLUDED_EVENTS: ("event", " left out"),
    transcripts.BAD_LINES: ("line", " that could not be read"), ingest.BAD_EVENTS: ("event", " that could not be read"),
}  # fmt: skip
Raised = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class WordlessFormatter(logging.Formatter):
    """Writes an exception as its type and frames, and another package's line without its words."""

    def format(self, record: logging.LogRecord) -> str:
        if record.name.partition(".")[0] != "csmd":
            record = logging.LogRecord(
                record.name, record.levelno, record.pathname, record.lineno, "(its words are left out)", None, None
            )
        return redact(super().format(record), Counter())

    def formatException(self, ei: Raised) -> str:  # noqa: N802 - the name is logging's
        lines: list[str] = []
        error: BaseException | None = ei[1]
        while error is not None and len(lines) < MAX_CAUSES:
            stack = traceback.extract_tb(error.__traceback__, limit=-MAX_FRAMES)
            frames = "".join(f"\n  {frame.filename}:{frame.lineno} in {frame.name}" for frame in stack)
            lines.append(f"{type(error).__name__}{frames}")
            error = error.__cause__ or error.__context__
        return redact("\nafter ".join(lines), Counter())


def describe_kind(error: BaseException) -> str:
    """Returns an error's kind in csmd's or the system's words, never its text, which may quote a person."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    if isinstance(error, CsmdError):
        return (type(error).__doc__ or type(error).__name__).partition("\n")[0].rstrip(".")
    return type(error).__name__


def configure(config: Config) -> None:
    """Sends the log to its file."""
    files.make_private(config.paths.log_dir)
    handler = logging.handlers.RotatingFileHandler(
        config.paths.log_file, maxBytes=config.settings.log_max_bytes, backupCount=LOG_BACKUPS, encoding="utf-8"
    )
    handler.setFormatter(WordlessFormatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    config.paths.log_file.chmod(0o600)
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


def keep_words_off_stderr() -> None:
    """Logs uncaught exceptions without their words, and writes those that end the process to stderr in the same form.

    Before `configure` there is no log, and only those that end the process are written.
    """
    logging.raiseExceptions = False  # else a line that cannot be written goes to stderr with its arguments
    logging.lastResort = None
    sys.excepthook = _report_fatal
    threading.excepthook = lambda hooked: _log_uncaught(hooked.exc_value)
    sys.unraisablehook = lambda hooked: _log_uncaught(hooked.exc_value)


def _report_fatal(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    _log_uncaught(error)
    sys.stderr.write(f"csmd: a bug: {WordlessFormatter().formatException((kind, error, trace))}\n")


def _log_uncaught(error: BaseException | None) -> None:
    log.error("uncaught error", exc_info=error)


class HourlyLog:
    """Owns the counts of an hour ago; the background thread logs the difference."""

    def __init__(self) -> None:
        self._next_due_s = 0.0
        self._since = ""
        self._counts: Mapping[str, int] | None = None

    def log_if_due(self, store: Store, now: float) -> bool:
        """Logs a line if one is due at the monotonic time `now`; returns whether it did."""
        if now < self._next_due_s:
            return False
        self._next_due_s = now + HOUR_S
        counts = store.read(lambda rows: {**activity.read_counters(rows), **activity.counts(rows)})
        previous, self._counts = self._counts, counts
        since, self._since = self._since, f"{datetime.now(UTC).astimezone():%H:%M}"
        if previous is None:
            return False
        increase = {name: counts.get(name, 0) - previous.get(name, 0) for name in HOURLY_COUNTS}
        rises = ((increase[name], *words) for name, words in HOURLY_COUNTS.items())
        parts = [amount(count, noun) + event for count, noun, event in rises if count > 0]
        if parts:
            log.info("since %s: %s", since, ", ".join(parts))
        return bool(parts)
