"""What may be shown: which projects a directory sees, and which of their memories."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Sequence
from typing import Literal

from csmd.capture import project_identity
from csmd.errors import BadInput
from csmd.knowledge import Memory
from csmd.memory import confidence, scope
from csmd.store import files, memories, projects, turns
from csmd.store.sqlite import Rows
from csmd.vocabulary import OWNER, Attention, Tier

# --- places


def scopes(rows: Rows, path: str, *, start: str = "") -> list[int]:
    """The row keys that a place sees: its project's, its workspace's and everybody's; `start` is its session's."""
    return project_identity.find_scopes(rows, path, start=start)


def find_searchable_places(rows: Rows, project: str, *, asking: str) -> list[int] | None:
    """The project rows that a question may see: those of one project or, with "", of all; None for really all.

    A wall holds for both: what is behind one is seen only when `asking`, the directory in which the question is put, is
    behind it too. BadInput when the project that it is about is not.
    """
    if not project:
        return find_visible_places(rows, asking=asking)
    inside = project_identity.find_wall(rows, project) if asking not in ("", OWNER, project) else 0
    if inside and inside != project_identity.find_wall(rows, asking):
        raise BadInput(
            f"{project} is in the workspace {projects.name_of(rows, inside)}, and you are not",
            hint=f"ask from there: cd '{project}'",
        )
    return scopes(rows, project)


def find_visible_places(rows: Rows, *, asking: str) -> list[int] | None:
    """The project rows that may be seen from a directory, whatever the question is about; None for really all."""
    return None if asking == OWNER else projects.visible_projects(rows, inside=project_identity.find_wall(rows, asking))


def is_visible(rows: Rows, project: int, *, asking: str) -> bool:
    """Whether what belongs to a project's row may be seen from a directory."""
    places = find_visible_places(rows, asking=asking)
    return places is None or project in places


# --- memories

#: Origins of what nobody said: saved by an assistant by itself, or counted over sessions.
UNSTATED = frozenset({"model_saved", "inferred"})


def attention(rows: Rows, places: Sequence[int]) -> Callable[[Memory], Attention]:
    """How present a memory of these places is today."""
    days = {place: projects.active_day(rows, place) for place in places}
    return lambda memory: confidence.classify_attention(
        today=days[memory.project_seq], hot_until=memory.hot_until, warm_until=memory.warm_until
    )


def is_injectable(memory: Memory) -> bool:
    """Whether a memory may be shown unasked: not superseded, refuted or judged worthless, and from a speaker who is believed.

    What csmd counted, or an assistant saved by itself, waits until the user stated, pinned or reviewed it (design section 2).
    """
    believed = memory.authority != "external" or bool(memory.author)
    holds = not (memory.gives_way or memory.is_refuted) and (memory.pinned or memory.tell != "never")
    return holds and believed and (memory.pinned or memory.origin not in UNSTATED)


def is_of_other_checkout(rows: Rows, memory: Memory, *, asking: str) -> bool:
    """Whether a memory is about a worktree or branch ("this branch", "in ../spike") in another checkout than `asking`'s.

    What a branch is checked out as is not stored: what was said of one holds for the checkout that it was said in.
    """
    if memory.scope != "project":
        return False
    return _is_said_of_other_checkout(rows, memory.text, lambda rows: memories.directory_of(rows, memory), asking)


def is_quote_of_other_checkout(rows: Rows, text: str, turn_seq: int, *, asking: str) -> bool:
    """Whether words of a turn are about a worktree or branch in another checkout than `asking`'s."""
    return _is_said_of_other_checkout(rows, text, lambda rows: turns.directory_of(rows, turn_seq), asking)


def _is_said_of_other_checkout(rows: Rows, text: str, directory: Callable[[Rows], str], asking: str) -> bool:
    named = scope.named_checkout(text)
    said_in = directory(rows) if named else ""
    if not said_in:
        return False
    there = project_identity.find_checkout(said_in, disk=files)
    if named.startswith("../"):
        there = project_identity.find_checkout(posixpath.normpath(posixpath.join(there, named)), disk=files)
    return not asking or project_identity.find_checkout(asking, disk=files) != there


#: When a memory of a tier is shown on a prompt that it matches; what a start is told says evidence.py. "near" is only to the
#: session that said it and the one after. How long each lasts is stored, in active days (memory/confidence.py).
ON_MATCH: dict[Tier, Literal["always", "near", "never"]] = {
    "session": "near",
    "daily": "always",
    "durable": "always",
    "archive": "never",
}


def may_show(memory: Memory, attention: Attention, *, near: Collection[str]) -> bool:
    """Whether a memory may be shown to a session that it matches; `near` are that session and the one before it."""
    if memory.pinned:
        return memory.tier != "archive"
    when = ON_MATCH[memory.tier]
    if attention == "COLD" or when == "never":
        return False
    return when == "always" or any(source.session_id in near for source in memory.provenance)
