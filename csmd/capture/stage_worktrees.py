"""Has worktrees that are gone count to their repository: those that were stored as projects of their own, too.

What is new is told by its path (`capture.project`) when it comes. What a transcript says may come later, or may have been
stored before anybody looked at it: it is read from the stored turns, past a cursor. Nothing is done through a wall, to a
directory that is there, or to one that the user split off again. The first time all projects are looked at.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from csmd import wire
from csmd.capture import project, stage_place, worktrees
from csmd.capture.hosts.claude_failure import SHELL
from csmd.errors import BadInput
from csmd.model import Project
from csmd.store import cursors, disk, projects
from csmd.store.core import Store
from csmd.store.sqlite import Rows

log = logging.getLogger(__name__)

STAGE = "worktrees"
#: So many turns are looked at in one step, and so many behind a call is its result looked for.
MOST_TURNS, NEAR = 2_000, 200


def step(store: Store, *, now: str) -> int:
    """Looks at the projects, once, and at the next of the turns; how many there were."""
    if not store.read(lambda rows: cursors.cursor(rows, STAGE, "projects")):
        _bring(store, _by_path(store.read(projects.lone_worktrees)), now=now, done=("projects", 1))
    begin = store.read(lambda rows: cursors.cursor(rows, STAGE, ""))
    end = min(store.read(projects.last_turn_in), begin + MOST_TURNS)
    if end <= begin:
        return 0
    # What was printed may have come later than the call: the last ones are looked at again.
    calls = store.read(
        lambda rows: projects.worktree_calls(rows, SHELL, after=max(0, begin - NEAR), upto=end, near=NEAR)
    )
    said = [claim for given, printed, cwd in calls for claim in worktrees.claims(_line(given), printed, cwd)]
    _bring(store, identified(said), now=now, done=("", end))
    return end - begin


def identified(said: Iterable[tuple[str, str]]) -> list[tuple[Project, Project]]:
    """(worktree that is gone, repository) of what was said that the disk does not speak against; asks the disk."""
    found = []
    for tree, main in dict.fromkeys(said):
        worktree, repository = stage_place.identify(tree), stage_place.marked(stage_place.identify(main))
        if worktree.gone and not project.is_home(worktree.root) and project.may_have_worktrees(repository):
            inside = f"{repository.root}/".startswith(f"{worktree.root}/")
            if not inside and worktree.key != repository.key:
                found.append((worktree, repository))
    return found


def note(rows: Rows, found: Iterable[tuple[Project, Project]], *, now: str) -> int:
    """Has worktrees count to their repositories; how many projects were merged for it."""
    return sum(
        projects.bring_home(rows, worktree, repository, is_gone=disk.is_gone, now=now) for worktree, repository in found
    )


def _by_path(roots: Iterable[str]) -> list[tuple[Project, Project]]:
    """Those of these directories that are gone and whose paths tell that they were worktrees, and whose."""
    found = []
    for root in roots:
        place = stage_place.identify(root)
        if not disk.is_gone(root):
            continue
        if place.root != root and project.was_worktree(root):
            found.append((project.at(root), stage_place.marked(place)))
        elif place.worktree_of is not None:
            found.append((place, stage_place.marked(place.worktree_of)))
    return found


def _bring(store: Store, found: Sequence[tuple[Project, Project]], *, now: str, done: tuple[str, int]) -> None:
    """Brings worktrees home, each in a write of its own: a merge of many turns takes a while, and hooks wait behind it."""
    merged = sum(store.write(lambda rows, pair=pair: note(rows, [pair], now=now)) for pair in found)  # type: ignore[misc]
    store.write(lambda rows: cursors.move_cursor(rows, STAGE, *done))
    if merged:
        log.info("worktrees that are gone count to their repository: %d; `csmd project list` shows them", merged)


def _line(given: str) -> str:
    """The shell line in a call's input; "" for one that was cut."""
    try:
        value = wire.loads(given.encode())
    except BadInput:
        return ""
    line = value.get("command") if isinstance(value, dict) else ""
    return line if isinstance(line, str) else ""
