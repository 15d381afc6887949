"""The reports of csmd's plugin in OpenCode and Kilo, which have Claude Code's form.

The plugin (`hooks/opencode.js`) reports no sub-agent's prompt, and no words at the end of a turn: these are in the
database.
"""

from __future__ import annotations

from collections import Counter

from csmd.hosts.hook_payloads import Hooks
from csmd.hosts.opencode.transcript import DATABASES, parse_prompt
from csmd.hosts.stored_text import clean_text


def _clean(text: str, counts: Counter[str]) -> str:
    return clean_text(parse_prompt(text)[0], counts)  # the database says whether a person typed it


HOOKS = {
    host: Hooks(
        host=host, events=frozenset({"session_start", "prompt", "stop"}), clean=_clean, classify_prompt=lambda _: "user"
    )
    for host in DATABASES
}
