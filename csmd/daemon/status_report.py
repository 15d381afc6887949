"""The report of `csmd status`: the daemon, its store and the assistants' transcripts."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import csmd
from csmd import machine, wire
from csmd.capture import ingest
from csmd.config import Config, Settings, started_by
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
    compactions,
    files,
    keys,
    receipts,
    sessions,
    speaker_reviews,
    stored_secrets,
    text_retention,
    turns,
    vectors,
)
from csmd.store.sqlite import REPAIR_HINT, Rows
from csmd.text.display import amount
from csmd.text.language import is_mostly_not_english
from csmd.tools.live_sessions import LIVE_S, list_live_sessions
from csmd.tools.maintenance import list_backup_files

SETTINGS_BYTES = 1_000_000
#: Most projects whose own settings are read, the latest first.
MAX_PROJECTS = 100
#: Latest prompts that show the user's language, by which a model is suggested.
MAX_PROMPTS = 100
#: Latest sessions that are searched for typed prompts.
MAX_PROMPT_SESSIONS = 10
MAX_LIVE_SESSIONS = 5
#: Growth is the average over this many days at most.
MAX_GROWTH_DAYS = 14
#: Hexadecimal digits of the time (ns) with which the name of a spooled event begins.
SPOOL_TIME_DIGITS = 16
DAY, WEEK = timedelta(days=1), timedelta(days=7)
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

    def note_path(path: str) -> str:
        at[:] = [path]
        return path

    days = {folder: _read_cleanup_days(note_path(folder)) for folder in folders}
    present = [root for root in roots if root and days and is_directory(note_path(root))]
    by_project = {root: min(_read_cleanup_days(folder, note_path(root)) for folder in days) for root in present}
    missing = [seq for seq, path in paths if not is_there(file_of_transcript(note_path(path)))]
    return DiskState(days, by_project, missing)


def describe_transcripts(rows: Rows, on_disk: DiskState) -> dict[str, Any]:
    """Returns the days after which transcripts are deleted, and how many were deleted."""
    usual_days = min(on_disk.days.values(), default=CLAUDE.days_kept("", "", lambda _: None))
    return {
        "days": usual_days, "by_directory": on_disk.days,
        "by_project": {root: number for root, number in on_disk.by_project.items() if number != usual_days},
        "sessions": len(sessions.list_transcript_paths(rows)),
        # Without a session that just started: the assistant writes its transcript a moment later.
        "gone": sessions.count_with_transcript(rows, on_disk.missing),
    }  # fmt: skip


def _read_cleanup_days(folder: str, project: str = "") -> int:
    return CLAUDE.days_kept(folder, project, lambda path: files.read_small(path, SETTINGS_BYTES))


def read_figures(rows: Rows, config: Config, model: str | None, *, now: datetime, key: bytes) -> dict[str, Any]:
    """Returns the store's figures at `now`; StoreError if the store cannot be read.

    `model` is the embedding model's identity.
    """
    counters, elsewhere, path_read = activity.read_counters(rows), client_versions.list_other_directories(rows), [""]
    counted = activity.list_totals_by_host(rows)
    roots = [root for _, root, *_ in activity.project_counts(rows)[:MAX_PROJECTS]]
    paths, folders = sessions.list_transcript_paths(rows), [str(folder) for folder in config.assistant_dirs]
    read_all = lambda: (  # noqa: E731
        read_disk(folders, roots, paths, path_read),
        assistants_in_use.find_unread_directories(elsewhere, config, path_read),
        assistants_in_use.describe_hosts(config, counted),
    )
    disk_state = machine.run_bounded(read_all, machine.DISK_S)
    clients = assistants_in_use.describe_clients(rows, config, unread=disk_state[1] if disk_state else [])
    storage = describe_retention(rows, config.settings, counters)
    growth = estimate_growth(activity.list_sizes(rows), used=storage["used_bytes"], today=now.astimezone(UTC).date())
    return {
        "waiting": vectors.count_waiting(rows, vectors.find_model(rows, model)) if model else 0,
        "counts": activity.read_tallies(rows), "counters": counters,
        "memories": _count_memories(activity.count_by_gate_and_tier(rows)),
        "corrected": speaker_reviews.count_corrected_speakers(rows, counters),
        "not_english": is_mostly_not_english(turns.list_latest_prompts(rows, limit=MAX_PROMPTS)),
        "prompts": _prompts_json(*sessions.count_typed(rows, latest=MAX_PROMPT_SESSIONS)),
        "last_event": activity.list_last_event_times(rows), "last_read": activity.find_last_read_time(rows),
        "live": list_live_sessions(rows, since=to_iso(now - timedelta(seconds=LIVE_S)), limit=MAX_LIVE_SESSIONS),
        "projects": [
            {"root": root, "name": title, "sessions": number, "memories": count, "last": last}
            for _, root, title, number, count, last in activity.project_counts(rows)
        ],
        "told": asdict(receipts.sum_usage_since(rows, to_iso(now - WEEK))),
        "transcripts": describe_transcripts(rows, disk_state[0]) if disk_state else None,
        "storage": {**storage, "growth": growth}, "clients": clients, "hosts": disk_state[2] if disk_state else [],
        "pages": page_edits.report_pages(rows, config.paths.memory, key=key),
        "warnings": [
            *([] if disk_state else [f"{path_read[0]}: its file system does not answer (`df` shows which one hangs)"]),
            *list_retention_warnings(rows, config.settings),
            *assistants_in_use.list_client_warnings(clients, config),
            *secret_scan.list_secret_warnings(stored_secrets.found_secrets(rows)),
        ],
    }  # fmt: skip


def describe_backups(database: Path) -> dict[str, Any]:
    """Returns the backups in `csmd status`: their number, size, and the time of the latest."""
    backups = list_backup_files(database)
    size = sum(row["bytes"] for row in backups)
    last = backups[0]["made_at"] if backups else ""
    return {"backups": len(backups), "backups_bytes": size, "last_backup": last}


def describe_retention(rows: Rows, settings: Settings, counters: dict[str, int]) -> dict[str, Any]:
    """Returns the used room in `csmd status`; sizes in bytes, a limit of 0 means none."""
    room = housekeeping.measure_room(rows, settings)
    return {
        "used_bytes": room.used, "limit_bytes": room.limit,
        "tool_output_days": settings.storage_tool_output_days, "conversation_days": settings.storage_conversation_days,
        "conversation_turns_dropped": counters.get(text_retention.DROPPED_TURNS_COUNTER, 0),
        "tool_outputs_dropped": counters.get(text_retention.DROPPED_COUNTER, 0),
        "tool_output_bytes_dropped": counters.get(text_retention.DROPPED_BYTES_COUNTER, 0),
        "tokens_saved": compactions.sum_tokens_saved(rows),
    }  # fmt: skip


def list_retention_warnings(rows: Rows, settings: Settings) -> list[str]:
    """Returns a warning if storage.max_mb is nearly reached or exceeded."""
    room = housekeeping.measure_room(rows, settings)
    if not room.is_short:
        return []
    if not text_retention.has_output(rows):
        consequence = "all tool output is dropped, conversation is kept: raise storage.max_mb"
    elif room.is_over:
        consequence = "the oldest tool output is being dropped"
    else:
        consequence = "beyond it the oldest tool output is dropped"
    used = f"{room.used / housekeeping.BYTES_PER_MB:.0f} MB of storage.max_mb {settings.storage_max_mb}"
    return [f"storage: {used}; {consequence}"]


def estimate_growth(sizes: list[tuple[str, int]], *, used: int, today: date) -> dict[str, Any]:
    """Returns `bytes_per_day`, and the `days` over which it is the average; None and 0 if it is unknown.

    The first day is skipped: it includes the import of older transcripts.
    """
    days = sizes if len(sizes) >= activity.MAX_SIZE_DAYS else sizes[1:]
    for day, size in days:
        age = (today - date.fromisoformat(day)).days
        if 0 < age <= MAX_GROWTH_DAYS:
            return {"bytes_per_day": round((used - size) / age), "days": age}
    return {"bytes_per_day": None, "days": 0}


def make_unknown_figures() -> dict[str, Any]:
    """Returns the figures if the store cannot be read."""
    return {
        **dict.fromkeys(("corrected", "dream", "provider", "team", "transcripts", "clients", "pages")),
        "waiting": 0, "not_english": False, "counts": dict.fromkeys(dict(activity.COUNT_QUERIES), 0),
        "memories": _count_memories([]), "counters": {},
        "prompts": _prompts_json(0, 0), "last_event": {}, "last_read": "", "live": [], "projects": [], "hosts": [],
        "told": asdict(receipts.UseTotals(0, 0, 0, 0, 0)), "storage": {}, "warnings": [],
    }  # fmt: skip


def _prompts_json(prompted: int, typed: int) -> dict[str, int]:
    """Returns how many of the latest sessions have prompts, and in how many a person typed one."""
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
    rows: Rows, background: Background, watch: Watch, meter: machine.Meter, started: float,
    *, paused: dict[str, str] | None,
) -> dict[str, Any]:  # fmt: skip
    """Returns the daemon's state; `started` is monotonic."""
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
        "at": to_iso(now), "version": csmd.__version__, "proto": wire.PROTO, "home": str(config.paths.home),
        "alarms": background.alarms.list_active(), "service": started_by(),
        "daemon": {"pid": os.getpid(), "uptime_s": round(time.monotonic() - started, 1), **meter.usage(os.getpid())},
        "worker": {"pid": embedder.pid, **meter.usage(embedder.pid)},
        "socket": (files.read_small(str(config.paths.endpoint)) or "").strip(),
        "model": {
            "name": model, "waiting": figures["waiting"],
            "suggested": MULTILINGUAL_MODEL if figures["not_english"] else "",
        },
        "excluded": {
            "events": figures["counters"].get(ingest.EXCLUDED_EVENTS, 0), "transcripts": len(context.excluded_paths),
        },
        "encrypted": store.is_encrypted, "paused": paused,
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
            **describe_backups(database),
        },
        "log": str(config.paths.log_file),
        "degraded": [*degraded, *figures["warnings"]],
    }  # fmt: skip
    return {name: state[name] for name in STATUS_KEYS.split()}


def _list_problems(context: Context, watch: Watch, *, since: str) -> list[str]:
    """Returns the problems that the figures do not warn of; `since` is a day ago."""
    store = context.store
    problems = [f"database: {store.damage}; nothing is captured, hooks spool ({REPAIR_HINT})"] if store.damage else []
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
    """Returns how many events wait, and since when the oldest: its name begins with the time in ns."""
    oldest = paths[0].name[:SPOOL_TIME_DIGITS] if paths else ""
    try:
        moment = to_iso(datetime.fromtimestamp(int(oldest, 16) / 1e9, UTC)) if oldest else ""
    except (ValueError, OverflowError, OSError):
        moment = ""  # not the name of a hook's file
    return {"files": len(paths), "oldest": moment}


def _file_size(path: Path) -> int:
    return path.stat().st_size if is_there(path) else 0
