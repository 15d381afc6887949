"""Work that somebody waits for: an import, a sync, a model, a purge, a scan; done on the steward's thread, one at a time.

A job is a generator that stops after each batch, a piece of a transcript, a session or a few texts: between
two of them the steward takes in what happens meanwhile. A job says in its result's `degraded` what
it could not do; it fails only when it could not go on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from csmd.capture import transcripts
from csmd.capture import transcripts as capture
from csmd.daemon import backfill, backups, bringing, purging, scanning, summary
from csmd.daemon.backfill import Past
from csmd.errors import ConfigError, CsmdError, EmbeddingUnavailable, StoreError
from csmd.recall import threads
from csmd.store import activity, cursors, models, vectors

if TYPE_CHECKING:
    from csmd.daemon.steward import Steward

log = logging.getLogger(__name__)

NO_MODEL = "vectors: no embedding model is installed (csmd model fetch)"
FIRST_TEXT_S = 60.0
"""How long a new model may take to load."""


@dataclass(slots=True)
class Job:
    """Work somebody waits for; `progress` is for people, `result` for the caller."""

    id: str
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


def batches(steward: Steward, job: Job) -> Generator[None]:
    """Does a job, a batch for each step of the generator; its state says how it ended."""
    job.state = "running"
    try:
        if job.kind == "model":
            _use_model(steward, job)
        elif job.kind == "purge":
            yield from purging.run(steward, job)
        elif job.kind == "scan":
            yield from scanning.run(steward, job)
        elif job.kind == "dream":
            yield from steward.dreaming.dream(job)
        elif job.kind == "undo":
            yield from steward.dreaming.undo(job)
        elif job.kind == "backup":
            job.progress.update(step="copying")
            job.result.update(backups.make(steward, Path(job.path) if job.path else None))
        elif job.kind == "export":
            yield from bringing.write(steward, job)
        else:
            yield from _take_in(steward, job)
        job.state = "done"
    except CsmdError as error:
        job.error, job.hint, job.state = error.what, error.hint, "failed"
    except Exception as error:
        log.exception("job %s failed", job.kind)
        job.error, job.hint, job.state = (
            f"a bug: {type(error).__name__}",
            f"see {steward.config.paths.log_file}",
            "failed",
        )
    summary.of_job(job)


def _take_in(steward: Steward, job: Job) -> Iterator[None]:
    started = time.monotonic()
    before = _counts(steward)
    brought = job.kind == "import" and (yield from bringing.read(steward, job))
    paths = [] if brought else (yield from _read_all(steward, job))
    steward.instructed.sweep()
    # Whoever syncs has every transcript read by now; an import reads what is elsewhere.
    reading = steward.edited.read if job.kind == "sync" else steward.edited.read_settled
    steward.guard("pages", lambda: reading() > 0)
    job.progress.update(step="distilling")
    for _ in steward.stages.distilling(force=True):
        _go_on(steward)
        yield
    for _ in steward.stages.settle():
        _go_on(steward)
        yield
    if job.kind == "sync":
        yield from _reindex(steward, job)
    degraded = (yield from _embed_all(steward, job)) if job.with_vectors else []
    _go_on(steward)
    steward.store.checkpoint(truncate=True)
    after = _counts(steward)
    mine = {f"transcript {path}" for path in paths}
    troubled = [
        what for what in steward.trouble if what in mine or what.startswith(("distilling", "spooled", "passages"))
    ]
    job.result.update(
        memories_new=after["memories"] - before["memories"],
        vectors=after["vectors"] - before["vectors"],
        took_s=round(time.monotonic() - started, 3),
        degraded=[*(f"{what}: {steward.trouble[what]}" for what in sorted(troubled)), *degraded],
    )


def _counts(steward: Steward) -> dict[str, int]:
    return steward.store.read(activity.counts)


def _go_on(steward: Steward) -> None:
    if steward.stopping:
        raise StoreError("the daemon is stopping", hint="run it again when the daemon is up")


def _read_all(steward: Steward, job: Job) -> Generator[None, None, list[str]]:
    steward.replay_spool()
    sessions, later = _sessions(steward, job)
    total, files, bytes_all = transcripts.Tail(), 0, 0
    began = time.monotonic()
    for number, past in enumerate(sessions):
        project = past.project.rpartition("/")[2]
        job.progress.update(step="reading", done=number, total=len(sessions), project=project)
        for one in past.files:
            left = True
            while left:
                _go_on(steward)
                report = steward.look_at(Path(one.path), strict=True, most_pieces=1)
                for name in ("turns_new", "turns_known", "bad_lines", "redactions"):
                    setattr(total, name, getattr(total, name) + getattr(report, name))
                bytes_all += report.bytes_read
                left = report.more
                job.progress.update(bytes=bytes_all)
                yield
            steward.backlog.drop(one.path)
            files += 1
    _go_on(steward)
    job.progress.update(done=len(sessions), total=len(sessions))
    job.result.update(
        files=files,
        turns_new=total.turns_new,
        turns_known=total.turns_known,
        bad_lines=total.bad_lines,
        redactions=total.redactions,
    )
    if job.recent:
        steward.backlog.fill(later)
        # In the background there are rests between: until it is under way, that is its pace.
        steward.backlog.note(read=bytes_all, took_s=(time.monotonic() - began) * (1 + backfill.REST))
        job.result.update(left=steward.backlog.shown())
    return [one.path for past in sessions for one in past.files]


def _sessions(steward: Steward, job: Job) -> tuple[list[Past], list[Past]]:
    """What the job reads, and what of the rest has grown: that is left to the background."""
    if job.kind == "import":
        root = job.path if Path(job.path).is_dir() else str(Path(job.path).parent)
        return backfill.in_order(capture.listed(Path(job.path)), [root]), []
    roots = [str(root) for root in steward.roots()]
    known = steward.store.read(cursors.known_positions)
    found = {one.path: one for root in roots for one in capture.listed(Path(root))}
    for path in [*map(str, steward.take_hints()), *known]:
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


def _reindex(steward: Steward, job: Job) -> Iterator[None]:
    """Gives what was stored before passages its passages; what hinders it is told in `trouble`."""
    parts = steward.reindex.finish()
    done, left = 0, True

    def go_on() -> bool:
        nonlocal done, left
        left = False  # also where it fails
        made = next(parts, 0)
        done, left = done + made, made > 0
        return left

    while left:
        _go_on(steward)
        steward.guard("passages", go_on)
        job.progress.update(step="indexing", done=done)
        yield


def _embed_all(steward: Steward, job: Job) -> Generator[None, None, list[str]]:
    """Embeds what waits; what hindered it."""
    name = steward.model_name()
    if name is None:
        yield from _link_all(steward, job)
        return [NO_MODEL]
    model = steward.store.read(lambda rows: vectors.model_seq(rows, name))
    total = steward.store.read(lambda rows: vectors.left(rows, model))
    done = 0
    try:
        while not steward.stopping and (made := steward.stages.embed_some()):
            done += made
            job.progress.update(step="embedding", done=done, total=max(done, total))
            yield
    except EmbeddingUnavailable as error:
        return [f"vectors: {error.what}"]
    yield from _link_all(steward, job)
    return []


def _link_all(steward: Steward, job: Job) -> Generator[None]:
    """Links what waits into threads."""
    done, total = 0, steward.store.read(lambda rows: threads.waiting(rows, model=steward.model_name()))
    while not steward.stopping and (made := steward.stages.link_some()):
        done += made
        job.progress.update(step="linking", done=done, total=max(done, total))
        yield


def _use_model(steward: Steward, job: Job) -> None:
    """Copies a model in and works with it; here, so that no batch of the steward's is under way with the old one."""
    config = steward.config
    job.progress.update(step="copying")
    chosen = str(job.order.get("name", ""))
    directory = models.add_model(Path(job.path), config.paths.models, name=chosen or config.settings.embed_model)
    models.choose(config.paths.models, chosen)
    steward.embedder.use(directory)
    job.progress.update(step="loading")
    try:
        dim = len(steward.embedder.embed(["a first text"], deadline_s=FIRST_TEXT_S)[0])
    except EmbeddingUnavailable as error:
        raise ConfigError(f"the model in {job.path} does not load: {error.what}", hint=error.hint) from error
    job.result.update(model=models.model_identity(directory), dim=dim)
