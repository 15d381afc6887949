"""`python -m csmd.daemon`: reads the configuration, runs the daemon, says on stderr why it cannot."""

from __future__ import annotations

import sys

from csmd.daemon import logs
from csmd.daemon.entry import configuration, explaining
from csmd.daemon.run import run


def main() -> int:
    """The exit code."""
    logs.keep_words_off_stderr()
    return explaining(lambda: run(configuration()))


if __name__ == "__main__":
    sys.exit(main())
