"""Background work: one job at a time, in small batches, on what the store says is behind.

`step` does what is due, of a job one batch and of a long backlog a part, so that what happens now
waits for neither; it returns whether more may be due at once, so that tests drive it without a
clock. `run` calls it when it is poked, hinted at, or a tick has passed. Each part is a catch-all
of its own: one broken transcript never stops the others.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator
from typing import Any

from csmd.config import Config
from csmd.daemon import backlog, housekeeping, logs, reading, tasks
from csmd.daemon.clock import iso_before, now_here, now_iso
from csmd.daemon.context import Context, look_at_pauses
from csmd.daemon.dreaming import Dreaming, Edited
from csmd.daemon.health import Alarms, Clients, clients_told
from csmd.daemon.housekeeping import Instructed
from csmd.daemon.injection import Rehearsing
from csmd.daemon.job import Job
from csmd.daemon.stages import Awaited, Reindex, Stages
from csmd.embedding.supervisor import Embedder
from csmd.store import files
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.tools.registry import ToolContext

log = logging.getLogger(__name__)

TICK_S = 5.0
#: A hook takes half a second: what is unfinished after this was left by one that was killed.
UNFINISHED_S = 600.0
LIVE_SWEEP_S, FULL_SWEEP_S = 30.0, 900.0
#: As long as every directory is watched. Listing 20,000 transcripts takes up to a second of the processor.
WATCHED_SWEEP_S = 3600.0
#: How long a step reads a backlog: what happens meanwhile waits so long.
SLICE_S = 0.2


class Steward(threading.Thread):
    """Owns the background thread; everything it does goes through the store."""

    def __init__(self, store: Store, config: Config, embedder: Embedder) -> None:
        super().__init__(name="csmd-steward")
        self.context = context = Context(store, config, embedder)
        self.instructed = Instructed(context)
        self.edited = Edited(context)
        self.clients = Clients(context)
        self.alarms = Alarms(context)
        self.reindex = Reindex(context)
        self.dreaming = Dreaming(context, self.edited)
        self.stages = Stages(context, self.reindex, self.dreaming)
        self.awaited = Awaited(store)
        self.rehearsing = Rehearsing(store, context.poke)
        self.parts = tasks.Parts(
            instructed=self.instructed, edited=self.edited, reindex=self.reindex,
            stages=self.stages, dreaming=self.dreaming,
        )  # fmt: skip
        self._hourly = logs.Hourly()
        self._job: Generator[None] | None = None
        """The job under way."""
        self._next_live = self._next_full = self._next_backup = 0.0
        self._last_full = float("-inf")
        self._commits_seen = 0
        self.is_watched: Callable[[], bool] = lambda: False
        """Whether file events tell of every transcript; the sweep then is for those that were lost."""
        self.ask_server: Callable[[Callable[[], None]], None] = lambda answered: answered()
        """Has the socket's thread call back when it comes by."""

    def tool_context(self, status: Callable[[Rows, Steward], dict[str, Any]]) -> ToolContext:
        """What tools may use of it all."""
        context = self.context
        return ToolContext(
            store=context.store, config=context.config, embedder=context.embedder, excludes=context.excludes,
            dreams=self.dreaming, now=now_iso, before=iso_before, here=now_here, monotonic=time.monotonic,
            pauses=context.pauses, read_pauses=lambda: look_at_pauses(context.pauses), query_vector=context.query_vector,
            submit=lambda kind, **order: context.submit(Job(kind=kind, **order)).id, job=context.jobs.get,
            poke=context.poke, hint=context.hint, hint_of_hook=context.hint_of_hook, unwritten=context.noted.waiting,
            forget_lines=self.edited.forget, alarms=self.alarms.shown, status=lambda rows: status(rows, self),
            clients=lambda rows: clients_told(rows, context.config),
        )  # fmt: skip

    def hint(self, path: str) -> None:
        """Says that a transcript or an instruction file may have changed; cheap, from any thread."""
        (self.context.hint if path.endswith(".jsonl") else self.instructed.touch)(path)

    def sweep_soon(self) -> None:
        """Asks for a full sweep at the next step."""
        self._next_live = self._next_full = 0.0
        self.context.wake.set()

    def expect(self, project: int) -> None:
        """Says that a session begins in a project: its next prompt is rehearsed."""
        self.rehearsing.expect(project)
        self.context.wake.set()

    def run(self) -> None:
        while not self.context.stopping:
            began = time.monotonic()
            busy = self.context.guard("step", lambda: self.step(time.monotonic()))
            pause = TICK_S
            if busy:  # what somebody waits for goes on at once
                urgent = self._job is not None or self.dreaming.is_urgent or self.context.somebody_waits()
                pause = 0.0 if urgent else (time.monotonic() - began) * backlog.REST
            if pause:
                self.context.wake.wait(pause)
                self.context.wake.clear()
        self.context.guard("job", self._close_job)
        self.context.guard("dream", self.dreaming.close)
        self.context.guard("notes", self.context.noted.write)

    def step(self, now: float) -> bool:
        """Does what is due at the monotonic time `now`; whether more may be due at once."""
        self.context.guard("mark", self._take_away_mark)
        self.context.guard("pauses", lambda: look_at_pauses(self.context.pauses))
        self.context.guard("alarms", lambda: self.alarms.step(now))
        if self.context.store.refuses:  # nothing can be taken in: hooks spool, and status says why
            self.context.trouble.clear()
            return self._advance_job() or self.context.guard("dream", lambda: self.dreaming.step(now, idle=False))
        worked = self.context.guard("spool", lambda: reading.replay(self.context))
        worked |= self.context.guard("rehearsal", lambda: self.rehearsing.step(now))
        self.context.guard("directories", self.clients.look)
        at_job = self._advance_job()
        for path in self.context.take_hints():
            self.context.live.add(str(path))
            worked |= reading.look_some(self.context, path)
        if not at_job and now >= self._next_live:
            self._next_live = now + LIVE_SWEEP_S
            patience = WATCHED_SWEEP_S if self.is_watched() else FULL_SWEEP_S
            self._next_full = min(self._next_full, self._last_full + patience)
            full = now >= self._next_full
            if full:
                self._last_full, self._next_full = now, now + patience
                self.context.guard("instructions", lambda: self.instructed.sweep() > 0)
            worked |= self.context.guard("sweep", lambda: reading.sweep(self.context, full=full) > 0)
            self.context.guard("provisional turns", self.awaited.close)
            self.context.guard("unfinished spool files", self._clear_unfinished)
            self.context.guard("hooks", lambda: self.clients.settle(now))
        worked |= not at_job and reading.read_backlog(self.context)
        worked |= not at_job and housekeeping.retention_step(self.context, now)
        housekeeping.growth_step(self.context, now)
        if self.instructed.waiting():
            worked |= self.context.guard("instructions", lambda: self.instructed.step() > 0)
        worked |= not at_job and self.context.guard("pages", lambda: self.edited.step(now))
        done, embedded = self.stages.go_through(now, at_job=at_job)
        worked |= done
        if (worked and not at_job) or self.context.store.commits - self._commits_seen > 200:
            self._commits_seen = self.context.store.commits
            self.context.guard("checkpoint", lambda: bool(self.context.store.checkpoint()))
        self.context.guard("summary", lambda: self._hourly.step(self.context.store, now))
        self.context.guard("notes", lambda: self.context.noted.step(now))
        busy = at_job or worked or embedded or self.context.somebody_waits()
        if not at_job and (self.dreaming.is_overdue or not self.context.somebody_waits()):
            busy |= self.context.guard("dream", lambda: self.dreaming.step(now, idle=not busy))
        if not busy and now >= self._next_backup:
            self._next_backup = now + housekeeping.LOOK_S
            self.context.guard("backup", lambda: housekeeping.daily_backup(self.context))
        return busy

    def _take_away_mark(self) -> bool:
        """Takes back that the daemon hangs, which a hook has noted that waited in vain: its parts answer, so it was busy."""
        mark, answered = self.context.config.paths.hung_mark, threading.Event()
        if mark.exists():
            self.ask_server(answered.set)
            if answered.wait(TICK_S):
                self.context.store.write(lambda _: mark.unlink(missing_ok=True))
        return False

    def _advance_job(self) -> bool:
        """Does batches of the job under way for a moment, or of the next one; whether there was one."""
        if self._job is None and (job := self.context.take_job()):
            self._job = tasks.batches(self.context, self.parts, job)
        if self._job is None:
            return False
        begun = time.monotonic()
        try:
            next(self._job)
            # Of thousands of short sessions many fit between two looks at what else there is.
            while not (self.context.hinted or self.context.stopping) and time.monotonic() - begun < SLICE_S:
                next(self._job)
        except StopIteration:
            self._job = self.context.reads = None
        return True

    def _close_job(self) -> bool:
        """Ends the job under way as it is: the lock that it holds is left."""
        if self._job is not None:
            self._job.close()
        return False

    def _clear_unfinished(self) -> bool:
        return files.clear_unfinished(self.context.config.paths.home, before_s=time.time() - UNFINISHED_S) > 0
