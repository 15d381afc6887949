"""A screen that is drawn again and again in its place until ^C; what was there before comes back, the last look stays."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from csmd.errors import CsmdError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

#: The other screen of a terminal, and back; the cursor home; the rest of a line, of the screen.
ENTER, LEAVE, HOME, LINE_END, REST = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l", "\x1b[H", "\x1b[K", "\x1b[J"


def _within(lines: list[Text], height: int) -> list[Text]:
    """As many lines as there is room for; the last one says how many are left out."""
    from rich.text import Text

    if len(lines) <= height:
        return lines
    left = f"... and {len(lines) - height + 1} more lines: a higher window shows them, or csmd status"
    return [*lines[: height - 1], Text(left, style="dim", no_wrap=True, overflow="ellipsis")]


def redraw(look: Callable[[], list[Text]], out: Console, *, every_s: float) -> None:
    """Draws what `look` gives, cut to the terminal's height; while it fails, why. Ends with ^C."""
    from rich.text import Text

    lines: list[Text] = []
    out.file.write(ENTER)
    try:
        while True:
            try:
                lines = look()
                shown = lines
            except CsmdError as error:
                shown = [
                    Text(f"csmd: {error.what}", style="yellow"),
                    Text(f"  try: {error.hint}" if error.hint else ""),
                ]
            with out.capture() as drawn:
                for line in _within(shown, out.height - 1):
                    out.print(line)
            out.file.write(HOME + drawn.get().replace("\n", f"{LINE_END}\n") + REST)
            out.file.flush()
            time.sleep(every_s)
    except KeyboardInterrupt:
        return
    finally:
        out.file.write(LEAVE)
        out.file.flush()
        for line in lines:
            out.print(line)
