"""The report of `csmd status`: the daemon, its store and the assistants' transcripts."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import csmd
from csmd import machine, wire
from csmd.capture import ingest
from csmd.config import Config, started_by
from csmd.daemon import assistants_in_use, housekeeping, provider_tasks, secret_scan, team_exchange
from csmd.daemon.context import Context, to_iso
from csmd.daemon.jobs import Background
from csmd.daemon.transcript_watch import Watch
from csmd.dream import page_edits
from csmd.errors import StoreError
from csmd.hosts.adapters import CLAUDE
from csmd.paths import file_of_transcript, is_directory, is_there
from csmd.privacy.redaction import redact
from csmd.store import (
    activity,
    client_versions,
    files,
    keys,
    receipts,
    sessions,
    speaker_reviews,
    stored_secrets,
    turns,
    vectors,
)
from csmd.store.sqlite import REPAIR_HINT, Rows
from csmd.text.display import amount
from csmd.text.language import is_mostly_not_english
from csmd.tools.live_sessions import LIVE_S, list_live_sessions

SETTINGS_BYTES = 1_000_000
#: How many projects' own settings are read, latest first.
MAX_PROJECTS = 100
#: How many of the latest prompts show the user's language, by which a model is suggested.
MAX_PROMPTS = 100
#: How many of the latest sessions are searched for typed prompts.
MAX_PROMPT_SESSIONS = 10
#: The name of the model for many languages in `csmd model fetch`.
MULTILINGUAL_MODEL = "multilingual"


class DiskState(NamedTuple):
    """Days that transcripts are kept, by the assistant's directory and by project, and the sessions without a file."""

    days: dict[str, int]
    by_project: dict[str, int]
    missing: list[int]


def read_disk(
    folders: Sequence[str], roots: Iterable[str], paths: Iterable[tuple[int, str]], at: list[str]
) -> DiskState:
    """Reads directories, projects and transcripts; `at` holds the path being read, because a disk may never answer."""

    def note_path(place: str) -> str:
        at[:] = [place]
        return place

    days = {folder: _read_cleanup_days(note_path(folder)) for folder in folders}
    present_roots = [root for root in roots if root and is_directory(note_path(root))]
    by_project = {
        root: min(_read_cleanup_days(folder, note_path(root)) for folder in days) for root in present_roots if days
    }
    return DiskState(
        days, by_project, [seq for seq, path in paths if not is_there(file_of_transcript(note_path(path)))]
    )


def describe_transcripts(rows: Rows, on_disk: DiskState) -> dict[str, Any]:
    """The days after which transcripts are deleted, and how many were deleted."""
    usual_days = min(on_disk.days.values(), default=CLAUDE.days_kept("", "", lambda _: None))
    return {
        "days": usual_days,
        "by_directory": on_disk.days,
        "by_project": {root: number for root, number in on_disk.by_project.items() if number != usual_days},
        "sessions": len(sessions.list_transcript_paths(rows)),
        # Without a session that just started: the assistant writes its transcript a moment later.
        "gone": sessions.count_with_transcript(rows, on_disk.missing),
    }


def _read_cleanup_days(folder: str, project: str = "") -> int:
    return CLAUDE.days_kept(folder, project, lambda path: files.read_small(path, SETTINGS_BYTES))


DAY, WEEK = timedelta(days=1), timedelta(days=7)
MAX_LIVE_SESSIONS = 5


def read_figures(rows: Rows, config: Config, model: str | None, *, now: datetime, key: bytes) -> dict[str, Any]:
    """The store's figures at `now`; `model` is the embedding model's identity. StoreError if it cannot be read."""
    counters, elsewhere, path_read = activity.read_counters(rows), client_versions.list_other_directories(rows), [""]
    counted = activity.list_totals_by_host(rows)
    roots = [root for _, root, *_ in activity.project_counts(rows)[:MAX_PROJECTS]]
    paths, folders = sessions.list_transcript_paths(rows), [str(folder) for folder in config.assistant_dirs]
    disk_state = machine.run_bounded(
        lambda: (
            read_disk(folders, roots, paths, path_read),
            assistants_in_use.find_unread_directories(elsewhere, config, path_read),
            assistants_in_use.describe_hosts(config, counted),
        ),
        machine.DISK_S,
    )
    clients = assistants_in_use.describe_clients(rows, config, unread=disk_state[1] if disk_state else [])
    figures = housekeeping.describe_retention(rows, config.settings, counters)
    return {
        "waiting": vectors.count_waiting(rows, vectors.find_model(rows, model)) if model else 0,
        "counts": activity.read_tallies(rows),
        "memories": _count_memories(activity.count_by_gate_and_tier(rows)),
        "counters": counters,
        "corrected": speaker_reviews.count_corrected_speakers(rows, counters),
        "not_english": is_mostly_not_english(turns.list_latest_prompts(rows, limit=MAX_PROMPTS)),
        "prompts": _prompts_json(*sessions.count_typed(rows, latest=MAX_PROMPT_SESSIONS)),
        "last_event": activity.list_last_event_times(rows),
        "last_read": activity.find_last_read_time(rows),
        "live": list_live_sessions(rows, since=to_iso(now - timedelta(seconds=LIVE_S)), limit=MAX_LIVE_SESSIONS),
        "projects": [
            {"root": root, "name": title, "sessions": number, "memories": count, "last": last}
            for _, root, title, number, count, last in activity.project_counts(rows)
        ],
        "told": asdict(receipts.sum_usage_since(rows, to_iso(now - WEEK))),
        "transcripts": describe_transcripts(rows, disk_state[0]) if disk_state else None,
        "storage": {
            **figures,
            "growth": housekeeping.estimate_growth(
                activity.list_sizes(rows), used=figures["used_bytes"], today=now.astimezone(UTC).date()
            ),
        },
        "clients": clients,
        "hosts": disk_state[2] if disk_state else [],
        "pages": page_edits.report_pages(rows, config.paths.memory, key=key),
        "warnings": [
            *([] if disk_state else [f"{path_read[0]}: its file system does not answer (`df` shows which one hangs)"]),
            *housekeeping.list_retention_warnings(rows, config.settings),
            *assistants_in_use.list_client_warnings(clients, config),
            *secret_scan.list_secret_warnings(stored_secrets.found_secrets(rows)),
        ],
    }


def make_unknown_figures() -> dict[str, Any]:
    """The figures if the store cannot be read."""
    return {
        **dict.fromkeys(("corrected", "dream", "provider", "team", "transcripts", "clients", "pages")),
        "waiting": 0, "not_english": False, "counts": dict.fromkeys(dict(activity.COUNT_QUERIES), 0),
        "memories": _count_memories([]), "counters": {},
        "prompts": _prompts_json(0, 0), "last_event": {}, "last_read": "", "live": [], "projects": [], "hosts": [],
        "told": asdict(receipts.UseTotals(0, 0, 0, 0, 0)), "storage": {}, "warnings": [],
    }  # fmt: skip


def _prompts_json(prompted: int, typed: int) -> dict[str, int]:
    """How many of the latest sessions have prompts, and in how many a person typed one."""
    return {"sessions": prompted, "typed": typed}


def _count_memories(amounts: list[tuple[str, str, int]]) -> dict[str, dict[str, int]]:
    by_gate: Counter[str] = Counter()
    by_tier: Counter[str] = Counter()
    for gate, tier, count in amounts:
        by_gate[gate] += count
        by_tier[tier] += count
    return {"by_gate": dict(by_gate), "by_tier": dict(by_tier)}


#: The keys of the status, in this order.
STATUS_KEYS = (
    "at version proto home alarms service daemon worker socket model counts memories counters corrected prompts "
    "excluded encrypted paused last_event last_read spool jobs backfill projects live told dream provider team watching "
    "transcripts clients hosts pages storage log degraded"
)


def build_status(
    rows: Rows,
    background: Background,
    watch: Watch,
    meter: machine.Meter,
    started: float,
    *,
    paused: dict[str, str] | None,
) -> dict[str, Any]:
    """The daemon's state; `started` is monotonic."""
    context = background.context
    config, store, embedder, model = context.config, context.store, context.embedder, context.model_name()
    database, now = config.paths.database, datetime.now(UTC)
    degraded = _list_problems(context, watch, since=to_iso(now - DAY))
    try:
        figures = read_figures(rows, config, model, now=now, key=store.hash_key)
        figures["dream"] = background.dreaming.state(rows)
        figures["provider"] = provider_tasks.describe_provider(rows, config.settings, now=to_iso(now))
        figures["team"] = team_exchange.describe_team(rows)
    except StoreError as error:
        figures = make_unknown_figures()
        degraded.insert(bool(store.damage), f"database: {error.what}")
    state = {
        **figures,
        "at": to_iso(now),
        "version": csmd.__version__,
        "proto": wire.PROTO,
        "home": str(config.paths.home),
        "alarms": background.alarms.list_active(),
        "service": started_by(),
        "daemon": {"pid": os.getpid(), "uptime_s": round(time.monotonic() - started, 1), **meter.usage(os.getpid())},
        "worker": {"pid": embedder.pid, **meter.usage(embedder.pid)},
        "socket": (files.read_small(str(config.paths.endpoint)) or "").strip(),
        "model": {
            "name": model,
            "waiting": figures["waiting"],
            "suggested": MULTILINGUAL_MODEL if figures["not_english"] else "",
        },
        "excluded": {
            "events": figures["counters"].get(ingest.EXCLUDED_EVENTS, 0),
            "transcripts": len(context.excluded_paths),
        },
        "encrypted": store.is_encrypted,
        "paused": paused,
        "spool": _describe_spool(files.spooled_paths(config.paths.home)),
        "jobs": [
            {"kind": task.kind, "state": task.state, **task.progress}
            for task in list(context.tasks.values())
            if task.state in ("waiting", "running") and task.kind != "dream"
        ],
        "backfill": context.backlog.describe(),
        "watching": [str(root) for root in watch.roots],
        "storage": {
            "database_bytes": _file_size(database),
            "wal_bytes": _file_size(database.with_name(database.name + "-wal")),
            **figures["storage"],
            "commits": store.commits,
            **housekeeping.describe_backups(database),
        },
        "log": str(config.paths.log_file),
        "degraded": [*degraded, *figures["warnings"]],
    }
    return {name: state[name] for name in STATUS_KEYS.split()}


def _list_problems(context: Context, watch: Watch, *, since: str) -> list[str]:
    """The problems that the figures do not warn of; `since` is a day ago."""
    store = context.store
    problems = [f"database: {store.damage}; nothing is taken in, hooks spool ({REPAIR_HINT})"] if store.damage else []
    problems += [redact(f"{what}: {trouble}", Counter()) for what, trouble in sorted(context.trouble.items())]
    record = keys.read_record(context.config.paths.home)
    if (record is not None and record.encrypts_new_files) != store.is_encrypted:
        verb = "on" if record is not None and record.encrypts_new_files else "off"
        problems.append(f"encryption: it was interrupted; `csmd encrypt {verb}` finishes it")
    if watch.trouble:
        problems.append(watch.trouble)
    if late_hooks := context.lookups.count_late(since):
        problems.append(
            f"hooks: in the last day {amount(late_hooks, 'answer')} to a prompt or start came too late for an injection"
        )
    return problems


def _describe_spool(paths: list[Path]) -> dict[str, Any]:
    """How many events wait, and since when the oldest: its name begins with the time in ns."""
    oldest = paths[0].name[:16] if paths else ""
    try:
        moment = to_iso(datetime.fromtimestamp(int(oldest, 16) / 1e9, UTC)) if oldest else ""
    except (ValueError, OverflowError, OSError):
        moment = ""  # not the name of a hook's file
    return {"files": len(paths), "oldest": moment}


def _file_size(path: Path) -> int:
    return path.stat().st_size if is_there(path) else 0
