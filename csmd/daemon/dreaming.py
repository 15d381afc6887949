"""When to dream, the dream as a task, and reading back edited pages."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import socket
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from csmd import machine
from csmd.capture import instruction_files
from csmd.config import boot_id
from csmd.daemon import housekeeping, reading
from csmd.daemon.context import Context, Task, carry_out, iso, local_time, now_iso
from csmd.dream import daily, gates, page_edits, page_files, reselection, steps, undo
from csmd.dream.gates import Chosen, Holder, Seen, Verdict
from csmd.dream.undo import EDITED
from csmd.errors import ConfigError, CsmdError, StoreError
from csmd.exclusions import Pauses
from csmd.privacy.redaction import redact
from csmd.store import backup, dreams, files
from csmd.store.core import run_briefly, run_to_end
from csmd.store.dreams import Dream
from csmd.store.sqlite import Rows
from csmd.tools.dreams import count_facts, dream_json

MOST_BYTES = 4096
#: A mark that is older was left by one that was killed while it took over.
MARK_S = 60.0
#: Whoever loses looks again, at the one who won.
TRIES = 3
NOBODY_KNOWN = Holder(host="somebody", boot="", pid=0, start=0.0, beat="", token="")


class DreamLock:
    """Owns the dream lock while this process has it; `host` and `boot` are this machine's unless a test moves it.

    Its file says who dreams, beside the markdown, where every daemon that shares that directory sees it. One that is new
    is made with O_EXCL. A stale one is taken over under a mark that is named after the very holder that is given up, so
    that of two that try one wins. The file is known by its descriptor from then on: a heartbeat goes into what was taken
    and never into what took its place, and only what is one's own is removed.
    """

    def __init__(self, path: Path, *, host: str = "", boot: str | None = None) -> None:
        self.path = path
        self._host = host or socket.gethostname()
        self._boot = boot_id() if boot is None else boot
        self._descriptor = -1
        self._mine: Holder | None = None

    def holder(self, now: datetime) -> Holder | None:
        """Who holds it at `now`, None for nobody; a stale one is nobody, and so is a missing directory."""
        return self._judged(now)[0]

    def _judged(self, now: datetime) -> tuple[Holder | None, bytes | None]:
        """(who holds it, what its file says): (None, bytes) for a stale one, (None, None) where there is no file."""
        said, written = self._read()
        if said is None:
            return None, None
        found = gates.decode_holder(said)
        if found is None:  # somebody is at writing it, or it is none of ours
            return (NOBODY_KNOWN if gates.was_heard_of(iso(written), now) else None), said
        gone = gates.why_stale(found, host=self._host, boot=self._boot, started=machine.started, now=now)
        return (None if gone else found), said

    def take(self, now: datetime) -> Holder | None:
        """Takes it; None when it is ours, else who has it. ConfigError where it cannot be made or is not one's own."""
        with self._explained():
            directory(self.path.parent)
            for _ in range(TRIES):
                if self._create(now):
                    return None
                other, said = self._judged(now)
                if other is not None:
                    return other
                if said is not None and self._take_over(said, now):
                    return None
            return self.holder(now) or NOBODY_KNOWN

    def beat(self, now: datetime) -> bool:
        """A sign of life; False when the lock is not ours any more, and whoever dreams has to end."""
        if self._mine is None or not self.is_mine():
            return False
        self._mine = self._held(now, token=self._mine.token)
        try:
            os.pwrite(self._descriptor, gates.encode_holder(self._mine), 0)
            os.fsync(self._descriptor)
        except OSError:  # a shared folder from which the file is gone
            return False
        return self.is_mine()

    def is_mine(self) -> bool:
        """Whether the file is still the one that was taken here."""
        if self._descriptor < 0:
            return False
        try:
            mine, there = os.fstat(self._descriptor), self.path.stat(follow_symlinks=False)
        except OSError:
            return False
        return (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino)

    def leave(self) -> None:
        """Lets go of it; what is not ours any more stays."""
        if self._descriptor < 0:
            return
        try:
            if self.is_mine():
                with contextlib.suppress(OSError):
                    self.path.unlink()
        finally:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
            self._descriptor, self._mine = -1, None

    def _held(self, now: datetime, *, token: str) -> Holder:
        pid = os.getpid()
        return Holder(
            host=self._host, boot=self._boot, pid=pid, start=machine.start_token(pid), beat=iso(now), token=token
        )

    def _create(self, now: datetime) -> bool:
        try:
            descriptor = self._made(self.path)
        except FileExistsError:
            return False
        self._keep(descriptor, now)
        return True

    def _made(self, path: Path) -> int:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

    def _keep(self, descriptor: int, now: datetime) -> None:
        self._descriptor, self._mine = descriptor, self._held(now, token=secrets.token_hex(8))
        os.pwrite(descriptor, gates.encode_holder(self._mine), 0)
        os.fsync(descriptor)

    def _take_over(self, said: bytes, now: datetime) -> bool:
        """Puts a file of ours in the place of a stale one that said this; False when somebody else did, or is at it."""
        mark = self.path.with_name(f"{self.path.name}.over-{hashlib.sha256(said).hexdigest()[:12]}")
        try:
            mark.mkdir(mode=0o700)
        except FileExistsError:
            with contextlib.suppress(OSError):
                if abs(time.time() - mark.stat().st_mtime) > MARK_S:
                    mark.rmdir()
            return False
        temp = self.path.with_name(f"{self.path.name}.{secrets.token_hex(6)}.tmp")
        try:
            # Inside the mark nobody else replaces this very holder; whoever came first has done so already.
            if self._read()[0] != said:
                return False
            self._keep(self._made(temp), now)
            temp.replace(self.path)
            return True
        finally:
            temp.unlink(missing_ok=True)
            mark.rmdir()

    def _read(self) -> tuple[bytes | None, datetime]:
        """The file's content, None where there is none, and when it was written; ConfigError for what is not ours."""
        nothing = datetime.fromtimestamp(0).astimezone()
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return None, nothing
        except OSError as error:
            raise _not_ours(self.path) from error
        try:
            info = os.fstat(descriptor)
            if not stat.S_ISREG(info.st_mode) or info.st_uid != os.getuid():
                raise _not_ours(self.path)
            return os.read(descriptor, MOST_BYTES), datetime.fromtimestamp(info.st_mtime).astimezone()
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.leave()
            said = f"{error.filename or self.path}: {error.strerror or error}"
            raise ConfigError(said, hint=f"make {self.path.parent} writable and see that its disk has room") from error


def directory(path: Path) -> Path:
    """The memory directory, made and private; a link of the user's own, to a folder that machines share, is followed."""
    if path.is_symlink() and path.lstat().st_uid == os.getuid():
        return files.make_private(path.resolve())
    return files.make_private(path)


def _not_ours(path: Path) -> ConfigError:
    return ConfigError(f"{path} is not a file of yours", hint=f"move {path} away")


#: Settled is what has not changed for longer than the daemon takes to sweep the transcripts of those at work.
PAGES_LOOK_S, SETTLED_S = 60.0, 40.0
#: More pages than anybody reads; beyond it the next dream looks at all.
MOST_EDITED = 500


class Edited:
    """Owns the stamps by which a changed page is known; only the background thread uses it."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._next = 0.0
        self._seen: instruction_files.Stamp = ()
        self._read: instruction_files.Stamp = ()
        self._forgotten = True
        """Whether a line is to leave the pages; also where a daemon was killed before it could see to that."""

    def forget(self) -> None:
        """Says that a memory is no more, from any thread: its line leaves pages and days in the next step."""
        self._forgotten = True

    def step(self, now: float) -> bool:
        """Looks whether a page has changed, and reads those that have not changed since the look before."""
        if self._forgotten:
            self._forgotten = False
            try:
                if self._withdraw():
                    return True
            except OSError:
                self._forgotten = True  # until the disk takes it
                raise
        if now < self._next:
            return False
        self._next = now + PAGES_LOOK_S
        stamp = instruction_files.stamp(map(str, self._pages()))
        if stamp == self._read:
            return False
        if stamp != self._seen or self._context.backlog or self._context.somebody_waits():
            self._seen, self._next = stamp, now + SETTLED_S
            return False
        return self.read() > 0

    def _withdraw(self) -> int:
        """Takes what was forgotten out of all that csmd wrote, of the days some in a step; in how many places it was looked for."""
        store, directory = self._context.store, self._context.config.paths.memory
        days = daily.withdraw(store, directory, now=now_iso(), here=local_time)
        self._forgotten |= days > 0  # more may be left
        return page_files.withdraw(store, directory) + days

    def read_settled(self) -> int:
        """Reads them for a dream or an import, but not while one has just changed: who ran the tool that did is told soon."""
        since = time.time() - SETTLED_S
        for path in self._files():
            with suppress(OSError):
                if since < path.stat().st_ctime < since + 2 * SETTLED_S:
                    return 0
        return self.read()

    def read_at_once(self) -> Generator[None, None, int]:
        """Reads them for somebody who waits, behind what those at work have written into their transcripts by now."""
        context = self._context
        reading.sweep(context, full=False)
        for path in context.take_hints():
            while reading.look_at(context, path, most_pieces=1).more:
                yield
            yield
        return self.read()

    def read(self) -> int:
        """Reads what people did to the pages now; how many edits."""
        stamp = instruction_files.stamp(map(str, self._pages()))
        store, directory = self._context.store, self._context.config.paths.memory
        # What undoing a dream has left half done is no edit.
        run_to_end(undo.finish(store, home=self._context.config.paths.home, now=now_iso()))
        done = page_edits.step(store, directory, now=now_iso(), key=store.hash_key, pauses=self._away())
        self._read = stamp
        return done

    def _away(self) -> Pauses:
        """When nobody heard what tools wrote: in pauses, and when a session was last at work that the user leaves out."""
        spans = list(self._context.pauses().spans)
        for path in list(self._context.excluded):
            with suppress(OSError):
                last = datetime.fromtimestamp(path.stat().st_mtime, UTC)
                spans.append((iso(last), iso(last + timedelta(seconds=1))))
        return Pauses(tuple(spans))

    def _pages(self) -> list[Path]:
        return [*self._places(), *self._files()]

    def _files(self) -> list[Path]:
        found = (path for place in self._places() if place.is_dir() for path in sorted(place.glob("*.md")))
        return list(islice(found, MOST_EDITED))

    def _places(self) -> tuple[Path, ...]:
        directory = self._context.config.paths.memory
        return directory, directory / "projects", directory / "topics"


@dataclass(frozen=True, slots=True)
class Night:
    """What the steps of one dream share; `now` and `here` say what time it is, `awaited` whether somebody asked for it.

    With `confirmed` a person has agreed to what it does.
    """

    context: Context
    dream: Dream
    edited: Edited
    awaited: bool = False
    confirmed: bool = False
    now: Callable[[], str] = now_iso
    here: daily.Here = local_time


Step = Callable[[Night], Iterator[None]]
#: Actions of old dreams that one write forgets, with the pages that they wrote: hooks wait behind it.
FORGOTTEN = 50


def _read_edits(night: Night) -> Iterator[None]:
    if night.awaited:
        yield from night.edited.read_at_once()
    else:
        night.edited.read_settled()
    yield


def _write_pages(night: Night) -> Generator[None]:
    store, now = night.context.store, night.now()
    found = yield from count_facts(store.read, now=now)
    facts = [fact for here in found.values() for fact in here]
    directory = night.context.config.paths.memory
    for _ in page_files.write(store, directory, dream_seq=night.dream.seq, now=now, facts=facts):
        yield  # page by page: others come first, and whoever lost the lock writes no more
    yield


def rewritten(context: Context, edited: Edited, paths: Sequence[str]) -> Generator[None]:
    """Reads the edits of pages, by their paths below the home, and writes these pages as they should be now."""
    if not paths:
        return
    yield from edited.read_at_once()
    store, paths_of = context.store, context.config.paths
    found = yield from count_facts(store.read, now=now_iso())
    facts = [fact for here in found.values() for fact in here]
    only = {
        str((paths_of.home / path).relative_to(paths_of.memory))
        for path in paths
        if path.startswith(f"{paths_of.memory.name}/")
    }
    for _ in page_files.write(store, paths_of.memory, dream_seq=0, now=now_iso(), facts=facts, only=only):
        yield


def _consolidate(night: Night) -> Generator[None]:
    store, now = night.context.store, night.now()
    facts = yield from count_facts(store.read, now=now)
    promoting = night.context.config.settings.stages_promote
    yield from steps.carry_out_everywhere(
        store, night.dream, now=now, key=store.hash_key, facts=facts, promoting=promoting
    )


def _archive_days(night: Night) -> Iterator[None]:
    paths, seq, store = night.context.config.paths, night.dream.seq, night.context.store
    yield
    for _ in daily.archive_days(store, paths.home, paths.memory, seq, now=night.now(), here=night.here):
        yield


def _forget_old(night: Night) -> Iterator[None]:
    store, settings = night.context.store, night.context.config.settings
    known = store.read(lambda rows: dreams.history(rows, limit=dreams.ALL))
    old = undo.find_outlived(known, now=night.now(), keep_days=settings.dream_keep_days, every_h=settings.dream_every_h)
    while store.write(lambda rows: dreams.forget(rows, old, most=FORGOTTEN)):
        yield
    yield


def _choose_anew(night: Night) -> Generator[None]:
    """A copy of the database first; where most memories would be archived, nothing is done and a person is asked."""
    store, database = night.context.store, night.context.config.paths.database
    if not backup.has_room(database):
        raise StoreError(
            "old memories are not chosen anew: there is no room for a backup", hint="free some space on that disk"
        )
    housekeeping.make_backup(night.context, None)
    yield
    found = yield from reselection.plan_reselection(store.read, key=store.hash_key)
    if found.needs_person and not night.confirmed:
        store.write(dreams.mark_reselected)
        raise CsmdError(
            f"choosing old memories anew would archive {len(found.archived)} of {len(found.kept) + len(found.archived)}",
            hint="`csmd distill --again --dry-run` shows them; `csmd distill --again --yes` does it",
        )
    yield from reselection.carry_out(store, night.dream, found, now=night.now(), key=store.hash_key)
    store.write(dreams.mark_reselected)


#: Why a dream chooses old memories anew, and what such a one does in place of STEPS.
AGAIN = reselection.WHY
AGAIN_STEPS: Mapping[str, Step] = {
    "reading what people edited": _read_edits,
    AGAIN: _choose_anew,
    "writing pages": _write_pages,
}
#: What a dream does, in this order: a name that people are shown, and a generator that stops after each batch. What
#: people edited is read back before anything is planned, and what is changed goes into the markdown before the last step.
STEPS: Mapping[str, Step] = {
    "reading what people edited": _read_edits,
    "consolidating": _consolidate,
    "writing pages": _write_pages,
    "archiving days": _archive_days,
    "forgetting old dreams": _forget_old,
}
#: How often the gates are asked.
LOOK_S = 60.0
#: How often the lock says that its holder is alive; another host gives it up after an hour.
BEAT_S = 300.0
#: A session of which anything was heard so lately is at work.
AT_WORK_S = 20.0
#: A dream that somebody waits for has a moment so often, whoever else never stops asking for theirs.
SHARE_S = 0.25
WHEN = "`csmd dream status` says who dreams"


class Dreaming:
    """Owns the dream under way and its lock; the background thread steps it, others ask for one."""

    def __init__(self, context: Context, edited: Edited) -> None:
        self._edited = edited
        self._context = context
        self.lock = DreamLock(context.config.paths.dream_lock)
        self._job: Task | None = None
        """The dream that is to be, or is under way."""
        self._batches: Generator[None] | None = None
        self._is_awaited = False
        self._ordering = threading.Lock()
        self._went_on = time.monotonic()
        self._next_look = self._next_beat = 0.0
        self._reselection_due = True
        """Whether memories of an older csmd may wait to be chosen anew."""
        self._known: tuple[int, str, Seen] | None = None
        """What the rows said, of which number of commits, and since when sessions were new to it."""

    # --- from any thread

    @property
    def is_urgent(self) -> bool:
        """Whether somebody waits for the dream under way and no session is at work that it would slow down."""
        return self._job is not None and self._is_awaited and time.monotonic() - self._context.heard_at >= AT_WORK_S

    @property
    def is_under_way(self) -> bool:
        """Whether a dream is, or is to begin."""
        return self._job is not None

    @property
    def is_overdue(self) -> bool:
        """Whether somebody has waited for the dream under way while others had turn after turn."""
        return self._job is not None and self._is_awaited and time.monotonic() - self._went_on >= SHARE_S

    def alone_since(self, at: float) -> bool:
        """Whether a dream is under way and nothing was heard of a session since a monotonic time: what is new is its own."""
        return self._batches is not None and self._context.heard_at < at

    def order(self, why: str, *, awaited: bool, confirmed: bool = False) -> Task:
        """A dream as soon as may be; the one under way where there is one, which goes on at once when it is `awaited`."""
        with self._ordering:
            self._is_awaited = awaited or (self._job is not None and self._is_awaited)
            if self._job is None:
                self._went_on = time.monotonic()
                self._job = Task(kind="dream", order={"why": why, "confirmed": confirmed})
                self._context.list_task(self._job)
            job = self._job
        self._context.poke()
        return job

    def verdict(self, rows: Rows) -> Verdict:
        """What the gates say now."""
        now = datetime.now(UTC)
        return self._walk(self._asked(rows, self._since(rows, now)), now, time.monotonic())

    def shown(self, rows: Rows) -> dict[str, Any]:
        """What `csmd status` tells: the gates, the dream under way, the last that was done, the latest that has ended."""
        verdict, job, done = self.verdict(rows), self._job, dreams.last(rows)
        latest = next((one for one in dreams.history(rows, limit=2) if one.state != "running"), None)
        return {
            "due": verdict.ok,
            "verdict": verdict.words,
            "gates": [
                {"gate": answer.gate, "open": answer.is_open, "reason": answer.reason} for answer in verdict.answers
            ],
            "running": {"id": job.result.get("id", ""), **job.progress} if job else None,
            "last": dream_json(rows, done) if done else None,
            "latest": dream_json(rows, latest) if latest else None,
        }

    # --- on the background thread

    def step(self, at: float, *, idle: bool) -> bool:
        """A batch of the dream under way, or the next one's when it is due and the thread `idle`; whether it did any."""
        if self._job is None and idle and at >= self._next_look:
            self._next_look = at + LOOK_S
            if self._reselects():
                self.order(AGAIN, awaited=False)
            elif self._look(at).ok:
                self.order("by itself", awaited=False)
        if self._job is None:
            return False
        if at >= self._next_beat:
            self._next_beat = at + BEAT_S
            self.lock.beat(datetime.now(UTC))  # that it was lost, the dream's next batch finds
        if not self._is_awaited and at - self._context.heard_at < AT_WORK_S:
            return False
        self._batches = self._batches or carry_out(
            self._job, self.dream(self._job), log_file=self._context.config.paths.log_file
        )
        self._went_on = time.monotonic()
        if run_briefly(self._batches):
            self._batches = self._job = None
        return True

    def close(self) -> bool:
        """Ends the dream under way, which is cancelled by that; whether there was one."""
        under_way = self._batches is not None
        if self._batches is not None:
            self._batches.close()
        if self._job is not None:
            self._job.state, self._job.error = "failed", "the daemon is stopping"
        self._batches = self._job = None
        return under_way

    def dream(self, job: Task) -> Generator[None]:
        """The dream itself, a batch at a time; CsmdError when another one dreams, or took the lock meanwhile."""
        began, store = time.monotonic(), self._context.store
        if held := self._held(datetime.now(UTC)):
            raise CsmdError(held, hint=WHEN)
        dream = store.write(lambda rows: self._begin(rows, str(job.order["why"])))
        job.result["id"] = dream.id
        with self._ending(dream):
            if other := self.lock.take(datetime.now(UTC)):
                raise CsmdError(dreams_already(other), hint=WHEN)
            try:
                night = Night(
                    self._context,
                    dream,
                    self._edited,
                    awaited=self._is_awaited,
                    confirmed=bool(job.order.get("confirmed")),
                )
                for name, step in (AGAIN_STEPS if dream.why == AGAIN else STEPS).items():
                    job.progress.update(step=name)
                    for _ in step(night):
                        if not self.lock.is_mine():
                            raise CsmdError("the dream lock was taken over", hint=WHEN)
                        yield
            finally:
                self.lock.leave()
        done = store.read(lambda rows: dreams.change_counts(rows, dream.seq))
        job.result.update(state="done", done=done, changes=sum(done.values()))
        job.result.update(took_s=round(time.monotonic() - began, 3))

    def undo(self, job: Task) -> Generator[None]:
        """Takes a dream back and every one since, a few actions at a time; nobody writes the markdown meanwhile."""
        if other := self.lock.take(datetime.now(UTC)):
            raise CsmdError(dreams_already(other), hint=WHEN)
        job.progress.update(step="undoing")
        store, home = self._context.store, self._context.config.paths.home
        try:
            found = yield from undo.undo(store, str(job.order["dream"]), home=home, now=now_iso(), key=store.hash_key)
            # What somebody has edited since is kept: the lines beside the edit follow what is believed now.
            yield from rewritten(self._context, self._edited, [one.item for one in found.kept if one.why == EDITED])
        finally:
            self.lock.leave()
        job.result.update(
            dreams=store.read(lambda rows: [dream_json(rows, one) for one in found.dreams]), items=list(found.items), files=list(found.files),
            kept=[asdict(one) for one in found.kept],
        )  # fmt: skip

    def _begin(self, rows: Rows, why: str) -> Dream:
        """Notes the dream; whatever is still noted as running was killed, for this daemon alone dreams in this store."""
        dreams.fail_interrupted(rows, now=now_iso())
        if why == AGAIN and (broken_off := dreams.reopen(rows, why=why)):
            return broken_off
        sessions = dreams.sessions_since(rows, self._since(rows, datetime.now(UTC)))
        return dreams.begin(rows, why=why, sessions=sessions, now=now_iso())

    @contextmanager
    def _ending(self, dream: Dream) -> Iterator[None]:
        """Notes how a dream ended: it was done, cancelled as the daemon stops, or failed and why."""

        def end(state: dreams.State, error: str = "") -> None:
            self._context.store.write(lambda rows: dreams.end(rows, dream.seq, state=state, error=error, now=now_iso()))

        try:
            yield
        except GeneratorExit:
            end("cancelled")
            raise
        except Exception as error:
            end("failed", redact(error.what, Counter()) if isinstance(error, CsmdError) else type(error).__name__)
            raise
        end("done")

    def _reselects(self) -> bool:
        """Whether the memories of an older csmd wait to be chosen anew; asked of the rows until they do not."""
        if self._reselection_due and self._context.config.settings.stages_distill:
            failed = self._context.store.read(lambda rows: next(iter(dreams.history(rows, limit=1)), None))
            self._reselection_due = self._context.store.read(dreams.is_reselection_due)
            # What failed for want of room, say, is not tried every minute.
            lately = (
                failed is not None
                and failed.why == AGAIN
                and failed.state == "failed"
                and failed.error != dreams.KILLED
            )
            return self._reselection_due and not lately
        return False

    # --- what the gates look at

    def _look(self, at: float) -> Verdict:
        """What the gates say; the rows are asked only when something was stored since they were, or the clock was set."""
        store, now = self._context.store, datetime.now(UTC)
        commits, known = store.commits, self._known
        since = gates.counted_from(now, known[2].last_at, self._context.config.settings.dream_every_h) if known else ""
        if known is None or known[:2] != (commits, since):
            seen, since = store.read(lambda rows: (self._asked(rows, found := self._since(rows, now)), found))
            known = self._known = (commits, since, seen)
        return self._walk(known[2], now, at)

    def _since(self, rows: Rows, now: datetime) -> str:
        done = dreams.last(rows)
        return gates.counted_from(now, done.begun_at if done else "", self._context.config.settings.dream_every_h)

    def _asked(self, rows: Rows, since: str) -> Seen:
        done, undone = dreams.last(rows), dreams.last(rows, state="undone")
        latest = next(iter(dreams.history(rows, limit=1)), None)
        most = self._context.config.settings.dream_tier_max
        return Seen(
            now=datetime.now(UTC),
            last_at=done.begun_at if done else "",
            failed_at=latest.ended_at if latest and latest.state == "failed" else "",
            # One that is done since has taken its place.
            undone_at=undone.undone_at if undone and not (done and done.begun_at > undone.undone_at) else "",
            first_at=dreams.first_session(rows),
            sessions=dreams.sessions_since(rows, since),
            last_turn=dreams.last_turn(rows),
            crowded=tuple(
                f"{number:,} {tier} memories in {name}" for name, tier, number in dreams.crowded_tiers(rows, most=most)
            )
            if most
            else (),
        )

    def _walk(self, seen: Seen, now: datetime, at: float) -> Verdict:
        settings = self._context.config.settings
        chosen = Chosen(
            on=settings.stages_dream, every_h=settings.dream_every_h, sessions=settings.dream_sessions,
            quiet_min=settings.dream_quiet_min, on_battery=settings.dream_on_battery,
        )  # fmt: skip
        return gates.ask_gates(
            chosen,
            replace(
                seen, now=now, calm_s=max(at - self._context.heard_at, 0.0), load=machine.load_per_core(),
                on_mains=machine.on_mains(), holder=self._held(now),
            ),
        )  # fmt: skip

    def _held(self, now: datetime) -> str:
        """Why the lock cannot be had, in words: somebody has it, or its file is not one's own."""
        try:
            found = self.lock.holder(now)
        except CsmdError as error:
            return error.what
        return "" if found is None or self.lock.is_mine() else dreams_already(found)


def dreams_already(holder: Holder) -> str:
    """Who has the lock, for people."""
    return f"{holder.named} dreams already"


def resume_dreams(context: Context) -> None:
    """Ends what a killed daemon left: a dream was broken off, and the next one plans anew; what was undone gets its files back."""
    store, home = context.store, context.config.paths.home
    store.write(lambda rows: dreams.fail_interrupted(rows, now=now_iso()))
    # Where the disk does not take them `csmd status` says so, and the next reading of the pages tries again.
    context.guard("undo", lambda: run_to_end(undo.finish(store, home=home, now=now_iso())) > 0)
