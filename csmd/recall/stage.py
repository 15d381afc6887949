"""Recall's ground: what may be seen from where, how present it is today, and what the assistant is told anyway.

Everything in recall runs on a reader's connection. What failed or timed out is named in `degraded`; the rest of the
answer stands. stage_search.py finds, stage_brief.py and stage_prompt.py compose what is put before the assistant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from csmd.believe import score as belief
from csmd.capture import project_identity
from csmd.errors import BadInput
from csmd.model import Attention, Memory
from csmd.recall import known
from csmd.store import projects
from csmd.store.sqlite import Rows


def scopes(rows: Rows, path: str, *, start: str = "") -> list[int]:
    """The row keys a place sees: its project's, its workspace's and everybody's; `start` is its session's."""
    return project_identity.scopes(rows, path, start=start)


def asked(rows: Rows, project: str, *, asking: str) -> list[int] | None:
    """The rows a question may see: about one project or, with "", about all; None for really all.

    A wall holds for both: what is behind one is seen only when `asking`, the directory in which the
    question is put, is behind it too. BadInput when the project it is about is not.
    """
    if not project:
        return seen(rows, asking=asking)
    found = scopes(rows, project)
    if asking and asking != project:
        inside = project_identity.wall(rows, project)
        if inside and inside != project_identity.wall(rows, asking):
            raise BadInput(
                f"{project} is in the workspace {projects.name_of(rows, inside)}, and you are not",
                hint=f"ask from there: cd '{project}'",
            )
    return found


def seen(rows: Rows, *, asking: str) -> list[int] | None:
    """The rows that may be seen from a directory, whatever the question is about; None for really all."""
    return projects.visible(rows, inside=project_identity.wall(rows, asking))


def is_seen(rows: Rows, project: int, *, asking: str) -> bool:
    """Whether what belongs to a project's row may be seen from a directory."""
    open_ones = seen(rows, asking=asking)
    return open_ones is None or project in open_ones


def attention(rows: Rows, places: Sequence[int]) -> Callable[[Memory], Attention]:
    """How present a memory of these places is today."""
    days = {place: projects.active_day(rows, place) for place in places}
    return lambda memory: belief.attention(
        today=days[memory.project_seq], hot_until=memory.hot_until, warm_until=memory.warm_until
    )


def told_anyway(rows: Rows, places: Sequence[int]) -> Callable[[str], bool]:
    """Whether CLAUDE.md, or the assistant's own memory, says something already in these places.

    Of directories that were merged each must say it: nobody asks here from which of them.
    """
    sides = [
        [known.known(told) for one in sorted(projects.with_merged(rows, place)) if (told := projects.instruction_texts(rows, [one]))]
        for place in places
        if place
    ]  # fmt: skip
    return lambda statement: any(side and all(one.says(statement) for one in side) for side in sides)
