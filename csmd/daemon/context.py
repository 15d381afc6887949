"""What the daemon's parts share: store, settings, clock, who waits, trouble."""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from csmd.config import Config
from csmd.daemon import logs
from csmd.daemon.backlog import Backlog
from csmd.embedding import supervisor
from csmd.embedding.supervisor import Embedder
from csmd.errors import CsmdError, StoreError
from csmd.exclusions import Excludes, PauseFile
from csmd.model import Brief, Event
from csmd.recall import hybrid_search
from csmd.store import activity, files
from csmd.store.activity import Composition, Lookup
from csmd.store.core import Store
from csmd.store.cursors import Behind
from csmd.text import tokens
from csmd.text.display import amount

log = logging.getLogger(__name__)


def iso(moment: datetime) -> str:
    """A moment as csmd writes times."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def now_iso() -> str:
    """The time now as csmd writes it."""
    return iso(datetime.now(UTC))


def iso_before(seconds: float) -> str:
    """The time so many seconds ago as csmd writes it."""
    return iso(datetime.now(UTC) - timedelta(seconds=seconds))


def now_here() -> datetime:
    """The time now in the zone of this machine: whose days people mean."""
    return datetime.now().astimezone()


def here(at: str) -> datetime:
    """A time of csmd's in the zone of this machine, as its clocks showed it then."""
    return datetime.fromisoformat(at).astimezone()


#: What a job's line tells of its result.
RESULTS = (
    ("files", "file"), ("turns_new", "new turn"), ("memories_new", "new memory"), ("vectors", "vector"),
    ("secrets", "secret"), ("fixed", "place"), ("bytes", "byte"), ("dim", "dimension"), ("left", "trace"),
)  # fmt: skip


@dataclass(slots=True)
class Task:
    """Work somebody waits for; `progress` is for people, `result` for the caller."""

    kind: Literal["import", "sync", "model", "purge", "scan", "backup", "export", "dream", "undo"]
    path: str = ""
    with_vectors: bool = True
    recent: int = 0
    """So many sessions of each project, the newest, and the rest in the background; 0: all."""
    order: dict[str, Any] = field(default_factory=dict)
    """What a purge, a scan or an export is about, the name of a model; never shown and never logged."""
    state: Literal["waiting", "running", "done", "failed"] = "waiting"
    progress: dict[str, Any] = field(default_factory=dict)
    result: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    hint: str = ""
    id: str = field(default_factory=lambda: secrets.token_hex(8))


def carry_out(job: Task, work: Iterable[None], *, log_file: Path) -> Generator[None]:
    """Does a job, a batch for each step of the generator; its state says how it ended."""
    job.state = "running"
    try:
        yield from work
        job.state = "done"
    except CsmdError as error:
        job.error, job.hint, job.state = error.what, error.hint, "failed"
    except Exception as error:
        log.exception("job %s failed", job.kind)
        job.error, job.hint, job.state = f"a bug: {type(error).__name__}", f"see {log_file}", "failed"
    log_outcome(job)


def log_outcome(job: Task) -> None:
    """Writes how a job ended; nothing for a sync that found nothing new."""
    if job.state == "failed":
        log.warning("%s failed; whoever asked was told why", job.kind)
        return
    result: dict[str, Any] = job.result
    found = {name: len(value) if isinstance(value := result.get(name), list) else value for name, _ in RESULTS}
    parts = [amount(value, word) for name, word in RESULTS if isinstance(value := found[name], int) and value]
    if job.kind == "sync" and not (found["turns_new"] or found["memories_new"]):
        return
    took = f" in {result['took_s']:.1f} s" if "took_s" in result else ""
    log.info("%s: %s%s", job.kind, ", ".join(parts) or "done", took)


#: So many sessions that started last are known.
MOST = 200


@dataclass(frozen=True, slots=True)
class _Start:
    """A session's last start, and the event whose answer told what it was owed; "" while none did."""

    event: Event
    told_by: str = ""


class UnansweredStarts:
    """Owns which starts were not told anything yet: a session's next prompt brings it, once; from any thread.

    A busy machine or a hook that left a moment too early cost a session nothing but the place where its brief stands.
    Kept in memory: after a restart the spool tells of the starts that nobody answered.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._starts: OrderedDict[str, _Start] = OrderedDict()

    def owe(self, start: Event) -> None:
        """Notes a start that nobody was told of yet; not one before another of its session, nor one that was told since."""
        with self._lock:
            known = self._starts.get(start.session_id)
            if known is not None and (known.event.at > start.at or known.event.id == start.id):
                return
            self._starts[start.session_id] = _Start(start)
            self._starts.move_to_end(start.session_id)
            while len(self._starts) > MOST:
                self._starts.popitem(last=False)

    def settle(self, session_id: str, *, by: str) -> None:
        """Notes that the answer to an event told a session's start all that there was to tell."""
        with self._lock:
            if session_id in self._starts:
                self._starts[session_id] = _Start(self._starts[session_id].event, told_by=by)

    def unread(self, event: Event) -> None:
        """Takes back what the answer to an event settled: its hook had left."""
        with self._lock:
            known = self._starts.get(event.session_id)
            if known is not None and known.told_by == event.id:
                self._starts[event.session_id] = _Start(known.event)

    def of(self, session_id: str) -> Event | None:
        """The start that a session's next prompt is to be told; None for nothing."""
        with self._lock:
            known = self._starts.get(session_id)
            return None if known is None or known.told_by else known.event


#: What was looked up is kept so long; with more waiting the oldest goes: a disk may be full for days.
KEPT_S, MOST_WAITING = 90 * 86_400, 2_000
#: The tools that look something up for somebody: (kind, the parameter with the words, what is counted in the answer).
ASKED: Mapping[str, tuple[str, str, str]] = {
    "csm_memory_search": ("search", "query", "hits"),
    "csm_memory_recall": ("recall", "prompt", "items"),
}


class LookupLog:
    """Owns what is not written down yet; from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._composed: deque[Composition] = deque(maxlen=MOST_WAITING)
        self._recalled: deque[Lookup] = deque(maxlen=MOST_WAITING)

    def composed(self, event: Event, brief: Brief, took_s: float) -> None:
        """Notes what was composed for an event, and of a prompt that it was looked for."""
        made = Composition(
            at=event.at, session_id=event.session_id, event=event.name, chosen=len(brief.items), cut=brief.cut,
            tokens=brief.tokens, degraded=len(brief.degraded), ms=round(took_s * 1000),
        )  # fmt: skip
        with self._lock:
            self._composed.append(made)
        if event.name == "prompt":
            self._asked("prompt", event.text, [item.score for item in brief.items], took_s)

    def answered(self, tool: str, params: Mapping[str, Any], result: Mapping[str, Any], took_s: float) -> None:
        """Notes what a tool found, where it is one that looks something up."""
        if tool in ASKED:
            kind, words, found = ASKED[tool]
            self._asked(kind, str(params[words]), [float(one["score"]) for one in result[found]], took_s)

    def _asked(self, kind: str, words: str, scores: Sequence[float], took_s: float) -> None:
        asked = Lookup(
            at=now_iso(), kind=kind, query_hash=tokens.keyed_hash(words, self._store.hash_key), results=len(scores),
            top=max(scores, default=0.0), ms=round(took_s * 1000),
        )  # fmt: skip
        with self._lock:
            self._recalled.append(asked)

    def waiting(self) -> tuple[list[Composition], list[Lookup]]:
        """What is not written down yet, the latest first."""
        with self._lock:
            return list(reversed(self._composed)), list(reversed(self._recalled))

    def write(self) -> bool:
        """Writes down what waits; whether there was any."""
        with self._lock:
            composed, recalled = list(self._composed), list(self._recalled)
        if not composed and not recalled:
            return False
        before, key = iso_before(KEPT_S), self._store.hash_key
        self._store.write(lambda rows: activity.add_lookups(rows, composed, recalled, before=before, key=key))
        with self._lock:  # what came meanwhile stands behind what was written
            _drop(self._composed, composed)
            _drop(self._recalled, recalled)
        return True


def _drop(waiting: deque[Any], written: Sequence[object]) -> None:
    """Lets go of what was written; the oldest of it may have gone meanwhile for want of room."""
    done = set(map(id, written))
    while waiting and id(waiting[0]) in done:
        waiting.popleft()


#: Else who read the pauses before they changed could put what was known then in place of the new.
_LOOKING = threading.Lock()
#: Transcripts outside of every known directory that hooks may name before somebody looks.
MOST_ELSEWHERE = 32


def transcript_roots(config: Config) -> list[Path]:
    """The directories with transcripts, those that exist."""
    folders = [*(folder / "projects" for folder in config.assistant_dirs), config.paths.sessions]
    return [path for path in folders if path.is_dir()]


def excludes(config: Config, pauses: PauseFile) -> Excludes:
    """What the user wants left out."""
    settings = config.settings
    return Excludes(
        projects=settings.privacy_exclude, files=settings.files_left_out, is_off=files.has_off_mark, pauses=pauses
    )  # fmt: skip


def look_at_pauses(pauses: PauseFile) -> bool:
    """Reads the pauses again; a change is told."""
    with _LOOKING:
        changed = pauses.look()
    if not changed:
        return False
    on = pauses().current(now_iso())
    end = (
        f"until {datetime.fromisoformat(on[1]).astimezone():%Y-%m-%d %H:%M}" if on and on[1] else "until it is resumed"
    )
    log.info("paused %s: nothing is captured", end) if on else log.info("not paused")
    return True


class Context:
    """Owns what waits for the background thread; hints and jobs come from any thread, the rest is that thread's own."""

    def __init__(self, store: Store, config: Config, embedder: Embedder) -> None:
        self.store = store
        self.config = config
        self.embedder = embedder
        self.tasks: dict[str, Task] = {}
        self.trouble: dict[str, str] = {}
        self.pauses = PauseFile(config.paths.pauses)
        self.excludes = excludes(config, self.pauses)
        self.excluded: set[Path] = set()
        """Transcripts of projects that the user wants left out, as far as they were met."""
        self.left_alone: set[Path] = set()
        """What lies in the spool, is no event and cannot be removed."""
        self.half_read: set[str] = set()
        """Transcripts of which a piece was read and the next is still to be."""
        self.backlog = Backlog()
        self.noted = LookupLog(store)
        self.owed = UnansweredStarts()
        self.reads: Task | None = None
        """The job that reads, the latest first: what a transcript's words are worth is known when all are read."""
        self.live: set[str] = set()
        """Transcripts that were hinted at meanwhile: they do not wait for it."""
        self.heard_at = time.monotonic()
        """When something was last heard of a session."""
        self.read_until = 0.0
        self.wake = threading.Event()
        self._queue: deque[Task] = deque()
        self._hints: dict[str, None] = {}
        self._elsewhere: dict[str, None] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()

    # --- what comes in, from any thread

    def hint(self, path: str) -> None:
        """Says that a transcript may have changed; cheap."""
        self.heard_at = time.monotonic()
        with self._lock:
            self._hints[path] = None
        self.wake.set()

    def hint_of_hook(self, path: str) -> None:
        """Says the same in a hook's name, which anybody can use: only of what lies where the assistant writes."""
        self.heard_at = time.monotonic()
        place = os.path.normpath(path)
        if any(Path(place).is_relative_to(folder / "projects") for folder in self.config.assistant_dirs):
            self.hint(place)
        elif path:
            with self._lock:
                if len(self._elsewhere) < MOST_ELSEWHERE:
                    self._elsewhere[path] = None

    def poke(self) -> None:
        """Asks for a step now."""
        self.wake.set()

    def submit(self, job: Task) -> Task:
        """Queues a task; its state is looked up by its id."""
        self.list_task(job)
        with self._lock:
            self._queue.append(job)
        self.wake.set()
        return job

    def list_task(self, job: Task) -> None:
        """Has a task's state found by its id; the oldest that have ended are forgotten."""
        with self._lock:
            for done in [known.id for known in self.tasks.values() if known.state in ("done", "failed")][:-20]:
                del self.tasks[done]
            self.tasks[job.id] = job

    def stop(self) -> None:
        """Ends after the batch at hand."""
        self._stopping.set()
        self.wake.set()

    # --- what waits

    @property
    def stopping(self) -> bool:
        """Whether the batch at hand is the last."""
        return self._stopping.is_set()

    @property
    def hinted(self) -> bool:
        """Whether a transcript was hinted at that nobody has read since."""
        return bool(self._hints)

    def take_task(self) -> Task | None:
        """The job that waited longest, which waits no longer; None for none."""
        with self._lock:
            self.reads = self._queue.popleft() if self._queue else None
        return self.reads

    def take_hints(self) -> list[Path]:
        """The transcripts that were hinted at since it was last asked."""
        with self._lock:
            hints, self._hints = list(self._hints), {}
        return [Path(path) for path in hints]

    def take_elsewhere(self) -> list[str]:
        """The transcripts outside of every known directory that hooks have named since it was last asked."""
        with self._lock:
            named, self._elsewhere = list(self._elsewhere), {}
        return named

    def somebody_waits(self) -> bool:
        """Whether what happens now stands behind a backlog."""
        return self.hinted or (self.reads is None and bool(self._queue))

    @property
    def is_read_for_somebody(self) -> bool:
        """Whether a job is still at reading transcripts."""
        return self.reads is not None and self.reads.progress.get("step") == "reading"

    def waits_for_others(self, session: Behind) -> bool:
        """Whether a tool call that wrote this transcript may stand in one that is still to be read."""
        if not self.is_read_for_somebody:
            self.live.clear()
            return False
        return session.path not in self.live

    # --- where and with what

    def roots(self) -> list[Path]:
        """The directories with transcripts, those that exist."""
        return transcript_roots(self.config)

    def model_name(self) -> str | None:
        """The identity of the embedding model in use, or None."""
        directory = supervisor.installed(self.config.paths.models, self.config.settings.embed_model)
        return None if directory is None else supervisor.model_identity(directory)

    def query_vector(self, *, deadline_s: float, start: bool) -> hybrid_search.Embed | None:
        """How a query becomes a vector, or None when no model is installed."""
        name = self.model_name()
        if name is None:
            return None

        def vector(query: str) -> tuple[bytes, str]:
            return self.embedder.embed([query], deadline_s=deadline_s, start=start)[0], name

        return vector

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
