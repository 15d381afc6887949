"""When the daemon dreams, and the dream as a job: its steps (dream_steps.py), a batch at a time, after all that is urgent.

The gates are asked once a minute while the steward is idle, the rows only when something was stored since. A dream
that begins by itself stands still while a session is at work, one that a person waits for rests then as long as each
batch took. Other jobs, hooks and hints come first in either case; beside hints that never end, one that is awaited has
its moment all the same. Whatever ends a dream, its row says how, and the lock is left.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

from csmd.capture.redact import redact
from csmd.daemon import machine
from csmd.daemon.context import Context
from csmd.daemon.dream_lock import DreamLock
from csmd.daemon.dream_steps import AGAIN, AGAIN_STEPS, STEPS, Night, rewritten
from csmd.daemon.edited import Edited
from csmd.daemon.job import Job, carried_out
from csmd.daemon.moments import a_moment, whole
from csmd.daemon.now import now_iso
from csmd.dream import gates, undo
from csmd.dream import undo as stage_undo
from csmd.dream.gates import Chosen, Holder, Seen, Verdict
from csmd.dream.undo import EDITED
from csmd.errors import CsmdError
from csmd.store import dreams, reselection
from csmd.store.dreams import Dream
from csmd.store.sqlite import Rows

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
    """Owns the dream under way and its lock; the steward's thread steps it, others ask for one."""

    def __init__(self, context: Context, edited: Edited) -> None:
        self._edited = edited
        self._context = context
        self.lock = DreamLock(context.config.paths.dream_lock)
        self._job: Job | None = None
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

    def order(self, why: str, *, awaited: bool, confirmed: bool = False) -> Job:
        """A dream as soon as may be; the one under way where there is one, which goes on at once when it is `awaited`."""
        with self._ordering:
            self._is_awaited = awaited or (self._job is not None and self._is_awaited)
            if self._job is None:
                self._went_on = time.monotonic()
                self._job = Job(id=secrets.token_hex(8), kind="dream", order={"why": why, "confirmed": confirmed})
                self._context.list_job(self._job)
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
            "last": told(rows, done) if done else None,
            "latest": told(rows, latest) if latest else None,
        }

    # --- on the steward's thread

    def step(self, at: float, *, idle: bool) -> bool:
        """A batch of the dream under way, or the next one's when it is due and the steward `idle`; whether it did any."""
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
        self._batches = self._batches or carried_out(
            self._job, self.dream(self._job), log_file=self._context.config.paths.log_file
        )
        self._went_on = time.monotonic()
        if a_moment(self._batches):
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

    def dream(self, job: Job) -> Generator[None]:
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

    def undo(self, job: Job) -> Generator[None]:
        """Takes a dream back and every one since, a few actions at a time; nobody writes the markdown meanwhile."""
        if other := self.lock.take(datetime.now(UTC)):
            raise CsmdError(dreams_already(other), hint=WHEN)
        job.progress.update(step="undoing")
        store, home = self._context.store, self._context.config.paths.home
        try:
            found = yield from stage_undo.undo(
                store, str(job.order["dream"]), home=home, now=now_iso(), key=store.hash_key
            )
            # What somebody has edited since is kept: the lines beside the edit follow what is believed now.
            yield from rewritten(self._context, self._edited, [one.item for one in found.kept if one.why == EDITED])
        finally:
            self.lock.leave()
        job.result.update(
            dreams=store.read(lambda rows: [told(rows, one) for one in found.dreams]), items=list(found.items), files=list(found.files),
            kept=[asdict(one) for one in found.kept],
        )  # fmt: skip

    def _begin(self, rows: Rows, why: str) -> Dream:
        """Notes the dream; whatever is still noted as running was killed, for this daemon alone dreams in this store."""
        dreams.interrupted(rows, now=now_iso())
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
            self._reselection_due = self._context.store.read(reselection.is_due)
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
                f"{number:,} {tier} memories in {name}" for name, tier, number in dreams.crowded(rows, most=most)
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
        return gates.walk(
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


def told(rows: Rows, dream: Dream) -> dict[str, Any]:
    """A dream for the rim, with how many actions of each kind it did."""
    return {
        "id": dream.id, "why": dream.why, "state": dream.state, "begun_at": dream.begun_at, "ended_at": dream.ended_at,
        "undone_at": dream.undone_at, "sessions": dream.sessions, "error": dream.error,
        "did": dreams.change_counts(rows, dream.seq),
    }  # fmt: skip


def resume(context: Context) -> None:
    """Ends what a killed daemon left: a dream was broken off, and the next one plans anew; what was undone gets its files back."""
    store, home = context.store, context.config.paths.home
    store.write(lambda rows: dreams.interrupted(rows, now=now_iso()))
    # Where the disk does not take them `csmd status` says so, and the next reading of the pages tries again.
    context.guard("undo", lambda: whole(undo.finish(store, home=home, now=now_iso())) > 0)
