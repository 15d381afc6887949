"""Work that somebody waits for, as a value, and how it ends; a job says in its result's `degraded` what it could not do."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from csmd.errors import CsmdError
from csmd.text.display import amount

log = logging.getLogger(__name__)

#: What a job's line tells of its result.
RESULTS = (
    ("files", "file"), ("turns_new", "new turn"), ("memories_new", "new memory"), ("vectors", "vector"),
    ("secrets", "secret"), ("fixed", "place"), ("bytes", "byte"), ("dim", "dimension"), ("left", "trace"),
)  # fmt: skip


@dataclass(slots=True)
class Job:
    """Work somebody waits for; `progress` is for people, `result` for the caller."""

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
    id: str = field(default_factory=lambda: secrets.token_hex(8))


def carried_out(job: Job, work: Iterable[None], *, log_file: Path) -> Generator[None]:
    """Does a job, a batch for each step of the generator; its state says how it ended."""
    job.state = "running"
    try:
        yield from work
        job.state = "done"
    except CsmdError as error:
        job.error, job.hint, job.state = error.what, error.hint, "failed"
    except Exception as error:
        log.exception("job %s failed", job.kind)
        job.error, job.hint, job.state = f"a bug: {type(error).__name__}", f"see {log_file}", "failed"
    of_job(job)


def of_job(job: Job) -> None:
    """Writes how a job ended; nothing for a sync that found nothing new."""
    if job.state == "failed":
        log.warning("%s failed; whoever asked was told why", job.kind)
        return
    result: dict[str, Any] = job.result
    found = {name: len(value) if isinstance(value := result.get(name), list) else value for name, _ in RESULTS}
    parts = [amount(value, word) for name, word in RESULTS if isinstance(value := found[name], int) and value]
    if job.kind == "sync" and not (found["turns_new"] or found["memories_new"]):
        return
    took = f" in {result['took_s']:.1f} s" if "took_s" in result else ""
    log.info("%s: %s%s", job.kind, ", ".join(parts) or "done", took)
