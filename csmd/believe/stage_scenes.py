"""The hands of scenes: where each memory of a session was said that does not say so itself.

They are noted anew as the session goes on, and nothing is believed more or less for them; a memory's own session counts,
and only one of a project has a scene. What is forgotten is quoted no more. A scene stays when what it was read from is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

from csmd.distill import scene
from csmd.distill.calls import file_of
from csmd.distill.scene import Change, Prompt, Said, Scene
from csmd.store import memories as stored
from csmd.store import tombstones
from csmd.store.sqlite import Rows

#: Changes looked at, the last of a session, and how much of each: the file is named at its beginning.
MOST_CHANGES, CHARACTERS = 2_000, 1_200
NONE = Scene("", "")


class Set(NamedTuple):
    """A memory by its row key and its scene, NONE where there is none any more."""

    memory_seq: int
    scene: Scene


def look(rows: Rows, session_seq: int, ident: str, *, upto: int, key: bytes) -> list[Set]:
    """The scenes of a session's memories, as far as they are others than those that are noted."""
    stated = stored.stated_by_session(rows, session_seq, ident, upto=upto)
    known = stored.known_scenes(rows, ident)
    if not stated and not known:
        return []
    changed, is_whole = changes(rows, session_seq, upto=upto)
    found = scene.scenes([_said(one) for one in stated], changed, prompts(rows, session_seq, upto=upto))
    found = _allowed(rows, session_seq, found, key=key)
    kept = frozenset(known) if not is_whole else frozenset[int]()
    return [
        Set(seq, there)
        for seq in dict.fromkeys((*(one.memory_seq for one in stated), *known))
        if seq not in kept and (there := found.get(seq, NONE)).text != known.get(seq, "")
    ]


def _allowed(rows: Rows, session_seq: int, found: dict[int, Scene], *, key: bytes) -> dict[int, Scene]:
    """Scenes without those that quote what was forgotten, or a turn that says something of people."""
    project, _ = stored.scene_places(rows, session_seq)
    personal = stored.personal(rows, session_seq)
    allowed: dict[int, Scene] = {}
    for seq, there in found.items():
        quoted = there.text.partition('"')[2].rstrip('"')
        out = there.uuid in personal or tombstones.is_out(
            rows, quoted, authority="user", project=project, at="", key=key
        )
        if not (quoted and out):
            allowed[seq] = there
        elif there.text.startswith(scene.REVIEW):
            allowed[seq] = Scene(scene.REVIEW, there.uuid)
    return allowed


def note(rows: Rows, found: Sequence[Set]) -> None:
    """Notes the scenes; to note them again changes nothing."""
    for memory_seq, there in found:
        stored.note_scene(rows, memory_seq, uuid=there.uuid, text=there.text)


def changes(rows: Rows, session_seq: int, *, upto: int) -> tuple[list[Change], bool]:
    """The last changes of a session to files, in order; and whether these are all, and all can still be read."""
    found = stored.changes_of(rows, session_seq, upto=upto, most=MOST_CHANGES, characters=CHARACTERS)
    _, roots = stored.scene_places(rows, session_seq)
    read = [(one, file_of(one.given)) for one in found]
    is_whole = len(found) < MOST_CHANGES and all(path for _, path in read)
    return [Change(one.uuid, one.ordinal, _below(path, roots), one.at, one.anew) for one, path in read], is_whole


def _below(path: str, roots: Sequence[str]) -> str:
    """A file's path below the directories of its session, "" for one elsewhere; one that is told without any is below."""
    flat = path.replace("\\", "/")
    if ".." in flat.split("/") or flat.startswith("~"):
        return ""
    if path and not PurePath(path).is_absolute() and ":" not in path[:3]:
        return path
    found = [root.replace("\\", "/").rstrip("/") + "/" for root in roots if root.strip("/\\")]
    return next((flat.removeprefix(root) for root in found if flat.startswith(root)), "")


def prompts(rows: Rows, session_seq: int, *, upto: int) -> list[Prompt]:
    """What an assistant answers to in a session, in order."""
    return [Prompt(*one) for one in stored.prompts_of(rows, session_seq, upto=upto)]


def _said(one: stored.Stated) -> Said:
    by_user, corrects = one.authority == "user", one.gate == "correction"
    return Said(one.memory_seq, one.text, one.uuid, one.ordinal, by_user=by_user, turn=one.turn, corrects=corrects)
