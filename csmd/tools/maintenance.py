"""Tools on operation: import, sync, purge, backup, status, tail, probe."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import Any

from csmd.capture import project_identity
from csmd.embedding import models
from csmd.errors import BadInput
from csmd.hosts import adapters
from csmd.paths import is_there
from csmd.recall import compose, query, results, visibility
from csmd.store import activity_feed, backup, integrity, probes, projects, purge_plans, receipts, workspaces
from csmd.store.activity_feed import FeedRow
from csmd.store.purge_plans import Plan
from csmd.store.sqlite import Rows
from csmd.text import display
from csmd.tools import present
from csmd.tools.present import as_json
from csmd.tools.registry import Json, Places, ToolContext, Tools, need_person, places
from csmd.vocabulary import PROBE_SESSION

TASKS = Tools()
STATE = Tools()


@TASKS.add("csm_import", mutates=True)
def _import(
    ctx: ToolContext, rows: Rows, path: str, vectors: bool = True, project: str = "", asking: str = "",
    by_person: bool = False, dry_run: bool = False, confirmed: bool = False,
) -> Json:  # fmt: skip
    """Import transcripts, exported memories, or another program's, these only if `confirmed`; gives a job."""
    if not path or not is_there(path):
        raise BadInput(f"{Path(path)}: no such file or directory")
    order = {"project": project, "by_person": by_person, "asking": asking, "dry_run": dry_run, "confirmed": confirmed}
    return {"job": ctx.submit("import", path=str(Path(path)), with_vectors=vectors, order=order)}


@TASKS.add("csm_memory_export", mutates=True)
def _export(
    ctx: ToolContext, rows: Rows, path: str, project: str = "", asking: str = "", markdown: bool = False
) -> Json:
    """Write the memories of a project, or all, into a directory, with `markdown` to be read; gives a job."""
    if not path:
        raise BadInput(f"{Path(path)}: a directory is named by its whole path")
    order = {"places": places(rows, project, asking), "project": project, "markdown": markdown}
    return {"job": ctx.submit("export", path=str(Path(path)), order=order)}


@TASKS.add("csm_sync", mutates=True)
def _sync(ctx: ToolContext, rows: Rows, vectors: bool = True, recent: int = 0) -> Json:
    """Take in everything on disk; with `recent` only that many sessions of each project at once; gives a job."""
    return {"job": ctx.submit("sync", with_vectors=vectors, recent=max(0, recent))}


@TASKS.add("csm_job", lane=None)
def _job(ctx: ToolContext, rows: None, id_: str) -> Json:
    """How far a job is."""
    job = ctx.job(id_)
    if job is None:
        raise BadInput(f"there is no job {id_!r}; the daemon may have been restarted", hint="run it again")
    state = job.state  # first: another thread sets it when all else is there
    return as_json(
        job, "state progress result error hint", state=state, progress=dict(job.progress), result=dict(job.result)
    )


@TASKS.add("csm_model_add", mutates=True)
def _add_model(ctx: ToolContext, rows: Rows, path: str, name: str = "") -> Json:
    """Install an embedding model from a folder, `name` where it is not the configuration's; gives a job."""
    models.check_model_dir(Path(path))
    return {"job": ctx.submit("model", path=str(Path(path)), order={"name": name})}


def _plan(ctx: ToolContext, rows: Rows, what: str, kind: str) -> Plan:
    place = _project_key(rows, what) if what.startswith("/") else ""
    return purge_plans.resolve_plan(rows, what, key=ctx.store.hash_key, kind=kind, project_key=place)


def _project_key(rows: Rows, path: str) -> str:
    """The key of the project that is shown with a path, else of the one it counts to; its own where neither is known."""
    listed = workspaces.at_path(rows, path)
    seq = project_identity.find_row(rows, path) if listed is None else listed
    return project_identity.identified(path).key if seq is None else projects.key_of(rows, seq)


@TASKS.add("csm_privacy_purge", mutates=True)
def _purge(
    ctx: ToolContext, rows: Rows, what: str, kind: str = "", dry_run: bool = False, asking: str = "", by_person: bool = False
) -> Json:  # fmt: skip
    """Remove something from everything csmd holds; gives a job."""
    if not dry_run:
        need_person(by_person, "have csmd purge something")
    seen = (
        None if by_person else visibility.find_visible_places(rows, asking=asking)
    )  # a wall hides its projects' names
    order = {"plan": _plan(ctx, rows, what, kind), "dry_run": dry_run, "seen": seen}
    return {"job": ctx.submit("purge", order=order)}


@TASKS.add("csm_privacy_lift", mutates=True, person="let in again what was purged")
def _allow_again(ctx: ToolContext, rows: Rows, what: str, kind: str = "") -> Json:
    """Let in again what was purged."""
    plan = _plan(ctx, rows, what, kind)
    gone = ctx.store.write(lambda writing: purge_plans.remove_tombstones(writing, plan, key=ctx.store.hash_key))
    return {"what": plan.what, "about": plan.about, "lifted": gone}


@TASKS.add("csm_privacy_scan", mutates=True)
def _scan(ctx: ToolContext, rows: Rows, fix: bool = False, transcripts: bool = False, by_person: bool = False) -> Json:
    """Look for secrets in what csmd holds; gives a job."""
    if fix:
        need_person(by_person, "have csmd change what it holds")  # copies of the database go, which cannot be undone
    return {"job": ctx.submit("scan", order={"fix": fix, "transcripts": transcripts})}


@TASKS.add("csm_backup_make", mutates=True, lane=None)
def _make_backup(ctx: ToolContext, rows: None, path: str = "") -> Json:
    """Copy the database to a file; gives a job."""
    return {"job": ctx.submit("backup", path=path)}


@TASKS.add("csm_backup_list", lane=None)
def _list_backups(ctx: ToolContext, rows: None) -> Json:
    """List the backups."""
    return {"backups": backups(ctx.config.paths.database)}


def backups(database: Path) -> list[Json]:
    """Every backup, the newest first."""
    return [
        {"path": str(path), "made_at": made.isoformat().replace("+00:00", "Z"), "bytes": path.stat().st_size}
        for path in backup.list_backups(database)
        if (made := backup.made_at(path))
    ]


@STATE.add("csm_clients")
def _clients(ctx: ToolContext, rows: Rows) -> Json:
    """Which versions and directories of the assistant are in use."""
    return ctx.clients(rows)


@STATE.add("csm_store_check")
def _check(ctx: ToolContext, rows: Rows, indexes: bool = True) -> Json:
    """Check that the database is sound."""
    if not indexes:
        return {"problems": integrity.structure(rows) or integrity.content(rows)}
    # FTS5's own check is a statement that writes nothing but wants the writer.
    return {"problems": ctx.store.write(integrity.integrity)}


@STATE.add("csm_store_shape")
def _shape(ctx: ToolContext, rows: Rows) -> Json:
    """The database without its content: tables, how many rows, SQLite's settings."""
    return integrity.shape(rows)


@STATE.add("csm_runtime_pause", lane="status")
def _pause(ctx: ToolContext, rows: Rows) -> Json:
    """Whether csmd is paused; read anew from its file."""
    ctx.read_pauses()
    return {"paused": ctx.paused()}


@STATE.add("csm_runtime_status", lane="status")
def _status(ctx: ToolContext, rows: Rows) -> Json:
    """The daemon's state."""
    return ctx.status(rows)


@STATE.add("csm_runtime_alarms", lane=None)
def _alarms(ctx: ToolContext, rows: None) -> Json:
    """What means that nothing is being remembered."""
    return {"alarms": ctx.alarms()}


#: A marker has a turn for each event that reports one.
MOST_TURNS = 10


@STATE.add("csm_probe_take", mutates=True)
def _take_probe(ctx: ToolContext, rows: Rows, id_: str) -> Json:
    """Find the turns that `csmd doctor` sent, and take them away.

    Found by words alone: that a vector is made for it is the worker's business, and may take a while.
    """
    word = id_.removeprefix(PROBE_SESSION)
    if word == id_ or not word.isalpha():
        raise BadInput(f"{id_!r} is no marker of `csmd doctor`")
    if not probes.has_probe(rows, id_):
        ctx.poke()  # it may wait in the spool
        return {"found": [], "removed": 0}
    hits, _ = results.find(rows, word, projects=None, kind="turn", limit=MOST_TURNS, embed=None)
    texts = [hit.text for hit in hits if hit.session_id == id_]
    return {"found": texts, "removed": ctx.store.write(lambda writing: probes.remove_probe(writing, session_id=id_))}


#: Of one kind in one answer; who gets so many asks again at once.
MOST = 200
#: Characters of a text; `csmd session transcript` shows the whole.
TEXT_CHARACTERS = 1000
#: Of one project's rows so many of all projects' are looked through for the first look.
BACK = 20_000


@STATE.add("csm_tail", lane="status")
def _tail(
    ctx: ToolContext, rows: Rows, cursor: str = "", last: int = 10, seen: Places = None, asking: str = "", session: str = "",
    kind: str = "", since: str = "",
) -> Json:  # fmt: skip
    """What has happened since a cursor; of one session, of some kinds (commas between), since a time."""
    ends, kinds = activity_feed.feed_positions(rows), kind.split(",") if kind else activity_feed.KINDS
    for word in kinds:
        present.check_words({"kind": word}, {"kind": activity_feed.KINDS})
    ident = present.find_session(rows, session, asking).id if session else ""
    limits = {"session": ident, "since": query.parse_limits(since, "", now=ctx.here(ctx.now())).since}
    happenings: list[FeedRow] = []
    more = False
    if not cursor:
        limit = min(max(last, 0), MOST)
        for word in kinds:
            after = max(0, ends[word] - BACK)
            happenings += activity_feed.latest_feed(rows, word, after=after, projects=seen, limit=limit, **limits)
        happenings = sorted(happenings, key=_order)[-limit:] if limit else []
    else:
        positions = _read_cursor(cursor)
        for word in kinds:
            news = activity_feed.feed_after(
                rows, word, min(positions[word], ends[word]), projects=seen, limit=MOST, **limits
            )
            if len(news) == MOST:
                ends[word], more = news[-1].seq, True
            happenings += news
    written = ",".join(str(ends[word]) for word in activity_feed.KINDS)
    return {"cursor": written, "more": more, "items": list(map(_happening, sorted(happenings, key=_order)))}


def _order(happening: FeedRow) -> tuple[str, int, int]:
    return happening.at, activity_feed.KINDS.index(happening.kind), happening.seq


def _read_cursor(cursor: str) -> dict[str, int]:
    numbers = cursor.split(",")
    if len(numbers) != len(activity_feed.KINDS) or not all(
        number.isdecimal() and len(number) < 19 for number in numbers
    ):
        raise BadInput(f"csm_tail: {cursor!r} is no cursor", hint="give back what the last answer gave, or nothing")
    return dict(zip(activity_feed.KINDS, map(int, numbers), strict=True))


def _happening(happening: FeedRow) -> Json:
    tokens, memories = happening.amounts
    more: dict[str, Any] = {}
    if happening.kind == "injection":
        more = {"tokens": tokens, "memories": memories}
    elif happening.kind == "search":
        more = {"results": memories}
    name, text = PurePath(happening.project).name, display.cut(happening.text, TEXT_CHARACTERS)
    return as_json(happening, "kind at project name session what=word text", name=name, text=text, **more)


@STATE.add("csm_session_line", lane="status")
def _line(ctx: ToolContext, rows: Rows, id_: str) -> Json:
    """One line about what a session was told."""
    memories, tokens = receipts.injection_totals(rows, id_)
    model, used = receipts.context_size(rows, id_)
    window = adapters.of_session(id_).window(model, used)
    bracket = compose.bracket_of(used, window)
    shown = line(
        memories, tokens, is_recording=ctx.store.takes_writes and not ctx.store.last_write_error, is_paused=ctx.paused() is not None,
        filled="" if bracket == "FRESH" else f"context {used * 100 // window} % ({bracket})",
    )  # fmt: skip
    return {"memories": memories, "tokens": tokens, "bracket": bracket, "line": shown}


def line(memories: int, tokens: int, *, is_recording: bool, is_paused: bool = False, filled: str = "") -> str:
    """The status line of a session, "" for none: what it was shown and how full it is, or why csmd does not work for it."""
    if not is_recording:
        return "csmd: not recording"
    if is_paused:
        return "csmd: paused"
    parts = [display.amount(memories, "memory"), display.amount(tokens, "token")] if memories else []
    parts += [filled] if filled else []
    return f"csmd: {', '.join(parts)}" if parts else ""
