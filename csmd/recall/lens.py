"""The lens of a directory: what is of its projects and topics ranks above the rest, and nothing else comes of it.

What may be seen is settled before (visibility.py); whether anything is told at all does not depend on it either.
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

#: What a score is multiplied by for being of a lens' project, and once more for being about one of its topics.
OF_PROJECT, ABOUT_TOPIC = 1.25, 1.25

#: What a score is multiplied by, for a text, its project (row key or directory), the session that said it, and its own id.
Weigh = Callable[[str, int | str, str, str], float]


def find(rows: Rows, directory: str) -> Lens | None:
    """The lens of a directory; None for none, and for ""."""
    if directory in ("", OWNER) or not workspaces.has_lenses(rows):
        return None
    seq = project_identity.find_lens(rows, directory)
    return workspaces.find_lens(rows, seq) if seq else None


def weigher(rows: Rows, lens: Lens | None) -> Weigh | None:
    """How much more what is of a lens counts than the rest; None without one."""
    if lens is None:
        return None
    inside: set[int | str] = {lens.seq, *lens.projects, *lens.projects.values()}
    tagged = workspaces.lens_topic_ids(rows, lens.seq)
    about = [tokens.content_stems(topic) for topic in lens.topics]

    @cache
    def is_inside(session: str) -> bool:
        """Whether a session is of the lens: what it said may hold everywhere."""
        session_row = sessions.by_id(rows, session) if session else None
        return session_row is not None and session_row.project_seq in lens.projects

    def weigh(text: str, project: int | str, session: str, ident: str) -> float:
        is_own = project in inside or is_inside(session)
        is_about = ident in tagged or (bool(about) and any(stems and stems <= ranking.stems(text) for stems in about))
        return (OF_PROJECT if is_own else 1.0) * (ABOUT_TOPIC if is_about else 1.0)

    return weigh


def describe(lens: Lens | None) -> str:
    """A lens in words for the head of a brief, "" for none."""
    if lens is None:
        return ""
    topics = f", topics {', '.join(lens.topics)}" if lens.topics else ""
    wall = " (behind a wall)" if lens.walled else ""
    return f"Lens: {display.squeeze(display.defuse(lens.name + wall + topics)).replace(chr(34), chr(39))}."
