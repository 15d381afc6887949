"""Stores a hook's event and its provisional turn.

What `csmd doctor` sends through the hook is a turn that says nothing but the one word that names its session. It is
stored and found like any other, but it is nobody's: it is never distilled nor counted, and goes again. Because the name
and the word must be the same, nothing that somebody said can be kept out of capture this way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from csmd.capture import project_identity
from csmd.capture import purged_words as purging
from csmd.errors import BadInput
from csmd.exclusions import Excludes
from csmd.hosts.claude import hooks, transcript
from csmd.model import PROBE_SESSION, PROBE_TEXT, Event, Project
from csmd.privacy.redaction import storable_path
from csmd.store import activity, events, files, projects, tombstones
from csmd.store.sqlite import Rows
from csmd.text import tokens

#: The event of a payload, and what was redacted in it by kind.
Decoded = tuple[Event | None, Counter[str]]

#: Counters of dropped events: their host is not known here, their project is left out, they came during a pause.
UNKNOWN, EXCLUDED, PAUSED = "unknown hosts", "excluded events", "paused events"
#: What says that nothing of the session is still to come for now. A turn that ended in an error is over, too; what the
#: client says of the error is no words of the assistant's, and a summary is taken from its own line, not from the hook.
SETTLING = ("stop", "stop_failure", "session_end", "pre_compact", "post_compact")

#: Bytes of text of one session that are kept where nobody says otherwise.
SESSION_BYTES = 50_000_000
#: Enough of a transcript's beginning for the first line that names a directory.
BEGINNING_BYTES = 64 * 1024


def is_probe(event: Event) -> bool:
    """Whether an event is one of `csmd doctor`, by what it says alone: also one that waited in the spool."""
    word = event.session_id.removeprefix(PROBE_SESSION)
    if word == event.session_id or not (word.isascii() and word.isalpha() and word.islower()):
        return False
    said = PROBE_TEXT.format(event=event.name, word=word)
    return event.text == said and not (event.agent_id or event.transcript_path)


def decode_event(body: bytes, *, name: str, event_id: str, at: str) -> Decoded:
    """The event in a hook's payload and what was redacted in it; BadInput when it is malformed."""
    counts: Counter[str] = Counter()
    event = hooks.event(body, name=name, event_id=event_id, at=at, counts=counts)
    if event is not None and is_probe(event):
        event = replace(event, by_user=False)  # no memory is looked up for it
    return event, counts


#: Host -> what makes an event of a payload; an event of any other host is dropped and counted.
DECODERS: dict[str, Callable[..., Decoded]] = {transcript.HOST: decode_event}


def decode(host: str, body: bytes, excludes: Excludes, *, name: str, event_id: str, at: str) -> Decoded | BadInput:
    """The event of a known host and what was redacted in it, or what is wrong with the payload.

    None instead of an event that csmd does not need, that is excluded or of a pause; the latter two are in the counts.
    """
    if excludes.pauses().covers(at):
        return None, Counter({PAUSED: 1})
    try:
        event, counts = DECODERS[host](body, name=name, event_id=event_id, at=at)
    except BadInput as error:
        return error
    is_left_out = event is not None and excludes.ask_the_disk and _is_excluded(event, excludes)
    return (None, Counter({EXCLUDED: 1})) if is_left_out else (event, counts)


def _is_excluded(event: Event, excludes: Excludes) -> bool:
    """Whether an event comes from a project that the user wants left out; looks at the disk."""
    start = started_in(event.transcript_path)
    place = project_identity.identified(event.cwd, start=start)
    roots = project_identity.roots(place)
    return excludes.place(event.cwd, start, *roots) or excludes.off(event.cwd, start, place.place, *roots)


def started_in(path: str) -> str:
    """The directory in which a transcript's session began; "" for no such file yet, or a pipe."""
    if not path:
        return ""
    try:
        with files.open_regular(Path(path)) as file:
            return transcript.started_in(file.read(BEGINNING_BYTES))
    except (OSError, ValueError):
        return ""


def place_of(rows: Rows, event: Event) -> Project | None:
    """The project of the turn that an event reports, a new one with its marks; None when it reports none.

    For `record`: what the disk is asked before the write is submitted does not hold up the writer.
    """
    if hooks.event_turn(event) is None or is_probe(event):
        return None
    place = project_identity.identified(event.cwd, start=started_in(event.transcript_path))
    return project_identity.entering(rows, place)


def record(
    rows: Rows,
    event: Event,
    *,
    redacted: Counter[str],
    key: bytes,
    now: str,
    place: Project | None = None,
    room: int = SESSION_BYTES,
) -> bool:
    """Stores an event and its provisional turn in one transaction; False when it was known or nothing of it may be kept.

    `place` is what `place_of` says of the event: the writer never looks at the disk. `room` is how much of a
    session is kept.
    """
    permitted = purging.permitted_event(rows, event, place, key=key)
    if permitted is None:
        return False
    event = permitted
    text_hash = tokens.keyed_hash(event.text, key) if event.text else ""
    turn = hooks.event_turn(event)
    if turn is not None and is_probe(event):
        return events.add_probe(rows, turn, text_hash=text_hash)
    payload_hash = tokens.keyed_hash(event.payload, key)
    if not events.record(rows, event, text_hash=text_hash, payload_hash=payload_hash):
        return False
    activity.count(rows, redaction_counts(redacted))
    if turn is not None and place is not None:
        listed = tombstones.listed_path(rows, storable_path(event.transcript_path), key=key)
        turn, place, path = purging.permitted_turn(turn, place, listed, tombstones.marks(rows, key))
        home = projects.settle(rows, place, now=now)
        events.add_provisional(
            rows,
            turn,
            event=event.name,
            text_hash=text_hash,
            host=event.host,
            project=home.seq,
            directory=home.directory,
            path=path,
            room=room,
        )
    if event.name in SETTLING:
        events.settle_provisional(rows, event.session_id, at=event.at)
    return True


def redaction_counts(counts: Counter[str]) -> list[tuple[str, int]]:
    """Redactions by kind as counters."""
    return [(f"redacted {kind}", amount) for kind, amount in counts.items()]
