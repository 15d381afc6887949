"""The phases in their order over one project, until nothing more follows: a plan of what a plan has left is empty.

Nothing is done here. Each action is planned on the snapshot that those before it leave, so that it carries the versions
which it will find. `planning` stops after every look: thousands of memories take seconds, and others are let pass.
"""

from __future__ import annotations

from collections.abc import Generator

from csmd.dream import consolidate, lift, prune
from csmd.dream.actions import Action, DreamPlan
from csmd.dream.gather import Gathered, Step, gathering
from csmd.dream.orient import tally
from csmd.dream.snapshot import Snapshot, Working

STEPS = (*consolidate.STEPS, *prune.STEPS)


def planning(snapshot: Snapshot) -> Generator[None, None, tuple[DreamPlan, Snapshot]]:
    """What a dream does in one project, and the snapshot that it leaves; a look at a time."""
    gathered = yield from gathering(snapshot)
    found = tally(snapshot, gathered)
    left = Working.of(snapshot)
    done = yield from _through(lift.STEPS, left, gathered)
    if done:  # what is new belongs together with others, too
        gathered = yield from gathering(left)
    while True:
        more = yield from _through(STEPS, left, gathered)
        if not more:
            return DreamPlan(actions=tuple(done), tallies=(found,)), left
        done += more


def _through(steps: tuple[Step, ...], left: Working, gathered: Gathered) -> Generator[None, None, list[Action]]:
    """What some steps say is to be done, each after those before it; `left` follows."""
    done: list[Action] = []
    for step in steps:
        for subject in step.over(left, gathered):
            action = step.look(left, gathered, *subject)
            if action is not None:
                left.follow(action)
                done.append(action)
            yield
    return done


def joined(plans: list[DreamPlan]) -> DreamPlan:
    """The plans of several projects as one."""
    return DreamPlan(
        actions=tuple(action for one in plans for action in one.actions),
        tallies=tuple(found for one in plans for found in one.tallies),
    )
