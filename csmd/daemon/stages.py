"""What the store holds and the stages have not gone through: statements, memories and vectors are made of it.

Nothing is asked where nothing was stored since: five questions every five seconds would be most of what an idle
daemon costs. A session that somebody may be at work in is looked at again at every step, what failed after a while.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from csmd.believe import stage as believe
from csmd.believe import stage_gotchas
from csmd.daemon import easing, embedding
from csmd.daemon.now import iso, now_iso
from csmd.distill import stage as distill
from csmd.store.cursors import Behind

if TYPE_CHECKING:
    from csmd.daemon.steward import Steward

#: What the stages have left is looked at again so often, even where nothing was stored meanwhile.
LOOK_S = 300.0
#: And so often where one of them failed: a model that does not load, say, stays so for a while.
AGAIN_S = 30.0
#: A session with no turn for this long is not in the middle of one.
QUIET_S = 30.0
EMBED_TEXTS = 8


class Stages:
    """Owns how far the stages have come; only the steward's thread uses it."""

    def __init__(self, steward: Steward) -> None:
        self._steward = steward
        self._through = -1
        """The store's commits when every stage was through with it."""
        self._next_look = 0.0
        self._eased = 0
        self._open = False
        """Whether a session is left that somebody may be at work in."""

    def go_through(self, now: float, *, at_job: bool) -> tuple[bool, bool]:
        """Distils, believes and embeds what the store holds since they were through; (whether it did, whether it embedded)."""
        stored = self._steward.store.commits
        if stored == self._through and now < self._next_look and not at_job:  # a job may bring a model
            return False, False
        self._open, rested = False, now >= self._next_look
        worked = self._steward.guard("distill", lambda: self.distill() > 0)
        worked |= self._steward.guard("believe", lambda: self.believe() > 0)
        worked |= self._steward.guard("gotchas", lambda: self.gotchas() > 0)
        # A job embeds by itself, or was asked not to.
        embedded = not at_job and self._steward.guard("embed", lambda: self.embed_some() > 0)
        failed = any(
            what.startswith(("distill", "believe", "gotchas", "embed")) for what in list(self._steward.trouble)
        )
        more = self._steward.backlog or self._steward.stopping
        through = not (at_job or worked or embedded or self._open or more)
        # After a rest what was stored behind a burst's back goes back, too.
        if through and stored - self._eased > (easing.FEW_COMMITS if rested else easing.BURST_COMMITS):
            through = self._steward.guard("easing", self._ease)
        self._through, self._next_look = stored if through else -1, now + (AGAIN_S if failed else LOOK_S)
        return worked, embedded

    def _ease(self) -> bool:
        easing.ease(self._steward.store)
        self._eased = self._steward.store.commits
        return False  # which was a commit, and others may have come meanwhile

    def distill(self) -> int:
        """Distils what is decided, or a part of it when somebody waits; the number of statements."""
        found = 0
        for count in self.distilling(force=False):
            found += count
            if found and self._steward.somebody_waits():
                break
        return found

    def distilling(self, *, force: bool) -> Iterator[int]:
        """Distils session by session what is decided; with `force` also a message somebody may still be at work on."""
        if not self._steward.config.settings.stages_distill:
            return
        now = datetime.now(UTC)
        quiet = iso(now - timedelta(seconds=QUIET_S))
        for session in distill.behind(self._steward.store):
            if self._steward.stopping:
                break
            if session.path in self._steward.half_read or session.path in self._steward.backlog:
                self._open = True  # how it goes on is known already, but not to the store
                continue
            if not force and self._steward.waits_for_others(session):
                self._open = True
                continue
            # A last turn that is still to come (the clock was set back) would keep its session open until it has.
            settled = force or distill.is_settled(session, quiet_before=quiet) or session.last_at > iso(now)
            self._open |= not settled
            found = 0

            def one(session: Behind = session, settled: bool = settled) -> bool:
                nonlocal found
                found = distill.distill(self._steward.store, session, settled=settled)
                return True

            self._steward.guard("distilling session", one, about=session.session_id, strict=force)
            yield found

    def believe(self) -> int:
        """Makes memories of every waiting statement, or of a part of them when somebody waits; the number looked at."""
        total = 0
        while not self._steward.stopping and (looked := self.believe_some()[0]):
            total += looked
            if self._steward.somebody_waits():
                break
        return total

    def believe_some(self) -> tuple[int, int]:
        """Makes memories of one batch of statements; (looked at, new)."""
        return believe.believe(self._steward.store)

    def gotchas(self) -> int:
        """Finds what failed and what belongs to it in all that waits, or a part of it when somebody waits; how much."""
        total = 0
        while not self._steward.stopping and (looked := self.gotchas_some()):
            total += looked
            if self._steward.somebody_waits():
                break
        return total

    def gotchas_some(self) -> int:
        """Goes through one session, or a few new memories, for what failed; 0 when nothing waits."""
        return stage_gotchas.step(self._steward.store, now=now_iso())

    def embed_some(self) -> int:
        """Embeds one small batch: memories before turns; 0 when nothing waits or no model is there."""
        return embedding.embed_some(self._steward, rows_at_once=EMBED_TEXTS)
