"""Purges: removes texts, turns, sessions or projects from the database and from csmd's files."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from csmd import wire
from csmd.config import child_environment, spool_places
from csmd.daemon import spool_replay
from csmd.daemon.context import Context, Task, Work, now_iso, to_local_time
from csmd.daemon.dreaming import Dreaming
from csmd.daemon.task_steps import Batches, cleanse, seconds_since, walk_parts
from csmd.dream import day_files
from csmd.errors import StoreError
from csmd.hosts import adapters
from csmd.paths import is_there
from csmd.privacy.fingerprints import Needle
from csmd.store import purge, purge_files, purge_plans, stored_pages, team, text_columns, tombstones
from csmd.store.purge_plans import Plan

#: How long the search in files works before others have their turn.
SEARCH_SLICE_S = 0.2


def resume_purge(context: Context) -> None:
    """Submits the rest of an interrupted purge."""
    if context.store.read(purge.is_unfinished):
        context.submit(Task(kind="purge"))


# --- purge

#: How many sessions' ids are searched for in the assistant's files.
MAX_SEARCHED_IDS = 100


def run_purge(context: Context, task: Task, dreaming: Dreaming) -> Work:
    """Carries out a purge, or with `dry_run` describes it; without a plan it finishes an interrupted one."""
    began, store, paths = time.monotonic(), context.store, context.config.paths
    plan: Plan | None = task.order.get("plan")
    result: dict[str, Any] = {}
    if plan is not None:
        is_dry = task.order.get("dry_run")
        if not is_dry:
            spool_replay.replay(context)
            # Pages whose name contains the text are removed, so people's edits are read first.
            context.guard("pages", dreaming.pages.read)
        yield {"step": "transcripts"}
        names = [] if plan.texts else (plan.sessions or plan.turns)[:MAX_SEARCHED_IDS]
        hits = yield from _search_files(plan.texts or plan.probes, names, hosts=_list_host_places(context))
        counts = store.read(lambda rows: purge_plans.count_matches(rows, plan))
        result = {"what": plan.what, "about": plan.about, "counts": counts, "hosts": hits["hosts"]}
        if is_dry:
            projects = store.read(lambda rows: purge_plans.list_affected_projects(rows, plan, seen=task.order["seen"]))
            return {**result, "places": projects, "backups": len(purge_files.list_copies(paths.home, paths.log_dir))}
        texts = (yield from _find_variants(context, plan)) | set(hits["texts"] if plan.texts else ())
        key, now = store.hash_key, now_iso()
        store.write(lambda rows: purge_plans.add_tombstones(rows, plan, sorted(texts), key=key, now=now))
    yield from _purge_rows(context)
    yield {"step": "files"}
    result |= _purge_files(context, plan)
    while day_files.remove_withdrawn(store, paths.memory, now=now_iso(), to_local=to_local_time):
        yield None
    for _ in dreaming.rewrite_pages():
        yield {"step": "pages"}
    yield from cleanse(context)
    store.write(purge.record_end)
    if plan is not None:
        yield {"step": "checking"}
        remnants = yield from _search_files(plan.probes, [], own=_list_own_places(context))
        has_team = store.read(team.find_team) is not None
        result |= {"left": remnants["left"], "team": has_team, "took_s": seconds_since(began)}
    return result


def _find_variants(context: Context, plan: Plan) -> Batches[set[str]]:
    """Returns the texts as the store has them, in whole words: they are recognised by these if they arrive again."""
    needles, variants = [Needle(text) for text in plan.texts], set[str]()

    def find_part(table: str, column: str, after: int) -> tuple[int | None, set[str]]:
        return context.store.read(lambda rows: purge_plans.find_variants(rows, needles, table, column, after))

    for number, (table, column) in enumerate(text_columns.PURGE_ACTIONS if needles else ()):
        for texts in walk_parts(partial(find_part, table, column)):
            variants |= texts
            yield {"step": "searching", "done": number, "total": len(text_columns.PURGE_ACTIONS)}
    return variants


def _purge_rows(context: Context) -> Batches[None]:
    key = context.store.hash_key

    def purge_part(run: purge.Pass, after: int) -> tuple[int | None, int]:
        return context.store.write(lambda rows: run(rows, key, after))

    for number, run in enumerate(purge.PASSES):
        for _ in walk_parts(partial(purge_part, run)):
            yield {"step": "purging", "done": number, "total": len(purge.PASSES)}


def _purge_files(context: Context, plan: Plan | None) -> dict[str, Any]:
    paths, store, key = context.config.paths, context.store, context.store.hash_key
    marks = store.read(lambda rows: tombstones.purged_marks(rows, key))
    needles = [Needle(text) for text in (plan.texts or plan.probes)] if plan else []
    everything = plan is None or plan.what != "text"

    def find_purged(kind: Literal["turn", "session", "memory"], names: Sequence[str]) -> set[str]:
        if kind == "memory":
            return set(store.read(lambda rows: stored_pages.missing_memories(rows, names)))
        return set(store.read(lambda rows: tombstones.purged_names(rows, kind, names, key=key)))

    changes = purge_files.purge(paths.home, paths.log_dir, marks, needles, purged=find_purged, everything=everything)
    return {"files_removed": changes.removed, "files_rewritten": changes.rewritten, "files_kept": changes.kept}


def _list_own_places(context: Context) -> list[Path]:
    paths = context.config.paths
    outside = [paths.log_dir, paths.config_file, spool_places(paths.home)[-1]]
    return [paths.home, *(path for path in outside if is_there(path) and not path.is_relative_to(paths.home))]


def _list_host_places(context: Context) -> list[Path]:
    """Returns the assistants' files and directories that may contain text of conversations."""
    directories = adapters.list_directories(context.config)
    return [path for adapter, folder in directories for path in adapter.places(folder) if is_there(path)]


def _search_files(
    texts: Sequence[str], names: Sequence[str], *, own: Sequence[Path] = (), hosts: Sequence[Path] = ()
) -> Batches[dict[str, Any]]:
    """Searches in files with a separate process; returns its answer (`csmd.store.byte_search`)."""
    if not texts and not names:
        return {"left": [], "hosts": [], "texts": []}
    query = {"texts": [*texts], "names": [*names], "own": [*map(str, own)], "hosts": [*map(str, hosts)]}
    command = [sys.executable, "-P", "-m", "csmd.store.byte_search"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=child_environment()) as child:
        data: bytes | None = wire.dumps(query).encode("utf-8", "replace")
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    answer, _ = child.communicate(data, timeout=SEARCH_SLICE_S)
                    break
                data = None  # it was sent
                yield None
        finally:
            child.kill()  # it still runs if the daemon stops
    if child.returncode:
        raise StoreError("the search in files failed", hint="run it again")
    hits: dict[str, Any] = wire.loads(answer)
    return hits
