"""A person at a terminal: csmd in a pseudo terminal of 80 columns that it controls, keys typed when something is seen.

Not a test: found through tests/conftest.py. Nothing waits for a chosen time: keys go when their words have come.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
from collections.abc import Mapping
from pathlib import Path

import forked_process
import psutil

LIMIT_S = 60.0
COLOURS = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Terminal:
    """One command in a terminal of its own; `said` is what it has shown so far, without colours."""

    def __init__(
        self, *words: str, cwd: Path, environment: Mapping[str, str], columns: int = 80, lines: int = 40,
        module: str = "csmd",
    ) -> None:  # fmt: skip
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.child = forked_process.spawn(
            module, *words, cwd=cwd, env={"TERM": "xterm", **environment}, files=(slave, slave, slave), terminal=True
        )
        os.close(slave)
        self.said = ""
        #: What it has shown, byte for byte.
        self.raw = b""
        self._read = 0

    def sees(self, words: str) -> str:
        """Waits until words are shown that were not there before; what was shown up to them."""
        end = time.monotonic() + LIMIT_S
        while (at := self.said.find(words, self._read)) < 0:
            assert self._more(end - time.monotonic()), f"{words!r} is not shown:\n{self.said[self._read :]}"
        output = self.said[self._read : at + len(words)]
        self._read = at + len(words)
        return output

    def press(self, keys: str) -> None:
        """Types; ^C only when the program waits: Python loses one that comes between what it shows and its reading."""
        while "\x03" in keys and psutil.Process(self.child.pid).status() == psutil.STATUS_RUNNING:
            self._more(LIMIT_S, waits_s=0.01)
        os.write(self._master, keys.encode())

    def ends(self) -> int:
        """Waits for the end; the exit code."""
        end = time.monotonic() + LIMIT_S
        while self._more(end - time.monotonic()):
            pass
        code = self.child.wait(LIMIT_S)
        os.close(self._master)
        return code

    def _more(self, within_s: float, *, waits_s: float = LIMIT_S) -> bool:
        """Reads what comes next; False at the end of it."""
        assert within_s > 0, f"it does not go on:\n{self.said}"
        if not select.select([self._master], [], [], min(within_s, waits_s))[0]:
            return True
        try:
            data = os.read(self._master, 65536)
        except OSError:  # its other end is closed
            return False
        self.raw += data
        self.said = COLOURS.sub("", self.raw.decode("utf-8", "replace")).replace("\r\n", "\n")
        return bool(data)
