"""The phases in their order over one project, until nothing more follows: a plan of what a plan has left is empty.

Nothing is done here. Each action is planned on the snapshot that those before it leave, so that it carries the versions
which it will find.
"""

from __future__ import annotations

from csmd.dream import consolidate, lift, prune
from csmd.dream.actions import Action, DreamPlan
from csmd.dream.gather import Gathered, Step, gather
from csmd.dream.orient import tally
from csmd.dream.snapshot import Snapshot, applied

STEPS = (*consolidate.STEPS, *prune.STEPS)


def plan(snapshot: Snapshot, gathered: Gathered | None = None) -> tuple[DreamPlan, Snapshot]:
    """What a dream does in one project, and the snapshot that it leaves; what was gathered may be known already."""
    gathered = gather(snapshot) if gathered is None else gathered
    found = tally(snapshot, gathered)
    done, snapshot = _through(lift.STEPS, snapshot, gathered)
    if done:  # what is new belongs together with others, too
        gathered = gather(snapshot)
    while True:
        more, snapshot = _through(STEPS, snapshot, gathered)
        if not more:
            return DreamPlan(actions=tuple(done), tallies=(found,)), snapshot
        done += more


def _through(steps: tuple[Step, ...], snapshot: Snapshot, gathered: Gathered) -> tuple[list[Action], Snapshot]:
    """What some steps say is to be done, each after those before it, and the snapshot that all of it leaves."""
    done: list[Action] = []
    for step in steps:
        for subject in step.over(snapshot, gathered):
            action = step.look(snapshot, gathered, *subject)
            if action is not None:
                snapshot = applied(snapshot, action)
                done.append(action)
    return done, snapshot


def joined(plans: list[DreamPlan]) -> DreamPlan:
    """The plans of several projects as one."""
    return DreamPlan(
        actions=tuple(action for one in plans for action in one.actions),
        tallies=tuple(found for one in plans for found in one.tallies),
    )
