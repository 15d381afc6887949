"""Background work: one job at a time, in small batches, on what the store says is behind.

`step` does what is due, of a job one batch and of a long backlog a part, so that what happens now
waits for neither; it returns whether more may be due at once, so that tests drive it without a
clock. `run` calls it when it is poked, hinted at, or a tick has passed. Each part is a catch-all
of its own: one broken transcript never stops the others.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import suppress
from itertools import chain
from pathlib import Path

from csmd.capture import transcripts
from csmd.capture import transcripts as capture
from csmd.config import Config
from csmd.daemon import backfill, backups, growth, jobs, logs, reading, replay, retention, summary
from csmd.daemon.alarming import Alarms
from csmd.daemon.awaited import Awaited
from csmd.daemon.backlog import Backlog
from csmd.daemon.clients import Clients
from csmd.daemon.dreaming import Dreaming
from csmd.daemon.edited import Edited
from csmd.daemon.instructed import Instructed
from csmd.daemon.jobs import Job
from csmd.daemon.noted import Noted
from csmd.daemon.owed import Owed
from csmd.daemon.rehearsing import Rehearsing
from csmd.daemon.reindex import Reindex
from csmd.daemon.stages import Stages
from csmd.errors import CsmdError, StoreError
from csmd.store import cursors, files
from csmd.store.core import Store
from csmd.store.cursors import Behind
from csmd.store.embed import Embedder
from csmd.store.pauses import PauseFile

log = logging.getLogger(__name__)

TICK_S = 5.0
#: A hook takes half a second: what is unfinished after this was left by one that was killed.
UNFINISHED_S = 600.0
LIVE_SWEEP_S, FULL_SWEEP_S = 30.0, 900.0
#: As long as every directory is watched. Listing 20,000 transcripts takes up to a second of the processor.
WATCHED_SWEEP_S = 3600.0
#: A transcript written to so lately may be somebody's at work; more of them than anybody has.
LIVE_S, MOST_LIVE = 3600, 200
#: How long a step reads a backlog: what happens meanwhile waits so long.
SLICE_S = 0.2


class Steward(threading.Thread):
    """Owns the background thread; everything it does goes through the store."""

    def __init__(
        self, store: Store, config: Config, embedder: Embedder, *, model_name: Callable[[], str | None]
    ) -> None:
        super().__init__(name="csmd-steward")
        self.store = store
        self.config = config
        self.embedder = embedder
        self.model_name = model_name
        self.jobs: dict[str, Job] = {}
        self.trouble: dict[str, str] = {}
        self._queue: deque[Job] = deque()
        self._job: Generator[None] | None = None
        """The job under way."""
        self._reads: Job | None = None
        """What it reads, the latest first: what a transcript's words are worth is known when all are read."""
        self._live: set[str] = set()
        """Transcripts that were hinted at meanwhile: they do not wait for it."""
        self.left_alone: set[Path] = set()
        """What lies in the spool, is no event and cannot be removed."""
        self.pauses = PauseFile(config.paths.pauses)
        self.excludes = reading.excludes(config, self.pauses)
        self.excluded: set[Path] = set()
        """Transcripts of projects that the user wants left out, as far as they were met."""
        self.instructed = Instructed(self)
        self.edited = Edited(self)
        self.clients = Clients(self)
        self.alarms = Alarms(self)
        self._hints: dict[str, None] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._next_live = self._next_full = self._next_backup = self.next_size = 0.0
        self.next_retention: float | None = None
        self._last_full = float("-inf")
        self.is_watched: Callable[[], bool] = lambda: False
        """Whether file events tell of every transcript; the sweep then is for those that were lost."""
        self.ask_server: Callable[[Callable[[], None]], None] = lambda answered: answered()
        """Has the socket's thread call back when it comes by."""
        self._commits_seen = 0
        self.backlog = Backlog()
        self._read_until = 0.0
        self.half_read: set[str] = set()
        """Transcripts of which a piece was read and the next is still to be."""
        self.reindex = Reindex(self)
        self.stages = Stages(self)
        self._hourly = summary.Hourly()
        self.noted = Noted(store)
        self.owed = Owed()
        self.awaited = Awaited(store)
        self.rehearsing = Rehearsing(store, self.poke)
        self.dreaming = Dreaming(self)

    def hint(self, path: str) -> None:
        """Says that a transcript or an instruction file may have changed; cheap, from any thread."""
        if path.endswith(".jsonl"):
            self.dreaming.hear()
            with self._lock:
                self._hints[path] = None
            self._wake.set()
        else:
            self.instructed.touch(path)

    def hint_of_hook(self, path: str) -> None:
        """Says the same in a hook's name, which anybody can use: only of what lies where the assistant writes."""
        self.dreaming.hear()
        place = os.path.normpath(path)
        if any(Path(place).is_relative_to(folder / "projects") for folder in self.config.assistant_dirs):
            self.hint(place)
        elif path:
            self.clients.named(path)

    def sweep_soon(self) -> None:
        """Asks for a full sweep at the next step."""
        self._next_live = self._next_full = 0.0
        self._wake.set()

    def expect(self, project: int) -> None:
        """Says that a session begins in a project: its next prompt is rehearsed."""
        self.rehearsing.expect(project)
        self._wake.set()

    def poke(self) -> None:
        """Asks for a step now."""
        self._wake.set()

    def submit(self, job: Job) -> Job:
        """Queues a job; its state is looked up by its id."""
        self.list_job(job)
        with self._lock:
            self._queue.append(job)
        self._wake.set()
        return job

    def list_job(self, job: Job) -> None:
        """Has a job's state found by its id; the oldest that have ended are forgotten."""
        with self._lock:
            for done in [known.id for known in self.jobs.values() if known.state in ("done", "failed")][:-20]:
                del self.jobs[done]
            self.jobs[job.id] = job

    def stop(self) -> None:
        """Ends after the batch at hand."""
        self._stopping.set()
        self._wake.set()

    @property
    def stopping(self) -> bool:
        """Whether the batch at hand is the last."""
        return self._stopping.is_set()

    def run(self) -> None:
        while not self._stopping.is_set():
            began = time.monotonic()
            busy = self.guard("step", lambda: self.step(time.monotonic()))
            pause = TICK_S
            if busy:  # what somebody waits for goes on at once
                urgent = self._job is not None or self.dreaming.is_urgent or self.somebody_waits()
                pause = 0.0 if urgent else (time.monotonic() - began) * backfill.REST
            if pause:
                self._wake.wait(pause)
                self._wake.clear()
        self.guard("job", self._close_job)
        self.guard("dream", self.dreaming.close)
        self.guard("notes", self.noted.write)

    def step(self, now: float) -> bool:
        """Does what is due at the monotonic time `now`; whether more may be due at once."""
        self.guard("mark", self._take_away_mark)
        self.guard("pauses", lambda: summary.look_at(self.pauses))
        self.guard("alarms", lambda: self.alarms.step(now))
        if self.store.refuses:  # nothing can be taken in: hooks spool, and status says why
            self.trouble.clear()
            return self._advance_job() or self.guard("dream", lambda: self.dreaming.step(now, idle=False))
        worked = self.guard("spool", self.replay_spool)
        worked |= self.guard("rehearsal", lambda: self.rehearsing.step(now))
        self.guard("directories", self.clients.look)
        at_job = self._advance_job()
        for path in self.take_hints():
            self._live.add(str(path))
            worked |= self._look_some(path)
        if not at_job and now >= self._next_live:
            self._next_live = now + LIVE_SWEEP_S
            patience = WATCHED_SWEEP_S if self.is_watched() else FULL_SWEEP_S
            self._next_full = min(self._next_full, self._last_full + patience)
            full = now >= self._next_full
            if full:
                self._last_full, self._next_full = now, now + patience
                self.guard("instructions", lambda: self.instructed.sweep() > 0)
            worked |= self.guard("sweep", lambda: self.sweep(full=full) > 0)
            self.guard("provisional turns", self.awaited.close)
            self.guard("unfinished spool files", self._clear_unfinished)
            self.guard("hooks", lambda: self.clients.settle(now))
        worked |= not at_job and self.read_backlog()
        worked |= not at_job and retention.step(self, now)
        growth.step(self, now)
        if self.instructed.waiting():
            worked |= self.guard("instructions", lambda: self.instructed.step() > 0)
        worked |= not at_job and self.guard("pages", lambda: self.edited.step(now))
        done, embedded = self.stages.go_through(now, at_job=at_job)
        worked |= done
        if (worked and not at_job) or self.store.commits - self._commits_seen > 200:
            self._commits_seen = self.store.commits
            self.guard("checkpoint", lambda: bool(self.store.checkpoint()))
        self.guard("summary", lambda: self._hourly.step(self, now))
        self.guard("notes", lambda: self.noted.step(now))
        busy = at_job or worked or embedded or self.somebody_waits()
        if not at_job and (self.dreaming.is_overdue or not self.somebody_waits()):
            busy |= self.guard("dream", lambda: self.dreaming.step(now, idle=not busy))
        if not busy and now >= self._next_backup:
            self._next_backup = now + backups.LOOK_S
            self.guard("backup", lambda: backups.daily(self))
        return busy

    def _take_away_mark(self) -> bool:
        """Takes back that the daemon hangs, which a hook has noted that waited in vain: its parts answer, so it was busy."""
        mark, answered = self.config.paths.hung_mark, threading.Event()
        if mark.exists():
            self.ask_server(answered.set)
            if answered.wait(TICK_S):
                self.store.write(lambda _: mark.unlink(missing_ok=True))
        return False

    def read_backlog(self) -> bool:
        """Reads of what a sweep found for a moment, or until somebody waits; whether it read any."""
        begun = time.monotonic()
        # Of the time it takes, distilling between two slices and the rests are a part.
        at = self._read_until if begun - self._read_until < TICK_S else begun
        some = False
        while (one := self.backlog.first()) and not self.stopping and not self.somebody_waits():
            some = True
            report = self.look_at(Path(one.path), most_pieces=1)
            if self.store.refusing and f"transcript {one.path}" in self.trouble:
                return False  # the others would fare no better: it stays the first, until the disk takes writes
            was, at = at, time.monotonic()
            self.backlog.note(read=report.bytes_read, took_s=at - was)
            if not report.more:
                self.backlog.drop(one.path)
            if at - begun > SLICE_S:
                break
        self._read_until = at
        return some

    def _advance_job(self) -> bool:
        """Does batches of the job under way for a moment, or of the next one; whether there was one."""
        with self._lock:
            if self._job is None and self._queue:
                self._reads = self._queue.popleft()
                self._job = jobs.batches(self, self._reads)
        if self._job is None:
            return False
        begun = time.monotonic()
        try:
            next(self._job)
            # Of thousands of short sessions many fit between two looks at what else there is.
            while not (self._hints or self.stopping) and time.monotonic() - begun < SLICE_S:
                next(self._job)
        except StopIteration:
            self._job = self._reads = None
        return True

    def _close_job(self) -> bool:
        """Ends the job under way as it is: the lock that it holds is left."""
        if self._job is not None:
            self._job.close()
        return False

    @property
    def is_read_for_somebody(self) -> bool:
        """Whether a job is still at reading transcripts."""
        return self._reads is not None and self._reads.progress.get("step") == "reading"

    def waits_for_others(self, session: Behind) -> bool:
        """Whether a tool call that wrote this transcript may stand in one that is still to be read."""
        if not self.is_read_for_somebody:
            self._live.clear()
            return False
        return session.path not in self._live

    def somebody_waits(self) -> bool:
        """Whether what happens now stands behind a backlog."""
        return bool(self._hints) or (self._job is None and bool(self._queue))

    def take_hints(self) -> list[Path]:
        """The transcripts that were hinted at since it was last asked."""
        with self._lock:
            hints, self._hints = list(self._hints), {}
        return [Path(path) for path in hints]

    def replay_spool(self) -> bool:
        """Takes in what hooks left while no daemon answered; whether there was any."""
        return replay.replay(self)

    def roots(self) -> list[Path]:
        """The directories with transcripts, those that exist."""
        return reading.roots(self.config)

    def sweep(self, *, full: bool) -> int:
        """Finds every transcript that has grown; only those written to in the last hour unless `full`; how many."""
        if full:
            known = self.store.read(cursors.known_positions)
            roots = [str(root) for root in self.roots()]
            elsewhere = (path for path in known if not path.startswith(tuple(f"{root}/" for root in roots)))
            on_disk = chain.from_iterable(
                [*(capture.listed(Path(root)) for root in roots), filter(None, map(capture.look, elsewhere))]
            )
            grown = [one for one in on_disk if capture.has_grown(one, known) and Path(one.path) not in self.excluded]
            self.backlog.fill(backfill.in_order(grown, roots))
            self._forget_trouble_of_lost_files()
            return len(grown)
        since = time.time_ns() - LIVE_S * 1_000_000_000
        live = self.store.read(lambda rows: cursors.positions_written_since(rows, since, most=MOST_LIVE))
        grown = [one for path in live if (one := capture.look(path)) and capture.has_grown(one, live)]
        for one in grown:
            self.hint(one.path)
        return len(grown)

    def _look_some(self, path: Path) -> bool:
        """Reads a piece of what a transcript has grown by, the rest in a later step; whether it brought anything."""
        report = self.look_at(path, most_pieces=1)
        if report.more:
            self.hint(str(path))
        return report.bytes_read > 0

    def look_at(self, path: Path, *, strict: bool = False, most_pieces: int | None = None) -> transcripts.Tail:
        """Reads what a transcript has grown by, or a part of it; what it could not read is told in `trouble`."""
        report = transcripts.Tail()

        def look() -> bool:
            nonlocal report
            if not path.is_file():
                return False  # gone, which is no trouble, or a pipe that would never end
            with suppress(FileNotFoundError):
                report = reading.read(
                    self.store, self.config, path,
                    leave_out=self.excludes, most_pieces=most_pieces, stop=self._stopping.is_set,
                )  # fmt: skip
                if report.excluded:
                    self.excluded.add(path)
                elif report.bytes_read:
                    self.excluded.discard(path)
            return True

        self.guard("transcript", look, about=str(path), strict=strict)
        (self.half_read.add if report.more else self.half_read.discard)(str(path))
        return report

    def _forget_trouble_of_lost_files(self) -> None:
        for what in [what for what in self.trouble if what.startswith("transcript ")]:
            if not Path(what.removeprefix("transcript ")).exists():
                del self.trouble[what]

    def _clear_unfinished(self) -> bool:
        return files.clear_unfinished(self.config.paths.home, before_s=time.time() - UNFINISHED_S) > 0

    def guard(self, what: str, work: Callable[[], bool], *, about: str = "", strict: bool = False) -> bool:
        """One of the four catch-alls: a failing part is logged, shown in status, and the others go on.

        `what` is of our words and goes to the log; `about`, which file or session, is shown in status only.
        With `strict` a StoreError is raised all the same: somebody waits, and the next part would fare no better.
        """
        place = f"{what} {about}" if about else what
        try:
            result = bool(work())
        except Exception as error:
            if strict and isinstance(error, StoreError):
                raise
            known = isinstance(error, CsmdError | OSError)
            trouble = (
                error.what if isinstance(error, CsmdError) else getattr(error, "strerror", "") or type(error).__name__
            )
            # The same trouble at every tick is one line in the log, not a thousand.
            if self.trouble.get(place) != trouble:
                said = logs.kind_of(error)
                log.warning("%s: %s; `csmd status` says where", what, said, exc_info=None if known else error)
            self.trouble[place] = trouble
            return False
        if self.trouble.pop(place, None):
            log.info("%s: well again", what)
        return result
