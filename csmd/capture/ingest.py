"""Stores a hook's event and its provisional turn; what was purged stays out.

`csmd doctor` sends a probe through the hook: a turn that says nothing but the word that names its session. It is stored
and found like any other, but never distilled nor counted, and deleted again. Because the name and the word must be the
same, nothing that was said can be kept out of capture this way.

A session that was purged is dropped, with what is said in it later; of a purged project what is older than the purge; a
purged turn is stored empty, and purged text as `[purged]`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from csmd.capture import project_identity
from csmd.errors import BadInput
from csmd.exclusions import Excludes
from csmd.hook_events import EVENTS
from csmd.hosts import adapters
from csmd.privacy.fingerprints import HIDDEN, Marks, clean
from csmd.privacy.redaction import KNOWN_AGAIN, Removed, storable_path
from csmd.store import activity, events, files, probes, projects, provisional_turns, sessions, tombstones
from csmd.store.purge import keep_secrets_out
from csmd.store.sqlite import Rows
from csmd.text import tokens
from csmd.values import Event, Project, Turn
from csmd.vocabulary import PROBE_SESSION, PROBE_TEXT

#: The event of a payload, and what was redacted in it by kind.
Decoded = tuple[Event | None, Counter[str]]

#: Counters of dropped events: their host is not known here, they cannot be read, their project is left out, they came
#: during a pause.
UNKNOWN_HOSTS, BAD_EVENTS = "unknown hosts", "bad events"
EXCLUDED_EVENTS, PAUSED_EVENTS = "excluded events", "paused events"

#: Bytes of text that are kept of one session by default.
SESSION_BYTES = 50_000_000
#: Enough of a transcript's beginning for the first line that names a directory.
BEGINNING_BYTES = 64 * 1024


def is_probe(event: Event) -> bool:
    """Whether an event is a probe of `csmd doctor`, by its text alone: also one that waited in the spool."""
    word = event.session_id.removeprefix(PROBE_SESSION)
    if word == event.session_id or not (word.isascii() and word.isalpha() and word.islower()):
        return False
    is_silent = event.text == PROBE_TEXT.format(event=event.name, word=word)
    return is_silent and not (event.agent_id or event.transcript_path)


def decode_event(host: str, body: bytes, *, name: str, event_id: str, at: str) -> Decoded:
    """The event in a hook's payload and what was redacted in it; BadInput when it is malformed."""
    counts = Removed()
    event = adapters.ADAPTERS[host].hooks.decode_event(body, name=name, event_id=event_id, at=at, counts=counts)
    if event is None:
        return None, counts
    probe = replace(event, session_id=event.session_id.removeprefix(f"{host}:"), by_user=False)
    return (probe if is_probe(probe) else event), counts  # no memory is looked up for a probe


def decode(host: str, body: bytes, excludes: Excludes, *, name: str, event_id: str, at: str) -> Decoded | BadInput:
    """The event of a known host and what was redacted in it, or what is wrong with the payload.

    None instead of an event that csmd does not need, that is excluded or of a pause; the latter two are in the counts.
    """
    at = began_at(event_id, at)
    if excludes.pauses().covers(at):
        return None, Counter({PAUSED_EVENTS: 1})
    try:
        event, counts = decode_event(host, body, name=name, event_id=event_id, at=at)
    except BadInput as error:
        return error
    is_left_out = event is not None and excludes.ask_the_disk and _is_excluded(event, excludes)
    return (None, Counter({EXCLUDED_EVENTS: 1})) if is_left_out else (event, counts)


#: A hook ends within this; what an id says beside it is no time of ours.
LONGEST_HOOK_S = 60.0
_TIMED = re.compile(r"[0-9a-f]{32}")


def began_at(event_id: str, at: str) -> str:
    """When the hook began that reports an event, which its id says; `at` where it says none, or another time.

    A hook whose event is spooled has waited for an answer: the next one's may be stored by then.
    """
    if _TIMED.fullmatch(event_id) is None:
        return at
    known = datetime.fromisoformat(at).timestamp()
    began = int(event_id[:16], 16) / 1e9
    if not known - LONGEST_HOOK_S <= began <= known:
        return at
    return datetime.fromtimestamp(began, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


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
            return adapters.started_in(file.read(BEGINNING_BYTES))
    except (OSError, ValueError):
        return ""


def _turn_of(event: Event) -> Turn | None:
    return adapters.ADAPTERS[event.host].hooks.turn_of_event(event)


def place_of(rows: Rows, event: Event) -> Project | None:
    """The project of the turn that an event reports, a new one with its marks; None when it reports none.

    For `record`: what the disk is asked before the write is submitted does not hold up the writer.
    """
    if _turn_of(event) is None or is_probe(event):
        return None
    place = project_identity.identified(event.cwd, start=started_in(event.transcript_path))
    return project_identity.entering(rows, place)


def _is_of_another_host(rows: Rows, event: Event) -> bool:
    """Whether an event is of a session that is known as another assistant's, which ran Claude Code's hooks, too."""
    others = [f"{host}:{event.session_id}" for host in adapters.ADAPTERS if host != adapters.CLAUDE.host]
    return event.host == adapters.CLAUDE.host and sessions.is_any_known(rows, others)


def record(
    rows: Rows,
    event: Event,
    *,
    redacted: Counter[str],
    key: bytes,
    now: str,
    place: Project | None = None,
    room: int = SESSION_BYTES,
    waited: bool = False,
) -> bool:
    """Stores an event and its provisional turn in one transaction; False when it was known or nothing of it may be kept.

    `place` is what `place_of` says of the event: the writer never looks at the disk. `room` is how much of a
    session is kept, `waited` says that the event comes from the spool: others may have come after it.
    """
    permitted = None if _is_of_another_host(rows, event) else _permitted_event(rows, event, place, key)
    if permitted is None:
        return False
    event = _without_known_secrets(rows, permitted, redacted, key=key, now=now)
    text_hash = tokens.keyed_hash(event.text, key) if event.text else ""
    turn = _turn_of(event)
    if turn is not None and is_probe(event):
        return probes.add_probe(rows, turn, text_hash=text_hash)
    payload_hash = tokens.keyed_hash(event.payload, key)
    if not events.record(rows, event, text_hash=text_hash, payload_hash=payload_hash):
        return False
    activity.count(rows, redaction_counts(redacted))
    if turn is not None and place is not None:
        listed = tombstones.listed_path(rows, storable_path(event.transcript_path), key=key)
        turn, place, path = permitted_turn(turn, place, listed, tombstones.marks(rows, key))
        home = projects.ensure_with_directory(rows, place, now=now)
        provisional_turns.add_provisional(
            rows,
            turn,
            event=event.name,
            text_hash=text_hash,
            host=event.host,
            project=home.seq,
            directory=home.directory,
            path=path,
            room=room,
            waited=waited,
        )
    if EVENTS[event.name].settles:
        provisional_turns.settle_provisional(rows, event.session_id, at=event.at)
    return True


def redaction_counts(counts: Counter[str]) -> list[tuple[str, int]]:
    """Redactions by kind as counters."""
    return [(f"redacted {kind}", amount) for kind, amount in counts.items()]


# --- what was purged


def _permitted_event(rows: Rows, event: Event, place: Project | None, key: bytes) -> Event | None:
    """The event as it may be stored, None when nothing of it may: it is acknowledged all the same."""
    if not tombstones.has_purged(rows):
        return event
    stream = f"{event.session_id}/{event.agent_id}" if event.agent_id else event.session_id
    if tombstones.purged_names(rows, "session", [event.session_id, stream], key=key):
        return None
    if place is not None and event.at <= purged_since(rows, [place], key).get(place.key, ""):
        return None
    text, _ = clean(event.text, tombstones.marks(rows, key))
    reported = f"{stream}:{tokens.keyed_hash(text, key)}"
    if text and tombstones.purged_names(rows, "turn", [reported], key=key):
        return None
    return event if text == event.text else replace(event, text=text)


def _without_known_secrets(rows: Rows, event: Event, redacted: Counter[str], *, key: bytes, now: str) -> Event:
    """The event without the secrets that its session holds elsewhere; its own are noted first."""
    if isinstance(redacted, Removed) and redacted.secrets:
        keep_secrets_out(rows, event.session_id, redacted.secrets, key=key, now=now)
    text, hits = clean(event.text, tombstones.secrets_of(rows, [event.session_id], key), hole=KNOWN_AGAIN)
    return replace(event, text=text) if hits else event


def purged_since(rows: Rows, places: Iterable[Project], key: bytes) -> dict[str, str]:
    """Project key -> until when it was purged; what was a project's worktree is purged with it."""
    keys = {place.key: [place.key, *([place.worktree_of.key] if place.worktree_of else [])] for place in places}
    purged = tombstones.purged_names(rows, "project", [name for names in keys.values() for name in names], key=key)
    return {place: max(purged.get(name, "") for name in names) for place, names in keys.items()}


def permitted_turn(turn: Turn, place: Project, path: str, marks: Marks) -> tuple[Turn, Project, str]:
    """A turn, its project and its session's transcript as they may be stored; a sub-agent's session names none."""
    listed = "" if turn.agent_id or path.startswith(HIDDEN) else path
    if not marks:
        return turn, place, listed
    return replace(turn, cwd=clean(turn.cwd, marks)[0]), permitted_place(place, marks), listed


def permitted_place(place: Project, marks: Marks) -> Project:
    """A project with the name and the root that may be stored; it is known by its key."""
    if not marks:
        return place
    root, name, where, remote = (clean(text, marks)[0] for text in (place.root, place.name, place.place, place.remote))
    main = place.worktree_of and permitted_place(place.worktree_of, marks)
    return replace(place, root=root, name=name, place=where, remote=remote, worktree_of=main)
