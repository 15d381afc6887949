"""`python -m csmd.daemon`: reads the configuration, runs the daemon, says on stderr why it cannot."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from csmd.capture.redact import redact
from csmd.config import default_paths, load
from csmd.daemon import logs
from csmd.daemon.run import run
from csmd.errors import CsmdError
from csmd.store import files


def main() -> int:
    """The exit code."""
    logs.keep_words_off_stderr()
    try:
        paths = default_paths()
        record = files.read_json(paths.install_record) or {}
        recorded = record.get("assistant_dirs")
        extra = tuple(Path(str(folder)) for folder in recorded) if isinstance(recorded, list) else ()
        run(load(paths=paths, extra_dirs=extra))
    except CsmdError as error:
        print(f"csmd: {redact(error.what, Counter())}", file=sys.stderr)  # noqa: T201
        if error.hint:
            print(f"  try: {error.hint}", file=sys.stderr)  # noqa: T201
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
