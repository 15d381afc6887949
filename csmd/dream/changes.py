"""Which files a dream would write or remove, and why: by what differs between a page and what it should be; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from csmd import text
from csmd.dream import lines

Do = Literal["begin", "write", "remove", "read"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What would become of one file below the memory directory; `read`: an edit in it is read first, whatever comes of it."""

    path: str
    do: Do
    reason: str


def change(path: str, before: str | None, after: str | None, *, why_gone: str = "") -> Change | None:
    """What becomes of a file that says `before` (None: there is none) and should say `after`; None for nothing."""
    if before == after:
        return None
    if after is None:
        return Change(path=path, do="remove", reason=why_gone)
    if before is None:
        return Change(
            path=path,
            do="begin",
            reason=text.amount(number, "line") if (number := len(_lines(after))) else "no line yet",
        )
    was, is_now = _lines(before), _lines(after)
    counts = (
        (len(is_now.keys() - was.keys()), "new"),
        (len(was.keys() - is_now.keys()), "gone"),
        (sum(was[one] != is_now[one] for one in was.keys() & is_now.keys()), "in other words"),
    )
    said = [f"{text.amount(number, 'line')} {what}" for number, what in counts if number]
    return Change(path=path, do="write", reason=", ".join(said) or "its head, its order or its headings")


def _lines(said: str) -> dict[str, str]:
    """The lines of a page: by the memory, or the words, what each says."""
    return {item.id or lines.key(item.text): lines.key(item.text) for _, item in lines.read(said).lines()}
