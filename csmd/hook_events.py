"""The events that hooks report, and what follows from each: a table that the hook and every stage read; no I/O.

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
    """A session's event: its name, and what follows from it."""

    hook: str
    """Its name on a hook's command line: Claude Code's, which most assistants took over."""
    label: str
    """When its answer was told, or what has happened."""
    seconds: int = 5
    """How long an assistant lets its hook run, where nothing else is known."""
    words: str = ""
    """The field of a payload that holds what is said; "" where nobody speaks."""
    injects: bool = False
    """Whether the assistant reads the answer of its hook; the others must print nothing."""
    is_report: bool = True
    """Whether a hook keeps it for a daemon that is away. What only asks reports nothing that the transcript lacks."""
    settles: bool = False
    """Whether nothing of the session is still to come for now. A turn that ended in an error is over, too."""
    ends: Literal["", "end", "compaction"] = ""
    """Why the session has a digest of what it came to; "" where it has none yet."""


#: A failed turn has no words of the assistant's, and a summary is taken from its own line, not from the hook.
EVENTS: dict[EventName, EventRule] = {
    "session_start": EventRule("SessionStart", "at its start", seconds=10, injects=True),
    "prompt": EventRule("UserPromptSubmit", "with a prompt", words="prompt", injects=True),
    "stop": EventRule("Stop", "at a turn's end", words="last_assistant_message", settles=True),
    "subagent_stop": EventRule("SubagentStop", "at a sub-agent's end", words="last_assistant_message"),
    "pre_compact": EventRule("PreCompact", "before its compaction", injects=True, settles=True, ends="compaction"),
    "session_end": EventRule("SessionEnd", "at its end", settles=True, ends="end"),
    "post_compact": EventRule("PostCompact", "after its compaction", settles=True),
    "stop_failure": EventRule("StopFailure", "when a turn failed", settles=True),
    "tool_failure": EventRule("PostToolUseFailure", "when a tool failed", injects=True, is_report=False),
}
