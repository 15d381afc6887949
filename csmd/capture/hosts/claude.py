"""Claude Code's vocabulary, reduced: hook payloads to Event, transcript lines to Turns, text to an answer.

Everything that only Claude Code says (event names, line types, markers) stands in this file.
Unknown is skipped; malformed raises BadInput. Measured on 2.0.77 - 2.1.329 (facts: claude-code).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from csmd import text as texts
from csmd import wire
from csmd.capture.redact import redact, redact_tree
from csmd.errors import BadInput
from csmd.model import Event, EventName, Turn, TurnKind

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

#: Lines that are bookkeeping, told from their first bytes without parsing (facts: claude-code 1.14).
_LEADING_TYPE = re.compile(rb'^\{"type":\s?"([a-z-]+)"')
_PROGRESS = re.compile(rb'"type":\s?"(?:progress|system)"')
_ATTACHMENT = re.compile(rb'"attachment":\s?\{"type":\s?"([a-z_]+)"')
PARSED_TYPES = frozenset({b"user", b"assistant", b"attachment", b"system", b"custom-title", b"ai-title", b"summary"})
PARSED_ATTACHMENTS = frozenset({b"queued_command"})
HEAD_BYTES = 600

_COMMAND = re.compile(
    r"^\s*<(?:command-name|command-message|command-args|local-command-stdout|local-command-caveat|bash-input|bash-stdout|bash-stderr)>"
)
_SLASH = re.compile(r"^/[a-zA-Z][\w:.-]*(?:\s|$)")
_NOTIFICATION = re.compile(r"^\s*<task-notification\b")
_INTERRUPTED = re.compile(r"^\[Request interrupted by user(?: for tool use)?\]\s*$")
_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)


@dataclass(slots=True)
class Reading:
    """What a batch of lines held: turns in order, titles by session, redactions by kind, lines skipped."""

    turns: list[Turn] = field(default_factory=list)
    titles: dict[str, str] = field(default_factory=dict)
    redactions: Counter[str] = field(default_factory=Counter)
    skipped: int = 0


def event(body: bytes, *, name: str, event_id: str, at: str, counts: Counter[str]) -> Event | None:
    """The event in a hook's payload, redacted; None for one that csmd does not need."""
    known = EVENTS.get(name)
    if known is None:
        return None
    value = wire.loads(body)
    if not isinstance(value, dict):
        raise BadInput("a hook's payload is not a JSON object")
    session = value.get("session_id")
    if not isinstance(session, str) or not session or len(session) > 200:
        raise BadInput("a hook's payload has no session_id")
    if known == "subagent_stop" and value.get("agent_type") == "":
        return None  # a compaction reports its own summariser this way
    said = _string(value, "prompt") if known == "prompt" else _string(value, "last_assistant_message")
    said = _spoken(said, counts) if known in ("prompt", "stop", "subagent_stop") else ""
    return Event(
        id=event_id,
        host=HOST,
        name=known,
        session_id=wire.clean(session),
        at=at,
        cwd=redact(wire.clean(_string(value, "cwd")), counts),
        transcript_path=wire.clean(_string(value, "agent_transcript_path") or _string(value, "transcript_path")),
        text=said,
        source=_string(value, "source")[:40] or _string(value, "trigger")[:40] or _string(value, "reason")[:40],
        agent_id=wire.clean(_string(value, "agent_id"))[:200] if known == "subagent_stop" else "",
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
    kinds: dict[EventName, TurnKind] = {"prompt": "user", "stop": "assistant", "subagent_stop": "assistant"}
    kind = kinds.get(event.name)
    if kind is None or not event.text:
        return None
    if kind == "user":
        kind = _prompt_kind(event.text)
    return Turn(
        uuid=f"hook:{event.id}",
        session_id=event.session_id,
        kind=kind,
        text=event.text,
        at=event.at,
        agent_id=event.agent_id,
        cwd=event.cwd,
    )


def read_line(line: bytes, into: Reading, *, tool_limit: int) -> None:
    """Adds what one transcript line holds; BadInput when it is malformed.

    `tool_limit` is how many bytes of a tool's input or output are kept.
    """
    head = line[:HEAD_BYTES]
    leading = _LEADING_TYPE.match(head)
    if leading and leading.group(1) not in PARSED_TYPES:
        into.skipped += 1
        return
    attachment = _ATTACHMENT.search(head)
    if attachment and attachment.group(1) not in PARSED_ATTACHMENTS:
        into.skipped += 1
        return
    if _PROGRESS.search(head) and b'"type":"user"' not in head and b'"type":"assistant"' not in head:
        into.skipped += 1
        return
    try:
        value = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadInput("a transcript line is not a JSON object")
    kind = value.get("type")
    if kind in ("custom-title", "ai-title"):
        title = _string(value, "customTitle") or _string(value, "aiTitle")
        if title:
            into.titles[_string(value, "sessionId")] = redact(texts.squeeze(wire.clean(title))[:200], into.redactions)
    elif kind in ("user", "assistant") and isinstance(value.get("message"), dict):
        into.turns += _message_turns(value, value["message"], into.redactions, tool_limit)
    elif kind == "attachment":
        into.turns += _queued_turn(value, into.redactions)
    else:
        into.skipped += 1


def _message_turns(value: dict[str, Any], message: dict[str, Any], counts: Counter[str], tool_limit: int) -> list[Turn]:
    if not _string(value, "uuid") or not _string(value, "sessionId"):
        return []
    if value.get("isMeta") and not value.get("isCompactSummary"):
        return []
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not isinstance(blocks, list):
        return []
    by_user = value["type"] == "user"
    found: list[tuple[TurnKind, str, str]] = []
    spoken = [_string(block, "text") for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    said = _spoken("\n\n".join(spoken), counts) if spoken else ""
    if said and not _INTERRUPTED.match(said):
        found.append((_spoken_kind(value, said, by_user), said, ""))
    for block in blocks:
        if not isinstance(block, dict):
            continue
        if block.get("type") == "tool_use":
            body = wire.dumps(redact_tree(block.get("input") or {}, counts))
            found.append(("tool_call", _trim(wire.clean(body), tool_limit), _string(block, "name")[:120]))
        elif block.get("type") == "tool_result":
            body = redact(wire.clean(texts.strip_fenced(_flat(block.get("content")))), counts)
            found.append(("tool_result", _trim(body, tool_limit), ""))
    usage = message.get("usage")
    tokens = usage.get("output_tokens") if isinstance(usage, dict) else 0
    uuid = wire.clean(_string(value, "uuid"))[:200]
    return [
        Turn(
            uuid=uuid if place == 0 else f"{uuid}/{place}",
            session_id=wire.clean(_string(value, "sessionId"))[:200],
            kind=kind,
            text=body,
            at=_time(value),
            agent_id=wire.clean(_string(value, "agentId"))[:200] if value.get("isSidechain") else "",
            cwd=redact(wire.clean(_string(value, "cwd")), counts),
            parent_uuid=wire.clean(_string(value, "parentUuid"))[:200],
            message_id=wire.clean(_string(message, "id"))[:200],
            tool_name=wire.clean(tool),
            model=wire.clean(_string(message, "model"))[:100],
            version=wire.clean(_string(value, "version"))[:40],
            tokens=tokens if isinstance(tokens, int) and 0 <= tokens < 2**40 and place == 0 else 0,
        )
        for place, (kind, body, tool) in enumerate(found)
    ]


def _spoken_kind(value: dict[str, Any], said: str, by_user: bool) -> TurnKind:
    if not by_user:
        return "notification" if value.get("isApiErrorMessage") else "assistant"
    if value.get("isCompactSummary"):
        return "summary"
    origin = value.get("origin")
    if isinstance(origin, dict) and origin.get("kind") == "task-notification":
        return "notification"
    return _prompt_kind(said)


def _prompt_kind(said: str) -> TurnKind:
    """Whether a prompt is the user's own words, a command of the host or finished background work."""
    if _NOTIFICATION.match(said):
        return "notification"
    return "command" if _COMMAND.match(said) or _SLASH.match(said) else "user"


def _queued_turn(value: dict[str, Any], counts: Counter[str]) -> list[Turn]:
    """A prompt that was typed while the assistant worked: it has no `user` line (facts: claude-code 1.2)."""
    queued = value.get("attachment")
    if not isinstance(queued, dict) or not _string(value, "uuid") or not _string(value, "sessionId"):
        return []
    origin = queued.get("origin")
    human = queued.get("commandMode") == "prompt" and (not isinstance(origin, dict) or origin.get("kind") == "human")
    said = _spoken(_flat(queued.get("prompt")), counts)
    if not human or not said:
        return []
    return [
        Turn(
            uuid=wire.clean(_string(value, "uuid"))[:200],
            session_id=wire.clean(_string(value, "sessionId"))[:200],
            kind=_prompt_kind(said),
            text=said,
            at=_time(value),
            cwd=redact(wire.clean(_string(value, "cwd")), counts),
            parent_uuid=wire.clean(_string(value, "parentUuid"))[:200],
            version=wire.clean(_string(value, "version"))[:40],
        )
    ]


def _spoken(text: str, counts: Counter[str]) -> str:
    """What somebody said: without csmd's own injections and the host's reminders, redacted."""
    plain = wire.clean(text)
    if "<system-reminder>" in plain:
        plain = _REMINDER.sub("", plain)
    return redact(texts.strip_fenced(plain), counts).strip()


def _flat(content: Any) -> str:
    """The text of a content value: a string, or a list of blocks."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(_string(block, "text") if isinstance(block, dict) else "" for block in content)


def _trim(text: str, limit: int) -> str:
    """A tool's text in at most `limit` bytes: its beginning and end, and how much is left out."""
    if len(text) <= limit // 4 or len(data := text.encode("utf-8", "replace")) <= limit:
        return text
    head, tail = limit * 3 // 4, limit // 4
    left_out = len(data) - head - tail
    return f"{data[:head].decode('utf-8', 'ignore')}\n[csmd: {left_out} bytes left out]\n{data[-tail:].decode('utf-8', 'ignore')}"


def _time(value: dict[str, Any]) -> str:
    """A line's time in csmd's form; the epoch when it has none that can be read."""
    stamp = _string(value, "timestamp")
    if re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", stamp):
        return stamp
    match = re.match(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(?:Z|\+00:00)$", stamp)
    if match:
        return f"{match.group(1)}.{(match.group(2) or '.')[1:4]:0<3}Z"
    return "1970-01-01T00:00:00.000Z"


def _string(value: dict[str, Any], key: str) -> str:
    found = value.get(key)
    return found if isinstance(found, str) else ""
