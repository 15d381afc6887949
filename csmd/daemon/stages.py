"""Runs the stages that distil, believe, index and embed stored rows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from csmd import machine
from csmd.capture import whole_text
from csmd.daemon.context import Context, iso_before, now_iso, to_local_time
from csmd.daemon.dreaming import Dreaming
from csmd.dream import day_files
from csmd.embedding import token_counter
from csmd.extraction import digest, packets, statements
from csmd.memory import (
    failure_links,
    open_matters,
    promotion,
    remember,
    restatements,
    self_model,
    speakers,
    topic_tagging,
    upkeep,
)
from csmd.paths import is_file
from csmd.recall import checkpoint, threads, usage
from csmd.store import compactions, cursors, provisional_turns, turns, vectors
from csmd.store.core import Store, run_to_end
from csmd.store.sqlite import Rows
from csmd.text import prose
from csmd.vocabulary import QUIET_S

#: The stages run again after this time, even if nothing was stored.
RERUN_S = 300.0
#: The same if a stage failed (for example because a model does not load) or a session is active.
RERUN_SOON_S = 30.0
#: New rows wait for this long while a dream is running and no session is active.
DREAM_REST_S = 5.0
#: A turn reported by a hook waits for this long for the transcript before it is judged.
PROVISIONAL_TIMEOUT_S = 120.0
#: Provisional turns of one read or write, at up to a millisecond each.
PROVISIONAL_BATCH = 20
#: Batches of provisional turns in one sweep.
MAX_PROVISIONAL_BATCHES = 10
#: A task runs all stages this often: one may depend on rows that a later one writes.
MAX_PASSES = 3
#: Texts embedded at a time.
EMBED_TEXTS = 8
#: A longer memory is embedded in parts.
PART_CHARACTERS = 1000
#: Most parts of a memory.
MAX_PARTS = 12
#: A hook's query may wait for the tokens of these turns, counted in one request, and for no more characters than these.
BATCH_TURNS = 50
BATCH_CHARACTERS = 200_000
#: The tokens of a longer turn are not counted.
MAX_COUNTED_CHARACTERS = 4_000_000
#: The worker may have to load the tokenizer's data before it counts.
COUNT_TIMEOUT_S = 5.0
#: Load per core below which vectors are made on two cores; they cause a load of 1 per core themselves.
BUSY_LOAD = 1.5
#: A step of indexing, embedding or linking delays other work for this long.
SLICE_S = 0.2
#: Memory is freed after this many commits, and after a rest after fewer.
BURST_COMMITS = 500
IDLE_COMMITS = 10
#: The file of an active session is written this often in the background.
LIVE_FILE_EVERY_S = 60.0
#: Runs a part of a stage, given whether a task waits for all of it; returns how many rows it processed.
Step = Callable[["Stages", bool], int]


def _write_checkpoints(stages: Stages, _: bool) -> int:
    settings = stages.context.config.settings
    days = settings.checkpoint_keep_days
    since = iso_before(days * 86_400) if days else ""
    return checkpoint.step(stages.store, since=since, distilling=settings.stages_distill)


def _relate_failures(stages: Stages, force: bool) -> int:
    """Relates the failures of one session; a session that fails is shown in status and does not block others."""
    now = now_iso()
    for session in failure_links.find_pending(stages.store, stages.pace(force)):
        relate = partial(failure_links.relate_session, stages.store, session, now=now)
        about = session.session_id
        count = stages.context.guard("gotchas of session", relate, about=about, strict=force, is_stage=True)
        if count is not None:
            return count
    return failure_links.recheck_sessions(stages.store, now=now)


def _promote_habits(stages: Stages, force: bool) -> int:
    """Promotes the habits of a project; without `force` one with an active session waits until that is over.

    Otherwise it would be counted again with every turn.
    """
    settings, now = stages.context.config.settings, now_iso()
    if not settings.stages_candidates:
        return 0
    observed = packets.step(stages.store)
    if observed or stages.context.has_reading_task:
        return observed
    quiet_before = "" if force else iso_before(QUIET_S["stage"])
    return promotion.step(stages.store, now=now, promoting=settings.stages_promote, quiet_before=quiet_before)


def _write_digests(stages: Stages, force: bool) -> int:
    if not stages.context.config.settings.stages_distill:
        return 0
    return digest.step(stages.store, stages.pace(force)) or self_model.step(stages.store, now=now_iso())


def _write_days(stages: Stages, force: bool) -> int:
    """Writes the files of days; an unwritable directory is shown in status and does not fail a sync."""
    config = stages.context.config
    if not config.settings.stages_daily:
        return 0
    write = partial(
        day_files.update_files, stages.store, config.paths.memory, now=now_iso(), to_local=to_local_time,
        rest_s=0 if force else LIVE_FILE_EVERY_S,
    )  # fmt: skip
    return stages.context.guard("daily files", write, is_stage=True) or 0


def _judge_uses(stages: Stages, _: bool) -> int:
    """Judges only receipts whose time is over: later ones may still be used."""
    delays = usage.STORE_DELAY_S, usage.PROMPT_IDLE_S, usage.SESSION_IDLE_S
    answered, idle, start_idle = map(iso_before, delays)
    return usage.judge_due_receipts(stages.store, answered=answered, idle=idle, start_idle=start_idle)


def _tag_topics(stages: Stages, force: bool) -> int:
    # A dream archives hundreds of memories: retagging after every few would take longer than the dream.
    changing = bool(stages.context.backlog) or stages.dreaming.is_under_way
    return topic_tagging.step(stages.store, force=force, reading=changing)


#: The stages after distillation, in order: each reads rows that earlier ones have written.
AFTER_DISTILLING: Mapping[str, Step] = {
    "checkpoints": _write_checkpoints,  # first, because a compaction waits for it
    "tool words": lambda stages, force: statements.tool_words_step(
        stages.store, quiet_before=iso_before(0 if force else QUIET_S["stage"])
    ),
    "speakers": lambda stages, _: speakers.step(stages.store, now=now_iso()),
    "believe": lambda stages, _: remember.believe(stages.store)[0],
    "open matters": lambda stages, _: open_matters.step(stages.store, now=now_iso()),
    "gotchas": _relate_failures,
    "habits": _promote_habits,
    "digests": _write_digests,
    "daily": _write_days,
    "uses": _judge_uses,
    "upkeep": lambda stages, _: upkeep.step(stages.store, now=now_iso()),
    "topics": _tag_topics,
}


class StepResult(NamedTuple):
    """Whether a step embedded anything, and whether another stage did anything."""

    worked: bool
    embedded: bool


class Stages:
    """Owns the progress of the stages; only the background thread uses it."""

    def __init__(self, context: Context, dreaming: Dreaming) -> None:
        self.context, self.dreaming = context, dreaming
        self.store: Store = context.store
        #: The store's commits when every stage had finished, and when memory was freed last.
        self._done_commits, self._released_commits = -1, 0
        self._next_run = self._last_run = 0.0
        #: Whether a session was left for later because it may be active.
        self._has_open_session = False
        #: The sessions that were active when a task began, with their turns then.
        self._turns_at_begin: dict[int, int] = {}
        #: The provisional turn from which the next sweep continues.
        self._provisional = provisional_turns.START

    def restart(self) -> None:
        """Makes the next step run all stages, although nothing was stored: there is another model."""
        self._done_commits = -1

    def step(self, now: float, *, at_task: bool) -> StepResult:
        """Runs all stages if anything was stored since they finished."""
        guard, embedded = partial(self.context.guard, is_stage=True), False
        commits, began = self.store.commits, time.monotonic()
        has_rested = now >= self._next_run
        if not at_task:  # a task may bring a model
            is_resting = began < self._last_run + DREAM_REST_S and self.dreaming.is_alone_since(self._last_run)
            if is_resting or (commits == self._done_commits and not has_rested):
                return StepResult(worked=False, embedded=False)
        self._last_run = began
        self._has_open_session = False
        worked = bool(guard("distill", self.distill))
        for name in AFTER_DISTILLING:
            worked |= bool(guard(name, partial(self.run_stage, name)))
        if not at_task:  # a task embeds by itself, or is not to
            embedded = bool(guard("embed", partial(self._repeat, self.embed_some, SLICE_S)))
            later_stages = {"restatements": self.merge_some, "threads": self.link_some, "tokens": self.count_some}
            for name, batch in () if embedded else later_stages.items():
                worked |= bool(guard(name, partial(self._repeat, batch, SLICE_S)))
        is_busy = at_task or worked or embedded or self.context.is_stopping
        is_done = not (is_busy or self._has_open_session or self.context.backlog)
        # After a rest, memory used since the last burst is freed too.
        if is_done and commits - self._released_commits > (IDLE_COMMITS if has_rested else BURST_COMMITS):
            self.context.guard("freeing memory", self._release_memory)
            is_done = False  # that was a commit, and there may be others
        has_failed = any(key in self.context.trouble for key in self.context.stage_failures)
        # A part of an active session may have been left for later.
        reruns_soon = has_failed or bool(self.store.read(self._active_sessions))
        self._done_commits = commits if is_done else -1
        self._next_run = now + (RERUN_SOON_S if reruns_soon else RERUN_S)
        return StepResult(worked, embedded)

    @staticmethod
    def _active_sessions(rows: Rows) -> dict[int, int]:
        return cursors.list_sessions_at_work(rows, quiet_before=iso_before(QUIET_S["stage"]))

    def pace(self, force: bool) -> cursors.Pace:
        """Returns the sessions that may be processed whole.

        With `force` these include active sessions, up to the turns that they had when the task began.
        """
        at_begin = self._turns_at_begin if force else {}
        return cursors.Pace(quiet_before=iso_before(QUIET_S["stage"]), now=now_iso(), required=at_begin)

    def _release_memory(self) -> None:
        """Returns memory to the system: SQLite's page cache, and freed memory that the allocator would keep.

        The daemon runs for weeks and is idle most of the time.
        """
        self.store.shrink()
        machine.release_freed_memory()
        self._released_commits = self.store.commits

    def distill(self) -> int:
        """Distils settled sessions, or some of them if a client waits; returns the number of statements."""
        total = 0
        for count in self.distill_sessions(force=False):
            total += count
            if total and self.context.client_is_waiting():
                break
        return total

    def distill_sessions(self, *, force: bool) -> Iterator[int]:
        """Distils settled sessions one by one; with `force` also the last message of an active session."""
        if not self.context.config.settings.stages_distill:
            return
        now, quiet = now_iso(), iso_before(QUIET_S["stage"])
        for session in statements.list_behind(self.store):
            if self.context.is_stopping:
                break
            # The rest of a partly read session exists but is not in the store yet.
            is_partly_read = session.path in self.context.partly_read or session.path in self.context.backlog
            if is_partly_read or (not force and self.context.waits_for_others(session)):
                self._has_open_session = True
                continue
            # A last turn in the future (the clock was set back) would keep its session open until then.
            settled = force or statements.is_settled(session, quiet_before=quiet) or session.last_at > now
            self._has_open_session |= not settled
            distill = partial(statements.distill, self.store, session, settled=settled)
            about = session.session_id
            yield self.context.guard("distilling session", distill, about=about, strict=force, is_stage=True) or 0

    def run_stage(self, name: str) -> int:
        """Runs one stage on all waiting rows, or on some if a client waits; returns how many."""
        return self._repeat(partial(AFTER_DISTILLING[name], self, False))

    def _repeat(self, batch: Callable[[], int], slice_s: float = math.inf) -> int:
        """Runs batches until one finds nothing, a client waits or time is up; returns how many rows they processed."""
        total, until = 0, time.monotonic() + slice_s
        while not self.context.is_stopping and (count := batch()):
            total += count
            if time.monotonic() >= until or self.context.client_is_waiting():
                break
        return total

    def run_until_done(self) -> Iterator[int]:
        """Runs every stage until none has rows left; yields the number of rows after each step.

        An active session always adds more: the rows that existed at first are processed, the others in the background.
        """
        self._turns_at_begin = self.store.read(self._active_sessions)
        for number in range(MAX_PASSES):
            total = 0
            for name, step in AFTER_DISTILLING.items():
                while count := step(self, True):
                    total += count
                    yield count
                    # A day's file is rewritten for each line of an active session.
                    if (number or name == "daily") and self.context.client_is_waiting():
                        break
            if not total:
                return

    def embed_some(self) -> int:
        """Embeds the next rows, memories before passages; returns how many, 0 if none waits or there is no model."""
        store, name = self.store, self.context.model_name()
        if name is None:
            return 0
        model = store.read(lambda rows: vectors.find_model(rows, name))
        if not store.read(lambda rows: vectors.has_waiting(rows, model)):
            return 0
        if model is None:
            dim = len(self.context.embedder.embed(["dimension"], deadline_s=None)[0])
            model = store.write(lambda rows: vectors.ensure_model(rows, name, dim, now=now_iso()))
        for kind in vectors.VECTOR_KINDS:
            if waiting := store.read(partial(vectors.read_backlog, kind=kind, model=model, limit=EMBED_TEXTS)):
                self._embed(kind, model, waiting)
                return len(waiting)
        return 0

    def _embed(self, kind: str, model: int, waiting: list[tuple[int, int, str]]) -> None:
        parts = [(seq, project, *part) for seq, project, text in waiting for part in _split_text(kind, text)]
        embedded: list[tuple[int, int, int, int, bytes]] = []
        is_idle = not self.store.read(self._active_sessions) and (machine.load_per_core() or 0.0) < BUSY_LOAD
        on_two_cores = is_idle and machine.on_mains() is not False
        for start in range(0, len(parts), EMBED_TEXTS):
            batch = parts[start : start + EMBED_TEXTS]
            texts_of_batch = [text for *_, text in batch]
            batch_vectors = self.context.embedder.embed(texts_of_batch, deadline_s=None, on_two_cores=on_two_cores)
            embedded += [(*row[:4], vector) for row, vector in zip(batch, batch_vectors, strict=True)]
        reached, texts = waiting[-1][0], {seq: text for seq, _, text in waiting}
        self.store.write(lambda rows: vectors.add_vectors(rows, kind, model, embedded, reached=reached, texts=texts))

    def merge_some(self) -> int:
        """Merges the next memories that have vectors with restatements of them; returns how many it compared."""
        return restatements.step(self.store, model=self.context.model_name(), now=now_iso())

    def link_some(self) -> int:
        """Links the next passages into their threads, with a model after they have vectors; returns how many."""
        return threads.step(self.store, model=self.context.model_name())

    def count_some(self) -> int:
        """Counts the tokens of the next turns, of cut ones in their transcript; returns how many turns.

        No worker is started for it: one runs anyway when turns are embedded.
        """
        embedder, store = self.context.embedder, self.store
        if not embedder.ready or not is_file(token_counter.ranks_file(self.context.config.paths.models)):
            return 0
        waiting = store.read(partial(compactions.list_uncounted, limit=BATCH_TURNS, characters=BATCH_CHARACTERS))
        if not waiting:
            return 0
        cut = [turn for turn in waiting if turn.dropped]
        whole_texts = {turn.seq: text for turn in cut if (text := self._read_whole(turn.seq)) is not None}
        texts = [*(turn.text for turn in waiting), *whole_texts.values()]
        counts = embedder.count_tokens(texts, deadline_s=COUNT_TIMEOUT_S)
        if counts is None:
            return 0
        whole_counts = dict(zip(whole_texts, counts[len(waiting) :], strict=True))

        def record_counts(rows: Rows) -> None:
            for turn, tokens in zip(waiting, counts, strict=False):
                compactions.record_count(rows, turn, tokens, whole=whole_counts.get(turn.seq))

        store.write(record_counts)
        return len(waiting)

    def _read_whole(self, seq: int) -> str | None:
        """Returns the whole text of a cut turn in its transcript; None if it is missing or too long to be counted."""
        (turn,) = self.store.read(lambda rows: turns.find_cut(rows, [seq]))
        sources = self.store.read(partial(whole_text.find_sources, turn=turn, key=self.store.hash_key))
        text = run_to_end(whole_text.read_whole(turn, sources, excludes=self.context.excludes, is_thorough=False))
        return text if text is None or len(text) <= MAX_COUNTED_CHARACTERS else None

    # --- turns that only a hook reported

    def close_provisional(self) -> None:
        """Settles provisional turns that the transcript did not confirm in time, some in each sweep."""
        before = iso_before(PROVISIONAL_TIMEOUT_S)
        find_expired = partial(provisional_turns.list_expired_provisional, before=before, limit=PROVISIONAL_BATCH)
        for _ in range(MAX_PROVISIONAL_BATCHES):
            expired, self._provisional = self.store.read(partial(find_expired, after=self._provisional))
            if expired:
                self.store.write(partial(provisional_turns.close_provisional, seqs=expired))
            if self._provisional == provisional_turns.START:
                break


def _split_text(kind: str, text: str) -> list[tuple[int, int, str]]:
    """Returns (start, end, text to embed) of a row's parts: a passage is one part, on one line."""
    if kind == "passage":
        return [(0, len(text), " ".join(text.split()))]
    return [(start, end, text[start:end]) for start, end in prose.find_chunks(text, limit=PART_CHARACTERS)[:MAX_PARTS]]
