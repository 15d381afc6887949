"""Work that somebody waits for: import, sync, model, export, purge, scan, backup.

`csmd import` tells by what lies there what it is given: what `csmd export` wrote, a memory directory, or transcripts.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, BinaryIO, Literal

from csmd import cache, wire
from csmd.capture import project_identity, transcripts
from csmd.config import child_environment, spool_places
from csmd.daemon import backlog, housekeeping, reading
from csmd.daemon.backlog import Past
from csmd.daemon.context import Context, Task, carry_out, local_time, now_iso
from csmd.daemon.dreaming import Dreaming, Edited
from csmd.daemon.housekeeping import InstructionRefresh
from csmd.daemon.scheduler import REST, Turn
from csmd.daemon.stages import Reindex, Stages
from csmd.dream import daily, transfer
from csmd.embedding import supervisor
from csmd.errors import BadInput, ConfigError, EmbeddingUnavailable, StoreError
from csmd.hosts.claude import environment, transcript
from csmd.privacy import redaction
from csmd.privacy.fingerprints import Needle
from csmd.recall import threads
from csmd.store import (
    activity,
    cursors,
    exports,
    files,
    markdown_pages,
    projects,
    purge,
    purge_files,
    text_columns,
    tombstones,
    vectors,
    workspaces,
)
from csmd.store.purge import Plan
from csmd.store.sqlite import Rows

#: What an import of transcripts counts, and another one has none of.
NO_TURNS = {"files": 0, "turns_new": 0, "turns_known": 0, "bad_lines": 0, "redactions": 0}


def read_brought(context: Context, job: Task) -> Generator[None, None, bool]:
    """Takes in memories where the job's path holds such; False, and nothing done, where it holds transcripts."""
    path = Path(job.path)
    memories = transfer.find_file(path)
    if memories is not None:
        with transfer.open_file(memories) as file:
            yield from _parcel(context, job, file)
        return True
    notes = transfer.find_notes(path)
    if notes:
        yield from _notes(context, job, notes)
    return bool(notes)


def _parcel(context: Context, job: Task, file: BinaryIO) -> Iterator[None]:
    taken = transfer.Taken()
    vouched = bool(job.order.get("by_person"))
    named = str(job.order.get("project") or job.order.get("asking") or "")
    here = project_identity.marked(project_identity.identified(named)) if named else None
    for done in transfer.import_memories(context.store, file, vouched=vouched, now=now_iso(), taken=taken, here=here):
        job.progress.update(step="taking in memories", done=done)
        go_on(context)
        yield
    job.result.update(
        {**NO_TURNS, "files": 1, "redactions": taken.redactions.total(), "memories_known": taken.known,
         "forgotten": taken.forgotten, "lowered": taken.lowered, "vouched": taken.vouched,
         "placed": [{"was": was, "is": now, "remote": remote, "memories": number}
                    for (was, now, remote), number in sorted(taken.placed.items())]}
    )  # fmt: skip


def _notes(context: Context, job: Task, notes: list[Path]) -> Iterator[None]:
    taken = transfer.NotesTaken()
    project = _project(context, job, notes[0].parent)
    for done in transfer.import_notes(context.store, notes, project=project, now=now_iso(), taken=taken):
        job.progress.update(step="reading notes", done=done, total=len(notes))
        go_on(context)
        yield
    job.result.update(
        {**NO_TURNS, "files": taken.files, "redactions": taken.redactions.total(), "memories_known": taken.known,
         "forgotten": taken.forgotten, "problems": taken.problems}
    )  # fmt: skip


def _project(context: Context, job: Task, folder: Path) -> int:
    """The project that notes are about: the one that is named, else the one whose memory directory it is."""
    named = str(job.order.get("project", ""))
    if named:
        place = project_identity.identified(named)
        return context.store.write(lambda rows: projects.ensure(rows, project_identity.marked(place), now=now_iso()))
    whose = folder.parent.name if folder.name == "memory" else folder.name

    def known(rows: Rows) -> set[int]:
        return {seq for path, seq in workspaces.directories(rows) if environment.folder_name(path) == whose}

    found = context.store.read(known)
    if len(found) != 1:
        raise BadInput(
            f"{folder}: which project are these notes about?", hint="name it: csmd import DIR --project PATH"
        )
    return found.pop()


# --- out


def write_export(context: Context, job: Task) -> Iterator[None]:
    """Writes the memories of the job's places into its directory, which is made, or empty, or holds an earlier export."""
    began, directory = time.monotonic(), Path(job.path)
    _make_room(directory)
    total = 0
    for total in transfer.export_memories(context.store, directory, job.order["places"]):
        job.progress.update(step="writing", done=total)
        go_on(context)
        yield
    every, forgotten = context.store.read(
        lambda rows: (len(exports.seqs(rows, None)), tombstones.count_forgotten(rows))
    )
    job.result.update(
        path=str(directory / transfer.NAME), memories=total, project=job.order["project"], elsewhere=every - total,
        forgotten=forgotten, took_s=round(time.monotonic() - began, 3), degraded=[],
    )  # fmt: skip


def _make_room(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = directory.lstat()
        beside = sorted(one.name for one in directory.iterdir() if one.name != transfer.NAME)
    except OSError as error:
        raise ConfigError(f"{directory}: {error.strerror}", hint="name a directory that you can write to") from error
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
        raise ConfigError(f"{directory} is not a directory of yours", hint="name another one")
    if beside and not (directory / transfer.NAME).is_file():
        raise ConfigError(f"{directory} is not empty: {beside[0]} is in it", hint="name an empty or a new directory")
    files.make_private(directory)


#: How long a task, and within it the search in files, may take the background thread before others have their turn.
SLICE_S = SEARCH_S = 0.2
#: Sessions whose ids are searched for in the assistant's files.
MOST_NAMES = 100
#: How often the write-ahead log is tried to be emptied while a reader is at work.
CLEANSE_TRIES = 50
Steps = Generator[None, None, dict[str, Any]]


def purge_batches(context: Context, job: Task) -> Iterator[None]:
    """Does a purge, or with `dry_run` says what it would do; without a plan it finishes one that was broken off."""
    started = time.monotonic()
    plan: Plan | None = job.order.get("plan")
    there: dict[str, Any] = {"hosts": [], "texts": []}
    if plan is not None:
        if not job.order.get("dry_run"):
            reading.replay(context)
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
        context.store.write(lambda rows: purge.add_tombstones(rows, plan, sorted(found), key=key, now=now))
    yield from _honour(context, job)
    job.progress.update(step="files")
    job.result.update(_purge_files(context, plan))
    while daily.withdraw(context.store, context.config.paths.memory, now=now_iso(), here=local_time):
        yield
    yield from cleanse(context, job)
    context.store.write(purge.end)
    if plan is not None:
        job.progress.update(step="checking")
        left = yield from _look(context, plan.probes, [], own=_own_places(context), hosts=[])
        job.result.update(left=left["left"], took_s=round(time.monotonic() - started, 3))


def resume_purge(context: Context) -> None:
    """Has a purge finished that was broken off."""
    if context.store.read(purge.is_unfinished):
        context.submit(Task(kind="purge"))


def _variants(context: Context, job: Task, plan: Plan) -> Generator[None, None, set[str]]:
    """The texts as they stand in the store, in whole words: by these they are known when they come back."""
    needles = [Needle(said) for said in plan.texts]
    found: set[str] = set()
    for number, (table, column) in enumerate(text_columns.WAYS):
        job.progress.update(step="searching", done=number, total=len(text_columns.WAYS))
        after: int | None = 0
        while needles and after is not None:
            go_on(context)
            part = (needles, table, column, after)
            after, more = context.store.read(lambda rows, part=part: purge.variants(rows, *part))  # type: ignore[misc]
            found |= more
            yield
    return found


def _honour(context: Context, job: Task) -> Iterator[None]:
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


def cleanse(context: Context, job: Task) -> Iterator[None]:
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
    outside = [paths.log_dir, paths.config_file, spool_places(paths.home)[1]]
    return [paths.home, *(path for path in outside if path.exists() and not path.is_relative_to(paths.home))]


def _host_places(context: Context) -> list[Path]:
    """Everything of the assistant's that may hold what was said."""
    return [path for folder in context.config.assistant_dirs for path in transcript.places(folder) if path.exists()]


def _look(
    context: Context, texts: Sequence[str], names: Sequence[str], *, own: Sequence[Path], hosts: Sequence[Path]
) -> Steps:
    """Has another process search in files; what it says."""
    if not texts and not names:
        return {"left": [], "hosts": [], "texts": []}
    asked = {"texts": list(texts), "names": list(names), "own": [str(p) for p in own], "hosts": [str(p) for p in hosts]}
    command = [sys.executable, "-P", "-m", "csmd.store.purge_files"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=child_environment()) as child:
        said: bytes | None = wire.dumps(asked).encode("utf-8", "replace")
        while True:
            try:
                answer, _ = child.communicate(said, timeout=SEARCH_S)
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


#: Places that are listed one by one; the others are counted.
LISTED = 500
#: Lines of a transcript between two looks at what else is due.
LINES_AT_ONCE = 2000


def scan(context: Context, job: Task) -> Iterator[None]:
    """Looks through the database, csmd's files and, when asked, the assistant's transcripts."""
    started = time.monotonic()
    fix, report = bool(job.order.get("fix")), _Report()
    if fix:
        reading.replay(context)
    for number, (table, column) in enumerate(text_columns.WAYS):
        job.progress.update(step="scanning", done=number, total=len(text_columns.WAYS))
        yield from _column(context, table, column, report, fix=fix)
    job.progress.update(step="files")
    _files(context, report, fix=fix)
    yield
    if fix and report.fixed:
        yield from cleanse(context, job)
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
    if text_columns.WAYS[table, column] in text_columns.OF_PATHS:
        return  # paths of transcripts are kept as they are: a cursor has to find its file again
    store, key = context.store, context.store.hash_key
    after: int | None = 0
    while after is not None:
        go_on(context)
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
    for path, way in purge_files.list_files(paths.home, paths.log_dir):
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


def _transcripts(context: Context, job: Task, report: _Report) -> Iterator[None]:
    """Counts what the assistant's own transcripts hold, by decoded strings as when they are read."""
    listed = [path for root in context.roots() for path in transcripts.transcripts(root)]
    for number, path in enumerate(listed):
        job.progress.update(step="transcripts", done=number, total=len(listed))
        kinds: Counter[str] = Counter()
        with contextlib.suppress(OSError):
            for _ in _lines(path, kinds):
                go_on(context)
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


log = logging.getLogger(__name__)

NO_MODEL = "vectors: no embedding model is installed (csmd model fetch)"
FIRST_TEXT_S = 60.0
"""How long a new model may take to load."""


class Tasks:
    """Owns the task under way, and what tasks set to work besides the store; the background thread steps it."""

    def __init__(
        self,
        context: Context,
        *,
        instructed: InstructionRefresh,
        edited: Edited,
        reindex: Reindex,
        stages: Stages,
        dreaming: Dreaming,
    ) -> None:
        self._context = context
        self.instructed, self.edited, self.reindex, self.stages = instructed, edited, reindex, stages
        self.dreaming = dreaming
        self._batches: Generator[None] | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether somebody waits for a task that was begun."""
        return self._batches is not None

    def step(self, turn: Turn) -> bool:
        """Does batches of the task under way for a moment, or of the next one; the turn notes whether there was one."""
        context = self._context
        if self._batches is None and (task := context.take_task()):
            self._batches = carry_out(task, _work(context, self, task), log_file=context.config.paths.log_file)
        if self._batches is None:
            return False
        turn.at_task, begun = True, time.monotonic()
        try:
            next(self._batches)
            # Of thousands of short sessions many fit between two looks at what else there is.
            while not (context.hinted or context.stopping) and time.monotonic() - begun < SLICE_S:
                next(self._batches)
        except StopIteration:
            self._batches = context.reads = None
        return False

    def close(self) -> bool:
        """Ends the task under way as it is: the lock that it holds is left."""
        if self._batches is not None:
            self._batches.close()
        return False


def _work(context: Context, parts: Tasks, job: Task) -> Generator[None]:
    if job.kind == "model":
        _use_model(context, job)
    elif job.kind == "purge":
        yield from purge_batches(context, job)
    elif job.kind == "scan":
        yield from scan(context, job)
    elif job.kind == "undo":
        yield from parts.dreaming.undo(job)
    elif job.kind == "backup":
        job.progress.update(step="copying")
        job.result.update(housekeeping.make_backup(context, Path(job.path) if job.path else None))
    elif job.kind == "export":
        yield from write_export(context, job)
    else:
        yield from _take_in(context, parts, job)


def _take_in(context: Context, parts: Tasks, job: Task) -> Iterator[None]:
    started = time.monotonic()
    before = _counts(context)
    brought = job.kind == "import" and (yield from read_brought(context, job))
    paths = [] if brought else (yield from _read_all(context, job))
    parts.instructed.sweep()
    # Whoever syncs has every transcript read by now; an import reads what is elsewhere.
    reading = parts.edited.read if job.kind == "sync" else parts.edited.read_settled
    context.guard("pages", lambda: reading() > 0)
    job.progress.update(step="distilling")
    for _ in parts.stages.distilling(force=True):
        go_on(context)
        yield
    for _ in parts.stages.settle():
        go_on(context)
        yield
    if job.kind == "sync":
        yield from _reindex(context, parts.reindex, job)
    degraded = (yield from _embed_all(context, parts, job)) if job.with_vectors else []
    go_on(context)
    context.store.checkpoint(truncate=True)
    after = _counts(context)
    mine = {f"transcript {path}" for path in paths}
    troubled = [
        what for what in context.trouble if what in mine or what.startswith(("distilling", "spooled", "passages"))
    ]
    job.result.update(
        memories_new=after["memories"] - before["memories"],
        vectors=after["vectors"] - before["vectors"],
        took_s=round(time.monotonic() - started, 3),
        degraded=[*(f"{what}: {context.trouble[what]}" for what in sorted(troubled)), *degraded],
    )


def _counts(context: Context) -> dict[str, int]:
    return context.store.read(activity.counts)


def _read_all(context: Context, job: Task) -> Generator[None, None, list[str]]:
    reading.replay(context)
    sessions, later = _sessions(context, job)
    total, files, bytes_all = transcripts.Tail(), 0, 0
    began = time.monotonic()
    for number, past in enumerate(sessions):
        project = past.project.rpartition("/")[2]
        job.progress.update(step="reading", done=number, total=len(sessions), project=project)
        for one in past.files:
            left = True
            while left:
                go_on(context)
                report = reading.look_at(context, Path(one.path), strict=True, most_pieces=1)
                for name in ("turns_new", "turns_known", "bad_lines", "redactions"):
                    setattr(total, name, getattr(total, name) + getattr(report, name))
                bytes_all += report.bytes_read
                left = report.more
                job.progress.update(bytes=bytes_all)
                yield
            context.backlog.drop(one.path)
            files += 1
    go_on(context)
    job.progress.update(done=len(sessions), total=len(sessions))
    job.result.update(
        files=files,
        turns_new=total.turns_new,
        turns_known=total.turns_known,
        bad_lines=total.bad_lines,
        redactions=total.redactions,
    )
    if job.recent:
        context.backlog.fill(later)
        # In the background there are rests between: until it is under way, that is its pace.
        context.backlog.note(read=bytes_all, took_s=(time.monotonic() - began) * (1 + REST))
        job.result.update(left=context.backlog.shown())
    return [one.path for past in sessions for one in past.files]


def _sessions(context: Context, job: Task) -> tuple[list[Past], list[Past]]:
    """What the job reads, and what of the rest has grown: that is left to the background."""
    if job.kind == "import":
        root = job.path if Path(job.path).is_dir() else str(Path(job.path).parent)
        return backlog.in_order(transcripts.listed(Path(job.path)), [root]), []
    roots = [str(root) for root in context.roots()]
    known = context.store.read(cursors.file_positions)
    found = {one.path: one for root in roots for one in transcripts.listed(Path(root))}
    for path in [*map(str, context.take_hints()), *known]:
        if path not in found and (one := transcripts.look(path)):
            found[path] = one
    sessions = backlog.in_order(found.values(), roots)
    if not job.recent:
        return sessions, []
    grown = {one.path for one in found.values() if transcripts.has_grown(one, known)}
    later = [replace(past, files=tuple(one for one in past.files if one.path in grown)) for past in sessions]
    return (
        [past for past in sessions if past.rank < job.recent],
        [past for past in later if past.rank >= job.recent and past.files],
    )


def _reindex(context: Context, reindex: Reindex, job: Task) -> Iterator[None]:
    """Gives what was stored before passages its passages; what hinders it is told in `trouble`."""
    parts = reindex.finish()
    done, left = 0, True

    def go_on_part() -> bool:
        nonlocal done, left
        left = False  # also where it fails
        made = next(parts, 0)
        done, left = done + made, made > 0
        return left

    while left:
        go_on(context)
        context.guard("passages", go_on_part)
        job.progress.update(step="indexing", done=done)
        yield


def _embed_all(context: Context, parts: Tasks, job: Task) -> Generator[None, None, list[str]]:
    """Embeds what waits; what hindered it."""
    name = context.model_name()
    if name is None:
        yield from _link_all(context, parts, job)
        return [NO_MODEL]
    model = context.store.read(lambda rows: vectors.model_seq(rows, name))
    total = context.store.read(lambda rows: vectors.count_waiting(rows, model))
    done = 0
    try:
        while not context.stopping and (made := parts.stages.embed_some()):
            done += made
            job.progress.update(step="embedding", done=done, total=max(done, total))
            yield
    except EmbeddingUnavailable as error:
        return [f"vectors: {error.what}"]
    yield from _link_all(context, parts, job)
    return []


def _link_all(context: Context, parts: Tasks, job: Task) -> Generator[None]:
    """Links what waits into threads."""
    done, total = 0, context.store.read(lambda rows: threads.waiting(rows, model=context.model_name()))
    while not context.stopping and (made := parts.stages.link_some()):
        done += made
        job.progress.update(step="linking", done=done, total=max(done, total))
        yield


def _use_model(context: Context, job: Task) -> None:
    """Copies a model in and works with it; here, so that no batch of the background's is under way with the old one."""
    config = context.config
    job.progress.update(step="copying")
    chosen = str(job.order.get("name", ""))
    directory = supervisor.add_model(Path(job.path), config.paths.models, name=chosen or config.settings.embed_model)
    supervisor.choose(config.paths.models, chosen)
    context.embedder.use(directory)
    job.progress.update(step="loading")
    try:
        dim = len(context.embedder.embed(["a first text"], deadline_s=FIRST_TEXT_S)[0])
    except EmbeddingUnavailable as error:
        raise ConfigError(f"the model in {job.path} does not load: {error.what}", hint=error.hint) from error
    job.result.update(model=supervisor.model_identity(directory), dim=dim)
