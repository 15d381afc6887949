"""Everything `csmd status` shows; it answers whatever the database is like."""

from __future__ import annotations

import os
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import csmd
from csmd import wire
from csmd.capture.redact import redact
from csmd.config import started_by
from csmd.daemon import backups, hosts, status_known
from csmd.daemon.now import iso, now_iso
from csmd.daemon.steward import Steward
from csmd.daemon.usage import Meter
from csmd.daemon.watch import Watch
from csmd.errors import StoreError
from csmd.pauses import Pauses
from csmd.store import files
from csmd.store.sqlite import REPAIR_HINT, Rows

NO_MODEL = "vectors: no embedding model is installed, search is by words alone (csmd model fetch)"


def status(rows: Rows, steward: Steward, watch: Watch, meter: Meter, started: float) -> dict[str, Any]:
    """The daemon's state; `started` is monotonic."""
    context = steward.context
    config, store, embedder, model = context.config, context.store, context.embedder, context.model_name()
    database, now = config.paths.database, datetime.now(UTC)
    spooled = files.spooled_paths(config.paths.home)
    degraded = [redact(f"{what}: {trouble}", Counter()) for what, trouble in sorted(context.trouble.items())]
    try:
        known = status_known.known(rows, config, model, now=now, key=store.hash_key)
        known |= {"dream": steward.dreaming.shown(rows)}
    except StoreError as error:
        known = status_known.nothing()
        degraded.insert(0, f"database: {error.what}")
    if store.damage:
        degraded.insert(0, f"database: {store.damage}; nothing is taken in, hooks spool ({REPAIR_HINT})")
    if model is None:
        degraded.append(NO_MODEL)
    if watch.trouble:
        degraded.append(watch.trouble)
    return {
        "at": iso(now),
        "version": csmd.__version__,
        "proto": wire.PROTO,
        "home": str(config.paths.home),
        "alarms": steward.alarms.shown(),
        "service": started_by(),
        "daemon": {
            "pid": os.getpid(),
            "uptime_s": round(time.monotonic() - started, 1),
            **meter.usage(os.getpid()),
        },
        "worker": {"pid": embedder.pid, **meter.usage(embedder.pid)},
        "socket": (files.read_small(str(config.paths.endpoint)) or "").strip(),
        "model": {"name": model, "waiting": known["waiting"]},
        "counts": known["counts"],
        "memories": known["memories"],
        "counters": known["counters"],
        "corrected": known["corrected"],
        "excluded": {"events": known["counters"].get(hosts.EXCLUDED, 0), "transcripts": len(context.excluded)},
        "paused": paused(context.excludes.pauses(), now_iso()),
        "last_event": known["last_event"],
        "last_read": known["last_read"],
        "spool": _spool(spooled),
        "jobs": [
            {"kind": job.kind, "state": job.state, **job.progress}
            for job in list(context.jobs.values())
            if job.state in ("waiting", "running") and job.kind != "dream"
        ],
        "backfill": context.backlog.shown(),
        "projects": known["projects"],
        "live": known["live"],
        "told": known["told"],
        "dream": known["dream"],
        "watching": [str(root) for root in watch.roots],
        "transcripts": known["transcripts"],
        "clients": known["clients"],
        "pages": known["pages"],
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


def _spool(paths: list[Path]) -> dict[str, Any]:
    """How many events wait, and since when the first: its name begins with the time in ns."""
    oldest = paths[0].name[:16] if paths else ""
    try:
        moment = iso(datetime.fromtimestamp(int(oldest, 16) / 1e9, UTC)) if oldest else ""
    except (ValueError, OverflowError, OSError):
        moment = ""  # not a name that a hook gives
    return {"files": len(paths), "oldest": moment}


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
