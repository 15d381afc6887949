"""What the input of a tool call names, read from its JSON as text: one that was stored may be cut in its middle; pure."""

from __future__ import annotations

import re

#: The tools that write to a file.
EDITS = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
_COMMAND = re.compile(r'"command":"((?:[^"\\]|\\.){1,8000})')
_FILE = re.compile(r'"(?:file_path|notebook_path)":"((?:[^"\\]|\\.){1,1000})"')
_ESCAPED = re.compile(r"\\(u[0-9a-f]{4}|.)", re.IGNORECASE | re.DOTALL)


def command_of(given: str) -> str:
    """The shell line in a tool call's input, which may be cut in its middle."""
    found = _COMMAND.search(given)
    return _plain(found.group(1)) if found else ""


def file_of(given: str) -> str:
    """The file that a tool call's input names."""
    found = _FILE.search(given)
    return _plain(found.group(1)) if found else ""


def _plain(written: str) -> str:
    signs = {"n": "\n", "t": "\t", "r": "\r"}

    def sign(found: re.Match[str]) -> str:
        one = found.group(1)
        return chr(int(one[1:], 16)) if len(one) == 5 else signs.get(one, one)

    return _ESCAPED.sub(sign, written)
