"""Work that somebody waits for: an import, a sync, a model, a purge, a scan; done on the steward's thread, one at a time.

A job is a generator that stops after each batch, a piece of a transcript, a session or a few texts: between
two of them the steward takes in what happens meanwhile. A job says in its result's `degraded` what
it could not do; it fails only when it could not go on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from csmd.capture import transcripts
from csmd.capture import transcripts as capture
from csmd.daemon import backfill, backups, bringing, purging, reading, replay, scanning
from csmd.daemon.backfill import Past
from csmd.daemon.context import Context
from csmd.daemon.dreaming import Dreaming
from csmd.daemon.edited import Edited
from csmd.daemon.instructed import Instructed
from csmd.daemon.job import Job, carried_out
from csmd.daemon.reindex import Reindex
from csmd.daemon.stages import Stages
from csmd.errors import ConfigError, EmbeddingUnavailable, StoreError
from csmd.recall import threads
from csmd.store import activity, cursors, models, vectors

log = logging.getLogger(__name__)

NO_MODEL = "vectors: no embedding model is installed (csmd model fetch)"
FIRST_TEXT_S = 60.0
"""How long a new model may take to load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What jobs set to work besides the store."""

    instructed: Instructed
    edited: Edited
    reindex: Reindex
    stages: Stages
    dreaming: Dreaming


def batches(context: Context, parts: Parts, job: Job) -> Generator[None]:
    """Does a job, a batch for each step of the generator; its state says how it ended."""
    return carried_out(job, _work(context, parts, job), log_file=context.config.paths.log_file)


def _work(context: Context, parts: Parts, job: Job) -> Generator[None]:
    if job.kind == "model":
        _use_model(context, job)
    elif job.kind == "purge":
        yield from purging.run(context, job)
    elif job.kind == "scan":
        yield from scanning.run(context, job)
    elif job.kind == "undo":
        yield from parts.dreaming.undo(job)
    elif job.kind == "backup":
        job.progress.update(step="copying")
        job.result.update(backups.make(context, Path(job.path) if job.path else None))
    elif job.kind == "export":
        yield from bringing.write(context, job)
    else:
        yield from _take_in(context, parts, job)


def _take_in(context: Context, parts: Parts, job: Job) -> Iterator[None]:
    started = time.monotonic()
    before = _counts(context)
    brought = job.kind == "import" and (yield from bringing.read(context, job))
    paths = [] if brought else (yield from _read_all(context, job))
    parts.instructed.sweep()
    # Whoever syncs has every transcript read by now; an import reads what is elsewhere.
    reading = parts.edited.read if job.kind == "sync" else parts.edited.read_settled
    context.guard("pages", lambda: reading() > 0)
    job.progress.update(step="distilling")
    for _ in parts.stages.distilling(force=True):
        _go_on(context)
        yield
    for _ in parts.stages.settle():
        _go_on(context)
        yield
    if job.kind == "sync":
        yield from _reindex(context, parts.reindex, job)
    degraded = (yield from _embed_all(context, parts, job)) if job.with_vectors else []
    _go_on(context)
    context.store.checkpoint(truncate=True)
    after = _counts(context)
    mine = {f"transcript {path}" for path in paths}
    troubled = [
        what for what in context.trouble if what in mine or what.startswith(("distilling", "spooled", "passages"))
    ]
    job.result.update(
        memories_new=after["memories"] - before["memories"],
        vectors=after["vectors"] - before["vectors"],
        took_s=round(time.monotonic() - started, 3),
        degraded=[*(f"{what}: {context.trouble[what]}" for what in sorted(troubled)), *degraded],
    )


def _counts(context: Context) -> dict[str, int]:
    return context.store.read(activity.counts)


def _go_on(context: Context) -> None:
    if context.stopping:
        raise StoreError("the daemon is stopping", hint="run it again when the daemon is up")


def _read_all(context: Context, job: Job) -> Generator[None, None, list[str]]:
    replay.replay(context)
    sessions, later = _sessions(context, job)
    total, files, bytes_all = transcripts.Tail(), 0, 0
    began = time.monotonic()
    for number, past in enumerate(sessions):
        project = past.project.rpartition("/")[2]
        job.progress.update(step="reading", done=number, total=len(sessions), project=project)
        for one in past.files:
            left = True
            while left:
                _go_on(context)
                report = reading.look_at(context, Path(one.path), strict=True, most_pieces=1)
                for name in ("turns_new", "turns_known", "bad_lines", "redactions"):
                    setattr(total, name, getattr(total, name) + getattr(report, name))
                bytes_all += report.bytes_read
                left = report.more
                job.progress.update(bytes=bytes_all)
                yield
            context.backlog.drop(one.path)
            files += 1
    _go_on(context)
    job.progress.update(done=len(sessions), total=len(sessions))
    job.result.update(
        files=files,
        turns_new=total.turns_new,
        turns_known=total.turns_known,
        bad_lines=total.bad_lines,
        redactions=total.redactions,
    )
    if job.recent:
        context.backlog.fill(later)
        # In the background there are rests between: until it is under way, that is its pace.
        context.backlog.note(read=bytes_all, took_s=(time.monotonic() - began) * (1 + backfill.REST))
        job.result.update(left=context.backlog.shown())
    return [one.path for past in sessions for one in past.files]


def _sessions(context: Context, job: Job) -> tuple[list[Past], list[Past]]:
    """What the job reads, and what of the rest has grown: that is left to the background."""
    if job.kind == "import":
        root = job.path if Path(job.path).is_dir() else str(Path(job.path).parent)
        return backfill.in_order(capture.listed(Path(job.path)), [root]), []
    roots = [str(root) for root in context.roots()]
    known = context.store.read(cursors.known_positions)
    found = {one.path: one for root in roots for one in capture.listed(Path(root))}
    for path in [*map(str, context.take_hints()), *known]:
        if path not in found and (one := capture.look(path)):
            found[path] = one
    sessions = backfill.in_order(found.values(), roots)
    if not job.recent:
        return sessions, []
    grown = {one.path for one in found.values() if capture.has_grown(one, known)}
    later = [replace(past, files=tuple(one for one in past.files if one.path in grown)) for past in sessions]
    return (
        [past for past in sessions if past.rank < job.recent],
        [past for past in later if past.rank >= job.recent and past.files],
    )


def _reindex(context: Context, reindex: Reindex, job: Job) -> Iterator[None]:
    """Gives what was stored before passages its passages; what hinders it is told in `trouble`."""
    parts = reindex.finish()
    done, left = 0, True

    def go_on() -> bool:
        nonlocal done, left
        left = False  # also where it fails
        made = next(parts, 0)
        done, left = done + made, made > 0
        return left

    while left:
        _go_on(context)
        context.guard("passages", go_on)
        job.progress.update(step="indexing", done=done)
        yield


def _embed_all(context: Context, parts: Parts, job: Job) -> Generator[None, None, list[str]]:
    """Embeds what waits; what hindered it."""
    name = context.model_name()
    if name is None:
        yield from _link_all(context, parts, job)
        return [NO_MODEL]
    model = context.store.read(lambda rows: vectors.model_seq(rows, name))
    total = context.store.read(lambda rows: vectors.left(rows, model))
    done = 0
    try:
        while not context.stopping and (made := parts.stages.embed_some()):
            done += made
            job.progress.update(step="embedding", done=done, total=max(done, total))
            yield
    except EmbeddingUnavailable as error:
        return [f"vectors: {error.what}"]
    yield from _link_all(context, parts, job)
    return []


def _link_all(context: Context, parts: Parts, job: Job) -> Generator[None]:
    """Links what waits into threads."""
    done, total = 0, context.store.read(lambda rows: threads.waiting(rows, model=context.model_name()))
    while not context.stopping and (made := parts.stages.link_some()):
        done += made
        job.progress.update(step="linking", done=done, total=max(done, total))
        yield


def _use_model(context: Context, job: Job) -> None:
    """Copies a model in and works with it; here, so that no batch of the steward's is under way with the old one."""
    config = context.config
    job.progress.update(step="copying")
    chosen = str(job.order.get("name", ""))
    directory = models.add_model(Path(job.path), config.paths.models, name=chosen or config.settings.embed_model)
    models.choose(config.paths.models, chosen)
    context.embedder.use(directory)
    job.progress.update(step="loading")
    try:
        dim = len(context.embedder.embed(["a first text"], deadline_s=FIRST_TEXT_S)[0])
    except EmbeddingUnavailable as error:
        raise ConfigError(f"the model in {job.path} does not load: {error.what}", hint=error.hint) from error
    job.result.update(model=models.model_identity(directory), dim=dim)
