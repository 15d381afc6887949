"""The small change of a screen: amounts with the right plural, ages, and words cut to a width in terminal cells."""

from __future__ import annotations

import re
from datetime import datetime

from csmd.cli import show

#: From here on a date says more than an age.
MOST_AGO_S = 60 * 86_400
#: A space at which no line is broken.
GLUE = "\u00a0"
_GAP = re.compile(rf"[^\S{GLUE}]+")
_AGES = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def many(amount: int, one: str, more: str = "") -> str:
    """`1 secret`, `2 secrets`, `1,204 turns`."""
    return f"{amount:,} {one if amount == 1 else more or one + 's'}"


def ago(stamp: str, now: str) -> str:
    """How long before `now` a stored time was, in its greatest unit; its date when that is long ago or nobody can tell."""
    if not stamp or stamp.startswith("1970"):
        return "never"
    try:
        past = (datetime.fromisoformat(now) - datetime.fromisoformat(stamp)).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return show.when(stamp)
    if past < -60 or past > MOST_AGO_S:  # the clock of who wrote it was ahead, or it is long past
        return show.when(stamp)[:10]
    unit, size = next(((unit, size) for unit, size in _AGES if past >= size), ("s", 1))
    return f"{max(0, int(past / size))} {unit} ago"


def tilde(path: str, home: str) -> str:
    """A path with `~` for the user's home."""
    inside = bool(home) and (path == home or path.startswith(f"{home.rstrip('/')}/"))
    return f"~{path[len(home.rstrip('/')) :]}" if inside else path


def glued(text: str) -> str:
    """A text that `wrapped` keeps on one line as far as it fits on one."""
    return text.replace(" ", GLUE)


def plain(text: str, *, keep_glue: bool = False) -> str:
    """A text on one line and without what would move the cursor."""
    single = _GAP.sub(" ", text if keep_glue else text.replace(GLUE, " ")).strip()
    return "".join(letter if letter.isprintable() or letter == GLUE else " " for letter in single)


def wrapped(text: str, width: int) -> list[str]:
    """The lines of a text in at most `width` columns: between words, within one only where it is too long itself."""
    lines, line = [], ""
    for word in text.split(" "):
        joined = f"{line} {word}" if line else word
        if cells(joined) <= width:
            line = joined
            continue
        if line:
            lines.append(line)
        line = word
        while cells(line) > width:
            head = _head(line, width)
            lines.append(head)
            line = line[len(head) :]
    return [one.replace(GLUE, " ").rstrip() for one in (*lines, line)]


def _head(text: str, width: int) -> str:
    """As many letters as fit, at least one; up to the last glued space where there is one."""
    size = used = 0
    for letter in text:
        used += cells(letter)
        if used > width and size:
            break
        size += 1
    gap = text.rfind(GLUE, 1, size)
    return text[: gap + 1] if gap > 0 else text[:size]


def cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    from rich.cells import cell_len

    return cell_len(text)


def fitted(text: str, width: int, *, end: bool = False) -> str:
    """A text in at most `width` columns, its beginning kept, or its `end`; an ellipsis where something is gone."""
    if cells(text) <= width:
        return text
    letters = text[::-1] if end else text
    kept, used = [], 1
    for letter in letters:
        used += cells(letter)
        if used > width:
            break
        kept.append(letter)
    part = "".join(kept)
    return f"…{part[::-1]}" if end else f"{part}…"
