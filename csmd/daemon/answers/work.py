"""Work that takes its time: each answer is a job, and `csm_job` says how far it is."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

from csmd.daemon.jobs import Job
from csmd.daemon.tool import ASKING, PLACE, REQUIRED, Params, Tool
from csmd.errors import BadInput
from csmd.recall import stage as recall
from csmd.store import models
from csmd.store.sqlite import Rows

if TYPE_CHECKING:
    from csmd.daemon.tools import Tools


def _import(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    path = Path(params["path"])
    if not path.is_absolute() or not path.exists():
        raise BadInput(f"{path}: no such file or directory")
    order = {"project": params["project"], "by_person": params["by_person"], "asking": params[ASKING]}
    return _job(
        tools, Job(id=secrets.token_hex(8), kind="import", path=str(path), with_vectors=params["vectors"], order=order)
    )


def _export(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    path = Path(params["path"])
    if not path.is_absolute():
        raise BadInput(f"{path}: a directory is named by its whole path")
    order = {"places": recall.asked(rows, params["project"], asking=params[ASKING]), "project": params["project"]}
    return _job(tools, Job(id=secrets.token_hex(8), kind="export", path=str(path), order=order))


def _sync(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    job = Job(id=secrets.token_hex(8), kind="sync", with_vectors=params["vectors"], recent=max(0, params["recent"]))
    return _job(tools, job)


def _job(tools: Tools, job: Job) -> dict[str, Any]:
    tools.steward.submit(job)
    return {"job": job.id}


def _look_at_job(tools: Tools, rows: None, params: Params) -> dict[str, Any]:
    job = tools.steward.jobs.get(params["id"])
    if job is None:
        raise BadInput(f"there is no job {params['id']!r}; the daemon may have been restarted", hint="run it again")
    return {
        "state": job.state,
        "progress": dict(job.progress),
        "result": dict(job.result),
        "error": job.error,
        "hint": job.hint,
    }


def _model_add(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    source = Path(params["path"])
    models.check_model_dir(source)
    return _job(tools, Job(id=secrets.token_hex(8), kind="model", path=str(source), order={"name": params["name"]}))


TOOLS: dict[str, Tool] = {
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
