"""Whose hooks are understood: one row for each host; an event of any other is dropped and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from csmd.capture import project_identity
from csmd.capture import transcripts as capture
from csmd.errors import BadInput
from csmd.exclusions import Excludes
from csmd.hosts.claude import transcript
from csmd.model import Event

Decoded = tuple[Event | None, Counter[str]]

#: Host -> what makes an event of a payload.
DECODERS: dict[str, Callable[..., Decoded]] = {transcript.HOST: capture.decode_event}
#: The counter of events that were dropped because nobody here understands their host.
UNKNOWN = "unknown hosts"
#: The counter of events of projects that the user wants left out.
EXCLUDED = "excluded events"
#: The counter of events during a pause; nothing of them was looked at.
PAUSED = "paused events"


def decode(host: str, body: bytes, excludes: Excludes, *, name: str, event_id: str, at: str) -> Decoded | BadInput:
    """The event of a known host and what was redacted in it, or what is wrong with the payload.

    None instead of an event that csmd does not need, that is excluded or of a pause; the latter two are in the counts.
    """
    if excludes.pauses().covers(at):
        return None, Counter({PAUSED: 1})
    try:
        event, counts = DECODERS[host](body, name=name, event_id=event_id, at=at)
        left_out = event is not None and _is_excluded(event, excludes)
        return (None, Counter({EXCLUDED: 1})) if left_out else (event, counts)
    except BadInput as error:
        return error


def _is_excluded(event: Event, excludes: Excludes) -> bool:
    """Whether an event comes from a project that the user wants left out; looks at the disk."""
    if not excludes.ask_the_disk:
        return False
    start = capture.started_in(Path(event.transcript_path)) if event.transcript_path else ""
    place = project_identity.identified(event.cwd, start=start)
    roots = project_identity.roots(place)
    return excludes.place(event.cwd, start, *roots) or excludes.off(event.cwd, start, place.place, *roots)
