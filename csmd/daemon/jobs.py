"""The background thread and its table of chores, in the order of their steps, with the conditions and intervals.

Chores do one bounded piece at a time, and a chore that fails does not stop the others. `step` takes the monotonic time
by which chores are due, so that tests need not wait; what chores store is dated by the wall clock. `run` calls `step`
when it is poked, when it gets a hint, or after a tick.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

from csmd.config import Config
from csmd.daemon import housekeeping, provider_tasks, reading, spool_replay
from csmd.daemon.alarms import CHECK_EVERY_S, Alarms
from csmd.daemon.assistants_in_use import Clients, describe_clients, find_unread_directories
from csmd.daemon.context import Context, Task, iso_before, now_iso, reload_pauses, to_local_time
from csmd.daemon.dreaming import Dreaming
from csmd.daemon.injection import Rehearsal
from csmd.daemon.instruction_refresh import InstructionRefresh
from csmd.daemon.logs import HourlyLog
from csmd.daemon.page_reader import PageReader
from csmd.daemon.stages import Stages
from csmd.daemon.tasks import SECRETS_CHECK_S, Tasks
from csmd.daemon.team_exchange import TeamExchange
from csmd.embedding.worker_client import Embedder
from csmd.hosts import adapters
from csmd.paths import is_there
from csmd.store import client_versions, files, fulltext
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.tools.declaration import ToolContext

#: How often the background thread checks what is due, unless it is poked.
TICK_S = 5.0
#: Each pass queries every stage, so passes that no client waits for begin at least this far apart; also the longest rest
#: after a piece of long work.
PASS_EVERY_S = 1.0
#: A task in a pass delays new memories.
MAX_TASK_S = 30.0
#: Longest time of a dream in a pass, which is also at most the time that all other work of the last pass took.
MAX_DREAM_S = 0.2
#: A hook takes half a second: a spool file that is unfinished after this was left by a killed hook.
UNFINISHED_S = 600.0
#: How often active transcripts are checked.
LIVE_SWEEP_S = 30.0
#: How often all transcripts are checked.
FULL_SWEEP_S = 900.0
#: The same while every directory is watched; listing 20,000 transcripts takes up to a second of the processor.
WATCHED_SWEEP_S = 3600.0
#: How often the log of lookups is written to the store.
LOOKUPS_EVERY_S = 60.0
#: How often the segments of full-text indexes are merged.
MERGE_EVERY_S = 900.0
#: The database's file may be missing for this long before the daemon continues with its copy.
MISSING_FILE_S = 60.0
#: Commits by other threads after which the write-ahead log is moved into the database.
CHECKPOINT_COMMITS = 200


@dataclass(slots=True)
class Pass:
    """A pass over the table at the monotonic time `now`, with the effects of its chores so far."""

    now: float
    takes_writes: bool = True
    #: Whether a client waits for the running task.
    task_running: bool = False
    worked: bool = False
    embedded: bool = False
    did_piece: bool = False

    @property
    def is_busy(self) -> bool:
        """Whether more may be due at once."""
        return self.task_running or self.worked or self.embedded


@dataclass(frozen=True, slots=True)
class Chore:
    """A row of the table: work that begins by itself; a Task, in contrast, is ordered.

    `name` is for the log and for error reports; `step` returns a true value if it did anything.

    A chore is due in each pass, or every `every_s` seconds, for the first time after `first_s`. One that `repeats` is
    due again at once after it did something; a `quiet` one never makes the next pass due sooner. One that works
    `in_pieces` does a short piece in each pass, and the next pass begins after a rest, not a second later. `when`:
    always; sound, if the store accepts writes; no_task, if also no task is running; idle, if nothing was done in this
    pass and no client waits.
    """

    name: str
    step: Callable[[Pass], object]
    when: Literal["always", "sound", "no_task", "idle"] = "sound"
    every_s: float = 0.0
    first_s: float = 0.0
    repeats: bool = False
    quiet: bool = False
    in_pieces: bool = False


class Background(threading.Thread):
    """Owns the background thread, the parts that it calls, and the times at which chores are due."""

    def __init__(self, store: Store, config: Config, embedder: Embedder) -> None:
        super().__init__(name="csmd-background")
        self.context = context = Context(store, config, embedder)
        self.instructions = InstructionRefresh(context)
        self.pages = PageReader(context)
        self.clients = Clients(context)
        self.alarms = Alarms(context)
        self.dreaming = Dreaming(context, self.pages)
        self.stages = Stages(context, self.dreaming)
        self.rehearsal = Rehearsal(store, context.poke)
        self.team = TeamExchange(context)
        self.tasks = Tasks(
            context, stages=self.stages, dreaming=self.dreaming, instructions=self.instructions, team_exchange=self.team
        )
        self._last_full_sweep = float("-inf")
        self._commits_seen = 0
        #: Whether every directory of transcripts is watched; then the sweep only finds lost events.
        self.is_watched: Callable[[], bool] = lambda: False
        #: Ends the daemon's parts, which are started again if `restarts` is set.
        self.end_parts: Callable[[], None] = lambda: None
        self.restarts = False
        self._file_seen_at = 0.0
        """When the database's file was last seen; monotonic."""
        #: Makes the socket's thread call back.
        self.ping_server: Callable[[Callable[[], None]], None] = lambda answered: answered()
        self._due: dict[str, float] = {}
        self._task_s = self._dream_s = self._rest_s = 0.0
        """How long the task, a dream, and all other work took in the last pass."""
        self._did_piece = False
        """Whether the last pass did a piece of long work that may have more pieces."""
        self._table = self._chores()

    def _chores(self) -> tuple[Chore, ...]:
        """Returns the chores in order: incoming events, the task, reading, stages, upkeep, the dream."""
        context, store, hourly = self.context, self.context.store, HourlyLog()
        return (
            Chore("mark", lambda _: self._clear_hung_mark(), when="always"),
            Chore("pauses", lambda _: reload_pauses(context.pauses), when="always", quiet=True),
            Chore("alarms", lambda pass_: self.alarms.step(pass_.now), when="always", every_s=CHECK_EVERY_S),
            Chore("rescue", self._rescue, when="always", every_s=CHECK_EVERY_S, quiet=True),
            Chore("secrets", lambda _: self.tasks.order_secret_task(), every_s=SECRETS_CHECK_S, quiet=True),
            Chore("spool", lambda _: spool_replay.replay(context)),
            Chore("rehearsal", lambda pass_: self.rehearsal.step(pass_.now)),
            Chore("directories", lambda _: self.clients.note_directories(), quiet=True),
            Chore("task", self._do_task, when="always"),
            Chore("hints", lambda _: reading.follow_hints(context)),
            Chore("sweep", self._sweep, when="no_task", every_s=LIVE_SWEEP_S),
            Chore("provisional turns", lambda _: self.stages.close_provisional(), when="no_task", every_s=LIVE_SWEEP_S),
            Chore("unfinished spool files", self._clear_unfinished, when="no_task", every_s=LIVE_SWEEP_S),
            Chore("hooks", lambda pass_: self.clients.settle_hooks(pass_.now), when="no_task", every_s=LIVE_SWEEP_S, quiet=True),
            Chore("backlog", lambda _: reading.read_backlog(context), when="no_task", in_pieces=True),
            Chore(
                "retention", lambda _: housekeeping.drop_expired(store, context.config.settings, now=datetime.now(UTC)),
                when="no_task", every_s=housekeeping.RETENTION_EVERY_S, first_s=housekeeping.RETENTION_EVERY_S, repeats=True,
            ),
            Chore("size of the day", lambda _: housekeeping.record_size(store), every_s=housekeeping.GROWTH_EVERY_S),
            Chore("instructions", lambda _: self.instructions.has_waiting() and self.instructions.step()),
            Chore("pages", lambda pass_: self.pages.step(pass_.now), when="no_task"),
            Chore("stages", self._do_stages),
            Chore("checkpoint", self._checkpoint),
            Chore("summary", lambda pass_: hourly.log_if_due(store, pass_.now), quiet=True),
            Chore("notes", lambda _: context.lookups.write(), every_s=LOOKUPS_EVERY_S, quiet=True),
            Chore("ledger", lambda _: provider_tasks.book_pending_vectors(context), every_s=provider_tasks.BOOK_EVERY_S, quiet=True),
            Chore("team", lambda pass_: self.team.step(pass_.now)),
            Chore("dream", self._dream, when="always", in_pieces=True),
            Chore(
                "word indexes", lambda _: store.write(fulltext.merge_indexes), when="idle", every_s=MERGE_EVERY_S,
                first_s=MERGE_EVERY_S, repeats=True, quiet=True,
            ),
            Chore(
                "backup", lambda _: housekeeping.make_daily_backup(context), when="idle", quiet=True,
                every_s=housekeeping.BACKUP_CHECK_S,
            ),
        )  # fmt: skip

    def tool_context(self, status: Callable[[Rows, Background], dict[str, Any]]) -> ToolContext:
        """Returns the parts of the daemon that tools may use."""
        context = self.context
        return ToolContext(
            store=context.store, config=context.config, embedder=context.embedder, excludes=context.excludes,
            dreams=self.dreaming, now=now_iso, before=iso_before, here=to_local_time, monotonic=time.monotonic,
            pauses=context.pauses, read_pauses=lambda: reload_pauses(context.pauses), query_vector=context.query_vector,
            submit=lambda kind, **order: context.submit(Task(kind=kind, **order)).id, job=context.tasks.get,
            poke=context.poke, hint=context.hint, hint_from_hook=context.hint_from_hook,
            unwritten=context.lookups.list_unwritten,
            forget_lines=self.pages.forget, alarms=self.alarms.list_active, status=lambda rows: status(rows, self),
            clients=lambda rows: describe_clients(
                rows, context.config, unread=find_unread_directories(client_versions.list_other_directories(rows), context.config, [""])
            ),
        )  # fmt: skip

    # --- from any thread

    def hint(self, path: str) -> None:
        """Notes that a transcript, a database of transcripts or an instruction file may have changed; cheap."""
        changed = path.removesuffix("-wal")  # a database's changes are written there first
        if path.endswith(".jsonl") or Path(changed) in adapters.list_roots(self.context.config):
            self.context.hint(changed)
        else:
            self.instructions.touch(path)

    def sweep_soon(self) -> None:
        """Makes the next pass do a full sweep."""
        self._last_full_sweep = self._due["sweep"] = float("-inf")
        self.context.wake.set()

    def expect_prompt(self, project: int) -> None:
        """Notes that a session begins in a project, so that its next prompt is rehearsed."""
        self.rehearsal.expect_prompt(project)
        self.context.poke()

    # --- the thread

    def run(self) -> None:
        """Runs passes until the daemon stops, then ends the parts."""
        context = self.context
        while not context.is_stopping:
            began = time.monotonic()
            busy = context.guard("step", lambda: self.step(time.monotonic()))
            if busy and self._is_urgent():
                continue
            worked_until = time.monotonic()
            pause = (worked_until - began) * reading.REST_FACTOR if busy else TICK_S
            context.wake.wait(pause)
            # One pass handles a burst of events; after a piece of long work the thread first rests as long as it
            # worked, whatever arrives; a task begins at once.
            until = worked_until + min(pause, PASS_EVERY_S) if self._did_piece else began + PASS_EVERY_S
            context.client_waits.wait(max(0.0, until - time.monotonic()))
            context.client_waits.clear()
            context.wake.clear()
        endings: dict[str, Callable[[], object]] = {
            "task": self.tasks.close, "dream": self.dreaming.close, "notes": context.lookups.write,
            "ledger": partial(provider_tasks.book_pending_vectors, context),
        }  # fmt: skip
        for name, end in endings.items():
            context.guard(name, end)

    def step(self, now: float) -> bool:
        """Runs the chores that are due at the monotonic time `now`; returns whether more may be due at once."""
        pass_, began = Pass(now, takes_writes=self.context.store.takes_writes), time.monotonic()
        self._task_s = self._dream_s = 0.0
        for chore in self._table:
            self._due.setdefault(chore.name, now + chore.first_s)
            if self._is_due(chore, pass_):
                self._due[chore.name] = now + chore.every_s
                has_worked = bool(self.context.guard(chore.name, partial(chore.step, pass_)))
                pass_.worked |= has_worked and not chore.quiet
                pass_.did_piece |= has_worked and chore.in_pieces
                if chore.repeats and has_worked:
                    self._due[chore.name] = now
        self._rest_s = max(0.0, time.monotonic() - began - self._task_s - self._dream_s)
        self._did_piece = pass_.did_piece
        if not pass_.takes_writes:  # hooks spool, and status explains it
            self.context.trouble.clear()
        return pass_.is_busy or self.context.client_is_waiting()

    def _is_due(self, chore: Chore, pass_: Pass) -> bool:
        if chore.when != "always" and not pass_.takes_writes:
            return False
        if chore.when in ("no_task", "idle") and pass_.task_running:
            return False
        if chore.when == "idle" and (pass_.is_busy or self.context.client_is_waiting()):
            return False
        return not chore.every_s or pass_.now >= self._due[chore.name]

    def _is_urgent(self) -> bool:
        return self.tasks.is_urgent or self.dreaming.is_urgent or self.context.client_is_waiting()

    # --- steps that concern several parts

    def _clear_hung_mark(self) -> None:
        """Removes the mark that a hook without an answer left, if the server answers: it was only busy."""
        mark = self.context.config.paths.hung_mark
        if is_there(mark):
            answered = threading.Event()
            self.ping_server(answered.set)
            if answered.wait(TICK_S):
                self.context.store.write(lambda _: mark.unlink(missing_ok=True))

    def _rescue(self, pass_: Pass) -> None:
        """Copies a deleted or replaced database; if it stays missing, the daemon starts again with the copy."""
        store = self.context.store
        store.rescue(now=now_iso())
        if store.displacement() != "gone":
            self._file_seen_at = pass_.now
        elif store.is_rescued and pass_.now - self._file_seen_at >= MISSING_FILE_S and not self.restarts:
            self.restarts = True
            self.end_parts()

    def _clear_unfinished(self, _: Pass) -> None:
        files.clear_unfinished(self.context.config.paths.home, before_s=time.time() - UNFINISHED_S)

    def _do_task(self, pass_: Pass) -> None:
        """Steps the task that a client waits for, for as long as all other work in the last pass took."""
        began = time.monotonic()
        pass_.worked |= self.tasks.step()
        pass_.task_running = self.tasks.is_urgent
        while self.tasks.is_urgent and time.monotonic() - began < min(self._rest_s, MAX_TASK_S):
            self.tasks.step()
        self._task_s = time.monotonic() - began

    def _do_stages(self, pass_: Pass) -> bool:
        worked, pass_.embedded = self.stages.step(pass_.now, at_task=pass_.task_running)
        pass_.did_piece |= pass_.embedded
        return worked

    def _sweep(self, pass_: Pass) -> bool:
        is_full = pass_.now >= self._last_full_sweep + (WATCHED_SWEEP_S if self.is_watched() else FULL_SWEEP_S)
        if is_full:
            self._last_full_sweep = pass_.now
            pass_.worked |= bool(self.context.guard("instructions", self.instructions.sweep))
        return reading.sweep_transcripts(self.context, full=is_full) > 0

    def _checkpoint(self, pass_: Pass) -> None:
        """Moves the write-ahead log into the database after work, or after many commits by other threads."""
        store = self.context.store
        if (pass_.worked and not pass_.task_running) or store.commits - self._commits_seen > CHECKPOINT_COMMITS:
            self._commits_seen = store.commits
            store.checkpoint()

    def _dream(self, pass_: Pass) -> bool:
        has_client = self.context.client_is_waiting()
        if pass_.task_running or (has_client and not self.dreaming.is_overdue):
            return False
        began = time.monotonic()
        idle = pass_.takes_writes and not (pass_.is_busy or has_client)
        try:
            has_worked = has_more = self.dreaming.step(pass_.now, idle=idle)
            while has_more and not self.context.client_is_waiting():
                if time.monotonic() - began >= min(self._rest_s, MAX_DREAM_S):
                    break
                has_more = self.dreaming.step(pass_.now, idle=False)
        finally:
            self._dream_s = time.monotonic() - began
        return has_worked
