"""The phases in their order over one project, until nothing more follows: a plan of what a plan has left is empty.

Nothing is done here. Each action is planned on the snapshot that those before it leave, so that it carries the versions
which it will find.
"""

from __future__ import annotations

from csmd.dream import consolidate, prune
from csmd.dream.actions import Action, DreamPlan
from csmd.dream.gather import Gathered, gather
from csmd.dream.orient import tally
from csmd.dream.snapshot import Snapshot, applied

STEPS = (*consolidate.STEPS, *prune.STEPS)


def plan(snapshot: Snapshot, gathered: Gathered | None = None) -> tuple[DreamPlan, Snapshot]:
    """What a dream does in one project, and the snapshot that it leaves; what was gathered may be known already."""
    gathered = gather(snapshot) if gathered is None else gathered
    found = tally(snapshot, gathered)
    done: list[Action] = []
    while True:
        before = len(done)
        for step in STEPS:
            for subject in step.over(snapshot, gathered):
                action = step.look(snapshot, gathered, *subject)
                if action is not None:
                    snapshot = applied(snapshot, action)
                    done.append(action)
        if len(done) == before:
            return DreamPlan(actions=tuple(done), tallies=(found,)), snapshot


def joined(plans: list[DreamPlan]) -> DreamPlan:
    """The plans of several projects as one."""
    return DreamPlan(
        actions=tuple(action for one in plans for action in one.actions),
        tallies=tuple(found for one in plans for found in one.tallies),
    )
