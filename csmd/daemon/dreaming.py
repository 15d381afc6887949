"""Decides when to dream, and runs the dream as a task."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from csmd import machine
from csmd.curator import curate, spending
from csmd.curator.contract import Question, Reply
from csmd.curator.curate import Answered
from csmd.daemon import provider_tasks
from csmd.daemon.context import Context, Task, Work, carry_out, now_iso, to_iso, to_local_time
from csmd.daemon.dream_lock import DreamLock
from csmd.daemon.page_reader import PageReader
from csmd.daemon.task_steps import run_in_thread
from csmd.dream import day_files, dream_undo, gates, page_files, steps
from csmd.dream.day_sessions import ToLocal
from csmd.dream.gates import GateFacts, Verdict
from csmd.errors import CsmdError
from csmd.privacy.redaction import redact
from csmd.store import dreams, journal, stored_pages
from csmd.store.core import run_briefly, run_to_end
from csmd.store.dreams import Dream
from csmd.store.sqlite import Rows
from csmd.tools.dreams import count_facts, dream_json
from csmd.vocabulary import QUIET_S

# --- the dream

#: How often the gates are checked.
GATE_CHECK_S = 60.0
#: How often they are checked if the background is never idle: an overdue dream begins all the same.
OVERDUE_CHECK_S = 600.0
#: How often the lock is renewed; another host takes it over after an hour without a renewal.
RENEW_EVERY_S = 300.0
#: The longest pause of an awaited dream while other work arrives.
MAX_PAUSE_S = 0.25
#: How many actions of old dreams one write forgets, with their pages; hooks wait for it.
FORGET_BATCH = 50
LOCK_HINT = "see `csmd dream status`"


class Dreaming:
    """Owns the dream and its lock; the background thread steps it, any thread can order one.

    `_task` is set from the order until the dream has ended, `_batches` from its first step on.
    """

    def __init__(self, context: Context, pages: PageReader) -> None:
        self._context, self.pages = context, pages
        self.lock = DreamLock(context.config.paths.dream_lock)
        #: The clocks for a dream's rows and pages; a bench replaces them.
        self.now: Callable[[], str] = now_iso
        self.here: ToLocal = to_local_time
        self._task: Task | None = None
        self._batches: Generator[None] | None = None
        self._is_awaited = False
        #: A language model's answers, until the dream has carried them out.
        self._answers: list[Answered] = []
        self._ordering = threading.Lock()
        self._last_batch = time.monotonic()
        self._next_check = self._next_renewal = 0.0
        #: The facts for the gates, and the store's commits when they were read.
        self._facts: tuple[int, GateFacts] | None = None

    # --- from any thread

    @property
    def is_urgent(self) -> bool:
        """Whether the dream is awaited and no session is active that it would slow down."""
        return self._task is not None and self._is_awaited and self._context.calm_s() >= QUIET_S["dream"]

    @property
    def is_under_way(self) -> bool:
        """Whether a dream is ordered or running."""
        return self._task is not None

    @property
    def is_overdue(self) -> bool:
        """Whether an awaited dream has paused for its longest time."""
        return self._task is not None and self._is_awaited and time.monotonic() - self._last_batch >= MAX_PAUSE_S

    def is_alone_since(self, at: float) -> bool:
        """Whether a dream is running and no session has reported anything since a monotonic time: new rows are the
        dream's."""
        return self._batches is not None and self._context.heard_at < at

    def order(self, why: str, *, awaited: bool) -> Task:
        """Orders a dream and returns its task, or returns the task of the present one; an `awaited` dream continues at
        once."""
        with self._ordering:
            self._is_awaited = awaited or (self._is_awaited and self._task is not None)
            task = self._task
            if task is None:
                self._last_batch = time.monotonic()
                self._task = task = Task(kind="dream", order={"why": why})
                self._context.register_task(task)
        self._context.poke()
        return task

    def verdict(self, rows: Rows) -> Verdict:
        """Returns the present verdict of the gates."""
        return self._ask_gates(self._read_facts(rows), time.monotonic())

    def state(self, rows: Rows) -> dict[str, Any]:
        """Returns the dream part of `csmd status`: the gates, the running, the last successful and the last ended dream."""
        verdict, task, last = self.verdict(rows), self._task, dreams.find_latest(rows)
        latest = next((dream for dream in dreams.list_dreams(rows, limit=2) if dream.state != "running"), None)
        answers = verdict.answers
        return {
            "due": verdict.ok, "overdue": verdict.overdue, "verdict": verdict.words,
            "gates": [{"gate": answer.gate, "open": answer.is_open, "reason": answer.reason} for answer in answers],
            "running": {"id": task.result.get("id", ""), **task.progress} if task else None,
            "last": dream_json(rows, last) if last else None, "latest": dream_json(rows, latest) if latest else None,
        }  # fmt: skip

    # --- on the background thread

    def step(self, at: float, *, idle: bool) -> bool:
        """Does a batch of the dream; if the thread is `idle`, orders a dream that is due. Returns whether it did a
        batch."""
        if self._task is None and idle and at >= self._next_check:
            self._next_check = at + GATE_CHECK_S
            if self._is_due(at):
                self.order("by itself", awaited=self._is_overdue())
        elif self._task is None and at >= self._next_check + OVERDUE_CHECK_S:  # the background is never idle
            self._next_check = at
            if self._is_due(at) and self._is_overdue():
                self.order("by itself", awaited=True)
        task = self._task
        if task is None:
            return False
        if at >= self._next_renewal:
            self._next_renewal = at + RENEW_EVERY_S
            self.lock.beat(datetime.now(UTC))  # the next batch notices if it was lost
        if not self._is_awaited and self._context.calm_s(at) < QUIET_S["dream"]:
            if not self._is_overdue():
                return False
            self._is_awaited = True  # it would pause for as long as sessions are active
        self._batches = self._batches or carry_out(self._context, task, self._dream(task))
        self._last_batch = time.monotonic()
        if run_briefly(self._batches):
            self._batches = self._task = None
        return True

    def close(self) -> bool:
        """Cancels the dream because the daemon stops; returns whether one was running."""
        was_under_way = self._batches is not None
        if self._batches is not None:
            self._batches.close()
        if self._task is not None:
            self._task.state, self._task.error = "failed", "the daemon is stopping"
        self._batches = self._task = None
        return was_under_way

    def undo(self, task: Task) -> Work:
        """Undoes a dream and all later ones, a few actions at a time, while it holds the lock for the pages."""
        store, home = self._context.store, self._context.config.paths.home
        with self._hold_lock():
            yield {"step": "undoing"}
            dream_id = str(task.order["dream"])
            undone = yield from dream_undo.undo_dreams(store, dream_id, home=home, now=now_iso(), key=store.hash_key)
            # A page that was edited since keeps the edit; its other lines are updated from the memories.
            if edited := [item.item for item in undone.skipped if item.why == dream_undo.EDITED_SINCE]:
                folder = f"{self._context.config.paths.memory.name}/"
                only = {path.removeprefix(folder) for path in edited if path.startswith(folder)}
                yield from self.pages.read_at_once()
                yield from self._write_pages(0, only=only)
        return {
            "dreams": store.read(lambda rows: [dream_json(rows, dream) for dream in undone.dreams]),
            "items": list(undone.items), "files": list(undone.files), "kept": list(map(asdict, undone.skipped)),
        }  # fmt: skip

    @contextlib.contextmanager
    def _hold_lock(self) -> Iterator[None]:
        """Holds the lock; CsmdError if another process dreams."""
        if other := self.lock.acquire(datetime.now(UTC)):
            raise CsmdError(other.describe_dreaming(), hint=LOCK_HINT)
        try:
            yield
        finally:
            self.lock.release()

    def _dream(self, task: Task) -> Work:
        """Runs a dream, a batch at a time; CsmdError if another process dreams, or has taken the lock."""
        began, store, reason = time.monotonic(), self._context.store, str(task.order["why"])
        if other := self._explain_holder(datetime.now(UTC)):
            raise CsmdError(other, hint=LOCK_HINT)
        self._answers = yield from self._ask(task)
        dream = store.write(lambda rows: self._begin(rows, reason))
        task.result["id"] = dream.id
        with self._record_end(dream), self._hold_lock():
            for number, (name, work) in enumerate(STEPS.items()):
                task.progress.update(step=name, done=number, total=len(STEPS))
                for _ in work(self, dream):
                    if not self.lock.is_mine():
                        raise CsmdError("the dream lock was taken over", hint=LOCK_HINT)
                    yield None
        counts = store.read(lambda rows: journal.count_actions(rows, dream.seq))
        took_s = round(time.monotonic() - began, 3)
        return {"state": "done", "done": counts, "changes": sum(counts.values()), "took_s": took_s}

    def _ask(self, task: Task) -> Generator[None, None, list[Answered]]:
        """Asks the user's language model about sessions that ended, before the lock is taken, because it takes long."""
        context = self._context
        provider = provider_tasks.find_provider(context)
        yield
        if provider is None:
            return []

        def ask_one(question: Question) -> Generator[None, None, Reply]:
            settings, now = context.config.settings, now_iso()
            return run_in_thread(
                lambda: spending.ask_within_cap(context.store, provider, question, now=now, settings=settings)
            )

        task.progress.update(step=f"asking {provider.name}")
        may_ask = lambda: not provider_tasks.explain_not_now(context)  # noqa: E731
        settings = context.config.settings
        return (yield from curate.ask(context.store, ask_one, may_ask=may_ask, now=self.now(), settings=settings))

    def _begin(self, rows: Rows, why: str) -> Dream:
        """Records the dream; any other that is recorded as running was killed, because only this daemon dreams in this
        store."""
        dreams.fail_interrupted(rows, now=now_iso())
        return dreams.begin(rows, why=why, sessions=self._read_facts(rows).sessions, now=now_iso())

    @contextlib.contextmanager
    def _record_end(self, dream: Dream) -> Iterator[None]:
        """Records how a dream ended: done, cancelled because the daemon stops, or failed with a reason."""
        state: dreams.State = "failed"
        reason = ""
        try:
            yield
            state = "done"
        except GeneratorExit:
            state = "cancelled"
            raise
        except Exception as error:
            reason = redact(error.what, Counter()) if isinstance(error, CsmdError) else _name_error(error)
            raise
        finally:
            seq, now = dream.seq, now_iso()
            self._context.store.write(lambda rows: dreams.end(rows, seq, state=state, error=reason, now=now))

    # --- its steps: generators that stop after each batch

    def read_edits(self, _: Dream) -> Iterator[None]:
        """Reads people's edits of the pages; the latest ones only if the dream is awaited."""
        if self._is_awaited:
            yield from self.pages.read_at_once()
        else:
            self.pages.read_settled()
        yield

    def consolidate(self, dream: Dream) -> Generator[None]:
        """Plans and carries out the consolidation of all projects' memories."""
        store, now = self._context.store, self.now()
        facts = yield from count_facts(store.read)
        promoting = self._context.config.settings.stages_promote
        key = store.hash_key
        yield from steps.carry_out_everywhere(store, dream, now=now, key=key, facts=facts, promoting=promoting)

    def curate(self, dream: Dream) -> Generator[None]:
        """Carries out the accepted answers of the language model, and consolidates their results."""
        has_changed = yield from curate.believe(self._context.store, dream, self._answers, now=self.now())
        self._answers = []
        if has_changed:
            yield from self.consolidate(dream)

    def rewrite_pages(self) -> Iterator[None]:
        """Updates the existing pages from the memories, without a journal; does nothing while another process
        dreams."""
        if not self._context.store.read(stored_pages.read_pages) or self.lock.acquire(datetime.now(UTC)):
            return
        try:
            yield from self._write_pages(0)
        finally:
            self.lock.release()

    def write_pages(self, dream: Dream) -> Generator[None]:
        """Writes the pages that changed, recorded in the dream's journal."""
        yield from self._write_pages(dream.seq)
        yield

    def _write_pages(self, journal: int, *, only: Collection[str] | None = None) -> Generator[None]:
        store, now = self._context.store, self.now()
        facts = yield from count_facts(store.read)
        for _ in page_files.write_pages(
            store, self._context.config.paths.memory, dream_seq=journal, now=now, only=only,
            facts=list(chain.from_iterable(facts.values())),
        ):  # fmt: skip
            yield  # page by page: other work goes first, and the lock may be lost

    def archive_days(self, dream: Dream) -> Iterator[None]:
        """Moves old days into the archive."""
        paths, store = self._context.config.paths, self._context.store
        yield
        for _ in day_files.archive_days(store, paths.home, paths.memory, dream.seq, now=self.now(), to_local=self.here):
            yield

    def forget_old_dreams(self, _: Dream) -> Iterator[None]:
        """Forgets the journals of dreams that are too old to undo."""
        store, settings = self._context.store, self._context.config.settings
        history = store.read(lambda rows: dreams.list_dreams(rows, limit=dreams.NO_LIMIT))
        days, hours = settings.dream_keep_days, settings.dream_every_h
        old = dream_undo.find_expired(history, now=self.now(), keep_days=days, every_h=hours)
        while store.write(lambda rows: dreams.delete_actions(rows, old, limit=FORGET_BATCH)):
            yield
        yield

    # --- facts for the gates

    def _is_due(self, at: float) -> bool:
        """Whether all gates are open; reads the store only if something was written since, or the clock was set
        back."""
        commits, facts = self._context.store.commits, self._facts
        if facts is None or facts[0] != commits or self._count_from(facts[1].last_at) != facts[1].last_at:
            facts = self._facts = commits, self._context.store.read(self._read_facts)
        if facts[1].sessions and not facts[1].waiting_at and self._context.store.takes_writes:
            now = self._now()
            self._context.store.write(lambda rows: dreams.note_waiting(rows, at=now))
            facts = self._facts = self._context.store.commits, replace(facts[1], waiting_at=to_iso(now))
        return self._ask_gates(facts[1], at).ok

    def _is_overdue(self) -> bool:
        """Whether new sessions have waited so long that a dream may run while sessions are active."""
        settings = self._context.config.settings
        if self._facts is None:
            return False
        return gates.find_overdue(settings, replace(self._facts[1], now=self._now())) is not None

    def _now(self) -> datetime:
        return datetime.fromisoformat(self.now())

    def _count_from(self, last_at: str) -> str:
        return gates.find_session_start(self._now(), last_at, self._context.config.settings.dream_every_h)

    def _read_facts(self, rows: Rows) -> GateFacts:
        last, undone = dreams.find_latest(rows), dreams.find_latest(rows, state="undone")
        latest = next(iter(dreams.list_dreams(rows, limit=1)), None)
        last_at, tier_max = last.begun_at if last else "", self._context.config.settings.dream_tier_max
        crowded = dreams.list_crowded_tiers(rows, limit=tier_max) if tier_max else []
        return GateFacts(
            now=self._now(), last_at=last_at,
            failed_at=latest.ended_at if latest and latest.state == "failed" else "",
            waiting_at=dreams.find_waiting_since(rows, after=last_at, now=self.now()),
            # Unless a later dream succeeded.
            undone_at=undone.undone_at if undone and last_at <= undone.undone_at else "",
            first_at=dreams.find_first_session_time(rows), last_turn=dreams.find_last_turn_time(rows),
            sessions=dreams.count_sessions_since(rows, self._count_from(last_at)),
            crowded=tuple(f"{number:,} {tier} memories in {name}" for name, tier, number in crowded),
        )  # fmt: skip

    def _ask_gates(self, facts_read: GateFacts, at: float) -> Verdict:
        now, store = self._now(), self._context.store
        no_writes = "" if store.takes_writes else "the database is damaged, or was moved or deleted"
        facts = replace(
            facts_read, now=now, calm_s=self._context.calm_s(at), load=machine.load_per_core(),
            on_mains=machine.on_mains(), holder=self._explain_holder(datetime.now(UTC)),
            no_writes=no_writes or store.last_write_error,
        )  # fmt: skip
        return gates.ask_gates(self._context.config.settings, facts)

    def _explain_holder(self, now: datetime) -> str:
        """Returns why the lock is not available: another process has it, or its file is another user's; "" if it is."""
        try:
            holder = self.lock.holder(now)
        except CsmdError as error:
            return error.what
        return "" if holder is None or self.lock.is_mine() else holder.describe_dreaming()


Step = Callable[[Dreaming, Dream], Iterator[None]]
#: The steps of a dream in order, by the names that people see. People's edits are read before anything is planned, and
#: changes are written to the pages before the last steps.
STEPS: Mapping[str, Step] = {
    "reading what people edited": Dreaming.read_edits, "consolidating": Dreaming.consolidate,
    "noting what was answered": Dreaming.curate, "writing pages": Dreaming.write_pages,
    "archiving days": Dreaming.archive_days, "forgetting old dreams": Dreaming.forget_old_dreams,
}  # fmt: skip


def _name_error(error: Exception) -> str:
    """Returns an error in words that help a person: `OSError: No space left on device (PATH)`."""
    name = type(error).__name__
    if not isinstance(error, OSError) or not error.strerror:
        return name
    path = f" ({redact(str(error.filename), Counter())})" if error.filename else ""
    return f"{name}: {error.strerror}{path}"


def resume_dreams(context: Context) -> None:
    """Cleans up after a killed daemon: marks its dream as failed, and finishes restoring files of an undone dream."""
    store, home = context.store, context.config.paths.home
    store.write(lambda rows: dreams.fail_interrupted(rows, now=now_iso()))
    # If that fails, `csmd status` shows it, and the next reading of the pages tries again.
    context.guard("undo", lambda: run_to_end(dream_undo.finish_undo(store, home=home, now=now_iso())))
