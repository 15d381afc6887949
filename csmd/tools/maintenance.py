"""Tools that start long work: import, export, sync, backup, purge, scan."""

from __future__ import annotations

from pathlib import Path

from csmd.capture import project_identity
from csmd.embedding import models
from csmd.errors import BadInput
from csmd.paths import is_there
from csmd.recall import visibility
from csmd.store import backup, projects, purge_plans, workspaces
from csmd.store.purge_plans import Plan
from csmd.store.sqlite import Rows
from csmd.tools.declaration import Json, ToolContext, Tools, need_person, places
from csmd.tools.present import as_json

TOOLS = Tools()


@TOOLS.add("csm_import", mutates=True)
def _import(
    ctx: ToolContext, rows: Rows, path: str, vectors: bool = True, project: str = "", asking: str = "",
    by_person: bool = False, dry_run: bool = False, confirmed: bool = False,
) -> Json:  # fmt: skip
    """Import transcripts, exported memories, or another program's, these only if `confirmed`; gives a job."""
    if not path or not is_there(path):
        raise BadInput(f"{Path(path)}: no such file or directory")
    order = {"project": project, "by_person": by_person, "asking": asking, "dry_run": dry_run, "confirmed": confirmed}
    return {"job": ctx.submit("import", path=str(Path(path)), with_vectors=vectors, order=order)}


@TOOLS.add("csm_memory_export", mutates=True)
def _export(
    ctx: ToolContext, rows: Rows, path: str, project: str = "", asking: str = "", markdown: bool = False
) -> Json:
    """Write the memories of a project, or all, into a directory, with `markdown` to be read; gives a job."""
    if not path:
        raise BadInput(f"{Path(path)}: a directory is named by its whole path")
    order = {"places": places(rows, project, asking), "project": project, "markdown": markdown}
    return {"job": ctx.submit("export", path=str(Path(path)), order=order)}


@TOOLS.add("csm_sync", mutates=True)
def _sync(ctx: ToolContext, rows: Rows, vectors: bool = True, recent: int = 0) -> Json:
    """Take in everything on disk; with `recent` only that many sessions of each project at once; gives a job."""
    return {"job": ctx.submit("sync", with_vectors=vectors, recent=max(0, recent))}


@TOOLS.add("csm_job", lane=None)
def _job(ctx: ToolContext, rows: None, id_: str) -> Json:
    """Show how far a job is."""
    job = ctx.job(id_)
    if job is None:
        raise BadInput(f"there is no job {id_!r}; the daemon may have been restarted", hint="run it again")
    state = job.state  # read first: another thread sets it last
    return as_json(
        job, "state progress result error hint", state=state, progress=dict(job.progress), result=dict(job.result)
    )


@TOOLS.add("csm_model_add", mutates=True)
def _add_model(ctx: ToolContext, rows: Rows, path: str, name: str = "") -> Json:
    """Install an embedding model from a folder; `name` if it is not the configured one; gives a job."""
    models.check_model_dir(Path(path))
    return {"job": ctx.submit("model", path=str(Path(path)), order={"name": name})}


def _plan(ctx: ToolContext, rows: Rows, what: str, kind: str) -> Plan:
    place = _project_key(rows, what) if what.startswith("/") else ""
    return purge_plans.resolve_plan(rows, what, key=ctx.store.hash_key, kind=kind, project_key=place)


def _project_key(rows: Rows, path: str) -> str:
    """The key of the project listed with a path, else of the one that contains it, else the path's own key."""
    listed = workspaces.project_at_path(rows, path)
    seq = project_identity.find_row(rows, path) if listed is None else listed
    return project_identity.identified(path).key if seq is None else projects.key_of(rows, seq)


@TOOLS.add("csm_privacy_purge", mutates=True)
def _purge(
    ctx: ToolContext, rows: Rows, what: str, kind: str = "", dry_run: bool = False, asking: str = "",
    by_person: bool = False
) -> Json:  # fmt: skip
    """Remove something from everything csmd holds; gives a job."""
    if not dry_run:
        need_person(by_person, "have csmd purge something")
    seen = None if by_person else visibility.find_visible_places(rows, asking=asking)  # a wall also hides project names
    order = {"plan": _plan(ctx, rows, what, kind), "dry_run": dry_run, "seen": seen}
    return {"job": ctx.submit("purge", order=order)}


@TOOLS.add("csm_privacy_lift", mutates=True, person="let in again what was purged")
def _allow_again(ctx: ToolContext, rows: Rows, what: str, kind: str = "") -> Json:
    """Let in again what was purged."""
    plan = _plan(ctx, rows, what, kind)
    gone = ctx.store.write(lambda writing: purge_plans.remove_tombstones(writing, plan, key=ctx.store.hash_key))
    return {"what": plan.what, "about": plan.about, "lifted": gone}


@TOOLS.add("csm_privacy_scan", mutates=True)
def _scan(ctx: ToolContext, rows: Rows, fix: bool = False, transcripts: bool = False, by_person: bool = False) -> Json:
    """Look for secrets in what csmd holds; gives a job."""
    if fix:
        need_person(by_person, "have csmd change what it holds")  # backups are removed, which cannot be undone
    return {"job": ctx.submit("scan", order={"fix": fix, "transcripts": transcripts})}


@TOOLS.add("csm_backup_make", mutates=True, lane=None)
def _make_backup(ctx: ToolContext, rows: None, path: str = "") -> Json:
    """Copy the database to a file; gives a job."""
    return {"job": ctx.submit("backup", path=path)}


@TOOLS.add("csm_backup_list", lane=None)
def _list_backups(ctx: ToolContext, rows: None) -> Json:
    """List the backups."""
    return {"backups": backups(ctx.config.paths.database)}


def backups(database: Path) -> list[Json]:
    """Every backup, the newest first."""
    return [
        {"path": str(path), "made_at": made.isoformat().replace("+00:00", "Z"), "bytes": path.stat().st_size}
        for path in backup.list_backups(database)
        if (made := backup.time_in_name(path))
    ]
