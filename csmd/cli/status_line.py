"""csmd's status line in the assistant's settings: put there when the user has none, taken out again, else left alone.

Edits of the text like those of the hooks (settings.py): every byte that is not ours stays. There is one status line
only, so one that is not ours is the user's choice; `advice` says how to have both.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

from csmd import wire
from csmd.cli import json_text
from csmd.errors import ConfigError

#: The assistant's own word for it.
MEMBER = "statusLine"
SCRIPT = "csmd_line.py"


def command(interpreter: str, home: Path) -> str:
    """The command line that is registered; it ends with 0 even where the script or the interpreter is gone."""
    if not str(home).isprintable():
        raise ConfigError(f"{str(home)!r} cannot be written into a settings file", hint="choose another CSMD_HOME")
    return f"{shlex.join([interpreter, '-I', '-S', str(home / 'hook' / SCRIPT), str(home)])} || true"


def value(interpreter: str, home: Path) -> dict[str, Any]:
    """The member as it is registered."""
    return {"type": "command", "command": command(interpreter, home)}


def merge(text: str, interpreter: str, home: Path) -> str:
    """The settings with our status line: added where there is none, ours brought up to date, a foreign one left.

    `text` is a JSON object. Merging what was merged changes nothing.
    """
    found = json_text.member(text, json_text.root(text), MEMBER)
    wanted = value(interpreter, home)
    if found is None:
        return json_text.append(text, json_text.root(text), MEMBER, wanted)
    there = wire.loads(text[found.value : found.end])
    if not is_ours(there, home) or there == wanted:
        return text
    return json_text.edited(text, [(found.value, found.end, json_text.render_in_place(text, found, wanted))])


def remove(text: str, home: Path) -> str:
    """The settings without our status line; a foreign one stays."""
    found = json_text.member(text, json_text.root(text), MEMBER)
    if found is None or not is_ours(wire.loads(text[found.value : found.end]), home):
        return text
    return json_text.without_member(text, json_text.root(text), MEMBER)


def is_foreign(text: str, home: Path) -> bool:
    """Whether these settings have a status line that is not this home's."""
    found = json_text.member(text, json_text.root(text), MEMBER)
    return found is not None and not is_ours(wire.loads(text[found.value : found.end]), home)


def is_ours(there: Any, home: Path) -> bool:
    """Whether a status line runs this home's script, however it is quoted or wrapped."""
    said = there.get("command") if isinstance(there, dict) else None
    if not isinstance(said, str):
        return False
    script = re.compile(rf"(?<![\w./~-]){re.escape(str(home / 'hook' / SCRIPT))}(?![\w./-])")
    words = [said]
    for _ in range(2):  # a command line, and one in a word of it, as in sh -c '...'
        words += [part for word in words for part in _shell_words(word)]
    return any(script.search(word) for word in words)


def advice(interpreter: str, home: Path) -> str:
    """What to tell a user who has a status line of their own; the second line is to be copied, and never broken."""
    return f"your status line stays as it is; to show csmd's in it, have its script run\n{command(interpreter, home)}"


def _shell_words(said: str) -> list[str]:
    try:
        return shlex.split(said)
    except ValueError:  # a quote that is never closed
        return []
