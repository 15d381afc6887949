"""csmd's own session files as an adapter.

Entries are user, assistant, system, summary (stands for several messages) and tombstone (what it names is skipped).
Who speaks is told by the path, never by the line: only a user's line that a person typed carries a mark that nobody
can make without the store's key. A `user` line without it is relayed: a prompt of the assistant's authority.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from csmd import wire
from csmd.errors import BadInput
from csmd.hosts.adapter import Reading, ReadLine
from csmd.hosts.claude import transcript
from csmd.hosts.json_fields import string
from csmd.hosts.labels import label
from csmd.privacy.redaction import Removed, redact
from csmd.text import display
from csmd.values import Turn

EntryKind = Literal["user", "assistant", "system", "summary", "tombstone"]
KINDS: tuple[str, ...] = get_args(EntryKind)
VERSION = "2.0.0"
MODEL = "unknown"
_MARK = "csmd"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message as `load` gives it; `by_person` when a person typed it at a terminal."""

    uuid: str
    parent: str
    kind: str
    text: str
    at: str
    by_person: bool = False


@dataclass(slots=True)
class Loaded:
    """A session file's messages in order, and how many lines of it are not among them, by why."""

    messages: list[Message] = field(default_factory=list)
    bad_lines: int = 0
    tombstoned: int = 0
    replaced: int = 0

    def has(self, uuid: str) -> bool:
        """Whether a message is there."""
        return any(message.uuid == uuid for message in self.messages)


def line(
    kind: EntryKind, body: str, *, uuid: str, session: str, parent: str, cwd: str, at: str, key: bytes,
    by_person: bool = False, names: Sequence[str] = (),
) -> bytes:  # fmt: skip
    """One line of a session file, redacted; `names` are the messages that a summary or tombstone is about."""
    said = redact(wire.clean(body), Counter()).strip()
    value: dict[str, Any] = {
        "parentUuid": parent or None, "isSidechain": False, "userType": "external", "cwd": redact(cwd, Counter()),
        "sessionId": session, "version": VERSION, "gitBranch": "", "type": kind, "uuid": uuid, "timestamp": at,
    }  # fmt: skip
    if kind == "user":
        value["message"] = {"role": "user", "content": said}
        if by_person:
            value[_MARK] = mark(key, session, uuid, said)
    elif kind == "assistant":
        value["message"] = {
            "id": f"msg_{uuid.replace('-', '')}", "type": "message", "role": "assistant", "model": MODEL,
            "content": [{"type": "text", "text": said}], "stop_reason": "end_turn", "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }  # fmt: skip
    elif kind == "system":
        value |= {"subtype": "informational", "content": said, "isMeta": False}
    elif kind == "summary":
        value |= {"summary": said, "leafUuid": names[-1] if names else None, "replaces": list(names)}
    else:
        value["tombstones"] = list(names)
    return wire.dumps(value).encode("utf-8", "replace")


def mark(key: bytes, session: str, uuid: str, said: str) -> str:
    """The mark on a line that a person typed; it cannot be made without the store's key."""
    return hmac.new(
        key, "\0".join(("person", session, uuid, said)).encode("utf-8", "replace"), hashlib.sha256
    ).hexdigest()


def load(lines: Iterable[bytes], *, session: str, key: bytes, texts: bool = True) -> Loaded:
    """The messages of a session file, without tombstoned ones, a summary in the place of the first that it replaces.

    Without `texts` only which messages there are, for who writes the next one to a long file.
    """
    loaded = Loaded()
    entries: dict[str, tuple[Message, list[str]]] = {}
    dead: set[str] = set()
    for raw in lines:
        try:
            value = entry(raw, session=session)
        except BadInput:
            loaded.bad_lines += 1
            continue
        if value is None:
            continue
        if value["type"] == "tombstone":
            dead.update(_names(value, "tombstones"))
        elif value["uuid"] not in entries:
            message = _message(value, key) if texts else _bare(value)
            entries[message.uuid] = message, _names(value, "replaces") if message.kind == "summary" else []
    live = {uuid: found for uuid, found in entries.items() if uuid not in dead}
    loaded.tombstoned = len(entries) - len(live)
    place = {uuid: number for number, uuid in enumerate(live)}
    replaced_by: dict[str, str] = {}
    for uuid, (_, names) in live.items():  # only what stands before it: two that name each other would have no end
        replaced_by.update({name: uuid for name in names if place.get(name, len(place)) < place[uuid]})
    told: set[str] = set()
    for uuid in live:
        shown = uuid
        while shown in replaced_by:
            shown = replaced_by[shown]
        loaded.replaced += shown != uuid
        if shown not in told:
            told.add(shown)
            loaded.messages.append(live[shown][0])
    return loaded


def entry(raw: bytes, *, session: str) -> dict[str, Any] | None:
    """The decoded line of a session file, None for a type that is none of KINDS; BadInput when it is malformed."""
    value = wire.loads(raw)
    if not isinstance(value, dict):
        raise BadInput("a session file's line is not a JSON object")
    if value.get("type") not in KINDS:
        return None
    if not label(value, "uuid", 200) or string(value, "sessionId") != session:
        raise BadInput("a session file's line has no uuid, or another session's id")
    return value


def begun_in(lines: Iterable[bytes], *, session: str) -> str:
    """The directory in which a session was begun; "" when no line names one."""
    for raw in lines:
        with contextlib.suppress(BadInput):
            value = entry(raw, session=session)
            if value is not None and string(value, "cwd"):
                return string(value, "cwd")
    return ""


def _names(value: dict[str, Any], key: str) -> list[str]:
    found = value.get(key)
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def entry_text(value: dict[str, Any]) -> str:
    """The text of an entry."""
    message = value.get("message")
    content = message.get("content") if isinstance(message, dict) else value.get("summary") or value.get("content")
    if isinstance(content, list):
        return "\n\n".join(string(block, "text") for block in content if isinstance(block, dict))
    return content if isinstance(content, str) else ""


def is_by_person(value: dict[str, Any], key: bytes) -> bool:
    """Whether a line carries the mark of what a person typed."""
    carried = string(value, _MARK)
    if value.get("type") != "user" or not carried:
        return False
    made = mark(key, string(value, "sessionId"), string(value, "uuid"), entry_text(value))
    return hmac.compare_digest(carried.encode("utf-8", "replace"), made.encode())


def _message(value: dict[str, Any], key: bytes) -> Message:
    return replace(_bare(value), text=entry_text(value), by_person=is_by_person(value, key))


def _bare(value: dict[str, Any]) -> Message:
    parent, at = string(value, "parentUuid"), string(value, "timestamp")
    return Message(uuid=value["uuid"], parent=parent, kind=value["type"], text="", at=at)


def reader(path: Path, *, home: Path, key: bytes) -> ReadLine | None:
    """How the lines of a session file below `home` become turns; None for a transcript, which is the assistant's."""
    if not path.is_relative_to(home):
        return None

    def read_line(line: bytes, into: Reading, *, tool_limit: int) -> None:
        value = entry(line, session=path.stem)
        if value is None:
            into.skipped += 1
        elif value["type"] == "tombstone":
            into.withdrawn += _names(value, "tombstones")
        elif value["type"] in ("system", "summary"):
            counts = Removed()
            turns = [_aside(value, counts)] if entry_text(value) else []
            if counts:
                into.note_removed(turns, counts)
            into.turns += turns
        else:
            first = len(into.turns)
            transcript.read_line(line, into, tool_limit=tool_limit)
            if not is_by_person(value, key):
                into.turns[first:] = [_relayed(turn) for turn in into.turns[first:]]

    return read_line


def _relayed(turn: Turn) -> Turn:
    return replace(turn, kind="relayed") if turn.kind == "user" else turn


def _aside(value: dict[str, Any], counts: Counter[str]) -> Turn:
    """The turn of a summary or of a system message, as the host's own are stored."""
    bare = transcript.bare_turn(value, counts)
    if bare is None:
        raise BadInput("a session file's line names no session")
    said = redact(display.strip_fenced(wire.clean(entry_text(value))), counts).strip()
    return replace(bare, kind="summary" if value["type"] == "summary" else "notification", text=said)
