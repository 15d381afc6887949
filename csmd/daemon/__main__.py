"""`python -m csmd.daemon`: runs the daemon."""

from __future__ import annotations

import faulthandler
import sys

from csmd.config import default_paths, started_by
from csmd.daemon import logs
from csmd.daemon.instance import load_configuration, run_explained
from csmd.daemon.run import run


def main() -> int:
    """Returns the exit code."""
    logs.keep_words_off_stderr()
    faulthandler.enable()  # after a watchdog's SIGABRT, or a library's fault, the trace of every thread
    complaint = default_paths().complaint if started_by() != "detached" else None
    return run_explained(lambda: run(load_configuration()), complaint=complaint)


if __name__ == "__main__":
    sys.exit(main())
