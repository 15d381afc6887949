"""Imports and syncs: reads transcripts, and imports memories from csmd's exports and from other programs."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from csmd.capture import project_identity, transcript_listing
from csmd.capture.ingest import BEGINNING_BYTES
from csmd.capture.transcript_listing import ListedTranscript
from csmd.capture.transcripts import ReadReport
from csmd.daemon import reading, spool_replay
from csmd.daemon.context import Context, Task, now_iso
from csmd.daemon.reading import PastSession
from csmd.daemon.task_steps import Batches
from csmd.errors import BadInput
from csmd.foreign_memories import SOURCES, Source, describe_unknown, importing, recognise
from csmd.hosts import adapters
from csmd.memory_export import export_file, memory_import
from csmd.paths import is_directory
from csmd.store import cursors, files, import_files, projects
from csmd.store.import_files import ForeignFile
from csmd.store.opencode_database import SessionDatabase

#: How long an install reads recent sessions, at least one; the background reads the rest.
FOREGROUND_S = 15.0
#: The counts of the transcripts that a task reads.
TRANSCRIPT_COUNTS = ("turns_new", "turns_known", "bad_lines", "redactions")


# --- import and sync


def preview_import(context: Context, task: Task) -> Batches[dict[str, Any]]:
    """Returns a preview for a dry run or an unconfirmed import; {} to import at once."""
    path, is_dry_run = Path(task.path), bool(task.order.get("dry_run"))
    if exported := export_file.find_file(path):
        with export_file.open_file(exported) as file:
            memories = sum(1 for _ in file) - 2  # its head and its seal
        return {"preview": True, "source": "csmd export", "memories": memories} if is_dry_run else {}
    if not is_dry_run and task.order.get("confirmed"):
        return {}
    if not SessionDatabase.is_one(path):
        with import_files.open_import(path) as foreign:
            if (source := recognise(foreign)) is not None:
                return (yield from _preview_foreign(context, task, source, foreign))
    if not is_dry_run:
        return {}
    sessions, problems = _split_unknown(path, _list_sessions(context, task)[0])
    transcripts_there = sum(len(session.files) for session in sessions)
    return {"preview": True, "source": "transcripts", "files": transcripts_there, "problems": problems}


def _preview_foreign(context: Context, task: Task, source: Source, foreign: ForeignFile) -> Batches[dict[str, Any]]:
    counts = importing.ForeignCounts()
    project = _find_named_project(context, task, create=False)
    origin_project = _find_origin_project(context, task, create=False)
    for done in importing.examine(context.store, source, foreign, project=project, here=origin_project, counts=counts):
        yield {"step": f"reading {source.label}", "done": done}
    return {
        "preview": True, "here": task.order["asking"] if counts.placed_here else "", "source": source.label,
        **_foreign_json(counts), "new": counts.new, "known": counts.known, "samples": counts.samples,
    }  # fmt: skip


def _foreign_json(counts: importing.ForeignCounts) -> dict[str, Any]:
    skipped = counts.skipped | Counter({importing.UNPLACED: counts.unplaced.total()} if counts.unplaced else {})
    return {
        "kinds": dict(counts.kinds.most_common()), "projects": dict(counts.projects.most_common()),
        "skipped": dict(skipped.most_common()), "unplaced": sorted(filter(None, counts.unplaced)),
        "redactions": counts.redactions.total(),
    }  # fmt: skip


def import_memories(context: Context, task: Task) -> Batches[dict[str, Any] | None]:
    """Imports memories from an export or another program; returns None, with nothing done, for transcripts."""
    path = Path(task.path)
    if exported := export_file.find_file(path):
        return (yield from _import_exported(context, task, exported))
    if SessionDatabase.is_one(path):
        return None
    with import_files.open_import(path) as foreign:
        if (source := recognise(foreign)) is None:
            return None
        counts = importing.ForeignCounts()
        project = _find_named_project(context, task, create=True)
        origin_project = _find_origin_project(context, task, create=True)
        import_all = partial(importing.import_all, context.store, source, foreign, now=now_iso(), counts=counts)
        for done in import_all(project=project, here=origin_project):
            yield {"step": "taking in memories", "done": done}
    return {
        "files": 1, **dict.fromkeys(TRANSCRIPT_COUNTS, 0), "source": source.label, **_foreign_json(counts),
        "memories_known": counts.known, "forgotten": counts.forgotten,
    }  # fmt: skip


def _import_exported(context: Context, task: Task, exported: Path) -> Batches[dict[str, Any]]:
    counts = memory_import.ImportCounts()
    directory = task.order.get("project") or task.order.get("asking")
    project = project_identity.add_marks(project_identity.identify_directory(directory)) if directory else None
    by_person = bool(task.order.get("by_person"))
    with export_file.open_file(exported) as file:
        for done in memory_import.import_memories(
            context.store, file, vouched=by_person, now=now_iso(), counts=counts, here=project
        ):
            yield {"step": "taking in memories", "done": done}
    moves = sorted(counts.placed.items())
    placed = [{"was": was, "is": now, "remote": remote, "memories": count} for (was, now, remote), count in moves]
    return {
        "files": 1, **dict.fromkeys(TRANSCRIPT_COUNTS, 0), "redactions": counts.redactions.total(),
        "memories_known": counts.repeated, "forgotten": counts.forgotten, "lowered": counts.lowered,
        "vouched": counts.vouched, "placed": placed,
    }  # fmt: skip


def _find_named_project(context: Context, task: Task, *, create: bool) -> int | None:
    """Returns the row of the project given with the import.

    None if none was given, -1 if it would be created.
    """
    directory = task.order.get("project")
    return _find_project_row(context, directory, create=create) if directory else None


def _find_origin_project(context: Context, task: Task, *, create: bool) -> int | None:
    """Returns the row of the project where the import was requested.

    None if there is none, -1 if it would be created.
    """
    directory = task.order.get("asking")
    if not directory:
        return None
    project = project_identity.add_marks(project_identity.identify_directory(directory))
    is_known = context.store.read(lambda rows: projects.seq_of(rows, project)) is not None
    return _find_project_row(context, directory, create=create) if is_known or project.kind != "path" else None


def _find_project_row(context: Context, directory: str, *, create: bool) -> int:
    project = project_identity.add_marks(project_identity.identify_directory(directory))
    if create:
        return context.store.write(lambda rows: projects.ensure(rows, project, now=now_iso()))
    seq = context.store.read(lambda rows: projects.seq_of(rows, project))
    return -1 if seq is None else seq


def read_transcripts(context: Context, task: Task) -> Batches[tuple[dict[str, Any], list[str]]]:
    """Reads every transcript of the task; returns the counts and the paths."""
    spool_replay.replay(context)
    sessions, later = _list_sessions(context, task)
    problems: list[str] = []
    if task.kind == "import":
        sessions, problems = _split_unknown(Path(task.path), sessions)
    counts: Counter[str] = Counter(dict.fromkeys(TRANSCRIPT_COUNTS, 0))
    paths, bytes_read, began = [], 0, time.monotonic()
    for number, session in enumerate(sessions):
        if task.recent and number and time.monotonic() - began > FOREGROUND_S:
            sessions, later = sessions[:number], [*sessions[number:], *later]
            break
        project = session.project.rpartition("/")[2]
        for file in session.files:
            for report in _read_pieces(context, Path(file.path), is_chosen=task.kind == "import"):
                counts.update({name: getattr(report, name) for name in TRANSCRIPT_COUNTS})
                bytes_read += report.bytes_read
                yield {
                    "step": "reading", "done": number, "total": len(sessions), "project": project, "bytes": bytes_read,
                }  # fmt: skip
            context.backlog.drop(file.path)
            paths.append(file.path)
    task.progress.update(done=len(sessions), total=len(sessions))
    result: dict[str, Any] = {"files": len(paths), **counts, **({"problems": problems} if problems else {})}
    if task.recent:
        reading.fill_backlog(context, later)
        # Seeds the pace estimate; the background also rests between steps.
        context.backlog.record_reading(size=bytes_read, took_s=(time.monotonic() - began) * (1 + reading.REST_FACTOR))
        result["left"] = context.backlog.describe()
    return result, paths


def _read_pieces(context: Context, path: Path, *, is_chosen: bool) -> Iterator[ReadReport]:
    """Reads the new lines of a transcript, piece by piece."""
    more = True
    while more:
        report = reading.read_guarded(context, path, strict=True, most_pieces=1, is_chosen=is_chosen)
        yield report
        more = report.more


def _list_sessions(context: Context, task: Task) -> tuple[list[PastSession], list[PastSession]]:
    """Returns the sessions that a task reads, and the others that have grown, which the background reads."""
    if task.kind == "import":
        is_root = is_directory(task.path) or SessionDatabase.is_one(Path(task.path))
        root = task.path if is_root else str(Path(task.path).parent)
        return reading.order_newest_first(transcript_listing.list_transcripts(Path(task.path)), [root]), []
    roots = [str(root) for root in context.list_roots()]
    positions = context.store.read(cursors.file_positions)
    by_path = {file.path: file for root in roots for file in reading.list_own_transcripts(context.config, Path(root))}
    for path in [*map(str, context.take_hints()), *positions]:
        if path not in by_path and (file := transcript_listing.stat_transcript(path)):
            by_path[path] = file
    sessions = reading.order_newest_first(by_path.values(), roots)
    if not task.recent:
        return sessions, []
    unread = partial(transcript_listing.has_grown, positions=positions)
    grown = (replace(session, files=tuple(filter(unread, session.files))) for session in sessions)
    later = [session for session in grown if session.files and session.rank >= task.recent]
    return [session for session in sessions if session.rank < task.recent], later


def _split_unknown(path: Path, sessions: Sequence[PastSession]) -> tuple[list[PastSession], list[str]]:
    """Returns the sessions whose files are transcripts, and the problems of other files; BadInput if there are none."""

    def is_transcript(file: ListedTranscript) -> bool:
        if file.end >= 0:
            return True  # from a database, which was recognised by its tables
        with contextlib.suppress(OSError, ValueError), files.open_regular(Path(file.path)) as stream:
            return adapters.is_transcript(stream.read(BEGINNING_BYTES))
        return False

    filtered = (replace(session, files=tuple(filter(is_transcript, session.files))) for session in sessions)
    transcript_sessions = [session for session in filtered if session.files]
    paths = {file.path for session in transcript_sessions for file in session.files}
    unknown = sorted(file.path for session in sessions for file in session.files if file.path not in paths)
    if not transcript_sessions:
        with import_files.open_import(path) as foreign:
            description = describe_unknown(foreign) or "has a format that csmd does not recognise"
        problem = "contains nothing that csmd can import" if is_directory(path) else description
        sources = ", ".join(source.label for source in SOURCES)
        hint = f"give transcripts (*.jsonl), the output of `csmd export`, or the memories of another program: {sources}"
        raise BadInput(f"{path} {problem}; nothing was imported", hint=hint)
    return transcript_sessions, [f"{name}: not a transcript; skipped" for name in unknown]
