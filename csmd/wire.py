"""Frames on the socket and JSON, both ways; no sockets here.

Request:  [proto, id, verb, deadline_ms, host, name] + body     (docs/protocol.md)
Reply:    [status, body]

`verb` is `event` (a hook's payload, `name` the host's event name) or `call` (a tool's
JSON parameters, `name` the tool). Replies: ok, retry, upgrade, refused, error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from csmd.errors import BadInput, TooLarge

PROTO = 1
MAX_BODY_BYTES = 32 * 1024 * 1024
MAX_NAME_BYTES = 200
Status = Literal["ok", "retry", "upgrade", "refused", "error"]
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
STATUSES: tuple[Status, ...] = ("ok", "retry", "upgrade", "refused", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request as decoded from its frames; `deadline_ms` is the caller's patience."""

    id: str
    verb: str
    deadline_ms: int
    host: str
    name: str
    body: bytes
    proto: int = PROTO


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer: a status and, for `ok`, what to print or the JSON result."""

    status: Status
    body: bytes = b""


def encode_request(request: Request) -> list[bytes]:
    """Returns the frames of a request, in order."""
    head = (str(request.proto), request.id, request.verb, str(request.deadline_ms), request.host, request.name)
    return [part.encode() for part in head] + [request.body]


def decode_request(frames: Sequence[bytes]) -> Request:
    """Returns the request in `frames`; BadInput if it is malformed, TooLarge if its body is too long.

    A higher protocol number is decoded like ours: the caller answers `upgrade`.
    """
    if len(frames) < 7:
        raise BadInput(f"a request has 7 frames, this one has {len(frames)}")
    if len(frames[6]) > MAX_BODY_BYTES:
        raise TooLarge(f"a request body of {len(frames[6])} bytes; the limit is {MAX_BODY_BYTES}")
    if any(len(frame) > MAX_NAME_BYTES for frame in frames[:6]):
        raise TooLarge(f"a request head frame is longer than {MAX_NAME_BYTES} bytes")
    try:
        proto, request_id, verb, deadline, host, name = (frame.decode("ascii") for frame in frames[:6])
        return Request(
            proto=int(proto), id=request_id, verb=verb, deadline_ms=int(deadline), host=host, name=name, body=bytes(frames[6])
        )  # fmt: skip
    except ValueError as error:
        raise BadInput(f"a request head is not as expected: {error}") from error


def encode_reply(reply: Reply) -> list[bytes]:
    """Returns the frames of a reply, in order."""
    return [reply.status.encode(), reply.body]


def decode_reply(frames: Sequence[bytes]) -> Reply:
    """Returns the reply in `frames`; BadInput if it is malformed."""
    if len(frames) != 2:
        raise BadInput(f"a reply has 2 frames, this one has {len(frames)}")
    status = frames[0].decode("ascii", "replace")
    for candidate in STATUSES:
        if status == candidate:
            return Reply(status=candidate, body=bytes(frames[1]))
    raise BadInput(f"a reply with unknown status {status!r}")


def dumps(value: Any) -> str:
    """Returns `value` as compact JSON text, keys in order, without \\u escapes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def pretty(value: Any) -> str:
    """Returns `value` as JSON text for people and for `--json`."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def loads(data: bytes | str) -> Any:
    """Returns the JSON value in `data`; BadInput with the position if there is none.

    Lone surrogates are replaced: they cannot be stored as UTF-8.
    """
    try:
        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else _storable(data)
        value = json.loads(text)
        return _mended(value) if _SURROGATE.search(text) else value
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not JSON: {error}") from error


#: Characters before the end within which broken JSON counts as cut in a word (`tru`).
LONGEST_WORD = 5


def find_break(data: bytes) -> str:
    """Returns a clause that says where the first JSON value of a text breaks off; "" if it is complete."""
    text = data.decode("utf-8", "replace")
    begin = len(text) - len(text.lstrip())
    try:
        json.JSONDecoder().raw_decode(text, begin)
    except json.JSONDecodeError as error:
        end = len(text.rstrip())
        if error.pos >= end - LONGEST_WORD or error.msg.startswith("Unterminated string"):
            last = text.count("\n", 0, end) + 1
            return f"ends in the middle of line {last}, at byte {len(data)}: it is truncated"
        return f"is damaged at line {error.lineno}, column {error.colno}"
    except RecursionError:
        return "is nested too deeply to be read"
    return ""


def _mended(value: Any) -> Any:
    """Returns a decoded JSON value with every string made storable."""
    if isinstance(value, str):
        return _storable(value)
    if isinstance(value, dict):
        return {_storable(key): _mended(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_mended(item) for item in value]
    return value


def _storable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def clean(text: str) -> str:
    """Returns `text` without lone surrogates and NUL, which UTF-8 and SQLite text cannot hold."""
    return _storable(text).replace("\0", "")
