"""Owns the state that the daemon's parts share: store, settings, tasks, hints, backlog, problems."""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, TypeVar

from csmd.briefs import Brief
from csmd.capture.transcript_listing import ListedTranscript
from csmd.config import Config
from csmd.conversation import Event
from csmd.daemon import logs
from csmd.embedding import installed_models
from csmd.embedding.worker_client import Embedder
from csmd.errors import CsmdError, StoreError
from csmd.exclusions import Excludes
from csmd.hosts import adapters
from csmd.paths import is_directory, is_file
from csmd.pauses import PauseFile
from csmd.privacy.redaction import read_rule_state
from csmd.recall import hybrid_search
from csmd.store import files, telemetry_rows
from csmd.store.core import Store
from csmd.store.cursors import SessionBehind
from csmd.store.telemetry_rows import Composition, Lookup
from csmd.text import tokens
from csmd.text.display import amount

log = logging.getLogger(__name__)
T = TypeVar("T")


def to_iso(moment: datetime) -> str:
    """Returns a moment as csmd writes times."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def now_iso() -> str:
    """Returns the time now as csmd writes it."""
    return to_iso(datetime.now(UTC))


def iso_before(seconds: float) -> str:
    """Returns the time this many seconds ago, as csmd writes it."""
    return to_iso(datetime.now(UTC) - timedelta(seconds=seconds))


def to_local_time(at: str) -> datetime:
    """Returns a time of csmd's in the zone of this machine, as its clocks showed it then."""
    return datetime.fromisoformat(at).astimezone()


#: Key of a task's result -> its noun in the log.
RESULT_NOUNS = (
    ("files", "file"), ("turns_new", "new turn"), ("memories_new", "new memory"), ("vectors", "vector"),
    ("secrets", "secret"), ("fixed", "place"), ("bytes", "byte"), ("dim", "dimension"), ("left", "trace"),
)  # fmt: skip


TaskKind = Literal[
    "import", "sync", "model", "purge", "scan", "secrets", "backup", "export", "dream", "undo", "provider", "endpoint",
    "team",
]  # fmt: skip


@dataclass(slots=True)
class Task:
    """Work that a client waits for and sees as a job; `progress` is for people, `result` for the caller."""

    kind: TaskKind
    path: str = ""
    with_vectors: bool = True
    recent: int = 0
    """How many sessions of each project are read at once, the newest; the rest in the background. 0: all."""
    order: dict[str, Any] = field(default_factory=dict)
    """The parameters of the task; never shown and never logged."""
    state: Literal["waiting", "running", "done", "failed"] = "waiting"
    progress: dict[str, Any] = field(default_factory=dict)
    result: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    hint: str = ""
    is_own: bool = False
    """Whether csmd ordered it itself: no client waits for it, and a client's tasks are done first."""
    id: str = field(default_factory=lambda: secrets.token_hex(8))


#: The changed fields of a task's progress after a batch; None if there are none.
Progress = Mapping[str, Any] | None
#: A task's batches, which end in its result.
Work = Generator[Progress, None, Mapping[str, Any]]


def carry_out(context: Context, task: Task, work: Work) -> Generator[None]:
    """Carries out a task, one batch for each step; its state says how it ended."""
    task.state = "running"
    try:
        with closing(work):
            task.result.update((yield from _step_through(context, task, work)))
        task.state = "done"
    except CsmdError as error:
        task.error, task.hint, task.state = error.what, error.hint, "failed"
    except Exception as error:
        # A catch-all: a bug is reported to the client that waits for the task.
        log.exception("job %s failed", task.kind)
        log_file = context.config.paths.log_file
        task.error, task.hint, task.state = f"a bug: {type(error).__name__}", f"see {log_file}", "failed"
    log_outcome(task)


def _step_through(context: Context, task: Task, work: Work) -> Generator[None, None, Mapping[str, Any]]:
    """Steps through the work and records its progress; raises StoreError if the daemon is stopping."""
    while True:
        try:
            news = next(work)
        except StopIteration as end:
            result: Mapping[str, Any] = end.value
            return result
        task.progress.update(news or {})
        if context.is_stopping:
            raise StoreError("the daemon is stopping", hint="`csmd start` continues this")
        yield


def log_outcome(task: Task) -> None:
    """Logs how a task ended, except a sync without new turns."""
    if task.state == "failed":
        log.warning("task %s failed; whoever started it was told why", task.kind)
        return
    result = task.result
    if task.kind == "sync" and not (result.get("turns_new") or result.get("memories_new")):
        return
    counts = {name: len(value) if isinstance(value, list) else value for name, value in result.items()}
    parts = [amount(count, word) for name, word in RESULT_NOUNS if isinstance(count := counts.get(name), int) and count]
    took = f" in {result['took_s']:.1f} s" if "took_s" in result else ""
    log.info("%s: %s%s", task.kind, ", ".join(parts) or "done", took)


#: Sessions whose last start is known; the oldest are forgotten first.
MAX_STARTS = 200


class PendingStarts:
    """Owns the session starts without a brief, which is sent with the session's next prompt. Safe from any thread.

    A start has no brief if the machine was busy or its hook left early. Kept in memory: after a restart the spool holds
    the starts that were not answered.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._starts: dict[str, tuple[Event, str]] = {}
        """Session -> its last start, and the id of the event that was answered with its brief, "" if none was."""

    def add(self, start: Event) -> None:
        """Adds a start that got no brief, unless a later start of its session, or the same one, is known."""
        with self._lock:
            earlier = self._starts.get(start.session_id)
            if earlier is not None and (earlier[0].at > start.at or earlier[0].id == start.id):
                return
            self._starts.pop(start.session_id, None)
            self._starts[start.session_id] = start, ""
            if len(self._starts) > MAX_STARTS:
                del self._starts[next(iter(self._starts))]

    def mark_answered(self, session_id: str, *, by: str) -> None:
        """Records that the answer to the event `by` contained the brief of a session's start."""
        with self._lock:
            if session_id in self._starts:
                self._starts[session_id] = self._starts[session_id][0], by

    def reopen(self, event: Event) -> None:
        """Opens a start again whose brief went to a hook that had left."""
        with self._lock:
            start, settled_by = self._starts.get(event.session_id, (event, ""))
            if settled_by == event.id:
                self._starts[event.session_id] = start, ""

    def find(self, session_id: str) -> Event | None:
        """Returns the start whose brief goes with a session's next prompt; None if there is none."""
        start, settled_by = self._starts.get(session_id, (None, ""))
        return None if settled_by else start


#: How long lookups are kept, in seconds.
KEEP_LOOKUPS_S = 90 * 86_400
#: Most lookups that wait to be written, of which the oldest is dropped: a disk may be full for days.
MAX_UNWRITTEN = 2_000
#: The tools that look something up: (kind, the parameter with the words, the list in the answer).
LOOKUP_TOOLS: Mapping[str, tuple[str, str, str]] = {
    "csm_memory_search": ("search", "query", "hits"), "csm_memory_recall": ("recall", "prompt", "items"),
}  # fmt: skip


class LookupLog:
    """Owns the records of lookups that are not in the store yet; safe from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._composed: deque[Composition] = deque(maxlen=MAX_UNWRITTEN)
        self._recalled: deque[Lookup] = deque(maxlen=MAX_UNWRITTEN)
        self._late: deque[str] = deque(maxlen=MAX_UNWRITTEN)
        """The times of events whose hooks left before an answer."""

    def log_late(self, event: Event) -> None:
        """Records that an event's hook left before an answer."""
        log.warning("%s: its hook left before an answer", event.name)
        self._late.append(event.at)

    def count_late(self, since: str) -> int:
        """Counts the hooks that left before an answer, since a time and since this daemon started."""
        return sum(at >= since for at in list(self._late))

    def log_brief(self, event: Event, brief: Brief, took_s: float) -> None:
        """Records what was composed for an event and, for a prompt, what was recalled."""
        composition = Composition(
            at=event.at, session_id=event.session_id, event=event.name, chosen=len(brief.items), cut=brief.cut,
            tokens=brief.tokens, degraded=len(brief.degraded), ms=round(took_s * 1000),
        )  # fmt: skip
        with self._lock:
            self._composed.append(composition)
        if event.name == "prompt":
            self._log_lookup("prompt", event.text, [item.score for item in brief.items], took_s)

    def log_call(self, tool: str, params: Mapping[str, Any], result: Mapping[str, Any], took_s: float) -> None:
        """Records the result of a tool in LOOKUP_TOOLS; others are ignored."""
        if tool in LOOKUP_TOOLS:
            kind, words, hits = LOOKUP_TOOLS[tool]
            self._log_lookup(kind, str(params[words]), [float(hit["score"]) for hit in result[hits]], took_s)

    def _log_lookup(self, kind: str, text: str, scores: Sequence[float], took_s: float) -> None:
        lookup = Lookup(
            at=now_iso(), kind=kind, query_hash=tokens.keyed_hash(text, self._store.hash_key), results=len(scores),
            top=max(scores, default=0.0), ms=round(took_s * 1000),
        )  # fmt: skip
        with self._lock:
            self._recalled.append(lookup)

    def list_unwritten(self) -> tuple[list[Composition], list[Lookup]]:
        """Returns the records that are not in the store yet, the latest first."""
        with self._lock:
            return list(reversed(self._composed)), list(reversed(self._recalled))

    def write(self) -> bool:
        """Writes the records to the store; returns whether there were any."""
        with self._lock:
            composed, recalled = list(self._composed), list(self._recalled)
        if not composed and not recalled:
            return False
        before, key = iso_before(KEEP_LOOKUPS_S), self._store.hash_key
        self._store.write(lambda rows: telemetry_rows.add_records(rows, [*composed, *recalled], before=before, key=key))
        written = {id(note) for note in (*composed, *recalled)}
        with self._lock:
            self._composed = deque((note for note in self._composed if id(note) not in written), MAX_UNWRITTEN)
            self._recalled = deque((note for note in self._recalled if id(note) not in written), MAX_UNWRITTEN)
        return True


#: Fewest sessions of a backlog that `csmd status` shows: a shorter one is read within seconds.
MIN_SHOWN_SESSIONS = 5


class Backlog:
    """Owns the unread transcripts of past sessions; only the background thread changes it.

    Any thread may call `describe`: it reads counts, because iterating over the transcripts would fail while one is
    dropped.
    """

    def __init__(self) -> None:
        #: Path -> (session, transcript), in the order of reading. An OrderedDict finds its first key in constant time;
        #: a plain dict walks over every key deleted before it.
        self._transcripts: OrderedDict[str, tuple[str, ListedTranscript]] = OrderedDict()
        #: Session -> the number of its transcripts that are left.
        self._count_of: Counter[str] = Counter()
        self._bytes_left = 0
        #: The sessions of this backlog, also those that were read.
        self._sessions: set[str] = set()
        self._bytes_read, self._took_s = 0, 0.0

    def __bool__(self) -> bool:
        return bool(self._transcripts)

    def __contains__(self, path: str) -> bool:
        return path in self._transcripts

    def fill(self, transcripts: Iterable[tuple[str, ListedTranscript]]) -> None:
        """Replaces the backlog by these (session, transcript) pairs."""
        if not self._transcripts:
            self._sessions, self._bytes_read, self._took_s = set(), 0, 0.0
        self._transcripts = OrderedDict((file.path, (session, file)) for session, file in transcripts)
        self._count_of = Counter(session for session, _ in self._transcripts.values())
        self._bytes_left = sum(file.size for _, file in self._transcripts.values())
        self._sessions.update(self._count_of)

    def next_transcript(self) -> ListedTranscript | None:
        """Returns the transcript to be read next; None if there is none."""
        return next((file for _, file in self._transcripts.values()), None)

    def record_reading(self, *, size: int, took_s: float) -> None:
        """Records how many bytes were read in how long; the estimate for the rest follows from it."""
        self._bytes_read += size
        self._took_s += took_s

    def drop(self, path: str) -> None:
        """Removes a transcript, because it was read."""
        session, file = self._transcripts.pop(path, ("", None))
        if file is None:
            return
        self._bytes_left -= file.size
        self._count_of[session] -= 1
        if not self._count_of[session]:
            del self._count_of[session]

    def describe(self) -> dict[str, Any] | None:
        """Returns the backlog for `csmd status`, None if it is short; `eta_s` is None until a transcript was read."""
        sessions_left, size = len(self._count_of), self._bytes_left
        if not sessions_left or len(self._sessions) < MIN_SHOWN_SESSIONS:
            return None
        eta = round(size * self._took_s / self._bytes_read) if self._bytes_read else None
        sessions_done = len(self._sessions) - sessions_left
        return {"sessions_left": sessions_left, "bytes_left": size, "sessions_done": sessions_done, "eta_s": eta}


#: Reading the pauses and putting them in place is one step: an older state must not replace a newer one.
_PAUSES_LOCK = threading.Lock()
#: Most transcripts outside of every known directory that are kept until they are examined.
MAX_UNKNOWN_TRANSCRIPTS = 32


def list_transcript_roots(config: Config) -> list[Path]:
    """Returns the directories and databases with transcripts, those that exist."""
    paths = [*adapters.list_roots(config), config.paths.sessions]
    return [path for path in paths if is_directory(path) or is_file(path)]


def build_excludes(config: Config, pauses: PauseFile) -> Excludes:
    """Returns the user's exclusions."""
    projects, paths = config.settings.privacy_exclude, config.settings.files_left_out
    return Excludes(projects=projects, files=paths, is_marked=files.has_off_mark, pauses=pauses)


def reload_pauses(pauses: PauseFile) -> bool:
    """Reads the pauses again and logs a change; returns whether there was one."""
    with _PAUSES_LOCK:
        changed = pauses.reload()
    if changed and (pause := pauses().find_current(now_iso())):
        end = f"until {to_local_time(pause[1]):%Y-%m-%d %H:%M}" if pause[1] else "until it is resumed"
        log.info("paused %s: nothing is captured", end)
    elif changed:
        log.info("not paused")
    return changed


class Context:
    """Owns the work of the background thread: hints and tasks come from any thread, the rest is for that thread."""

    def __init__(self, store: Store, config: Config, embedder: Embedder) -> None:
        self.store = store
        self.config = config
        self.embedder = embedder
        self.tasks: dict[str, Task] = {}
        self.trouble: dict[str, str] = {}
        self.stage_failures: set[str] = set()
        self.pauses = PauseFile(config.paths.pauses)
        self.excludes = build_excludes(config, self.pauses)
        self.excluded_paths: set[Path] = set()
        """Transcripts that were found to belong to a project that the user leaves out."""
        self.rules = read_rule_state()
        """The identity of the redaction rules of this daemon, compared by a later one."""
        self.withholds = True
        """Whether the store may hold secrets that older rules missed, so that every answer is redacted."""
        self.unremovable: set[Path] = set()
        """Files in the spool that are no events and cannot be removed."""
        self.partly_read: set[str] = set()
        """Transcripts that were not read to their end."""
        self.backlog = Backlog()
        self.lookups = LookupLog(store)
        self.starts = PendingStarts()
        self.reading_task: Task | None = None
        """The running task."""
        self.live_paths: set[str] = set()
        """Transcripts that were hinted at while a task reads others."""
        self.heard_at = time.monotonic()
        """When a hook or a file event last reported a session; monotonic."""
        self.backlog_read_until = 0.0
        self.wake = threading.Event()
        self.client_waits = threading.Event()
        """Set with `wake` for work that a client waits for."""
        self.notice_days: dict[str, str] = {}
        """Unread directory of the assistant -> the day of its last notice."""
        self._queue: deque[Task] = deque()
        self._hints: dict[str, None] = {}
        self._unknown_transcripts: dict[str, None] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()

    # --- from any thread

    def calm_s(self, at: float | None = None) -> float:
        """Seconds without a report of a session, until a monotonic time or now."""
        return max((time.monotonic() if at is None else at) - self.heard_at, 0.0)

    def hint(self, path: str) -> None:
        """Notes that a transcript may have changed; cheap."""
        self.heard_at = time.monotonic()
        with self._lock:
            self._hints[path] = None
        self.wake.set()

    def hint_from_hook(self, path: str, host: str = adapters.CLAUDE.host) -> None:
        """Notes that the transcript named by a hook may have changed, if it is in an assistant's directory.

        The path is not trusted, because anyone can call a hook. Another directory is noted for Claude Code only.
        """
        self.heard_at = time.monotonic()
        normal_path = os.path.normpath(path)
        if any(Path(normal_path).is_relative_to(root) for root in adapters.list_roots(self.config)):
            self.hint(normal_path)
        elif path and host == adapters.CLAUDE.host:
            with self._lock:
                if len(self._unknown_transcripts) < MAX_UNKNOWN_TRANSCRIPTS:
                    self._unknown_transcripts[path] = None

    def poke(self) -> None:
        """Wakes the background thread."""
        self.wake.set()

    def submit(self, task: Task) -> Task:
        """Queues a task; its state is looked up by its id."""
        self.register_task(task)
        with self._lock:
            self._queue.append(task)
        self.client_waits.set()
        self.wake.set()
        return task

    def register_task(self, task: Task) -> None:
        """Registers a task by its id; forgets the oldest tasks that have ended."""
        with self._lock:
            for task_id in [task.id for task in self.tasks.values() if task.state in ("done", "failed")][:-20]:
                del self.tasks[task_id]
            self.tasks[task.id] = task

    def stop(self) -> None:
        """Ends the background work after the running batch."""
        self._stopping.set()
        self.client_waits.set()
        self.wake.set()

    # --- waiting work

    @property
    def is_stopping(self) -> bool:
        """Whether the running batch is the last."""
        return self._stopping.is_set()

    @property
    def has_hints(self) -> bool:
        """Whether a transcript was hinted at and has not been read since."""
        return bool(self._hints)

    def take_task(self, *, only_ordered: bool = False) -> Task | None:
        """Takes the oldest task from the queue, clients' tasks before csmd's own; None if there is none."""
        with self._lock:
            waiting = sorted(self._queue, key=lambda task: task.is_own)
            if not waiting or (only_ordered and waiting[0].is_own):
                return None
            self._queue.remove(waiting[0])
            self.reading_task = waiting[0]
        return self.reading_task

    def take_hints(self) -> list[Path]:
        """Takes the transcripts that were hinted at since the last call."""
        with self._lock:
            hints, self._hints = list(self._hints), {}
        return [Path(path) for path in hints]

    def take_unknown_transcripts(self) -> list[str]:
        """Takes the transcripts outside of every known directory that hooks named since the last call."""
        with self._lock:
            paths, self._unknown_transcripts = list(self._unknown_transcripts), {}
        return paths

    def client_is_waiting(self) -> bool:
        """Whether hinted transcripts or queued tasks wait, so that background work should pause."""
        return self.has_hints or (self.reading_task is None and bool(self._queue))

    @property
    def has_reading_task(self) -> bool:
        """Whether a task is reading transcripts."""
        return self.reading_task is not None and self.reading_task.progress.get("step") == "reading"

    def waits_for_others(self, session: SessionBehind) -> bool:
        """Whether an unread transcript may hold the tool call that wrote this one."""
        if not self.has_reading_task:
            self.live_paths.clear()
            return False
        return session.path not in self.live_paths

    # --- transcripts and models

    def list_roots(self) -> list[Path]:
        """Returns the directories with transcripts, those that exist."""
        return list_transcript_roots(self.config)

    def model_name(self) -> str | None:
        """Returns the identity of the embedding model in use; None if there is none."""
        directory = installed_models.installed_model(self.config.paths.models, self.config.settings.embed_model)
        return None if directory is None else installed_models.model_identity(directory)

    def query_vector(self, *, deadline_s: float, start: bool) -> hybrid_search.Embed | None:
        """Returns the function that embeds a query; None if no model is installed."""
        name = self.model_name()
        if name is None:
            return None
        return lambda query: (self.embedder.embed([query], deadline_s=deadline_s, start=start)[0], name)

    def guard(
        self, what: str, work: Callable[[], T], *, about: str = "", strict: bool = False, is_stage: bool = False
    ) -> T | None:
        """Returns the result of `work`; None if it fails, which is logged and shown in `csmd status`.

        Catches every error, so that other work continues. `what` is in csmd's own words and is logged; `about`, a file
        or session, is shown in `csmd status` only. With `strict`, StoreError is raised, because a client waits.
        The key of a failed stage (`is_stage`) is added to `stage_failures`.
        """
        key = f"{what} {about}" if about else what
        try:
            result = work()
        except Exception as error:
            if strict and isinstance(error, StoreError):
                raise
            is_known = isinstance(error, CsmdError | OSError)
            problem = getattr(error, "what", "") or getattr(error, "strerror", "") or type(error).__name__
            if self.trouble.get(key) != problem:  # the same trouble at every tick is one line in the log
                kind = logs.describe_kind(error)
                log.warning("%s: %s; see `csmd status`", what, kind, exc_info=None if is_known else error)
            self.trouble[key] = problem
            if is_stage:
                self.stage_failures.add(key)
            return None
        self.stage_failures.discard(key)
        if self.trouble.pop(key, None):
            log.info("%s: works again", what)
        return result
