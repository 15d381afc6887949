"""Claude Code's vocabulary, reduced: hook payloads to Event, transcript lines to Turns, text to an answer.

Everything that only Claude Code says (event names, line types, markers) stands in this file.
Unknown is skipped; malformed raises BadInput. Measured on 2.0.77 - 2.1.329 (facts: claude-code).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from csmd import text as texts
from csmd import wire
from csmd.capture.exclude import Withheld
from csmd.capture.fields import label, moment, string
from csmd.capture.redact import redact, redact_tree
from csmd.errors import BadInput
from csmd.model import TOOL_KINDS, Event, EventName, Turn, TurnKind

HOST = "claude"

EVENTS: dict[str, EventName] = {
    "SessionStart": "session_start",
    "UserPromptSubmit": "prompt",
    "Stop": "stop",
    "SubagentStop": "subagent_stop",
    "PreCompact": "pre_compact",
    "SessionEnd": "session_end",
}
#: Events whose answer the assistant reads; the others must print nothing (facts: claude-code 1.6).
INJECTING: dict[EventName, str] = {"session_start": "SessionStart", "prompt": "UserPromptSubmit"}
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
PARSED_TYPES = frozenset({b"user", b"assistant", b"attachment", b"custom-title", b"ai-title"})
PARSED_ATTACHMENTS = frozenset({b"queued_command"})
HEAD_BYTES = 600

_COMMAND = re.compile(
    r"^\s*<(?:command-name|command-message|command-args|local-command-stdout|local-command-caveat|bash-input|bash-stdout|bash-stderr)>"
)
_SLASH = re.compile(r"^/[a-zA-Z][\w:.-]*(?:\s|$)")
_NOTIFICATION = re.compile(r"^\s*<task-notification\b")
_INTERRUPTED = re.compile(r"^\[Request interrupted by user(?: for tool use)?\]\s*$")
_REMINDER = ("<system-reminder>", "</system-reminder>")
_START = re.compile(rb'"cwd":\s?("(?:[^"\\]|\\.)*+")')
_TITLE = re.compile(rb'"type":\s?"(?:custom|ai)-title"')


@dataclass(slots=True)
class Reading:
    """What a batch of lines held: turns in order, titles by session, redactions by kind, lines skipped, turns deleted."""

    turns: list[Turn] = field(default_factory=list)
    titles: dict[str, str] = field(default_factory=dict)
    redactions: Counter[str] = field(default_factory=Counter)
    skipped: int = 0
    withheld: Withheld = field(default_factory=Withheld)
    withdrawn: list[str] = field(default_factory=list)


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
    agent = label(value, "agent_id", 200) if known == "subagent_stop" else ""
    if known == "subagent_stop" and not agent and string(value, "agent_id"):
        raise BadInput("a hook's payload has no agent_id")  # what it said is not the session's
    said = string(value, "prompt") if known == "prompt" else string(value, "last_assistant_message")
    said = _spoken(said, counts) if known in ("prompt", "stop", "subagent_stop") else ""
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
        by_user=known == "prompt" and _prompt_kind(said) == "user",
    )


def answer(name: EventName, text: str) -> bytes:
    """What the hook prints so that the assistant reads `text`; b"" for nothing."""
    if not text or name not in INJECTING:
        return b""
    return wire.dumps({"hookSpecificOutput": {"hookEventName": INJECTING[name], "additionalContext": text}}).encode()


def event_turn(event: Event) -> Turn | None:
    """The provisional turn that an event reports, or None: prompts and final messages are turns."""
    if not event.text or event.name not in ("prompt", "stop", "subagent_stop"):
        return None
    return Turn(
        uuid=f"hook:{event.id}",
        session_id=event.session_id,
        kind=_prompt_kind(event.text) if event.name == "prompt" else "assistant",
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
    if kind is not None:
        return kind not in PARSED_TYPES
    return attachment not in PARSED_ATTACHMENTS and _SPEAKS.search(line) is None


def _read_value(value: Any, into: Reading, tool_limit: int) -> None:
    if not isinstance(value, dict):
        raise BadInput("a transcript line is not a JSON object")
    kind = value.get("type")
    if kind in ("custom-title", "ai-title"):
        title = redact(
            texts.squeeze(wire.clean(string(value, "customTitle") or string(value, "aiTitle"))), into.redactions
        )
        if title:
            into.titles[label(value, "sessionId", 200)] = title[:200]
    elif kind in ("user", "assistant") and isinstance(value.get("message"), dict):
        into.turns += _message_turns(value, value["message"], into, tool_limit)
    elif kind == "attachment":
        into.turns += _queued_turn(value, into.redactions)
    else:
        into.skipped += 1


def started_in(beginning: bytes) -> str:
    """The directory a session was started in, redacted, from a transcript's first bytes; "" when they do not say."""
    found = _START.search(beginning)
    try:
        return redact(wire.clean(json.loads(found.group(1).decode("utf-8", "replace"))), Counter()) if found else ""
    except ValueError:
        return ""


def titles_in(beginning: bytes) -> dict[str, str]:
    """The titles by session among a transcript's first bytes, as far as their lines are whole."""
    reading = Reading()
    for line in beginning.split(b"\n"):
        if _TITLE.search(line[:HEAD_BYTES]):
            with contextlib.suppress(BadInput):
                read_line(line, reading, tool_limit=0)
    return reading.titles


def _message_turns(value: dict[str, Any], message: dict[str, Any], into: Reading, tool_limit: int) -> list[Turn]:
    bare = bare_turn(value, into.redactions)
    if bare is None or (value.get("isMeta") and not value.get("isCompactSummary")):
        return []
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not isinstance(blocks, list):
        return []
    by_user = value["type"] == "user"
    found: list[tuple[TurnKind, str, str, str]] = []
    spoken = [string(block, "text") for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    said = _spoken("\n\n".join(spoken), into.redactions) if spoken else ""
    if said and not _INTERRUPTED.match(said):
        found.append((_spoken_kind(value, message, said, by_user), said, "", ""))
    for block in blocks:
        if not isinstance(block, dict):
            continue
        if block.get("type") == "tool_use":
            given = into.withheld.given(string(block, "id"), block.get("input") or {})
            body = wire.clean(wire.dumps(redact_tree(given, into.redactions)))
            found.append(("tool_call", body, label(block, "name", 120), label(block, "id", 120)))
        elif block.get("type") == "tool_result":
            shown = into.withheld.shown(string(block, "tool_use_id"), block.get("content"), value.get("toolUseResult"))
            body = redact(wire.clean(texts.strip_fenced(_flat(shown))), into.redactions)
            found.append(("tool_result", body, "", label(block, "tool_use_id", 120)))
    usage = message.get("usage")
    tokens = usage.get("output_tokens") if isinstance(usage, dict) else 0
    return [
        replace(
            bare,
            uuid=uuid,
            kind=kind,
            text=texts.both_ends(body, limit=tool_limit, of=f"turn {uuid}") if kind in TOOL_KINDS else body,
            message_id=label(message, "id", 200),
            tool_name=tool,
            tool_id=tool_id,
            model=label(message, "model", 100),
            tokens=tokens if type(tokens) is int and 0 <= tokens < 2**40 and place == 0 else 0,
        )
        for place, (kind, body, tool, tool_id) in enumerate(found)
        for uuid in [f"{bare.uuid}/{place}" if place else bare.uuid]
    ]


def bare_turn(value: dict[str, Any], counts: Counter[str]) -> Turn | None:
    """What a line says about itself whatever was said in it; None for one that cannot be told from others."""
    uuid, session = label(value, "uuid", 200), label(value, "sessionId", 200)
    agent = label(value, "agentId", 200) if value.get("isSidechain") else ""
    if not uuid or not session or (value.get("isSidechain") and string(value, "agentId") and not agent):
        return None
    return Turn(
        uuid=uuid,
        session_id=session,
        kind="user",
        text="",
        at=moment(value),
        agent_id=agent,
        cwd=redact(wire.clean(string(value, "cwd")), counts),
        parent_uuid=label(value, "parentUuid", 200),
        version=label(value, "version", 40),
    )


def _spoken_kind(value: dict[str, Any], message: dict[str, Any], said: str, by_user: bool) -> TurnKind:
    if not by_user:
        ours = value.get("isApiErrorMessage") or message.get("model") == "<synthetic>"
        return "notification" if ours else "assistant"
    if value.get("isCompactSummary"):
        return "summary"
    # Whatever else the host hands in as a prompt, only a person's words may carry a person's authority.
    return _prompt_kind(said) if _is_human(value.get("origin")) else "notification"


def _is_human(origin: Any) -> bool:
    """Whether a prompt's origin is a person; older versions do not say, and then it is."""
    return not isinstance(origin, dict) or origin.get("kind", "human") == "human"


def _prompt_kind(said: str) -> TurnKind:
    """Whether a prompt is the user's own words, a command of the host or finished background work."""
    if _NOTIFICATION.match(said):
        return "notification"
    return "command" if _COMMAND.match(said) or _SLASH.match(said) else "user"


def _queued_turn(value: dict[str, Any], counts: Counter[str]) -> list[Turn]:
    """A prompt that was typed while the assistant worked: it has no `user` line (facts: claude-code 1.2)."""
    queued = value.get("attachment")
    if not isinstance(queued, dict) or queued.get("type") != "queued_command":
        return []
    if queued.get("commandMode") != "prompt" or not _is_human(queued.get("origin")):
        return []
    said = _spoken(_flat(queued.get("prompt")), counts)
    bare = bare_turn(value, counts)
    return [replace(bare, kind=_prompt_kind(said), text=said)] if bare is not None and said else []


def _spoken(text: str, counts: Counter[str]) -> str:
    """What somebody said: without csmd's own injections and the host's reminders, redacted."""
    plain = texts.without_spans(wire.clean(text), *_REMINDER)
    return redact(texts.strip_fenced(plain), counts).strip()


def _flat(content: Any) -> str:
    """The text of a content value: a string, or a list of blocks."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    return "\n".join(string(block, "text") if isinstance(block, dict) else "" for block in content)


def places(folder: Path) -> list[Path]:
    """Where the assistant with this configuration directory keeps what was said and where."""
    return [folder, folder.parent / ".claude.json"] if folder.name == ".claude" else [folder]
