"""A purge as a job: its tombstones first, then all they forbid, then the files; in the end every byte is looked at.

Nothing of the text is written anywhere: one that was killed is finished at the next start by its tombstones alone.
"""

from __future__ import annotations

import secrets
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from csmd import cache, wire
from csmd.capture.hosts import claude
from csmd.config import child_environment
from csmd.daemon import replay
from csmd.daemon.context import Context
from csmd.daemon.job import Job
from csmd.daemon.now import here, now_iso
from csmd.dream import daily
from csmd.errors import StoreError
from csmd.store import files, markdown_pages, purge, purge_files, tombstones
from csmd.store.purge import Plan
from csmd.store.purged import Needle

#: How long the search in files may take the steward's time before others have their turn.
SLICE_S = 0.2
#: Sessions whose ids are searched for in the assistant's files.
MOST_NAMES = 100
#: How often the write-ahead log is tried to be emptied while a reader is at work.
CLEANSE_TRIES = 50
Steps = Generator[None, None, dict[str, Any]]


def run(context: Context, job: Job) -> Iterator[None]:
    """Does a purge, or with `dry_run` says what it would do; without a plan it finishes one that was broken off."""
    started = time.monotonic()
    plan: Plan | None = job.order.get("plan")
    there: dict[str, Any] = {"hosts": [], "texts": []}
    if plan is not None:
        if not job.order.get("dry_run"):
            replay.replay(context)
        job.progress.update(step="transcripts")
        names = [] if plan.texts else (plan.sessions or plan.turns)[:MOST_NAMES]
        there = yield from _look(context, plan.texts or plan.probes, names, own=[], hosts=_host_places(context))
        counts = context.store.read(lambda rows: purge.plan_counts(rows, plan))
        job.result.update(what=plan.what, about=plan.about, counts=counts, hosts=there["hosts"])
        if job.order.get("dry_run"):
            copies = purge_files.copies(context.config.paths.home, context.config.paths.log_dir)
            job.result.update(
                places=context.store.read(lambda rows: purge.plan_places(rows, plan, seen=job.order["seen"])),
                backups=len(copies),
            )
            return
        found = (yield from _variants(context, job, plan)) | set(there["texts"] if plan.texts else ())
        key, now = context.store.hash_key, now_iso()
        context.store.write(lambda rows: purge.lay_down(rows, plan, sorted(found), key=key, now=now))
    yield from _honour(context, job)
    job.progress.update(step="files")
    job.result.update(_purge_files(context, plan))
    while daily.withdraw(context.store, context.config.paths.memory, now=now_iso(), here=here):
        yield
    yield from cleanse(context, job)
    context.store.write(purge.end)
    if plan is not None:
        job.progress.update(step="checking")
        left = yield from _look(context, plan.probes, [], own=_own_places(context), hosts=[])
        job.result.update(left=left["left"], took_s=round(time.monotonic() - started, 3))


def resume(context: Context) -> None:
    """Has a purge finished that was broken off."""
    if context.store.read(purge.is_unfinished):
        context.submit(Job(id=secrets.token_hex(8), kind="purge"))


def _variants(context: Context, job: Job, plan: Plan) -> Generator[None, None, set[str]]:
    """The texts as they stand in the store, in whole words: by these they are known when they come back."""
    needles = [Needle(said) for said in plan.texts]
    found: set[str] = set()
    for number, (table, column) in enumerate(purge.WAYS):
        job.progress.update(step="searching", done=number, total=len(purge.WAYS))
        after: int | None = 0
        while needles and after is not None:
            go_on(context)
            part = (needles, table, column, after)
            after, more = context.store.read(lambda rows, part=part: purge.variants(rows, *part))  # type: ignore[misc]
            found |= more
            yield
    return found


def _honour(context: Context, job: Job) -> Iterator[None]:
    key = context.store.hash_key
    for number, one in enumerate(purge.PASSES):
        job.progress.update(step="purging", done=number, total=len(purge.PASSES))
        after: int | None = 0
        while after is not None:
            go_on(context)
            after, _ = context.store.write(lambda rows, one=one, after=after: one(rows, key, after))  # type: ignore[misc]
            yield


def _purge_files(context: Context, plan: Plan | None) -> dict[str, Any]:
    paths, key = context.config.paths, context.store.hash_key
    marks = context.store.read(lambda rows: tombstones.marks(rows, key))
    needles = [Needle(said) for said in (plan.texts or plan.probes)] if plan else []
    everything = plan is None or plan.what != "text"

    def purged(kind: Literal["turn", "session", "memory"], names: Sequence[str]) -> set[str]:
        if kind == "memory":
            return set(context.store.read(lambda rows: markdown_pages.missing_lines(rows, names)))
        return set(context.store.read(lambda rows: tombstones.purged_names(rows, kind, names, key=key)))

    done = purge_files.purge(paths.home, paths.log_dir, marks, needles, purged=purged, everything=everything)
    return {"files_removed": done.removed, "files_rewritten": done.rewritten, "files_kept": done.kept}


def cleanse(context: Context, job: Job) -> Iterator[None]:
    """Rewrites the database file, which waits for whoever reads, and empties what functions keep of its texts."""
    job.progress.update(step="cleaning")
    for _ in range(CLEANSE_TRIES):
        go_on(context)
        if context.store.cleanse():
            cache.clear()
            return
        yield
    raise StoreError(
        "the write-ahead log could not be emptied: something reads the database all the time",
        hint="close what has csmd.db open, then `csmd restart`: the purge is finished by it",
    )


def go_on(context: Context) -> None:
    """Breaks off where the daemon is to end."""
    if context.stopping:
        raise StoreError("the daemon is stopping", hint="it goes on with this when it is started again")


def _own_places(context: Context) -> list[Path]:
    paths = context.config.paths
    outside = [paths.log_dir, paths.config_file, files.spool_places(paths.home)[1]]
    return [paths.home, *(path for path in outside if path.exists() and not path.is_relative_to(paths.home))]


def _host_places(context: Context) -> list[Path]:
    """Everything of the assistant's that may hold what was said."""
    return [path for folder in context.config.assistant_dirs for path in claude.places(folder) if path.exists()]


def _look(
    context: Context, texts: Sequence[str], names: Sequence[str], *, own: Sequence[Path], hosts: Sequence[Path]
) -> Steps:
    """Has another process search in files; what it says."""
    if not texts and not names:
        return {"left": [], "hosts": [], "texts": []}
    asked = {"texts": list(texts), "names": list(names), "own": [str(p) for p in own], "hosts": [str(p) for p in hosts]}
    command = [sys.executable, "-P", "-m", "csmd.store.byte_search"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=child_environment()) as child:
        said: bytes | None = wire.dumps(asked).encode("utf-8", "replace")
        while True:
            try:
                answer, _ = child.communicate(said, timeout=SLICE_S)
                break
            except subprocess.TimeoutExpired:
                said = None  # it was handed over
                if context.stopping:
                    child.kill()
                yield
    if child.returncode:
        go_on(context)
        raise StoreError("the search in files failed", hint="run it again")
    found: dict[str, Any] = wire.loads(answer)
    return found
