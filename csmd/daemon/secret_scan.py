"""Scans for secrets in the database, in csmd's files and in transcripts, and removes them."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from csmd import cache, wire
from csmd.daemon import reading, spool_replay
from csmd.daemon.context import Context, Task, Work, now_iso
from csmd.daemon.task_steps import Batches, cleanse, seconds_since
from csmd.dream import day_files
from csmd.errors import BadInput, StoreError
from csmd.paths import is_file
from csmd.privacy import redaction
from csmd.privacy.fingerprints import remove_purged
from csmd.store import purge, purge_files, stored_pages, stored_secrets, text_columns, tombstones
from csmd.store.purge_files import FileWay
from csmd.store.stored_secrets import Redact
from csmd.text.display import amount

#: Most findings that are listed; further ones are only counted.
MAX_LISTED = 500
#: Lines of a transcript that are scanned before other work has its turn.
LINES_PER_BATCH = 2000
#: (findings, number of changed texts) of a scan.
Findings = tuple[list[dict[str, Any]], int]


def scan(context: Context, task: Task) -> Work:
    """Searches for secrets in the database, csmd's files and, on request, transcripts; `fix` removes them.

    Without `fix`, they are removed only from pages that csmd itself wrote. With `kinds`, only these are searched for
    and removed; no copy of the database is deleted and no person's file is changed, because no person asked for it.
    """
    began = time.monotonic()
    fix, kinds = bool(task.order.get("fix")), task.order.get("kinds")
    if fix:
        spool_replay.replay(context)
    redact = partial(_redact, kinds=kinds)
    secrets, fixed = yield from _scan_database(context, redact, fix=fix)
    degraded: list[str] = []
    in_files = yield from _scan_files(context, redact, degraded)
    refused: list[str] = []
    if fix and not kinds:
        changed = _change_files(context, redact, refused)
    else:
        ways, is_chosen = OWN_FILES if fix else PAGE_FILES, _make_own_file_test(context)
        changed = _change_files(context, redact, refused, ways=ways, should_change=is_chosen)
    if refused and fix and task.is_own:
        raise StoreError(refused[0], hint="make it writable")
    secrets += in_files
    fixed += changed
    degraded += refused
    yield None
    if fixed and fix:
        yield from cleanse(context)
    in_transcripts = (yield from _scan_transcripts(context)) if task.order.get("transcripts") else []
    by_kind = _count_kinds(secrets)
    in_turns = _count_kinds([secret for secret in secrets if secret.get("table") == "turns"])
    remaining = {} if fix and not refused else by_kind
    if kinds is not None and (before := context.store.read(stored_secrets.found_secrets)):
        other_kinds = {kind: amount for kind, amount in before.kinds.items() if kind not in kinds}
        remaining, in_turns = remaining | other_kinds, in_turns | Counter(other_kinds)
    record_scan(context, remaining, in_turns)
    return {
        "secrets": by_kind.total(), "kinds": dict(sorted(by_kind.items())), "found": secrets[:MAX_LISTED],
        "more": max(0, len(secrets) - MAX_LISTED), "fixed": fixed, "transcripts": in_transcripts, "degraded": degraded,
        "took_s": seconds_since(began),
    }  # fmt: skip


def _count_kinds(secrets: Sequence[Mapping[str, Any]]) -> Counter[str]:
    kinds: Counter[str] = Counter()
    for secret in secrets:
        kinds[secret["kind"]] += secret["count"]
    return kinds


def record_scan(context: Context, remaining: Mapping[str, int], in_turns: Mapping[str, int]) -> None:
    """Records the secrets that a scan has left in the store, by kind."""
    store, rules = context.store, context.rules
    record = partial(stored_secrets.record_scan, key=store.hash_key, now=now_iso())
    store.write(lambda rows: record(rows, rules, remaining, in_turns))
    context.withholds = bool(remaining)


def _scan_database(
    context: Context, redact: Redact, *, fix: bool, sessions: Sequence[int] | None = None
) -> Batches[Findings]:
    """Returns the secrets that `redact` finds in all texts; with `sessions`, only in turns of these sessions.

    Pages repeat the store, so secrets are removed from them at once: otherwise they would look edited by a person.
    """
    store, key = context.store, context.store.hash_key
    secrets: list[dict[str, Any]] = []
    fixed = 0
    for number, (table, column) in enumerate(text_columns.PURGE_ACTIONS):
        if text_columns.PURGE_ACTIONS[table, column] in text_columns.PATH_ACTIONS:
            continue  # paths of transcripts are kept: a cursor needs them to find its file
        after = 0
        next_part = partial(text_columns.read_texts_after, table=table, column=column, sessions=sessions)
        while part := store.read(partial(next_part, after=after)):
            after = part[-1][0]
            for seq, text in part:
                redacted, kinds = redact(text)
                if not kinds:
                    continue
                row_id, session = store.read(partial(stored_secrets.find_secret_row, table=table, seq=seq))
                where = {"table": table, "column": column, "id": row_id, "session": session}
                secrets += [{**where, **asdict(secret)} for secret in stored_secrets.find_secrets(text, redact, key)]
                if fix or table == "pages":
                    change = partial(purge.change_row, table=table, column=column, seq=seq, new=redacted, key=key)
                    store.write(partial(change, in_place=True))
                    fixed += 1
            if table != "pages":  # no one may read a page until its file matches
                yield {"step": "scanning", "done": number, "total": len(text_columns.PURGE_ACTIONS)}
        if (table, column) == LAST_PAGE_COLUMN:
            fixed += _change_files(context, redact, [], ways=PAGE_FILES, should_change=_make_page_test(context))
    return secrets, fixed


def _scan_files(context: Context, redact: Redact, degraded: list[str]) -> Batches[list[dict[str, Any]]]:
    """Returns the secrets in csmd's own files; adds files that cannot be read to `degraded`."""
    paths, key = context.config.paths, context.store.hash_key
    secrets: list[dict[str, Any]] = []
    for path, way in purge_files.list_files(paths.home, paths.log_dir):
        try:
            for text in purge_files.read_texts(path) if way == "copy" else purge_files.read_pieces(path):
                yield {"step": "files"}
                hits = stored_secrets.find_secrets(text, redact, key)
                secrets += [{"file": str(path), **asdict(secret)} for secret in hits]
        except (StoreError, OSError):
            degraded.append(f"{path} could not be read")
    return secrets


def _make_page_test(context: Context) -> purge_files.ShouldChange:
    """Returns the test for files that are pages written by csmd."""
    pages = {context.config.paths.memory / path for path in context.store.read(stored_pages.read_pages)}
    return lambda path, _: path in pages


def _make_own_file_test(context: Context) -> purge_files.ShouldChange:
    """Returns the test for files written by csmd: any other file among its pages is a person's."""
    memory, is_page = context.config.paths.memory, _make_page_test(context)
    return lambda path, text: not path.is_relative_to(memory) or is_page(path, text) or day_files.is_day_file(text)


#: The files that repeat the store.
PAGE_FILES: tuple[FileWay, ...] = ("page",)
LAST_PAGE_COLUMN = [way for way in text_columns.PURGE_ACTIONS if way[0] == "pages"][-1]
#: The files that csmd changes although no person asks: not the copies of the database.
OWN_FILES: tuple[FileWay, ...] = (*PAGE_FILES, "lines", "rewrite")


def _change_files(
    context: Context, redact: Redact, refused: list[str], *, ways: Collection[FileWay] | None = None,
    should_change: purge_files.ShouldChange = lambda *_: True,
) -> int:  # fmt: skip
    """Removes secrets from csmd's own files of these ways (None: all) that are `chosen`; returns how many changed.

    A removed file counts, too. Files that cannot be changed are added to `refused`.
    """

    def redact_and_count(text: str) -> tuple[str, int]:
        redacted, kinds = redact(text)
        return redacted, sum(kinds.values())

    paths = context.config.paths
    changes = purge_files.change_files(
        paths.home, paths.log_dir, redact_and_count, ways=ways, chosen=should_change,
        refusing=lambda path, error: refused.append(f"{path} could not be changed: {error.strerror}"),
    )  # fmt: skip
    return len(changes.removed) + len(changes.rewritten)


def _redact(text: str, kinds: Collection[str] | None = None) -> tuple[str, dict[str, int]]:
    counts: Counter[str] = Counter()
    return redaction.redact(text, counts, kinds=kinds), dict(counts)


def remove_late_secrets(context: Context, _: Task) -> Work:
    """Removes secrets from sessions in which they were recognised only after their text was stored.

    Every memory, page and other row made from several sessions is examined. An earlier backup keeps them; when it is
    restored, this is done again.
    """
    store, began = context.store, time.monotonic()
    late_sessions = store.read(stored_secrets.sessions_with_late_secrets)
    if not late_sessions:  # an earlier task has done it
        return {"sessions": 0, "fixed": 0, "took_s": seconds_since(began)}
    marks = store.read(lambda rows: tombstones.secrets_of(rows, list(late_sessions), store.hash_key))

    def redact(text: str) -> tuple[str, dict[str, int]]:
        cleaned, hits = remove_purged(text, marks, placeholder=redaction.KNOWN_AGAIN)
        return cleaned, {"known-again": hits} if hits else {}

    keys = store.read(lambda rows: stored_secrets.list_session_seqs(rows, late_sessions))
    fixed = (yield from _scan_database(context, redact, fix=True, sessions=keys))[1]
    refused: list[str] = []
    fixed += _change_files(context, redact, refused, ways=OWN_FILES, should_change=_make_own_file_test(context))
    if refused:
        raise StoreError(refused[0], hint="make it writable")
    store.write(lambda rows: stored_secrets.end_late_secrets(rows, late_sessions))
    cache.clear()
    store.checkpoint(truncate=True)
    return {"sessions": len(late_sessions), "fixed": fixed, "took_s": seconds_since(began)}


#: Days after which findings of newer rules are removed automatically if their kind is rare.
KEEP_DAYS = 7


def list_secret_warnings(secrets: stored_secrets.FoundSecrets | None) -> list[str]:
    """Returns the warning in `csmd status` about findings of newer rules."""
    if secrets is None:
        return []
    kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(secrets.kinds.items()))
    first = min((secrets.since[kind] for kind in secrets.rare), default="")
    due = (datetime.fromisoformat(first) + timedelta(days=KEEP_DAYS)).date() if first else None
    removal = f"; rare ones are removed automatically from {due} on" if due else ""
    count = amount(sum(secrets.kinds.values()), "secret")
    summary = f"{count} that older rules missed, redacted in every answer ({kinds})"
    return [f"secrets: {summary}; csmd scan lists them, csmd scan --fix removes them{removal}"]


def _scan_transcripts(context: Context) -> Batches[list[dict[str, Any]]]:
    """Counts the secrets in the assistants' transcripts, by decoded strings as when they are read."""
    roots = [root for root in context.list_roots() if not is_file(root)]
    paths = [Path(file.path) for root in roots for file in reading.list_own_transcripts(context.config, root)]
    affected = []
    for number, path in enumerate(paths):
        kinds: Counter[str] = Counter()
        with contextlib.suppress(OSError), path.open("rb") as file:
            for line_number, line in enumerate(file, 1):
                with contextlib.suppress(BadInput):
                    redaction.redact_tree(wire.loads(line), kinds)
                if line_number % LINES_PER_BATCH == 0:
                    yield None
        if kinds:
            affected.append({"path": str(path), "secrets": kinds.total(), "kinds": dict(kinds)})
        yield {"step": "transcripts", "done": number, "total": len(paths)}
    return affected
