"""Ranks items from a lens' projects and topics above others.

A lens changes only the order: it neither adds nor removes results, because visibility is decided earlier (visibility.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from csmd.capture import project_identity
from csmd.recall import ranking
from csmd.store import sessions, workspaces
from csmd.store.sqlite import Rows
from csmd.store.workspaces import Lens
from csmd.text import display, tokens
from csmd.vocabulary import OWNER

#: Score factors of an item from a lens' project, and of one about a topic of the lens.
PROJECT_WEIGHT = 1.25
TOPIC_WEIGHT = 1.25

#: Returns the score factor of a text, given its project (row key or directory), its session and its own id.
WeightOf = Callable[[str, int | str, str, str], float]


def find_lens(rows: Rows, directory: str) -> Lens | None:
    """Returns the lens of a directory; None if it has no lens or is ""."""
    if directory in ("", OWNER) or not workspaces.has_lenses(rows):
        return None
    seq = project_identity.find_lens(rows, directory)
    return workspaces.find_lens(rows, seq) if seq else None


def make_weight(rows: Rows, lens: Lens | None) -> WeightOf | None:
    """Returns a function that gives a text's score factor under a lens; None without a lens."""
    if lens is None:
        return None
    projects: set[int | str] = {lens.seq, *lens.projects, *lens.projects.values()}
    tagged_ids = workspaces.list_lens_topic_ids(rows, lens.seq)
    topics = [stems for topic in lens.topics if (stems := tokens.content_stems(topic))]

    @cache
    def is_session_inside(session: str) -> bool:
        """Whether a session is in the lens; its statements may hold everywhere."""
        session_row = sessions.by_id(rows, session) if session else None
        return session_row is not None and session_row.project_seq in lens.projects

    def weight_of(text: str, project: int | str, session: str, item_id: str) -> float:
        is_inside = project in projects or is_session_inside(session)
        is_on_topic = item_id in tagged_ids or any(stems <= ranking.stems(text) for stems in topics)
        return (PROJECT_WEIGHT if is_inside else 1.0) * (TOPIC_WEIGHT if is_on_topic else 1.0)

    return weight_of


def describe(lens: Lens | None) -> str:
    """Describes a lens for the head of a brief; "" without a lens."""
    if lens is None:
        return ""
    topics = f", topics {', '.join(lens.topics)}" if lens.topics else ""
    wall = " (behind a wall)" if lens.walled else ""
    return f"Lens: {display.squeeze(display.defuse(lens.name + wall + topics)).replace(chr(34), chr(39))}."
