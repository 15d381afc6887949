"""Claude Code's vocabulary, reduced: hook payloads to Event, transcript lines to Turns, text to an answer.

Everything that only Claude Code says (event names, line types, markers) stands here and in claude_lines.py.
Unknown is skipped; malformed raises BadInput. Measured on 2.0.77 - 2.1.329 (facts: claude-code).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from csmd import text as texts
from csmd import wire
from csmd.capture.exclude import Withheld
from csmd.capture.fields import label, moment, string
from csmd.capture.hosts import claude_lines as lines
from csmd.capture.hosts import claude_usage
from csmd.capture.hosts.claude_failure import failure
from csmd.capture.redact import redact
from csmd.errors import BadInput
from csmd.model import Event, EventName, Turn

HOST = "claude"

EVENTS: dict[str, EventName] = {
    "SessionStart": "session_start",
    "UserPromptSubmit": "prompt",
    "Stop": "stop",
    "SubagentStop": "subagent_stop",
    "PreCompact": "pre_compact",
    "SessionEnd": "session_end",
    "PostCompact": "post_compact",
    "StopFailure": "stop_failure",
    "PostToolUseFailure": "tool_failure",
}
SPEAKING: frozenset[EventName] = frozenset({"prompt", "stop", "subagent_stop"})
#: Events whose answer the assistant reads; the others must print nothing (facts: claude-code 1.6).
INJECTING: dict[EventName, str] = {
    "session_start": "SessionStart",
    "prompt": "UserPromptSubmit",
    "tool_failure": "PostToolUseFailure",
    "pre_compact": "PreCompact",
}
#: Of these plain text is read: what PreCompact prints stands behind the summariser's own instructions (1.10).
PLAIN: frozenset[EventName] = frozenset({"pre_compact"})
#: Longest answer in UTF-16 units: the host cuts at 10,000 (facts: claude-code 1.7).
ANSWER_LIMIT_UNITS = 9_000

#: A line's own type, or its own attachment's, where only scalars stand before it: walking the members from the
#: brace on, no word of a prompt and no field of a tool's input is taken for it.
_OWN = re.compile(
    rb'\{\s?+(?:"[^"\\]*+":\s?+(?:"(?:[^"\\]|\\.)*+"|[-+.0-9A-Za-z]++),\s?+)*?'
    rb'(?:"type":\s?+"([a-z-]++)"|"attachment":\s?+\{\s?+"type":\s?+"([a-z_]++)")'
)
_SPEAKS = re.compile(rb'"type":\s?"(?:user|assistant)"')
#: What is parsed; every other line is bookkeeping, known by its first bytes (facts: claude-code 1.14).
PARSED_TYPES = frozenset(b"user assistant attachment custom-title ai-title queue-operation worktree-state".split())
PARSED_ATTACHMENTS = frozenset({b"queued_command"})
#: Types of which most lines are bookkeeping, and what a line holds that is not.
PARSED_WITH: dict[bytes, re.Pattern[bytes]] = {
    b"progress": re.compile(rb'"type":\s?"agent_progress"'),
    b"system": re.compile(rb'"subtype":\s?"informational"'),
}
HEAD_BYTES = 600

_START = re.compile(rb'"cwd":\s?("(?:[^"\\]|\\.)*+")')
_TIME = re.compile(rb'"timestamp":\s?"([0-9T:.+Z-]+)"')
_TITLE = re.compile(rb'"type":\s?"(?:custom|ai)-title"')


@dataclass(frozen=True, slots=True)
class Left:
    """A prompt left the queue: into a turn under way (`absorbed`) or to be the next one's; with its words, or "".

    `nth` counts what left at the same moment; `place` is how many turns the reading held before.
    """

    session_id: str
    at: str
    absorbed: bool
    text: str
    nth: int
    place: int


@dataclass(slots=True)
class Reading:
    """What a batch of lines held: turns in order, what left the queue, titles by session, lines skipped.

    `redactions` counts by kind what was taken out of a line, under the uuid of its first turn ("" for none). `worktrees`
    are (worktree, directory it was entered from).
    """

    turns: list[Turn] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    titles: dict[str, str] = field(default_factory=dict)
    title_at: dict[str, int] = field(default_factory=dict)
    """How many turns stood before a session's title."""
    redactions: dict[str, Counter[str]] = field(default_factory=dict)
    skipped: int = 0
    withheld: Withheld = field(default_factory=Withheld)
    spent: list[claude_usage.Took] = field(default_factory=list)
    """What each line says that its message took, in order."""
    withdrawn: list[str] = field(default_factory=list)
    """The uuids of turns that a session file of csmd's own takes back."""
    worktrees: list[tuple[str, str]] = field(default_factory=list)

    def only(self, keep: Callable[[Turn], bool]) -> Reading:
        """The reading without the other turns; what left the queue keeps its place among those that stay."""
        kept = [keep(turn) for turn in self.turns]
        before = [0, *accumulate(map(int, kept))]
        turns = [turn for turn, stays in zip(self.turns, kept, strict=True) if stays]
        spent = [replace(one, place=before[one.place]) for one in self.spent if one.place >= 0 and kept[one.place]]
        return replace(
            self, turns=turns, left=[replace(one, place=before[one.place]) for one in self.left], spent=spent
        )


def event(body: bytes, *, name: str, event_id: str, at: str, counts: Counter[str]) -> Event | None:
    """The event in a hook's payload, redacted; None for one that csmd does not need."""
    known = EVENTS.get(name)
    if known is None:
        return None
    value = wire.loads(body)
    if not isinstance(value, dict):
        raise BadInput("a hook's payload is not a JSON object")
    session = label(value, "session_id", 200)
    if not session or len(string(value, "session_id")) > 200:
        raise BadInput("a hook's payload has no session_id")
    if known == "subagent_stop" and value.get("agent_type") == "":
        return None  # a compaction reports its own summariser this way
    failed = failure(value, counts) if known == "tool_failure" else None
    if known == "tool_failure" and failed is None:
        return None
    agent = label(value, "agent_id", 200) if known == "subagent_stop" else ""
    if known == "subagent_stop" and not agent and string(value, "agent_id"):
        raise BadInput("a hook's payload has no agent_id")  # what it said is not the session's
    said = string(value, "prompt") if known == "prompt" else string(value, "last_assistant_message")
    said = lines.spoken(said, counts, as_typed=known == "prompt") if known in SPEAKING else ""
    return Event(
        id=event_id,
        host=HOST,
        name=known,
        session_id=session,
        at=at,
        cwd=redact(wire.clean(string(value, "cwd")), counts),
        transcript_path=wire.clean(string(value, "agent_transcript_path") or string(value, "transcript_path")),
        text=said,
        source=label(value, "source", 40) or label(value, "trigger", 40) or label(value, "reason", 40),
        agent_id=agent,
        payload=hashlib.sha256(body).hexdigest(),
        by_user=known == "prompt" and lines.prompt_kind(said) == "user",
        failure=failed,
    )


def answer(name: EventName, text: str) -> bytes:
    """What the hook prints so that the assistant reads `text`; b"" for nothing."""
    if not text or name not in INJECTING:
        return b""
    if name in PLAIN:
        return text.encode("utf-8", "replace") + b"\n"
    return wire.dumps({"hookSpecificOutput": {"hookEventName": INJECTING[name], "additionalContext": text}}).encode()


def event_turn(event: Event) -> Turn | None:
    """The provisional turn that an event reports, or None: prompts and final messages are turns."""
    if not event.text or event.name not in SPEAKING:
        return None
    return Turn(
        uuid=f"hook:{event.id}",
        session_id=event.session_id,
        kind=lines.prompt_kind(event.text) if event.name == "prompt" else "assistant",
        text=event.text,
        at=event.at,
        agent_id=event.agent_id,
        cwd=event.cwd,
    )


def read_line(line: bytes, into: Reading, *, tool_limit: int) -> None:
    """Adds what one transcript line holds; BadInput when it is malformed.

    `tool_limit` is how many bytes of a tool's input or output are kept.
    """
    if _is_bookkeeping(line):
        into.skipped += 1
        return
    try:
        _read_value(json.loads(line.decode("utf-8", "replace")), into, tool_limit)
    except RecursionError:
        raise BadInput("nested too deeply") from None
    except ValueError as error:
        raise BadInput(f"not JSON: {error}") from error


def _is_bookkeeping(line: bytes) -> bool:
    """Whether a line's first bytes say that nobody speaks in it; False where they do not say."""
    own = _OWN.match(line[:HEAD_BYTES])
    if own is None:
        return False
    kind, attachment = own.groups()
    if kind is None:
        return attachment not in PARSED_ATTACHMENTS and _SPEAKS.search(line) is None
    speaks = PARSED_WITH.get(kind)
    return kind not in PARSED_TYPES if speaks is None else speaks.search(line) is None


def _read_value(value: Any, into: Reading, tool_limit: int) -> None:
    if not isinstance(value, dict):
        raise BadInput("a transcript line is not a JSON object")
    kind = value.get("type")
    counts: Counter[str] = Counter()
    turns: list[Turn] = []
    if kind in ("user", "assistant"):
        turns = lines.message_turns(value, counts, tool_limit, into.withheld)
    elif kind == "attachment":
        turns = lines.queued_turns(value, counts)
    elif kind == "queue-operation":
        turns = lines.enqueued_turns(value, counts)
        _note_left(value, into)
    elif kind == "progress":
        turns = lines.progress_turns(value, counts, tool_limit, into.withheld)
    elif kind == "system":
        turns = lines.blocked_turns(value, counts)
    elif kind in ("custom-title", "ai-title"):
        if title := redact(texts.squeeze(wire.clean(string(value, "customTitle") or string(value, "aiTitle"))), counts):
            session = label(value, "sessionId", 200)
            into.titles[session], into.title_at[session] = title[:200], len(into.turns)
    elif kind == "worktree-state":
        into.worktrees += lines.worktrees_entered(value, counts)
    else:
        into.skipped += 1
    if counts:
        into.redactions.setdefault(turns[0].uuid if turns else "", Counter()).update(counts)
    if kind == "assistant" and (spent := claude_usage.spent(value)) is not None:
        into.spent.append(replace(spent, place=len(into.turns) if turns else len(into.turns) - 1))
    into.turns += turns


def _note_left(value: dict[str, Any], into: Reading) -> None:
    """What leaves the queue to be the next prompt is said again by its own line; what is taken up in a turn may not be."""
    if value.get("operation") not in ("dequeue", "remove"):
        return
    session, at = label(value, "sessionId", 200), moment(value)
    nth = sum(1 for one in into.left if (one.session_id, one.at) == (session, at))
    said = lines.spoken(lines.flat(value.get("content")), Counter(), as_typed=True)
    into.left.append(Left(session, at, value["operation"] == "remove", said, nth, len(into.turns)))


def may_answer(tools: list[str]) -> bool:
    """Whether the user speaks where these tools were called and a result says so: they are the host's own, and known."""
    return bool(tools) and not any(not tool or tool.startswith(lines.FOREIGN_TOOL) for tool in tools)


def is_warmup(beginning: bytes) -> bool:
    """Whether a transcript is an agent's that the host started for itself: nobody's conversation (facts: 3.7)."""
    try:
        value = json.loads(beginning.partition(b"\n")[0].decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and lines.is_warmup(value)


def started_in(beginning: bytes) -> str:
    """The directory a session was started in, redacted, from a transcript's first bytes; "" when they do not say."""
    found = _START.search(beginning)
    try:
        return redact(wire.clean(json.loads(found.group(1).decode("utf-8", "replace"))), Counter()) if found else ""
    except ValueError:
        return ""


def times_in(part: bytes) -> tuple[str, str]:
    """The first and the last time that a part of a transcript tells; the epoch where it tells none."""
    found = [one.decode("ascii", "replace") for one in _TIME.findall(part)]
    return moment({"timestamp": found[0] if found else ""}), moment({"timestamp": found[-1] if found else ""})


def titles_in(beginning: bytes) -> dict[str, str]:
    """The titles by session among a transcript's first bytes, as far as their lines are whole."""
    reading = Reading()
    for line in beginning.split(b"\n"):
        if _TITLE.search(line[:HEAD_BYTES]):
            with contextlib.suppress(BadInput):
                read_line(line, reading, tool_limit=0)
    return reading.titles


def places(folder: Path) -> list[Path]:
    """Where the assistant with this configuration directory keeps what was said and where."""
    return [folder, folder.parent / ".claude.json"] if folder.name == ".claude" else [folder]
