"""The table of tasks, which clients wait for and the background thread steps.

Each kind of task has a generator, which yields changed fields of its progress after each batch and returns its result.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Callable, Generator, Mapping
from functools import partial
from itertools import accumulate, compress
from pathlib import Path

from csmd.daemon import housekeeping, import_task, provider_tasks, purge_task, secret_scan
from csmd.daemon.context import Context, Task, Work, carry_out, iso_before
from csmd.daemon.dreaming import Dreaming
from csmd.daemon.instruction_refresh import InstructionRefresh
from csmd.daemon.stages import Stages
from csmd.daemon.task_steps import Batches, repeat_batches, seconds_since
from csmd.daemon.team_exchange import TeamExchange
from csmd.embedding import installed_models, token_counter
from csmd.errors import ConfigError, EmbeddingUnavailable, StoreError
from csmd.extraction import statements
from csmd.memory_export import export_file, record_schema
from csmd.paths import is_file
from csmd.recall import threads
from csmd.store import activity, exports, files, stored_secrets, tombstones, vectors
from csmd.store.stored_secrets import FoundSecrets
from csmd.text import tokens

#: How long a task works before others have their turn.
SLICE_S = 0.2
MODEL_LOAD_TIMEOUT_S = 60.0
#: How often the daemon checks whether a task about secrets is due.
SECRETS_CHECK_S = 5.0
#: Rest after such a task failed, which may have read everything.
SECRETS_RETRY_S = 3600.0


class Tasks:
    """Owns the running tasks, of which the background thread steps the last. A client's task goes before csmd's own."""

    def __init__(
        self, context: Context, *, stages: Stages, dreaming: Dreaming, instructions: InstructionRefresh,
        team_exchange: TeamExchange,
    ) -> None:  # fmt: skip
        self._context, self._stages, self._dreaming, self._instructions = context, stages, dreaming, instructions
        self._running: list[tuple[Task, Generator[None]]] = []
        self._commits, self._is_scanned = -1, False
        self._secrets: FoundSecrets | None = None
        #: The latest task that csmd ordered itself, and when.
        self._latest_order, self._ordered_at = Task(kind="secrets", state="done"), 0.0
        self._late_secrets: dict[str, int] = {}
        self._kinds: Mapping[str, Callable[[Task], Work]] = {
            "import": self._import_or_sync, "sync": self._import_or_sync, "undo": dreaming.undo,
            "model": partial(_use_model, context, stages), "export": partial(_export, context),
            "purge": partial(purge_task.run_purge, context, dreaming=dreaming), "backup": partial(_back_up, context),
            "scan": partial(secret_scan.scan, context), "secrets": partial(secret_scan.remove_late_secrets, context),
            "provider": partial(provider_tasks.try_provider, context),
            "endpoint": partial(provider_tasks.use_for_vectors, context), "team": team_exchange.work,
        }  # fmt: skip

    @property
    def is_running(self) -> bool:
        """Whether a task has begun and not ended."""
        return bool(self._running)

    @property
    def is_urgent(self) -> bool:
        """Whether a client waits for the running task."""
        return self.is_running and not self._running[-1][0].is_own

    def step(self) -> bool:
        """Does batches of the running task for a moment, or begins the next one; returns whether there was one."""
        context, began = self._context, time.monotonic()
        if not self.is_urgent and (task := context.take_task(only_ordered=self.is_running)):
            self._running.append((task, carry_out(context, task, self._kinds[task.kind](task))))
        if not self.is_running:
            return False
        batches = self._running[-1][1]
        try:
            next(batches)
            # Thousands of short sessions would take long if other work were looked for after each.
            while time.monotonic() - began < SLICE_S:
                next(batches)
        except StopIteration:
            self._running.pop()
            context.reading_task = self._running[-1][0] if self._running else None
        return True

    def order_secret_task(self) -> bool:
        """Orders the next task about secrets: those recognised late, a scan with new rules, or removing what a scan
        found.

        The store is asked only if something was written since the last time.
        """
        context, store = self._context, self._context.store
        secret_tasks = [task for task in [*context.tasks.values()] if task.kind in ("scan", "secrets")]
        if any(task.state in ("waiting", "running") for task in secret_tasks):
            return False
        if self._latest_order.state == "failed" and time.monotonic() < self._ordered_at + SECRETS_RETRY_S:
            raise StoreError(self._latest_order.error)  # for status: no client waits for it
        if store.commits != self._commits:
            self._commits = store.commits
            self._secrets = store.read(stored_secrets.found_secrets)
            self._late_secrets = store.read(stored_secrets.sessions_with_late_secrets)
            scanned_rules = store.read(stored_secrets.read_rules_of_latest_scan)
            self._is_scanned = scanned_rules == tokens.keyed_hash(context.rules, store.hash_key)
            context.withholds = not self._is_scanned or self._secrets is not None
        secrets = self._secrets
        if not self._is_scanned and not store.read(stored_secrets.holds_text):
            secret_scan.record_scan(context, {}, {})
        elif not self._is_scanned:
            self._order(Task(kind="scan", is_own=True))
        elif self._late_secrets:
            self._order(Task(kind="secrets", is_own=True))
        elif due := secrets.rare_before(iso_before(secret_scan.KEEP_DAYS * 86_400)) if secrets else []:
            self._order(Task(kind="scan", order={"fix": True, "kinds": due}, is_own=True))
        else:
            return False
        return True

    def _order(self, task: Task) -> None:
        self._latest_order, self._ordered_at = task, time.monotonic()
        self._context.submit(task)

    def close(self) -> None:
        """Ends the running tasks at once, so that they release their locks."""
        for _, batches in reversed(self._running):
            batches.close()

    def _import_or_sync(self, task: Task) -> Work:
        """Imports the task's path, or syncs; then brings every stage up to date.

        Another program's memories are only examined until the import is confirmed, and so is everything in a dry run.
        """
        context, began = self._context, time.monotonic()
        if task.kind == "import" and (preview := (yield from import_task.preview_import(context, task))):
            return {**preview, "took_s": seconds_since(began)}
        before = context.store.read(activity.counts)
        paths: list[str] = []
        result = (yield from import_task.import_memories(context, task)) if task.kind == "import" else None
        if result is None:
            result, paths = yield from import_task.read_transcripts(context, task)
        if context.store.read(stored_secrets.sessions_with_late_secrets):
            yield from secret_scan.remove_late_secrets(context, task)
        self._instructions.sweep()
        # A sync has read every transcript by now; an import has read only files elsewhere.
        pages = self._dreaming.pages
        context.guard("pages", pages.read if task.kind == "sync" else pages.read_settled)
        sessions = len(statements.list_behind(context.store))
        yield {"step": "distilling", "done": 0, "total": sessions}
        for done, _ in enumerate(self._stages.distill_sessions(force=True), 1):
            yield {"step": "distilling", "done": done, "total": max(done, sessions)}
        for done in accumulate(self._stages.run_until_done()):
            yield {"step": "remembering", "done": done, "total": 0}
        degraded = (yield from self._embed()) if task.with_vectors else []
        context.store.checkpoint(truncate=True)
        after = context.store.read(activity.counts)
        transcript_keys = {f"transcript {path}" for path in paths}
        problems = sorted(context.trouble.items())
        is_own = [key in transcript_keys or key.startswith(("distilling", "spooled")) for key, _ in problems]
        trouble = [f"{key}: {problem}" for key, problem in compress(problems, is_own)]
        return {
            **result, "memories_new": sum(after[name] - before[name] for name in ("memories", "superseded")),
            "vectors": after["vectors"] - before["vectors"], "took_s": seconds_since(began),
            "degraded": [*trouble, *degraded],
        }  # fmt: skip

    def _embed(self) -> Batches[list[str]]:
        """Embeds and links the waiting rows; returns the problems."""
        store, name = self._context.store, self._context.model_name()
        if name is not None:
            total = store.read(lambda rows: vectors.count_waiting(rows, vectors.find_model(rows, name)))
            try:
                yield from repeat_batches("embedding", self._stages.embed_some, total)
            except EmbeddingUnavailable as error:
                return [f"vectors: {error.what}"]
        total = store.read(lambda rows: threads.count_waiting(rows, model=name))
        yield from repeat_batches("linking", self._stages.link_some, total)
        return []


# --- model, backup, export


def _use_model(context: Context, stages: Stages, task: Task) -> Work:
    """Installs a model and switches to it; as a task, so that no background batch is using the old one."""
    config, name = context.config, str(task.order.get("name", ""))
    yield {"step": "copying"}
    try:
        model_name = name or config.settings.embed_model
        directory = installed_models.add_model(Path(task.path), config.paths.models, name=model_name)
        folder = config.paths.models
        is_counting = token_counter.take_from(folder, task.path) or token_counter.take_installed(folder)
    finally:
        if Path(task.path) == config.paths.fetched_model:  # a temporary copy, also if the client has stopped waiting
            shutil.rmtree(task.path, ignore_errors=True)
    installed_models.choose_model(config.paths.models, name)
    context.embedder.switch_model(directory)
    yield {"step": "loading"}
    try:
        dim = len(context.embedder.embed(["a first text"], deadline_s=MODEL_LOAD_TIMEOUT_S)[0])
    except EmbeddingUnavailable as error:
        raise ConfigError(f"the model in {task.path} does not load: {error.what}", hint=error.hint) from error
    stages.restart()
    tokens_are = "counted" if is_counting else "estimated"
    return {"model": installed_models.model_identity(directory), "dim": dim, "tokens": tokens_are}


def _back_up(context: Context, task: Task) -> Work:
    def report_progress(done: int, total: int) -> None:
        """Updates the progress within a batch, for clients that ask on another thread."""
        task.progress.update(done=done, total=total)

    yield {"step": "copying"}
    target = Path(task.path) if task.path else None
    return housekeeping.make_backup(context, target, report_progress=report_progress)


def _export(context: Context, task: Task) -> Work:
    """Writes the memories of the task's places into its directory, which is new, empty, or holds an earlier export."""
    began, directory, total = time.monotonic(), Path(task.path), 0
    _prepare_directory(directory)
    memory_count = context.store.read(lambda rows: len(exports.list_exported(rows, task.order["places"])))
    is_markdown = bool(task.order.get("markdown"))
    for total in export_file.export_memories(
        context.store, directory, task.order["places"], redacts=context.withholds, is_markdown=is_markdown
    ):
        yield {"step": "writing", "done": total, "total": memory_count}
    all_memories = context.store.read(lambda rows: len(exports.list_exported(rows, None)))
    forgotten = context.store.read(tombstones.count_forgotten)
    return {
        "path": str(directory / (export_file.MARKDOWN_NAME if is_markdown else record_schema.FILE_NAME)), "memories": total,
        "project": task.order["project"],
        "elsewhere": all_memories - total, "forgotten": forgotten, "took_s": seconds_since(began), "degraded": [],
    }  # fmt: skip


def _prepare_directory(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = directory.lstat()
        foreign_names = sorted(path.name for path in directory.iterdir() if path.name not in export_file.NAMES)
    except OSError as error:
        raise ConfigError(f"{directory}: {error.strerror}", hint="choose a writable directory") from error
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
        raise ConfigError(f"{directory} is not your directory", hint="choose another directory")
    if foreign_names and not any(is_file(directory / name) for name in export_file.NAMES):
        what = f"{directory} is not empty: {foreign_names[0]} is in it"
        raise ConfigError(what, hint="name an empty or a new directory")
    files.make_private(directory)
