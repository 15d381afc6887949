"""Tools on operation: import, sync, purge, backup, status, tail, probe."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import Any

from csmd.capture import project_identity
from csmd.embedding import supervisor
from csmd.errors import BadInput
from csmd.hosts.claude import environment
from csmd.model import PROBE_SESSION
from csmd.recall import compose, results, visibility
from csmd.store import activity, backup, events, integrity, projects, purge, receipts, workspaces
from csmd.store.activity import FeedRow
from csmd.store.purge import Plan
from csmd.store.sqlite import Rows
from csmd.text import display
from csmd.tools.present import as_json
from csmd.tools.registry import Json, Tool, ToolContext, need_person, places


def _import(
    ctx: ToolContext, rows: Rows, path: str, vectors: bool = True, project: str = "", asking: str = "",
    by_person: bool = False,
) -> Json:  # fmt: skip
    if not path or not Path(path).exists():
        raise BadInput(f"{Path(path)}: no such file or directory")
    order = {"project": project, "by_person": by_person, "asking": asking}
    return {"job": ctx.submit("import", path=str(Path(path)), with_vectors=vectors, order=order)}


def _export(ctx: ToolContext, rows: Rows, path: str, project: str = "", asking: str = "") -> Json:
    if not path:
        raise BadInput(f"{Path(path)}: a directory is named by its whole path")
    order = {"places": places(rows, project, asking), "project": project}
    return {"job": ctx.submit("export", path=str(Path(path)), order=order)}


def _sync(ctx: ToolContext, rows: Rows, vectors: bool = True, recent: int = 0) -> Json:
    return {"job": ctx.submit("sync", with_vectors=vectors, recent=max(0, recent))}


def _job(ctx: ToolContext, rows: None, id_: str) -> Json:
    job = ctx.job(id_)
    if job is None:
        raise BadInput(f"there is no job {id_!r}; the daemon may have been restarted", hint="run it again")
    return as_json(job, "state progress result error hint", progress=dict(job.progress), result=dict(job.result))


def _add_model(ctx: ToolContext, rows: Rows, path: str, name: str = "") -> Json:
    supervisor.check_model_dir(Path(path))
    return {"job": ctx.submit("model", path=str(Path(path)), order={"name": name})}


WORK_TOOLS = (
    Tool(
        "csm_import", "Import transcripts, exported memories, or the notes of a memory directory; gives a job", _import,
        mutates=True,
    ),
    Tool(
        "csm_memory_export", "Write the memories of a project, or all, into a directory; gives a job", _export, mutates=True
    ),
    Tool(
        "csm_sync",
        "Take in everything on disk; with `recent` only so many sessions of each project at once; gives a job",
        _sync, mutates=True,
    ),
    Tool("csm_job", "How far a job is", _job, lane=None),
    Tool(
        "csm_model_add",
        "Install an embedding model from a folder, `name` where it is not the configuration's; gives a job",
        _add_model, mutates=True,
    ),
)  # fmt: skip


def _plan(ctx: ToolContext, rows: Rows, what: str, kind: str) -> Plan:
    place = _project_key(rows, what) if what.startswith("/") else ""
    return purge.resolve_plan(rows, what, key=ctx.store.hash_key, kind=kind, project_key=place)


def _project_key(rows: Rows, path: str) -> str:
    """The key of the project that is shown with a path, else of the one it counts to; its own where neither is known."""
    shown = workspaces.at_path(rows, path)
    seq = project_identity.known(rows, path) if shown is None else shown
    return project_identity.identified(path).key if seq is None else projects.key_of(rows, seq)


def _purge(
    ctx: ToolContext, rows: Rows, what: str, kind: str = "", dry_run: bool = False, asking: str = "", by_person: bool = False
) -> Json:  # fmt: skip
    if not dry_run:
        need_person(by_person, "have csmd purge something")
    seen = (
        None if by_person else visibility.find_visible_places(rows, asking=asking)
    )  # a wall hides its projects' names
    order = {"plan": _plan(ctx, rows, what, kind), "dry_run": dry_run, "seen": seen}
    return {"job": ctx.submit("purge", order=order)}


def _allow_again(ctx: ToolContext, rows: Rows, what: str, kind: str = "") -> Json:
    plan = _plan(ctx, rows, what, kind)
    gone = ctx.store.write(lambda writing: purge.remove_tombstones(writing, plan, key=ctx.store.hash_key))
    return {"what": plan.what, "about": plan.about, "lifted": gone}


def _scan(
    ctx: ToolContext, rows: Rows, fix: bool = False, transcripts: bool = False, by_person: bool = False
) -> Json:  # fmt: skip
    if fix:
        need_person(by_person, "have csmd change what it holds")  # copies of the database go, which cannot be undone
    return {"job": ctx.submit("scan", order={"fix": fix, "transcripts": transcripts})}


PRIVACY_TOOLS = (
    Tool("csm_privacy_purge", "Remove something from everything csmd holds; gives a job", _purge, mutates=True),
    Tool(
        "csm_privacy_lift", "Let in again what was purged", _allow_again, mutates=True, person="let in again what was purged"
    ),
    Tool("csm_privacy_scan", "Look for secrets in what csmd holds; gives a job", _scan, mutates=True),
)  # fmt: skip


def _make_backup(ctx: ToolContext, rows: None, path: str = "") -> Json:
    return {"job": ctx.submit("backup", path=path)}


def _list_backups(ctx: ToolContext, rows: None) -> Json:
    return {"backups": backups(ctx.config.paths.database)}


def backups(database: Path) -> list[Json]:
    """Every backup, the newest first."""
    return [
        {"path": str(path), "made_at": made.isoformat().replace("+00:00", "Z"), "bytes": path.stat().st_size}
        for path in backup.listed(database)
        if (made := backup.made_at(path))
    ]


UPKEEP_TOOLS = (
    Tool("csm_backup_make", "Copy the database to a file; gives a job", _make_backup, mutates=True, lane=None),
    Tool("csm_backup_list", "List the backups", _list_backups, lane=None),
)


def _check(ctx: ToolContext, rows: Rows, indexes: bool = True) -> Json:
    if not indexes:
        return {"problems": integrity.structure(rows) or integrity.content(rows)}
    # FTS5's own check is a statement that writes nothing but wants the writer.
    return {"problems": ctx.store.write(integrity.integrity)}


def _shape(ctx: ToolContext, rows: Rows) -> Json:
    return integrity.shape(rows)


def _status(ctx: ToolContext, rows: Rows) -> Json:
    return ctx.status(rows)


def _clients(ctx: ToolContext, rows: Rows) -> Json:
    return ctx.clients(rows)


def _alarms(ctx: ToolContext, rows: None) -> Json:
    return {"alarms": ctx.alarms()}


def _pause(ctx: ToolContext, rows: Rows) -> Json:
    ctx.read_pauses()
    return {"paused": ctx.paused()}


STATE_TOOLS = (
    Tool("csm_clients", "Which versions and directories of the assistant are in use", _clients),
    Tool("csm_store_check", "Check that the database is sound", _check),
    Tool("csm_store_shape", "The database without its content: tables, how many rows, SQLite's settings", _shape),
    Tool("csm_runtime_pause", "Whether csmd is paused; read anew from its file", _pause, lane="status"),
    Tool("csm_runtime_status", "The daemon's state", _status, lane="status"),
    Tool("csm_runtime_alarms", "What means that nothing is being remembered", _alarms, lane=None),
)


#: A marker has a turn for each event that reports one.
MOST_TURNS = 10


def _take_probe(ctx: ToolContext, rows: Rows, id_: str) -> Json:
    """Found by words alone: that a vector is made for it is the worker's business, and may take a while."""
    word = id_.removeprefix(PROBE_SESSION)
    if word == id_ or not word.isalpha():
        raise BadInput(f"{id_!r} is no marker of `csmd doctor`")
    if not events.has_probe(rows, id_):
        ctx.poke()  # it may wait in the spool
        return {"found": [], "removed": 0}
    hits, _ = results.find(rows, word, projects=None, kind="turn", limit=MOST_TURNS, embed=None)
    found = [hit.text for hit in hits if hit.session_id == id_]
    return {"found": found, "removed": ctx.store.write(lambda writing: events.remove_probe(writing, session_id=id_))}


PROBE_TOOLS = (
    Tool("csm_probe_take", "Find the turns that `csmd doctor` sent, and take them away", _take_probe, mutates=True),
)


#: Of one kind in one answer; who gets so many asks again at once.
MOST = 200
#: Characters of a text; `csmd session transcript` shows the whole.
TEXT_CHARACTERS = 1000
#: Of one project's rows so many of all projects' are looked through for the first look.
BACK = 20_000


def _tail(
    ctx: ToolContext, rows: Rows, cursor: str = "", last: int = 10, project: str = "", asking: str = ""
) -> Json:  # fmt: skip
    seen, ends = places(rows, project, asking), activity.feed_positions(rows)
    found: list[FeedRow] = []
    more = False
    if not cursor:
        limit = min(max(last, 0), MOST)
        for kind in activity.KINDS:
            after = max(0, ends[kind] - BACK)
            found += activity.latest_feed(rows, kind, after=after, projects=seen, limit=limit)
        found = sorted(found, key=_order)[-limit:] if limit else []
    else:
        for kind, position in _read_cursor(cursor).items():
            news = activity.feed_after(rows, kind, min(position, ends[kind]), projects=seen, limit=MOST)
            if len(news) == MOST:
                ends[kind], more = news[-1].seq, True
            found += news
    written = ",".join(str(ends[kind]) for kind in activity.KINDS)
    return {"cursor": written, "more": more, "items": [_happening(one) for one in sorted(found, key=_order)]}


def _order(one: FeedRow) -> tuple[str, int, int]:
    return one.at, activity.KINDS.index(one.kind), one.seq


def _read_cursor(cursor: str) -> dict[str, int]:
    numbers = cursor.split(",")
    if len(numbers) != len(activity.KINDS) or not all(number.isdecimal() and len(number) < 19 for number in numbers):
        raise BadInput(f"csm_tail: {cursor!r} is no cursor", hint="give back what the last answer gave, or nothing")
    return dict(zip(activity.KINDS, map(int, numbers), strict=True))


def _happening(one: FeedRow) -> Json:
    tokens, memories = one.amounts
    more: dict[str, Any] = {"tokens": tokens, "memories": memories} if one.kind == "injection" else {}
    name, text = PurePath(one.project).name, display.cut(one.text, TEXT_CHARACTERS)
    return as_json(one, "kind at project name session what=word text", name=name, text=text, **more)


def _line(ctx: ToolContext, rows: Rows, id_: str) -> Json:
    memories, tokens = receipts.injection_totals(rows, id_)
    model, used = receipts.context_size(rows, id_)
    window = environment.window(model, used)
    bracket = compose.bracket_of(used, window)
    shown = line(
        memories, tokens, is_recording=not (ctx.store.refuses or ctx.store.refusing), is_paused=ctx.paused() is not None,
        filled="" if bracket == "FRESH" else f"context {used * 100 // window} % ({bracket})",
    )  # fmt: skip
    return {"memories": memories, "tokens": tokens, "bracket": bracket, "line": shown}


def line(memories: int, tokens: int, *, is_recording: bool, is_paused: bool = False, filled: str = "") -> str:
    """What stands below a session, "" for nothing: what it was told and how full it is, or why csmd does not work for it."""
    if not is_recording:
        return "csmd: not recording"
    if is_paused:
        return "csmd: paused"
    parts = [display.amount(memories, "memory"), display.amount(tokens, "token")] if memories else []
    parts += [filled] if filled else []
    return f"csmd: {', '.join(parts)}" if parts else ""


LOOKING_ON_TOOLS = (
    Tool("csm_tail", "What has happened since a cursor", _tail, lane="status"),
    Tool("csm_session_line", "One line about what a session was told", _line, lane="status"),
)
