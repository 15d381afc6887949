"""Single keys from a terminal: its mode is taken over for a while and always given back; what was typed ahead counts."""

from __future__ import annotations

import os
import re
import termios
from collections.abc import Iterator
from contextlib import contextmanager

#: What the end of the input is told as.
END = "\x04"
#: What a terminal sends for a key that is no letter: an arrow, a function key, escape itself.
_NO_LETTER = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.)?")
NOTHING = "\x00"


class Keys:
    """The terminal on standard input while keys count one by one; ^C still interrupts."""

    def __init__(self) -> None:
        self._usual = termios.tcgetattr(0)
        self._typed = ""

    def __enter__(self) -> Keys:
        single = termios.tcgetattr(0)
        single[3] &= ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(0, termios.TCSADRAIN, single)  # what was typed ahead stays
        return self

    def __exit__(self, *_: object) -> None:
        termios.tcsetattr(0, termios.TCSADRAIN, self._usual)

    @contextmanager
    def lines(self) -> Iterator[None]:
        """The terminal as it is usually, for an editor or a line that is typed."""
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()

    def press(self) -> str:
        """The next key; "" for one that is no letter (an arrow), END at the end of the input."""
        if not self._typed:
            # What was typed behind an arrow comes with it, and counts.
            self._typed = _NO_LETTER.sub(NOTHING, os.read(0, 64).decode("utf-8", "replace"))
        key, self._typed = self._typed[:1], self._typed[1:]
        return "" if key == NOTHING else key or END
