"""The events that hooks report, with their rules: a table that the hook and every stage read; no I/O.

A new event also needs its name in a host's `hooks.py` and `registration.py`, and, if it injects, a case in
`csmd.daemon.injection`; `docs/generate.py` copies the tuples into the hook.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

EventName = Literal[
    "session_start", "prompt", "stop", "subagent_stop", "pre_compact", "session_end", "post_compact", "stop_failure",
    "tool_failure"
]  # fmt: skip


class EventRule(NamedTuple):
    """A session's event and its effects."""

    hook_name: str
    """Its name on a hook's command line: Claude Code's, which most assistants use, too."""
    when: str
    """The moment of the event, for people."""
    timeout_s: int = 5
    """Time that an assistant gives its hook, unless the assistant's own table says otherwise."""
    text_field: str = ""
    """The field of a payload that holds the text of a message; "" if the event has none."""
    can_inject: bool = False
    """Whether the assistant reads the answer of its hook; the other hooks must print nothing."""
    is_stored: bool = True
    """Whether a hook spools the event if no daemon answers; false if the transcript has all of it."""
    is_settling: bool = False
    """Whether nothing more of the turn will come; true for a turn that ended in an error, too."""
    digest_reason: Literal["", "end", "compaction"] = ""
    """Why the session gets a digest; "" if the event causes none."""


#: A failed turn has no text of the assistant's, and a summary is read from its own line, not from the hook.
EVENTS: dict[EventName, EventRule] = {
    "session_start": EventRule("SessionStart", "at its start", timeout_s=10, can_inject=True),
    "prompt": EventRule("UserPromptSubmit", "with a prompt", text_field="prompt", can_inject=True),
    "stop": EventRule("Stop", "at a turn's end", text_field="last_assistant_message", is_settling=True),
    "subagent_stop": EventRule("SubagentStop", "at a sub-agent's end", text_field="last_assistant_message"),
    "pre_compact": EventRule(
        "PreCompact", "before its compaction", can_inject=True, is_settling=True, digest_reason="compaction"
    ),
    "session_end": EventRule("SessionEnd", "at its end", is_settling=True, digest_reason="end"),
    "post_compact": EventRule("PostCompact", "after its compaction", is_settling=True),
    "stop_failure": EventRule("StopFailure", "when a turn failed", is_settling=True),
    "tool_failure": EventRule("PostToolUseFailure", "when a tool failed", can_inject=True, is_stored=False),
}
