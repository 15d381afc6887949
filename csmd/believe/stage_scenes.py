"""The hands of scenes: at which file, or on which question, each memory of a session was said that does not say so itself.

They are noted anew as the session goes on, and nothing is believed more or less for them; a memory's own session counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from csmd.distill import scene
from csmd.distill.calls import file_of
from csmd.distill.gotchas import Spoken
from csmd.distill.scene import Change, Prompt, Said, Scene
from csmd.store import scenes as stored
from csmd.store.sqlite import Rows

#: Changes looked at, the last of a session, and how much of each: the file is named at its beginning.
MOST_CHANGES, CHARACTERS = 2_000, 1_200
NONE = Scene("", "")


class Set(NamedTuple):
    """A memory by its row key and its scene, NONE where there is none any more."""

    memory_seq: int
    scene: Scene


def look(rows: Rows, session_seq: int, ident: str, turns: Sequence[Spoken], *, upto: int) -> list[Set]:
    """The scenes of a session's memories, as far as they are others than those that are noted."""
    stated = stored.stated_in(rows, session_seq, ident, upto=upto)
    if not stated:
        return []
    found = scene.scenes([_said(one) for one in stated], changes(rows, session_seq, upto=upto), prompts(turns))
    known = stored.known(rows, [one.memory_seq for one in stated])
    return [
        Set(one.memory_seq, there)
        for one in stated
        if (there := found.get(one.memory_seq, NONE)).text != known.get(one.memory_seq, "")
    ]


def note(rows: Rows, found: Sequence[Set]) -> None:
    """Notes the scenes; to note them again changes nothing."""
    for memory_seq, there in found:
        stored.note(rows, memory_seq, uuid=there.uuid, text=there.text)


def changes(rows: Rows, session_seq: int, *, upto: int) -> list[Change]:
    """The last changes of a session to files, in order."""
    found = stored.changes(rows, session_seq, upto=upto, most=MOST_CHANGES, characters=CHARACTERS)
    return [Change(uuid, ordinal, file_of(given), at, anew) for uuid, at, ordinal, anew, given in found]


def prompts(turns: Sequence[Spoken]) -> list[Prompt]:
    """What a user typed, of the turns in which somebody speaks."""
    return [Prompt(turn.uuid, turn.ordinal, turn.text) for turn in turns if turn.kind == "user"]


def _said(one: stored.Stated) -> Said:
    by_user, corrects = one.authority == "user", one.gate == "correction"
    return Said(one.memory_seq, one.text, one.uuid, one.ordinal, by_user=by_user, turn=one.turn, corrects=corrects)
