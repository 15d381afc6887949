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
#: How much of the index a session is told: lines, UTF-16 units; and how much of the first line it is not told.
INDEX_LINES, INDEX_UNITS, EXCERPT = 200, 25_000, 80


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


def cut_index(content: str) -> str:
    """A MEMORY.md's first 200 lines and 25,000 UTF-16 units, cut at a line, with the host's warning below."""
    lines = content.split("\n")
    units = _units(content)
    if len(lines) <= INDEX_LINES and units <= INDEX_UNITS:
        return content
    kept = "\n".join(lines[:INDEX_LINES])
    if _units(kept) > INDEX_UNITS:
        kept = kept.encode("utf-16-le", "surrogatepass")[: INDEX_UNITS * 2].decode("utf-16-le", "ignore")
        kept = kept[: kept.rfind("\n")] if kept.rfind("\n") > 0 else kept
    whole = len(kept.split("\n"))
    size = f"{units / 1024:.1f}KB"
    if len(lines) > INDEX_LINES and units > INDEX_UNITS:
        what = f"{len(lines)} lines and {size}"
    elif len(lines) > INDEX_LINES:
        what = f"{len(lines)} lines (limit: {INDEX_LINES})"
    else:
        what = f"{size} (limit: {INDEX_UNITS / 1024:.1f}KB) — index entries are too long"
    if kept == "\n".join(lines[:whole]):
        first = lines[whole].strip()
        first = first if len(first) <= EXCERPT else first[: EXCERPT - 1] + "…"
        lost = f'{len(lines) - whole} of {len(lines)} lines were cut off, starting at line {whole + 1} ("{first}")'
    else:
        lost = f"everything after the first {_units(kept)} characters of line {whole} was cut off"
    return (
        f"{kept}\n\n> WARNING: MEMORY.md is {what}. Only part of it was loaded: {lost}. "
        "Keep index entries to one line under ~200 chars; move detail into topic files."
    )


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
