"""Whose hooks are understood: one row for each host; an event of any other is dropped and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from csmd.capture import stage as capture
from csmd.capture.hosts import claude
from csmd.errors import BadInput
from csmd.model import Event

Decoded = tuple[Event | None, Counter[str]]

#: Host -> what makes an event of a payload.
DECODERS: dict[str, Callable[..., Decoded]] = {claude.HOST: capture.decode_event}
#: The counter of events that were dropped because nobody here understands their host.
UNKNOWN = "unknown hosts"


def decode(host: str, body: bytes, *, name: str, event_id: str, at: str) -> Decoded | BadInput:
    """The event of a known host and what was redacted in it, or what is wrong with the payload."""
    try:
        return DECODERS[host](body, name=name, event_id=event_id, at=at)
    except BadInput as error:
        return error
