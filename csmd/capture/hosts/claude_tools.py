"""Which transcripts a tool call writes: from then on what stands in them is not the host's word alone.

A tool that the assistant runs can append a line "by the user" to any transcript. Told by the call as
it was made: a writing tool that names the file, or a shell line that writes and names it. A name that is only
computed is not seen (docs/security.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from string import ascii_letters, digits
from typing import Any

#: A transcript's file name ends so, and has these signs before it, in a path, a command or a program.
_SUFFIX = re.compile(r"\.jsonl\b", re.ASCII)
_IN_NAMES = f"{ascii_letters}{digits}_.-"
LONGEST_NAME = 120
#: Tools that write the file they name, and parts of the names of other makers' tools that do.
_WRITERS = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})
_WRITER = re.compile(r"write|edit|append|create|move|copy|upload|patch", re.IGNORECASE)
_READERS = frozenset({"Read", "Grep", "Glob", "LS", "NotebookRead"})
#: Ways in which a shell line or a program in it writes. What goes to another descriptor or to nowhere writes nothing.
_NOWHERE = re.compile(r"\d?>{1,2}\s?(?:&\d|/dev/\w{1,10})")
_WRITES = re.compile(
    r">{1,2}\s{0,4}[^\s|;&<>]{0,300}\.jsonl"
    r"|\b(?:tee|cp|mv|dd|ln|install|rsync|truncate|sponge|patch)\b"
    r"|\b(?:sed|perl|ruby)\b[^|;&\n]{0,200}?\s-[a-zA-Z]{0,4}i"
    r"|\bopen\([^)\n]{0,200}?[\"'][rb]?[wax]b?\+?[\"']"
    r"|\bwrite_?(?:text|bytes|file|line)|\.write\(|\.dump\(|appendFile",
    re.IGNORECASE,
)


def transcripts_written(tool: str, given: Any) -> tuple[str, ...]:
    """The file names of the transcripts that a tool call with this decoded input, whole and as it was made, writes."""
    if tool in _READERS:
        return ()
    # Decoded, for in JSON a line's end and a quote would be part of a name; on one line, as a call may be spread.
    said = " ".join(_strings(given)).replace("\n", " ")
    names = tuple(sorted({name for end in _SUFFIX.finditer(said) if (name := _name_before(said, end.start()))}))
    if not names or tool in _WRITERS or _WRITER.search(tool):
        return names
    return names if _WRITES.search(_NOWHERE.sub(" ", said)) else ()


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _strings(one)


def _name_before(said: str, at: int) -> str:
    """The file name that ends with the suffix at this place; "" for none."""
    before = said[max(0, at - LONGEST_NAME) : at]
    stem = before[len(before.rstrip(_IN_NAMES)) :]
    return f"{stem}.jsonl" if stem else ""
