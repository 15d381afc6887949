"""A scan as a job: what the rules of today would have kept out, wherever it stands; with `fix` it is taken out."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from csmd import wire
from csmd.capture import redact as redaction
from csmd.capture import transcripts as capture
from csmd.daemon import purging, replay
from csmd.daemon.context import Context
from csmd.daemon.job import Job
from csmd.errors import BadInput, StoreError
from csmd.store import purge, purge_files

#: Places that are listed one by one; the others are counted.
LISTED = 500
#: Lines of a transcript between two looks at what else is due.
LINES_AT_ONCE = 2000


def run(context: Context, job: Job) -> Iterator[None]:
    """Looks through the database, csmd's files and, when asked, the assistant's transcripts."""
    started = time.monotonic()
    fix, report = bool(job.order.get("fix")), _Report()
    if fix:
        replay.replay(context)
    for number, (table, column) in enumerate(purge.WAYS):
        job.progress.update(step="scanning", done=number, total=len(purge.WAYS))
        yield from _column(context, table, column, report, fix=fix)
    job.progress.update(step="files")
    _files(context, report, fix=fix)
    yield
    if fix and report.fixed:
        yield from purging.cleanse(context, job)
    if job.order.get("transcripts"):
        yield from _transcripts(context, job, report)
    job.result.update(
        secrets=sum(report.kinds.values()),
        kinds=dict(sorted(report.kinds.items())),
        found=report.found[:LISTED],
        more=max(0, len(report.found) - LISTED),
        fixed=report.fixed,
        transcripts=report.transcripts,
        degraded=report.degraded,
        took_s=round(time.monotonic() - started, 3),
    )


class _Report:
    """What a scan has found so far."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.found: list[dict[str, Any]] = []
        self.fixed = 0
        self.transcripts: list[dict[str, Any]] = []
        self.degraded: list[str] = []

    def add(self, secrets: list[purge_files.Secret], **where: str) -> None:
        """Notes what one text holds."""
        for secret in secrets:
            self.kinds[secret.kind] += secret.count
            self.found.append({**where, **asdict(secret)})


def _redact(said: str) -> tuple[str, dict[str, int]]:
    counts: Counter[str] = Counter()
    return redaction.redact(said, counts), dict(counts)


def _column(context: Context, table: str, column: str, report: _Report, *, fix: bool) -> Iterator[None]:
    way, _ = purge.WAYS[table, column]
    if way in purge.OF_PATHS:
        return  # paths of transcripts are kept as they are: a cursor has to find its file again
    store, key = context.store, context.store.hash_key
    after: int | None = 0
    while after is not None:
        purging.go_on(context)
        start = after
        part = store.read(lambda rows, start=start: purge.texts_after(rows, table, column, start))  # type: ignore[misc]
        for seq, said in part:
            redacted, kinds = _redact(said)
            if not kinds:
                continue
            ident, session = store.read(lambda rows, seq=seq: purge_files.place_of_secret(rows, table, seq))  # type: ignore[misc]
            secrets = purge_files.secrets_in(said, _redact, key)
            report.add(secrets, table=table, column=column, id=ident, session=session)
            if fix:
                store.write(
                    lambda rows, seq=seq, new=redacted: purge.change(  # type: ignore[misc]
                        rows, table, column, seq, new, key, in_place=True
                    )
                )
                report.fixed += 1
        after = part[-1][0] if part else None
        yield


def _files(context: Context, report: _Report, *, fix: bool) -> None:
    paths, key = context.config.paths, context.store.hash_key
    for path, way in purge_files.listed(paths.home, paths.log_dir):
        try:
            texts = (
                purge_files.texts_in(path) if way == "copy" else iter([path.read_bytes().decode("utf-8", "replace")])
            )
            found = [secret for said in texts for secret in purge_files.secrets_in(said, _redact, key)]
        except (StoreError, OSError):
            report.degraded.append(f"{path} could not be looked into")
            continue
        report.add(found, file=str(path))
    if fix:
        done = purge_files.change(paths.home, paths.log_dir, _hits)
        report.fixed += len(done.removed) + len(done.rewritten)


def _hits(said: str) -> tuple[str, int]:
    redacted, kinds = _redact(said)
    return redacted, sum(kinds.values())


def _transcripts(context: Context, job: Job, report: _Report) -> Iterator[None]:
    """Counts what the assistant's own transcripts hold, by decoded strings as when they are read."""
    listed = [path for root in context.roots() for path in capture.transcripts(root)]
    for number, path in enumerate(listed):
        job.progress.update(step="transcripts", done=number, total=len(listed))
        kinds: Counter[str] = Counter()
        with contextlib.suppress(OSError):
            for _ in _lines(path, kinds):
                purging.go_on(context)
                yield
        if kinds:
            report.transcripts.append({"path": str(path), "secrets": sum(kinds.values()), "kinds": dict(kinds)})
        yield


def _lines(path: Path, kinds: Counter[str]) -> Iterator[None]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            with contextlib.suppress(BadInput):
                redaction.redact_tree(wire.loads(line), kinds)
            if number % LINES_AT_ONCE == 0:
                yield
