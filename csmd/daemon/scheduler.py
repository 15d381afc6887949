"""The background thread: walks a table of jobs, one bounded piece at a time.

It knows no job by name. Each is a catch-all of its own: one that fails stops no other. `step` takes the time, so that
tests drive it without a clock; `run` calls it when it is poked, hinted at, or a tick has passed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from csmd.daemon.context import Context

TICK_S = 5.0
#: The rest after a walk that nobody waits for, as a multiple of its length: reading a past takes half of one core at
#: most, and a hook meets it half as often. Not a lower priority: a thread that has one and holds the interpreter holds up
#: the threads that answer hooks.
REST = 1.0


@dataclass(slots=True)
class Walk:
    """One walk through the table at the monotonic time `now`, and what its jobs have done so far."""

    now: float
    #: Whether somebody waits for a task that is under way.
    at_task: bool = False
    worked: bool = False
    embedded: bool = False

    @property
    def is_busy(self) -> bool:
        """Whether more may be due at once."""
        return self.at_task or self.worked or self.embedded


@dataclass(frozen=True, slots=True)
class Job:
    """A row of the table; `name` is for the log and for trouble, `step` gives something true where it did anything.

    It is due in each walk, or `every_s` and for the first time after `first_s`; one that `repeats` is due at once again
    after it did something, and after one that is `quiet` nothing more is due, whatever it did. `when`: always; sound,
    where the store takes writes; no_task, while no task is under way either; idle, where nothing was done in
    this walk and nobody waits.
    """

    name: str
    step: Callable[[Walk], object]
    when: Literal["always", "sound", "no_task", "idle"] = "sound"
    every_s: float = 0.0
    first_s: float = 0.0
    repeats: bool = False
    quiet: bool = False


class Scheduler(threading.Thread):
    """Owns the background thread and when each job is due; `endings` are done, by name, when it ends."""

    def __init__(
        self,
        context: Context,
        jobs: Sequence[Job],
        *,
        is_urgent: Callable[[], bool],
        endings: Mapping[str, Callable[[], object]],
    ) -> None:
        super().__init__(name="csmd-background")
        self._context, self._jobs, self._is_urgent, self._endings = context, jobs, is_urgent, endings
        self._due: dict[str, float] = {}

    def soon(self, name: str) -> None:
        """Makes a job due in the next walk; from any thread."""
        self._due[name] = float("-inf")
        self._context.wake.set()

    def run(self) -> None:
        context = self._context
        while not context.stopping:
            began = time.monotonic()
            busy = context.guard("step", lambda: self.step(time.monotonic()))
            pause = TICK_S
            if busy:  # what somebody waits for goes on at once
                pause = 0.0 if self._is_urgent() else (time.monotonic() - began) * REST
            if pause:
                context.wake.wait(pause)
                context.wake.clear()
        for name, end in self._endings.items():
            context.guard(name, end)

    def step(self, now: float) -> bool:
        """Does what is due at the monotonic time `now`; whether more may be due at once."""
        walk = Walk(now)
        for job in self._jobs:
            if self._is_due(job, walk):
                did = bool(self._context.guard(job.name, partial(job.step, walk)))
                walk.worked |= did and not job.quiet
                if job.repeats and did:
                    self._due[job.name] = now
        if self._context.store.refuses:  # hooks spool, and status says why
            self._context.trouble.clear()
        return walk.is_busy or self._context.somebody_waits()

    def _is_due(self, job: Job, walk: Walk) -> bool:
        if job.when != "always" and self._context.store.refuses:
            return False
        if job.when in ("no_task", "idle") and walk.at_task:
            return False
        if job.when == "idle" and (walk.is_busy or self._context.somebody_waits()):
            return False
        if not job.every_s:
            return True
        if walk.now < self._due.setdefault(job.name, walk.now + job.first_s):
            return False
        self._due[job.name] = walk.now + job.every_s
        return True
