"""Work that somebody waits for, pauses and purges, upkeep, the daemon's state, and what happens for who looks on."""

from __future__ import annotations

import secrets
from pathlib import Path, PurePath
from typing import Any

from csmd.capture import project_identity
from csmd.daemon import health, housekeeping
from csmd.daemon import status as state
from csmd.daemon.clock import now_iso
from csmd.daemon.context import look_at_pauses
from csmd.daemon.job import Job
from csmd.embedding import supervisor
from csmd.errors import BadInput, CsmdError
from csmd.hosts.claude import environment
from csmd.model import PROBE_SESSION
from csmd.recall import compose, results
from csmd.recall import visibility as recall
from csmd.store import activity, events, integrity, projects, purge, receipts, workspaces
from csmd.store.activity import Happening
from csmd.store.purge import Plan
from csmd.store.sqlite import Rows
from csmd.text import display
from csmd.tools.registry import ASKING, PLACE, REQUIRED, Params, Tool, ToolContext, places


def _import(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    path = Path(params["path"])
    if not path.is_absolute() or not path.exists():
        raise BadInput(f"{path}: no such file or directory")
    order = {"project": params["project"], "by_person": params["by_person"], "asking": params[ASKING]}
    return _job(
        tools, Job(id=secrets.token_hex(8), kind="import", path=str(path), with_vectors=params["vectors"], order=order)
    )


def _export(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    path = Path(params["path"])
    if not path.is_absolute():
        raise BadInput(f"{path}: a directory is named by its whole path")
    order = {"places": recall.asked(rows, params["project"], asking=params[ASKING]), "project": params["project"]}
    return _job(tools, Job(id=secrets.token_hex(8), kind="export", path=str(path), order=order))


def _sync(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    job = Job(id=secrets.token_hex(8), kind="sync", with_vectors=params["vectors"], recent=max(0, params["recent"]))
    return _job(tools, job)


def _job(tools: ToolContext, job: Job) -> dict[str, Any]:
    tools.context.submit(job)
    return {"job": job.id}


def _look_at_job(tools: ToolContext, rows: None, params: Params) -> dict[str, Any]:
    job = tools.context.jobs.get(params["id"])
    if job is None:
        raise BadInput(f"there is no job {params['id']!r}; the daemon may have been restarted", hint="run it again")
    return {
        "state": job.state,
        "progress": dict(job.progress),
        "result": dict(job.result),
        "error": job.error,
        "hint": job.hint,
    }


def _model_add(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    source = Path(params["path"])
    supervisor.check_model_dir(source)
    return _job(tools, Job(id=secrets.token_hex(8), kind="model", path=str(source), order={"name": params["name"]}))


WORK_TOOLS: dict[str, Tool] = {
    "csm_import": Tool(
        summary="Import transcripts, exported memories, or the notes of a memory directory; gives a job",
        mutates=True, run=_import,
        parameters={"path": (str, REQUIRED), "vectors": (bool, True), **PLACE, "by_person": (bool, False)},
    ),
    "csm_memory_export": Tool(
        summary="Write the memories of a project, or all, into a directory; gives a job", mutates=True, run=_export,
        parameters={"path": (str, REQUIRED), **PLACE},
    ),
    "csm_sync": Tool(
        summary="Take in everything on disk; with `recent` only so many sessions of each project at once; gives a job",
        mutates=True, run=_sync, parameters={"vectors": (bool, True), "recent": (int, 0)},
    ),
    "csm_job": Tool(
        summary="How far a job is", mutates=False, run=_look_at_job, parameters={"id": (str, REQUIRED)}, lane=None
    ),
    "csm_model_add": Tool(
        summary="Install an embedding model from a folder, `name` where it is not the configuration's; gives a job",
        mutates=True, run=_model_add, parameters={"path": (str, REQUIRED), "name": (str, "")},
    ),
}  # fmt: skip


def _plan(tools: ToolContext, rows: Rows, params: Params) -> Plan:
    typed = str(params["what"])
    place = _project_key(rows, typed) if typed.startswith("/") else ""
    return purge.resolve_plan(rows, typed, key=tools.store.hash_key, kind=params["kind"], project_key=place)


def _project_key(rows: Rows, path: str) -> str:
    """The key of the project that is shown with a path, else of the one it counts to; its own where neither is known."""
    shown = workspaces.at_path(rows, path)
    seq = project_identity.known(rows, path) if shown is None else shown
    return project_identity.identified(path).key if seq is None else projects.key_of(rows, seq)


def _by_person(params: Params, verb: str) -> None:
    if not params["by_person"]:
        raise CsmdError(f"only a person at a terminal can {verb}", hint="type it in a terminal")


def _purge(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    if not params["dry_run"]:
        _by_person(params, "have csmd purge something")
    seen = None if params["by_person"] else recall.seen(rows, asking=params[ASKING])  # a wall hides its projects' names
    order = {"plan": _plan(tools, rows, params), "dry_run": params["dry_run"], "seen": seen}
    return {"job": tools.context.submit(Job(id=secrets.token_hex(8), kind="purge", order=order)).id}


def _lift(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    _by_person(params, "let in again what was purged")
    plan = _plan(tools, rows, params)
    gone = tools.store.write(lambda writing: purge.lift_purge(writing, plan, key=tools.store.hash_key))
    return {"what": plan.what, "about": plan.about, "lifted": gone}


def _scan(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    if params["fix"]:
        _by_person(params, "have csmd change what it holds")  # copies of the database go, and that cannot be undone
    order = {"fix": params["fix"], "transcripts": params["transcripts"]}
    return {"job": tools.context.submit(Job(id=secrets.token_hex(8), kind="scan", order=order)).id}


PRIVACY_TOOLS: dict[str, Tool] = {
    "csm_privacy_purge": Tool(
        summary="Remove something from everything csmd holds; gives a job", mutates=True, run=_purge,
        parameters={"what": (str, REQUIRED), "kind": (str, ""), "dry_run": (bool, False), ASKING: (str, ""), "by_person": (bool, False)},
    ),
    "csm_privacy_lift": Tool(
        summary="Let in again what was purged", mutates=True, run=_lift,
        parameters={"what": (str, REQUIRED), "kind": (str, ""), "by_person": (bool, False)},
    ),
    "csm_privacy_scan": Tool(
        summary="Look for secrets in what csmd holds; gives a job", mutates=True, run=_scan,
        parameters={"fix": (bool, False), "transcripts": (bool, False), "by_person": (bool, False)},
    ),
}  # fmt: skip


def _make(tools: ToolContext, rows: None, params: Params) -> dict[str, Any]:
    job = tools.context.submit(Job(id=secrets.token_hex(8), kind="backup", path=params["path"]))
    return {"job": job.id}


def _list(tools: ToolContext, rows: None, params: Params) -> dict[str, Any]:
    return {"backups": housekeeping.listing(tools.config.paths.database)}


UPKEEP_TOOLS: dict[str, Tool] = {
    "csm_backup_make": Tool(
        summary="Copy the database to a file; gives a job", mutates=True, run=_make, parameters={"path": (str, "")}, lane=None
    ),
    "csm_backup_list": Tool(summary="List the backups", mutates=False, run=_list, parameters={}, lane=None),
}  # fmt: skip


def _check(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    if not params["indexes"]:
        return {"problems": integrity.structure(rows) or integrity.content(rows)}
    # FTS5's own check is a statement that writes nothing but wants the writer.
    return {"problems": tools.store.write(integrity.integrity)}


def _shape(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    return integrity.shape(rows)


def _status(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    result: dict[str, Any] = tools.status(rows)
    return result


def _clients(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    return health.clients_told(rows, tools.config)


def _alarms(tools: ToolContext, rows: None, params: Params) -> dict[str, Any]:
    return {"alarms": tools.alarms.shown()}


def _pauses(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    look_at_pauses(tools.context.pauses)
    return {"paused": state.paused(tools.context.pauses(), now_iso())}


STATE_TOOLS: dict[str, Tool] = {
    "csm_clients": Tool(
        summary="Which versions and directories of the assistant are in use", mutates=False, run=_clients, parameters={}
    ),
    "csm_store_check": Tool(summary="Check that the database is sound", mutates=False, run=_check, parameters={"indexes": (bool, True)}),
    "csm_store_shape": Tool(
        summary="The database without its content: tables, how many rows, SQLite's settings", mutates=False, run=_shape, parameters={}
    ),
    "csm_runtime_pause": Tool(
        summary="Whether csmd is paused; read anew from its file", mutates=False, run=_pauses, parameters={}, lane="status"
    ),
    "csm_runtime_status": Tool(summary="The daemon's state", mutates=False, run=_status, parameters={}, lane="status"),
    "csm_runtime_alarms": Tool(summary="What means that nothing is being remembered", mutates=False, run=_alarms, parameters={}, lane=None),
}  # fmt: skip


#: A marker has a turn for each event that reports one.
MOST_TURNS = 10


def _take(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    """Found by words alone: that a vector is made for it is the worker's business, and may take a while."""
    session = params["id"]
    word = session.removeprefix(PROBE_SESSION)
    if word == session or not word.isalpha():
        raise BadInput(f"{session!r} is no marker of `csmd doctor`")
    if not events.is_probe_there(rows, session):
        tools.context.poke()  # it may wait in the spool
        return {"found": [], "removed": 0}
    hits, _ = results.find(rows, word, projects=None, kind="turn", limit=MOST_TURNS, embed=None)
    found = [hit.text for hit in hits if hit.session_id == session]
    removed = tools.store.write(lambda writing: events.remove_probe(writing, session_id=session))
    return {"found": found, "removed": removed}


PROBE_TOOLS: dict[str, Tool] = {
    "csm_probe_take": Tool(
        summary="Find the turns that `csmd doctor` sent, and take them away", mutates=True, run=_take, parameters={"id": (str, REQUIRED)}
    ),
}  # fmt: skip


#: Of one kind in one answer; who gets so many asks again at once.
MOST = 200
#: Characters of a text; `csmd session transcript` shows the whole.
TEXT_CHARACTERS = 1000
#: Of one project's rows so many of all projects' are looked through for the first look.
BACK = 20_000


def _tail(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    seen, last = places(rows, params), activity.positions(rows)
    if not params["cursor"]:
        limit = min(max(params["last"], 0), MOST)
        found = [one for kind in activity.KINDS for one in _latest(rows, kind, last[kind], seen, limit)]
        found = sorted(found, key=_order)[-limit:] if limit else []
        return {"cursor": _written(last), "more": False, "items": [_item(one) for one in found]}
    found, more = [], False
    for kind, position in _read(params["cursor"]).items():
        news = activity.happened_after(rows, kind, min(position, last[kind]), projects=seen, limit=MOST)
        if len(news) == MOST:
            last[kind], more = news[-1].seq, True
        found += news
    return {"cursor": _written(last), "more": more, "items": [_item(one) for one in sorted(found, key=_order)]}


def _latest(rows: Rows, kind: str, last: int, seen: list[int] | None, limit: int) -> list[Happening]:
    return activity.latest_positions(rows, kind, after=max(0, last - BACK), projects=seen, limit=limit)


def _order(one: Happening) -> tuple[str, int, int]:
    return one.at, activity.KINDS.index(one.kind), one.seq


def _written(positions: dict[str, int]) -> str:
    return ",".join(str(positions[kind]) for kind in activity.KINDS)


def _read(cursor: str) -> dict[str, int]:
    numbers = cursor.split(",")
    if len(numbers) != len(activity.KINDS) or not all(number.isdecimal() and len(number) < 19 for number in numbers):
        raise BadInput(f"csm_tail: {cursor!r} is no cursor", hint="give back what the last answer gave, or nothing")
    return dict(zip(activity.KINDS, map(int, numbers), strict=True))


def _item(one: Happening) -> dict[str, Any]:
    tokens, memories = one.amounts
    return {
        "kind": one.kind,
        "at": one.at,
        "project": one.project,
        "name": PurePath(one.project).name,
        "session": one.session,
        "what": one.word,
        "text": display.cut(one.text, TEXT_CHARACTERS),
        **({"tokens": tokens, "memories": memories} if one.kind == "injection" else {}),
    }


def _line(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    memories, tokens = receipts.injected(rows, params["id"])
    model, used = receipts.filled(rows, params["id"])
    window = environment.window(model, used)
    return {
        "memories": memories,
        "tokens": tokens,
        "bracket": compose.of(used, window),
        "line": line(
            memories,
            tokens,
            is_recording=not (tools.store.refuses or tools.store.refusing),
            is_paused=tools.context.pauses().current(now_iso()) is not None,
            filled=filled(used, window),
        ),
    }


def filled(used: int, window: int) -> str:
    """How full a context is, in words; "" while that is nothing to look at."""
    found = compose.of(used, window)
    return "" if found == "FRESH" else f"context {used * 100 // window} % ({found})"


def line(memories: int, tokens: int, *, is_recording: bool, is_paused: bool = False, filled: str = "") -> str:
    """What stands below a session, "" for nothing: what it was told and how full it is, or why csmd does not work for it."""
    if not is_recording:
        return "csmd: not recording"
    if is_paused:
        return "csmd: paused"
    said = [display.amount(memories, "memory"), display.amount(tokens, "token")] if memories else []
    said += [filled] if filled else []
    return f"csmd: {', '.join(said)}" if said else ""


LOOKING_ON_TOOLS: dict[str, Tool] = {
    "csm_tail": Tool(
        summary="What has happened since a cursor", mutates=False, run=_tail, lane="status",
        parameters={"cursor": (str, ""), "last": (int, 10), **PLACE},
    ),
    "csm_session_line": Tool(
        summary="One line about what a session was told", mutates=False, run=_line, lane="status",
        parameters={"id": (str, REQUIRED)},
    ),
}  # fmt: skip
