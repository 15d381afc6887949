"""Everything `csmd status` shows; it answers whatever the database is like."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

import csmd
from csmd import wire
from csmd.capture.redact import redact
from csmd.config import Config
from csmd.daemon import backups, hosts, kept, retention
from csmd.daemon.now import now_iso
from csmd.errors import StoreError
from csmd.pauses import Pauses
from csmd.store import counts, files, vectors
from csmd.store.core import Store
from csmd.store.sqlite import REPAIR_HINT, Rows

if TYPE_CHECKING:
    from csmd.daemon.steward import Steward
    from csmd.daemon.watch import Watch
    from csmd.store.embed import Embedder

NO_MODEL = "vectors: no embedding model is installed, search is by words alone (csmd model fetch)"


def status(
    rows: Rows,
    config: Config,
    store: Store,
    embedder: Embedder,
    steward: Steward,
    watch: Watch,
    model: str | None,
    started: float,
) -> dict[str, Any]:
    """The daemon's state; `model` is the embedding model's identity, `started` monotonic."""
    database = config.paths.database
    spooled = files.spooled_paths(config.paths.home)
    degraded = [redact(f"{what}: {trouble}", Counter()) for what, trouble in sorted(steward.trouble.items())]
    try:
        known = _known(rows, config, model)
    except StoreError as error:
        known = _nothing()
        degraded.insert(0, f"database: {error.what}")
    if store.damage:
        degraded.insert(0, f"database: {store.damage}; nothing is taken in, hooks spool ({REPAIR_HINT})")
    if model is None:
        degraded.append(NO_MODEL)
    if watch.trouble:
        degraded.append(watch.trouble)
    return {
        "version": csmd.__version__,
        "proto": wire.PROTO,
        "home": str(config.paths.home),
        "daemon": {"pid": os.getpid(), "uptime_s": round(time.monotonic() - started, 1), **_usage(os.getpid())},
        "worker": {"pid": embedder.pid, **(_usage(embedder.pid) if embedder.pid else {})},
        "model": {"name": model, "waiting": known["waiting"]},
        "counts": known["counts"],
        "counters": known["counters"],
        "excluded": {"events": known["counters"].get(hosts.EXCLUDED, 0), "transcripts": len(steward.excluded)},
        "paused": paused(steward.excludes.pauses(), now_iso()),
        "last_event": known["last_event"],
        "spool": {"files": len(spooled), "oldest": spooled[0].name[:16] if spooled else ""},
        "jobs": [
            {"kind": job.kind, "state": job.state, **job.progress}
            for job in list(steward.jobs.values())
            if job.state in ("waiting", "running")
        ],
        "projects": [
            {"root": root, "name": title, "sessions": sessions, "memories": count, "last": last}
            for _, root, title, sessions, count, last in known["projects"]
        ],
        "watching": [str(root) for root in watch.roots],
        "transcripts": known["transcripts"],
        "storage": {
            "database_bytes": _size(database),
            "wal_bytes": _size(database.with_name(database.name + "-wal")),
            **known["storage"],
            "commits": store.commits,
            **backups.shown(database),
        },
        "log": str(config.paths.log_file),
        "degraded": [*degraded, *known["warnings"]],
    }


def paused(pauses: Pauses, now: str) -> dict[str, str] | None:
    """The pause that is on: since when and until when, "" until it is resumed; None when none is."""
    on = pauses.current(now)
    return {"since": on[0], "until": on[1]} if on else None


def _known(rows: Rows, config: Config, model: str | None) -> dict[str, Any]:
    """What the rows tell."""
    counters = counts.counters(rows)
    return {
        "waiting": vectors.left(rows, vectors.model_seq(rows, model)) if model else 0,
        "counts": counts.counts(rows),
        "counters": counters,
        "last_event": counts.last_event(rows),
        "projects": counts.projects(rows),
        "transcripts": kept.transcripts(rows, config),
        "storage": retention.figures(rows, config.settings, counters),
        "warnings": retention.warnings(rows, config.settings),
    }


def _nothing() -> dict[str, Any]:
    """What is told when no row can be read."""
    return {
        "waiting": 0,
        "counts": dict.fromkeys(dict(counts.COUNTED), 0),
        "counters": {},
        "last_event": {},
        "projects": [],
        "transcripts": None,
        "storage": {},
        "warnings": [],
    }


def _usage(pid: int) -> dict[str, float]:
    try:
        process = psutil.Process(pid)
        times = process.cpu_times()
        return {
            "rss_mb": round(process.memory_info().rss / 1e6, 1),
            "cpu_s": round(times.user + times.system, 2),
        }
    except psutil.Error:
        return {}


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
