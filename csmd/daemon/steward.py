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
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from csmd import text
from csmd.believe import stage as believe
from csmd.capture import stage as capture
from csmd.config import Config
from csmd.distill import stage as distill
from csmd.errors import BadInput, CsmdError, EmbeddingUnavailable, StoreError
from csmd.store import counts, cursors, files, journal, vectors
from csmd.store.core import Store
from csmd.store.embed import Embedder

log = logging.getLogger(__name__)

TICK_S = 5.0
LIVE_SWEEP_S, FULL_SWEEP_S = 30.0, 900.0
#: A session with no turn for this long is not in the middle of one.
QUIET_S = 30.0
#: How long a hook's turn waits for the transcript before it is judged.
PROVISIONAL_S = 120.0
EMBED_TEXTS = 8
PASSAGE_CHARACTERS = 1000
PASSAGES_PER_ROW = 12


@dataclass(slots=True)
class Job:
    """Work somebody waits for; `progress` is for people, `result` for the caller."""

    id: str
    kind: Literal["import", "sync"]
    path: str = ""
    with_vectors: bool = True
    state: Literal["waiting", "running", "done", "failed"] = "waiting"
    progress: dict[str, Any] = field(default_factory=dict)
    result: dict[str, Any] = field(default_factory=dict)
    error: str = ""


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

    def run(self) -> None:
        while not self._stopping.is_set():
            busy = self._guard("step", lambda: self.step(time.monotonic()))
            if not busy:
                self._wake.wait(TICK_S)
                self._wake.clear()

    def step(self, now: float) -> bool:
        """Does what is due at the monotonic time `now`; whether more may be due at once."""
        worked = self._guard("spool", self.replay_spool)
        with self._lock:
            hints, self._hints = list(self._hints), {}
        for path in hints:
            worked |= self._guard_tail(Path(path))
        if now >= self._next_live:
            self._next_live = now + LIVE_SWEEP_S
            full = now >= self._next_full
            if full:
                self._next_full = now + FULL_SWEEP_S
            worked |= self._guard("sweep", lambda: self.sweep(full=full) > 0)
            self._guard("provisional turns", self._close_provisional)
        with self._lock:
            job = self._queue.popleft() if self._queue else None
        if job is not None:
            self._perform(job)
            return True
        worked |= self._guard("distill", lambda: self.distill(force=False) > 0)
        worked |= self._guard("believe", lambda: self.believe() > 0)
        embedded = self._guard("embed", lambda: self.embed_some() > 0)
        if worked or self.store.commits - self._commits_seen > 200:
            self._commits_seen = self.store.commits
            self._guard("checkpoint", lambda: bool(self.store.checkpoint()))
        return worked or embedded

    def replay_spool(self) -> bool:
        """Takes in what hooks left while no daemon answered; a file goes only after its commit."""
        found = False
        for path in files.spooled_paths(self.config.paths.home):
            if self._stopping.is_set():
                break
            try:
                left = files.read_spooled(path)
                at = iso(datetime.fromtimestamp(left.at_ns / 1e9, UTC))
                event, redacted = capture.decode_event(left.body, name=left.name, event_id=left.id, at=at)
            except (BadInput, ValueError, OverflowError, OSError) as error:
                self._quarantine(path, error)
                continue
            if event is not None:
                self.store.write(
                    lambda rows, event=event, redacted=redacted: capture.record(  # type: ignore[misc]
                        rows, event, redacted=redacted, key=self.store.hash_key, now=now_iso()
                    )
                )
                if event.transcript_path:
                    self.hint(event.transcript_path)
            path.unlink(missing_ok=True)
            found = True
        return found

    def _quarantine(self, path: Path, error: Exception) -> None:
        data = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        reason = error.what if isinstance(error, CsmdError) else type(error).__name__
        files.quarantine(self.config.paths.quarantine, source=str(path), reason=reason, data=data, now=now_iso())
        self.store.write(lambda rows: counts.count(rows, [("bad events", 1)]))
        path.unlink(missing_ok=True)

    def roots(self) -> list[Path]:
        """The directories with transcripts, those that exist."""
        return [path for path in (folder / "projects" for folder in self.config.assistant_dirs) if path.is_dir()]

    def sweep(self, *, full: bool) -> int:
        """Reads every transcript that has grown; only those read in the last hour unless `full`."""
        known = self.store.read(cursors.known_positions)
        if full:
            paths = [path for root in self.roots() for path in capture.transcripts(root)]
            paths += [Path(path) for path in known if not any(Path(path).is_relative_to(root) for root in self.roots())]
        else:
            since = iso(datetime.now(UTC) - timedelta(hours=1))
            paths = [Path(path) for path in self.store.read(lambda rows: cursors.files_read_since(rows, since))]
        count = 0
        for path in paths:
            if self._stopping.is_set():
                break
            if capture.has_grown(path, known):
                count += self._guard_tail(path)
        return count

    def _guard_tail(self, path: Path) -> bool:
        return self._guard(f"transcript {path}", lambda: self._tail(path).bytes_read > 0)

    def _tail(self, path: Path) -> capture.Tail:
        if not path.is_file():
            return capture.Tail()
        return capture.tail(
            self.store,
            path,
            now=now_iso,
            tool_limit=self.config.settings.capture_tool_output_bytes,
            quarantine=self.config.paths.quarantine,
            stop=self._stopping.is_set,
        )

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
            if self._stopping.is_set():
                break
            settled = force or distill.is_settled(session, quiet_before=quiet)
            found += distill.distill(self.store, session, settled=settled)
        return found

    def believe(self) -> int:
        """Makes memories of every waiting statement; the number of new ones."""
        new = 0
        while not self._stopping.is_set():
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

    def _perform(self, job: Job) -> None:
        job.state = "running"
        started = time.monotonic()
        before = self.store.read(lambda rows: (counts.counts(rows), counts.counters(rows)))
        try:
            self._read_all(job)
            job.progress.update(step="distilling")
            self.distill(force=True)
            self.believe()
            if job.with_vectors:
                self._embed_all(job)
            self.store.checkpoint(truncate=True)
            after = self.store.read(lambda rows: (counts.counts(rows), counts.counters(rows)))
            job.result.update(
                memories_new=after[0]["memories"] - before[0]["memories"],
                vectors=after[0]["vectors"] - before[0]["vectors"],
                took_s=round(time.monotonic() - started, 3),
            )
            job.state = "done"
        except CsmdError as error:
            job.error, job.state = f"{error.what}{'; ' + error.hint if error.hint else ''}", "failed"
        except Exception as error:
            log.exception("job %s failed", job.kind)
            job.error, job.state = f"{type(error).__name__}, see the log", "failed"

    def _read_all(self, job: Job) -> None:
        self.replay_spool()
        with self._lock:
            hints, self._hints = list(self._hints), {}
        if job.kind == "import":
            paths = capture.transcripts(Path(job.path))
        else:
            known = self.store.read(cursors.known_positions)
            listed = [path for root in self.roots() for path in capture.transcripts(root)]
            paths = [*dict.fromkeys([*listed, *(Path(path) for path in [*hints, *known])])]
        total = capture.Tail()
        for number, path in enumerate(paths):
            if self._stopping.is_set():
                raise StoreError("the daemon is stopping", hint="run it again when the daemon is up")
            job.progress.update(step="reading", done=number, total=len(paths), bytes=total.bytes_read)
            try:
                one = self._tail(path)
            except OSError as error:
                self.trouble[f"transcript {path}"] = str(error.strerror)
                continue
            for name in ("turns_new", "turns_known", "bad_lines", "redactions", "bytes_read"):
                setattr(total, name, getattr(total, name) + getattr(one, name))
            if number % 20 == 19:
                self.store.checkpoint()
        job.progress.update(done=len(paths), total=len(paths), bytes=total.bytes_read)
        job.result.update(
            files=len(paths),
            turns_new=total.turns_new,
            turns_known=total.turns_known,
            bad_lines=total.bad_lines,
            redactions=total.redactions,
        )

    def _embed_all(self, job: Job) -> None:
        name = self.model_name()
        if name is None:
            return
        model = self.store.read(lambda rows: vectors.model_seq(rows, name))
        total = self.store.read(lambda rows: vectors.left(rows, model))
        done = 0
        while not self._stopping.is_set():
            try:
                made = self.embed_some()
            except EmbeddingUnavailable as error:
                self.trouble["embed"] = error.what
                return
            if not made:
                return
            done += made
            job.progress.update(step="embedding", done=done, total=max(done, total))

    def _guard(self, what: str, work: Callable[[], bool]) -> bool:
        """One of the four catch-alls: a failing part is logged, shown in status, and the others go on."""
        try:
            result = bool(work())
        except CsmdError as error:
            self.trouble[what] = error.what
            log.warning("%s: %s", what, error.what)
        except Exception as error:
            self.trouble[what] = type(error).__name__
            log.exception("%s failed", what)
        else:
            self.trouble.pop(what, None)
            return result
        return False


def iso(moment: datetime) -> str:
    """A moment as csmd writes times."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def now_iso() -> str:
    """The time now as csmd writes it."""
    return iso(datetime.now(UTC))
