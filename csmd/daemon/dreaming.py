"""When to dream, the dream as a task, and reading back edited pages."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from pathlib import Path
from typing import Any

from csmd import machine
from csmd.capture import instruction_files
from csmd.curator import curate, spending
from csmd.curator.contract import Question, Reply
from csmd.curator.curate import Answered
from csmd.daemon import curating, housekeeping, reading
from csmd.daemon.context import Context, Task, Work, carry_out, iso, local_time, now_iso
from csmd.daemon.dream_lock import DreamLock, Holder
from csmd.dream import day_files, gates, page_edits, page_files, reselection, steps, undo
from csmd.dream.day_sessions import Here
from csmd.dream.gates import GateFacts, Verdict
from csmd.errors import CsmdError, StoreError
from csmd.exclusions import Pauses
from csmd.paths import is_directory
from csmd.privacy.redaction import redact
from csmd.store import backup, dreams, markdown_pages
from csmd.store.core import run_briefly, run_to_end
from csmd.store.dreams import Dream
from csmd.store.sqlite import Rows
from csmd.tools.dreams import count_facts, dream_json

# --- edited pages

#: A page is settled when it has not changed for longer than the daemon takes to sweep the transcripts of those at work.
PAGES_LOOK_S, SETTLED_S = 60.0, 40.0
#: More pages than anybody reads; beyond it the next dream looks at all.
MOST_PAGES = 500


class PageReader:
    """Owns the stamps by which an edited page is known; only the background thread uses it."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._next_look = 0.0
        #: The stamps at the last look, and when the pages were read last.
        self._seen: instruction_files.Stamp = ()
        self._read: instruction_files.Stamp = ()
        #: Whether a line is to leave the pages; also after a start, for a daemon that was killed before it did.
        self._has_forgotten = True

    def forget(self) -> None:
        """Notes that a memory was forgotten, from any thread: its line leaves pages and days in the next step."""
        self._has_forgotten = True

    def step(self, now: float) -> bool:
        """Looks whether a page has changed, and reads those that have not changed since the look before."""
        if self._has_forgotten and self._withdraw():
            return True
        if now < self._next_look:
            return False
        self._next_look = now + PAGES_LOOK_S
        stamp = self._stamp()
        if stamp == self._read:
            return False
        if stamp != self._seen or self._context.backlog or self._context.client_is_waiting():
            self._seen, self._next_look = stamp, now + SETTLED_S
            return False
        return self.read() > 0

    def _withdraw(self) -> bool:
        """Removes forgotten lines from pages and, some in a step, from days; whether there were any."""
        store, directory = self._context.store, self._context.config.paths.memory
        self._has_forgotten = False
        try:
            days = day_files.withdraw(store, directory, now=now_iso(), here=local_time)
            self._has_forgotten |= days > 0  # more may be left
            return page_files.withdraw(store, directory) + days > 0
        except OSError:
            self._has_forgotten = True  # until the disk takes it
            raise

    def read_settled(self) -> int:
        """Reads them for a dream or an import, unless one has just changed: the transcript of the tool that did may follow."""
        since = time.time() - SETTLED_S
        for path in self._files():
            with suppress(OSError):
                if since < path.stat().st_ctime < since + 2 * SETTLED_S:
                    return 0
        return self.read()

    def read_at_once(self) -> Iterator[None]:
        """Reads them now, after the transcripts of sessions at work: those say which edits are a tool's."""
        context = self._context
        reading.sweep(context, full=False)
        for path in context.take_hints():
            while reading.look_at(context, path, most_pieces=1).more:
                yield
            yield
        self.read()

    def read(self) -> int:
        """Reads what people did to the pages now; how many edits."""
        context, stamp = self._context, self._stamp()
        store, paths = context.store, context.config.paths
        # What undoing a dream has left half done is no edit.
        run_to_end(undo.finish(store, home=paths.home, now=now_iso()))
        done = page_edits.step(store, paths.memory, now=now_iso(), key=store.hash_key, pauses=self._unrecorded())
        self._read = stamp
        return done

    def _unrecorded(self) -> Pauses:
        """When the writing of tools went unrecorded: in pauses, and when an excluded session was last at work."""
        spans = list(self._context.pauses().spans)
        for path in list(self._context.excluded):
            with suppress(OSError):
                last = datetime.fromtimestamp(path.stat().st_mtime, UTC)
                spans.append((iso(last), iso(last + timedelta(seconds=1))))
        return Pauses(tuple(spans))

    def _stamp(self) -> instruction_files.Stamp:
        return instruction_files.stamp(map(str, [*self._folders(), *self._files()]))

    def _files(self) -> list[Path]:
        paths = (path for folder in self._folders() if is_directory(folder) for path in sorted(folder.glob("*.md")))
        return list(islice(paths, MOST_PAGES))

    def _folders(self) -> list[Path]:
        memory = self._context.config.paths.memory
        return [memory, memory / "projects", memory / "topics"]


# --- the dream

#: How often the gates are asked.
LOOK_S = 60.0
#: How often the lock says that its holder is alive; another host gives it up after an hour.
BEAT_S = 300.0
#: A session that reported anything within this is at work.
AT_WORK_S = 20.0
#: How long an awaited dream pauses at most while other work keeps coming.
SHARE_S = 0.25
#: Actions of old dreams that one write forgets, with the pages that they wrote: hooks wait behind it.
FORGOTTEN = 50
#: Why a dream chooses old memories anew, which has steps of its own.
AGAIN = reselection.WHY
HINT = "`csmd dream status` says who dreams"


class Dreaming:
    """Owns the dream and its lock; the background thread steps it, others order one.

    Its task is there from the order until the dream has ended, its batches from the first of them on.
    """

    def __init__(self, context: Context, pages: PageReader) -> None:
        self._context, self.pages = context, pages
        self.lock = DreamLock(context.config.paths.dream_lock)
        #: Clocks of what a dream writes, which a bench moves.
        self.now: Callable[[], str] = now_iso
        self.here: Here = local_time
        self._task: Task | None = None
        self._batches: Generator[None] | None = None
        self._is_awaited = False
        #: What a language model answered, until the dream has carried it out.
        self._answered: list[Answered] = []
        self._ordering = threading.Lock()
        self._last_batch = time.monotonic()
        self._next_look = self._next_beat = 0.0
        #: Whether memories of an older csmd may wait to be chosen anew.
        self._may_reselect = True
        #: What the gates saw in the rows, and after how many commits.
        self._seen: tuple[int, GateFacts] | None = None

    # --- from any thread

    @property
    def is_urgent(self) -> bool:
        """Whether the dream is awaited and no session is at work that it would slow down."""
        return self._task is not None and self._is_awaited and time.monotonic() - self._context.heard_at >= AT_WORK_S

    @property
    def is_under_way(self) -> bool:
        """Whether a dream is ordered or under way."""
        return self._task is not None

    @property
    def is_overdue(self) -> bool:
        """Whether an awaited dream has paused for its longest time."""
        return self._task is not None and self._is_awaited and time.monotonic() - self._last_batch >= SHARE_S

    def alone_since(self, at: float) -> bool:
        """Whether a dream is under way and no session reported anything since a monotonic time: what is new is the dream's."""
        return self._batches is not None and self._context.heard_at < at

    def order(self, why: str, *, awaited: bool, confirmed: bool = False) -> Task:
        """Orders a dream; the one there is where there is one, which goes on at once when it is `awaited`.

        With `confirmed` a person has agreed to what it does.
        """
        with self._ordering:
            self._is_awaited = awaited or (self._is_awaited and self._task is not None)
            task = self._task
            if task is None:
                self._last_batch = time.monotonic()
                self._task = task = Task(kind="dream", order={"why": why, "confirmed": confirmed})
                self._context.list_task(task)
        self._context.poke()
        return task

    def verdict(self, rows: Rows) -> Verdict:
        """What the gates say now."""
        return self._ask_gates(self._look(rows), time.monotonic())

    def state(self, rows: Rows) -> dict[str, Any]:
        """The dream part of `csmd status`: gates, the dream under way, the last one done, the latest that has ended."""
        verdict, task, done = self.verdict(rows), self._task, dreams.last(rows)
        latest = next((dream for dream in dreams.history(rows, limit=2) if dream.state != "running"), None)
        return {
            "due": verdict.ok,
            "verdict": verdict.words,
            "gates": [
                {"gate": answer.gate, "open": answer.is_open, "reason": answer.reason} for answer in verdict.answers
            ],
            "running": {"id": task.result.get("id", ""), **task.progress} if task else None,
            "last": dream_json(rows, done) if done else None,
            "latest": dream_json(rows, latest) if latest else None,
        }

    # --- on the background thread

    def step(self, at: float, *, idle: bool) -> bool:
        """Does a batch of the dream, ordering one that is due when the thread is `idle`; whether it did any."""
        if self._task is None and idle and at >= self._next_look:
            self._next_look = at + LOOK_S
            if why := AGAIN if self._is_reselection_due() else "by itself" if self._is_due(at) else "":
                self.order(why, awaited=False)
        task = self._task
        if task is None:
            return False
        if at >= self._next_beat:
            self._next_beat = at + BEAT_S
            self.lock.beat(datetime.now(UTC))  # that it was lost, the dream's next batch finds
        if not self._is_awaited and at - self._context.heard_at < AT_WORK_S:
            return False
        self._batches = self._batches or carry_out(self._context, task, self._dream(task))
        self._last_batch = time.monotonic()
        if run_briefly(self._batches):
            self._batches = self._task = None
        return True

    def close(self) -> bool:
        """Cancels the dream, as the daemon stops; whether one was under way."""
        was_under_way = self._batches is not None
        if self._batches is not None:
            self._batches.close()
        if self._task is not None:
            self._task.state, self._task.error = "failed", "the daemon is stopping"
        self._batches = self._task = None
        return was_under_way

    def undo(self, task: Task) -> Work:
        """Undoes a dream and every one since, a few actions at a time; the lock keeps others from writing the markdown."""
        store, home = self._context.store, self._context.config.paths.home
        with self._locked():
            yield {"step": "undoing"}
            ident = str(task.order["dream"])
            undone = yield from undo.undo(store, ident, home=home, now=now_iso(), key=store.hash_key)
            # A page that was edited since keeps the edit: its other lines follow what is believed now.
            if edited := [kept.item for kept in undone.skipped if kept.why == undo.EDITED]:
                memory = self._context.config.paths.memory
                below = f"{memory.name}/"
                only = {path.removeprefix(below) for path in edited if path.startswith(below)}
                yield from self.pages.read_at_once()
                yield from self._write_pages(0, only=only)
        return {
            "dreams": store.read(lambda rows: [dream_json(rows, dream) for dream in undone.dreams]),
            "items": list(undone.items),
            "files": list(undone.files),
            "kept": [asdict(kept) for kept in undone.skipped],
        }

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Holds the lock; CsmdError when another process dreams."""
        if other := self.lock.acquire(datetime.now(UTC)):
            raise CsmdError(_dreams_already(other), hint=HINT)
        try:
            yield
        finally:
            self.lock.leave()

    def _dream(self, task: Task) -> Work:
        """The dream itself, a batch at a time; CsmdError when another process dreams, or has taken the lock."""
        began, store, why = time.monotonic(), self._context.store, str(task.order["why"])
        if other := self._holder(datetime.now(UTC)):
            raise CsmdError(other, hint=HINT)
        self._answered = [] if why == AGAIN else (yield from self._ask(task))
        dream = store.write(lambda rows: self._begin(rows, why))
        task.result["id"] = dream.id
        with self._ending(dream), self._locked():
            planned = AGAIN_STEPS if why == AGAIN else STEPS
            for number, (name, work) in enumerate(planned.items()):
                task.progress.update(step=name, done=number, total=len(planned))
                for _ in work(self, dream):
                    if not self.lock.is_mine():
                        raise CsmdError("the dream lock was taken over", hint=HINT)
                    yield None
        done = store.read(lambda rows: dreams.change_counts(rows, dream.seq))
        took_s = round(time.monotonic() - began, 3)
        return {"state": "done", "done": done, "changes": sum(done.values()), "took_s": took_s}

    def _ask(self, task: Task) -> Generator[None, None, list[Answered]]:
        """Asks the language model that the user added about sessions that ended, before the lock is taken: it takes long."""
        context = self._context
        provider = curating.find_provider(context)
        yield
        if provider is None:
            return []

        def ask_one(question: Question) -> Generator[None, None, Reply]:
            settings, now = context.config.settings, now_iso()
            return curating.in_thread(
                lambda: spending.ask_within_cap(context.store, provider, question, now=now, settings=settings)
            )

        task.progress.update(step=f"asking {provider.name}")
        may_ask = lambda: not curating.why_not_now(context)  # noqa: E731
        settings = context.config.settings
        return (yield from curate.ask(context.store, ask_one, may_ask=may_ask, now=self.now(), settings=settings))

    def _begin(self, rows: Rows, why: str) -> Dream:
        """Notes the dream; whatever is still noted as running was killed, for this daemon alone dreams in this store."""
        dreams.fail_interrupted(rows, now=now_iso())
        if why == AGAIN and (broken_off := dreams.reopen(rows, why=why)):
            return broken_off
        return dreams.begin(rows, why=why, sessions=self._look(rows).sessions, now=now_iso())

    @contextlib.contextmanager
    def _ending(self, dream: Dream) -> Iterator[None]:
        """Notes how a dream ended: it was done, cancelled as the daemon stops, or failed and why."""
        state: dreams.State = "failed"
        why = ""
        try:
            yield
            state = "done"
        except GeneratorExit:
            state = "cancelled"
            raise
        except Exception as error:
            why = redact(error.what, Counter()) if isinstance(error, CsmdError) else type(error).__name__
            raise
        finally:
            self._context.store.write(lambda rows: dreams.end(rows, dream.seq, state=state, error=why, now=now_iso()))

    # --- its steps: generators that stop after each batch

    def read_edits(self, _: Dream) -> Iterator[None]:
        """Reads what people did to the pages; what has just been written only when the dream is awaited."""
        if self._is_awaited:
            yield from self.pages.read_at_once()
        else:
            self.pages.read_settled()
        yield

    def consolidate(self, dream: Dream) -> Generator[None]:
        """Plans and carries out what the memories of all projects need."""
        store, now = self._context.store, self.now()
        facts = yield from count_facts(store.read)
        promoting = self._context.config.settings.stages_promote
        yield from steps.carry_out_everywhere(
            store, dream, now=now, key=store.hash_key, facts=facts, promoting=promoting
        )

    def curate(self, dream: Dream) -> Generator[None]:
        """Carries out what is believed of the answers, and consolidates once more what came of it."""
        done = yield from curate.believe(self._context.store, dream, self._answered, now=self.now())
        self._answered = []
        if done:
            yield from self.consolidate(dream)

    def reselect(self, dream: Dream) -> Generator[None]:
        """Chooses old memories anew, after a backup; CsmdError where most would be archived and no person has confirmed."""
        store, task = self._context.store, self._task
        if not backup.has_room(self._context.config.paths.database):
            raise StoreError(
                "old memories are not chosen anew: there is no room for a backup", hint="free some space on that disk"
            )
        housekeeping.make_backup(self._context, None)
        yield
        plan = yield from reselection.plan_reselection(store.read, key=store.hash_key)
        if plan.needs_person and not (task and task.order["confirmed"]):
            store.write(dreams.mark_reselected)
            total = len(plan.kept) + len(plan.archived)
            raise CsmdError(
                f"choosing old memories anew would archive {len(plan.archived)} of {total}",
                hint="`csmd pipeline distill --again --dry-run` shows them; `csmd pipeline distill --again --yes` does it",
            )
        yield from reselection.carry_out(store, dream, plan, now=self.now(), key=store.hash_key)
        store.write(dreams.mark_reselected)

    def rewrite_pages(self) -> Iterator[None]:
        """Brings the pages that there are to say what is believed now, in no journal; nothing while another process dreams."""
        if not self._context.store.read(markdown_pages.pages) or self.lock.acquire(datetime.now(UTC)):
            return
        try:
            yield from self._write_pages(0)
        finally:
            self.lock.leave()

    def write_pages(self, dream: Dream) -> Generator[None]:
        """Writes the pages that changed, noted in the dream's journal."""
        yield from self._write_pages(dream.seq)
        yield

    def _write_pages(self, journal: int, *, only: Collection[str] | None = None) -> Generator[None]:
        store, now = self._context.store, self.now()
        facts = yield from count_facts(store.read)
        for _ in page_files.write(
            store, self._context.config.paths.memory, dream_seq=journal, now=now, only=only,
            facts=list(chain.from_iterable(facts.values())),
        ):  # fmt: skip
            yield  # page by page: others come first, and whoever lost the lock writes no more

    def archive_days(self, dream: Dream) -> Iterator[None]:
        """Moves old days into the archive."""
        paths, store = self._context.config.paths, self._context.store
        yield
        for _ in day_files.archive_days(store, paths.home, paths.memory, dream.seq, now=self.now(), here=self.here):
            yield

    def forget_old(self, _: Dream) -> Iterator[None]:
        """Forgets the journals of dreams that are too old to undo."""
        store, settings = self._context.store, self._context.config.settings
        history = store.read(lambda rows: dreams.history(rows, limit=dreams.ALL))
        days, hours = settings.dream_keep_days, settings.dream_every_h
        old = undo.find_outlived(history, now=self.now(), keep_days=days, every_h=hours)
        while store.write(lambda rows: dreams.forget(rows, old, most=FORGOTTEN)):
            yield
        yield

    # --- what the gates look at

    def _is_reselection_due(self) -> bool:
        """Whether the memories of an older csmd wait to be chosen anew."""
        if not (self._may_reselect and self._context.config.settings.stages_distill):
            return False

        def read(rows: Rows) -> tuple[bool, Dream | None]:
            return dreams.is_reselection_due(rows), next(iter(dreams.history(rows, limit=1)), None)

        self._may_reselect, last = self._context.store.read(read)
        # What failed for want of room, say, is not tried every minute.
        has_failed = last and last.why == AGAIN and last.state == "failed" and last.error != dreams.KILLED
        return self._may_reselect and not has_failed

    def _is_due(self, at: float) -> bool:
        """Whether all gates are open; reads the rows only when something was stored since, or the clock was set back."""
        commits, seen = self._context.store.commits, self._seen
        if seen is None or seen[0] != commits or self._counted_from(seen[1].last_at) != seen[1].last_at:
            seen = self._seen = commits, self._context.store.read(self._look)
        return self._ask_gates(seen[1], at).ok

    def _counted_from(self, last_at: str) -> str:
        return gates.counted_from(datetime.now(UTC), last_at, self._context.config.settings.dream_every_h)

    def _look(self, rows: Rows) -> GateFacts:
        done, undone = dreams.last(rows), dreams.last(rows, state="undone")
        latest = next(iter(dreams.history(rows, limit=1)), None)
        last_at, most = done.begun_at if done else "", self._context.config.settings.dream_tier_max
        crowded = dreams.crowded_tiers(rows, most=most) if most else []
        return GateFacts(
            now=datetime.now(UTC),
            last_at=last_at,
            failed_at=latest.ended_at if latest and latest.state == "failed" else "",
            # One that is done since has taken its place.
            undone_at=undone.undone_at if undone and last_at <= undone.undone_at else "",
            first_at=dreams.first_session(rows),
            sessions=dreams.sessions_since(rows, self._counted_from(last_at)),
            last_turn=dreams.last_turn(rows),
            crowded=tuple(f"{number:,} {tier} memories in {name}" for name, tier, number in crowded),
        )

    def _ask_gates(self, seen: GateFacts, at: float) -> Verdict:
        now = datetime.now(UTC)
        facts = replace(
            seen, now=now, calm_s=max(at - self._context.heard_at, 0.0), load=machine.load_per_core(),
            on_mains=machine.on_mains(), holder=self._holder(now),
        )  # fmt: skip
        return gates.ask_gates(self._context.config.settings, facts)

    def _holder(self, now: datetime) -> str:
        """Why the lock cannot be had, in words, "" if it can: another process has it, or its file is another user's."""
        try:
            holder = self.lock.holder(now)
        except CsmdError as error:
            return error.what
        return "" if holder is None or self.lock.is_mine() else _dreams_already(holder)


Step = Callable[[Dreaming, Dream], Iterator[None]]
#: What a dream does, in this order, by names that people are shown. What people edited is read back before anything is
#: planned, and what is changed goes into the markdown before the last steps.
STEPS: Mapping[str, Step] = {
    "reading what people edited": Dreaming.read_edits,
    "consolidating": Dreaming.consolidate,
    "noting what was answered": Dreaming.curate,
    "writing pages": Dreaming.write_pages,
    "archiving days": Dreaming.archive_days,
    "forgetting old dreams": Dreaming.forget_old,
}
AGAIN_STEPS: Mapping[str, Step] = {
    "reading what people edited": Dreaming.read_edits,
    AGAIN: Dreaming.reselect,
    "writing pages": Dreaming.write_pages,
}


def _dreams_already(holder: Holder) -> str:
    return f"{holder.named} dreams already"


def resume_dreams(context: Context) -> None:
    """Ends what a killed daemon left: a dream was broken off, and the next one plans anew; what was undone gets its files back."""
    store, home = context.store, context.config.paths.home
    store.write(lambda rows: dreams.fail_interrupted(rows, now=now_iso()))
    # Where the disk does not take them `csmd status` says so, and the next reading of the pages tries again.
    context.guard("undo", lambda: run_to_end(undo.finish(store, home=home, now=now_iso())))
