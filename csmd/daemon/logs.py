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
from types import TracebackType

from csmd.config import Config
from csmd.errors import CsmdError
from csmd.privacy.redaction import redact
from csmd.store import files

log = logging.getLogger(__name__)

LOG_BACKUPS = 3
#: How many causes of an error are named.
MAX_CAUSES = 5
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
            frames = "".join(
                f"\n  {frame.filename}:{frame.lineno} in {frame.name}"
                for frame in traceback.extract_tb(error.__traceback__, limit=-30)
            )
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
