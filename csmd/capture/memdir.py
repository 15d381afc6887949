"""The assistant's own memory directory: where it lies, and what its files say of themselves; pure.

Another program writes there at any time, and its files are somebody's text: what is odd in one is a note.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from csmd import text as texts
from csmd.capture import matter

#: How many files are listed, the newest first, and how many bytes of one are read for it.
MOST_FILES = 200
READ_BYTES = 1024 * 1024
INDEX = "MEMORY.md"
TYPES = ("user", "feedback", "project", "reference")
FIELD_CHARACTERS = 400
LONGEST_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Memo:
    """One file of the memory directory; `modified` is UTC, `size` in bytes, `problems` what is odd in it."""

    filename: str
    name: str
    description: str
    type: str
    modified: str
    size: int
    problems: tuple[str, ...] = ()


def folder_name(path: str) -> str:
    """The name that the host gives the folder of a directory: not invertible, and two can have the same."""
    units = path.encode("utf-16-le", "surrogatepass")
    codes = [units[at] | units[at + 1] << 8 for at in range(0, len(units), 2)]
    name = "".join(chr(code) if code < 128 and chr(code).isalnum() else "-" for code in codes)
    if len(name) <= LONGEST_NAME:
        return name
    number = 0
    for code in codes:
        number = (number * 31 + code) & 0xFFFFFFFF
    number = abs(number - (1 << 32) if number >= 1 << 31 else number)
    digits = ""
    while True:
        number, rest = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[rest] + digits
        if not number:
            return f"{name[:LONGEST_NAME]}-{digits}"


def memo(filename: str, data: bytes, *, modified: str, size: int) -> Memo:
    """What a file says of itself: `type` at the top level (earlier clients) or below `metadata`."""
    problems: list[str] = []
    if size > len(data):
        problems.append(f"it is {size} bytes long; the first {len(data)} were read")
    found, _, problem = matter.parse(data.decode("utf-8", "replace"))
    if problem:
        problems.append(problem)
    elif not found:
        problems.append("it has no head")
    if b"\xef\xbf\xbd" not in data and "\ufffd" in data.decode("utf-8", "replace"):
        problems.append("it is not UTF-8")
    below = found.get("metadata")
    more = below if isinstance(below, dict) else {}
    kind = _field(found.get("type", more.get("type")))
    if found and kind not in TYPES:
        problems.append(f"its type is {kind!r}, not {', '.join(TYPES)}" if kind else "it has no type")
    return Memo(
        filename=filename,
        name=_field(found.get("name", more.get("name"))),
        description=_field(found.get("description", more.get("description"))),
        type=kind if kind in TYPES else "",
        modified=_field(found.get("modified", more.get("modified"))) or modified,
        size=size,
        problems=tuple(problems),
    )


def body(data: bytes) -> str:
    """A file's text without its head."""
    return matter.parse(data.decode("utf-8", "replace"))[1]


def _field(value: Any) -> str:
    if isinstance(value, date | datetime):
        return value.isoformat()
    plain = str(value) if isinstance(value, str | int | float) else ""
    return texts.cut(texts.squeeze(plain), FIELD_CHARACTERS)
