"""What was purged stays out: nothing is stored from hooks or transcripts that was not looked at here.

A session that was purged is dropped, with what is said in it later; of a purged project what is
older than the purge; a purged turn is stored empty, and purged text as `[purged]`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from csmd.hosts.claude.transcript import Reading
from csmd.model import Event, Project, Turn
from csmd.privacy.fingerprints import HIDDEN, PURGED, Marks, clean
from csmd.store import tombstones
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import tokens

#: Directories and their projects.
Places = dict[str, Project]


def permitted_event(rows: Rows, event: Event, place: Project | None, *, key: bytes) -> Event | None:
    """The event as it may be stored, None when nothing of it may: it is acknowledged all the same."""
    if not tombstones.has_purged(rows):
        return event
    stream = f"{event.session_id}/{event.agent_id}" if event.agent_id else event.session_id
    if tombstones.purged_names(rows, "session", [event.session_id, stream], key=key):
        return None
    if place is not None and event.at <= _purged_since(rows, [place], key).get(place.key, ""):
        return None
    said, _ = clean(event.text, tombstones.marks(rows, key))
    reported = f"{stream}:{tokens.keyed_hash(said, key)}"
    if said and tombstones.purged_names(rows, "turn", [reported], key=key):
        return None
    return event if said == event.text else replace(event, text=said)


def _purged_since(rows: Rows, places: list[Project], key: bytes) -> dict[str, str]:
    """Until when each place was purged, by its key; what was a project's worktree is purged with it."""
    keys = {place.key: [place.key] for place in places}
    for place in places:
        if place.worktree_of is not None:
            keys[place.key].append(place.worktree_of.key)
    found = tombstones.purged_names(rows, "project", [name for names in keys.values() for name in names], key=key)
    return {place: max(found.get(name, "") for name in names) for place, names in keys.items()}


def permitted(rows: Rows, reading: Reading, places: Places, *, key: bytes) -> Reading:
    """What was read as it may be stored; `places` are the projects of the turns' directories."""
    marks = tombstones.marks(rows, key)
    named = {name for turn in reading.turns for name in (turn.session_id, turn.stream)} | set(reading.titles)
    sessions = tombstones.purged_names(rows, "session", list(named), key=key)
    since = _purged_since(rows, list(places.values()), key)
    reading = reading.only(
        lambda turn: (
            turn.session_id not in sessions
            and turn.stream not in sessions
            and not (turn.cwd in places and turn.at <= since.get(places[turn.cwd].key, ""))
        )
    )
    empty = _empty(rows, reading.turns, key)
    titles = {
        session: clean(title, marks)[0] for session, title in reading.titles.items() if session not in sessions
    }  # fmt: skip
    return replace(
        reading,
        turns=[replace(turn, text=PURGED) if turn.uuid in empty else _cleaned(turn, marks) for turn in reading.turns],
        titles=titles,
    )


def _cleaned(turn: Turn, marks: Marks) -> Turn:
    said, hits = clean(turn.text, marks)
    return replace(turn, text=said) if hits else turn


def _empty(rows: Rows, turns: list[Turn], key: bytes) -> set[str]:
    """The uuids of turns that were purged one by one."""
    if not tombstones.has(rows, "turn"):
        return set()
    names = {
        turn.uuid: tombstones.turn_names(turn.uuid, turn.stream, tokens.keyed_hash(turn.text, key)) for turn in turns
    }
    gone = tombstones.purged_names(rows, "turn", [name for some in names.values() for name in some], key=key)
    return {uuid for uuid, some in names.items() if not gone.keys().isdisjoint(some)}


def permitted_place(rows: Rows, place: Project, *, key: bytes) -> Project:
    """A project with the name and the root that may be stored; it is known by its key."""
    return _cleaned_place(place, tombstones.marks(rows, key))


def _cleaned_place(place: Project, marks: Marks) -> Project:
    if not marks:
        return place
    root, name, where, remote = (clean(said, marks)[0] for said in (place.root, place.name, place.place, place.remote))
    main = place.worktree_of and _cleaned_place(place.worktree_of, marks)
    return replace(place, root=root, name=name, place=where, remote=remote, worktree_of=main)


def permitted_words(rows: Rows, said: str, *, key: bytes) -> str:
    """A short text (the source of a note) as it may be stored."""
    return clean(said, tombstones.marks(rows, key))[0]


def permitted_turn(turn: Turn, place: Project, path: str, marks: Marks) -> tuple[Turn, Project, str]:
    """A turn, its project and its session's transcript as they may be stored; a sub-agent's session names none."""
    listed = "" if turn.agent_id or path.startswith(HIDDEN) else path
    if not marks:
        return turn, place, listed
    return replace(turn, cwd=clean(turn.cwd, marks)[0]), _cleaned_place(place, marks), listed


def permitted_lines(store: Store, place_of: Callable[[str], Project], *readings: Reading) -> list[Reading]:
    """What was read of a transcript, without what was purged; `place_of` tells a directory's project.

    On the thread that also purges: no tombstone can be written between this and the writing of what it permits.
    """
    if not store.read(tombstones.has_purged):
        return list(readings)
    named = {turn.cwd: place_of(turn.cwd) for reading in readings for turn in reading.turns}
    return store.read(lambda rows: [permitted(rows, reading, named, key=store.hash_key) for reading in readings])
