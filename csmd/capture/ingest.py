"""Stores a hook's event and its provisional turn, without purged text.

`csmd doctor` sends a probe through the hook: a turn whose only word is the name of its session. It is stored and
searched like any other, but never distilled or counted, and then deleted. Because name and word must be equal, this
cannot be used to keep a person's words out of capture.

Events of a purged session are dropped, also later ones; of a purged project those older than the purge. A purged turn
is stored empty, and purged text as `[purged]`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from csmd.capture import project_identity
from csmd.conversation import Event, Project, Turn
from csmd.errors import BadInput
from csmd.exclusions import Excludes
from csmd.hook_events import EVENTS
from csmd.hosts import adapters
from csmd.privacy.fingerprints import HASHED_NAME_PREFIX, Marks, remove_purged
from csmd.privacy.redaction import KNOWN_AGAIN, RedactionCounts, storable_path
from csmd.store import activity, events, files, probes, projects, provisional_turns, sessions, tombstones
from csmd.store.sqlite import Rows
from csmd.store.stored_secrets import keep_secrets_out
from csmd.text import tokens
from csmd.vocabulary import PROBE_SESSION, PROBE_TEXT

#: (event of a payload, redactions in it by kind).
Decoded = tuple[Event | None, Counter[str]]

# Counters
#: Events from hosts that this version does not know.
UNKNOWN_HOSTS = "unknown hosts"
#: Malformed events.
BAD_EVENTS = "bad events"
#: Events from excluded projects.
EXCLUDED_EVENTS = "excluded events"
#: Events during a pause.
PAUSED_EVENTS = "paused events"

#: Bytes of text that are stored of one session by default.
MAX_SESSION_BYTES = 50_000_000
#: A hook ends within this time; an id with an earlier time was not made by csmd.
MAX_HOOK_S = 60.0
_TIMED_ID = re.compile(r"[0-9a-f]{32}")
#: Hexadecimal digits of the time (ns) with which an id begins.
TIME_DIGITS = 16
#: Enough of a transcript's beginning to include the first line with a directory.
BEGINNING_BYTES = 64 * 1024


def is_probe(event: Event) -> bool:
    """Whether an event is a probe of `csmd doctor`, by its text alone, so that it is recognised after the spool too."""
    word = event.session_id.removeprefix(PROBE_SESSION)
    if word == event.session_id or not (word.isascii() and word.isalpha() and word.islower()):
        return False
    is_name = event.text == PROBE_TEXT.format(event=event.name, word=word)
    return is_name and not (event.agent_id or event.transcript_path)


def decode_event(host: str, body: bytes, *, name: str, event_id: str, at: str) -> Decoded:
    """Returns the event in a hook's payload and the redactions in it; BadInput if it is malformed."""
    counts = RedactionCounts()
    event = adapters.ADAPTERS[host].hooks.decode_event(body, name=name, event_id=event_id, at=at, counts=counts)
    if event is None:
        return None, counts
    probe = replace(event, session_id=event.session_id.removeprefix(f"{host}:"), by_user=False)
    return (probe if is_probe(probe) else event), counts  # no memory is looked up for a probe


def decode_permitted(
    host: str, body: bytes, excludes: Excludes, *, name: str, event_id: str, at: str
) -> Decoded | BadInput:
    """Returns the event of a known host and how much was redacted in it, or the error of a malformed payload.

    The event is None if csmd does not need it, or if it is excluded or in a pause; these two are counted.
    """
    at = find_begin_time(event_id, at)
    if excludes.pauses().covers(at):
        return None, Counter({PAUSED_EVENTS: 1})
    try:
        event, counts = decode_event(host, body, name=name, event_id=event_id, at=at)
    except BadInput as error:
        return error
    is_excluded = event is not None and excludes.reads_disk and _is_excluded(event, excludes)
    return (None, Counter({EXCLUDED_EVENTS: 1})) if is_excluded else (event, counts)


def find_begin_time(event_id: str, at: str) -> str:
    """Returns when the hook that reports an event began, by the event's id.

    Returns `at` if the id contains no plausible time. A hook that spools its event has waited for an answer: a later
    hook's event may already be stored.
    """
    if _TIMED_ID.fullmatch(event_id) is None:
        return at
    received = datetime.fromisoformat(at).timestamp()
    began = int(event_id[:TIME_DIGITS], 16) / 1e9
    if not received - MAX_HOOK_S <= began <= received:
        return at
    return datetime.fromtimestamp(began, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _is_excluded(event: Event, excludes: Excludes) -> bool:
    """Whether an event comes from a project that the user has excluded; reads the disk."""
    start = read_start_directory(event.transcript_path)
    project = project_identity.identify_directory(event.cwd, start=start)
    return project_identity.is_excluded(excludes, project, event.cwd, start)


def read_start_directory(path: str) -> str:
    """Returns the directory in which a transcript's session began; "" if the file does not exist yet or is a pipe."""
    if not path:
        return ""
    try:
        with files.open_regular(Path(path)) as file:
            return adapters.find_start_directory(file.read(BEGINNING_BYTES))
    except (OSError, ValueError):
        return ""


def find_event_project(rows: Rows, event: Event) -> Project | None:
    """Returns the project of the turn that an event reports; None if it reports no turn.

    A new project has its fingerprint. Reads the disk, so `record_event` gets the result as an argument: the writer must
    not wait for the disk.
    """
    if adapters.ADAPTERS[event.host].hooks.make_turn(event) is None or is_probe(event):
        return None
    project = project_identity.identify_directory(event.cwd, start=read_start_directory(event.transcript_path))
    return project_identity.add_marks_if_new(rows, project)


def _is_of_another_host(rows: Rows, event: Event) -> bool:
    """Whether an event belongs to another assistant's session, because that assistant runs Claude Code's hooks too."""
    others = [f"{host}:{event.session_id}" for host in adapters.ADAPTERS if host != adapters.CLAUDE.host]
    return event.host == adapters.CLAUDE.host and sessions.has_any(rows, others)


def record_event(
    rows: Rows, event: Event, *, redacted: Counter[str], key: bytes, now: str, place: Project | None = None,
    max_session_bytes: int = MAX_SESSION_BYTES, is_replayed: bool = False,
) -> bool:  # fmt: skip
    """Stores an event and its provisional turn in one transaction; False if it was stored before or must not be stored.

    `place` is the event's `find_event_project`, because the writer never reads the disk. At most `max_session_bytes` of
    a session are stored. If `is_replayed`, the event comes from the spool, and later events may already be stored.
    """
    permitted = None if _is_of_another_host(rows, event) else _permit_event(rows, event, place, key)
    if permitted is None:
        return False
    event = _remove_known_secrets(rows, permitted, redacted, key=key, now=now)
    text_hash = tokens.keyed_hash(event.text, key) if event.text else ""
    turn = adapters.ADAPTERS[event.host].hooks.make_turn(event)
    if turn is not None and is_probe(event):
        return probes.add_probe(rows, turn, text_hash=text_hash)
    payload_hash = tokens.keyed_hash(event.payload, key)
    if not events.record_event(rows, event, text_hash=text_hash, payload_hash=payload_hash):
        return False
    activity.increment_counters(rows, count_redactions(redacted))
    if turn is not None and place is not None:
        name = tombstones.cursor_name(rows, storable_path(event.transcript_path), key=key)
        turn, place, path = permit_turn(turn, place, name, tombstones.purged_marks(rows, key))
        project = projects.ensure_with_directory(rows, place, now=now)
        provisional_turns.add_provisional(
            rows, turn, event=event.name, text_hash=text_hash, host=event.host, project=project.seq,
            directory=project.directory, path=path, room=max_session_bytes, waited=is_replayed,
        )  # fmt: skip
    if EVENTS[event.name].is_settling:
        provisional_turns.record_settled(rows, event.session_id, at=event.at)
    return True


def count_redactions(counts: Counter[str]) -> list[tuple[str, int]]:
    """Returns redactions by kind as counters."""
    return [(f"redacted {kind}", amount) for kind, amount in counts.items()]


# --- purged text


def _permit_event(rows: Rows, event: Event, project: Project | None, key: bytes) -> Event | None:
    """Returns the event as it may be stored; None if it must not be stored, which is acknowledged all the same."""
    if not tombstones.has_purged(rows):
        return event
    stream = f"{event.session_id}/{event.agent_id}" if event.agent_id else event.session_id
    if tombstones.purged_names(rows, "session", [event.session_id, stream], key=key):
        return None
    if project is not None and event.at <= find_purge_times(rows, [project], key).get(project.key, ""):
        return None
    text, _ = remove_purged(event.text, tombstones.purged_marks(rows, key))
    reported = f"{stream}:{tokens.keyed_hash(text, key)}"
    if text and tombstones.purged_names(rows, "turn", [reported], key=key):
        return None
    return event if text == event.text else replace(event, text=text)


def _remove_known_secrets(rows: Rows, event: Event, redacted: Counter[str], *, key: bytes, now: str) -> Event:
    """Returns the event without the secrets that its session has elsewhere; its own are noted first."""
    if isinstance(redacted, RedactionCounts) and redacted.secrets:
        keep_secrets_out(rows, event.session_id, redacted.secrets, key=key, now=now)
    secrets = tombstones.secrets_of(rows, [event.session_id], key)
    text, hits = remove_purged(event.text, secrets, placeholder=KNOWN_AGAIN)
    return replace(event, text=text) if hits else event


def find_purge_times(rows: Rows, members: Iterable[Project], key: bytes) -> dict[str, str]:
    """Maps project keys to the time up to which they were purged; a project's worktrees are purged with it."""
    keys = {item.key: [item.key, *([item.worktree_of.key] if item.worktree_of else [])] for item in members}
    purged = tombstones.purged_names(rows, "project", [name for names in keys.values() for name in names], key=key)
    return {project: max(purged.get(name, "") for name in names) for project, names in keys.items()}


def permit_turn(turn: Turn, project: Project, path: str, marks: Marks) -> tuple[Turn, Project, str]:
    """Returns a turn, its project and its session's transcript (none for a sub-agent) as they may be stored."""
    transcript = "" if turn.agent_id or path.startswith(HASHED_NAME_PREFIX) else path
    if not marks:
        return turn, project, transcript
    return replace(turn, cwd=remove_purged(turn.cwd, marks)[0]), permit_project(project, marks), transcript


def ensure_project(rows: Rows, project: Project, *, key: bytes, now: str) -> int:
    """Returns the row of a project, without purged text; adds it if it is new."""
    permitted = permit_project(project, tombstones.purged_marks(rows, key))
    return projects.ensure_with_directory(rows, permitted, now=now).seq


def permit_project(project: Project, marks: Marks) -> Project:
    """Returns a project with its name and root as they may be stored; its key identifies it."""
    if not marks:
        return project
    texts = (project.root, project.name, project.place, project.remote)
    root, name, path, remote = (remove_purged(text, marks)[0] for text in texts)
    main = project.worktree_of and permit_project(project.worktree_of, marks)
    return replace(project, root=root, name=name, place=path, remote=remote, worktree_of=main)
