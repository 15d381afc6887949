"""`python -m csmd.daemon`: runs the daemon."""

from __future__ import annotations

import faulthandler
import sys

from csmd.config import default_paths, started_by
from csmd.daemon import logs
from csmd.daemon.run import configuration, explaining, run


def main() -> int:
    """The exit code."""
    logs.keep_words_off_stderr()
    faulthandler.enable()  # a watchdog's SIGABRT, or a fault of a library's, says where every thread stood
    also = default_paths().complaint if started_by() != "detached" else None
    return explaining(lambda: run(configuration()), also=also)


if __name__ == "__main__":
    sys.exit(main())
