"""What is fuzzed: each target takes any bytes and must end, raise nothing but BadInput, and keep its promise.

Stdlib and csmd only, so that the corpus is replayed wherever the tests run; the coverage-guided form is run.py.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Any

from csmd import wire
from csmd.capture import markdown_imports
from csmd.conversation import StoredTurn, Turn
from csmd.errors import BadInput
from csmd.extraction import chooser
from csmd.hosts import csmd_sessions, transcript_reading
from csmd.hosts.claude import environment, transcript
from csmd.hosts.claude.hooks import HOOKS
from csmd.hosts.hook_payloads import EVENT_BY_HOOK
from csmd.privacy.fingerprints import PURGED, Needle, replace_spans
from csmd.privacy.redaction import redact, redact_tree
from csmd.text import display, markdown

#: What stands in front of bytes that are built into a value instead of being parsed as one.
BUILT = b"\0"
KINDS = (
    "user",
    "assistant",
    "attachment",
    "queue-operation",
    "progress",
    "system",
    "ai-title",
    "summary",
    "custom-title",
)
#: Keys that mean something in a line or a payload; what stands under them is of any type.
KEYS = (
    "type", "uuid", "parentUuid", "sessionId", "timestamp", "cwd", "version", "message", "content", "role", "text", "id",
    "model", "usage", "output_tokens", "isMeta", "isSidechain", "isCompactSummary", "agentId", "origin", "kind", "name",
    "input", "tool_use_id", "is_error", "toolUseResult", "attachment", "prompt", "commandMode", "operation", "data",
    "session_id", "hook_event_name", "last_assistant_message", "transcript_path", "source", "agent_id", "agent_type",
    "answers", "questions", "aiTitle", "customTitle", "isApiErrorMessage", "password", "api_key",
)  # fmt: skip
VALUES = (
    "u1", "s1", "human", "task-notification", "tool_use", "tool_result", "text", "queued_command", "agent_progress",
    "prompt", "enqueue", "Bash", "AskUserQuestion", "2026-05-04T08:00:00.000Z", "1970", "", "\0", "\ud800", "/hello x",
    "<command-name>/x</command-name>", "<csmd-memory>", "</csmd-memory>", "<system-reminder>", "<private>", "-----BEGIN",
    "I prefer tabs over spaces.", "the user said:", "[Request interrupted by user]", "```\n", "sk-ant-", "?" * 40,
)  # fmt: skip


class Built:
    """A JSON value made of bytes: each byte chooses what comes next, and the end of the bytes ends the value."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1] if self.at <= len(self.data) else 0

    def value(self, depth: int = 0) -> Any:
        choice = self.byte()
        if choice < 90 or depth > 6:
            return VALUES[choice % len(VALUES)]
        if choice < 130:
            length = self.byte()
            taken = self.data[self.at : self.at + length]
            self.at += length
            return taken.decode("utf-8", "replace")
        if choice < 190:
            return {KEYS[self.byte() % len(KEYS)]: self.value(depth + 1) for _ in range(choice % 12)}
        if choice < 230:
            return [self.value(depth + 1) for _ in range(choice % 5)]
        return (None, True, False, 0, -1, 2**70, 1.5, 1e308)[choice % 8]

    def line(self) -> bytes:
        """A value that looks like a line: of a known type, with what most lines have."""
        value = {"type": KINDS[self.byte() % len(KINDS)], "uuid": "u1", "sessionId": "s1", "timestamp": VALUES[13]}
        for _ in range(self.byte() % 10):
            value[KEYS[self.byte() % len(KEYS)]] = self.value()
        return json.dumps(value).encode()


def storable(text: str) -> None:
    """SQLite and JSON can carry it."""
    assert "\0" not in text
    text.encode("utf-8")


def line(data: bytes) -> None:
    """One transcript line: turns that can be stored, none of them holding what csmd injected."""
    if data.startswith(BUILT):
        data = Built(data[1:]).line()
    reading = transcript_reading.Reading(tool_limit=200)
    try:
        transcript.read_line(data, reading)
    except BadInput:
        assert not reading.turns, "what is malformed gives nothing"
        return
    finally:
        transcript.read_titles(data[:4096])
        storable(transcript_reading.find_start_directory(data[:4096]))
    assert len({turn.uuid for turn in reading.turns}) == len(reading.turns)
    for turn in reading.turns:
        whole(turn)
        stored = StoredTurn(
            seq=1, uuid=turn.uuid, session_id="s", project_seq=1, kind=turn.kind, text=turn.text, at=turn.at, ordinal=1
        )
        for statement in chooser.choose_from_turn(stored):
            storable(statement.text)
            assert 0.0 <= statement.confidence <= 1.0


def whole(turn: Turn) -> None:
    """A turn that the store takes: names, times and numbers of the right kind."""
    for value in (turn.uuid, turn.session_id, turn.text, turn.cwd, turn.parent_uuid, turn.tool_name, turn.model):
        storable(value)
    assert turn.uuid and turn.session_id
    assert 0 <= turn.tokens < 2**40
    datetime.fromisoformat(turn.at)
    for name in turn.writes:
        storable(name)


def payload(data: bytes) -> None:
    """A hook's payload under each event's name: an event or nothing, and its turn."""
    names = [*EVENT_BY_HOOK, "Nonsense"]
    name = names[data[0] % len(names)] if data else names[0]
    body = data[1:]
    if body.startswith(BUILT):
        body = Built(body[1:]).line()
    try:
        event = HOOKS.decode_event(body, name=name, event_id="e1", at="2026-05-04T08:00:00.000Z", counts=Counter())
    except BadInput:
        return
    if event is None:
        return
    for value in (event.session_id, event.cwd, event.transcript_path, event.text, event.source, event.agent_id):
        storable(value)
    assert event.session_id
    turn = HOOKS.make_turn(event)
    if turn is not None:
        whole(turn)


def frames(data: bytes) -> None:
    """A request's frames, split at 0xFF; what is decoded is encoded to the same frames."""
    parts = data.split(b"\xff", 6)
    try:
        request = wire.decode_request(parts)
    except BadInput:
        request = None
    if request is not None:
        again = wire.decode_request(wire.encode_request(request))
        assert again == request
    try:
        wire.decode_reply(parts[:2])
        wire.loads(data)
    except BadInput:
        return


def words(data: bytes) -> None:
    """What is said: redacted twice is redacted once, and no memory made of it leaves its fence."""
    text = wire.clean(data.decode("utf-8", "replace"))
    counts: Counter[str] = Counter()
    kept = redact(text, counts)
    assert redact(kept, Counter()) == kept, "redaction is stable"
    redact_tree({"a": text, "password": text, "b": [text]}, Counter())
    shown = display.squeeze(display.defuse(kept))
    assert display.defuse(shown) == shown
    assert display.strip_fenced(f"a<csmd-memory>{shown}</csmd-memory>b") == "ab"


def head(data: bytes) -> None:
    """A memory file: its head is a mapping or a reason, what is below it is text."""
    text = data.decode("utf-8", "replace")
    head, problem = markdown.parse_head(text)
    assert isinstance(head, dict) and all(isinstance(key, str) for key in head)
    assert not (head and problem)
    markdown.split_memo(text)
    markdown.split_head(text)
    shown = environment.memo("a.md", data, modified="2026-05-04T08:00:00.000Z", size=len(data))
    assert shown.filename == "a.md"
    environment.body(data)
    environment.cut_index(text)
    markdown_imports.is_conditional(head.get("paths"))


def instructions(data: bytes) -> None:
    """A CLAUDE.md: what the assistant is given of it is no longer than it is, and what it imports stands in it."""
    text = data.decode("utf-8", "replace")
    given, imported = markdown_imports.parse_imports(text)
    assert len(given) <= len(text) + 1
    assert all(isinstance(path, str) and path for path in imported)
    with contextlib.suppress(BadInput):
        csmd_sessions.parse_entry(data, session="s1")


def pattern(data: bytes) -> None:
    """A glob of the assistant's settings: it matches a path or does not, and is never an error."""
    markdown_imports.is_excluded("src/a/b.py", (data.decode("utf-8", "replace")[:200],))


def purging(data: bytes) -> None:
    """A text without what was purged: none of it is left, and only the mark is new."""
    typed, _, text = data.decode("utf-8", "replace").partition("\n")
    if sum(char.isalnum() for char in typed) < 4:
        return  # refused before it comes so far
    needle = Needle(typed)
    kept, hits = replace_spans(text, needle.spans(text))
    assert (hits == 0) == (kept == text)
    # The mark's own letters may stand beside others: a word that nobody types stands for it here.
    assert not needle.spans(kept.replace(PURGED, "ꙮꙮꙮ")) or "ꙮ" in typed or "purged" in typed.casefold()


TARGETS: dict[str, Callable[[bytes], None]] = {
    "line": line,
    "payload": payload,
    "frames": frames,
    "words": words,
    "head": head,
    "instructions": instructions,
    "pattern": pattern,
    "purging": purging,
}
