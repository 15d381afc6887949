"""Work that a client waits for: import, sync, model, export, purge, scan, backup.

A task is a kind and a generator from a table. The generator gives what is new of its progress after each batch, and its
result at the end.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal, TypeVar

from csmd import cache, wire
from csmd.capture import project_identity, transcripts
from csmd.capture.ingest import BEGINNING_BYTES
from csmd.capture.transcripts import OnDisk
from csmd.config import child_environment, spool_places
from csmd.daemon import curating, housekeeping, reading
from csmd.daemon.context import Context, Progress, Task, Work, carry_out, iso_before, local_time, now_iso
from csmd.daemon.dreaming import Dreaming
from csmd.daemon.housekeeping import InstructionRefresh
from csmd.daemon.pipeline import Stages
from csmd.daemon.reading import PastSession
from csmd.daemon.team_exchange import TeamExchange
from csmd.dream import day_files, transfer
from csmd.embedding import models, token_ranks
from csmd.errors import BadInput, ConfigError, EmbeddingUnavailable, StoreError
from csmd.extraction import statements
from csmd.foreign_memories import SOURCES, Source, describe_unknown, importing, recognise
from csmd.hosts import adapters
from csmd.paths import is_directory, is_file, is_there
from csmd.privacy import redaction
from csmd.privacy.fingerprints import Needle, clean
from csmd.recall import threads
from csmd.store import (
    activity,
    cursors,
    exports,
    files,
    found_secrets,
    import_files,
    projects,
    purge,
    purge_files,
    purge_plans,
    stored_pages,
    team,
    tombstones,
    vectors,
)
from csmd.store.import_files import ForeignFile
from csmd.store.opencode_database import SessionDatabase
from csmd.store.purge_files import FileWay, Redact
from csmd.store.purge_plans import Plan
from csmd.text import tokens
from csmd.text.display import amount

T = TypeVar("T")
#: Batches that come to a value.
Batches = Generator[Progress, None, T]
#: How long a task, and within it the search in files, works before others have their turn.
SLICE_S = SEARCH_S = 0.2
#: Seconds after which an install stops reading recent sessions (it reads one at least); the background reads the others.
FOREGROUND_S = 15.0
#: How long a new model may take to load.
FIRST_TEXT_S = 60.0
#: What is counted of the transcripts that a task reads.
COUNTED = ("turns_new", "turns_known", "bad_lines", "redactions")


class Tasks:
    """Owns the running tasks; the background thread steps the last one. A client's task comes before csmd's own."""

    def __init__(
        self,
        context: Context,
        *,
        stages: Stages,
        dreaming: Dreaming,
        instructions: InstructionRefresh,
        team_exchange: TeamExchange,
    ) -> None:
        self._context, self._stages, self._dreaming, self._instructions = context, stages, dreaming, instructions
        self._under_way: list[tuple[Task, Generator[None]]] = []
        self._commits, self._is_known = -1, False
        self._found: found_secrets.FoundSecrets | None = None
        #: The latest task that csmd ordered itself, and when.
        self._ordered, self._ordered_at = Task(kind="secrets", state="done"), 0.0
        self._late: dict[str, int] = {}
        self._kinds: Mapping[str, Callable[[Task], Work]] = {
            "import": self._take_in, "sync": self._take_in, "undo": dreaming.undo,
            "model": partial(_use_model, context, stages), "export": partial(_export, context),
            "purge": partial(_purge, context, dreaming=dreaming), "scan": partial(_scan, context),
            "secrets": partial(_take_out_late_secrets, context), "backup": partial(_back_up, context),
            "provider": partial(curating.try_provider, context),
            "endpoint": partial(curating.use_for_vectors, context),
            "team": team_exchange.work,
        }  # fmt: skip

    @property
    def is_under_way(self) -> bool:
        """Whether a task was begun and has not ended."""
        return bool(self._under_way)

    @property
    def is_urgent(self) -> bool:
        """Whether a client waits for the running task."""
        return self.is_under_way and not self._under_way[-1][0].is_own

    def step(self) -> bool:
        """Does batches of the task under way for a moment, or of the next one; whether there was one."""
        context, began = self._context, time.monotonic()
        if not self.is_urgent and (task := context.take_task(only_ordered=self.is_under_way)):
            self._under_way.append((task, carry_out(context, task, self._kinds[task.kind](task))))
        if not self.is_under_way:
            return False
        batches = self._under_way[-1][1]
        try:
            next(batches)
            # Of thousands of short sessions many fit between two looks at what else there is.
            while time.monotonic() - began < SLICE_S:
                next(batches)
        except StopIteration:
            self._under_way.pop()
            context.reads = self._under_way[-1][0] if self._under_way else None
        return True

    def look_after_secrets(self) -> bool:
        """Orders what is due of secrets: those known late, a scan after the rules have changed, what was found long ago.

        The store is asked only when something was written since it was asked last.
        """
        context, store = self._context, self._context.store
        if any(
            task.state in ("waiting", "running")
            for task in [*context.tasks.values()]
            if task.kind in ("scan", "secrets")
        ):
            return False
        if self._ordered.state == "failed" and time.monotonic() < self._ordered_at + SECRETS_AGAIN_S:
            raise StoreError(self._ordered.error)  # for status: nobody asked for it
        if store.commits != self._commits:
            self._commits = store.commits
            seen, self._found, self._late = store.read(
                lambda rows: (
                    found_secrets.looked_through(rows),
                    found_secrets.found_secrets(rows),
                    purge.late_secrets(rows),
                )
            )
            self._is_known = seen == tokens.keyed_hash(context.rules, store.hash_key)
            context.withholds = not self._is_known or self._found is not None
        secrets = self._found
        if not self._is_known and not store.read(found_secrets.holds_text):
            _note_scanned(context, {}, {})
        elif not self._is_known:
            self._order(Task(kind="scan", is_own=True))
        elif self._late:
            self._order(Task(kind="secrets", is_own=True))
        elif due := secrets.rare_before(iso_before(KEPT_DAYS * 86_400)) if secrets else []:
            self._order(Task(kind="scan", order={"fix": True, "kinds": due}, is_own=True))
        else:
            return False
        return True

    def _order(self, task: Task) -> None:
        self._ordered, self._ordered_at = task, time.monotonic()
        self._context.submit(task)

    def close(self) -> None:
        """Ends the tasks under way where they are, so that they release their locks."""
        for _, batches in reversed(self._under_way):
            batches.close()

    def _take_in(self, task: Task) -> Work:
        """Imports what lies at the task's path, or syncs; then brings every stage up to date.

        What another program wrote, and whatever is imported as a dry run, is only looked through until it is confirmed.
        """
        context, began = self._context, time.monotonic()
        if task.kind == "import" and (preview := (yield from _preview(context, task))):
            return {**preview, "took_s": _seconds_since(began)}
        before = context.store.read(activity.counts)
        result = (yield from _import_memories(context, task)) if task.kind == "import" else None
        paths: list[str] = []
        if result is None:
            result, paths = yield from _read_transcripts(context, task)
        if context.store.read(purge.late_secrets):
            yield from _take_out_late_secrets(context, task)
        self._instructions.sweep()
        # Whoever syncs has every transcript read by now; an import reads what is elsewhere.
        pages = self._dreaming.pages
        context.guard("pages", pages.read if task.kind == "sync" else pages.read_settled)
        sessions = len(statements.behind(context.store))
        yield {"step": "distilling", "done": 0, "total": sessions}
        for done, _ in enumerate(self._stages.distilling(force=True), 1):
            yield {"step": "distilling", "done": done, "total": max(done, sessions)}
        for done in accumulate(self._stages.run_until_done()):
            yield {"step": "remembering", "done": done, "total": 0}
        degraded = (yield from self._embed()) if task.with_vectors else []
        context.store.checkpoint(truncate=True)
        after = context.store.read(activity.counts)
        read = {f"transcript {path}" for path in paths}
        trouble = [
            f"{what}: {why}"
            for what, why in sorted(context.trouble.items())
            if what in read or what.startswith(("distilling", "spooled"))
        ]
        return {
            **result,
            "memories_new": after["memories"] - before["memories"],
            "vectors": after["vectors"] - before["vectors"],
            "took_s": _seconds_since(began),
            "degraded": [*trouble, *degraded],
        }

    def _embed(self) -> Batches[list[str]]:
        """Embeds and links what waits; what hindered it."""
        store, name = self._context.store, self._context.model_name()
        if name is not None:
            total = store.read(lambda rows: vectors.count_waiting(rows, vectors.model_seq(rows, name)))
            try:
                yield from _repeated("embedding", self._stages.embed_some, total)
            except EmbeddingUnavailable as error:
                return [f"vectors: {error.what}"]
        total = store.read(lambda rows: threads.count_waiting(rows, model=name))
        yield from _repeated("linking", self._stages.link_some, total)
        return []


def resume_purge(context: Context) -> None:
    """Submits the rest of a purge that was interrupted."""
    if context.store.read(purge.is_unfinished):
        context.submit(Task(kind="purge"))


def _repeated(step: str, batch: Callable[[], int], total: int = 0) -> Batches[None]:
    """Does batches until one finds nothing; each gives how many rows it went through, of about `total`.

    What comes in meanwhile is gone through, too, but not for as long as sessions go on: not three times what was there.
    """
    done = 0
    if total:
        yield {"step": step, "done": done, "total": total}
    while (not total or done < 3 * total) and (batch_count := batch()):
        done += batch_count
        yield {"step": step, "done": min(done, total), "total": total} if total else {"step": step, "done": done}


def _seconds_since(began: float) -> float:
    return round(time.monotonic() - began, 3)


# --- import and sync


def _preview(context: Context, task: Task) -> Batches[dict[str, Any]]:
    """What an import would bring, where it is a dry run or waits for a person's answer; {} where it is to be done."""
    path, is_dry_run = Path(task.path), bool(task.order.get("dry_run"))
    if exported := transfer.find_file(path):
        with transfer.open_file(exported) as file:
            memories = sum(1 for _ in file) - 2  # its head and its seal
        return {"preview": True, "source": "csmd export", "memories": memories} if is_dry_run else {}
    if not is_dry_run and task.order.get("confirmed"):
        return {}
    if not SessionDatabase.is_one(path):
        with import_files.open_import(path) as foreign:
            if (source := recognise(foreign)) is not None:
                return (yield from _examine(context, task, source, foreign))
    if not is_dry_run:
        return {}
    sessions, problems = _without_unknown(path, _sessions(context, task)[0])
    transcripts_there = sum(len(session.files) for session in sessions)
    return {"preview": True, "source": "transcripts", "files": transcripts_there, "problems": problems}


def _examine(context: Context, task: Task, source: Source, foreign: ForeignFile) -> Batches[dict[str, Any]]:
    counts = importing.ForeignCounts()
    project, here = _named_project(context, task, makes=False), _project_here(context, task, makes=False)
    for done in importing.examine(context.store, source, foreign, project=project, here=here, counts=counts):
        yield {"step": f"reading {source.label}", "done": done}
    return {
        "preview": True, "here": task.order["asking"] if counts.placed_here else "", "source": source.label, **_foreign_json(counts), "new": counts.new, "known": counts.known,
        "samples": counts.samples,
    }  # fmt: skip


def _foreign_json(counts: importing.ForeignCounts) -> dict[str, Any]:
    skipped = counts.skipped | Counter({importing.UNPLACED: counts.unplaced.total()} if counts.unplaced else {})
    return {
        "kinds": dict(counts.kinds.most_common()), "projects": dict(counts.projects.most_common()),
        "skipped": dict(skipped.most_common()), "unplaced": sorted(filter(None, counts.unplaced)),
        "redactions": counts.redactions.total(),
    }  # fmt: skip


def _import_memories(context: Context, task: Task) -> Batches[dict[str, Any] | None]:
    """Imports exported memories or those of another program; None, and nothing done, where the path holds transcripts."""
    path = Path(task.path)
    if exported := transfer.find_file(path):
        return (yield from _import_exported(context, task, exported))
    if SessionDatabase.is_one(path):
        return None
    with import_files.open_import(path) as foreign:
        if (source := recognise(foreign)) is None:
            return None
        counts = importing.ForeignCounts()
        project, here = _named_project(context, task, makes=True), _project_here(context, task, makes=True)
        bring = importing.import_all(
            context.store, source, foreign, project=project, here=here, now=now_iso(), counts=counts
        )
        for done in bring:
            yield {"step": "taking in memories", "done": done}
    return {
        "files": 1, **dict.fromkeys(COUNTED, 0), "source": source.label, **_foreign_json(counts),
        "memories_known": counts.known, "forgotten": counts.forgotten,
    }  # fmt: skip


def _import_exported(context: Context, task: Task, exported: Path) -> Batches[dict[str, Any]]:
    counts = transfer.ImportCounts()
    directory = task.order.get("project") or task.order.get("asking")
    place = project_identity.marked(project_identity.identified(directory)) if directory else None
    vouched = bool(task.order.get("by_person"))
    with transfer.open_file(exported) as file:
        for done in transfer.import_memories(
            context.store, file, vouched=vouched, now=now_iso(), counts=counts, here=place
        ):
            yield {"step": "taking in memories", "done": done}
    placed = [
        {"was": was, "is": now, "remote": remote, "memories": number}
        for (was, now, remote), number in sorted(counts.placed.items())
    ]
    return {
        "files": 1, **dict.fromkeys(COUNTED, 0), "redactions": counts.redactions.total(),
        "memories_known": counts.known, "forgotten": counts.forgotten, "lowered": counts.lowered,
        "vouched": counts.vouched, "placed": placed,
    }  # fmt: skip


def _named_project(context: Context, task: Task, *, makes: bool) -> int | None:
    """The row of the project that the order names, None where it names none; -1 for one that only an import would make."""
    named = task.order.get("project")
    return _project_row(context, named, makes=makes) if named else None


def _project_here(context: Context, task: Task, *, makes: bool) -> int | None:
    """The row of the project in which the import is asked for, None where that directory is of none; -1 as above."""
    asking = task.order.get("asking")
    if not asking:
        return None
    place = project_identity.marked(project_identity.identified(asking))
    is_known = context.store.read(lambda rows: projects.seq_of(rows, place)) is not None
    return _project_row(context, asking, makes=makes) if is_known or place.kind != "path" else None


def _project_row(context: Context, directory: str, *, makes: bool) -> int:
    place = project_identity.marked(project_identity.identified(directory))
    if makes:
        return context.store.write(lambda rows: projects.ensure(rows, place, now=now_iso()))
    seq = context.store.read(lambda rows: projects.seq_of(rows, place))
    return -1 if seq is None else seq


def _read_transcripts(context: Context, task: Task) -> Batches[tuple[dict[str, Any], list[str]]]:
    """Reads every transcript that the task is about; what they brought, and their paths."""
    reading.replay(context)
    sessions, later = _sessions(context, task)
    problems: list[str] = []
    if task.kind == "import":
        sessions, problems = _without_unknown(Path(task.path), sessions)
    counts: Counter[str] = Counter(dict.fromkeys(COUNTED, 0))
    paths, bytes_read, began = [], 0, time.monotonic()
    for number, session in enumerate(sessions):
        if task.recent and number and time.monotonic() - began > FOREGROUND_S:
            sessions, later = sessions[:number], [*sessions[number:], *later]
            break
        project = session.project.rpartition("/")[2]
        for file in session.files:
            more = True
            while more:
                report = reading.look_at(
                    context, Path(file.path), strict=True, most_pieces=1, is_chosen=task.kind == "import"
                )
                counts.update({name: getattr(report, name) for name in COUNTED})
                bytes_read, more = bytes_read + report.bytes_read, report.more
                yield {
                    "step": "reading", "done": number, "total": len(sessions), "project": project, "bytes": bytes_read,
                }  # fmt: skip
            context.backlog.drop(file.path)
            paths.append(file.path)
    task.progress.update(done=len(sessions), total=len(sessions))
    result: dict[str, Any] = {"files": len(paths), **counts, **({"problems": problems} if problems else {})}
    if task.recent:
        reading.fill_backlog(context, later)
        # In the background there are rests between: until it is under way, that is its pace.
        context.backlog.record_reading(read=bytes_read, took_s=(time.monotonic() - began) * (1 + reading.REST))
        result["left"] = context.backlog.describe()
    return result, paths


def _sessions(context: Context, task: Task) -> tuple[list[PastSession], list[PastSession]]:
    """The sessions that a task reads, and those of the rest that have grown, which are left to the background."""
    if task.kind == "import":
        is_root = is_directory(task.path) or SessionDatabase.is_one(Path(task.path))
        root = task.path if is_root else str(Path(task.path).parent)
        return reading.newest_first(transcripts.list_transcripts(Path(task.path)), [root]), []
    roots = [str(root) for root in context.roots()]
    positions = context.store.read(cursors.file_positions)
    by_path = {file.path: file for root in roots for file in reading.listed(context.config, Path(root))}
    for path in [*map(str, context.take_hints()), *positions]:
        if path not in by_path and (file := transcripts.stat_transcript(path)):
            by_path[path] = file
    sessions = reading.newest_first(by_path.values(), roots)
    if not task.recent:
        return sessions, []
    later = [
        replace(session, files=grown)
        for session in sessions
        if session.rank >= task.recent
        and (grown := tuple(file for file in session.files if transcripts.has_grown(file, positions)))
    ]
    return [session for session in sessions if session.rank < task.recent], later


def _without_unknown(path: Path, sessions: Sequence[PastSession]) -> tuple[list[PastSession], list[str]]:
    """The sessions whose files are transcripts, and what is wrong with the others; BadInput where there is none."""

    def is_transcript(file: OnDisk) -> bool:
        if file.end >= 0:
            return True  # of a database, which was listed by its tables
        with contextlib.suppress(OSError, ValueError), files.open_regular(Path(file.path)) as opened:
            return adapters.is_transcript(opened.read(BEGINNING_BYTES))
        return False

    kept = [
        replace(session, files=kept_files)
        for session in sessions
        if (kept_files := tuple(filter(is_transcript, session.files)))
    ]
    paths = {file.path for session in kept for file in session.files}
    unknown = sorted(file.path for session in sessions for file in session.files if file.path not in paths)
    if not kept:
        with import_files.open_import(path) as foreign:
            looks = describe_unknown(foreign) or "is of no format that csmd knows"
        what = "holds nothing that csmd can take in" if is_directory(path) else looks
        raise BadInput(
            f"{path} {what}; nothing was imported",
            hint="name transcripts (*.jsonl), what `csmd export` wrote, or the memories of another program: "
            f"{', '.join(source.label for source in SOURCES)}",
        )
    return kept, [f"{name}: no transcript, left out" for name in unknown]


# --- model, backup, export


def _use_model(context: Context, stages: Stages, task: Task) -> Work:
    """Copies a model in and works with it; here, so that no batch of the background's is under way with the old one."""
    config, name = context.config, str(task.order.get("name", ""))
    yield {"step": "copying"}
    try:
        directory = models.add_model(Path(task.path), config.paths.models, name=name or config.settings.embed_model)
        is_counting = token_ranks.take_from(config.paths.models, task.path) or token_ranks.take_installed(
            config.paths.models
        )
    finally:
        if Path(task.path) == config.paths.fetched_model:  # nobody else needs it, whoever has stopped waiting
            shutil.rmtree(task.path, ignore_errors=True)
    models.choose_model(config.paths.models, name)
    context.embedder.use(directory)
    yield {"step": "loading"}
    try:
        dim = len(context.embedder.embed(["a first text"], deadline_s=FIRST_TEXT_S)[0])
    except EmbeddingUnavailable as error:
        raise ConfigError(f"the model in {task.path} does not load: {error.what}", hint=error.hint) from error
    stages.look_again()
    return {"model": models.model_identity(directory), "dim": dim, "tokens": "counted" if is_counting else "estimated"}


def _back_up(context: Context, task: Task) -> Work:
    def note(done: int, total: int) -> None:
        """In one batch: whoever asks meanwhile is answered from another thread."""
        task.progress.update(done=done, total=total)

    yield {"step": "copying"}
    return housekeeping.make_backup(context, Path(task.path) if task.path else None, note=note)


def _export(context: Context, task: Task) -> Work:
    """Writes the memories of the task's places into its directory, which is made, or empty, or holds an earlier export."""
    began, directory, total = time.monotonic(), Path(task.path), 0
    _prepare_directory(directory)
    chosen = context.store.read(lambda rows: len(exports.seqs(rows, task.order["places"])))
    is_markdown = bool(task.order.get("markdown"))
    for total in transfer.export_memories(
        context.store, directory, task.order["places"], withholds=context.withholds, is_markdown=is_markdown
    ):
        yield {"step": "writing", "done": total, "total": chosen}
    every, forgotten = context.store.read(
        lambda rows: (len(exports.seqs(rows, None)), tombstones.count_forgotten(rows))
    )
    return {
        "path": str(directory / (transfer.MARKDOWN_NAME if is_markdown else transfer.NAME)), "memories": total, "project": task.order["project"],
        "elsewhere": every - total, "forgotten": forgotten, "took_s": _seconds_since(began), "degraded": [],
    }  # fmt: skip


def _prepare_directory(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = directory.lstat()
        others = sorted(path.name for path in directory.iterdir() if path.name not in transfer.NAMES)
    except OSError as error:
        raise ConfigError(f"{directory}: {error.strerror}", hint="name a directory that you can write to") from error
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
        raise ConfigError(f"{directory} is not a directory of yours", hint="name another one")
    if others and not any(is_file(directory / name) for name in transfer.NAMES):
        raise ConfigError(f"{directory} is not empty: {others[0]} is in it", hint="name an empty or a new directory")
    files.make_private(directory)


# --- purge

#: Sessions whose ids are searched for in the assistant's files.
MOST_NAMES = 100
#: Attempts to empty the write-ahead log while a reader is at work.
CLEANSE_TRIES = 50


def _purge(context: Context, task: Task, dreaming: Dreaming) -> Work:
    """Does a purge, or with `dry_run` says what it would do; without a plan it finishes one that was interrupted."""
    began, store, paths = time.monotonic(), context.store, context.config.paths
    plan: Plan | None = task.order.get("plan")
    result: dict[str, Any] = {}
    if plan is not None:
        is_dry = task.order.get("dry_run")
        if not is_dry:
            reading.replay(context)
            context.guard(
                "pages", dreaming.pages.read
            )  # whose name holds it is removed: what was typed there is taken in
        yield {"step": "transcripts"}
        names = [] if plan.texts else (plan.sessions or plan.turns)[:MOST_NAMES]
        elsewhere = yield from _search_files(plan.texts or plan.probes, names, hosts=_host_places(context))
        counts = store.read(lambda rows: purge_plans.plan_counts(rows, plan))
        result = {"what": plan.what, "about": plan.about, "counts": counts, "hosts": elsewhere["hosts"]}
        if is_dry:
            places = store.read(lambda rows: purge_plans.plan_places(rows, plan, seen=task.order["seen"]))
            return {**result, "places": places, "backups": len(purge_files.copies(paths.home, paths.log_dir))}
        texts = (yield from _variants(context, plan)) | set(elsewhere["texts"] if plan.texts else ())
        key, now = store.hash_key, now_iso()
        store.write(lambda rows: purge_plans.add_tombstones(rows, plan, sorted(texts), key=key, now=now))
    yield from _purge_rows(context)
    yield {"step": "files"}
    result |= _purge_files(context, plan)
    while day_files.withdraw(store, paths.memory, now=now_iso(), here=local_time):
        yield None
    for _ in dreaming.rewrite_pages():
        yield {"step": "pages"}
    yield from _cleanse(context)
    store.write(purge.end)
    if plan is not None:
        yield {"step": "checking"}
        left = yield from _search_files(plan.probes, [], own=_own_places(context))
        result |= {
            "left": left["left"],
            "team": store.read(team.find_team) is not None,
            "took_s": _seconds_since(began),
        }
    return result


def _walk(part: Callable[[int], tuple[int | None, T]]) -> Iterator[T]:
    """Goes through rows part by part; each takes a row key, and gives the key to go on from, None at the end."""
    after: int | None = 0
    while after is not None:
        after, result = part(after)
        yield result


def _variants(context: Context, plan: Plan) -> Batches[set[str]]:
    """The texts as they stand in the store, in whole words: by these they are recognised when they come back."""
    needles, variants = [Needle(text) for text in plan.texts], set[str]()

    def part(table: str, column: str, after: int) -> tuple[int | None, set[str]]:
        return context.store.read(lambda rows: purge_plans.variants(rows, needles, table, column, after))

    for number, (table, column) in enumerate(purge.WAYS if needles else ()):
        for texts in _walk(partial(part, table, column)):
            variants |= texts
            yield {"step": "searching", "done": number, "total": len(purge.WAYS)}
    return variants


def _purge_rows(context: Context) -> Batches[None]:
    key = context.store.hash_key

    def part(run: purge.Pass, after: int) -> tuple[int | None, int]:
        return context.store.write(lambda rows: run(rows, key, after))

    for number, run in enumerate(purge.PASSES):
        for _ in _walk(partial(part, run)):
            yield {"step": "purging", "done": number, "total": len(purge.PASSES)}


def _purge_files(context: Context, plan: Plan | None) -> dict[str, Any]:
    paths, store, key = context.config.paths, context.store, context.store.hash_key
    marks = store.read(lambda rows: tombstones.marks(rows, key))
    needles = [Needle(text) for text in (plan.texts or plan.probes)] if plan else []
    everything = plan is None or plan.what != "text"

    def purged(kind: Literal["turn", "session", "memory"], names: Sequence[str]) -> set[str]:
        if kind == "memory":
            return set(store.read(lambda rows: stored_pages.missing_memories(rows, names)))
        return set(store.read(lambda rows: tombstones.purged_names(rows, kind, names, key=key)))

    done = purge_files.purge(paths.home, paths.log_dir, marks, needles, purged=purged, everything=everything)
    return {"files_removed": done.removed, "files_rewritten": done.rewritten, "files_kept": done.kept}


def _cleanse(context: Context) -> Batches[None]:
    """Rewrites the database file, once no reader is at work, and empties the caches of functions over its texts."""
    for _ in range(CLEANSE_TRIES):
        yield {"step": "cleaning"}
        if context.store.cleanse():
            cache.clear()
            return
    raise StoreError(
        "the write-ahead log could not be emptied: something reads the database all the time",
        hint="close what has csmd.db open, then `csmd restart`: the purge is finished by it",
    )


def _own_places(context: Context) -> list[Path]:
    paths = context.config.paths
    outside = [paths.log_dir, paths.config_file, spool_places(paths.home)[-1]]
    return [paths.home, *(path for path in outside if is_there(path) and not path.is_relative_to(paths.home))]


def _host_places(context: Context) -> list[Path]:
    """The assistant's files and directories that may hold text of conversations."""
    directories = adapters.directories(context.config)
    return [path for adapter, folder in directories for path in adapter.places(folder) if is_there(path)]


def _search_files(
    texts: Sequence[str], names: Sequence[str], *, own: Sequence[Path] = (), hosts: Sequence[Path] = ()
) -> Batches[dict[str, Any]]:
    """Has another process search in files; its answer (`csmd.store.purge_files`)."""
    if not texts and not names:
        return {"left": [], "hosts": [], "texts": []}
    query = {"texts": [*texts], "names": [*names], "own": [*map(str, own)], "hosts": [*map(str, hosts)]}
    command = [sys.executable, "-P", "-m", "csmd.store.purge_files"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=child_environment()) as child:
        data: bytes | None = wire.dumps(query).encode("utf-8", "replace")
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    answer, _ = child.communicate(data, timeout=SEARCH_S)
                    break
                data = None  # it was handed over
                yield None
        finally:
            child.kill()  # still running where the daemon stops
    if child.returncode:
        raise StoreError("the search in files failed", hint="run it again")
    hits: dict[str, Any] = wire.loads(answer)
    return hits


# --- scan

#: Places that are listed one by one; the others are counted.
LISTED = 500
#: Lines of a transcript between two looks at what else is due.
LINES_AT_ONCE = 2000
#: What a scan found, and how many places it changed.
Found = tuple[list[dict[str, Any]], int]


def _scan(context: Context, task: Task) -> Work:
    """Looks for secrets in the database, csmd's files and, when asked, the assistant's transcripts; `fix` takes them out.

    Without `fix`, only pages that csmd itself wrote are mended. With `kinds`, only these are searched for and taken out;
    no copy of the database is deleted and no file of a person's is changed, because no person asked for it.
    """
    began, fix, kinds = time.monotonic(), bool(task.order.get("fix")), task.order.get("kinds")
    if fix:
        reading.replay(context)
    redact = partial(_redact, kinds=kinds)
    secrets, fixed = yield from _scan_database(context, redact, fix=fix)
    degraded: list[str] = []
    in_files = yield from _scan_files(context, redact, degraded)
    refused: list[str] = []
    if fix and not kinds:
        changed = _change_files(context, redact, refused)
    else:
        changed = _change_files(context, redact, refused, ways=OWN_FILES if fix else PAGES, chosen=_ours(context))
    if refused and fix and task.is_own:
        raise StoreError(refused[0], hint="make it writable")
    secrets, fixed, degraded = secrets + in_files, fixed + changed, degraded + refused
    yield None
    if fixed and fix:
        yield from _cleanse(context)
    elsewhere = (yield from _scan_transcripts(context)) if task.order.get("transcripts") else []
    by_kind = _count_kinds(secrets)
    in_turns = _count_kinds([secret for secret in secrets if secret.get("table") == "turns"])
    left = {} if fix and not refused else by_kind
    if kinds is not None and (before := context.store.read(found_secrets.found_secrets)):
        others = {kind: amount for kind, amount in before.kinds.items() if kind not in kinds}
        left, in_turns = left | others, in_turns | Counter(others)
    _note_scanned(context, left, in_turns)
    return {
        "secrets": by_kind.total(), "kinds": dict(sorted(by_kind.items())), "found": secrets[:LISTED],
        "more": max(0, len(secrets) - LISTED), "fixed": fixed, "transcripts": elsewhere, "degraded": degraded,
        "took_s": _seconds_since(began),
    }  # fmt: skip


def _count_kinds(secrets: Sequence[Mapping[str, Any]]) -> Counter[str]:
    kinds: Counter[str] = Counter()
    for secret in secrets:
        kinds[secret["kind"]] += secret["count"]
    return kinds


def _note_scanned(context: Context, left: Mapping[str, int], in_turns: Mapping[str, int]) -> None:
    """Notes what a scan has left in the store, by kind."""
    store, rules = context.store, context.rules
    store.write(
        lambda rows: found_secrets.note_looked_through(rows, rules, left, in_turns, key=store.hash_key, now=now_iso())
    )
    context.withholds = bool(left)


def _scan_database(
    context: Context, redact: Redact, *, fix: bool, sessions: Sequence[int] | None = None
) -> Batches[Found]:
    """What `redact` takes out of every text; with `sessions`, of turns only those of these sessions.

    Pages repeat the store, so a finding is mended in them at once: otherwise they would look edited by a person.
    """
    store, key = context.store, context.store.hash_key
    secrets: list[dict[str, Any]] = []
    fixed = 0
    for number, (table, column) in enumerate(purge.WAYS):
        if purge.WAYS[table, column] in purge.OF_PATHS:
            continue  # paths of transcripts stay as they are: a cursor has to find its file again
        after = 0
        next_part = partial(purge.texts_after, table=table, column=column, sessions=sessions)
        while part := store.read(partial(next_part, after=after)):
            after = part[-1][0]
            for seq, text in part:
                redacted, kinds = redact(text)
                if not kinds:
                    continue
                ident, session = store.read(partial(purge_files.place_of_secret, table=table, seq=seq))
                where = {"table": table, "column": column, "id": ident, "session": session}
                secrets += [{**where, **asdict(secret)} for secret in purge_files.secrets_in(text, redact, key)]
                if fix or table == "pages":
                    change = partial(purge.change, table=table, column=column, seq=seq, new=redacted, key=key)
                    store.write(partial(change, in_place=True))
                    fixed += 1
            if table != "pages":  # until its file says the same, nobody may read it
                yield {"step": "scanning", "done": number, "total": len(purge.WAYS)}
        if (table, column) == LAST_OF_PAGES:
            fixed += _change_files(context, redact, [], ways=PAGES, chosen=_is_page(context))
    return secrets, fixed


def _scan_files(context: Context, redact: Redact, degraded: list[str]) -> Batches[list[dict[str, Any]]]:
    """The secrets in csmd's own files; adds those that cannot be read to `degraded`."""
    paths, key = context.config.paths, context.store.hash_key
    secrets: list[dict[str, Any]] = []
    for path, way in purge_files.list_files(paths.home, paths.log_dir):
        try:
            for text in purge_files.texts_in(path) if way == "copy" else purge_files.pieces_of(path):
                yield {"step": "files"}
                secrets += [
                    {"file": str(path), **asdict(secret)} for secret in purge_files.secrets_in(text, redact, key)
                ]
        except (StoreError, OSError):
            degraded.append(f"{path} could not be looked into")
    return secrets


def _is_page(context: Context) -> purge_files.Chosen:
    """Whether a file is one of the pages that csmd has written."""
    pages = {context.config.paths.memory / path for path in context.store.read(stored_pages.pages)}
    return lambda path, _: path in pages


def _ours(context: Context) -> purge_files.Chosen:
    """Whether csmd has written a file: what else lies among its pages is a person's."""
    memory, is_page = context.config.paths.memory, _is_page(context)
    return lambda path, text: not path.is_relative_to(memory) or is_page(path, text) or day_files.is_own(text)


#: Of csmd's files those that say what the store says.
PAGES: tuple[FileWay, ...] = ("page",)
LAST_OF_PAGES = [way for way in purge.WAYS if way[0] == "pages"][-1]
#: Those that csmd changes without being asked: no copy of the database.
OWN_FILES: tuple[FileWay, ...] = (*PAGES, "lines", "rewrite")


def _change_files(
    context: Context, redact: Redact, refused: list[str], *, ways: Collection[FileWay] | None = None,
    chosen: purge_files.Chosen = lambda *_: True,
) -> int:  # fmt: skip
    """Takes secrets out of csmd's own files of some ways (None: of all) that are `chosen`; how many were changed or removed.

    Those that the disk does not let be changed are noted in `refused`.
    """

    def cleaned(text: str) -> tuple[str, int]:
        redacted, kinds = redact(text)
        return redacted, sum(kinds.values())

    paths = context.config.paths
    done = purge_files.change(
        paths.home, paths.log_dir, cleaned, ways=ways, chosen=chosen,
        refusing=lambda path, error: refused.append(f"{path} could not be changed: {error.strerror}"),
    )  # fmt: skip
    return len(done.removed) + len(done.rewritten)


def _redact(text: str, kinds: Collection[str] | None = None) -> tuple[str, dict[str, int]]:
    counts: Counter[str] = Counter()
    return redaction.redact(text, counts, kinds=kinds), dict(counts)


def _take_out_late_secrets(context: Context, _: Task) -> Work:
    """Takes out of what sessions have stored what was known as a secret in them only later.

    Of memories, pages and whatever else was made of several sessions every row is looked at. A backup from before keeps
    what it held: when it is restored, this is done again.
    """
    store, began = context.store, time.monotonic()
    seen = store.read(purge.late_secrets)
    if not seen:  # a task before this one has done it
        return {"sessions": 0, "fixed": 0, "took_s": _seconds_since(began)}
    marks = store.read(lambda rows: tombstones.secrets_of(rows, list(seen), store.hash_key))

    def redact(text: str) -> tuple[str, dict[str, int]]:
        cleaned, hits = clean(text, marks, hole=redaction.KNOWN_AGAIN)
        return cleaned, {"known-again": hits} if hits else {}

    keys = store.read(lambda rows: purge.session_keys(rows, seen))
    fixed = (yield from _scan_database(context, redact, fix=True, sessions=keys))[1]
    refused: list[str] = []
    fixed += _change_files(context, redact, refused, ways=OWN_FILES, chosen=_ours(context))
    if refused:
        raise StoreError(refused[0], hint="make it writable")
    store.write(lambda rows: purge.end_late_secrets(rows, seen))
    cache.clear()
    store.checkpoint(truncate=True)
    return {"sessions": len(seen), "fixed": fixed, "took_s": _seconds_since(began)}


#: What newer rules found is taken out without being asked after this, where its kind is rare.
KEPT_DAYS = 7
#: How often it is looked what is due.
SECRETS_EVERY_S = 5.0
#: And after a task that failed, which may have read everything.
SECRETS_AGAIN_S = 3600.0


def secret_warnings(secrets: found_secrets.FoundSecrets | None) -> list[str]:
    """What `csmd status` says of what newer rules found."""
    if secrets is None:
        return []
    kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(secrets.kinds.items()))
    first = min((secrets.since[kind] for kind in secrets.rare), default="")
    due = (datetime.fromisoformat(first) + timedelta(days=KEPT_DAYS)).date() if first else None
    by_itself = f", the rare ones go by themselves from {due} on" if due else ""
    found_now = amount(sum(secrets.kinds.values()), "secret")
    what = f"{found_now} that older rules let through, shown nowhere ({kinds})"
    return [f"secrets: {what}; csmd scan lists them, csmd scan --fix takes them out{by_itself}"]


def _scan_transcripts(context: Context) -> Batches[list[dict[str, Any]]]:
    """Counts the secrets in the assistant's own transcripts, by decoded strings as when they are read."""
    roots = [root for root in context.roots() if not is_file(root)]
    paths = [Path(file.path) for root in roots for file in reading.listed(context.config, root)]
    affected = []
    for number, path in enumerate(paths):
        kinds: Counter[str] = Counter()
        with contextlib.suppress(OSError), path.open("rb") as file:
            for line_number, line in enumerate(file, 1):
                with contextlib.suppress(BadInput):
                    redaction.redact_tree(wire.loads(line), kinds)
                if line_number % LINES_AT_ONCE == 0:
                    yield None
        if kinds:
            affected.append({"path": str(path), "secrets": kinds.total(), "kinds": dict(kinds)})
        yield {"step": "transcripts", "done": number, "total": len(paths)}
    return affected
