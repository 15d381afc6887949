"""Tools that start long work: import, export, sync, backup, purge, scan."""

from __future__ import annotations

from pathlib import Path

from csmd.capture import project_identity
from csmd.embedding import installed_models
from csmd.errors import BadInput
from csmd.paths import is_there
from csmd.recall import visibility
from csmd.store import backup, projects, purge_plans, workspaces
from csmd.store.purge_plans import Plan
from csmd.store.sqlite import Rows
from csmd.tools.declaration import Json, ToolContext, Tools, find_places, require_person
from csmd.tools.present import as_json

TOOLS = Tools()


@TOOLS.add("csm_import", mutates=True)
def _import_path(
    ctx: ToolContext, rows: Rows, path: str, vectors: bool = True, project: str = "", asking: str = "",
    by_person: bool = False, dry_run: bool = False, confirmed: bool = False,
) -> Json:  # fmt: skip
    """Import transcripts, exported memories, or another program's (only if `confirmed`); returns a job."""
    if not path or not is_there(path):
        raise BadInput(f"{Path(path)}: no such file or directory")
    order = {"project": project, "by_person": by_person, "asking": asking, "dry_run": dry_run, "confirmed": confirmed}
    return {"job": ctx.submit("import", path=str(Path(path)), with_vectors=vectors, order=order)}


@TOOLS.add("csm_memory_export", mutates=True)
def _export_memories(
    ctx: ToolContext, rows: Rows, path: str, project: str = "", asking: str = "", markdown: bool = False
) -> Json:
    """Write the memories of a project, or all, into a directory, with `markdown` as readable text; returns a job."""
    if not path:
        raise BadInput("no directory was given", hint="give its absolute path")
    order = {"places": find_places(rows, project, asking), "project": project, "markdown": markdown}
    return {"job": ctx.submit("export", path=str(Path(path)), order=order)}


@TOOLS.add("csm_sync", mutates=True)
def _sync(ctx: ToolContext, rows: Rows, vectors: bool = True, recent: int = 0) -> Json:
    """Read every transcript on disk, with `recent` only that many sessions of each project now; returns a job."""
    return {"job": ctx.submit("sync", with_vectors=vectors, recent=max(0, recent))}


@TOOLS.add("csm_job", lane=None)
def _show_job(ctx: ToolContext, rows: None, id_: str) -> Json:
    """Show the progress of a job."""
    job = ctx.job(id_)
    if job is None:
        raise BadInput(f"there is no job {id_!r}; the daemon may have been restarted", hint="run it again")
    state = job.state  # read first: another thread sets it last
    fields = "state progress result error hint"
    return as_json(job, fields, state=state, progress=dict(job.progress), result=dict(job.result))


@TOOLS.add("csm_model_add", mutates=True)
def _add_model(ctx: ToolContext, rows: Rows, path: str, name: str = "") -> Json:
    """Install an embedding model from a folder; `name` if it is not the configured one; returns a job."""
    installed_models.check_model_dir(Path(path))
    return {"job": ctx.submit("model", path=str(Path(path)), order={"name": name})}


def _resolve_plan(ctx: ToolContext, rows: Rows, what: str, kind: str) -> Plan:
    project_key = _find_project_key(rows, what) if what.startswith("/") else ""
    return purge_plans.resolve_plan(rows, what, key=ctx.store.hash_key, kind=kind, project_key=project_key)


def _find_project_key(rows: Rows, path: str) -> str:
    """Returns the key of the project listed with a path, else of the one that contains it, else the path's own key."""
    listed_seq = workspaces.project_at_path(rows, path)
    seq = project_identity.find_row(rows, path) if listed_seq is None else listed_seq
    return project_identity.identify_directory(path).key if seq is None else projects.read_key(rows, seq)


@TOOLS.add("csm_privacy_purge", mutates=True)
def _purge(
    ctx: ToolContext, rows: Rows, what: str, kind: str = "", dry_run: bool = False, asking: str = "",
    by_person: bool = False
) -> Json:  # fmt: skip
    """Remove something from all of csmd's data; returns a job."""
    if not dry_run:
        require_person(by_person, "purge")
    seen = None if by_person else visibility.find_visible_places(rows, asking=asking)  # a wall also hides project names
    order = {"plan": _resolve_plan(ctx, rows, what, kind), "dry_run": dry_run, "seen": seen}
    return {"job": ctx.submit("purge", order=order)}


@TOOLS.add("csm_privacy_lift", mutates=True, person="lift a purge")
def _lift_purge(ctx: ToolContext, rows: Rows, what: str, kind: str = "") -> Json:
    """Lift a purge, so that its text is stored again."""
    plan = _resolve_plan(ctx, rows, what, kind)
    count = ctx.store.write(lambda writing: purge_plans.remove_tombstones(writing, plan, key=ctx.store.hash_key))
    return {"what": plan.what, "about": plan.about, "lifted": count}


@TOOLS.add("csm_privacy_scan", mutates=True)
def _scan_for_secrets(
    ctx: ToolContext, rows: Rows, fix: bool = False, transcripts: bool = False, by_person: bool = False
) -> Json:
    """Search csmd's data for secrets; returns a job."""
    if fix:
        require_person(by_person, "remove secrets")  # backups are removed, which cannot be undone
    return {"job": ctx.submit("scan", order={"fix": fix, "transcripts": transcripts})}


@TOOLS.add("csm_backup_make", mutates=True, lane=None)
def _make_backup(ctx: ToolContext, rows: None, path: str = "") -> Json:
    """Copy the database to a file; returns a job."""
    return {"job": ctx.submit("backup", path=path)}


@TOOLS.add("csm_backup_list", lane=None)
def _list_backups(ctx: ToolContext, rows: None) -> Json:
    """List the backups."""
    return {"backups": list_backup_files(ctx.config.paths.database)}


def list_backup_files(database: Path) -> list[Json]:
    """Returns every backup, the newest first."""
    return [
        {"path": str(path), "made_at": made_at.isoformat().replace("+00:00", "Z"), "bytes": path.stat().st_size}
        for path in backup.list_backups(database)
        if (made_at := backup.parse_time_in_name(path))
    ]
