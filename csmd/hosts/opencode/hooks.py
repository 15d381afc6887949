"""What csmd's plugin in OpenCode and Kilo reports, in Claude Code's form.

The plugin (`hooks/opencode.js`) reports no sub-agent's prompt, and no words at a turn's end: the database has them.
"""

from __future__ import annotations

from collections import Counter

from csmd.hosts.adapter import spoken
from csmd.hosts.hook_payloads import Hooks
from csmd.hosts.opencode.transcript import DATABASES, typed


def _typed(text: str, counts: Counter[str]) -> str:
    return spoken(typed(text)[0], counts)  # the database says whether a person typed it


HOOKS = {
    host: Hooks(
        host=host, events=frozenset({"session_start", "prompt", "stop"}), spoken=_typed, prompt_kind=lambda _: "user"
    )
    for host in DATABASES
}
