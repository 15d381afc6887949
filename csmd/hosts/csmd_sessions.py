"""csmd's own session files: writing, loading and capturing them.

Entries are user, assistant, system, summary (replaces several messages) and tombstone (the messages that it names are
skipped). A line cannot claim a person's authority by its content: a line that a person typed carries an HMAC made with
the store's key. A `user` line without it is relayed: a prompt with the assistant's authority.
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
from csmd.conversation import Turn
from csmd.errors import BadInput
from csmd.hosts.claude import transcript
from csmd.hosts.labels import read_label
from csmd.hosts.stored_text import remove_injections
from csmd.hosts.transcript_reading import Line, Reading, ReadLine
from csmd.json_fields import string
from csmd.privacy.redaction import redact

EntryKind = Literal["user", "assistant", "system", "summary", "tombstone"]
KINDS: tuple[str, ...] = get_args(EntryKind)
VERSION = "2.0.0"
MODEL = "unknown"
_SIGNATURE_KEY = "csmd"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message of a session file; `by_person` if a person typed it at a terminal."""

    uuid: str
    parent: str
    kind: str
    text: str
    at: str
    by_person: bool = False


@dataclass(slots=True)
class LoadedSession:
    """A session file's messages in order, and the number of other lines by reason."""

    messages: list[Message] = field(default_factory=list)
    bad_lines: int = 0
    tombstoned: int = 0
    replaced: int = 0

    def has(self, uuid: str) -> bool:
        """Whether a message has this uuid."""
        return any(message.uuid == uuid for message in self.messages)


def encode_message(message: Message, *, session: str, cwd: str, key: bytes, uuids: Sequence[str] = ()) -> bytes:
    """Returns a message as a line of its file, redacted; `names` are the messages that a summary or tombstone refers
    to."""
    text, uuid = redact(wire.clean(message.text), Counter()).strip(), message.uuid
    value: dict[str, Any] = {
        "parentUuid": message.parent or None, "isSidechain": False, "userType": "external",
        "cwd": redact(cwd, Counter()), "sessionId": session, "version": VERSION, "gitBranch": "", "type": message.kind,
        "uuid": uuid, "timestamp": message.at,
    }  # fmt: skip
    if message.kind == "user":
        value["message"] = {"role": "user", "content": text}
        if message.by_person:
            value[_SIGNATURE_KEY] = sign_line(key, session, uuid, text)
    elif message.kind == "assistant":
        value["message"] = {
            "id": f"msg_{uuid.replace('-', '')}", "type": "message", "role": "assistant", "model": MODEL,
            "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }  # fmt: skip
    elif message.kind == "system":
        value |= {"subtype": "informational", "content": text, "isMeta": False}
    elif message.kind == "summary":
        value |= {"summary": text, "leafUuid": uuids[-1] if uuids else None, "replaces": list(uuids)}
    else:
        value["tombstones"] = list(uuids)
    return wire.dumps(value).encode("utf-8", "replace")


def sign_line(key: bytes, session: str, uuid: str, text: str) -> str:
    """Returns the signature of a line that a person typed, made with the store's key."""
    message = "\0".join(("person", session, uuid, text))
    return hmac.new(key, message.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def load_session(lines: Iterable[bytes], *, session: str, key: bytes, with_texts: bool = True) -> LoadedSession:
    """Returns the messages of a session file, without tombstoned ones; a summary takes the place of the first that it
    replaces.

    Without `with_texts` the messages have no text, which suffices for appending to a long file.
    """
    loaded = LoadedSession()
    entries: dict[str, tuple[Message, list[str]]] = {}
    tombstoned: set[str] = set()
    for raw in lines:
        try:
            value = parse_entry(raw, session=session)
        except BadInput:
            loaded.bad_lines += 1
            continue
        if value is None:
            continue
        if value["type"] == "tombstone":
            tombstoned.update(_read_uuids(value, "tombstones"))
        elif value["uuid"] not in entries:
            message = _read_header(value)
            if with_texts:
                message = replace(message, text=read_entry_text(value), by_person=is_by_person(value, key))
            entries[message.uuid] = message, _read_uuids(value, "replaces") if message.kind == "summary" else []
    live = {uuid: message for uuid, message in entries.items() if uuid not in tombstoned}
    loaded.tombstoned = len(entries) - len(live)
    order = {uuid: number for number, uuid in enumerate(live)}
    replaced_by: dict[str, str] = {}
    for uuid, (_, uuids) in live.items():  # only earlier messages, or two that name each other would loop
        replaced_by.update({name: uuid for name in uuids if order.get(name, len(order)) < order[uuid]})
    shown: set[str] = set()
    for uuid in live:
        replacement = uuid
        while replacement in replaced_by:
            replacement = replaced_by[replacement]
        loaded.replaced += replacement != uuid
        if replacement not in shown:
            shown.add(replacement)
            loaded.messages.append(live[replacement][0])
    return loaded


def parse_entry(raw: bytes, *, session: str) -> dict[str, Any] | None:
    """Returns the decoded line of a session file; None if its type is not one of KINDS, BadInput when it is
    malformed."""
    value = wire.loads(raw)
    if not isinstance(value, dict):
        raise BadInput("a session file's line is not a JSON object")
    if value.get("type") not in KINDS:
        return None
    if not read_label(value, "uuid", 200) or string(value, "sessionId") != session:
        raise BadInput("a session file's line has no uuid, or another session's id")
    return value


def find_start_directory(lines: Iterable[bytes], *, session: str) -> str:
    """Returns the directory in which a session was begun; "" if no line names one."""
    for raw in lines:
        with contextlib.suppress(BadInput):
            value = parse_entry(raw, session=session)
            if value is not None and string(value, "cwd"):
                return string(value, "cwd")
    return ""


def _read_uuids(value: dict[str, Any], key: str) -> list[str]:
    names = value.get(key)
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def read_entry_text(value: dict[str, Any]) -> str:
    """Returns the text of an entry."""
    message = value.get("message")
    content = message.get("content") if isinstance(message, dict) else value.get("summary") or value.get("content")
    if isinstance(content, list):
        return "\n\n".join(string(block, "text") for block in content if isinstance(block, dict))
    return content if isinstance(content, str) else ""


def is_by_person(value: dict[str, Any], key: bytes) -> bool:
    """Whether a line carries the signature of a line that a person typed."""
    signature = string(value, _SIGNATURE_KEY)
    if value.get("type") != "user" or not signature:
        return False
    expected = sign_line(key, string(value, "sessionId"), string(value, "uuid"), read_entry_text(value))
    return hmac.compare_digest(signature.encode("utf-8", "replace"), expected.encode())


def _read_header(value: dict[str, Any]) -> Message:
    parent, at = string(value, "parentUuid"), string(value, "timestamp")
    return Message(uuid=value["uuid"], parent=parent, kind=value["type"], text="", at=at)


def make_reader(path: Path, *, home: Path, key: bytes) -> ReadLine | None:
    """Returns a reader of a session file's lines; None for a file outside `home`, which is an assistant's transcript."""
    if not path.is_relative_to(home):
        return None

    def read_line(data: bytes, into: Reading) -> None:
        value = parse_entry(data, session=path.stem)
        if value is None:
            into.skipped += 1
        elif value["type"] == "tombstone":
            into.withdrawn += _read_uuids(value, "tombstones")
        elif value["type"] in ("system", "summary"):
            line = Line(value, into)
            turns = [_make_system_turn(line)] if read_entry_text(value) else []
            line.record_redactions(turns)
            into.turns += turns
        else:
            first = len(into.turns)
            transcript.read_line(data, into)
            if not is_by_person(value, key):
                new_turns = into.turns[first:]
                into.turns[first:] = [
                    replace(turn, kind="relayed") if turn.kind == "user" else turn for turn in new_turns
                ]

    return read_line


def _make_system_turn(line: Line) -> Turn:
    """Returns the turn of a summary or a system message."""
    bare = transcript.make_bare_turn(line)
    if bare is None:
        raise BadInput("a session file's line names no session")
    text = remove_injections(wire.clean(read_entry_text(line.value)), line.redactions)
    return replace(bare, kind="summary" if line.value["type"] == "summary" else "notification", text=text)
