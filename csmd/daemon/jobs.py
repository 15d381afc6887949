"""The table of background jobs: what each does, in which order, when it is due."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from csmd.config import Config
from csmd.daemon import housekeeping, reading
from csmd.daemon.context import Context, Task, iso_before, local_now, now_iso, read_pauses
from csmd.daemon.dreaming import Dreaming, Edited
from csmd.daemon.health import EVERY_S, Alarms, Clients, describe_clients
from csmd.daemon.housekeeping import Hourly, InstructionRefresh
from csmd.daemon.injection import Rehearsal
from csmd.daemon.scheduler import TICK_S, Job, Scheduler, Turn
from csmd.daemon.stages import Awaited, Reindex, Stages
from csmd.daemon.tasks import Tasks
from csmd.embedding.supervisor import Embedder
from csmd.store import files
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.tools.registry import ToolContext

#: A hook takes half a second: what is unfinished after this was left by one that was killed.
UNFINISHED_S = 600.0
LIVE_SWEEP_S, FULL_SWEEP_S = 30.0, 900.0
#: As long as every directory is watched. Listing 20,000 transcripts takes up to a second of the processor.
WATCHED_SWEEP_S = 3600.0


class Background:
    """Owns the parts; the scheduler's thread steps them. Everything they do goes through the store."""

    def __init__(self, store: Store, config: Config, embedder: Embedder) -> None:
        self.context = context = Context(store, config, embedder)
        self.instructed = InstructionRefresh(context)
        self.edited = Edited(context)
        self.clients = Clients(context)
        self.alarms = Alarms(context)
        self.reindex = Reindex(context)
        self.dreaming = Dreaming(context, self.edited)
        self.stages = Stages(context, self.reindex, self.dreaming)
        self.rehearsal = Rehearsal(store, context.poke)
        self.tasks = Tasks(
            context, instructed=self.instructed, edited=self.edited, reindex=self.reindex, stages=self.stages,
            dreaming=self.dreaming,
        )  # fmt: skip
        self._next_full, self._last_full = 0.0, float("-inf")
        self._commits_seen = 0
        self.is_watched: Callable[[], bool] = lambda: False
        """Whether file events tell of every transcript; the sweep then is for those that were lost."""
        self.ask_server: Callable[[Callable[[], None]], None] = lambda answered: answered()
        """Has the socket's thread call back when it comes by."""
        self.scheduler = Scheduler(
            context, self._table(), is_urgent=self._is_urgent,
            endings={"task": self.tasks.close, "dream": self.dreaming.close, "notes": context.lookups.write},
        )  # fmt: skip

    def _table(self) -> tuple[Job, ...]:
        """What is done, in this order: what is heard of, the task, what is read, what is made of it, upkeep, the dream."""
        context, store, awaited, hourly = self.context, self.context.store, Awaited(self.context.store), Hourly()

        def look_at_hints(_: Turn) -> bool:
            worked = False
            for path in context.take_hints():
                context.live.add(str(path))
                worked |= reading.look_some(context, path)
            return worked

        return (
            Job(name="mark", step=lambda _: self._take_away_mark(), when="always"),
            Job(name="pauses", step=_quiet(lambda _: read_pauses(context.pauses)), when="always"),
            Job(name="alarms", step=lambda turn: self.alarms.step(turn.now), when="always", every_s=EVERY_S),
            Job(name="spool", step=lambda _: reading.replay(context)),
            Job(name="rehearsal", step=lambda turn: self.rehearsal.step(turn.now)),
            Job(name="directories", step=_quiet(lambda _: self.clients.note_directories())),
            Job(name="task", step=self.tasks.step, when="always"),
            Job(name="hints", step=look_at_hints),
            Job(name="sweep", step=self._sweep, when="no_task", every_s=LIVE_SWEEP_S),
            Job(
                name="provisional turns", step=_quiet(lambda _: awaited.close()), when="no_task", every_s=LIVE_SWEEP_S
            ),
            Job(name="unfinished spool files", step=_quiet(self._clear_unfinished), when="no_task", every_s=LIVE_SWEEP_S),
            Job(
                name="hooks", step=_quiet(lambda turn: self.clients.settle_hooks(turn.now)), when="no_task", every_s=LIVE_SWEEP_S
            ),
            Job(name="backlog", step=lambda _: reading.read_backlog(context), when="no_task"),
            Job(
                name="retention", step=lambda _: housekeeping.drop_expired(store, context.config.settings, now=datetime.now(UTC)), when="no_task",
                every_s=housekeeping.RETENTION_S, first_s=housekeeping.RETENTION_S, repeats=True,
            ),
            Job(name="size of the day", step=lambda _: housekeeping.note_size(store), every_s=housekeeping.GROWTH_EVERY_S),
            Job(name="instructions", step=lambda _: self.instructed.waiting() and self.instructed.step() > 0),
            Job(name="pages", step=lambda turn: self.edited.step(turn.now), when="no_task"),
            Job(name="stages", step=self.stages.step),
            Job(name="checkpoint", step=self._checkpoint),
            Job(name="summary", step=_quiet(lambda turn: hourly.step(store, turn.now))),
            Job(name="notes", step=_quiet(lambda _: context.lookups.write()), every_s=housekeeping.NOTES_S),
            Job(name="dream", step=self._dream, when="always"),
            Job(
                name="backup", step=_quiet(lambda _: housekeeping.daily_backup(context)), when="idle",
                every_s=housekeeping.LOOK_S,
            ),
        )  # fmt: skip

    def tool_context(self, status: Callable[[Rows, Background], dict[str, Any]]) -> ToolContext:
        """What tools may use of it all."""
        context = self.context
        return ToolContext(
            store=context.store, config=context.config, embedder=context.embedder, excludes=context.excludes,
            dreams=self.dreaming, now=now_iso, before=iso_before, here=local_now, monotonic=time.monotonic,
            pauses=context.pauses, read_pauses=lambda: read_pauses(context.pauses), query_vector=context.query_vector,
            submit=lambda kind, **order: context.submit(Task(kind=kind, **order)).id, job=context.tasks.get,
            poke=context.poke, hint=context.hint, hint_of_hook=context.hint_of_hook, unwritten=context.lookups.unwritten,
            forget_lines=self.edited.forget, alarms=self.alarms.active, status=lambda rows: status(rows, self),
            clients=lambda rows: describe_clients(rows, context.config),
        )  # fmt: skip

    # --- from any thread

    def hint(self, path: str) -> None:
        """Says that a transcript or an instruction file may have changed; cheap."""
        (self.context.hint if path.endswith(".jsonl") else self.instructed.touch)(path)

    def sweep_soon(self) -> None:
        """Asks for a full sweep in the next turn."""
        self._next_full = 0.0
        self.scheduler.soon("sweep")

    def expect(self, project: int) -> None:
        """Says that a session begins in a project: its next prompt is rehearsed."""
        self.rehearsal.expect(project)
        self.context.poke()

    # --- steps that concern several parts

    def step(self, now: float) -> bool:
        """One walk through the table at the monotonic time `now`; whether more may be due at once."""
        return self.scheduler.step(now)

    def _is_urgent(self) -> bool:
        return self.tasks.is_under_way or self.dreaming.is_urgent or self.context.somebody_waits()

    def _take_away_mark(self) -> bool:
        """Takes back that the daemon hangs, which a hook has noted that waited in vain: its parts answer, so it was busy."""
        mark, answered = self.context.config.paths.hung_mark, threading.Event()
        if mark.exists():
            self.ask_server(answered.set)
            if answered.wait(TICK_S):
                self.context.store.write(lambda _: mark.unlink(missing_ok=True))
        return False

    def _sweep(self, turn: Turn) -> bool:
        patience = WATCHED_SWEEP_S if self.is_watched() else FULL_SWEEP_S
        full = turn.now >= min(self._next_full, self._last_full + patience)
        if full:
            self._last_full, self._next_full = turn.now, turn.now + patience
            turn.worked |= self.context.guard("instructions", lambda: self.instructed.sweep() > 0)
        return reading.sweep(self.context, full=full) > 0

    def _clear_unfinished(self, _: Turn) -> bool:
        return files.clear_unfinished(self.context.config.paths.home, before_s=time.time() - UNFINISHED_S) > 0

    def _checkpoint(self, turn: Turn) -> bool:
        """Moves the write-ahead log into the database after work, or after many commits of others."""
        store = self.context.store
        if (turn.worked and not turn.at_task) or store.commits - self._commits_seen > 200:
            self._commits_seen = store.commits
            store.checkpoint()
        return False

    def _dream(self, turn: Turn) -> bool:
        waits = self.context.somebody_waits()
        if turn.at_task or (waits and not self.dreaming.is_overdue):
            return False
        return self.dreaming.step(turn.now, idle=not (turn.is_busy or waits or self.context.store.refuses))


def _quiet(step: Callable[[Turn], bool]) -> Callable[[Turn], bool]:
    """A step after which nothing more is due, whatever it did."""
    return lambda turn: step(turn) and False
