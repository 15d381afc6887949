"""The stages that distil, believe and embed what the store holds, and the memory that they give back after a burst."""

from __future__ import annotations

import ctypes
import gc
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from csmd.cache import cached
from csmd.capture import project_identity
from csmd.daemon.context import Context, iso_before, local_time, now_iso
from csmd.daemon.dreaming import Dreaming
from csmd.daemon.scheduler import Turn
from csmd.dream import daily
from csmd.errors import StoreError
from csmd.extraction import digest, packets, statements
from csmd.memory import failure_links, habits, remember, self_model, speakers, topic_tagging, upkeep
from csmd.recall import checkpoint, threads, usage
from csmd.store import events, passages, vectors
from csmd.store.core import Store
from csmd.store.cursors import Behind
from csmd.text import prose

#: glibc's name for how many pools there may be.
M_ARENA_MAX = -8
#: Fewer commits are a day's work as it comes, and not a burst.
BURST_COMMITS = 500
#: Fewer than these leave nothing to give back.
FEW_COMMITS = 10


def ease(store: Store) -> None:
    """Gives memory back to the system after a burst of work: the daemon stays for weeks, and is asked for little.

    What SQLite keeps of pages for the next question and what the allocator keeps of freed memory would stay for good.
    """
    store.shrink()
    gc.collect()
    _trim()


def few_arenas() -> None:
    """Keeps the allocator to two pools: with one for each of a hundred threads freed memory is spread, and stays."""
    choose = _of_libc("mallopt")
    if choose is not None:
        choose(M_ARENA_MAX, 2)


def _trim() -> None:
    trim = _of_libc("malloc_trim")
    if trim is not None:
        trim(0)


@cached(16)
def _of_libc(name: str) -> ctypes._NamedFuncPointer | None:
    """A function of the allocator, where it has that: glibc does, others give freed memory back by themselves."""
    try:
        found: ctypes._NamedFuncPointer = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError):
        return None
    return found


#: How long a hook's turn waits for the transcript before it is judged.
PROVISIONAL_S = 120.0
#: Turns that one read or write looks at (each takes a millisecond at most), and such parts of a sweep.
LOOKED_AT, PARTS = 20, 10


class Awaited:
    """Owns the place from which the next sweep goes on; only the background thread uses it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._after = events.FIRST

    def close(self) -> bool:
        """Ends the wait of those that the transcript has passed by; whether there were any."""
        before = iso_before(PROVISIONAL_S)
        closed = False
        for _ in range(PARTS):
            closed |= self._part(before)
            if self._after == events.FIRST:
                break
        return closed

    def _part(self, before: str) -> bool:
        after = self._after
        over, self._after = self._store.read(
            lambda rows: events.expired_provisional(rows, before=before, after=after, most=LOOKED_AT)
        )
        return bool(over) and any(self._store.write(lambda rows: events.close_provisional(rows, over)))


#: A memory is embedded in parts of so many characters, at most so many; a passage is short enough to be one.
PART_CHARACTERS, MOST_PARTS = 1000, 12


def embed_waiting(context: Context, *, rows_at_once: int) -> int:
    """Embeds the next rows, memories before passages; 0 when nothing waits or no model is there."""
    store = context.store
    name = context.model_name()
    if name is None:
        return 0
    known = store.read(lambda rows: vectors.model_seq(rows, name))
    if not store.read(lambda rows: vectors.has_waiting(rows, known)):
        return 0
    if known is None:
        dim = len(context.embedder.embed(["dimension"], deadline_s=None)[0])
        known = store.write(lambda rows: vectors.ensure_model(rows, name, dim, now=now_iso()))
    model = known
    for kind in vectors.KINDS:
        waiting = store.read(lambda rows, kind=kind: vectors.backlog(rows, kind, model, limit=rows_at_once))  # type: ignore[misc]
        if waiting:
            _embed_rows(context, kind, model, waiting, texts_at_once=rows_at_once)
            return len(waiting)
    return 0


def _embed_rows(
    context: Context, kind: str, model: int, waiting: list[tuple[int, int, str]], *, texts_at_once: int
) -> None:
    parts = [(seq, project, *part) for seq, project, body in waiting for part in _parts(kind, body)]
    made: list[tuple[int, int, int, int, bytes]] = []
    for at in range(0, len(parts), texts_at_once):
        batch = parts[at : at + texts_at_once]
        found = context.embedder.embed([row[4] for row in batch], deadline_s=None)
        made += [(*row[:4], vector) for row, vector in zip(batch, found, strict=True)]
    reached, said = waiting[-1][0], {seq: body for seq, _, body in waiting}
    context.store.write(lambda rows: vectors.add(rows, kind, model, made, reached=reached, said=said))


def _parts(kind: str, body: str) -> list[tuple[int, int, str]]:
    """(start, end, what is embedded) of a row's parts: a passage's words stand in one line."""
    if kind == "passage":
        return [(0, len(body), " ".join(body.split()))]
    return [(start, end, body[start:end]) for start, end in prose.chunks(body, limit=PART_CHARACTERS)[:MOST_PARTS]]


#: How long a step goes on: what happens meanwhile waits so long at most.
SLICE_S = 0.2
#: What is left free on the disk besides.
FREE_BYTES = 100_000_000
MB = 1_000_000


class Reindex:
    """Owns the way of a store from an index of turns to one of passages; only the background thread uses it."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._needed = 0
        """Bytes that the index of passages will take, by that of turns; 0 while it was not looked at."""
        self._through = False

    def step(self) -> int:
        """Goes on for a moment, or until somebody waits; how many turns or parts were gone through."""
        total, until = 0, time.monotonic() + SLICE_S
        while not self._context.stopping and (done := self._part()):
            total += done
            if time.monotonic() >= until or self._context.somebody_waits():
                break
        return total

    def finish(self) -> Iterator[int]:
        """Gives every turn its passages, a part at a time, for who waits for it."""
        while done := self._part():
            yield done

    def _part(self) -> int:
        """One write; 0 when nothing is left to be done now. StoreError where the disk has no room for it."""
        if self._through:
            return 0
        store = self._context.store
        filled, until = store.read(passages.progress)
        if filled < until:
            if not filled:
                self._look_for_room()
            return store.write(passages.fill)
        name = self._context.model_name()
        if name is not None:
            model = store.read(lambda rows: vectors.model_seq(rows, name))
            if store.read(lambda rows: vectors.has_waiting(rows, model)):
                return 0
        done = store.write(passages.drop_turn_index)
        self._through = not done
        return done

    def _look_for_room(self) -> None:
        store = self._context.store
        self._needed = self._needed or store.read(passages.room_needed)
        free = shutil.disk_usage(store.path.parent).free
        if free < self._needed + FREE_BYTES:
            raise StoreError(
                f"past sessions are not indexed anew: that takes {(self._needed + FREE_BYTES) / MB:.0f} MB free on the disk "
                f"of {store.path.parent}, and {free / MB:.0f} MB are; search goes on as before, and it is tried again",
                hint="free some space on that disk",
            )


#: What the stages have left is looked at again so often, even where nothing was stored meanwhile.
LOOK_S = 300.0
#: And so often where one of them failed: a model that does not load, say, stays so for a while.
AGAIN_S = 30.0
#: While a dream is under way and no session at work, what others stored is gone through so often.
DREAMT_S = 5.0
#: A session with no turn for this long is not in the middle of one.
QUIET_S = 30.0
EMBED_TEXTS = 8
#: So often all stages go through what waits for who waits for them: one may find what a later one has written.
MOST_PASSES = 3


#: A part of what a stage has left, with whether what is still going on is to be looked at, too; how much was looked at.
Step = Callable[["Stages", bool], int]


def _checkpoints(stages: Stages, _: bool) -> int:
    settings = stages.context.config.settings
    days = settings.checkpoint_keep_days
    since = iso_before(days * 86_400) if days else ""
    return checkpoint.step(stages.store, since=since, distilling=settings.stages_distill)


def _gotchas(stages: Stages, force: bool) -> int:
    """One session that can be gone through: one that fails is told, and stands before no other."""
    now, looked = now_iso(), 0

    def look(session: Behind) -> bool:
        nonlocal looked
        looked = failure_links.go_through(stages.store, session, now=now)
        return True

    for session in failure_links.waiting(stages.store):
        if stages.context.guard("gotchas of session", partial(look, session), about=session.session_id, strict=force):
            return looked
    return failure_links.recheck_sessions(stages.store, now=now)


def _habits(stages: Stages, force: bool) -> int:
    """Without `force` a project in which somebody is at work, or a task reads, waits: it would be counted with every turn."""
    settings, now = stages.context.config.settings, now_iso()
    if not settings.stages_candidates:
        return 0
    quiet = "" if force else iso_before(QUIET_S)
    observed = packets.step(stages.store, now=now)
    if observed or stages.context.is_read_for_somebody:
        return observed
    return habits.step(stages.store, now=now, promoting=settings.stages_promote, quiet_before=quiet)


def _digests(stages: Stages, _: bool) -> int:
    if not stages.context.config.settings.stages_distill:
        return 0
    now = now_iso()
    return digest.step(stages.store, now=now) or self_model.step(stages.store, now=now)


def _daily(stages: Stages, _: bool) -> int:
    """A folder that nobody can write to is told in `csmd status`, and no sync fails by it."""
    done = 0

    def write() -> bool:
        nonlocal done
        done = daily.step(stages.store, stages.context.config.paths.memory, now=now_iso(), here=local_time)
        return done > 0

    if stages.context.config.settings.stages_daily:
        stages.context.guard("daily files", write)
    return done


def _uses(stages: Stages, _: bool) -> int:
    """Never sooner than the time of a receipt is over: what is not used yet may be."""
    answered, still, over = map(iso_before, (usage.LAG_S, usage.STILL_S, usage.OVER_S))
    return usage.step(stages.store, answered=answered, still=still, over=over)


def _topics(stages: Stages, force: bool) -> int:
    # A dream puts memories aside by the hundred: to look anew after every few would take longer than the dream.
    changing = bool(stages.context.backlog) or stages.dreaming.is_under_way
    return topic_tagging.step(stages.store, force=force, reading=changing)


#: What follows distillation, in this order: each reads what those before it have written.
AFTER_DISTILLING: Mapping[str, Step] = {
    # First, for it is asked for while a compaction is under way.
    "checkpoints": _checkpoints,
    "tool words": lambda stages, force: statements.tool_words_step(
        stages.store, quiet_before=iso_before(0 if force else QUIET_S)
    ),
    # Before memories are made: what is one project's is believed in one.
    "worktrees": lambda stages, _: project_identity.step(stages.store, now=now_iso()),
    "speakers": lambda stages, _: speakers.step(stages.store, now=now_iso()),
    "believe": lambda stages, _: remember.believe(stages.store)[0],
    "gotchas": _gotchas,
    "habits": _habits,
    "digests": _digests,
    "daily": _daily,
    "uses": _uses,
    "upkeep": lambda stages, _: upkeep.step(stages.store, now=now_iso()),
    "topics": _topics,
}
GUARDED = ("distill", *AFTER_DISTILLING, "passages", "embed", "threads")


class Stages:
    """Owns how far the stages have come; only the background thread uses it."""

    def __init__(self, context: Context, reindex: Reindex, dreaming: Dreaming) -> None:
        self.context, self.dreaming = context, dreaming
        self.store: Store = context.store
        self._reindex = reindex
        self._through = -1
        """The store's commits when every stage was through with it."""
        self._next_look = self._went = 0.0
        self._eased = 0
        self._open = False
        """Whether a session is left that somebody may be at work in."""

    def step(self, turn: Turn) -> bool:
        """Distils, believes and embeds what the store holds since they were through; whether it did any but embed."""
        now, at_task, guard = turn.now, turn.at_task, self.context.guard
        stored, began = self.store.commits, time.monotonic()
        if stored == self._through and now < self._next_look and not at_task:  # a task may bring a model
            return False
        if began < self._went + DREAMT_S and self.dreaming.alone_since(self._went) and not at_task:
            return False
        self._went = began
        self._open, rested = False, now >= self._next_look
        worked = guard("distill", lambda: self.distill() > 0)
        for name in AFTER_DISTILLING:
            worked |= guard(name, lambda name=name: self.carry(name) > 0)  # type: ignore[misc]
        if not at_task:  # a task embeds by itself, or was asked not to
            worked |= guard("passages", lambda: self._reindex.step() > 0)
            turn.embedded = guard("embed", lambda: self.embed_some() > 0)
            worked |= not turn.embedded and guard("threads", lambda: self.link_some() > 0)
        failed = any(what.startswith(GUARDED) for what in list(self.context.trouble))
        more = self.context.backlog or self.context.stopping
        through = not (at_task or worked or turn.embedded or self._open or more)
        # After a rest what was stored behind a burst's back goes back, too.
        if through and stored - self._eased > (FEW_COMMITS if rested else BURST_COMMITS):
            through = guard("easing", self._ease)
        self._through, self._next_look = stored if through else -1, now + (AGAIN_S if failed else LOOK_S)
        return worked

    def _ease(self) -> bool:
        ease(self.store)
        self._eased = self.store.commits
        return False  # which was a commit, and others may have come meanwhile

    def distill(self) -> int:
        """Distils what is decided, or a part of it when somebody waits; the number of statements."""
        found = 0
        for count in self.distilling(force=False):
            found += count
            if found and self.context.somebody_waits():
                break
        return found

    def distilling(self, *, force: bool) -> Iterator[int]:
        """Distils session by session what is decided; with `force` also a message somebody may still be at work on."""
        if not self.context.config.settings.stages_distill:
            return
        now, quiet = now_iso(), iso_before(QUIET_S)
        for session in statements.behind(self.store):
            if self.context.stopping:
                break
            if session.path in self.context.half_read or session.path in self.context.backlog:
                self._open = True  # how it goes on is known already, but not to the store
                continue
            if not force and self.context.waits_for_others(session):
                self._open = True
                continue
            # A last turn that is still to come (the clock was set back) would keep its session open until it has.
            settled = force or statements.is_settled(session, quiet_before=quiet) or session.last_at > now
            self._open |= not settled
            found = 0

            def one(session: Behind = session, settled: bool = settled) -> bool:
                nonlocal found
                found = statements.distill(self.store, session, settled=settled)
                return True

            self.context.guard("distilling session", one, about=session.session_id, strict=force)
            yield found

    def carry(self, name: str) -> int:
        """Has one stage go through all that waits, or a part of it when somebody waits; how much was looked at."""
        total = 0
        while not self.context.stopping and (looked := AFTER_DISTILLING[name](self, False)):
            total += looked
            if self.context.somebody_waits():
                break
        return total

    def settle(self) -> Iterator[int]:
        """Has all of them go through what waits until none finds anything; a step at a time, how much was looked at.

        While a session is at work there is always more: what was there at first is gone through, the rest follows in
        the background.
        """
        for passed in range(MOST_PASSES):
            found = 0
            for name, step in AFTER_DISTILLING.items():
                while looked := step(self, True):
                    found += looked
                    yield looked
                    # A day's file is written anew for each line of a session at work.
                    if (passed or name == "daily") and self.context.somebody_waits():
                        break
            if not found:
                return

    def embed_some(self) -> int:
        """Embeds one small batch: memories before passages; 0 when nothing waits or no model is there."""
        return embed_waiting(self.context, rows_at_once=EMBED_TEXTS)

    def link_some(self) -> int:
        """Links the next passages into their threads, after their vectors where a model is there; 0 when none waits."""
        return threads.step(self.store, model=self.context.model_name())
