"""Background work: one job at a time, in small batches, on what the store says is behind.

`step` does everything that is due and returns whether anything was done, so that tests drive it
without a clock; `run` calls it when it is poked, hinted at, or a tick has passed. Each part is
a catch-all of its own: one broken transcript never stops the others.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from csmd import text
from csmd.believe import stage as believe
from csmd.capture import stage as capture
from csmd.config import Config
from csmd.daemon import jobs, replay
from csmd.daemon.jobs import Job
from csmd.daemon.now import iso, now_iso
from csmd.distill import stage as distill
from csmd.errors import CsmdError, StoreError
from csmd.store import cursors, files, journal, vectors
from csmd.store.core import Store
from csmd.store.cursors import Behind
from csmd.store.embed import Embedder

log = logging.getLogger(__name__)

TICK_S = 5.0
#: A hook takes half a second: what is unfinished after this was left by one that was killed.
UNFINISHED_S = 600.0
LIVE_SWEEP_S, FULL_SWEEP_S = 30.0, 900.0
#: A session with no turn for this long is not in the middle of one.
QUIET_S = 30.0
#: How long a hook's turn waits for the transcript before it is judged.
PROVISIONAL_S = 120.0
EMBED_TEXTS = 8
PASSAGE_CHARACTERS = 1000
PASSAGES_PER_ROW = 12


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
        self.left_alone: set[Path] = set()
        """What lies in the spool, is no event and cannot be removed."""
        self._hints: dict[str, None] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._next_live = self._next_full = 0.0
        self._commits_seen = 0

    def hint(self, path: str) -> None:
        """Says that a transcript may have grown; cheap, from any thread."""
        if path.endswith(".jsonl"):
            with self._lock:
                self._hints[path] = None
            self._wake.set()

    def poke(self) -> None:
        """Asks for a step now."""
        self._wake.set()

    def submit(self, job: Job) -> Job:
        """Queues a job; its state is looked up by its id."""
        with self._lock:
            for done in [known.id for known in self.jobs.values() if known.state in ("done", "failed")][:-20]:
                del self.jobs[done]
            self.jobs[job.id] = job
            self._queue.append(job)
        self._wake.set()
        return job

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
            busy = self.guard("step", lambda: self.step(time.monotonic()))
            if not busy:
                self._wake.wait(TICK_S)
                self._wake.clear()

    def step(self, now: float) -> bool:
        """Does what is due at the monotonic time `now`; whether more may be due at once."""
        worked = self.guard("spool", self.replay_spool)
        with self._lock:
            job = self._queue.popleft() if self._queue else None
        if job is not None:
            jobs.perform(self, job)
            return True
        for path in self.take_hints():
            worked |= self.look_at(path).bytes_read > 0
        if now >= self._next_live:
            self._next_live = now + LIVE_SWEEP_S
            full = now >= self._next_full
            if full:
                self._next_full = now + FULL_SWEEP_S
            worked |= self.guard("sweep", lambda: self.sweep(full=full) > 0)
            self.guard("provisional turns", self._close_provisional)
            self.guard("unfinished spool files", self._clear_unfinished)
        worked |= self.guard("distill", lambda: self.distill(force=False) > 0)
        worked |= self.guard("believe", lambda: self.believe() > 0)
        embedded = self.guard("embed", lambda: self.embed_some() > 0)
        if worked or self.store.commits - self._commits_seen > 200:
            self._commits_seen = self.store.commits
            self.guard("checkpoint", lambda: bool(self.store.checkpoint()))
        return worked or embedded

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
        return [path for path in (folder / "projects" for folder in self.config.assistant_dirs) if path.is_dir()]

    def sweep(self, *, full: bool) -> int:
        """Reads every transcript that has grown; only those read in the last hour unless `full`."""
        known = self.store.read(cursors.known_positions)
        if full:
            roots = self.roots()
            paths = [path for root in roots for path in capture.transcripts(root)]
            paths += [Path(path) for path in known if not any(Path(path).is_relative_to(root) for root in roots)]
            self._forget_trouble_of_lost_files()
        else:
            since = iso(datetime.now(UTC) - timedelta(hours=1))
            paths = [Path(path) for path in self.store.read(lambda rows: cursors.files_read_since(rows, since))]
        count = 0
        for path in paths:
            if self.stopping:
                break
            if self._queue:  # somebody waits: this is begun again after their job, and finds the less to do
                self._next_live = self._next_full = 0.0
                break
            if capture.has_grown(path, known):
                count += self.look_at(path).bytes_read > 0
        return count

    def look_at(self, path: Path, *, strict: bool = False) -> capture.Tail:
        """Reads what a transcript has grown by; what it could not read is told in `trouble`."""
        report = capture.Tail()

        def look() -> bool:
            nonlocal report
            if not path.is_file():
                return False  # gone, which is no trouble, or a pipe that would never end
            with suppress(FileNotFoundError):
                report = capture.tail(
                    self.store,
                    path,
                    now=now_iso,
                    tool_limit=self.config.settings.capture_tool_output_bytes,
                    quarantine=self.config.paths.quarantine,
                    stop=self._stopping.is_set,
                )
            return True

        self.guard(f"transcript {path}", look, strict=strict)
        return report

    def _forget_trouble_of_lost_files(self) -> None:
        for what in list(self.trouble):
            kind, _, path = what.partition(" ")
            if kind == "transcript" and not Path(path).exists():
                del self.trouble[what]

    def _clear_unfinished(self) -> bool:
        return files.clear_unfinished(self.config.paths.home, before_s=time.time() - UNFINISHED_S) > 0

    def _close_provisional(self) -> bool:
        before = iso(datetime.now(UTC) - timedelta(seconds=PROVISIONAL_S))
        dropped, kept = self.store.write(lambda rows: journal.close_provisional(rows, before=before))
        return bool(dropped + kept)

    def distill(self, *, force: bool) -> int:
        """Distils what is decided; with `force` also the message somebody may still be at work on."""
        if not self.config.settings.stages_distill:
            return 0
        quiet = iso(datetime.now(UTC) - timedelta(seconds=QUIET_S))
        found = 0
        for session in distill.behind(self.store):
            if self.stopping:
                break
            settled = force or distill.is_settled(session, quiet_before=quiet)

            def one(session: Behind = session, settled: bool = settled) -> bool:
                nonlocal found
                found += distill.distill(self.store, session, settled=settled)
                return True

            self.guard(f"distilling session {session.session_id}", one, strict=force)
        return found

    def believe(self) -> int:
        """Makes memories of every waiting statement; the number of new ones."""
        new = 0
        while not self.stopping:
            looked, made = believe.believe(self.store)
            new += made
            if not looked:
                break
        return new

    def embed_some(self) -> int:
        """Embeds one small batch: memories before turns; 0 when nothing waits or no model is there."""
        name = self.model_name()
        if name is None:
            return 0
        known = self.store.read(lambda rows: vectors.model_seq(rows, name))
        if known is not None and not self.store.read(lambda rows: vectors.left(rows, known)):
            return 0
        if known is None:
            if not self.store.read(lambda rows: vectors.left(rows, None)):
                return 0
            dim = len(self.embedder.embed(["dimension"], deadline_s=None)[0])
            known = self.store.write(lambda rows: vectors.ensure_model(rows, name, dim, now=now_iso()))
        model = known
        for kind in vectors.KINDS:
            waiting = self._backlog(kind, model)
            if waiting:
                self._embed_rows(kind, model, waiting)
                return len(waiting)
        return 0

    def _backlog(self, kind: str, model: int) -> list[tuple[int, int, str]]:
        return self.store.read(lambda rows: vectors.backlog(rows, kind, model, limit=EMBED_TEXTS))

    def _embed_rows(self, kind: str, model: int, waiting: list[tuple[int, int, str]]) -> None:
        passages = [
            (seq, project, start, end, body[start:end])
            for seq, project, body in waiting
            for start, end in text.chunks(body, limit=PASSAGE_CHARACTERS)[:PASSAGES_PER_ROW]
        ]
        made: list[tuple[int, int, int, int, bytes]] = []
        for at in range(0, len(passages), EMBED_TEXTS):
            batch = passages[at : at + EMBED_TEXTS]
            found = self.embedder.embed([row[4] for row in batch], deadline_s=None)
            made += [(*row[:4], vector) for row, vector in zip(batch, found, strict=True)]
        reached = waiting[-1][0]
        self.store.write(lambda rows: vectors.add(rows, kind, model, made, reached=reached))

    def guard(self, what: str, work: Callable[[], bool], *, strict: bool = False) -> bool:
        """One of the four catch-alls: a failing part is logged, shown in status, and the others go on.

        With `strict` a StoreError is raised all the same: somebody waits, and the next part would fare no better.
        """
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
            if self.trouble.get(what) != trouble:
                log.warning("%s: %s", what, trouble, exc_info=None if known else error)
            self.trouble[what] = trouble
            return False
        self.trouble.pop(what, None)
        return result
