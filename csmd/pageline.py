"""One line of a page and the text that it stands for: `- TEXT <!-- m:ID -->`, there and back; pure.

A text cannot begin another line, name an id or close a head: it stands on one line, and a comment in it is written
`<\\!--`.
"""

from __future__ import annotations

import re
import unicodedata

from csmd import text

ID = re.compile(r"\s*<!--\s*m:(m[0-9a-f]{10})\s*-->")
BULLET = re.compile(r"\s*(?:[-*+]|\d{1,4}[.)])(?:\s+(.*)|\s*)$")
_OPENS, _CLOSES = re.compile(r"<(\\*)!--"), re.compile(r"--(\\*)>")
_OPENED, _CLOSED = re.compile(r"<\\(\\*)!--"), re.compile(r"--\\(\\*)>")


def plain(said: str) -> str:
    """A text as it stands in a line: on one, with nothing unseen, and with comments that are none."""
    flat = text.squeeze(text.defuse(said))
    return _CLOSES.sub(r"--\\\1>", _OPENS.sub(r"<\\\1!--", flat))


def meant(line: str) -> str:
    """The text that a line stands for: the way back from `plain`."""
    return _CLOSED.sub(r"--\1>", _OPENED.sub(r"<\1!--", text.squeeze(line)))


def same(one: str, other: str) -> bool:
    """Whether two texts of lines are one and the same, however an editor writes their letters and spaces."""
    return key(one) == key(other)


def key(said: str) -> str:
    """What a line's text is compared by."""
    return text.squeeze(unicodedata.normalize("NFC", said))


def words_of(line: str) -> str:
    """The text of a list's line that stands in a file as it is compared, without its comment; "" for no such line."""
    bullet = BULLET.match(line)
    return key(meant(ID.sub("", bullet[1] or ""))) if bullet else ""
