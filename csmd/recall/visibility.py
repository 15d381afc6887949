"""Decides which projects a directory sees, and which of their memories may be shown."""

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

# --- projects


def scopes(rows: Rows, path: str, *, start: str = "") -> list[int]:
    """Returns the row keys of a directory's project and workspace and the global scope; `start` is its session's start."""
    return project_identity.find_scopes(rows, path, start=start)


def find_searchable_places(rows: Rows, project: str, *, asking: str) -> list[int] | None:
    """Returns the projects that a question may search: those of one project or, with "", all visible ones; None if all.

    Projects behind a wall are visible only from a directory (`asking`) behind the same wall; raises BadInput otherwise.
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
    """Returns the project rows that may be seen from a directory; None if all may."""
    if asking == OWNER:
        return None
    return projects.list_visible_projects(rows, inside=project_identity.find_wall(rows, asking))


def is_visible(rows: Rows, project: int, *, asking: str) -> bool:
    """Whether a project may be seen from a directory."""
    places = find_visible_places(rows, asking=asking)
    return places is None or project in places


# --- memories

#: Origins of memories that no person stated: saved by an assistant on its own, or inferred from several sessions.
UNSTATED = frozenset({"model_saved", "inferred"})


def attention(rows: Rows, places: Sequence[int]) -> Callable[[Memory], Attention]:
    """Returns a function that classifies the attention of a memory of these places today."""
    days = {place: projects.active_day(rows, place) for place in places}
    return lambda memory: confidence.classify_attention(
        today=days[memory.project_seq], hot_until=memory.hot_until, warm_until=memory.warm_until
    )


def is_injectable(memory: Memory) -> bool:
    """Whether a memory may be shown unasked: not superseded, refuted or judged worthless, and from a trusted speaker.

    An UNSTATED memory is shown only after the user stated, pinned or reviewed it.
    """
    is_trusted = memory.authority != "external" or bool(memory.author)
    is_current = not (memory.gives_way or memory.is_refuted) and (memory.pinned or memory.tell != "never")
    return is_current and is_trusted and (memory.pinned or memory.origin not in UNSTATED)


def is_of_other_checkout(rows: Rows, memory: Memory, *, asking: str) -> bool:
    """Whether a memory is about a worktree or branch ("this branch", "in ../spike") in another checkout than `asking`'s.

    The checkout of a branch is not stored: a statement on a branch holds for the checkout in which it was made.
    """
    if memory.scope != "project":
        return False
    return _is_said_of_other_checkout(rows, memory.text, lambda rows: memories.find_directory(rows, memory), asking)


def is_quote_of_other_checkout(rows: Rows, text: str, turn_seq: int, *, asking: str) -> bool:
    """Whether a quotation from a turn is about a worktree or branch in another checkout than `asking`'s."""
    return _is_said_of_other_checkout(rows, text, lambda rows: turns.find_directory(rows, turn_seq), asking)


def _is_said_of_other_checkout(rows: Rows, text: str, directory: Callable[[Rows], str], asking: str) -> bool:
    checkout_name = scope.named_checkout(text)
    source_directory = directory(rows) if checkout_name else ""
    if not source_directory:
        return False
    checkout = project_identity.find_checkout(source_directory, disk=files)
    if checkout_name.startswith("../"):
        path = posixpath.normpath(posixpath.join(checkout, checkout_name))
        checkout = project_identity.find_checkout(path, disk=files)
    return not asking or project_identity.find_checkout(asking, disk=files) != checkout


#: When a memory of a tier is shown for a matching prompt (evidence.py decides at a start). "near": only in its session and
#: the next one. Its lifetime is stored in active days (memory/confidence.py).
ON_MATCH: dict[Tier, Literal["always", "near", "never"]]
ON_MATCH = {"session": "near", "daily": "always", "durable": "always", "archive": "never"}


def may_show(memory: Memory, attention: Attention, *, near: Collection[str]) -> bool:
    """Whether a memory may be shown to a session that it matches; `near` are that session and the one before it."""
    if memory.pinned:
        return memory.tier != "archive"
    when = ON_MATCH[memory.tier]
    if attention == "COLD" or when == "never":
        return False
    return when == "always" or any(source.session_id in near for source in memory.provenance)
