"""The phases in their order over one project, until nothing more follows: a plan of what a plan has left is empty.

Nothing is done here. Each action is planned on the snapshot that those before it leave, so that it carries the versions
which it will find. `planning` stops after every look: thousands of memories take seconds, and others are let pass.
"""

from __future__ import annotations

from collections.abc import Generator

from csmd.dream import consolidate, prune
from csmd.dream.actions import Action, DreamPlan
from csmd.dream.gather import gathering
from csmd.dream.orient import tally
from csmd.dream.snapshot import Snapshot, Working

STEPS = (*consolidate.STEPS, *prune.STEPS)


def plan(snapshot: Snapshot) -> tuple[DreamPlan, Snapshot]:
    """What a dream does in one project, and the snapshot that it leaves."""
    steps = planning(snapshot)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # what the generator returns


def planning(snapshot: Snapshot) -> Generator[None, None, tuple[DreamPlan, Snapshot]]:
    """The same, a look at a time."""
    gathered = yield from gathering(snapshot)
    found = tally(snapshot, gathered)
    left, done = Working.of(snapshot), list[Action]()
    while True:
        before = len(done)
        for step in STEPS:
            for subject in step.over(left, gathered):
                action = step.look(left, gathered, *subject)
                if action is not None:
                    left.follow(action)
                    done.append(action)
                yield
        if len(done) == before:
            return DreamPlan(actions=tuple(done), tallies=(found,)), left


def joined(plans: list[DreamPlan]) -> DreamPlan:
    """The plans of several projects as one."""
    return DreamPlan(
        actions=tuple(action for one in plans for action in one.actions),
        tallies=tuple(found for one in plans for found in one.tallies),
    )
