"""Which transcripts a tool call writes: from then on what stands in them is not the host's word alone.

A tool that the assistant runs can append a line "by the user" to any transcript. Told by the recorded
call: a writing tool that names the file, or a shell line that writes and names it. A name that is only
computed is not seen (docs/security.md).
"""

from __future__ import annotations

import re

from csmd.model import Turn

#: A transcript's file name, as it may stand in a path, a command or a program.
_NAME = re.compile(r"([\w.-]{1,120}\.jsonl)\b", re.ASCII)
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


def transcripts_written(turn: Turn) -> list[str]:
    """The file names of the transcripts that a recorded tool call writes; empty for any other turn."""
    if turn.kind != "tool_call" or turn.tool_name in _READERS or ".jsonl" not in turn.text:
        return []
    names = sorted(set(_NAME.findall(turn.text)))
    if turn.tool_name in _WRITERS or _WRITER.search(turn.tool_name):
        return names
    return names if _WRITES.search(_NOWHERE.sub(" ", turn.text)) else []
